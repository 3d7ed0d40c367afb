"""`--stat`, `--latency`, `--latency-history`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from disqueue.cli.client import run
from tests.cli.fake_server import Answer, FakeServer, answers

Fake = Callable[[Answer], FakeServer]


def info(requests: int) -> bytes:
    text = b"# Jobs\r\nregistered_jobs:7\r\nused_memory_human:1.00M\r\ntotal_commands_processed:%d\r\n" % requests
    return b"$%d\r\n%s\r\n" % (len(text), text)


def test_stat_shows_figures_and_what_was_added(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    counts = iter((100, 150))
    server = fake(lambda words: info(next(counts)))
    assert run(["-p", str(server.port), "--stat", "-i", "0", "-r", "2"]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["jobs", "queues", "memory"]
    assert first.split()[:3] == ["7", "-", "1.00M"]
    assert "100 (+0)" in first
    assert "150 (+50)" in second


def test_stat_waits_for_a_server_that_is_away(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[int] = []

    def answer(words: list[bytes]) -> bytes | None:
        asked.append(1)
        return None if len(asked) == 1 else info(len(asked))

    server = fake(answer)
    assert run(["-p", str(server.port), "--stat", "-i", "0.01", "-r", "1"]) == 0
    shown = capsys.readouterr()
    assert "was closed" in shown.err
    assert len(shown.out.splitlines()) == 2
    assert server.connections == 2


def test_stat_without_rights_fails(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    server = fake(answers(INFO=b"-NOAUTH Authentication required.\r\n"))
    assert run(["-p", str(server.port), "--stat"]) == 1
    assert "DISQUEUE_AUTH" in capsys.readouterr().err


def test_stat_without_a_server_at_start_fails(fake: Fake) -> None:
    server = fake(answers())
    server.close()
    assert run(["-p", str(server.port), "--stat"]) == 1


@pytest.mark.parametrize(("mode", "lines"), [(["--latency"], 1), (["--latency-history", "-r", "3"], 3)])
def test_latency(fake: Fake, capsys: pytest.CaptureFixture[str], mode: list[str], lines: int) -> None:
    assert run(["-p", str(fake(answers()).port), "-i", "0.02", *mode]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == lines
    assert all(line.startswith("min: ") and "samples" in line for line in shown)
