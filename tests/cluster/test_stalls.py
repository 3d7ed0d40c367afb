"""A process that was stopped for a while, or whose machine was: others may have its jobs, and it asks before it hands one out."""

from __future__ import annotations

import pytest

from tests.cluster.nodes import Nodes, OneNode

RETRY_S = 5
STALL_MS = 12_000
"""Longer than RETRY, and than the timeout after which the other nodes have given it up."""


def pause(one: OneNode, paused: bool) -> None:
    assert one.machine.process is not None
    one.machine.process.pause(paused)


@pytest.mark.parametrize("leased", [False, True])
def test_what_others_have_done_meanwhile_is_not_delivered_again(leased: bool) -> None:
    nodes = Nodes(2)
    job_id = nodes[0].add("q", "RETRY", RETRY_S, "REPLICATE", 2, timeout_ms=1000)
    if leased:
        assert nodes[0].get("q") == [job_id]
    pause(nodes[0], True)
    consumer = nodes[1].caller()
    assert consumer.ask("GETJOB", "TIMEOUT", 2000 * RETRY_S, "FROM", "q")[0][1] == job_id
    assert consumer.ask("ACKJOB", job_id) == 1
    nodes.wait(STALL_MS)
    counts = nodes.watch_queueing()
    pause(nodes[0], False)
    assert nodes[0].get("q", timeout_ms=5000) == []
    assert not counts
    nodes.nothing_left()


@pytest.mark.parametrize("delay_s", [0, RETRY_S])
def test_what_nobody_has_is_delivered_all_the_same(delay_s: int) -> None:
    nodes = Nodes(2)
    job_id = nodes[0].add("q", "RETRY", RETRY_S, "REPLICATE", 2, "DELAY", delay_s, timeout_ms=1000)
    nodes[1].kill()
    pause(nodes[0], True)
    nodes.wait(STALL_MS)
    pause(nodes[0], False)
    assert nodes[0].get("q", timeout_ms=3000) == [job_id]


def test_nodes_that_are_always_slow_deliver_all_the_same() -> None:
    nodes = Nodes(2)
    job_id = nodes[0].add("q", "RETRY", RETRY_S, "REPLICATE", 2, timeout_ms=1000)
    assert nodes[0].get("q") == [job_id]
    for one in nodes:
        assert one.machine.process is not None
        one.machine.process.pass_delay_ms = 2500
    callers = [one.caller() for one in nodes]
    for caller in callers:
        caller.send("GETJOB", "TIMEOUT", 60_000, "FROM", "q")
    nodes.until(lambda: any(caller.replies for caller in callers), 30_000)


def test_a_job_that_has_one_owner_does_not_wait() -> None:
    nodes = Nodes(2)
    job_id = nodes[0].add("q", "RETRY", RETRY_S, "REPLICATE", 1, timeout_ms=1000)
    pause(nodes[0], True)
    nodes.wait(STALL_MS)
    pause(nodes[0], False)
    assert nodes[0].get("q", timeout_ms=10) == [job_id]
