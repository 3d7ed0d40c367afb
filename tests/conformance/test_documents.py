"""The documents say what the tables say, and every difference is tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import documents
from .differences import DIFFERENCES


@pytest.mark.parametrize("name", documents.TABLES)
def test_a_document_is_up_to_date(name: str) -> None:
    written = (documents.DOCS / name).read_text(encoding="utf-8")
    assert documents.renewed(name) == written, "python -m tests.conformance.documents writes it anew"


def test_every_option_has_a_title() -> None:
    assert list(documents.GROUP_TITLES) == list(documents.GROUPS)


def test_every_difference_has_a_test() -> None:
    tests = Path(documents.__file__).parents[1]
    sources = [*tests.glob("*/transcripts/*.txt"), *tests.glob("c*/test_*.py")]
    used = {
        key for path in sources for key in re.findall(r"\[?differs(?::|\(\"| ) ?([a-z0-9-]+)", path.read_text(encoding="utf-8"))
    }
    assert set(DIFFERENCES) - used == set()
