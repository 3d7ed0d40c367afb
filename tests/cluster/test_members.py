"""Nodes that go for good, and acknowledgements that wait for them."""

from __future__ import annotations

from .nodes import Nodes

UNKNOWN_JOB = b"D-00000000-" + b"a" * 24 + b"-05a1"


def test_one_forget_is_enough() -> None:
    # differs: forget-spreads
    nodes = Nodes(3)
    a, b, c = nodes
    c.kill()
    assert a.ask("CLUSTER", "FORGET", c.id) == b"OK"
    nodes.wait(1000)
    for one in (a, b):
        assert one.ask("CLUSTER", "NODES").count(b"\n") == 2
        assert c.id not in [node[0] for node in one.ask("HELLO")[2:]]
    nodes.wait(30_000)
    assert b.ask("CLUSTER", "NODES").count(b"\n") == 2


def test_acknowledgements_do_not_wait_for_a_node_that_was_forgotten() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    ids = a.add_many(20, "q", "REPLICATE", 3, "RETRY", 60)
    unknown_there = b"D-00000000-" + b"b" * 24 + b"-05a1"
    c.kill()
    nodes.wait(10)
    assert a.ask("ACKJOB", *ids) == 20
    assert b.ask("ACKJOB", unknown_there) == 0
    nodes.wait(60_000)
    assert min(nodes.registered()) >= 20, "the third may come back and has to be told"
    assert b.ask("CLUSTER", "FORGET", c.id) == b"OK"
    nodes.nothing_left(200_000)


def test_the_last_other_node_is_forgotten_while_acknowledgements_wait() -> None:
    nodes = Nodes(2)
    a, b = nodes
    job = a.add("q", "REPLICATE", 2, "RETRY", 60)
    b.kill()
    nodes.wait(10)
    assert a.ask("ACKJOB", UNKNOWN_JOB) == 0
    assert a.ask("ACKJOB", job) == 1
    assert a.ask("CLUSTER", "FORGET", b.id) == b"OK"
    nodes.nothing_left(2000)  # at the second try, 1.5 s after the first at the latest
    nodes.wait(400_000)
    assert nodes.registered() == [0]


def test_a_node_that_comes_back_with_its_id_is_the_owner_that_it_was() -> None:
    nodes = Nodes(2)
    a, b = nodes
    job = a.add("q", "REPLICATE", 2, "RETRY", 60)
    assert a.ask("CLUSTER", "FORGET", b.id) == b"OK"
    nodes.wait(1000)
    nodes.cluster.meet(a.machine, b.machine)
    nodes.joined()
    assert sorted(a.show(job)["nodes-delivered"]) == sorted([a.id, b.id])
    assert b.ask("ACKJOB", job) == 1
    nodes.nothing_left()


def test_a_restarted_node_has_forgotten_and_is_no_reason_to_wait() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    ids = a.add_many(20, "q", "REPLICATE", 3, "RETRY", 60)
    c.kill()
    assert a.ask("ACKJOB", *ids) == 20
    c.start()
    nodes.joined()
    nodes.nothing_left(30_000)
    assert sum(nodes.lengths("q")) == 0
    del b


def test_a_cluster_of_one_that_grows_and_shrinks() -> None:
    nodes = Nodes(2)
    a, b = nodes
    for _ in range(3):
        jobs = a.add_many(5, "q", "REPLICATE", 2, "RETRY", 5)
        assert b.get("q", 5)
        assert b.ask("ACKJOB", *jobs) == 5
        nodes.nothing_left()
        assert b.ask("CLUSTER", "RESET") == b"OK"
        assert a.ask("CLUSTER", "FORGET", b.id) == b"OK"
        nodes.wait(500)
        assert a.show(a.add("alone"))["repl"] == 1
        a.ask("DEBUG", "FLUSHALL")
        nodes.cluster.meet(a.machine, b.machine)
        nodes.joined()


def test_hello_gives_every_node_an_address() -> None:
    nodes = Nodes(3)
    for one in nodes:
        entries = one.ask("HELLO")[2:]
        assert sorted(entry[1] for entry in entries) == [b"10.0.0.1", b"10.0.0.2", b"10.0.0.3"]
        assert {entry[3] for entry in entries} == {b"1"}


def test_a_node_that_is_back_is_dialled_at_once_also_by_one_that_has_not_seen_it_before() -> None:
    nodes = Nodes(2)
    a, b = nodes
    b.kill()
    a.kill()
    a.start()
    for waited_ms in (10_000, 10_700):  # in the middle of the pauses between dials, which are long by now
        nodes.wait(waited_ms)
        b.start()
        assert nodes.until(nodes.cluster.is_joined) < 100
        b.kill()
