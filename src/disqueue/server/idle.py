"""Closing clients that have been idle for long: one entry a client, looked at when it is due."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqueue.server.connection import Connection


class IdleClients:
    """Connections by the time at which they may have been idle for `timeout_ms`; 0 switches it off.

    A client that was active meanwhile gets a new time when its old one comes up, so that a request costs nothing here.
    """

    def __init__(self) -> None:
        self.timeout_ms = 0
        self._heap: list[tuple[int, int, Connection]] = []

    def set_timeout(self, timeout_ms: int, connections: Iterable[Connection]) -> None:
        """Change how long a client may be idle."""
        self.timeout_ms = timeout_ms
        self._heap = []
        for connection in connections:
            self.add(connection)

    def add(self, connection: Connection) -> None:
        """Watch a connection until it is found closed."""
        if self.timeout_ms:
            client = connection.client
            heapq.heappush(self._heap, (client.active_ms + self.timeout_ms, client.id, connection))

    def next_ms(self) -> int:
        """Return when `pop_idle` has something to do, or -1."""
        return self._heap[0][0] if self._heap else -1

    def pop_idle(self, now_ms: int) -> list[Connection]:
        """Return the connections that have been idle for too long."""
        idle: list[Connection] = []
        while self._heap and self._heap[0][0] <= now_ms:
            connection = heapq.heappop(self._heap)[2]
            client = connection.client
            if connection.closed:
                continue
            # A client that waits for a job is not idle.
            if client.blocked:
                client.active_ms = now_ms
            if client.active_ms + self.timeout_ms <= now_ms:
                idle.append(connection)
            else:
                self.add(connection)
        return idle
