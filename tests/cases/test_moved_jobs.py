"""A job that a peer's consumer waited for goes there; what was noted about the queue for that goes too."""

from __future__ import annotations

from disqueue.core.peer_jobs import PeerJobs

from .broker_session import BrokerSession


class OtherNode:
    """A peer that takes everything and says nothing by itself."""

    def __init__(self) -> None:
        self.slot = 1
        self.node_id = b"f" * 40
        self.link_up = True
        self.leaving = False
        self.outbox: list[object] = []
        self.data = PeerJobs()


def test_a_demand_that_was_met_leaves_nothing() -> None:
    session = BrokerSession()
    node, peer = session.node, OtherNode()
    node.members.peers = node.members.reachable = [peer]
    node.members.by_slot.append(peer)
    node.members.members_mask = 3
    node.peer_wants(peer, b"q", 1)
    session.send("A", [b"ADDJOB", b"q", b"x", b"0", b"REPLICATE", b"1"])
    job = session.receive("A").data
    assert [type(record).__name__ for record in peer.outbox if type(record).__name__ == "Move"] == ["Move"]
    node.move_received(peer, job)
    node.delete_told(job)
    session.advance(400_000)
    assert (len(node.jobs), node.queues) == (0, {})
    assert node.next_deadline_ms() == -1
