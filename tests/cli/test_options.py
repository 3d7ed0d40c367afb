"""Arguments of `disqueue cli`."""

from __future__ import annotations

import pytest

from disqueue.cli.connection import Target
from disqueue.cli.format import CSV, JSON, RAW, TERMINAL
from disqueue.cli.options import COMMAND, LATENCY, STAT, UsageWanted, parse_options


def test_defaults() -> None:
    options = parse_options([], {})
    assert options.target == Target()
    assert (options.mode, options.command, options.repeat, options.delimiter) == (COMMAND, (), None, b"\n")


def test_the_command_begins_at_the_first_word_and_keeps_its_dashes() -> None:
    options = parse_options(["-p", "1", "--raw", "QPEEK", "q", "-5", "-h", "--json"], {})
    assert options.target.port == 1
    assert options.command == (b"QPEEK", b"q", b"-5", b"-h", b"--json")
    assert options.style == RAW


def test_options_override_the_environment() -> None:
    environment = {"DISQUEUE_URL": "unix:///s", "DISQUEUE_AUTH": "a"}
    assert parse_options([], environment).target == Target(socket_path="/s", password="a")
    assert parse_options(["-p", "5"], environment).target == Target(port=5, password="a")
    assert parse_options(["-s", "/t", "-a", "b"], {}).target == Target(socket_path="/t", password="b")
    assert parse_options(["-h", "::1"], {}).target == Target(host="::1")


@pytest.mark.parametrize(("flag", "style"), [("--raw", RAW), ("--no-raw", TERMINAL), ("--csv", CSV), ("--json", JSON)])
def test_styles(flag: str, style: str) -> None:
    assert parse_options([flag], {}).style == style


def test_the_style_follows_the_terminal() -> None:
    assert parse_options([], {}).style == RAW
    assert parse_options([], {"FAKETTY": "1"}).style == TERMINAL


def test_modes_and_figures() -> None:
    options = parse_options(["--stat", "-i", "0.5", "-r", "-1"], {})
    assert (options.mode, options.interval_s, options.repeat) == (STAT, 0.5, -1)
    assert parse_options(["--latency"], {}).mode == LATENCY


@pytest.mark.parametrize("argv", [["-h"], ["--raw", "-h"], ["-p", "1", "-h"]])
def test_h_as_last_argument_shows_the_usage(argv: list[str]) -> None:
    with pytest.raises(UsageWanted):
        parse_options(argv, {})


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["-p", "0"], "1 to 65535"),
        (["-p", "x"], "1 to 65535"),
        (["-r", "0"], "1 or more"),
        (["-r", "x"], "1 or more"),
        (["-i", "-1"], "no time in seconds"),
        (["-i", "nan"], "no time in seconds"),
        (["--nope"], "--nope"),
        (["--stat", "PING"], "takes no command"),
        (["-x"], "needs a command"),
        (["--raw", "--json"], "not allowed with"),
        (["--stat", "--pipe"], "not allowed with"),
    ],
)
def test_wrong_options_name_themselves(argv: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_options(argv, {})
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


def test_a_wrong_url_in_the_environment_names_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_options([], {"DISQUEUE_URL": "http://h"})
    assert "http://h" in capsys.readouterr().err
