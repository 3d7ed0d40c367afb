"""Drives many connections at once: each sends a window of requests, waits for their replies, sends the next."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Sequence
from socket import socket as Socket

from disqueue.cli.bench_protocols import Protocol, Replies
from disqueue.cli.connection import Connection, ConnectionFailed

ANSWER_TIMEOUT_S = 30.0
_RECEIVE_BYTES = 1 << 18

ADD, GET, ACK = "add", "get", "ack"


class Lane:
    """One producer and consumer: a connection to the node it adds at, and one to the node it gets from (may be the same)."""

    def __init__(self, protocol: Protocol, producer: Connection, consumer: Connection) -> None:
        self.protocol = protocol
        self.held: list[bytes] = []
        self.phase = ADD
        self.window = 0
        self._sockets = {ADD: producer.socket, GET: consumer.socket, ACK: consumer.socket}
        self._replies = {phase: protocol.replies(phase) for phase in (ADD, GET, ACK)}
        self._unsent = memoryview(b"")
        self._payloads: dict[tuple[str, int], bytes] = {}

    @property
    def socket(self) -> Socket:
        """Where the present window goes and its replies come from."""
        return self._sockets[self.phase]

    def socket_of(self, phase: str) -> Socket:
        """Where the requests of a phase go."""
        return self._sockets[phase]

    @property
    def sending(self) -> bool:
        """Whether part of the window is still to be sent."""
        return len(self._unsent) > 0

    def begin(self, phase: str, window: int) -> None:
        """Send requests for `window` jobs; acknowledged are those that were got last."""
        self.phase, self.window = phase, window
        self._replies[phase].reset()
        self._unsent = memoryview(self._payload(phase, window))
        self.send()

    def _payload(self, phase: str, window: int) -> bytes:
        if phase == ACK:
            handles, self.held = self.held[:window], self.held[window:]
            return self.protocol.ack(handles)
        payload = self._payloads.get((phase, window))
        if payload is None:
            make = self.protocol.add if phase == ADD else self.protocol.get
            payload = self._payloads[phase, window] = make(window)
        return payload

    def send(self) -> None:
        """Send what the system takes."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
        except BlockingIOError:
            pass

    def receive(self) -> bool:
        """Take what has come; whether the window is complete. Raises ConnectionFailed, ReplyError."""
        data = self.socket.recv(_RECEIVE_BYTES)
        if not data:
            raise ConnectionFailed("the server closed a connection")
        replies: Replies = self._replies[self.phase]
        replies.feed(data)
        if replies.count < self.window:
            return False
        if self.phase == GET:
            self.held += replies.found
        return True


class Load:
    """Runs lanes until their shares are done; when the time is over nothing more is added."""

    def __init__(self, lanes: Sequence[Lane], pipeline: int, seconds: float, progress: Callable[[int], None]) -> None:
        self._lanes = lanes
        self._pipeline = pipeline
        self._deadline = time.monotonic() + seconds
        self._progress = progress
        self._selector = selectors.DefaultSelector()
        self.out_of_time = False

    def phase(self, phase: str, shares: Sequence[int]) -> int:
        """Let each lane do one phase for its share of jobs; returns how many were done. Raises ConnectionFailed, ReplyError."""
        left = dict(zip(self._lanes, shares, strict=True))

        def following(lane: Lane) -> tuple[str, int]:
            left[lane] -= lane.window
            return phase, min(left[lane], self._pipeline)

        return self._run([(lane, phase, min(left[lane], self._pipeline)) for lane in self._lanes], following)

    def cycles(self, shares: Sequence[int]) -> int:
        """Let each lane add, get and acknowledge a window of jobs again and again; returns how many cycles were done."""
        left = dict(zip(self._lanes, shares, strict=True))

        def following(lane: Lane) -> tuple[str, int]:
            if lane.phase == ADD:
                return GET, lane.window
            if lane.phase == GET:
                return ACK, lane.window
            left[lane] -= lane.window
            return ADD, min(left[lane], self._pipeline)

        windows = self._run([(lane, ADD, min(left[lane], self._pipeline)) for lane in self._lanes], following)
        return windows // 3

    def _run(self, begin: Sequence[tuple[Lane, str, int]], following: Callable[[Lane], tuple[str, int]]) -> int:
        done = 0
        active: dict[int, Lane] = {}
        for lane, phase, window in begin:
            if window:
                self._start(lane, phase, window, active)
        while active:
            events = self._selector.select(ANSWER_TIMEOUT_S)
            if not events:
                raise ConnectionFailed(f"no answer within {ANSWER_TIMEOUT_S:g} seconds; {done} replies so far")
            for key, mask in events:
                lane = active[key.fd]
                if mask & selectors.EVENT_WRITE:
                    lane.send()
                    if not lane.sending:
                        self._selector.modify(key.fd, selectors.EVENT_READ)
                if not mask & selectors.EVENT_READ or not lane.receive():
                    continue
                done += lane.window
                self._next(lane, following, active)
            self._progress(done)
        return done

    def _next(self, lane: Lane, following: Callable[[Lane], tuple[str, int]], active: dict[int, Lane]) -> None:
        before = lane.socket.fileno()
        phase, window = following(lane)
        if phase == ADD and window and time.monotonic() >= self._deadline:
            self.out_of_time = True
            window = 0
        if window and lane.socket_of(phase) is lane.socket:
            lane.begin(phase, window)
            if lane.sending:
                self._selector.modify(before, selectors.EVENT_READ | selectors.EVENT_WRITE)
            return
        self._selector.unregister(before)
        del active[before]
        if window:
            self._start(lane, phase, window, active)

    def _start(self, lane: Lane, phase: str, window: int, active: dict[int, Lane]) -> None:
        lane.begin(phase, window)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if lane.sending else 0)
        self._selector.register(lane.socket.fileno(), events)
        active[lane.socket.fileno()] = lane

    def close(self) -> None:
        """Free the selector; the connections are the caller's."""
        self._selector.close()


def split(total: int, parts: int) -> list[int]:
    """`total` in `parts` that differ by one at the most."""
    return [total // parts + (1 if part < total % parts else 0) for part in range(parts)]
