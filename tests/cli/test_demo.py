"""The demo with real servers, a short day."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from disqueue.cli.demo import KINDS, run, run_demo
from disqueue.cli.demo_ledger import Kind
from tests.cli.conftest import ROOT, server_command

# One job of each kind that needs waiting would do; these are the demo's own kinds, made smaller.
SMALL = (
    Kind("mail", "plain jobs", 30, ("RETRY", "30"), workers=2, work_ms=1),
    Kind("payment", "at most once", 10, ("RETRY", "0", "REPLICATE", "1"), work_ms=1),
    Kind("thumbnail", "worker dies", 10, ("RETRY", "1"), workers=2, work_ms=1, abandon=1),
    Kind("parcel", "refused", 10, ("RETRY", "30"), work_ms=1, refuse=2),
)


def test_a_day_on_one_server(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_demo(1, server_command(), SMALL, 0.3) == 0
    shown = capfd.readouterr()
    assert "Nothing was lost: 60 jobs" in shown.out
    assert "dies with job" in shown.out
    assert "(NACK)" in shown.out
    assert shown.out.count("is back:") == 3
    assert shown.err == ""


def test_a_day_on_three_servers_one_of_which_is_killed(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_demo(3, server_command(), SMALL, 1.5) == 0
    shown = capfd.readouterr()
    assert "is killed (kill -9)" in shown.out
    assert "is started again" in shown.out
    assert "Nothing was lost: 60 jobs" in shown.out


def test_a_server_that_does_not_start(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_demo(1, [sys.executable, "-c", "import sys; sys.exit('no luck')"], SMALL, 0.1) == 1
    assert "no luck" in capfd.readouterr().err


def test_a_promise_that_is_broken_fails_the_demo(capfd: pytest.CaptureFixture[str]) -> None:
    """A worker kind that never meets a job to refuse: the verdict must see it."""
    kinds = (Kind("mail", "plain jobs", 2, ("RETRY", "30"), work_ms=1, refuse=3),)
    assert run_demo(1, server_command(), kinds, 0.05) == 1
    shown = capfd.readouterr()
    assert "refusal that did not happen" in shown.err
    assert "broken" in shown.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_cleanly(number: signal.Signals) -> None:
    code = "import sys; from disqueue.cli.demo import run_demo; from tests.cli.conftest import server_command; "
    process = subprocess.Popen(
        [sys.executable, "-c", code + "sys.exit(run_demo(1, server_command()))"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "refuses job" in line:
            break
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == "\nstopped; the demo's servers are gone\n"


def test_wrong_number_of_servers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["--nodes", "0"])
    assert "1 to 9" in capsys.readouterr().err


def test_every_act_is_part_of_the_day() -> None:
    assert any(kind.at_most_once for kind in KINDS)
    assert any(kind.abandon for kind in KINDS)
    assert any(kind.refuse for kind in KINDS)
    assert any(kind.delay_ms for kind in KINDS)
