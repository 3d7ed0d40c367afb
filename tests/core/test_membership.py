"""Joining, discovery, restarts and moves, on virtual time."""

from __future__ import annotations

import pytest
from tests.core.bus_cluster import BusCluster

from disqueue.core.membership_ports import ClusterError


def test_two_nodes_meet_within_a_few_round_trips() -> None:
    cluster = BusCluster(2)
    cluster.nodes[0].meet(cluster.nodes[1])
    took_ms = cluster.run(5_000, cluster.full_mesh)
    assert took_ms < 500
    assert cluster.nodes[0].membership.hello_entries()[1][1:] == ("10.0.0.2", 7711, 1)
    assert cluster.nodes[1].membership.me.address == "10.0.0.2"


def test_every_ping_is_answered_soon_after_joining() -> None:
    cluster = BusCluster(3)
    cluster.join_all()
    cluster.run(50)
    for node in cluster.nodes:
        for peer in node.membership.peers:
            assert peer.pong_ms
            assert not peer.silent_since_ms
            assert 0 < peer.rtt_ms < 10


@pytest.mark.parametrize(("size", "limit_ms"), [(3, 1_000), (7, 3_000), (50, 10_000)])
def test_a_chain_of_meetings_ends_in_a_full_mesh(size: int, limit_ms: int) -> None:
    cluster = BusCluster(size)
    cluster.chain()
    assert cluster.run(limit_ms, cluster.full_mesh) < limit_ms
    ids = {node.membership.me.node_id for node in cluster.nodes}
    for node in cluster.nodes:
        assert node.knows() == ids - {node.membership.me.node_id}
        assert not node.membership.joining.handshakes


def test_all_meet_all_at_once() -> None:
    cluster = BusCluster(7)
    for node in cluster.nodes:
        for other in cluster.nodes:
            if other is not node:
                node.meet(other)
    cluster.run(5_000, cluster.full_mesh)
    assert cluster.full_mesh()
    assert all(len(node.membership.peers) == 6 for node in cluster.nodes)
    assert all(node.membership.stats.meet_failures == 0 for node in cluster.nodes)
    cluster.run(20_000)
    assert cluster.full_mesh()
    assert not any(node.logged("link lost") for node in cluster.nodes)


def test_idle_nodes_send_little() -> None:
    cluster = BusCluster(7, node_timeout_ms=15_000)
    cluster.join_all()
    cluster.run(5_000)
    passes, sent = cluster.passes_run, sum(node.bytes_sent for node in cluster.nodes)
    cluster.run(60_000)
    assert (cluster.passes_run - passes) / 60 / 7 < 12, "wake-ups per second and node"
    assert (sum(node.bytes_sent for node in cluster.nodes) - sent) / 60 / 7 < 2_000, "bytes per second and node"


def test_a_restarted_process_is_the_same_peer() -> None:
    cluster = BusCluster(3)
    cluster.join_all()
    first, _second, third = cluster.nodes
    peer = first.peer(third)
    slot = peer.slot
    third.kill()
    cluster.run(50)
    assert not peer.reachable, "a reset connection counts at once"
    third = cluster.restart(third)
    cluster.run(5_000, cluster.full_mesh)
    assert cluster.full_mesh()
    assert first.peer(third) is peer
    assert peer.slot == slot
    assert ("restarted", peer.node_id) in first.events.seen
    assert not first.logged("node suspected")


def test_a_node_that_moved_is_followed() -> None:
    cluster = BusCluster(3)
    cluster.join_all()
    first, _, third = cluster.nodes
    third.kill()
    cluster.run(1_000)
    third = cluster.restart(third, address="10.9.9.9")
    cluster.run(10_000, cluster.full_mesh)
    assert cluster.full_mesh()
    assert first.peer(third).address == "10.9.9.9"


def test_a_moved_node_is_found_through_gossip() -> None:
    cluster = BusCluster(3)
    cluster.join_all()
    first, second, third = cluster.nodes
    third.kill()
    third = cluster.restart(third, address="10.9.9.9", remember=False)
    third.membership.restore_member(second.membership.me.node_id, second.address, 7711, 17711, False)
    cluster.part([first], [third])  # they cannot tell each other
    third.run()
    cluster.run(3_000)
    assert second.peer(third).address == "10.9.9.9"
    cluster.heal()
    cluster.run(10_000, cluster.full_mesh)
    assert cluster.full_mesh()


