"""Streams and interrupts: MONITOR, and Ctrl-C while a command waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from disqueue.cli.connection import ConnectionFailed, Target
from disqueue.cli.reply import Status
from disqueue.cli.session import Session
from tests.cli.fake_server import Answer, FakeServer, answers

Fake = Callable[[Answer], FakeServer]


def test_monitor_goes_on_until_the_connection_ends(fake: Fake) -> None:
    server = fake(answers(MONITOR=b"+OK\r\n+1.0 one\r\n"))
    session = Session(Target(port=server.port))
    replies = session.execute([b"monitor"])
    assert [next(replies), next(replies)] == [Status(b"OK"), Status(b"1.0 one")]
    server.drop_connections()
    with pytest.raises(ConnectionFailed):
        next(replies)
    assert not session.connected


def test_an_abandoned_stream_closes_its_connection(fake: Fake) -> None:
    """What is still to come would be taken for the reply to the next command."""
    session = Session(Target(port=fake(answers(MONITOR=b"+OK\r\n+1.0 one\r\n")).port))
    replies = session.execute([b"MONITOR"])
    next(replies)
    replies.close()
    assert list(session.execute([b"PING"])) == [Status(b"PONG")]
    session.close()


def test_quit_closes_the_connection(fake: Fake) -> None:
    session = Session(Target(port=fake(answers(QUIT=b"+OK\r\n")).port))
    assert list(session.execute([b"quit"])) == [Status(b"OK")]
    assert not session.connected


def test_control_c_ends_a_command_that_waits(fake: Fake) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def answer(words: list[bytes]) -> bytes:
        started[0].send_signal(signal.SIGINT)
        return b""

    server = fake(answer)
    command = [sys.executable, "-m", "disqueue", "cli", "-p", str(server.port), "GETJOB", "FROM", "q"]
    started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ))
    out, errors = started[0].communicate(timeout=30)
    assert (started[0].returncode, out, errors) == (130, b"", b"")
