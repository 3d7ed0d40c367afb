"""FORGET, bans, RESET: who stays out, for how long, and how to get back in."""

from __future__ import annotations

import pytest
from tests.core.bus_cluster import BusCluster, BusNode

from disqueue.core.bans import BAN_MS, Bans
from disqueue.core.membership_ports import ClusterError
from disqueue.wire.records import GossipBan

NEW_ID = b"0123456789abcdef0123456789abcdef01234567"


def forget(node: BusNode, other: BusNode) -> None:
    node.run(lambda: node.membership.forget(other.membership.me.node_id))


def test_one_command_forgets_a_dead_node_everywhere() -> None:
    cluster = BusCluster(4)
    cluster.join_all()
    *alive, dead = cluster.nodes
    dead.kill()
    cluster.run(1_000)
    slot = alive[2].peer(dead).slot
    forget(alive[0], dead)
    cluster.run(200)
    for node in alive:
        assert dead.membership.me.node_id not in node.knows()
        assert ("forgotten", dead.membership.me.node_id) in node.events.seen
    assert not alive[2].membership.members_mask >> slot & 1
    cluster.run(3 * BAN_MS)
    assert all(len(node.membership.peers) == 2 for node in alive)
    assert all(len(node.membership.bans) == 0 for node in alive)


def test_a_live_node_that_was_forgotten_stays_out_until_it_is_met() -> None:
    cluster = BusCluster(3)
    cluster.join_all()
    first, second, third = cluster.nodes
    peer = first.peer(third)
    forget(first, third)
    cluster.run(2 * BAN_MS)
    assert len(first.membership.peers) == len(second.membership.peers) == 1
    assert not third.membership.reachable
    assert "forgotten" in third.peer(first).failure
    third.meet(first)
    cluster.run(5_000, cluster.full_mesh)
    assert cluster.full_mesh()
    assert first.peer(third) is peer, "the same id has its old slot"


@pytest.mark.parametrize("who_meets", [0, 2])
def test_meeting_during_the_ban_lifts_it_everywhere(who_meets: int) -> None:
    cluster = BusCluster(3)
    cluster.join_all()
    first, _, third = cluster.nodes
    forget(first, third)
    cluster.run(1_000)
    if who_meets:
        third.meet(first)
    else:
        first.meet(third)
    assert cluster.run(BAN_MS // 2, cluster.full_mesh) < 5_000
    cluster.run(2 * BAN_MS)
    assert cluster.full_mesh()


def test_a_node_that_was_away_hears_of_the_ban_when_it_returns() -> None:
    cluster = BusCluster(4, node_timeout_ms=2_000)
    cluster.join_all()
    first, _, away, dead = cluster.nodes
    dead.kill()
    cluster.part(cluster.nodes[:2], [away])
    cluster.run(5_000)
    forget(first, dead)
    cluster.run(10_000)
    cluster.heal()
    cluster.run(5_000)
    assert dead.membership.me.node_id not in away.knows()
    assert all(dead.membership.me.node_id not in node.knows() for node in cluster.nodes[:3])


def test_what_cannot_be_forgotten() -> None:
    node = BusCluster(1).nodes[0]
    with pytest.raises(ClusterError, match="can't forget myself"):
        node.membership.forget(node.membership.me.node_id)
    with pytest.raises(ClusterError, match="Unknown node 0123"):
        node.membership.forget(NEW_ID)


def test_a_handshake_can_be_forgotten() -> None:
    node = BusCluster(1).nodes[0]
    node.membership.joining.meet("10.0.0.9", 7711, 17711)
    node.membership.forget(node.membership.joining.handshakes[0].node_id)
    assert not node.membership.joining.handshakes


@pytest.mark.parametrize("new_id", [None, NEW_ID])
def test_a_reset_node_stays_alone_until_it_is_met(new_id: bytes | None) -> None:
    cluster = BusCluster(3)
    cluster.join_all()
    first, second, third = cluster.nodes
    third.run(lambda: third.membership.reset(new_id))
    cluster.run(30_000)
    assert not third.membership.peers
    assert third.membership.me.node_id == (new_id or cluster.start(2).membership.me.node_id)
    assert not first.membership.reachable_mask >> 2 & 1
    third.meet(first)
    cluster.run(10_000)
    assert {first.membership.me.node_id, second.membership.me.node_id} == third.knows()
    assert len(third.membership.reachable) == 2


def test_a_reset_node_is_not_drawn_in_by_strangers() -> None:
    cluster = BusCluster(3)
    cluster.join_all()
    first, second, third = cluster.nodes
    third.run(lambda: third.membership.reset(None))
    second.run(lambda: second.membership.reset(NEW_ID))
    second.meet(first)  # hears of the third from the first, which still lists it
    cluster.run(30_000)
    assert not third.membership.peers


def test_all_reset_and_met_again_at_once() -> None:
    cluster = BusCluster(5)
    cluster.join_all()
    for index, node in enumerate(cluster.nodes):
        node.run(lambda node=node, index=index: node.membership.reset(b"%040x" % (index + 1)))
    cluster.chain()
    cluster.run(5_000, cluster.full_mesh)
    assert cluster.full_mesh()
    assert all(len(node.membership.peers) == 4 for node in cluster.nodes)


def test_bans_merge_alike_in_any_order() -> None:
    news = [GossipBan(NEW_ID, 5, 60_000), GossipBan(NEW_ID, 5, 0), GossipBan(NEW_ID, 4, 60_000)]
    for first in range(3):
        for second in range(3):
            bans = Bans()
            for ban in (news[first], news[second], *news):
                bans.merge(ban, 1_000)
            assert not bans.holds(NEW_ID, 1_000)
    bans.add(NEW_ID, 1, 1_000)
    assert bans.holds(NEW_ID, 1_000)
    assert not bans.holds(NEW_ID, 1_000 + BAN_MS)
    assert not bans.merge(GossipBan(NEW_ID, 5, 0), 1_000), "an old word does not lift a new ban"


def test_a_node_that_lost_its_table_by_damage_takes_its_members_back() -> None:
    cluster = BusCluster(3)
    cluster.join_all()
    third = cluster.nodes[2]
    third.kill()
    third = cluster.restart(third, remember=False)
    third.membership.joining.adopting = True
    cluster.run(5_000, cluster.full_mesh)
    assert cluster.full_mesh()
