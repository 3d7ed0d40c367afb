"""Silence, suspicion, failure and return, on virtual time."""

from __future__ import annotations

from tests.core.bus_cluster import BusCluster

TIMEOUT_MS = 3_000


def test_a_dead_node_is_suspected_then_failed_by_most() -> None:
    cluster = BusCluster(4, node_timeout_ms=TIMEOUT_MS)
    cluster.join_all()
    *alive, dead = cluster.nodes
    dead.kill()
    cluster.run(TIMEOUT_MS - 100)
    assert not any(node.peer(dead).suspected for node in alive)
    cluster.run(600)
    assert all(node.peer(dead).failed for node in alive)
    assert all(node.membership.failed_mask == node.peer(dead).bit for node in alive)
    assert all(node.membership.hello_entries()[-1][3] == 100 for node in alive if node.membership.peers[-1] is node.peer(dead))


def test_a_cluster_of_two_decides_alone_after_a_further_timeout() -> None:
    cluster = BusCluster(2, node_timeout_ms=TIMEOUT_MS)
    cluster.join_all()
    first, second = cluster.nodes
    second.kill()
    cluster.run(TIMEOUT_MS + 500)
    assert first.peer(second).suspected
    assert not first.peer(second).failed
    cluster.run(TIMEOUT_MS)
    assert first.peer(second).failed


def test_one_of_three_failed_needs_both_others() -> None:
    cluster = BusCluster(3, node_timeout_ms=TIMEOUT_MS)
    cluster.join_all()
    first, second, third = cluster.nodes
    cluster.part([first], [third])
    cluster.run(3 * TIMEOUT_MS)
    assert first.peer(third).suspected
    assert not first.peer(third).failed, "the second still hears it"
    assert not second.peer(third).suspected
    cluster.heal()
    cluster.run(5_000, cluster.full_mesh)
    assert cluster.full_mesh()


def test_the_minority_left_of_a_large_cluster_still_decides() -> None:
    cluster = BusCluster(7, node_timeout_ms=TIMEOUT_MS)
    cluster.join_all()
    for node in cluster.nodes[:4]:
        node.kill()
    cluster.run(2 * TIMEOUT_MS)
    for node in cluster.nodes[4:]:
        assert len(node.membership.reachable) == 2
        assert all(node.peer(dead).failed for dead in cluster.nodes[:4])


def test_half_open_links_are_noticed_and_all_comes_back_after_a_split() -> None:
    cluster = BusCluster(6, node_timeout_ms=TIMEOUT_MS)
    cluster.join_all()
    left, right = cluster.nodes[:3], cluster.nodes[3:]
    cluster.part(left, right)
    cluster.run(4 * TIMEOUT_MS)
    for node in cluster.nodes:
        assert len(node.membership.reachable) == 2
        assert sum(peer.failed for peer in node.membership.peers) == 3
    cluster.heal()
    took_ms = cluster.run(10_000, cluster.full_mesh)
    assert took_ms < 8_000
    assert all(node.membership.failed_mask == 0 for node in cluster.nodes)


def test_fifty_nodes_come_back_after_a_split() -> None:
    cluster = BusCluster(50, node_timeout_ms=TIMEOUT_MS)
    cluster.join_all()
    cluster.part(cluster.nodes[:20], cluster.nodes[20:])
    cluster.run(3 * TIMEOUT_MS)
    cluster.heal()
    assert cluster.run(10_000, cluster.full_mesh) < 10_000


def test_a_one_way_cut_makes_both_sides_unreachable() -> None:
    cluster = BusCluster(2, node_timeout_ms=TIMEOUT_MS)
    cluster.join_all()
    first, second = cluster.nodes
    cluster.set_cut({(first.address, second.address)})
    cluster.run(2 * TIMEOUT_MS)
    assert not first.membership.reachable
    assert not second.membership.reachable


def test_a_process_that_slept_does_not_blame_the_others() -> None:
    cluster = BusCluster(3, node_timeout_ms=TIMEOUT_MS)
    cluster.join_all()
    sleeper = cluster.nodes[0]
    membership = sleeper.membership
    cluster.run(1_000)
    sleeper.running = False
    cluster.run(2 * TIMEOUT_MS)
    assert all(node.peer(sleeper).suspected for node in cluster.nodes[1:])
    sleeper.running = True
    sleeper.run()
    assert not any(peer.suspected for peer in membership.peers)
    cluster.run(5_000, cluster.full_mesh)
    assert cluster.full_mesh()
    assert not sleeper.logged("node suspected")


def test_a_suspect_is_cleared_by_its_answer() -> None:
    cluster = BusCluster(3, node_timeout_ms=TIMEOUT_MS)
    cluster.join_all()
    *alive, dead = cluster.nodes
    dead.kill()
    cluster.run(2 * TIMEOUT_MS)
    assert all(node.peer(dead).failed for node in alive)
    back = cluster.restart(dead)
    assert cluster.run(5_000, cluster.full_mesh) < 3_500
    assert not any(node.peer(back).failed or node.peer(back).suspected for node in alive)
    assert all(not node.peer(back).reports for node in alive)


def test_a_shorter_timeout_takes_effect_while_running() -> None:
    cluster = BusCluster(3, node_timeout_ms=15_000)
    cluster.join_all()
    for node in cluster.nodes:
        node.membership.settings.node_timeout_ms = 1_000
    cluster.nodes[2].kill()
    cluster.run(2_500)
    assert cluster.nodes[0].peer(cluster.nodes[2]).failed


def test_a_peer_that_never_takes_its_records_loses_its_link() -> None:
    cluster = BusCluster(2, node_timeout_ms=60_000)
    cluster.join_all()
    first, second = cluster.nodes
    first.bus.settings.buffer_bytes = 20
    cluster.part([first], [second])
    for _ in range(4):
        first.run(first.membership.heartbeat.ping_all)
    assert not first.peer(second).link_up
    assert "does not keep up" in str(first.logged("link lost")[-1]["why"])
