"""Fixtures: a server a module, emptied between tests; deviations from the original left out when it is under test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .differences import DIFFERENCES
from .server_process import ServerProcess, tests_original
from .socket_session import SocketSession


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "differs(key): a difference from Disque on purpose; the key is in differences.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("differs"):
            assert mark.args[0] in DIFFERENCES, f"{item.nodeid}: {mark.args[0]!r} is not in differences.py"
    if tests_original():
        deselected = [item for item in items if item.get_closest_marker("differs")]
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not item.get_closest_marker("differs")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server process for the module."""
    process = ServerProcess(tmp_path_factory.mktemp("server"))
    yield process
    process.stop()


@pytest.fixture
def session(server: ServerProcess) -> Iterator[SocketSession]:
    """Fresh clients on an empty server."""
    session = SocketSession(server.port)
    assert str(session.connection("observer").call("DEBUG", "FLUSHALL")) == "+OK"
    yield session
    session.close()
    assert server.alive(), f"the server died:\n{server.output.read_text(errors='replace')[-4000:]}"
