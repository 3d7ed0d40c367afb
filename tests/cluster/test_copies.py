"""ADDJOB and its copies: what is promised is there, what fails leaves nothing."""

from __future__ import annotations

import pytest

from disqueue.core.job import WAIT_REPL, Job
from disqueue.core.journal_port import JournalPort
from disqueue.wire.job_records import QUEUED_DELIVERY, Store

from .nodes import Nodes, OneNode


def copies(nodes: Nodes, job: bytes) -> int:
    return sum(one.job(job) is not None for one in nodes.running)


def stores(one: OneNode) -> list[Store]:
    """Return the list that all `Store`s which reach a node from now on are put into."""
    bus = one.machine.process.bus
    deliver, found = bus.deliver, []

    def watch(peer, records) -> None:  # type: ignore[no-untyped-def]
        found.extend(record for record in records if isinstance(record, Store))
        deliver(peer, records)

    bus.deliver = watch
    return found


@pytest.mark.parametrize("wanted", [1, 2, 3, 4, 5])
def test_as_many_copies_as_asked_for_when_the_id_is_answered(wanted: int) -> None:
    nodes = Nodes(5)
    for number in range(10):
        job = nodes[number % 5].add("q", "REPLICATE", wanted, body=number)
        assert copies(nodes, job) == wanted


def test_the_default_follows_what_can_be_reached() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    assert a.show(a.add("q"))["repl"] == 3
    c.kill()
    nodes.wait(10)
    assert a.show(a.add("q", timeout_ms=700))["repl"] == 2
    nodes.wait(30_000)
    assert a.show(a.add("q", timeout_ms=700))["repl"] == 2
    b.kill()
    nodes.wait(10)
    assert a.show(a.add("q", timeout_ms=700))["repl"] == 1


def test_the_producer_is_told_why_others_keep_no_copy() -> None:
    nodes = Nodes(2)
    assert nodes[1].ask("CONFIG", "SET", "max-job-size", 10) == b"OK"
    reply = nodes[0].ask("ADDJOB", "q", "x" * 11, 200, "REPLICATE", 2)
    assert reply.endswith(", since others refuse a copy: it is larger than their max-job-size or max-queue-name-bytes allows")
    nodes[1].add("q", "REPLICATE", 1)
    assert nodes[1].ask("CONFIG", "SET", "maxmemory", 1) == b"OK"
    assert "short of memory" in nodes[0].ask("ADDJOB", "q", "x", 200, "REPLICATE", 2)
    assert nodes.registered() == [0, 1]


def test_too_many_copies_are_refused_at_once_and_leave_nothing() -> None:
    nodes = Nodes(2)
    start_ms = nodes.world.now_ms
    assert nodes[0].ask("ADDJOB", "q", "x", 0, "REPLICATE", 3).startswith("NOREPL ")
    assert nodes.world.now_ms - start_ms < 10
    assert nodes.registered() == [0, 0]


def test_a_timeout_deletes_the_copies_that_were_made() -> None:
    nodes = Nodes(3)
    a, _b, c = nodes
    c.machine.process.pause(True)
    start_ms = nodes.world.now_ms
    assert a.ask("ADDJOB", "q", "x", 700, "REPLICATE", 3).startswith("NOREPL Timeout ")
    assert 700 <= nodes.world.now_ms - start_ms <= 720
    c.machine.process.pause(False)
    nodes.nothing_left(1000)
    nodes.wait(5000)
    assert nodes.registered() == [0, 0, 0]


def test_another_node_takes_the_place_of_one_that_hangs() -> None:
    nodes = Nodes(4)
    a = nodes[0]
    nodes[1].machine.process.pause(True)
    for number in range(20):
        start_ms = nodes.world.now_ms
        job = a.add("q", "REPLICATE", 3, body=number)
        assert nodes.world.now_ms - start_ms <= 60
        assert copies(nodes, job) >= 3


