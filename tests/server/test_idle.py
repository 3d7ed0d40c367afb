"""Idle clients, without sockets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from disqueue.core.client import BLOCKED_GETJOB, NOT_BLOCKED, Client
from disqueue.server.idle import IdleClients
from disqueue.wire.resp import ReplyWriter


def test_a_client_is_idle_after_its_time() -> None:
    clients = [Client(number, ReplyWriter()) for number in (1, 2, 3)]
    connections: Any = {client.id: SimpleNamespace(client=client) for client in clients}
    idle = IdleClients()
    idle.add(clients[0])
    assert idle.next_ms() == -1
    idle.set_timeout(100, clients)
    assert idle.next_ms() == 100
    clients[1].active_ms = 60
    clients[2].blocked = BLOCKED_GETJOB
    assert idle.pop_idle(99, connections) == []
    assert idle.pop_idle(100, connections) == [clients[0]]
    assert idle.next_ms() == 160
    del connections[2]
    assert idle.pop_idle(160, connections) == []
    clients[2].blocked = NOT_BLOCKED
    assert idle.pop_idle(199, connections) == []
    assert idle.pop_idle(200, connections) == [clients[2]]
    assert idle.next_ms() == -1
    idle.set_timeout(0, clients)
    assert idle.next_ms() == -1
