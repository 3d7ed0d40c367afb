"""Jobs that are added on one node and consumed on another: delivered once, acknowledged everywhere, forgotten everywhere."""

from __future__ import annotations

import pytest

from .nodes import Nodes


def test_jobs_consumed_on_another_node_do_not_come_back() -> None:
    nodes = Nodes(3)
    a, _b, c = nodes
    a.add_many(20, "q", "REPLICATE", 1, "RETRY", 3)
    queued = nodes.watch_queueing()
    got = c.get("q", 20)
    assert len(set(got)) == 20
    assert c.ask("ACKJOB", *got) == 20
    assert nodes.nothing_left() < 2000
    nodes.wait(10_000)
    assert nodes.lengths("q") == [0, 0, 0]
    assert max(queued.values()) == 1, "queued once more, where it was sent"


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_a_long_stream_from_one_node_to_another(copies: int) -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    consumer, seen, acked = b.caller(), [], 0
    for number in range(0, 1000, 20):
        for one in range(20):
            a.add("q", "REPLICATE", copies, "RETRY", 1, body=number + one)
        while len(seen) < number + 20:
            jobs = [job[1] for job in consumer.ask("GETJOB", "COUNT", 50, "FROM", "q")]
            seen += jobs
            acked += consumer.ask("ACKJOB", *jobs)
    assert len(set(seen)) == len(seen) == acked == 1000
    assert nodes.nothing_left() < 5000
    nodes.wait(5000)
    assert nodes.lengths("q") == [0, 0, 0]


def test_at_most_once_jobs_are_forgotten_soon_after_delivery() -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    ids = a.add_many(10, "q", "REPLICATE", 1, "RETRY", 0)
    assert sorted(b.get("q", 10)) == sorted(ids)
    nodes.wait(15_000)
    assert nodes.registered() == [0, 0, 0]


def test_at_most_once_jobs_move_without_loss_and_without_a_second_delivery() -> None:
    nodes = Nodes(3)
    consumers = [one.caller() for one in nodes]
    for consumer in consumers:
        consumer.send("GETJOB", "COUNT", 100, "FROM", "q")
    ids, seen = [], []
    for number in range(300):
        ids.append(nodes[number % 3].add("q", "RETRY", 0, body=number))
        for consumer in consumers:
            while consumer.replies:
                seen += [job[1] for job in consumer.reply()]
                consumer.send("GETJOB", "COUNT", 100, "FROM", "q")
    nodes.wait(1000)
    seen += [job[1] for consumer in consumers for reply in consumer.replies for job in reply]
    assert sorted(seen) == sorted(ids)


def test_an_ack_waits_for_every_owner_of_a_moved_job() -> None:
    """Owners P and Q, moved to N, acknowledged at N while Q is away: nobody may forget the ack before Q knows."""
    nodes = Nodes(3)
    p, q, n = nodes
    job = p.add("q", "REPLICATE", 2, "RETRY", 4)
    if q.job(job) is None:
        q, n = n, q
    assert n.get("q") == [job]
    queued = nodes.watch_queueing()
    nodes.partition((nodes.all.index(q),), (0, nodes.all.index(n)))
    assert n.ask("ACKJOB", job) == 1
    nodes.wait(1500)
    assert p.job(job) is not None
    assert n.job(job) is not None
    nodes.heal()
    nodes.nothing_left(60_000)
    assert not queued[job]


def test_an_acknowledgement_outlives_an_owner_that_is_away_longer_than_the_lease() -> None:
    nodes = Nodes(3)
    a, _b, c = nodes
    ids = a.add_many(10, "q", "REPLICATE", 3, "RETRY", 2)
    nodes.partition((0, 1), (2,))
    assert sorted(a.get("q", 10)) == sorted(ids)
    assert a.ask("ACKJOB", *ids) == 10
    nodes.wait(10_000)
    again = c.node.queues[b"q"].jobs.count
    assert again == 10, "the other side cannot know, and delivers"
    nodes.heal()
    nodes.nothing_left(60_000)
    assert nodes.lengths("q") == [0, 0, 0]


def test_a_moved_job_that_waits_longer_than_its_retry_is_queued_on_one_node_only() -> None:
    nodes = Nodes(2)
    a, b = nodes
    first = b.caller()
    first.send("GETJOB", "FROM", "q")
    nodes.wait(10)
    first.close()  # the demand stands for a moment: the job goes over, and nobody is there
    job = a.add("q", "REPLICATE", 1, "RETRY", 2)
    nodes.wait(20)
    assert nodes.lengths("q") == [0, 1]
    for _ in range(20):
        nodes.wait(500)
        assert sum(nodes.lengths("q")) == 1
    assert b.get("q") == [job]


def test_a_job_acknowledged_at_the_importer_is_not_queued_by_a_late_move() -> None:
    nodes = Nodes(2)
    a, b = nodes
    b.caller().send("GETJOB", "FROM", "q")
    nodes.wait(10)
    nodes.partition((0,), (1,))
    job = a.add("q", "REPLICATE", 1, "RETRY", 60)
    assert b.ask("ACKJOB", job) == 0  # nobody to ask; kept
    queued = nodes.watch_queueing()
    nodes.heal()
    nodes.nothing_left(20_000)
    assert not queued[job]


