"""Log lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from disqueue.server import logs


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "a.log"
    for handler in list(logs.logger.handlers):
        logs.logger.removeHandler(handler)
        handler.close()


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_lines_for_people(path: Path) -> None:
    logs.open_log(str(path), "verbose", "human")
    logs.log_event("debug", "hidden")
    for level in ("verbose", "notice", "warning"):
        logs.log_event(level, "a\nb", {"raw": b"\xff"}, text="x\r\ny")
    shape = r"\d+:P \d\d [A-Z][a-z]{2} \d\d:\d\d:\d\d\.\d{3} %s a\\nb raw=\\xff text=x\\r\\ny"
    assert all(re.fullmatch(shape % sign, line) for sign, line in zip(("-", r"\*", "#"), lines(path), strict=True))


def test_lines_for_programs(path: Path) -> None:
    logs.open_log(str(path), "debug", "json")
    logs.log_event("debug", "first", count=3, pid="other", exception=ValueError("x\ny"))
    entry = json.loads(lines(path)[0])
    assert (entry["level"], entry["event"], entry["count"], entry["pid_"]) == ("debug", "first", 3, "other")
    assert entry["exception"] == "ValueError: x\ny"
    assert "ValueError" in entry["traceback"]
    assert isinstance(entry["time"], float)


def test_an_exception_has_its_traceback(path: Path) -> None:
    logs.open_log(str(path), "notice", "human")
    try:
        raise RuntimeError("boom")
    except RuntimeError as error:
        logs.log_event("warning", "it failed", exception=error)
    assert lines(path)[-1] == "RuntimeError: boom"
    assert "Traceback" in lines(path)[1]


def test_a_long_line_is_cut(path: Path) -> None:
    logs.open_log(str(path), "notice", "human")
    logs.log_event("notice", "x" * 100_000)
    assert len(lines(path)[0]) == logs.TEXT_MAX


def test_the_level_can_change(path: Path) -> None:
    logs.open_log(str(path), "warning", "human")
    logs.log_event("notice", "one")
    logs.set_level("debug")
    logs.log_event("debug", "two")
    assert [line.split()[-1] for line in lines(path)] == ["two"]


def test_a_log_that_can_not_be_reopened_stays_open(path: Path) -> None:
    handler = logs.open_log(str(path), "notice", "human")
    kept = path.rename(path.with_name("old.log"))
    path.mkdir()
    handler.reopen()
    logs.log_event("notice", "still here")
    assert "the log file can't be reopened" in lines(kept)[0]
    assert lines(kept)[1].endswith("still here")


def test_a_full_disk_stops_nothing() -> None:
    handler = logs.open_log("/dev/full", "notice", "human")
    logs.log_event("notice", "lost")
    logs.logger.removeHandler(handler)
    handler.close()
