"""How long a job takes to a consumer that waits for it, at a constant rate.

Job number i is due i / rate seconds after the start, whether or not earlier ones have been answered, and its time
counts from when it was due: a server that stalls is charged for all that should have been sent meanwhile.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

from disqueue.cli.bench_histogram import LatencyHistogram
from disqueue.cli.bench_load import ACK, ADD
from disqueue.cli.bench_process import Meter, Usage
from disqueue.cli.bench_protocols import NUMBER_DIGITS, Protocol, Replies, ReplyError
from disqueue.cli.connection import Connection, ConnectionFailed, Target

MIN_BODY_BYTES = NUMBER_DIGITS
MAX_CONNECTIONS = 400
"""select() takes no descriptor above 1023; it is used because its timeout has microseconds."""
_SETTLE_S = 0.3
_RECEIVE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class LatencyPlan:
    """What to run. `rate` jobs a second until `jobs` are sent or `seconds` are over; `answer_s`: for the last ones."""

    protocol: Protocol
    producer: Target
    consumer: Target
    pids: Sequence[int]
    rate: float
    jobs: int
    seconds: float
    connections: int = 4
    answer_s: float = 10.0


@dataclass(slots=True)
class LatencyResult:
    """Microseconds: until the producer has its reply, until the consumer has the job, and how late it was sent."""

    added: LatencyHistogram = field(default_factory=LatencyHistogram)
    delivered: LatencyHistogram = field(default_factory=LatencyHistogram)
    late: LatencyHistogram = field(default_factory=LatencyHistogram)
    sent: int = 0
    usage: Usage = field(default_factory=Usage)


class _Producer:
    """A connection that adds jobs without waiting for the replies of earlier ones."""

    def __init__(self, connection: Connection, protocol: Protocol) -> None:
        self.connection = connection
        self.socket = connection.socket
        self._replies: Replies = protocol.replies(ADD)
        self._due: list[float] = []

    def send(self, request: bytes, due_s: float) -> None:
        self._due.append(due_s)
        self.connection.send(request)

    def receive(self, result: LatencyResult) -> None:
        data = self.socket.recv(_RECEIVE_BYTES)
        now_s = time.perf_counter()
        if not data:
            raise ConnectionFailed("the server closed a producer's connection")
        self._replies.reset()
        self._replies.feed(data)
        done, self._due = self._due[: self._replies.count], self._due[self._replies.count :]
        for due_s in done:
            result.added.record(round((now_s - due_s) * 1e6))


class _Consumer:
    """A connection that waits for a job, acknowledges it, and waits for the next."""

    def __init__(self, connection: Connection, protocol: Protocol) -> None:
        self.connection = connection
        self.socket = connection.socket
        self._protocol = protocol
        patterns = protocol.patterns()
        self._delivery, self._ack = patterns["delivery"], patterns[ACK]
        self._acks_due = 0
        self._buffer = b""
        connection.send(protocol.get(1))

    def receive(self, start_s: float, rate: float, result: LatencyResult) -> None:
        data = self.socket.recv(_RECEIVE_BYTES)
        now_s = time.perf_counter()
        if not data:
            raise ConnectionFailed("the server closed a consumer's connection")
        self._buffer += data
        while self._buffer:
            pattern = self._ack if self._acks_due else self._delivery
            match = pattern.match(self._buffer)
            if match is None:
                self._check()
                return
            self._buffer = self._buffer[match.end() :]
            if self._acks_due:
                self._acks_due -= 1
                continue
            due_s = start_s + int(match[2]) / rate
            result.delivered.record(round((now_s - due_s) * 1e6))
            self.connection.send(self._protocol.ack([match[1]]) + self._protocol.get(1))
            self._acks_due = 1

    def _check(self) -> None:
        if self._buffer.startswith(self._protocol.error_mark) and b"\n" in self._buffer:
            raise ReplyError(self._buffer.partition(b"\r\n")[0].decode("utf-8", "replace"))


def run_latency(plan: LatencyPlan, progress: Callable[[str, int, int], None]) -> LatencyResult:
    """Send at the rate, and wait for what was sent. Raises ConnectionFailed, ReplyError."""
    with ExitStack() as stack:

        def connect(target: Target) -> Connection:
            connection = stack.enter_context(closing(Connection(target)))
            plan.protocol.greet(connection)
            return connection

        producers = [_Producer(connect(plan.producer), plan.protocol) for _ in range(plan.connections)]
        consumers = [_Consumer(connect(plan.consumer), plan.protocol) for _ in range(plan.connections)]
        time.sleep(_SETTLE_S)  # consumers wait at the server before the first job is due
        return _run(plan, producers, consumers, progress)


def _run(
    plan: LatencyPlan, producers: list[_Producer], consumers: list[_Consumer], progress: Callable[[str, int, int], None]
) -> LatencyResult:
    result = LatencyResult()
    by_socket: dict[socket.socket, _Producer | _Consumer] = {}
    by_socket.update((producer.socket, producer) for producer in producers)
    by_socket.update((consumer.socket, consumer) for consumer in consumers)
    total = min(plan.jobs, max(1, round(plan.rate * plan.seconds)))
    meter = Meter(plan.pids)
    start_s = time.perf_counter()
    end_s = start_s + (total - 1) / plan.rate + plan.answer_s
    while result.delivered.count < total:
        now_s = time.perf_counter()
        while result.sent < total and (due_s := start_s + result.sent / plan.rate) <= now_s:
            producers[result.sent % len(producers)].send(plan.protocol.add_one(plan.protocol.body_of(result.sent)), due_s)
            result.late.record(round((now_s - due_s) * 1e6))
            result.sent += 1
            now_s = time.perf_counter()
        if now_s >= end_s:
            break
        wait_s = start_s + result.sent / plan.rate - now_s if result.sent < total else end_s - now_s
        readable, _, _ = select.select(list(by_socket), [], [], max(0.0, min(wait_s, 0.5)))
        for ready in readable:
            one = by_socket[ready]
            if isinstance(one, _Producer):
                one.receive(result)
            else:
                one.receive(start_s, plan.rate, result)
        progress("latency", result.delivered.count, total)
    result.usage = meter.read()
    return result
