"""Closing clients that have been idle for long: one entry a client, looked at when it is due."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from disqueue.core.client import NOT_BLOCKED, Client

if TYPE_CHECKING:
    from disqueue.server.connection import Connection


class IdleClients:
    """Client ids by the time at which they may have been idle for `timeout_ms`; 0 switches it off.

    A client that was active meanwhile gets a new time when its old one comes up, so that a request costs nothing here.
    """

    def __init__(self) -> None:
        self.timeout_ms = 0
        self._heap: list[tuple[int, int]] = []

    def set_timeout(self, timeout_ms: int, clients: Iterable[Client]) -> None:
        """Change how long a client may be idle."""
        self.timeout_ms = timeout_ms
        self._heap = []
        for client in clients:
            self.add(client)

    def add(self, client: Client) -> None:
        """Watch a client until it is found gone."""
        if self.timeout_ms:
            heapq.heappush(self._heap, (client.active_ms + self.timeout_ms, client.id))

    def next_ms(self) -> int:
        """Return when `pop_idle` has something to do, or -1."""
        return self._heap[0][0] if self._heap else -1

    def pop_idle(self, now_ms: int, connections: Mapping[int, Connection]) -> list[Client]:
        """Return the clients that have been idle for too long. One that waits for a job is not idle."""
        idle: list[Client] = []
        while self._heap and self._heap[0][0] <= now_ms:
            connection = connections.get(heapq.heappop(self._heap)[1])
            if connection is None:
                continue
            client = connection.client
            if client.blocked != NOT_BLOCKED:
                client.active_ms = now_ms
            if client.active_ms + self.timeout_ms <= now_ms:
                idle.append(client)
            else:
                self.add(client)
        return idle