def test_copies_on_all_nodes_are_delivered_by_one() -> None:
    nodes = Nodes(5)
    a = nodes[0]
    ids = a.add_many(50, "q", "REPLICATE", 5, "RETRY", 1)
    for _ in range(40):
        nodes.wait(100)
        assert sum(nodes.lengths("q")) == 50
    assert len(set(nodes[3].get("q", 50))) == 50
    assert nodes[3].ask("ACKJOB", *ids) == 50
    nodes.nothing_left()


def test_a_lease_is_kept_by_all_owners() -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    job = a.add("q", "REPLICATE", 3, "RETRY", 4)
    nodes.wait(3000)  # in the queue: does not count
    others = [one.caller() for one in nodes]
    start_ms = nodes.world.now_ms
    assert b.get("q") == [job]
    for other in others:
        other.send("GETJOB", "FROM", "q")
    nodes.until(lambda: any(other.replies for other in others))
    assert nodes.world.now_ms - start_ms >= 4000
    assert nodes.world.now_ms - start_ms < 6000


def test_working_keeps_the_lease_on_all_owners() -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    job = a.add("q", "REPLICATE", 3, "RETRY", 2, "TTL", 100)
    assert b.get("q") == [job]
    for _ in range(10):
        nodes.wait(1500)
        assert b.ask("WORKING", job) == 2
        assert nodes.lengths("q") == [0, 0, 0]


def test_a_worker_that_dies_with_its_node_gives_the_job_to_another() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    job = a.add("q", "REPLICATE", 3, "RETRY", 2)
    assert b.get("q") == [job]
    b.kill()
    assert nodes.until(lambda: sum(nodes.lengths("q")) > 0) < 4000
    nodes.wait(3000)
    assert sum(nodes.lengths("q")) == 1
    assert c.get("q") == [job]
    assert c.ask("ACKJOB", job) == 1
    b.start()
    nodes.joined()
    nodes.nothing_left(60_000)


def test_after_a_partition_one_of_two_queues_keeps_the_job() -> None:
    nodes = Nodes(2)
    a, b = nodes
    ids = a.add_many(30, "q", "REPLICATE", 2, "RETRY", 1)
    nodes.partition((0,), (1,))
    nodes.wait(4000)
    assert nodes.lengths("q") == [30, 30]
    nodes.heal()
    nodes.until(lambda: sum(nodes.lengths("q")) == 30)
    nodes.wait(5000)
    assert sum(nodes.lengths("q")) == 30
    assert min(nodes.lengths("q")) > 5, "fair between the two"
    got = a.get("q", 30) if nodes.lengths("q")[0] else b.get("q", 30)
    assert sorted(got) == sorted(ids)


def test_a_delayed_job_is_due_once_on_one_node() -> None:
    nodes = Nodes(3)
    a, _b, c = nodes
    job = a.add("q", "REPLICATE", 3, "DELAY", 3, "RETRY", 1)
    start_ms = nodes.world.now_ms
    consumers = [one.caller() for one in nodes]
    for consumer in consumers:
        consumer.send("GETJOB", "FROM", "q")
    nodes.until(lambda: any(consumer.replies for consumer in consumers))
    assert 2990 <= nodes.world.now_ms - start_ms < 3100
    assert sum(len(consumer.replies) for consumer in consumers) == 1
    assert c.ask("ACKJOB", job) == 1
    nodes.nothing_left()


def test_a_delayed_job_survives_its_node() -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    job = a.add("q", "REPLICATE", 3, "DELAY", 5, "RETRY", 2)
    a.kill()
    start_ms = nodes.world.now_ms
    assert b.get("q", timeout_ms=20_000) == [job]
    assert 5000 <= nodes.world.now_ms - start_ms < 10_000


def test_a_job_never_outlives_its_ttl_by_moving() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    a.add("q", "REPLICATE", 3, "TTL", 5, "RETRY", 1)
    start_ms = nodes.world.now_ms
    for number in range(8):
        (b if number % 2 else c).ask("GETJOB", "TIMEOUT", 600, "FROM", "q")
    nodes.until(lambda: not any(nodes.registered()))
    assert 4990 <= nodes.world.now_ms - start_ms <= 5100


def test_jobs_keep_their_order_when_they_move_together() -> None:
    nodes = Nodes(2)
    a, b = nodes
    ids = a.add_many(200, "q", "REPLICATE", 1)
    assert b.get("q", 200) == ids


def test_nacked_jobs_go_behind_and_count_on_all_owners() -> None:
    nodes = Nodes(3)
    a, b, _c = nodes
    job = a.add("q", "REPLICATE", 3, "RETRY", 10)
    rest = a.add_many(3, "q", "REPLICATE", 3, "RETRY", 10)
    assert a.get("q") == [job]
    assert b.ask("NACK", job) == 1
    assert sum(nodes.lengths("q")) == 4
    nodes.wait(10)
    assert [one.show(job)["nacks"] for one in nodes] == [1, 1, 1]
    assert sum(one.show(job)["state"] == b"queued" for one in nodes) == 1
    nodes.wait(30_000)
    seen = [job_id for one in nodes for job_id in one.get("q", 4, timeout_ms=100)]
    assert sorted(seen) == sorted([job, *rest])
