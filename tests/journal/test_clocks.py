"""The wall clock is set while a node runs or is down: what becomes of the times in its journal.

Times on disk are Unix times. A clock that goes back makes nothing later than it is; one that was set forward while the node was
down cannot be told from a long time.
"""

from __future__ import annotations

import pytest

from tests.journal.support import Server, new_server

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def set_clock(server: Server, by_ms: int) -> None:
    """Move the wall clock of a running node; it notices in its next pass."""
    node = server.node
    node.begin_pass(node.now_ms, node.wall_ms + by_ms)


def rest(server: Server) -> Server:
    """Let some passes go by, in which what is to be written is."""
    server.run_pass()
    server.end_pass()
    for _ in range(50):
        if not server.runtime.compactor.rewriting():
            break
        server.run_pass()
        server.end_pass()
    return server


def times(server: Server) -> list[tuple[int, int]]:
    """Return how long jobs have until they are due, and until their TTL ends."""
    now_ms = server.node.now_ms
    jobs = sorted(server.node.jobs, key=lambda job: job.ctime_ns)
    return [(job.due_ms - now_ms if job.due_ms else -1, job.expires_ms - now_ms) for job in jobs]


def assert_times(server: Server, before: list[tuple[int, int]]) -> None:
    """Nothing is earlier than it was, nor later than by the passes in which nothing was written."""
    after = times(server)
    assert len(after) >= len(before)
    for (due_ms, ends_ms), (due_before_ms, ends_before_ms) in zip(after, before, strict=False):
        assert due_before_ms <= due_ms <= due_before_ms + 20
        assert ends_before_ms <= ends_ms <= ends_before_ms + 20


def filled() -> Server:
    """Return a server with a queued job, a delayed one and one that is out with a worker."""
    server = new_server()
    server.add(queue=b"worked", retry_s=30, ttl_s=600)
    assert server.get(b"worked")
    server.add(queue=b"late", delay_s=20, ttl_s=600)
    server.add(ttl_s=600)
    return rest(server)


@pytest.mark.parametrize("back_ms", [500, HOUR_MS, DAY_MS])
def test_a_clock_that_was_set_back_while_the_node_was_down_has_stood_still(back_ms: int) -> None:
    server = filled()
    before = times(server)
    again = server.restarted(after_ms=-back_ms)
    assert_times(again, before)
    again.idle(passes=71)  # 21 s
    assert len(again.queued(b"late")) == 1
    assert again.queued(b"worked") == []
    again.idle(passes=35)
    assert len(again.queued(b"worked")) == 1


def test_a_clock_that_was_set_forward_while_the_node_was_down_counts_as_time() -> None:
    again = filled().restarted(after_ms=60_000)
    again.idle(passes=2)
    assert [len(again.queued(name)) for name in (b"q", b"late", b"worked")] == [1, 1, 1]
    again = again.restarted(after_ms=DAY_MS)
    assert len(again.node.jobs) == 0


@pytest.mark.parametrize("by_ms", [-DAY_MS, -HOUR_MS, -5000, 5000, HOUR_MS, DAY_MS])
def test_a_clock_that_is_set_while_the_node_runs_changes_nothing(by_ms: int) -> None:
    server = filled()
    set_clock(server, by_ms)
    rest(server)
    before = times(server)
    again = server.restarted()
    assert_times(again, before)
    set_clock(again, -by_ms)
    rest(again)
    before = times(again)
    assert_times(again.restarted(), before)


def test_a_crash_right_after_the_clock_was_set_back_makes_nothing_later() -> None:
    server = filled()
    set_clock(server, -HOUR_MS)
    before = times(server)
    server.add(queue=b"other")
    server.end_pass()
    assert_times(server.restarted(), before)