def test_no_copy_is_sent_twice_over_a_long_way() -> None:
    nodes = Nodes(2, latency_ms=(100, 100))
    nodes.wait(10_000)  # round trips are measured
    arrived = stores(nodes[1])
    for number in range(20):
        nodes[0].add("q", "REPLICATE", 2, body=number)
    assert sum(len(record.jobs) for record in arrived) == 20


def test_a_node_that_does_not_answer_gets_the_body_a_few_times_only() -> None:
    nodes = Nodes(2)
    a, b = nodes
    b.machine.process.pause(True)
    client = a.caller()
    client.send("ADDJOB", "q", "x" * 1000, 0, "REPLICATE", 2)
    arrived = stores(b)
    nodes.wait(2000)
    b.machine.process.pause(False)
    assert isinstance(client.reply(), bytes)
    assert sum(len(record.jobs) for record in arrived) <= 7


def test_a_client_that_goes_leaves_nothing() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    b.machine.process.pause(True)
    client = a.caller()
    client.send("ADDJOB", "q", "x", 0, "REPLICATE", 3)
    nodes.until(lambda: len(c.node.jobs) > 0)
    client.close()
    b.machine.process.pause(False)
    nodes.nothing_left(2000)


def test_a_job_that_is_acknowledged_while_its_producer_waits() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    b.machine.process.pause(True)
    client = a.caller()
    client.send("ADDJOB", "q", "x", 0, "REPLICATE", 3)
    nodes.until(lambda: len(c.node.jobs) > 0)
    job = next(iter(a.node.jobs))
    assert job.state == WAIT_REPL
    assert a.ask("ACKJOB", job.id) == 1
    assert client.reply() == job.id
    b.machine.process.pause(False)
    nodes.nothing_left(20_000)
    nodes.wait(5000)
    assert nodes.lengths("q") == [0, 0, 0]


@pytest.mark.parametrize("command", ["ACKJOB", "DELJOB", "FASTACK"])
def test_a_copy_that_is_ended_before_its_producer_knows(command: str) -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    b.machine.process.pause(True)
    client = a.caller()
    client.send("ADDJOB", "q", "x", 0, "REPLICATE", 3)
    nodes.until(lambda: len(c.node.jobs) > 0)
    job = next(iter(c.node.jobs)).id
    assert c.ask(command, job) == 1
    nodes.wait(100)
    b.machine.process.pause(False)
    client.reply()
    nodes.nothing_left(20_000)
    nodes.wait(5000)
    assert nodes.lengths("q") == [0, 0, 0]


def test_a_ttl_that_ends_while_the_producer_waits() -> None:
    nodes = Nodes(2)
    a, b = nodes
    b.machine.process.pause(True)
    assert a.ask("ADDJOB", "q", "x", 0, "REPLICATE", 2, "TTL", 2, "RETRY", 1).startswith("NOREPL job removed ")
    b.machine.process.pause(False)
    nodes.nothing_left(3000)


def test_async_copies_are_made_in_the_background() -> None:
    nodes = Nodes(4)
    a = nodes[0]
    nodes[1].machine.process.pause(True)
    nodes[2].machine.process.pause(True)
    start_ms = nodes.world.now_ms
    job = a.add("q", "REPLICATE", 3, "ASYNC")
    assert nodes.world.now_ms - start_ms < 10
    nodes.until(lambda: nodes[3].job(job) is not None, 300)
    nodes[1].machine.process.pause(False)
    nodes[2].machine.process.pause(False)
    nodes.until(lambda: a.node.jobs.get(job).waiter is None, 5000)
    assert copies(nodes, job) >= 3
    assert a.ask("ACKJOB", job) == 1
    nodes.nothing_left()


def test_a_remote_pause_is_told_to_the_producer() -> None:
    # differs: pause-elsewhere
    nodes = Nodes(3)
    a, b, _c = nodes
    assert b.ask("PAUSE", "q", "in") == b"in"
    start_ms = nodes.world.now_ms
    assert a.ask("ADDJOB", "q", "x", 800, "REPLICATE", 3).startswith("PAUSED ")
    assert nodes.world.now_ms - start_ms < 100
    nodes.nothing_left(1000)
    assert a.add("q", "REPLICATE", 2)  # the other one takes it
    assert b.ask("PAUSE", "q", "none") == b"none"
    a.add("q", "REPLICATE", 3)


