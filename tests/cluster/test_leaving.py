"""A node leaves: it takes nothing more, gives all away, and no job has fewer copies than before."""

from __future__ import annotations

import pytest

from .nodes import Nodes, OneNode


def holders(nodes: Nodes, job: bytes, but: OneNode) -> int:
    return sum(one.job(job) is not None for one in nodes.running if one is not but)


def leave(one: OneNode) -> None:
    assert one.ask("CLUSTER", "LEAVING", "yes") == b"OK"


def test_what_a_leaving_node_says() -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    waiting, adding = a.caller(), a.caller()
    waiting.send("GETJOB", "FROM", "q")
    b.machine.process.pause(True)
    adding.send("ADDJOB", "q", "x", 0, "REPLICATE", 3)
    nodes.wait(20)
    leave(a)
    assert waiting.reply().startswith("LEAVING ")
    assert a.ask("GETJOB", "FROM", "q").startswith("LEAVING ")
    assert a.ask("GETJOB", "NOHANG", "FROM", "q") is None
    assert not adding.replies, "a producer is not told to go away"
    b.machine.process.pause(False)
    assert adding.reply().startswith(b"D-")
    nodes.wait(2000)
    ranks = {entry[0]: entry[3] for entry in b.ask("HELLO")[2:]}
    assert ranks[a.id] == b"100"
    assert {rank for node_id, rank in ranks.items() if node_id != a.id} == {b"1"}


@pytest.mark.parametrize("copies", [1, 2])
def test_a_leaving_node_adds_elsewhere(copies: int) -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    leave(a)
    job = a.add("q", "REPLICATE", copies)
    assert holders(nodes, job, a) >= copies
    assert a.ask("ADDJOB", "q", "x", 0, "REPLICATE", 3).startswith("NOREPL ")
    nodes.until(lambda: len(a.node.jobs) == 0)
    got = b.get("q")
    assert got == [job]
    assert c.ask("ACKJOB", job) == 1
    nodes.nothing_left()


def test_it_gives_all_kinds_of_jobs_away_and_no_copy_is_lost() -> None:
    nodes = Nodes(4)
    a, b = nodes[0], nodes[1]
    queued = a.add_many(300, "q", "REPLICATE", 1, "RETRY", 60)
    twice = a.add_many(100, "q", "REPLICATE", 2, "RETRY", 60)
    delayed = a.add_many(50, "later", "REPLICATE", 2, "RETRY", 60, "DELAY", 30)
    alone_delayed = a.add_many(50, "later", "REPLICATE", 1, "RETRY", 60, "DELAY", 30)
    once = a.add_many(50, "once", "RETRY", 0)
    once_delayed = a.add_many(50, "once-later", "RETRY", 0, "DELAY", 30)
    replicas = b.add_many(100, "other", "REPLICATE", 3, "RETRY", 60)
    start_ms = nodes.world.now_ms
    leave(a)
    assert nodes.until(lambda: len(a.node.jobs) == 0) < 5000
    assert int(a.info()["registered_jobs"]) == 0
    a.kill()
    for ids, copies in ((queued, 1), (twice, 2), (delayed, 2), (alone_delayed, 1), (replicas, 3), (once, 1), (once_delayed, 1)):
        found = [holders(nodes, job, a) for job in ids]
        assert min(found) >= copies, (ids[0], copies)
    consumer = nodes[2]
    assert sorted(consumer.get("q", 400)) == sorted(queued + twice)
    assert sorted(consumer.get("once", 50)) == sorted(once)
    assert sorted(consumer.get("other", 100)) == sorted(replicas)
    assert sorted(consumer.get("later", 100, timeout_ms=40_000)) == sorted(delayed + alone_delayed)
    assert nodes.world.now_ms - start_ms < 32_000, "when they were due, not after"
    assert sorted(consumer.get("once-later", 50)) == sorted(once_delayed)
    for one in nodes.running[1:]:
        assert one.ask("GETJOB", "TIMEOUT", 500, "FROM", "q", "once", "other", "later", "once-later") is None


def test_jobs_out_with_a_worker_are_acknowledged_after_all() -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    a.add_many(20, "q", "REPLICATE", 1, "RETRY", 5)
    a.add_many(20, "q", "REPLICATE", 2, "RETRY", 5)
    got = a.get("q", 40)
    queued = nodes.watch_queueing()
    leave(a)
    nodes.wait(1000)
    assert a.ask("ACKJOB", *got[:20]) == 20
    assert b.ask("ACKJOB", *got[20:]) == 20
    nodes.nothing_left()
    assert not queued


def test_acknowledgements_under_way_hold_a_leaving_node() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    ids = a.add_many(20, "q", "REPLICATE", 3, "RETRY", 20)
    c.machine.process.pause(True)
    assert a.ask("ACKJOB", *ids) == 20
    leave(a)
    nodes.wait(5000)
    c.machine.process.pause(False)
    nodes.nothing_left(60_000)
    assert sum(nodes.lengths("q")) == 0
    del b


def test_shutdown_says_what_still_holds_a_leaving_node() -> None:
    # differs: leaving-shutdown
    nodes = Nodes(2)
    a, b = nodes
    a.add_many(10, "q", "REPLICATE", 2, "RETRY", 20)
    b.kill()
    nodes.wait(10)
    leave(a)
    nodes.wait(1000)
    reply = a.ask("SHUTDOWN")
    assert reply.startswith("ERR this node is leaving and still holds 10 jobs")
    assert a.info()["registered_jobs"] == "10"


