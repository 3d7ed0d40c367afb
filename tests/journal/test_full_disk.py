"""A full disk: nothing new is taken, what happens to the jobs that are there is kept, and acknowledging them heals the node."""

from __future__ import annotations

import errno
from random import Random

import pytest

from disqueue.journal.job_records import JobRecords
from disqueue.journal.reserve import RESERVE
from disqueue.simulation.disk import SimulatedDisk
from tests.journal.histories import lasting, random_history
from tests.journal.support import Server, new_server

POLICIES = ("always", "everysec", "no")


def filled(policy: str, jobs: int = 40, seed: int = 1) -> tuple[Server, list[bytes]]:
    """Return a server whose disk became full, and its jobs."""
    server = new_server(seed, policy=policy, segment_bytes=6000, reserve_bytes=12_000)
    server.run_pass()
    ids = []
    for _ in range(jobs):
        ids.append(server.add(body=b"x" * 400))
        server.run_pass()
    assert server.disk.size(RESERVE) == 12_000
    server.disk.capacity_bytes = used(server) + 50
    ids.append(server.add(body=b"x" * 400))
    assert server.run_pass(), "the reserve takes what this pass promised"
    return server, ids


def used(server: Server) -> int:
    return sum(server.disk.size(name) for name in server.disk.names())


@pytest.mark.parametrize("policy", POLICIES)
def test_acknowledging_jobs_heals_a_full_disk(policy: str) -> None:
    server, ids = filled(policy)
    runtime = server.runtime
    assert "disk is full" in runtime.refusal()
    assert runtime.error == ""
    assert server.node.journal_refuses()
    assert not server.node.journal_fails()
    server.idle(passes=5)
    assert "disk is full" in runtime.refusal()

    for job_id in ids[:-3]:
        server.ack(job_id)
        assert server.run_pass()
    server.idle(passes=60, milliseconds=100)
    assert runtime.refusal() == ""
    assert not server.node.journal_refuses()
    assert server.disk.size(RESERVE) == 12_000
    assert set(ids[-3:]) == set(server.restarted().state())


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("power", [False, True])
def test_what_happens_while_the_disk_is_full_survives_a_crash(policy: str, power: bool) -> None:
    for acks in range(0, 40, 3):
        server, ids = filled(policy)
        for job_id in ids[:acks]:
            server.ack(job_id)
            server.run_pass()
        server.get(count=2)
        server.end_pass()
        if not power:
            assert lasting(server.state()) == server.restarted().state()
            continue
        server.disk.lose_power()
        server.disk.capacity_bytes = -1
        again = server.successor().start()
        missing = set(ids[acks:]) - set(again.state())
        assert not missing or policy != "always"
        assert not (set(ids[:acks]) & set(again.state())) or policy != "always"


def test_a_start_on_a_full_disk_uses_the_reserve() -> None:
    server, ids = filled("everysec")
    server.disk.capacity_bytes = -1
    server.idle(passes=20)
    assert server.runtime.refusal() == ""
    server.disk.capacity_bytes = used(server)
    again = server.restarted()
    assert set(ids) == set(again.state())


def test_space_that_comes_back_ends_the_refusal() -> None:
    server, ids = filled("everysec")
    server.disk.capacity_bytes += 20_000
    server.idle(passes=5)
    assert server.runtime.refusal() == ""
    assert set(ids) == set(server.restarted().state())


def test_a_reserve_that_is_used_up_is_a_disk_that_fails() -> None:
    server, ids = filled("everysec")
    for _ in range(60):
        ids.append(server.add(body=b"y" * 150))
        server.run_pass()
    assert "No space left" in server.runtime.refusal()
    server.disk.capacity_bytes = -1
    server.idle(passes=20)
    assert server.runtime.refusal() == ""
    assert set(ids) == set(server.restarted().state())


def test_a_small_disk_has_a_small_reserve() -> None:
    disk = SimulatedDisk(Random(1))
    disk.capacity_bytes = 3000
    server = Server(disk, reserve_bytes=64_000, policy="everysec").start()
    server.idle(passes=3)
    assert disk.size(RESERVE) == 1000
    assert server.runtime.refusal() == ""


def test_a_reserve_that_cannot_be_had_is_no_trouble() -> None:
    server = Server(SimulatedDisk(Random(1)), reserve_bytes=6000)
    server.runtime.load()
    while not server.runtime.load_step():
        pass
    server.runtime.start()
    server.disk.failing["create"] = errno.EOPNOTSUPP
    server.add()
    assert server.run_pass()
    assert server.runtime.refusal() == ""


@pytest.mark.parametrize("seed", range(10))
def test_random_histories_on_a_full_disk(seed: int) -> None:
    random = Random(seed)
    server = new_server(seed, policy=random.choice(POLICIES), segment_bytes=1500, reserve_bytes=4000)
    for _ in range(3):
        random_history(server, random, passes=20, longest_ms=50)
        server.disk.capacity_bytes = used(server) + random.randrange(1000)
        random_history(server, random, passes=20, longest_ms=50)
        if random.random() < 0.5:
            server.disk.capacity_bytes = -1
            server.idle(passes=10)
        server.end_pass()
        if server.runtime.error:
            server.disk.capacity_bytes = -1
            server.idle(passes=40)
            server.end_pass()
        expected = lasting(server.state())
        server.disk.capacity_bytes = -1
        server = server.restarted()
        assert expected == server.state()


@pytest.mark.parametrize("loaded", [False, True])
def test_what_writing_a_segment_again_takes_is_known_before(loaded: bool) -> None:
    """Jobs that shared a record with the name of their queue may each need one of their own, and another name then."""
    server = new_server()
    name = b"n" * 200
    peer = server.node.members.intern(b"f" * 40)
    assert peer is not None
    ids = [server.add(queue=name) for _ in range(20)]
    server.run_pass()
    number = server.runtime.table.active.number
    if loaded:
        server = server.restarted()
    for place, job_id in enumerate(ids):
        job = server.node.jobs.get(job_id)
        assert job is not None
        job.order_ns += place + 1
        job.owners = job.confirmed = 1 << 60
    records, buffer = JobRecords(), bytearray()
    records.begin(buffer, 0)
    for job in server.node.jobs:
        records.whole(job, 0)
    records.finish()
    segment = server.runtime.table.by_number[number]
    assert segment.jobs == 20
    assert len(buffer) <= server.runtime.table.rewritten_bytes_max(segment) < 2 * len(buffer)
