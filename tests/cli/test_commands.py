"""One command, and commands line by line, as a process: output, errors, exit status."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from disqueue.cli.hints import explain_error
from disqueue.cli.reply import ErrorReply
from tests.cli.conftest import Run
from tests.cli.fake_server import Answer, FakeServer, answers

Fake = Callable[[Answer], FakeServer]


def echo(words: list[bytes]) -> bytes:
    """Any command answers its arguments."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def test_one_command(fake: Fake, disqueue: Run) -> None:
    server = fake(answers(QLEN=b":3\r\n"))
    done = disqueue("cli", "-p", server.port, "QLEN", "q")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"3\n", b"")
    assert disqueue("cli", "-p", server.port, "--no-raw", "QLEN", "q").stdout == b"(integer) 3\n"
    assert disqueue("cli", "QLEN", "q", FAKETTY="1", DISQUEUE_URL=f"disque://127.0.0.1:{server.port}").stdout == b"(integer) 3\n"


def test_an_error_reply_goes_to_standard_error_and_fails(fake: Fake, disqueue: Run) -> None:
    server = fake(answers(GETJOB=b"-LEAVING This node is leaving\r\n"))
    done = disqueue("cli", "-p", server.port, "GETJOB", "FROM", "q")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"LEAVING This node" in done.stderr
    assert b"hint: use another node" in done.stderr
    as_json = disqueue("cli", "-p", server.port, "--json", "GETJOB", "FROM", "q")
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout) == {"error": "LEAVING This node is leaving"}


def test_no_server_and_a_lost_one(fake: Fake, disqueue: Run) -> None:
    server = fake(lambda words: None)
    lost = disqueue("cli", "-p", server.port, "PING")
    assert (lost.returncode, lost.stdout) == (1, b"")
    assert b"was closed" in lost.stderr
    server.close()
    absent = disqueue("cli", "-p", server.port, "PING")
    assert absent.returncode == 1
    assert b"hint: start a server" in absent.stderr
    assert b"Traceback" not in absent.stderr


def test_shutdown_expects_the_end_of_the_connection(fake: Fake, disqueue: Run) -> None:
    done = disqueue("cli", "-p", fake(lambda words: None).port, "SHUTDOWN")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_shutdown_without_a_server_fails(fake: Fake, disqueue: Run) -> None:
    server = fake(answers())
    server.close()
    assert disqueue("cli", "-p", server.port, "SHUTDOWN").returncode == 1


def test_repeats(fake: Fake, disqueue: Run) -> None:
    server = fake(answers())
    assert disqueue("cli", "-p", server.port, "-r", 3, "-i", 0.01, "PING").stdout == b"PONG\n" * 3
    assert server.connections == 1
    assert disqueue("cli", "-p", server.port, "-r", -1, "NOPE").returncode == 1  # ends at the first error


def test_standard_input_as_a_word(fake: Fake, disqueue: Run) -> None:
    server = fake(echo)
    body = b"\x00\xff\r\n two "
    disqueue("cli", "-p", server.port, "-x", "A", "b", stdin=body)
    disqueue("cli", "-p", server.port, "-x", "A", "{}", "0", stdin=body)
    assert server.requests == [[b"A", b"b", body], [b"A", body, b"0"]]


def test_delimiter(fake: Fake, disqueue: Run) -> None:
    assert disqueue("cli", "-p", fake(echo).port, "-d", ";", "a", "b").stdout == b"a;b\n"


def test_lines_from_standard_input(fake: Fake, disqueue: Run) -> None:
    server = fake(answers(QLEN=b":3\r\n"))
    done = disqueue("cli", "-p", server.port, stdin=b'PING\n\nNOPE\n qlen "a b" \r\nPING "\nPING')
    assert done.returncode == 1
    assert done.stdout == b"PONG\n3\nPONG\n"
    assert b"unknown command 'NOPE'" in done.stderr
    assert b"line 5: a quote" in done.stderr
    assert [b"qlen", b"a b"] in server.requests
    assert server.connections == 1


def test_lines_stop_when_the_connection_is_lost(fake: Fake, disqueue: Run) -> None:
    server = fake(lambda words: None if words == [b"END"] else b"+OK\r\n")
    done = disqueue("cli", "-p", server.port, stdin=b"ONE\nEND\nTHREE\n")
    assert (done.returncode, done.stdout) == (1, b"OK\n")
    assert b"at line 2 of the input" in done.stderr
    assert [b"THREE"] not in server.requests


def test_no_lines_need_a_server_too(fake: Fake, disqueue: Run) -> None:
    server = fake(answers())
    assert disqueue("cli", "-p", server.port).returncode == 0
    server.close()
    assert disqueue("cli", "-p", server.port).returncode == 1


def test_usage(disqueue: Run) -> None:
    for argument in ("-h", "--help"):
        done = disqueue("cli", argument)
        assert done.returncode == 0
        assert b"disqueue cli [options]" in done.stdout


@pytest.mark.parametrize("prefix", ["NOAUTH", "NOREPL", "OOM", "BADID", "NOJOB", "MISCONF", "LOADING", "PAUSED", "MAXLEN"])
def test_known_errors_have_a_hint(prefix: str) -> None:
    assert "hint: " in explain_error(ErrorReply(f"{prefix} text"))


@pytest.mark.parametrize("text", ["syntax error", "wrong number of arguments for 'qlen' command"])
def test_a_wrong_call_is_told_what_the_command_takes(text: str) -> None:
    assert explain_error(ErrorReply(f"ERR {text}"), [b"qlen", b"a", b"b"]).endswith("hint: the command is QLEN queue")


@pytest.mark.parametrize(("name", "near"), [(b"adjob", "did you mean ADDJOB? "), (b"x\xff", "")])
def test_a_misspelt_command_is_recognised(name: bytes, near: str) -> None:
    text = explain_error(ErrorReply("ERR unknown command"), [name])
    assert text.endswith(f"hint: {near}'disqueue cli help' tells what there is")


def test_other_errors_have_none() -> None:
    assert explain_error(ErrorReply("ERR syntax error")) == "(error) ERR syntax error"
    assert explain_error(ErrorReply("ERR syntax error"), [b"NOSUCH"]) == "(error) ERR syntax error"


def test_help_needs_no_server(disqueue: Run) -> None:
    done = disqueue("cli", "-p", 1, "help", "qlen")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"QLEN queue\n")