def test_a_node_that_stays_after_all() -> None:
    nodes = Nodes(3)
    a, _b, _c = nodes
    ids = a.add_many(2000, "q", "REPLICATE", 1, "RETRY", 60)
    leave(a)
    nodes.wait(70)
    assert a.ask("CLUSTER", "LEAVING", "no") == b"OK"
    nodes.wait(2000)
    assert len(a.node.jobs) > 100
    assert sorted(a.get("q", 2000)) == sorted(ids)
    assert a.ask("ACKJOB", *ids) == 2000
    nodes.nothing_left()


def test_a_drain_goes_on_when_the_heir_dies() -> None:
    nodes = Nodes(4)
    a = nodes[0]
    a.add_many(600, "q", "REPLICATE", 2, "RETRY", 30)
    leave(a)
    nodes.wait(60)
    nodes[1].kill()
    assert nodes.until(lambda: len(a.node.jobs) == 0, 60_000) < 20_000
    a.kill()
    ids = nodes[2].get("q", 600, timeout_ms=70_000)
    assert len(set(ids)) == 600


def test_a_new_node_takes_load() -> None:
    nodes = Nodes(3)
    a, _b, c = nodes
    c.kill()
    a.ask("CLUSTER", "FORGET", c.id)
    nodes.wait(61_000)
    c.machine.nodes_file = ""
    c.start()
    nodes.cluster.meet(a.machine, c.machine)
    nodes.joined()
    consumer = c.caller()
    consumer.send("GETJOB", "FROM", "q")
    nodes.wait(5)
    a.add_many(30, "q", "REPLICATE", 2)
    assert consumer.reply(100)
    assert len(c.node.jobs) >= 10


def test_whoever_a_leaving_node_hands_a_job_to_knows_the_other_owners() -> None:
    """One of them came later, and cannot say so to the others itself."""
    nodes = Nodes(3)
    a, b, c = nodes
    nodes.partition((0, 1), (2,))
    nodes.until(lambda: not a.node.members.find(c.id).reachable)
    jobs = [a.add("q", "REPLICATE", 2, "RETRY", 60) for _ in range(4)]
    nodes.heal()
    nodes.partition((1,), (2,))
    assert sorted(c.get("q", 4)) == sorted(jobs)
    assert a.ask("ENQUEUE", *jobs) == 4
    leave(a)
    nodes.until(lambda: not len(a.node.jobs))
    for job in jobs:
        have = [one for one in (b, c) if one.job(job) is not None]
        for one in have:
            assert {other.id for other in have} <= set(one.node.node_ids(one.job(job).owners))


def test_an_owner_that_was_away_hears_from_the_node_that_left_where_its_job_is() -> None:
    nodes = Nodes(3, node_timeout_ms=1000)
    a, b, c = nodes
    nodes.partition((0, 1), (2,))
    nodes.until(lambda: not a.node.members.find(c.id).reachable)
    job = a.add("q", "REPLICATE", 2, "RETRY", 8)
    nodes.heal()
    nodes.partition((0, 2), (1,))
    nodes.until(lambda: a.node.members.find(b.id).failed)
    leave(a)
    nodes.until(lambda: not len(a.node.jobs))
    nodes.cluster.network.heal()
    nodes.partition((1,), (2,))
    nodes.wait(10_000)
    assert c.id in b.node.node_ids(b.job(job).owners)
    nodes.cluster.network.heal()
    assert b.ask("ACKJOB", job) == 1
    nodes.nothing_left()


def test_a_node_that_takes_back_what_it_left_knows_the_owners_it_had() -> None:
    nodes = Nodes(3, node_timeout_ms=1000)
    a, b, c = nodes
    nodes.partition((0, 1), (2,))
    nodes.until(lambda: not a.node.members.find(c.id).reachable)
    job = a.add("q", "REPLICATE", 2, "RETRY", 60)
    nodes.heal()
    nodes.partition((0, 2), (1,))
    nodes.until(lambda: a.node.members.find(b.id).failed)
    leave(a)
    nodes.until(lambda: not len(a.node.jobs))
    assert c.get("q") == [job]
    assert a.ask("CLUSTER", "LEAVING", "no") == b"OK"
    nodes.heal()
    nodes.partition((1,), (2,))
    assert b.ask("ENQUEUE", job) == 1
    assert a.get("q") == [job]
    assert set(a.node.node_ids(a.job(job).owners)) == {a.id, b.id, c.id}


def test_a_job_handed_over_twice_waits_for_its_delay() -> None:
    nodes = Nodes(2)
    a, b = nodes
    job = a.add("q", "REPLICATE", 2, "RETRY", 60, "DELAY", 20)
    for _ in range(2):
        b.machine.process.post(lambda: b.node.enqueue_ordered(job, 20_000))
    assert b.get("q", timeout_ms=15_000) == []
    assert b.get("q", timeout_ms=10_000) == [job]


def test_a_job_that_its_heir_has_not_got_any_more_is_kept() -> None:
    nodes = Nodes(2)
    a, b = nodes
    job = a.add("q", "REPLICATE", 1, "RETRY", 60)
    a.get("q")
    peer = a.node.members.find(b.id)
    a.job(job).owners |= peer.bit
    a.node.depart(a.job(job))
    nodes.wait(3000)
    assert a.job(job) is not None
    assert a.ask("ACKJOB", job) == 1
    nodes.nothing_left()


def test_a_delayed_job_is_queued_once_although_another_owner_does_not_answer() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    job = a.add("q", "REPLICATE", 2, "RETRY", 10, "DELAY", 2)
    owner, heir = (b, c) if b.job(job) is not None else (c, b)
    owner.machine.process.pause(True)
    queued = nodes.watch_queueing()
    leave(a)
    nodes.wait(3000)
    assert queued == {job: 1}
    assert heir.get("q") == [job]
    owner.machine.process.pause(False)
    assert heir.ask("ACKJOB", job) == 1
    nodes.nothing_left(30_000)
