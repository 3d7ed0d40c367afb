"""Every test that takes `connect` or `client` runs with the sync and the async client, in RESP2 and RESP3."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from disqueue.client import Client
from disqueue.testing import Server
from tests.client.facade import LoopThread, async_client

Connect = Callable[..., Any]


@pytest.fixture(scope="session")
def loop_thread() -> Iterator[LoopThread]:
    loop = LoopThread()
    yield loop
    loop.close()


@pytest.fixture(params=["sync-resp2", "sync-resp3", "async-resp2", "async-resp3"])
def connect(request: pytest.FixtureRequest, loop_thread: LoopThread) -> Iterator[Connect]:
    """A function that makes clients; they are closed at the end of the test."""
    kind, _, protocol = request.param.partition("-resp")
    with contextlib.ExitStack() as open_clients:

        def make(nodes: Any, **options: Any) -> Any:
            options = {"protocol": int(protocol), "retry_for": 10.0} | options
            client = Client(nodes, **options) if kind == "sync" else async_client(loop_thread, nodes, **options)
            open_clients.callback(client.close)
            return client

        yield make


@pytest.fixture
def client(connect: Connect, disqueue_server: Server) -> Any:
    """A client of the server that all tests share."""
    return connect(disqueue_server.url)


@pytest.fixture
def queue() -> str:
    """A queue of the test's own."""
    return f"q-{uuid.uuid4().hex}"
