"""Where servers of tests listen."""

from __future__ import annotations

import pytest

from disqueue.testing import server


def test_workers_draw_from_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    drawn = []
    for number in range(3):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{number}")
        drawn.append({server.free_port() for _ in range(30)})
    assert not drawn[0] & drawn[1] | drawn[1] & drawn[2] | drawn[0] & drawn[2]


def test_no_port_of_clients_is_a_port_of_nodes() -> None:
    buses = range(server.PORTS.start + server.BUS_PORT_OFFSET, server.PORTS.stop + server.BUS_PORT_OFFSET)
    assert server.PORTS.stop <= buses.start
    assert buses.stop <= 32_768
