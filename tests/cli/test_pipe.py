"""`disqueue cli --pipe`."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.conftest import Run
from tests.cli.fake_server import Answer, FakeServer, answers

Fake = Callable[[Answer], FakeServer]

PING = b"*1\r\n$4\r\nPING\r\n"
NOPE = b"*1\r\n$4\r\nNOPE\r\n"


def test_replies_are_counted(fake: Fake, disqueue: Run) -> None:
    done = disqueue("cli", "-p", fake(answers()).port, "--pipe", stdin=PING * 5)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"errors: 0, replies: 5\n", b"")


def test_errors_are_counted_and_the_first_are_shown(fake: Fake, disqueue: Run) -> None:
    done = disqueue("cli", "-p", fake(answers()).port, "--pipe", stdin=PING + NOPE * 20)
    assert (done.returncode, done.stdout) == (1, b"errors: 20, replies: 21\n")
    assert b"reply 2: ERR unknown" in done.stderr
    assert done.stderr.count(b"unknown command") == 10
    assert b"only counted" in done.stderr


def test_nothing_at_all(fake: Fake, disqueue: Run) -> None:
    assert disqueue("cli", "-p", fake(answers()).port, "--pipe").stdout == b"errors: 0, replies: 0\n"


def test_more_than_all_buffers_hold(fake: Fake, disqueue: Run) -> None:
    """Both directions at once: neither side waits for the other with full buffers."""
    body = b"x" * 100_000
    request = b"*2\r\n$4\r\nPING\r\n$%d\r\n%s\r\n" % (len(body), body)
    done = disqueue("cli", "-p", fake(answers()).port, "--pipe", stdin=request * 200)
    assert (done.returncode, done.stdout) == (0, b"errors: 0, replies: 200\n")


def test_an_input_that_ends_inside_a_request_ends_in_time(fake: Fake, disqueue: Run) -> None:
    done = disqueue(
        "cli", "-p", fake(answers()).port, "--pipe", "--pipe-timeout", 0.05, stdin=PING + b"*2\r\n$4\r\nPING\r\n$9999\r\nx"
    )
    assert done.returncode == 1
    assert b"may end inside a request" in done.stderr
    assert b"replies so far: 1" in done.stderr


def test_a_server_that_closes(fake: Fake, disqueue: Run) -> None:
    done = disqueue("cli", "-p", fake(lambda words: None).port, "--pipe", stdin=PING)
    assert done.returncode == 1
    assert b"closed the connection" in done.stderr


def test_another_protocol(fake: Fake, disqueue: Run) -> None:
    done = disqueue("cli", "-p", fake(lambda words: b"220 smtp\r\n").port, "--pipe", stdin=PING)
    assert done.returncode == 1
    assert b"does not speak the protocol" in done.stderr