def test_another_node_at_a_known_address_is_not_taken_for_the_old_one() -> None:
    cluster = BusCluster(2)
    cluster.join_all()
    first, second = cluster.nodes
    second.kill()
    cluster.nodes[1] = cluster.start(7, address=second.address)
    cluster.run(5_000)
    peer = first.peer(second)
    assert peer.no_address
    assert not peer.link_up
    assert [entry[0] for entry in first.membership.hello_entries()] == [first.membership.me.node_id]
    assert not cluster.nodes[1].membership.peers


def test_a_node_at_the_address_of_one_that_is_gone_does_not_take_itself_for_a_copy() -> None:
    cluster = BusCluster(2)
    cluster.join_all()
    first, second = cluster.nodes
    second.kill()
    heir = cluster.nodes[1] = cluster.start(7, address=second.address)
    heir.meet(first)
    cluster.run(5_000)
    refusals = [str(fields["why"]) for _, event, fields in heir.lines if event == "bus connection refused"]
    assert any("dialled itself" in why for why in refusals)
    assert not any("copied" in why for why in refusals)


def test_another_secret_changes_nothing() -> None:
    cluster = BusCluster(2)
    cluster.join_all()
    stranger = cluster.start(5, secret=b"another")
    cluster.nodes.append(stranger)
    stranger.meet(cluster.nodes[0])
    cluster.nodes[0].meet(stranger)
    cluster.run(20_000)
    assert not stranger.membership.peers
    assert not stranger.membership.joining.handshakes
    assert all(len(node.membership.peers) == 1 for node in cluster.nodes[:2])
    assert stranger.membership.stats.meet_failures == 1
    assert "cluster-secret" in stranger.membership.stats.last_meet_failure
    assert cluster.nodes[0].logged("bus connection refused")
    assert cluster.nodes[0].logged("meet failed")
    assert stranger.membership.me.address == ""


def test_a_meeting_with_nobody_fails_visibly() -> None:
    cluster = BusCluster(1)
    node = cluster.nodes[0]
    node.run(lambda: node.membership.joining.meet("10.0.0.77", 7711, 17711))
    cluster.run(1_000)
    assert node.membership.joining.handshakes[0].failure == "connection refused"
    cluster.run(5_000)
    assert not node.membership.joining.handshakes
    assert node.membership.stats.last_meet_failure == "10.0.0.77:7711: connection refused"
    assert node.membership.wake_ms == -1, "a node alone has nothing to wake up for"


def test_meeting_oneself_fails_at_once() -> None:
    cluster = BusCluster(1)
    node = cluster.nodes[0]
    node.meet(node)
    cluster.run(100)
    assert not node.membership.joining.handshakes
    assert not node.membership.peers
    assert "itself" in node.membership.stats.last_meet_failure


def test_leaving_is_told_at_once() -> None:
    cluster = BusCluster(3)
    cluster.join_all()
    first, second, third = cluster.nodes
    third.run(lambda: third.membership.set_leaving(True))
    cluster.run(50)
    assert all(node.peer(third).leaving and not node.peer(third).reachable for node in (first, second))
    assert {entry[0]: entry[3] for entry in first.membership.hello_entries()}[third.membership.me.node_id] == 100
    third.run(lambda: third.membership.set_leaving(False))
    cluster.run(50)
    assert cluster.full_mesh()


def test_unknown_ids_get_a_slot_that_a_later_member_keeps() -> None:
    cluster = BusCluster(2)
    first, second = cluster.nodes
    early = first.membership.intern(second.membership.me.node_id)
    assert early is not None
    assert not first.membership.members_mask & early.bit
    cluster.join_all()
    assert first.peer(second) is early
    assert first.membership.members_mask & early.bit
    assert first.membership.intern(b"x" * 40) is None


def test_invalid_addresses_are_refused() -> None:
    node = BusCluster(1).nodes[0]
    for address in ("", "a b", "host\n", "x" * 256):
        with pytest.raises(ClusterError, match="Invalid node address"):
            node.membership.joining.meet(address, 7711, 17711)
