"""A machine that loses power at any moment: what each policy promises is there, and at most once stays at most once."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from disqueue.core.job import ACTIVE, QUEUED
from disqueue.journal.errors import JournalError
from disqueue.journal.manifest import segment_name
from disqueue.simulation.disk import SimulatedDisk
from tests.journal.histories import lasting, random_history, random_step
from tests.journal.support import Server, new_server
from tests.journal.test_every_byte import assert_accounted

SEEDS = range(300 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 25)
SETTINGS: dict[str, Any] = {"segment_bytes": 700, "rewrite_min_bytes": 0, "rewrite_percentage": 30}


def delivered_once(server: Server) -> set[bytes]:
    """Return the at-most-once jobs that were handed out."""
    return {job_id for job_id, job in server.state().items() if job[10] == 0 and job[2] == ACTIVE and job[3] & 1}


def live_until_power_fails(server: Server, random: Random) -> tuple[list[dict[bytes, Any]], set[bytes]]:
    """Return the states at the ends of the passes that count, and the at-most-once jobs that were handed out.

    The states begin with the last one that is known to be on the disk; the last one is that of the pass that was cut short.
    """
    states: list[tuple[tuple[int, int], dict[bytes, Any]]] = [((0, 0), lasting(server.state()))]
    handed_out: set[bytes] = set()
    writer = server.runtime.writer
    for _ in range(random.randrange(1, 40)):
        random_history(server, random, 1, longest_ms=600)
        handed_out |= delivered_once(server)
        if random.random() < 0.1:
            server.runtime.compact()
        server.end_pass()
        states.append(((server.runtime.table.active.number, server.runtime.table.active.size), lasting(server.state())))
    for _ in range(random.randrange(3)):
        random_step(server, random)
    synced = writer.synced
    known = max((index for index, (place, _) in enumerate(states) if place <= synced), default=0)
    return [state for _, state in states[known:]] + [lasting(server.state())], handed_out


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
@pytest.mark.parametrize("seed", SEEDS)
def test_power_may_fail_at_any_moment(seed: int, policy: str) -> None:
    random = Random(seed)
    disk = SimulatedDisk(Random(seed))
    server = Server(disk, policy=policy, **SETTINGS).start()
    server.executor.at_once = random.random() < 0.5
    for _ in range(3):
        states, handed_out = live_until_power_fails(server, random)
        disk.lose_power()
        wall_ms = server.node.wall_ms
        server = Server(disk, now_ms=500, wall_ms=wall_ms, policy=policy, **SETTINGS).start()

        recovered = server.state()
        assert any(agrees(recovered, states, index) for index in range(len(states) - 1)), "not a state that there was"
        assert not handed_out & recovered.keys()
        assert_accounted(server)
        server = server.restarted()
        server.executor.at_once = random.random() < 0.5


def agrees(recovered: dict[bytes, Any], states: list[dict[bytes, Any]], index: int) -> bool:
    """Whether each job is as it was at the end of a pass or at that of the next: a pass may be there in part.

    At-most-once jobs may be missing: what happened to them after the last fsync is not known.
    """
    before, after = states[index], states[index + 1]
    for job_id in recovered.keys() | before.keys() | after.keys():
        seen = {repr(before.get(job_id)), repr(after.get(job_id))}
        found = recovered.get(job_id)
        if repr(found) not in seen and not (found is None and is_once(before.get(job_id) or after.get(job_id))):
            return False
    return True


def is_once(job: Any) -> bool:
    return job is not None and job[10] == 0 and job[2] in (ACTIVE, QUEUED)


@pytest.mark.parametrize("seed", SEEDS)
def test_power_fails_on_a_disk_that_errs(seed: int) -> None:
    """Errors of writes and fsyncs, healing, and then power loss: what was acknowledged without an error is there."""
    random = Random(seed)
    disk = SimulatedDisk(Random(seed))
    server = Server(disk, policy="always", **SETTINGS).start()
    states: list[dict[bytes, Any]] = [{}]
    for _ in range(30):
        for operation in ("write", "sync", "create", "sync_directory", "truncate"):
            disk.rates[operation] = random.choice((0.0, 0.0, 0.2))
        told = bool(server.runtime.error)
        for _ in range(random.randrange(4)):
            random_step(server, random)
        if server.end_pass() and not told and not server.runtime.error:
            states.clear()  # all of this was promised
        states.append(lasting(server.state()))
        server.run_pass(random.randrange(1, 300))
        states.append(lasting(server.state()))
    disk.rates.clear()
    disk.lose_power()
    again = Server(disk, now_ms=500, wall_ms=server.node.wall_ms, policy="always", **SETTINGS).start()

    recovered = again.state()
    for job_id in recovered.keys() | states[0].keys():
        assert recovered.get(job_id) in [state.get(job_id) for state in states]
    assert_accounted(again)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_misdirected_write_is_found(seed: int) -> None:
    """Whole records at the wrong place are not taken for records: a state that there was, or a refusal."""
    random = Random(seed)
    disk = SimulatedDisk(Random(seed))
    server = Server(disk, policy="always").start()
    states = [lasting(server.state())]
    for number in range(12):
        disk.misdirect_rate = 1.0 if number == 8 else 0.0
        random_history(server, random, 1, longest_ms=2)
        server.end_pass()
        states.append(lasting(server.state()))
    disk.lose_power()
    again = Server(disk, now_ms=500, wall_ms=server.node.wall_ms, policy="always")
    refusal = ""
    try:
        again.start()
    except JournalError as error:
        refusal = error.problem
    possible = any(agrees(again.state(), [*states, states[-1]], index) for index in range(len(states)))
    assert "damaged" in refusal or possible


TORN = b"\x01\x02\x03"
NO_RECORD = b"\x01\x02\x03\x04\x14\0\0\0" + bytes(range(60))


@pytest.mark.parametrize(("policy", "end", "kept"), [("always", NO_RECORD, 1), ("everysec", NO_RECORD, 0), ("no", TORN, 1)])
def test_at_most_once_jobs_are_in_doubt_when_the_disk_has_lost_the_end_of_the_journal(policy: str, end: bytes, kept: int) -> None:
    """The machine went on; and yet a record that told that one was handed out may have been there."""
    server = new_server(policy=policy)
    server.add(retry_s=0)
    server.run_pass()
    server.run_pass()
    server.disk.entries[segment_name(server.runtime.table.active.number)].content += end
    again = server.restarted()
    assert len(again.queued()) == kept
    assert again.runtime.loaded.withheld == 1 - kept