def test_pause_on_all_nodes() -> None:
    nodes = Nodes(3)
    a, b, c = nodes
    assert b.ask("PAUSE", "q", "in", "bcast") == b"in"
    nodes.wait(10)
    for one in nodes:
        assert one.ask("PAUSE", "q", "state") == b"in"
        assert one.ask("ADDJOB", "q", "x", 100).startswith("PAUSED ")
    assert c.ask("PAUSE", "q", "out", "bcast") == b"out"
    nodes.wait(10)
    job = a.add("q", "REPLICATE", 1)
    assert b.ask("GETJOB", "TIMEOUT", 300, "FROM", "q") is None
    assert a.ask("GETJOB", "NOHANG", "FROM", "q") is None
    assert a.ask("PAUSE", "q", "none", "bcast") == b"none"
    assert b.get("q") == [job]


def test_a_moved_job_is_not_delivered_by_a_queue_that_is_paused_in_output() -> None:
    nodes = Nodes(2)
    a, b = nodes
    consumer = b.caller()
    consumer.send("GETJOB", "FROM", "q")
    nodes.wait(10)
    assert b.ask("PAUSE", "q", "out") == b"out"
    job = a.add("q", "REPLICATE", 1, "RETRY", 1)
    nodes.wait(5000)
    assert not consumer.replies
    assert sum(nodes.lengths("q")) == 1
    assert b.ask("PAUSE", "q", "none") == b"none"
    assert consumer.reply()[0][1] == job


def test_above_three_quarters_of_the_memory_others_keep_the_jobs() -> None:
    nodes = Nodes(4)
    a = nodes[0]
    for number in range(100):
        a.add("full", "REPLICATE", 1, body="x" * 1000 + str(number))
    a.ask("CONFIG", "SET", "maxmemory", a.node.memory_bytes() * 5 // 4)
    kept = len(a.node.jobs)
    ids = [a.add("q", "REPLICATE", 1 + number % 3, "RETRY", 5) for number in range(40)]
    ids += [a.add("q", "RETRY", 0) for _ in range(10)]
    ids += [a.add("q", "REPLICATE", 2, "ASYNC") for _ in range(10)]
    assert len(a.node.jobs) <= kept + 20
    nodes.wait(1000)
    assert len(a.node.jobs) == kept
    assert sum(nodes.lengths("q")) == len(ids)
    assert nodes.lengths("q")[0] == 0
    assert sorted(nodes[3].get("q", len(ids))) == sorted(ids)
    start_ms = nodes.world.now_ms
    job = a.add("q", "REPLICATE", 2, "DELAY", 2, "RETRY", 5)
    assert nodes[1].get("q") == [job]
    assert 1990 <= nodes.world.now_ms - start_ms < 2200
    job = a.add("q", "RETRY", 0, "DELAY", 2)
    assert nodes[1].get("q") == [job]
    assert a.ask("ADDJOB", "q", "x", 0, "REPLICATE", 4).startswith("NOREPL ")


def test_the_journal_hears_of_a_job_when_its_copies_are_made() -> None:
    """Not before: it does not hear of the end of one that fails."""
    nodes = Nodes(3)
    a, b, c = nodes
    for one in (b, c):
        one.machine.process.pause(True)
    heard: list[bytes] = []

    class Watch(JournalPort):
        def job_changed(self, job: Job) -> None:
            heard.append(job.id)

    a.node.journal = Watch()
    caller = a.caller()
    caller.send("ADDJOB", "q", "x", 300, "REPLICATE", 3)
    nodes.wait(10)
    (job,) = a.node.jobs
    a.node.owner_queued(a.node.members.find(b.id), job.id, QUEUED_DELIVERY)
    assert job.deliveries == 1
    assert heard == []
