"""How long a job takes across nodes when nothing has happened for a while."""

from __future__ import annotations

import secrets
import selectors
import time
from contextlib import ExitStack, closing

from disqueue.cli.bench_protocols import Disque, ReplyError
from disqueue.cli.bench_throughput import Progress
from disqueue.cli.connection import Connection, Target

BODY_BYTES = 64
SPACING_S = 0.05
"""Between two jobs, so that each is alone under way."""


def quiet_latencies_ms(
    producer: Target, consumer: Target, jobs: int, quiet_s: float, answer_s: float, tell: Progress
) -> list[float]:
    """One job in each of `jobs` queues whose consumers have waited `quiet_s`, and how long it took; those that came."""
    names = [b"quiet-" + secrets.token_hex(6).encode() for _ in range(jobs)]
    protocols = [Disque(name, BODY_BYTES, 1) for name in names]
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        adding = stack.enter_context(closing(Connection(producer)))
        for number, protocol in enumerate(protocols):
            waiting = stack.enter_context(closing(Connection(consumer)))
            waiting.send(protocol.get(1))
            selector.register(waiting.socket, selectors.EVENT_READ, (number, waiting))
        tell("quiet", 0, jobs)
        time.sleep(quiet_s)
        sent_s: list[float] = []
        found: list[float] = []
        start_s = time.perf_counter()
        while len(found) < jobs:
            now_s = time.perf_counter()
            if len(sent_s) < jobs and now_s >= start_s + len(sent_s) * SPACING_S:
                sent_s.append(now_s)
                adding.send(protocols[len(sent_s) - 1].add(1))
            if len(sent_s) == jobs and now_s >= sent_s[-1] + answer_s:
                break
            until_s = start_s + len(sent_s) * SPACING_S if len(sent_s) < jobs else sent_s[-1] + answer_s
            for key, _ in selector.select(max(0.0, until_s - now_s)):
                arrived_s = time.perf_counter()
                number, waiting = key.data
                answer = waiting.socket.recv(1 << 16)
                selector.unregister(waiting.socket)
                match = protocols[number].patterns()["get"].match(answer)
                if match is None:
                    raise ReplyError(f"no job but {answer[:80]!r}")
                found.append((arrived_s - sent_s[number]) * 1000)
                waiting.send(protocols[number].ack([match[1]]))
                tell("quiet", len(found), jobs)
        return found
