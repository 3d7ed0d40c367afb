"""The interactive mode, driven through prompt_toolkit's pipe input."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application.current import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from disqueue.cli import help as help_module
from disqueue.cli import interactive
from disqueue.cli.interactive import Shell, _CommandCompleter, _History
from disqueue.cli.options import parse_options
from tests.cli.fake_server import Answer, FakeServer, answers
from tests.cli.test_help import TABLE

Fake = Callable[[Answer], FakeServer]


@pytest.fixture(autouse=True)
def _table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(help_module, "command_table", lambda: TABLE)


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        yield pipe


def run(keys: PipeInput, port: int, *lines: str) -> None:
    """Type lines, then Ctrl-D."""
    keys.send_text("".join(f"{line}\r" for line in lines) + "\x04")
    options = parse_options(["-p", str(port), "--no-raw"], {})
    assert Shell(options, terminal=(keys, DummyOutput())).run() == 0


def test_commands_and_errors(fake: Fake, keys: PipeInput, capfd: pytest.CaptureFixture[str]) -> None:
    server = fake(answers(QLEN=b":3\r\n"))
    run(keys, server.port, "PING", "", 'qlen "a b"', "NOPE", 'PING "', "PING")
    shown = capfd.readouterr()
    assert shown.out == "PONG\n(integer) 3\nPONG\n"
    assert "(error) ERR unknown command 'NOPE'" in shown.err
    assert "is not closed" in shown.err
    assert server.connections == 1


def test_repeat_and_help(fake: Fake, keys: PipeInput, capfd: pytest.CaptureFixture[str]) -> None:
    run(keys, fake(answers()).port, "3 PING", "help", "help @queues", "help qlen")
    shown = capfd.readouterr().out
    assert shown.startswith("PONG\n" * 3 + "help <command>")
    assert "QLEN  Length of a queue" in shown
    assert "QLEN queue\n" in shown


@pytest.mark.parametrize("word", ["exit", "quit"])
def test_leaving(fake: Fake, keys: PipeInput, word: str) -> None:
    server = fake(answers())
    run(keys, server.port, word, "PING")
    assert server.requests == []


def test_connect_to_another_server(fake: Fake, keys: PipeInput, capfd: pytest.CaptureFixture[str]) -> None:
    first, second = fake(answers(QLEN=b":1\r\n")), fake(answers(QLEN=b":2\r\n"))
    run(keys, first.port, "QLEN q", f"connect 127.0.0.1 {second.port}", "QLEN q", "connect x", "connect h 0")
    shown = capfd.readouterr()
    assert shown.out == "(integer) 1\n(integer) 2\n"
    assert "connect HOST PORT" in shown.err
    assert "1 to 65535" in shown.err


def test_a_connection_closed_while_idle_is_opened_again(fake: Fake, keys: PipeInput, capfd: pytest.CaptureFixture[str]) -> None:
    server = fake(answers())
    keys.send_text("PING\r")
    options = parse_options(["-p", str(server.port), "--no-raw"], {})
    shell = Shell(options, terminal=(keys, DummyOutput()))
    session = shell._session
    thread = threading.Thread(target=_drop_then_type, args=(server, session, keys))
    thread.start()
    assert shell.run() == 0
    thread.join()
    shown = capfd.readouterr()
    assert shown.out == "PONG\nPONG\n"
    assert shown.err == ""
    assert server.connections == 2


def _drop_then_type(server: FakeServer, session: interactive.Session, keys: PipeInput) -> None:
    while not server.answered:
        os.sched_yield()
    server.drop_connections()
    while session._connection is None or not session._connection.is_stale():
        os.sched_yield()
    keys.send_text("PING\r\x04")


def test_a_command_whose_reply_is_lost_is_not_sent_again(fake: Fake, keys: PipeInput, capfd: pytest.CaptureFixture[str]) -> None:
    server = fake(lambda words: None if words[0] == b"ADDJOB" else b"+PONG\r\n")
    run(keys, server.port, "ADDJOB q x 0", "PING")
    shown = capfd.readouterr()
    assert shown.out == "PONG\n"
    assert "not sent again" in shown.err
    assert server.requests.count([b"ADDJOB", b"q", b"x", b"0"]) == 1


def test_without_a_server_it_starts_and_says_so(fake: Fake, keys: PipeInput, capfd: pytest.CaptureFixture[str]) -> None:
    server = fake(answers())
    server.close()
    run(keys, server.port, "PING")
    assert capfd.readouterr().err.count("hint: start a server") == 2


def test_slow_commands_tell_their_time(
    fake: Fake, keys: PipeInput, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interactive, "SLOW_S", 0)
    run(keys, fake(answers()).port, "PING")
    assert re.fullmatch(r"PONG\n\(\d+\.\d\ds\)\n", capfd.readouterr().out)


def test_control_c_clears_the_line_and_goes_on(fake: Fake, keys: PipeInput, capfd: pytest.CaptureFixture[str]) -> None:
    run(keys, fake(answers()).port, "half a line\x03PING")
    assert capfd.readouterr().out == "PONG\n"


def test_history_keeps_no_passwords_and_is_private(fake: Fake, keys: PipeInput, tmp_path: Path) -> None:
    run(
        keys,
        fake(answers()).port,
        "PING",
        "auth secret",
        "CONFIG SET requirepass secret",
        "HELLO 3 AUTH default secret",
        "QLEN q",
    )
    history = tmp_path / ".disqueue_history"
    assert "secret" not in history.read_text()
    assert list(_History(str(history)).load_history_strings()) == ["QLEN q", "PING"]
    assert history.stat().st_mode & 0o777 == 0o600


def test_a_home_that_can_not_be_written(fake: Fake, keys: PipeInput, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/proc/nowhere")
    server = fake(answers())
    run(keys, server.port, "PING")
    assert server.requests == [[b"PING"]]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("a", ["ACKJOB", "ADDJOB"]),
        ("help q", ["QLEN"]),
        ("help @", ["@connection", "@jobs", "@queues"]),
        ("cl", ["clear"]),
        ("qlen a", []),
    ],
)
def test_completion(typed: str, offered: list[str]) -> None:
    completions = _CommandCompleter().get_completions(Document(typed), CompleteEvent())
    assert [completion.text for completion in completions] == offered


def test_the_hint_is_shown_after_the_typed_text() -> None:
    """And is cut where the line ends: it must not wrap."""
    hint = interactive._SyntaxHint(lambda: "h:1> ")
    for width, shown in ((80, " queue"), (13, " qu"), (5, "")):
        transformation = hint.apply_transformation(_TransformationInput("qlen", width))  # type: ignore[arg-type]
        assert transformation.fragments[-1][1] == shown


class _TransformationInput:
    def __init__(self, text: str, width: int) -> None:
        self.width = width
        self.document = Document(text)
        self.fragments = [("", text)]


def test_control_c_ends_a_command_that_waits(fake: Fake, keys: PipeInput, capfd: pytest.CaptureFixture[str]) -> None:
    def answer(words: list[bytes]) -> bytes:
        if words[0] == b"GETJOB":
            os.kill(os.getpid(), signal.SIGINT)
            return b""
        return b"+PONG\r\n"

    server = fake(answer)
    run(keys, server.port, "GETJOB FROM q", "PING")
    assert capfd.readouterr().out == "\nPONG\n"
    assert server.connections == 2
