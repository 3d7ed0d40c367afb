"""Properties over random histories: loading gives back the state, whatever was compacted in between."""

from __future__ import annotations

from random import Random

import pytest

from disqueue.core.job import ACKED
from disqueue.wire.journal_format import FRAME_BYTES, JOBS_BYTES, JOBS_ITEM_BYTES
from tests.journal.histories import lasting, random_history
from tests.journal.support import new_server


@pytest.mark.parametrize("seed", range(12))
def test_loading_gives_back_the_state(seed: int) -> None:
    random = Random(seed)
    policy = random.choice(("always", "everysec", "no"))
    server = new_server(seed, policy=policy, segment_bytes=random.choice((500, 4000, 1 << 20)))
    for _ in range(4):
        random_history(server, random, passes=random.randrange(1, 30))
        server.end_pass()
        expected = lasting(server.state())
        pauses = {name: queue.pause for name, queue in server.node.queues.items() if queue.pause}
        server = server.restarted()

        assert expected == server.state()
        assert pauses == {name: queue.pause for name, queue in server.node.queues.items() if queue.pause}


@pytest.mark.parametrize("seed", range(12))
def test_compacting_changes_nothing(seed: int) -> None:
    random = Random(seed)
    server = new_server(seed, segment_bytes=600, rewrite_min_bytes=0, rewrite_percentage=random.choice((0, 10, 100)))
    random_history(server, random, passes=60)
    if random.random() < 0.7:
        assert server.runtime.compact() == ""
        server.idle(passes=random.randrange(30), milliseconds=100)
    server.end_pass()
    expected = lasting(server.state())

    assert expected == server.restarted().state()


def test_a_compacted_journal_is_small() -> None:
    server = new_server(segment_bytes=2000)
    for _ in range(200):
        server.ack(server.add(body=b"x" * 100))
        server.add(queue=b"kept", ttl_s=1000)
        server.run_pass(10)
        server.node.set_pause(b"kept", 0, False)
    for job in list(server.node.jobs)[:150]:
        server.ack(job.id)
    server.run_pass()
    assert server.runtime.compact() == ""
    for _ in range(1000):
        if server.runtime.compactor.rewriting():
            server.run_pass(5)

    assert not server.runtime.compactor.rewriting()
    figures = server.runtime.figures()
    assert figures["aof_current_size"] < 2 * figures["aof_live_size"] + 2000
    assert lasting(server.state()) == server.restarted().state()


def test_a_job_that_is_retried_for_ever_takes_bounded_space() -> None:
    server = new_server(segment_bytes=2000, rewrite_min_bytes=8000)
    job_id = server.add(retry_s=1, ttl_s=100_000)
    server.add(queue=b"other")
    sizes = []
    for _ in range(600):
        assert [job_id] == server.get()
        server.run_pass(700)
        server.idle(passes=3, milliseconds=150)
        sizes.append(server.runtime.figures()["aof_current_size"])

    assert max(sizes) < 20_000
    assert server.node.jobs.get(job_id).deliveries == 600
    assert lasting(server.state()) == server.restarted().state()


def test_the_body_of_an_acknowledged_job_is_not_needed_any_more() -> None:
    """Otherwise a segment of jobs that are all over is read again instead of being removed."""
    server = new_server()
    job = server.node.jobs.get(server.add(body=b"x" * 1000))
    assert job is not None
    peer = server.node.members.intern(b"f" * 40)
    assert peer is not None
    job.owners = 1 | peer.bit
    server.run_pass()
    segment = server.runtime.table.active
    server.node.members.members_mask |= peer.bit
    server.ack(job.id)
    server.run_pass()
    assert job.state == ACKED
    assert segment.job_bytes == FRAME_BYTES + 1 + JOBS_BYTES + len(b"q") + JOBS_ITEM_BYTES
    server.node.delete(job)
    server.run_pass()
    assert server.runtime.table.kept_bytes(segment) == 0
