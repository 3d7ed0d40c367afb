"""The shell and its journal: what clients are told while it loads, and that replies wait for the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from disqueue.config.sources import ConfigError
from disqueue.journal.runtime import ON
from disqueue.server.journal import ServerJournal
from tests.server.conftest import Factory
from tests.server.harness import Place, play

JOBS = 7000


def attach(place: Place) -> ServerJournal:
    place.shell.journal = ServerJournal(place.shell, place.shell.configuration)
    return place.shell.journal


async def load(journal: ServerJournal) -> None:
    """What a server does at its start, but for its peers."""
    await journal.load()
    if not journal.shell.stopped.is_set():
        journal.let_clients_in()


@pytest.fixture
def filled(tmp_path: Path, factory: Factory) -> Path:
    """A directory with a journal of many jobs."""

    async def fill(place: Place) -> None:
        journal = attach(place)
        await load(journal)
        talker = await place.connect()
        for _ in range(JOBS // 500):
            talker.send(b"".join(b"ADDJOB q " + b"x" * 200 + b" 0\r\n" for _ in range(500)))
            for _ in range(500):
                await talker.line()

    play(fill, factory, appendonly="yes", dir=str(tmp_path))
    return tmp_path


def test_clients_are_told_to_wait_while_the_journal_loads(filled: Path, factory: Factory) -> None:
    async def scene(place: Place) -> None:
        journal = attach(place)
        talker = await place.connect()
        await talker.ask(b"PING\r\n", b"+PONG\r\n")
        talker.send(b"QLEN q\r\nINFO persistence\r\n")
        await journal.load()
        line = await talker.line()
        assert line.startswith(b"-LOADING Disque is loading the dataset in memory, ")
        assert line.endswith(b"% is done\r\n")
        await talker.line()
        assert b"loading:1" in await talker.read(200)
        place.shell.clients()
        assert journal.runtime.state == ON
        journal.let_clients_in()
        other = await place.connect()
        await other.ask(b"QLEN q\r\n", b":%d\r\n" % JOBS)

    play(scene, factory, appendonly="yes", dir=str(filled))


def test_no_command_is_taken_before_loading_nor_after_it_failed(filled: Path, factory: Factory) -> None:
    (segment,) = (filled / "disque.aof").glob("segment-*")
    damaged = bytearray(segment.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    segment.write_bytes(damaged)

    async def scene(place: Place) -> None:
        journal = attach(place)
        journal.will_load()
        talker = await place.connect()
        talker.send(b"ADDJOB q early 0\r\n")
        assert (await talker.line()).startswith(b"-LOADING ")
        with pytest.raises(ConfigError, match="damaged"):
            await journal.load()
        talker.send(b"ADDJOB q late 0\r\n")
        assert (await talker.line()).startswith(b"-LOADING ")

    play(scene, factory, appendonly="yes", dir=str(filled))


def test_a_server_can_be_stopped_while_it_loads(filled: Path, factory: Factory) -> None:
    async def scene(place: Place) -> None:
        journal = attach(place)
        talker = await place.connect()
        await talker.ask(b"PING\r\n", b"+PONG\r\n")
        talker.send(b"SHUTDOWN\r\n")
        await journal.load()
        assert place.shell.stopped.is_set()
        assert await talker.rest() == b""

    play(scene, factory, appendonly="yes", dir=str(filled))


def test_a_reply_waits_for_the_disk_and_is_withheld_when_that_fails(
    tmp_path: Path, factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(place: Place) -> None:
        await load(attach(place))
        talker = await place.connect()
        await talker.ask(b"PING\r\n", b"+PONG\r\n")
        order: list[str] = []
        real = os.fdatasync

        def sync(descriptor: int) -> None:
            order.append("sync" if not talker.reader._buffer else "late")  # type: ignore[attr-defined]
            real(descriptor)

        monkeypatch.setattr(os, "fdatasync", sync)
        talker.send(b"ADDJOB q x 0\r\n")
        assert (await talker.line()).startswith(b"+D-")
        assert order == ["sync"]

        def fail(_descriptor: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "fdatasync", fail)
        talker.send(b"ADDJOB q x 0\r\n")
        assert await talker.rest() == b""
        other = await place.connect()
        other.send(b"ADDJOB q x 0\r\nACKJOB D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1\r\n")
        assert (await other.line()).startswith(b"-MISCONF Errors writing to the AOF file: forcing ")
        assert (await other.line()).startswith(b"-MISCONF")
        await other.ask(b"PING\r\n", b"+PONG\r\n")
        monkeypatch.setattr(os, "fdatasync", real)
        await place.until(lambda: not place.shell.dispatcher.write_error)
        other.send(b"ADDJOB q x 0\r\n")
        assert (await other.line()).startswith(b"+D-")

    play(scene, factory, appendonly="yes", appendfsync="always", dir=str(tmp_path))


def test_a_directory_that_cannot_be_used_is_a_plain_error(tmp_path: Path, factory: Factory) -> None:
    (tmp_path / "disque.aof").write_bytes(b"*2\r\n$7\r\nLOADJOB\r\n")

    async def scene(place: Place) -> None:
        with pytest.raises(ConfigError, match=r"disque\.aof: this is a file.*appendfilename"):
            await attach(place).load()

    play(scene, factory, appendonly="yes", dir=str(tmp_path))
