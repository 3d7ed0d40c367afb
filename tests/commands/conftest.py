"""A fresh broker for each test."""

from __future__ import annotations

import pytest

from tests.commands.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()
