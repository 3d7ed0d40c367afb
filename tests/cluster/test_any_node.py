"""Commands that name a job work on every node."""

from __future__ import annotations

import pytest

from .nodes import Nodes

UNKNOWN_JOB = b"D-00000000-" + b"a" * 24 + b"-05a1"
UNKNOWN_ONCE = b"D-00000000-" + b"a" * 24 + b"-05a0"


def test_nack_on_a_node_without_a_copy() -> None:
    # differs: any-node
    nodes = Nodes(3)
    a, b, _c = nodes
    job = a.add("q", "REPLICATE", 1, "RETRY", 60)
    assert a.get("q") == [job]
    assert b.ask("NACK", job) == 1
    assert nodes.lengths("q") == [1, 0, 0]
    assert a.show(job)["nacks"] == 1


def test_working_on_a_node_without_a_copy() -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    job = a.add("q", "REPLICATE", 1, "RETRY", 2)
    assert a.get("q") == [job]
    for _ in range(5):
        nodes.wait(1500)
        assert b.ask("WORKING", job) == 2
        assert nodes.lengths("q") == [0, 0, 0]
    assert b.ask("WORKING", UNKNOWN_JOB).startswith("NOJOB ")


def test_deljob_deletes_every_copy_also_of_owners_that_are_away() -> None:
    # differs: delete-everywhere
    nodes = Nodes(3)
    a, _b, _c = nodes
    job = a.add("q", "REPLICATE", 3, "RETRY", 2)
    away = a.add("q", "REPLICATE", 3, "RETRY", 8)
    assert a.ask("DELJOB", job) == 1
    nodes.partition((0, 1), (2,))
    assert a.ask("DELJOB", away) == 1
    assert a.show(away) == {}
    nodes.wait(4000)
    assert nodes.lengths("q") == [0, 0, 0]
    nodes.heal()
    nodes.nothing_left(20_000)
    nodes.wait(10_000)
    assert nodes.lengths("q") == [0, 0, 0]


@pytest.mark.parametrize("command", ["DELJOB", "FASTACK", "ACKJOB"])
def test_ending_a_job_on_a_node_without_a_copy(command: str) -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    ids = a.add_many(20, "q", "REPLICATE", 1, "RETRY", 2)
    assert b.ask(command, *ids) == 20
    nodes.nothing_left()
    nodes.wait(6000)
    assert nodes.lengths("q") == [0, 0, 0]


@pytest.mark.parametrize("command", ["DELJOB", "FASTACK", "ACKJOB"])
def test_ending_an_at_most_once_job_on_a_node_without_it(command: str) -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    job = a.add("q", "RETRY", 0)
    assert b.ask(command, job) == 1
    nodes.nothing_left()
    assert b.ask(command, UNKNOWN_ONCE) == 0
    assert nodes.registered() == [0, 0, 0]


def test_enqueue_and_dequeue_on_a_node_without_a_copy() -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    job = a.add("q", "REPLICATE", 1, "RETRY", 60)
    assert b.ask("DEQUEUE", job) == 1
    assert nodes.lengths("q") == [0, 0, 0]
    assert b.ask("ENQUEUE", job) == 1
    assert nodes.lengths("q") == [1, 0, 0]


@pytest.mark.parametrize("command", ["DELJOB", "FASTACK", "ACKJOB", "NACK", "ENQUEUE", "DEQUEUE"])
def test_an_id_that_nobody_knows_is_answered_at_once_and_leaves_nothing(command: str) -> None:
    nodes = Nodes(3)
    start_ms = nodes.world.now_ms
    assert nodes[0].ask(command, UNKNOWN_JOB) == 0
    assert nodes.world.now_ms - start_ms < 100
    nodes.nothing_left(100)


def test_a_node_that_hangs_delays_a_command_by_half_a_second_each() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    job = a.add("q", "REPLICATE", 1, "RETRY", 60)
    assert a.get("q") == [job]
    a.machine.process.pause(True)
    start_ms = nodes.world.now_ms
    assert b.ask("NACK", job) == 0
    assert nodes.world.now_ms - start_ms < 2500
    assert c.ask("WORKING", job).startswith("NOJOB ")
    a.machine.process.pause(False)
    nodes.joined()


def test_an_acknowledgement_of_a_job_whose_owner_is_away_waits_for_it() -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    job = a.add("q", "REPLICATE", 1, "RETRY", 3)
    assert a.get("q") == [job]
    nodes.partition((0,), (1, 2))
    start_ms = nodes.world.now_ms
    assert b.ask("ACKJOB", job) == 0
    assert nodes.world.now_ms - start_ms <= 2500
    nodes.wait(1000)
    nodes.heal()
    nodes.nothing_left(20_000)
    nodes.wait(5000)
    assert nodes.lengths("q") == [0, 0, 0]


def test_show_of_an_unknown_acknowledged_job_shows_only_what_is_known() -> None:
    nodes = Nodes(3)
    a, _b, c = nodes
    c.kill()
    nodes.wait(100)
    assert a.ask("ACKJOB", UNKNOWN_JOB) == 0
    shown = a.show(UNKNOWN_JOB)
    assert shown["state"] == b"acked"
    assert shown["id"] == UNKNOWN_JOB
    zero = ("repl", "ctime", "delay", "retry", "nacks", "additional-deliveries")
    assert [shown[name] for name in zero] == [0] * len(zero)
    assert (shown["queue"], shown["body"]) == (None, None)


def test_working_on_an_acknowledged_job_says_so() -> None:
    nodes = Nodes(2)
    a, b = nodes
    job = a.add("q", "REPLICATE", 2, "RETRY", 10)
    nodes.partition((0,), (1,))
    assert a.ask("ACKJOB", job) == 1
    assert a.ask("WORKING", job).startswith("ACKED ")
    nodes.heal()
    nodes.nothing_left()
    assert b.ask("WORKING", job).startswith("NOJOB ")


def test_acknowledgements_of_unknown_jobs_are_limited() -> None:
    nodes = Nodes(2)
    a, b = nodes
    b.kill()
    nodes.wait(100)
    for number in range(100_000):
        assert a.node.make_placeholder(b"D-00000000-%024d-05a1" % number) is not None
    assert a.ask("ACKJOB", UNKNOWN_JOB) == 0
    assert len(a.node.jobs) == a.node.placeholders == 100_000


def test_queue_figures_are_of_the_node_that_is_asked() -> None:
    nodes = Nodes(3)
    nodes[0].add_many(3, "q", "REPLICATE", 1)
    assert [one.ask("QLEN", "q") for one in nodes] == [3, 0, 0]
    assert [len(one.ask("QPEEK", "q", 10)) for one in nodes] == [3, 0, 0]


def test_maxlen_is_of_the_node_that_is_asked() -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    a.add_many(3, "q", "REPLICATE", 1)
    assert a.ask("ADDJOB", "q", "x", 0, "MAXLEN", 3, "REPLICATE", 1).startswith("MAXLEN ")
    b.add("q", "MAXLEN", 3, "REPLICATE", 1)
