"""The core runs while every clock, random source and socket of the process raises."""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
from typing import Any

import pytest

from disqueue.commands import jobs
from disqueue.commands.holder import NodeHolder
from disqueue.core.client import Client
from disqueue.core.node import Node
from disqueue.core.settings import Settings
from disqueue.wire.resp import ReplyWriter

FORBIDDEN: list[tuple[Any, str]] = [
    (time, "time"),
    (time, "time_ns"),
    (time, "monotonic"),
    (time, "monotonic_ns"),
    (time, "perf_counter"),
    (time, "sleep"),
    (random, "random"),
    (random, "randrange"),
    (random, "getrandbits"),
    (secrets, "token_bytes"),
    (os, "urandom"),
    (os, "open"),
    (socket, "socket"),
]
WALL_MS = 1_700_000_000_000


def forbidden(*_arguments: object, **_options: object) -> None:
    raise AssertionError("the core reached for the outside world")


def test_the_core_runs_without_clock_randomness_and_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(Settings(), lambda length: bytes(index % 251 for index in range(length)), b"0123456789" * 4)
    broker: Any = NodeHolder(node)
    client = Client(1, ReplyWriter())

    def run(handler: Any, *arguments: bytes) -> bytes:
        handler(broker, client, [b"x", *arguments])
        node.end_pass()
        return client.reply.take()

    with monkeypatch.context() as patched:
        for module, name in FORBIDDEN:
            patched.setattr(module, name, forbidden)
        node.begin_pass(1000, WALL_MS)
        added = run(jobs.addjob, b"queue", b"body", b"0", b"RETRY", b"1")
        job_id = added[1:-2]
        assert job_id in run(jobs.getjob, b"NOHANG", b"FROM", b"queue")
        node.begin_pass(10_000, WALL_MS + 9_000)
        node.advance()
        node.end_pass()
        assert job_id in run(jobs.getjob, b"NOHANG", b"FROM", b"queue"), "it comes back when its lease has run out"
        assert run(jobs.ackjob, job_id) == b":1\r\n"
        assert not node.jobs
