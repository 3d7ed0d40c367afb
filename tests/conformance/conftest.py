"""Fixtures: a server a module, emptied between tests; deviations from the original left out when it is under test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .differences import DIFFERENCES
from .peers import missing
from .server_process import ServerProcess, original_under_test
from .socket_session import SocketSession


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "differs(key): a difference from Disque on purpose; the key is in differences.py")
    config.addinivalue_line("markers", "needs(peer): a program of others that has to be installed, see peers.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("differs"):
            assert mark.args[0] in DIFFERENCES, f"{item.nodeid}: {mark.args[0]!r} is not in differences.py"
    left_out = [item for item in items if (original_under_test() and item.get_closest_marker("differs")) or needs_missing(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def needs_missing(item: pytest.Item) -> bool:
    """Whether a test talks to a program that is not installed; never so on CI."""
    mark = item.get_closest_marker("needs")
    return mark is not None and mark.args[0] in missing()


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
