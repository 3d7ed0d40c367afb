"""Random histories of a cluster: whatever happened, it comes together again once the faults end."""

from __future__ import annotations

import random

import pytest
from tests.core.bus_cluster import BusCluster, BusNode

STEPS = 60


class History:
    """One cluster under random faults."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        size = self.random.randint(2, 7)
        timeout_ms = self.random.choice((500, 2_000, 15_000))
        self.cluster = BusCluster(size, node_timeout_ms=timeout_ms)
        self.cluster.chain()
        if self.random.random() < 0.8:
            self.cluster.join_all()

    @property
    def nodes(self) -> list[BusNode]:
        return self.cluster.nodes

    def any_node(self) -> BusNode:
        return self.random.choice(self.nodes)

    def step(self) -> None:
        self.random.choice(
            (self.kill, self.restart, self.restart, self.part, self.part_some, self.heal, self.meet, self.leave, self.sleep)
        )()
        self.cluster.run(self.random.choice((1, 10, 300, 3_000, 20_000)))

    def kill(self) -> None:
        node = self.any_node()
        if node.running:
            node.kill()

    def restart(self) -> None:
        node = self.any_node()
        if not node.running:
            address = f"10.1.{self.random.randint(0, 255)}.{self.random.randint(0, 255)}" if self.random.random() < 0.2 else ""
            self.cluster.restart(node, address=address)

    def part(self) -> None:
        nodes = self.random.sample(self.nodes, len(self.nodes))
        cut = self.random.randint(1, len(nodes))
        self.cluster.part(nodes[:cut], nodes[cut:])

    def part_some(self) -> None:
        """A partial and one-way cut."""
        pairs = [(one.address, other.address) for one in self.nodes for other in self.nodes if one is not other]
        self.cluster.set_cut({pair for pair in pairs if self.random.random() < 0.2})

    def heal(self) -> None:
        self.cluster.heal()

    def meet(self) -> None:
        one, other = self.any_node(), self.any_node()
        if one.running:
            one.meet(other)

    def leave(self) -> None:
        node = self.any_node()
        leaving = self.random.random() < 0.5
        node.run(lambda: node.membership.set_leaving(leaving))

    def sleep(self) -> None:
        """A process is stopped for a while: nobody closes its links."""
        node = self.any_node()
        if node.running:
            node.running = False
            self.cluster.run(self.random.choice((100, 2_000, 30_000)))
            node.running = True
            node.run()

    def settle(self) -> None:
        self.cluster.heal()
        for node in list(self.nodes):
            if not node.running:
                self.cluster.restart(node)
        for node in self.nodes:
            node.run(lambda node=node: node.membership.set_leaving(False))


def check(cluster: BusCluster) -> None:
    for node in cluster.nodes:
        membership = node.membership
        assert membership.members_mask == 1 | sum(peer.bit for peer in membership.peers)
        assert membership.reachable_mask == sum(peer.bit for peer in membership.reachable)
        assert membership.failed_mask == sum(peer.bit for peer in membership.peers if peer.failed)
        assert [peer.slot for peer in membership.by_slot] == list(range(len(membership.by_slot)))
        assert membership.wake_ms < 0 or membership.wake_ms >= membership.now_ms
        assert not any(peer.outbox for peer in membership.peers)
        for peer in membership.peers:
            assert len(peer.incoming) <= 4
            assert peer.link_up == (peer.link is not None)
            assert peer.incoming_up == bool(peer.incoming)


@pytest.mark.parametrize("seed", range(12))
def test_after_any_faults_the_cluster_is_whole_again(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step()
        check(history.cluster)
    history.settle()
    history.cluster.chain()
    took_ms = history.cluster.run(60_000, history.cluster.full_mesh)
    assert took_ms < 30_000
    history.cluster.run(2_000)
    assert history.cluster.full_mesh()
    for node in history.nodes:
        assert not any(peer.suspected or peer.silent_since_ms for peer in node.membership.peers if peer.rtt_ms > 1_000)
    check(history.cluster)


@pytest.mark.parametrize("seed", range(12))
def test_a_dead_node_that_was_forgotten_never_comes_back(seed: int) -> None:
    history = History(1_000 + seed)
    cluster = history.cluster
    cluster.run(10_000, cluster.full_mesh)
    dead = history.any_node()
    dead.kill()
    cluster.run(history.random.choice((10, 1_000, 40_000)))
    alive = [node for node in history.nodes if node is not dead]
    if not alive:
        return
    one = history.random.choice(alive)
    one.run(lambda: one.membership.forget(dead.membership.me.node_id))
    for _ in range(10):
        history.random.choice((history.part, history.part_some, history.heal))()
        cluster.run(history.random.choice((10, 100, 2_000)))
    cluster.heal()
    cluster.run(30_000)
    for node in alive:
        assert dead.membership.me.node_id not in node.knows()
        assert len(node.membership.reachable) == len(alive) - 1
