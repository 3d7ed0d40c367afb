"""`disqueue check-journal`: what it says, and that a repaired journal loads with all that still reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from crc32c import crc32c

from disqueue.journal.check import DAMAGED, UNUSABLE, WHOLE, check, main
from disqueue.journal.disk import OsDisk
from disqueue.journal.manifest import MANIFEST, encode_manifest, load_manifest, segment_name
from disqueue.journal.repair import whole_records
from disqueue.simulation.disk import SimulatedDisk
from disqueue.wire.journal_format import (
    FORMAT_VERSION,
    HEADER_BYTES,
    decode_header,
)
from tests.journal.support import Server, new_server


def lived(jobs: int = 6, **settings: object) -> tuple[Server, list[bytes]]:
    """Return a server that was killed after it had written so many jobs, each in a pass."""
    server = new_server(policy="always", **settings)
    ids = []
    for _ in range(jobs):
        ids.append(server.add())
        server.run_pass()
    server.disk.kill()
    return server, ids


def test_a_whole_journal_is_told_about() -> None:
    server, _ = lived()
    server.disk.kill()
    code, lines = check(server.disk, repair=False)

    assert code == WHOLE
    assert "jobs: 6, 6 queued" in lines
    assert lines[-1] == "the journal is whole"


def test_damage_is_told_and_nothing_is_changed() -> None:
    server, _ = lived()
    server.disk.flip_bit("segment-0000000001", 400 * 8)
    before = {name: server.disk.read(name, 0, 10_000) for name in server.disk.names()}
    code, lines = check(server.disk, repair=False)

    assert code == DAMAGED
    assert "segment-0000000001, offset" in lines[0]
    assert before == {name: server.disk.read(name, 0, 10_000) for name in server.disk.names()}


@pytest.mark.parametrize("place", range(HEADER_BYTES, 1300, 37))
def test_a_repaired_journal_loads_with_all_that_still_reads(place: int) -> None:
    server, ids = lived()
    name = "segment-0000000001"
    damaged = server.disk
    damaged.flip_bit(name, place * 8)
    before = damaged.read(name, 0, 10_000)
    code, lines = check(damaged, repair=True)
    again = server.successor().start()

    assert code == WHOLE
    assert len(again.queued()) >= len(ids) - 1
    assert set(again.queued()) <= set(ids)
    if "repaired" in lines[-1]:
        assert before == damaged.read("kept-1-" + name, 0, 10_000)


def test_a_repaired_journal_does_not_deliver_at_most_once_jobs_that_may_be_over() -> None:
    server = new_server(policy="always")
    once = server.add(retry_s=0)
    server.run_pass()
    size = server.disk.size("segment-0000000001")
    assert [once] == server.get()
    server.run_pass()
    server.add()
    server.run_pass()
    server.disk.kill()
    server.disk.flip_bit("segment-0000000001", (size + 60) * 8)  # the record that says that it was handed out
    assert check(server.disk, repair=True)[0] == WHOLE
    again = server.successor().start()

    assert once not in again.state()
    assert len(again.queued()) == 1


def test_jobs_after_a_repair_are_not_in_doubt_for_what_was_lost_before() -> None:
    server, _ = lived()
    server = server.restarted()
    server.add()
    server.run_pass()
    server.disk.kill()
    server.disk.flip_bit(segment_name(2), 100)
    check(server.disk, repair=True)
    server = server.restarted()
    job_id = server.add(retry_s=0)
    server.run_pass()

    assert job_id in server.restarted().state()


def test_a_missing_segment_is_gone_without() -> None:
    server, ids = lived(segment_bytes=300)
    server.disk.remove(segment_name(2))
    assert check(server.disk, repair=False)[0] == DAMAGED
    code, lines = check(server.disk, repair=True)

    assert code == WHOLE
    assert any("missing" in line for line in lines)
    assert 0 < len(server.successor().start().queued()) < len(ids)


@pytest.mark.parametrize("content", [b"", b"\x00" * 200, b"{}\ncrc32c 00000000\n"])
def test_a_lost_manifest_is_made_anew(content: bytes) -> None:
    server, ids = lived(segment_bytes=300)
    server.disk.remove(MANIFEST)
    if content:
        server.disk.create(MANIFEST).write(content)
    assert check(server.disk, repair=False)[0] == DAMAGED
    assert check(server.disk, repair=True)[0] == WHOLE

    assert set(ids) <= set(server.successor().start().queued())


def test_a_second_repair_keeps_the_copies_of_the_first() -> None:
    server, _ = lived()
    for number in (1, 2):
        server.disk.flip_bit("segment-0000000001", (400 + number * 100) * 8)
        assert check(server.disk, repair=True)[0] == WHOLE
        assert f"kept-{number}-segment-0000000001" in server.disk.names()


def test_whole_records_are_found_behind_every_damaged_byte() -> None:
    server, _ = lived(jobs=3)
    data = server.disk.read("segment-0000000001", 0, 10_000)
    header = decode_header(data)
    assert header is not None
    body = bytearray(data[HEADER_BYTES:])
    for place in range(len(body)):
        body[place] ^= 0x55
        records, holes = whole_records(bytes(body), header.salt)
        assert len(holes) == 1
        assert holes[0][0] <= place < holes[0][1]
        assert len(records) == len(body) - (holes[0][1] - holes[0][0])
        body[place] ^= 0x55


def on_disk(disk: SimulatedDisk, directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    for name in disk.names():
        (directory / name).write_bytes(disk.read(name, 0, 1 << 20))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server, _ = lived()
    on_disk(server.disk, tmp_path)
    assert main([str(tmp_path)]) == WHOLE
    assert "the journal is whole" in capsys.readouterr().out
    server.disk.flip_bit("segment-0000000001", 400 * 8)
    on_disk(server.disk, tmp_path)
    assert main([str(tmp_path)]) == DAMAGED
    assert "--repair" in capsys.readouterr().out
    assert main([str(tmp_path), "--repair"]) == WHOLE
    assert main([str(tmp_path)]) == WHOLE


def test_the_command_says_what_it_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "missing")]) == UNUSABLE
    assert "no directory of this name" in capsys.readouterr().err
    assert main([str(tmp_path)]) == UNUSABLE
    assert "no journal is here" in capsys.readouterr().err
    disk = OsDisk(tmp_path)
    assert disk.lock()
    assert main([str(tmp_path)]) == UNUSABLE
    assert "stop it first" in capsys.readouterr().err
    disk.unlock()


def test_a_repair_names_the_nodes_where_that_is_damaged() -> None:
    """Later the segment before was removed, and with it who the owners of the jobs in this one were."""
    server = new_server(policy="always", segment_bytes=600)
    peer = server.node.members._make_member(b"b" * 40)
    table = server.runtime.table
    while table.active.number < 3 or not table.active.jobs:
        job = server.node.jobs.get(server.add())
        assert job is not None
        job.owners |= peer.bit
        server.run_pass()
    name = segment_name(table.active.number)
    server.disk.kill()
    data = server.disk.read(name, 0, 10_000)
    server.disk.flip_bit(name, (data.index(b"b" * 40) + 3) * 8)
    check(server.disk, repair=True)
    repaired = server.disk.read(name, 0, 10_000)
    assert repaired.index(b"b" * 40) < repaired.index(b"D-")
    again = server.successor().start()
    assert all(one.owners.bit_count() == 2 for one in again.node.jobs)


@pytest.mark.parametrize("newer", [MANIFEST, "segment-0000000001"])
def test_a_journal_of_a_later_release_is_not_repaired(newer: str) -> None:
    """It is not damaged: an older release would give all of it up."""
    server, _ = lived()
    disk = server.disk
    content = disk.entries[newer].content
    if newer == MANIFEST:
        manifest = load_manifest(disk)
        assert manifest is not None
        manifest.format = FORMAT_VERSION + 1
        content[:] = encode_manifest(manifest)
    else:
        content[8:10] = (FORMAT_VERSION + 1).to_bytes(2, "little")
        content[HEADER_BYTES - 4 : HEADER_BYTES] = crc32c(content[: HEADER_BYTES - 4]).to_bytes(4, "little")
        disk.entries[MANIFEST].content[5] ^= 1
    before = {name: disk.read(name, 0, 10_000) for name in disk.names()}
    code, lines = check(disk, repair=True)

    assert code == DAMAGED
    assert f"written in format {FORMAT_VERSION + 1}" in lines[-1]
    assert "the release that wrote it" in lines[-1]
    assert before == {name: disk.read(name, 0, 10_000) for name in disk.names()}
