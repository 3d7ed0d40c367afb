"""A crash after every byte, a flip of every bit: what is recovered is a prefix of what was written, or a refusal."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from disqueue.journal.errors import JournalError
from disqueue.journal.judgement import Behind, Fault, judge
from disqueue.journal.manifest import MANIFEST, segment_name
from disqueue.journal.recorder import GONE
from disqueue.simulation.disk import SimulatedCrash, SimulatedDisk
from disqueue.wire.journal_records import append_forgotten
from tests.journal.histories import RecordingImage, image_state, lasting, random_history, read
from tests.journal.support import Server, new_server


def written(seed: int, passes: int, **settings: Any) -> tuple[Server, list[Any]]:
    """Return a server that has lived for a while, and all the states of its journal."""
    server = new_server(seed, **settings)
    random_history(server, Random(seed), passes)
    server.end_pass()
    server.disk.kill()
    _, image = read(server.disk, RecordingImage)
    assert isinstance(image, RecordingImage)
    return server, image.states


def test_every_length_of_the_last_segment_gives_a_prefix() -> None:
    server, states = written(1, passes=12)
    name = segment_name(server.runtime.table.active.number)
    whole = server.disk.copy()
    length = whole.size(name)
    reached = 0
    for size in range(80, length):
        disk = whole.copy()
        disk.open(name).truncate(size)
        recovery, image = read(disk)
        state = image_state(image)
        assert state == states[image.records]
        assert image.records >= reached  # more bytes never give less
        reached = image.records
        assert (recovery.cut is None) == (recovery.read_bytes == size - 80)
    assert reached == len(states) - 2


@pytest.mark.parametrize("seed", [2, 3])
def test_a_flip_of_every_bit_gives_a_prefix_or_a_refusal(seed: int) -> None:
    """Three segments, always synced: only the last pass may be lost, and that is reported."""
    server, states = written(seed, passes=9, policy="always", segment_bytes=700)
    whole = server.disk
    for name in whole.names():
        for bit in range(whole.size(name) * 8):
            whole.flip_bit(name, bit)
            recovery, image, error = try_to_read(whole)
            if error:
                assert name in error or name == MANIFEST
            else:
                assert image_state(image) == states[image.records]
                assert image.records == len(states) - 1 or recovery.cut is not None
            whole.flip_bit(name, bit)


def test_zeros_are_a_hole_only_after_a_power_failure() -> None:
    """A record may end in zeros, and a few of them alone in a sector look like a block that never reached the disk."""
    record = bytearray()
    append_forgotten(record, 80, b"D-" + b"i" * 38, 1)
    offset = 3 * 512 - len(record) + 3
    behind = [Behind(1, offset, 5, bytes(record)), Behind(2, 76, 0, b"lost" + record)]
    judge(Fault(1, offset, len(record), settled=False, short=False, holes=True), "segment", behind)
    with pytest.raises(JournalError, match="whole records stand behind"):
        judge(Fault(1, offset, len(record), settled=False, short=False, holes=False), "segment", behind)


@pytest.mark.parametrize("kept_bytes", range(1, 12))
def test_a_hole_may_end_within_the_first_bytes_of_a_record(kept_bytes: int) -> None:
    """The sector before was not written, the one that has the rest of the record was."""
    record = bytearray()
    offset = 3 * 512 - kept_bytes
    append_forgotten(record, offset + 5, b"D-" + b"i" * 38, 1)
    append_forgotten(record, offset + 5, b"D-" + b"j" * 38, 1)
    lost = bytes(kept_bytes) + record[kept_bytes:]
    fault = Fault(1, offset, len(record) // 2, settled=False, short=False, holes=True)
    judge(fault, "segment", [Behind(1, offset, 5, lost)])
    flipped = bytearray(record)
    flipped[20] ^= 1
    with pytest.raises(JournalError, match="whole records stand behind"):
        judge(fault, "segment", [Behind(1, offset, 5, bytes(flipped))])


@pytest.mark.parametrize("zeros", [1, 2, 3])
def test_a_checksum_that_begins_with_zeros_is_no_hole(zeros: int) -> None:
    """The record is damaged, and its checksum happens to have zeros at the end of a sector."""
    offset = 3 * 512 - zeros
    for number in range(200_001):
        record = bytearray()
        append_forgotten(record, offset + 5, b"D-%038d" % number, 1)
        if not any(record[:zeros]) and record[zeros]:
            break
        if number == 200_000:  # three zeros are too rare to look for: made up
            record[:zeros] = bytes(zeros)
            break
    record[30] ^= 1
    append_forgotten(record, offset + 5, b"D-" + b"j" * 38, 1)
    fault = Fault(1, offset, len(record) // 2, settled=False, short=False, holes=True)
    with pytest.raises(JournalError, match="whole records stand behind"):
        judge(fault, "segment", [Behind(1, offset, 5, bytes(record))])


def test_a_flip_during_the_life_of_a_machine_is_no_hole() -> None:
    server = new_server(policy="no")
    server.add(body=bytes(2000))
    server.run_pass()
    name = segment_name(server.runtime.table.active.number)
    place = server.disk.size(name) - 10
    server.add()
    server.run_pass()
    server.disk.flip_bit(name, place * 8)
    powered_off = server.disk.copy()
    powered_off.boots += 1

    with pytest.raises(JournalError, match="damaged here"):
        server.restarted()
    assert Server(powered_off).start().runtime.loaded.cut is not None


def test_damage_before_the_last_pass_is_refused_even_when_nothing_was_synced() -> None:
    server = new_server(policy="no")
    server.add()
    server.run_pass()
    name = segment_name(server.runtime.table.active.number)
    place = server.disk.size(name) - 20
    server.add()
    server.run_pass()
    server.disk.flip_bit(name, place * 8)

    with pytest.raises(JournalError, match="damaged here") as caught:
        server.restarted()
    assert name in caught.value.file
    assert 0 < caught.value.offset <= place
    assert "check-journal" in caught.value.remedy


def lives(disk: SimulatedDisk, seed: int, passes: int) -> tuple[Server, dict[bytes, Any]]:
    """Let a server live on a disk until that kills it; return it with the state at the end of its last whole pass."""
    server = Server(disk, segment_bytes=600, rewrite_min_bytes=0, rewrite_percentage=30)
    promised: dict[bytes, Any] = {}
    random = Random(seed)
    try:
        server.start()
        for number in range(passes):
            random_history(server, random, 1)
            server.end_pass()
            promised = server.state()
            if number == 4:
                server.runtime.compact()
    except SimulatedCrash:
        pass
    return server, promised


def try_to_read(disk: SimulatedDisk) -> tuple[Any, Any, str]:
    """Return what `read` does, or why it is refused."""
    try:
        return *read(disk), ""
    except JournalError as error:
        return None, None, str(error)


THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"


@pytest.mark.parametrize(("seed", "passes", "step"), [(4, 2, 1 if THOROUGH else 3), (5, 9, 1 if THOROUGH else 61)])
def test_a_crash_after_every_byte_written_loses_nothing_that_was_promised(seed: int, passes: int, step: int) -> None:
    """Header, manifest, rotation and compaction included: each job is as it was at the last whole pass, or as it is now."""
    disk = SimulatedDisk(Random(seed))
    lives(disk, seed, passes)
    total = disk.written_bytes
    for crash_after in range(0, total, step):
        disk = SimulatedDisk(Random(seed))
        disk.crash_after_bytes = crash_after
        server, promised = lives(disk, seed, passes)
        before, now = lasting(promised), lasting(server.state())
        again = server.restarted()

        for job_id, job in again.state().items():
            assert job in (before.get(job_id), now.get(job_id))
        for job_id in before.keys() & now.keys():
            assert again.node.jobs.get(job_id) is not None
        assert_accounted(again)


def assert_accounted(server: Server) -> None:
    """The segments' accounts are exact, and the server can go on."""
    table = server.runtime.table
    known = {job.id: job for job in server.runtime.recorder.changed if job.journal_flags & GONE}
    known |= {job.id: job for job in server.node.jobs}
    for number, segment in table.by_number.items():
        assert segment.jobs == sum(job.journal_segment == number for job in known.values())
        assert segment.states == sum(job.journal_state == number for job in known.values())
        assert segment.job_bytes == sum(job.journal_bytes for job in known.values() if job.journal_segment == number)
        assert segment.state_bytes == sum(job.journal_state_bytes for job in known.values() if job.journal_state == number)
    job_id = server.add(queue=b"after")
    server.end_pass()
    assert job_id in server.restarted().queued(b"after")


@pytest.mark.parametrize("power_lost", [False, True])
def test_no_flipped_bit_of_the_last_record_hands_an_at_most_once_job_out_again(power_lost: bool) -> None:
    """It looked like a record that a crash had cut; there the answer of which it tells had not been sent."""
    server = new_server(policy="always")
    server.add(retry_s=0)
    server.run_pass()
    name = segment_name(server.runtime.table.active.number)
    before = server.disk.size(name)
    assert len(server.get()) == 1
    server.run_pass()
    after = server.disk.size(name)
    server.disk.kill()
    whole, refused = server.disk, 0
    for bit in range(before * 8, after * 8, 3):
        server.disk = whole.copy()
        server.disk.boots += power_lost
        server.disk.flip_bit(name, bit)
        try:
            again = server.successor().start()
        except JournalError:
            refused += 1
            continue
        assert again.queued() == []
        assert again.runtime.loaded.withheld == 1
        (warning,) = [event for event, _ in again.events if "one bit" in event]
        assert warning.startswith("warning: ")
    assert refused < (after - before) * 8 / 3
