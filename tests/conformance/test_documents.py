"""The documents say what the tables say, and every difference is tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import documents
from .differences import DIFFERENCES
from .socket_session import SocketSession


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


def test_log_lines_of_the_document_are_in_the_sources() -> None:
    text = (documents.DOCS / "operations.md").read_text(encoding="utf-8")
    table = text.split("| Event |", 1)[1]
    sources = "".join(path.read_text(encoding="utf-8") for path in (documents.DOCS.parent / "src").rglob("*.py"))
    built = ("node suspected", "node failed", "nodes.conf is damaged")
    for event in re.findall("`([^`]+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))):
        assert event in sources or event.startswith(built), event


@pytest.mark.differs("info-fields")
def test_fields_of_the_document_are_in_info(session: SocketSession) -> None:
    text = (documents.DOCS / "operations.md").read_text(encoding="utf-8")
    table = text.split("| Field |", 1)[1].split("\n\n", 1)[0]
    fields = set(re.findall("`([a-z_]+_[a-z_]+)`", "\n".join(line.split("|")[1] for line in table.splitlines()[2:])))
    shown = set(re.findall(r"\n([a-z_]+):", session.connection("A").call("INFO", "all").data.decode()))
    with_a_journal = {"aof_last_error", "aof_current_size", "aof_live_size", "aof_segments", "aof_reserve_size"}
    assert fields - shown <= {"loading_loaded_perc", *with_a_journal}
