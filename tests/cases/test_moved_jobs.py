"""A job that a peer's consumer waited for goes there; what was noted about the queue for that goes too."""

from __future__ import annotations

from disqueue.core.peer import MEMBER, Peer

from .broker_session import BrokerSession


def other_node() -> Peer:
    """A peer that takes everything and says nothing by itself."""
    peer = Peer(1, b"f" * 40, MEMBER)
    peer.link_up = True
    return peer


def test_a_demand_that_was_met_leaves_nothing() -> None:
    session = BrokerSession()
    node, peer = session.node, other_node()
    node.members.peers = node.members.reachable = [peer]
    node.members.by_slot.append(peer)
    node.members.members_mask = 3
    node.peer_wants(peer, b"q", 1)
    session.send("A", [b"ADDJOB", b"q", b"x", b"0", b"REPLICATE", b"1"])
    job = session.receive("A").data
    assert [type(record).__name__ for record in peer.outbox if type(record).__name__ == "Move"] == ["Move"]
    node.move_received(peer, job)
    node.delete_told(peer, job)
    session.advance(400_000)
    assert (len(node.jobs), node.queues) == (0, {})
    assert node.next_deadline_ms() == -1
