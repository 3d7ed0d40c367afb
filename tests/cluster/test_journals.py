"""Nodes with journals: what they promise each other when a disk fails."""

from __future__ import annotations

from disqueue.simulation.observer import JournalPort
from disqueue.wire.job_records import RECEIVED, STORED, Batch

from .nodes import Nodes


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
