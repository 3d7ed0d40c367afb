"""A client program of the simulation: a connection, requests with deadlines, and a script that uses them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from disqueue.simulation.network import Endpoint
from disqueue.simulation.process import CLIENT_PORT
from disqueue.simulation.replies import Reply, ReplyReader, encode_request
from disqueue.simulation.world import Event

if TYPE_CHECKING:
    from disqueue.simulation.cluster import Cluster, Machine

CONNECT_MS = 2000


@dataclass(frozen=True, slots=True)
class Sleep:
    """A script waits."""

    duration_ms: int


@dataclass(frozen=True, slots=True)
class Connect:
    """A script connects to a node; the outcome is whether that worked."""

    machine: Machine


@dataclass(frozen=True, slots=True)
class Call:
    """A script sends requests at once and waits for all the replies, so long at most.

    The outcome is a list of the replies that came; it is shorter when the connection broke or the time was over, and the
    connection is closed then.
    """

    requests: list[list[bytes]]
    timeout_ms: int


Step: TypeAlias = Sleep | Connect | Call
Outcome: TypeAlias = "bool | list[Reply]"
Script: TypeAlias = Generator[Step, Outcome, None]


class SimulatedClient:
    """Runs a script. Its end of the connection is on a host of its own."""

    def __init__(self, cluster: Cluster, name: str, address: str) -> None:
        self.cluster = cluster
        self.name = name
        self.host = cluster.network.host(address)
        self.host.post = self._post
        self.machine: Machine | None = None
        self.endpoint: Endpoint | None = None
        self.finished = False
        self._script: Script | None = None
        self._started = False
        self._reader = ReplyReader()
        self._expected = 0
        self._replies: deque[Reply] = deque()
        self._wait: Event | None = None
        self._attempt = 0

    def run(self, script: Script) -> None:
        """Start a script."""
        self._script = script
        self._started = False
        self.finished = False
        self.cluster.world.after(0, lambda: self._resume(True))

    def disconnect(self) -> None:
        """Close the connection without waiting for anything."""
        if self.endpoint is not None:
            self.endpoint.abort()
            self.endpoint = None

    def drop(self) -> None:
        """The connection breaks at once, whatever the script waits for."""
        if self.endpoint is not None:
            self.disconnect()
            self.lost("")

    @property
    def connected(self) -> bool:
        return self.endpoint is not None

    # -- steps

    def _resume(self, outcome: Outcome) -> None:
        if self._wait is not None:
            self._wait.cancel()
            self._wait = None
        assert self._script is not None
        try:
            step = self._script.send(outcome) if self._started else next(self._script)
            self._started = True
        except StopIteration:
            self.finished = True
            self.disconnect()
            return
        if isinstance(step, Sleep):
            self._wait = self.cluster.world.after(step.duration_ms, lambda: self._resume(True))
        elif isinstance(step, Connect):
            self._connect(step.machine)
        else:
            self._call(step)

    def _connect(self, machine: Machine) -> None:
        self.disconnect()
        self._attempt += 1
        attempt = self._attempt
        self.machine = machine
        self._reader = ReplyReader()

        def connected(endpoint: Endpoint) -> None:
            endpoint.receiver = self
            self.endpoint = endpoint
            self._resume(True)

        def is_over() -> bool:
            return attempt != self._attempt

        def failed(_reason: str) -> None:
            if not is_over():
                self._attempt += 1
                self._resume(False)

        self._wait = self.cluster.world.after(CONNECT_MS, lambda: failed("no answer"))
        self.cluster.network.dial(self.host, machine.host.address, CLIENT_PORT, connected, failed, is_over)

    def _call(self, call: Call) -> None:
        if self.endpoint is None:
            self.cluster.world.after(0, lambda: self._resume([]))
            return
        self._expected = len(call.requests)
        self._replies = deque()
        self.endpoint.write(b"".join(encode_request(args) for args in call.requests))
        self._wait = self.cluster.world.after(call.timeout_ms, self._timed_out)

    def _finish_call(self) -> None:
        replies = list(self._replies)
        self._expected = 0
        self._replies = deque()
        self._resume(replies)

    def _timed_out(self) -> None:
        self.disconnect()
        self._finish_call()

    # -- the network

    def _post(self, call: Callable[[], None]) -> None:
        call()

    def received(self, data: bytes) -> None:
        """Replies of the node."""
        self._replies.extend(self._reader.feed(data))
        if self._expected and len(self._replies) >= self._expected:
            self._finish_call()

    def lost(self, _reason: str) -> None:
        """The node, or the way to it, has gone."""
        self.endpoint = None
        if self._expected:
            self._finish_call()
