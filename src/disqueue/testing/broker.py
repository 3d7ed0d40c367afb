"""A broker inside the process, for unit tests: the server's own core, without sockets and, if wanted, without time.

broker = MemoryBroker(virtual_time=True)
client = broker.client()
client.add("q", b"x", delay=3600)
broker.advance(3600)
assert client.get_one("q", timeout=0).body == b"x"
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from disqueue.client.aio import AsyncClient
from disqueue.client.endpoints import Endpoint
from disqueue.client.errors import DisqueueError
from disqueue.client.flow import NotSentError
from disqueue.client.requests import Request, name_bytes
from disqueue.client.sync import Client
from disqueue.commands.broker import Broker
from disqueue.commands.ports import DetachedServer
from disqueue.config.configuration import Configuration
from disqueue.core.client import NOT_BLOCKED
from disqueue.core.client import Client as CoreClient
from disqueue.core.node import Node
from disqueue.core.settings import Settings
from disqueue.testing.decode import decode
from disqueue.wire.resp import ReplyWriter

NODE_NAME = "memory"
# Timers a pass fires only so many; a loop that goes beyond this is a fault of the broker, not of the test.
PASSES_MAX = 1_000_000
# The wheel of the node's timers turns every few seconds, also when nothing comes of it. When virtual time is to move
# further than this, the times of all jobs are looked at instead.
LONG_S = 3600.0
# A test that waits this long (virtual seconds) for a job of an empty broker would wait for ever.
VAIN_WAIT_S = 10_000.0


class WaitsForEverError(DisqueueError):
    """In virtual time, with no job anywhere, a client waits for one: nothing could ever happen any more."""


class MemoryClock:
    """Real time, or time that stands still until it is moved."""

    def __init__(self, virtual: bool) -> None:
        self.virtual = virtual
        self._ahead_s = 0.0
        self._start_s = 1_000_000.0
        self._wall_start_s = time.time()

    def now(self) -> float:
        """Monotonic seconds."""
        return self._start_s + self._ahead_s if self.virtual else time.monotonic()

    def wall_s(self) -> float:
        """Unix seconds; virtual time starts at the real one."""
        return self._wall_start_s + self._ahead_s if self.virtual else time.time()

    def elapsed_us(self) -> int:
        """Monotonic microseconds, for the broker."""
        return int(self.now() * 1_000_000)

    def wall_us(self) -> int:
        """Unix microseconds, for the broker."""
        return int(self.wall_s() * 1_000_000)

    def move(self, seconds: float) -> None:
        """Let virtual time pass."""
        self._ahead_s += seconds


class MemoryBroker:
    """One node in memory. Safe for threads in real time; virtual time is for one thread, or one event loop.

    `virtual_time`: the clock moves only by `advance()`, and by itself as far as needed when a client waits.
    `options`: configuration of the server, for example {"maxmemory": "1mb"}.
    """

    def __init__(self, *, virtual_time: bool = False, options: Mapping[str, str] | None = None) -> None:
        self.clock = MemoryClock(virtual_time)
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting: set[asyncio.Event] = set()
        self._idle: list[CoreClient] = []
        self._ids = 0
        self._clients: list[Client] = []
        self._vain_s = 0.0
        self.node = Node(Settings(), os.urandom, os.urandom(20).hex().encode())
        self._begin_pass()
        self._server = DetachedServer()
        configuration = Configuration()
        self._broker = Broker(self.node, configuration, self._server, self.clock)
        configuration.set(list((options or {}).items()))

    # -- for tests

    def client(self, **settings: Any) -> Client:
        """A `Client` of this broker."""
        client = Client(NODE_NAME, transport=_MemoryTransport(self), **({"discover": False} | settings))
        self._clients.append(client)
        return client

    def async_client(self, **settings: Any) -> AsyncClient:
        """An `AsyncClient` of this broker."""
        return AsyncClient(NODE_NAME, transport=_AsyncMemoryTransport(self), **({"discover": False} | settings))

    def advance(self, seconds: float) -> None:
        """Let virtual time pass, with everything that happens meanwhile."""
        if not self.clock.virtual:
            raise ValueError("only virtual time can be advanced: MemoryBroker(virtual_time=True)")
        end = self.clock.now() + seconds
        for _ in range(PASSES_MAX):
            if not self._step(end):
                return
        raise RuntimeError(f"more than {PASSES_MAX} events in {seconds} s")

    def job_count(self) -> int:
        """All jobs, in every state."""
        return len(self.node.jobs)

    def clear(self) -> None:
        """Forget all jobs and queues."""
        with self._lock:
            self.node.flush()
            self._run_passes()

    # -- for the transports

    def execute(self, args: Sequence[Any]) -> Any:
        """Carry out a command and wait for its reply."""
        with self._lock:
            session = self._begin(args)
            try:
                while session.blocked != NOT_BLOCKED:
                    self._wait()
                return self._end(session)
            except BaseException:
                self._abandon(session)
                raise

    async def execute_async(self, args: Sequence[Any]) -> Any:
        """As `execute`, without blocking the event loop."""
        session = self._begin(args)
        try:
            while session.blocked != NOT_BLOCKED:
                await self._wait_async(session)
        except BaseException:
            self._abandon(session)
            raise
        return self._end(session)

    def _begin(self, args: Sequence[Any]) -> CoreClient:
        with self._lock:
            session = self._idle.pop() if self._idle else self._new_session()
            self._begin_pass()
            self.node.advance()
            self._broker.dispatcher.mark()
            self._broker.execute(session, [argument_bytes(argument) for argument in args])
            self.node.end_pass()
            self._notify()
            return session

    def _end(self, session: CoreClient) -> Any:
        with self._lock:
            (reply,) = decode(session.reply.take())
            self._vain_s = 0.0 if reply else self._vain_s
            if session.close_asap or session.close_after_reply:
                self._abandon(session)
            else:
                self._idle.append(session)
            return reply

    def _abandon(self, session: CoreClient) -> None:
        with self._lock:
            self._server.connected.remove(session)
            self._broker.disconnect(session)

    def _new_session(self) -> CoreClient:
        self._ids += 1
        session = CoreClient(self._ids, ReplyWriter(), f"{NODE_NAME}:{self._ids}")
        session.authenticated = True
        self._server.connected.append(session)
        self._broker.connect(session)
        return session

    def _begin_pass(self) -> None:
        self.node.begin_pass(int(self.clock.now() * 1000), int(self.clock.wall_s() * 1000))

    def _run_passes(self) -> None:
        """Fire what is due now, all of it."""
        with self._lock:
            for _ in range(PASSES_MAX):
                self._begin_pass()
                self.node.advance()
                self.node.end_pass()
                deadline_ms = self.node.next_deadline_ms()
                if deadline_ms < 0 or deadline_ms > self.node.now_ms:
                    break
            self._notify()

    def _notify(self) -> None:
        self._changed.notify_all()
        for event in self._waiting:
            event.set()

    def _until_deadline(self) -> float | None:
        deadline_ms = self.node.next_deadline_ms()
        return None if deadline_ms < 0 else max(0.0, deadline_ms / 1000 - self.clock.now())

    def _next_events(self, long: bool) -> list[float]:
        """When the node has something to do; over a long time without what only keeps its house in order."""
        if long:
            waiting = [client for client in self._server.connected if client.blocked != NOT_BLOCKED]
            timed = [*self.node.jobs, *waiting]
            return [entry.wake_ms / 1000 for entry in timed if entry.timer_slot >= 0]
        deadline_ms = self.node.next_deadline_ms()
        return [] if deadline_ms < 0 else [deadline_ms / 1000]

    def _wait(self) -> None:
        """Let time pass until something may have changed for a client that waits."""
        if self.clock.virtual:
            self._jump()
            return
        self._changed.wait(self._until_deadline())
        self._run_passes()

    async def _wait_async(self, session: CoreClient) -> None:
        if self.clock.virtual:
            for _ in range(10):  # other tasks first: what one waits for, another may be about to add
                await asyncio.sleep(0)
            if session.blocked != NOT_BLOCKED:
                self._jump()
            return
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            await asyncio.wait_for(event.wait(), self._until_deadline())
        except TimeoutError:
            self._run_passes()
        finally:
            self._waiting.discard(event)

    def _jump(self) -> None:
        """Move virtual time to the next thing that happens."""
        before = self.clock.now()
        if not self._step(float("inf")):
            raise WaitsForEverError("a client waits, and nothing can happen any more")
        self._vain_s = self._vain_s + self.clock.now() - before if not len(self.node.jobs) else 0.0
        if self._vain_s > VAIN_WAIT_S:
            raise WaitsForEverError("a client waits for jobs for ever, and there are none; give it a timeout")

    def _step(self, end: float) -> bool:
        """Move virtual time to the next event, at most to `end`, and let it happen. False when there was none."""
        with self._lock:
            now = self.clock.now()
            moments = self._next_events(long=end - now > LONG_S and end != float("inf"))
            moments += [due for client in self._clients if (due := client.keeper.next_due()) is not None]
            moment = min(moments, default=float("inf"))
            if moment > end or moment == float("inf"):
                self.clock.move(max(0.0, end - now) if end != float("inf") else 0.0)
                self._run_passes()
                return False
            # The core counts whole milliseconds: a moment that is rounded down would never be reached.
            self.clock.move(max(0.0, moment - now, 0.001 if moment <= now else 0.0))
            for client in self._clients:
                client.keeper.prolong_due()
            self._run_passes()
            return True


def argument_bytes(argument: Any) -> bytes:
    """An argument as redis-py would send it."""
    if isinstance(argument, (bytearray, memoryview)):
        return bytes(argument)
    return name_bytes(argument, "argument") if isinstance(argument, (str, bytes)) else str(argument).encode()


class _MemoryTransport:
    """The broker in place of sockets, for `Client`."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._closed = False
        self.clock = broker.clock.now
        self.background = not broker.clock.virtual

    def exchange(self, endpoint: Endpoint, batch: Sequence[Request[Any]]) -> list[Any]:
        if self._closed:
            raise NotSentError("closed")
        return [self._broker.execute(request.args) for request in batch]

    def pause(self, seconds: float, stop: Any) -> None:
        if not self.background:
            self._broker.advance(seconds)
        elif stop is None:
            time.sleep(seconds)
        else:
            stop.wait(seconds)

    def close(self) -> None:
        self._closed = True

    def after_fork(self) -> None:
        """The child has a copy of everything."""


class _AsyncMemoryTransport:
    """The broker in place of sockets, for `AsyncClient`."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self.clock = broker.clock.now

    async def exchange(self, endpoint: Endpoint, batch: Sequence[Request[Any]]) -> list[Any]:
        return [await self._broker.execute_async(request.args) for request in batch]

    async def pause(self, seconds: float, stop: Any) -> None:
        if self._broker.clock.virtual:
            self._broker.advance(seconds)
        await asyncio.sleep(0 if self._broker.clock.virtual else seconds)

    async def close(self) -> None:
        """Nothing to close."""
