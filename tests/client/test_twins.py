"""The two clients offer the same, in the same words."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from disqueue.client import AsyncClient, AsyncConsumer, AsyncJob, Client, Consumer, Job

PAIRS = [(Client, AsyncClient), (Consumer, AsyncConsumer), (Job, AsyncJob)]
SYNC_ONLY = {"after_fork"}  # an event loop does not survive a fork


def public(kind: type) -> dict[str, Any]:
    return {name: member for name, member in vars(kind).items() if not name.startswith("_") and callable(member)}


@pytest.mark.parametrize(("sync_kind", "async_kind"), PAIRS)
def test_same_methods(sync_kind: type, async_kind: type) -> None:
    assert set(public(sync_kind)) - SYNC_ONLY == set(public(async_kind))
    for name, method in public(async_kind).items():
        wanted = inspect.signature(public(sync_kind)[name])
        assert inspect.signature(method).parameters == wanted.parameters, name


@pytest.mark.parametrize(("sync_kind", "async_kind"), PAIRS[::2])
def test_same_words(sync_kind: type, async_kind: type) -> None:
    for name, method in public(async_kind).items():
        wanted = (inspect.getdoc(public(sync_kind)[name]) or "").replace("a `for` loop", "an `async for` loop")
        assert inspect.getdoc(method) == wanted, name


def test_the_sources_differ_only_where_they_must() -> None:
    """Without the words of asyncio, most lines of the two clients are the same."""
    sync_lines, async_lines = (
        {re.sub(r"\b(async|await) |Async", "", line).strip() for line in inspect.getsource(kind).splitlines()}
        for kind in (Client, AsyncClient)
    )
    assert len(async_lines - sync_lines) < 30
