"""Consumers are served from other nodes: at once, fairly, and without a storm when there is nothing."""

from __future__ import annotations

from .nodes import Nodes


def test_a_waiting_consumer_gets_a_job_of_another_node_within_milliseconds() -> None:
    # differs: served-at-once
    nodes = Nodes(3)
    a, _b, c = nodes
    consumer = c.caller()
    for number in range(100):
        consumer.send("GETJOB", "FROM", "q")
        nodes.wait(5 if number % 2 else 10_000)
        start_ms = nodes.world.now_ms
        job = a.add("q", "REPLICATE", 1, body=number)
        assert consumer.reply()[0][1] == job
        assert nodes.world.now_ms - start_ms <= 6
        assert c.ask("ACKJOB", job) == 1


def test_a_consumer_that_comes_later_gets_what_waits_elsewhere() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    job = a.add("q", "REPLICATE", 1)
    nodes.wait(60_000)
    start_ms = nodes.world.now_ms
    assert c.get("q") == [job]
    assert nodes.world.now_ms - start_ms <= 6
    nodes.wait(10_000)
    other = b.add("q", "REPLICATE", 1)
    assert c.ask("GETJOB", "NOHANG", "FROM", "q") is None
    nodes.wait(10)
    assert c.ask("GETJOB", "NOHANG", "FROM", "q")[0][1] == other, "a polling consumer is served at its next try"


def test_nodes_with_consumers_get_equal_shares() -> None:
    nodes = Nodes(4)
    a, consumers = nodes[0], [one.caller() for one in nodes.all[1:]]
    seen = [0, 0, 0]
    for consumer in consumers:
        consumer.send("GETJOB", "FROM", "q")
    nodes.wait(10)
    for number in range(300):
        a.add("q", "REPLICATE", 1, body=number)
        for index, consumer in enumerate(consumers):
            while consumer.replies:
                seen[index] += len(consumer.reply())
                consumer.send("GETJOB", "FROM", "q")
    nodes.wait(100)
    seen = [count + len(consumer.replies) for count, consumer in zip(seen, consumers, strict=True)]
    assert sum(seen) == 300
    assert min(seen) > 60


def test_jobs_wait_where_they_are_while_nobody_wants_them() -> None:
    nodes = Nodes(3)
    a, _b, _c = nodes
    nodes.wait(5000)
    before = nodes.records()
    a.add_many(500, "q", "REPLICATE", 1)
    nodes.wait(20_000)
    assert nodes.lengths("q") == [500, 0, 0]
    assert all(after - earlier < 200 for after, earlier in zip(nodes.records(), before, strict=True))


def test_ten_thousand_empty_queues_with_consumers_do_not_storm() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    waiting = []
    for number in range(100):
        consumer = (b, c)[number % 2].caller()
        consumer.send("GETJOB", "FROM", *[f"q{number * 100 + one}" for one in range(100)])
        waiting.append(consumer)
    nodes.wait(5000)
    assert len(a.node.queues) == 10_000
    before = nodes.records()
    nodes.wait(60_000)
    assert all(after - earlier < 400 for after, earlier in zip(nodes.records(), before, strict=True)), "pings only"
    job = a.add("q5050", "REPLICATE", 1)
    nodes.wait(10)
    assert [consumer.reply()[0][1] for consumer in waiting if consumer.replies] == [job]
    assert c.ask("ACKJOB", job) == 1
    for consumer in waiting:
        consumer.close()
    nodes.wait(600_000)
    assert [len(one.node.queues) for one in nodes] == [0, 0, 0]


def test_many_polls_of_many_names_leave_nothing() -> None:
    nodes = Nodes(3)
    for number in range(1000):
        assert nodes[number % 3].ask("GETJOB", "NOHANG", "FROM", f"poll{number}") is None
    nodes.wait(600_000)
    assert [len(one.node.queues) for one in nodes] == [0, 0, 0]
    assert [one.node.timers.count for one in nodes] == [0, 0, 0]


def test_an_idle_cluster_sends_pings_only() -> None:
    nodes = Nodes(7)
    nodes.wait(10_000)
    before = nodes.records()
    nodes.wait(60_000)
    assert all(after - earlier <= 60 * 8 for after, earlier in zip(nodes.records(), before, strict=True))


def test_a_demand_does_not_outlive_a_broken_link() -> None:
    nodes = Nodes(2)
    a, b = nodes
    consumer = b.caller()
    consumer.send("GETJOB", "COUNT", 1000, "FROM", "q")
    nodes.wait(10)
    b.kill()
    ids = a.add_many(20, "q", "REPLICATE", 1, "RETRY", 60)
    once = a.add_many(20, "q", "RETRY", 0)
    b.start()
    nodes.joined()
    assert sorted(a.get("q", 40)) == sorted(ids + once), "what was on its way is here"


def test_a_count_of_any_size_is_harmless() -> None:
    nodes = Nodes(2)
    a, b = nodes
    a.add_many(1500, "q", "REPLICATE", 1)
    consumer = b.caller()
    seen: list[bytes] = []
    while len(seen) < 1500:
        seen += [job[1] for job in consumer.ask("GETJOB", "COUNT", 1_000_000, "FROM", "q")]
    assert len(set(seen)) == 1500


def test_import_figures() -> None:
    nodes = Nodes(2)
    a, b = nodes
    consumer = b.caller()
    for number in range(50):
        a.add("q", "REPLICATE", 1, body=number)
        assert consumer.ask("GETJOB", "FROM", "q")
        nodes.wait(100)
    stat = dict(zip(*[iter(b.ask("QSTAT", "q"))] * 2, strict=True))
    assert stat[b"import-from"] == [a.id]
    assert 5 <= stat[b"import-rate"] <= 20
    assert stat[b"imported"] == 50
    nodes.wait(20_000)
    stat = dict(zip(*[iter(b.ask("QSTAT", "q"))] * 2, strict=True))
    assert (stat[b"import-from"], stat[b"import-rate"]) == ([], 0)
