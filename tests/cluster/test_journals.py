"""Nodes with journals: what they promise each other when a disk fails, and what they know of each other's disks."""

from __future__ import annotations

import copy

import pytest

from disqueue.simulation.disk import FileData
from disqueue.simulation.observer import JournalPort
from disqueue.wire.job_records import RECEIVED, STORED, Batch

from .nodes import Nodes, OneNode


def test_a_copy_that_could_not_be_written_and_was_given_away_is_not_promised() -> None:
    nodes = Nodes(2)
    a, b = nodes
    kept, given = a.add("q", "REPLICATE", 2, "RETRY", 60), a.add("q", "REPLICATE", 2, "RETRY", 60)
    journal = b.node.journal = JournalPort()
    peer = b.node.members.find(a.id)
    journal.error = "the disk is full"
    for job in (kept, given):
        b.node.promise(peer, STORED, job)
    b.node.promise(peer, RECEIVED, given)
    assert peer.outbox == []
    b.node.delete(b.job(given))
    journal.error = ""
    b.node.serve_again()
    assert peer.outbox == [Batch(STORED, [kept], []), Batch(RECEIVED, [given], [])]


def old_copy(one: OneNode) -> dict[str, FileData]:
    """Return what a backup of a node's disk has in it now."""
    return copy.deepcopy(one.machine.disk.entries)


def come_back(nodes: Nodes, one: OneNode, disk: dict[str, FileData] | None = None) -> None:
    """Kill a node and start it, with another content of its disk if one is given."""
    one.kill()
    if disk is not None:
        one.machine.disk.entries = disk
    one.start()
    nodes.joined()
    nodes.wait(1500)


def figures(one: OneNode) -> dict[str, object]:
    """Return what INFO tells of a journal."""
    return one.machine.process.journal.runtime.figures()


def is_old(one: OneNode) -> bool:
    return bool(figures(one)["aof_is_old_copy"])


def test_a_node_back_with_an_old_copy_of_its_disk_hands_no_at_most_once_job_out_again() -> None:
    nodes = Nodes(3, journal="always")
    a, b, _c = nodes
    once = [a.add("once", "RETRY", 0, body=number) for number in range(4)]
    often = a.add("often", "RETRY", 60, "REPLICATE", 1)
    backup = old_copy(a)
    assert a.get("once", 2) == once[:2]
    assert b.get("once", 1) == once[2:3], "one was released to another node"
    nodes.wait(4000)
    come_back(nodes, a, backup)
    assert is_old(a)
    assert figures(a)["aof_dropped_jobs"] == 4
    assert a.ask("GETJOB", "TIMEOUT", 500, "FROM", "once") is None
    assert a.get("often") == [often]
    later = a.add("once", "RETRY", 0)
    come_back(nodes, a)
    assert not is_old(a), "the others go by what it has told them since"
    assert a.get("once") == [later]


def test_what_others_have_seen_of_a_journal_outlasts_their_restart() -> None:
    nodes = Nodes(2, journal="always")
    a, b = nodes
    a.add("once", "RETRY", 0)
    backup = old_copy(a)
    assert len(a.get("once")) == 1
    come_back(nodes, a)
    b.kill()
    a.kill()
    a.machine.disk.entries = backup
    b.start()
    a.start()
    nodes.joined()
    nodes.wait(1500)
    assert is_old(a)
    assert a.ask("GETJOB", "TIMEOUT", 500, "FROM", "once") is None


@pytest.mark.parametrize("policy", ["always", "everysec", "no"])
def test_a_restart_with_the_disk_as_it_was_is_not_taken_for_an_old_one(policy: str) -> None:
    nodes = Nodes(3, journal=policy)
    a, _b, _c = nodes
    for round_number in range(5):
        job = a.add("once", "RETRY", 0, body="x" * 1000 * round_number)
        nodes.wait(3000)
        come_back(nodes, a)
        assert not is_old(a)
        assert a.get("once") == [job]


def test_an_empty_disk_is_told_and_harms_nothing() -> None:
    nodes = Nodes(2, journal="always")
    a, b = nodes
    kept = b.add("q", "REPLICATE", 2, "RETRY", 1)
    a.add("once", "RETRY", 0)
    nodes.wait(3000)
    come_back(nodes, a, {})
    assert is_old(a)
    assert a.get("q") == [kept]
    assert a.ask("ACKJOB", kept) == 1
    nodes.nothing_left()


def test_a_peer_that_was_restarted_does_not_make_a_disk_old() -> None:
    nodes = Nodes(2, journal="always")
    a, b = nodes
    job = a.add("once", "RETRY", 0)
    nodes.wait(3000)
    come_back(nodes, b)
    nodes.wait(3000)
    assert not is_old(a)
    come_back(nodes, a)
    come_back(nodes, b)
    assert not is_old(a)
    assert not is_old(b)
    assert a.get("once") == [job]
