"""Every shape of reply, as RESP2 and as RESP3 bring it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from disqueue.client import ClusterNode, NodeInfo, replies, requests
from disqueue.client.jobs import Job
from disqueue.client.router import Route
from disqueue.client.serializers import BytesSerializer

JOB_ID = b"D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"
SHOW = {
    b"id": JOB_ID,
    b"queue": b"q",
    b"state": b"queued",
    b"repl": 2,
    b"ttl": 86399,
    b"ctime": 1_700_000_000_123_000_007,
    b"delay": 1,
    b"retry": 300,
    b"nacks": 3,
    b"additional-deliveries": 4,
    b"nodes-delivered": [b"a" * 40, b"b" * 40],
    b"nodes-confirmed": [],
    b"next-requeue-within": None,
    b"next-awake-within": 5,
    b"body": b"x",
    b"news": 1,
}
QSTAT = {
    b"name": b"q",
    b"len": 1,
    b"age": 2,
    b"idle": 3,
    b"blocked": 4,
    b"import-from": [b"a" * 40],
    b"import-rate": 5,
    b"jobs-in": 6,
    b"jobs-out": 7,
    b"pause": b"in",
    b"news": 1,
}


def flat(fields: dict[Any, Any]) -> list[Any]:
    return [item for pair in fields.items() for item in pair]


@pytest.mark.parametrize("reply", [SHOW, flat(SHOW), {**SHOW, b"nodes-delivered": {b"a" * 40, b"b" * 40}}])
def test_show(reply: Any) -> None:
    job = replies.job_info(reply)
    assert job is not None
    assert (job.id, job.queue, job.state, job.replicate, job.ttl_s) == (JOB_ID.decode(), "q", "queued", 2, 86399)
    assert (job.delay_s, job.retry_s, job.nacks, job.additional_deliveries) == (1, 300, 3, 4)
    assert (sorted(job.nodes_delivered), job.nodes_confirmed) == (["a" * 40, "b" * 40], ())
    assert (job.next_requeue_ms, job.next_awake_ms, job.body, job.extra) == (None, 5, b"x", {"news": 1})
    assert job.created == datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)


@pytest.mark.parametrize("reply", [QSTAT, flat(QSTAT)])
def test_qstat(reply: Any) -> None:
    queue = replies.queue_info(reply)
    assert queue is not None
    assert (queue.name, queue.length, queue.age_s, queue.idle_s, queue.blocked) == ("q", 1, 2, 3, 4)
    assert (queue.import_from, queue.import_rate, queue.jobs_in, queue.jobs_out) == (("a" * 40,), 5, 6, 7)
    assert (queue.pause, queue.extra) == ("in", {"news": 1})


def test_nil() -> None:
    assert replies.job_info(None) is None
    assert replies.queue_info(None) is None
    assert replies.peeked(None) == []
    assert requests.get((b"q",), 1, 0).parse(None) == []


@pytest.mark.parametrize("counters", [[], [b"nacks", 1, b"additional-deliveries", 2], [b"additional-deliveries", 2, b"nacks", 1]])
def test_jobs(counters: list[Any]) -> None:
    job = Job(None, [b"q", JOB_ID, b"x", *counters], Route(), BytesSerializer(), 0.0)  # type: ignore[arg-type]
    assert (job.id, job.queue, job.body) == (JOB_ID.decode(), "q", b"x")
    assert (job.nacks, job.additional_deliveries) == ((1, 2) if counters else (0, 0))
    assert repr(job) == f"<Job {JOB_ID.decode()} from 'q', 1 bytes>"


def test_hello() -> None:
    hello = replies.hello([1, b"me", [b"me", b"", b"7711", b"1"], [b"you", b"::1", b"7712", b"100"]])
    assert hello.nodes == (NodeInfo("me", "", 7711, 1), NodeInfo("you", "::1", 7712, 100))


def test_text_replies() -> None:
    info = replies.colon_lines(b"# Server\r\nversion:1.0-rc1\r\nport:7711\r\nratio:1.50\r\n\r\nempty:\r\n")
    assert info == {"version": "1.0-rc1", "port": 7711, "ratio": 1.5, "empty": ""}
    nodes = replies.cluster_nodes(b"id1 :7711 myself 0 0 connected\nid2 [::1]:7712 noflags 5 6 disconnected\nshort\n")
    assert nodes == [
        ClusterNode("id1", ":7711", frozenset({"myself"}), 0, 0, "connected"),
        ClusterNode("id2", "[::1]:7712", frozenset(), 5, 6, "disconnected"),
    ]
    assert replies.pairs([b"a", b"1"]) == replies.pairs({b"a": b"1"}) == {"a": "1"}


def test_scans() -> None:
    assert replies.page_of_names([b"7", [b"a", b"b"]]) == (7, ["a", "b"])
    cursor, jobs = replies.page_of_jobs([b"0", [flat(SHOW), SHOW, None]])
    assert (cursor, [job.queue for job in jobs]) == (0, ["q", "q"])


def test_names_and_values_that_do_not_pair_up() -> None:
    with pytest.raises(ValueError, match="do not pair up"):
        replies.fields([b"a"])
