"""Both event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

Factory = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def factory(request: pytest.FixtureRequest) -> Factory:
    """What makes an event loop."""
    made: Factory = request.param
    return made
