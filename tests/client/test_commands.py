"""Every method against a real server, with every option."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from disqueue.client import (
    BadJobIdError,
    BatchError,
    CommandError,
    NotReplicatedError,
    QueueFullError,
    QueuePausedError,
    TooLateError,
    UnknownJobError,
)
from disqueue.testing.server import wait_for

UNKNOWN_ID = "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"


def test_a_job_goes_in_and_comes_out(client: Any, queue: str) -> None:
    body = bytes(range(256))
    job_id = client.add(queue, body)
    (job,) = client.get(queue, timeout=5)
    assert (job.id, job.queue, job.body) == (job_id, queue, body)
    assert (job.nacks, job.additional_deliveries) == (0, 0)
    job.ack()
    assert client.show(job_id) is None


def test_names_of_any_bytes(client: Any, queue: str) -> None:
    name = queue.encode() + b" \xff\r\n\xc3\xbc"
    client.add(name, b"x")
    job = client.get_one(name, timeout=5)
    assert job.queue.encode("utf-8", "surrogateescape") == name
    assert client.queue_length(job.queue) == 0
    job.ack()


def test_options_of_add_reach_the_server(client: Any, queue: str) -> None:
    job_id = client.add(queue, b"x", timeout=2, replicate=1, delay=timedelta(minutes=1), retry=30, ttl=600.5, maxlen=5)
    job = client.show(job_id)
    assert (job.replicate, job.delay_s, job.retry_s, job.state) == (1, 60, 30, "active")
    assert 590 < job.ttl_s <= 601
    assert job.body == b"x"
    assert 0 < job.next_awake_ms <= 60_500
    assert abs((datetime.now(UTC) - job.created).total_seconds()) < 30
    assert client.ack(job_id) == 1


def test_at_a_moment(client: Any, queue: str) -> None:
    job_id = client.add(queue, b"x", at=datetime.now(UTC) + timedelta(hours=1), ttl=86400)
    assert 3599 <= client.show(job_id).delay_s <= 3600
    past = client.add(queue, b"x", at=datetime.now(UTC) - timedelta(hours=1))
    assert client.show(past).state == "queued"
    client.ack(job_id, past)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"timeout": 0}, ValueError, "timeout must be above 0"),
        ({"delay": 1, "at": datetime.now(UTC)}, ValueError, "delay or at"),
        ({"at": datetime(2030, 1, 1)}, ValueError, "time zone"),
        ({"at": 5}, TypeError, "datetime"),
        ({"replicate": 0}, ValueError, "replicate must be 1 or more"),
        ({"replicate": "2"}, TypeError, "replicate must be an int"),
        ({"retry": -1}, ValueError, "retry must be between"),
        ({"ttl": 0}, ValueError, "ttl must be 1 or more"),
        ({"ttl": "1"}, TypeError, "ttl must be seconds or a timedelta"),
        ({"maxlen": True}, TypeError, "maxlen must be an int"),
        ({"delay": float("nan")}, ValueError, "delay must be between"),
    ],
)
def test_bad_options_are_named(client: Any, queue: str, options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        client.add(queue, b"x", **options)


def test_bodies_are_bytes_unless_asked_otherwise(client: Any, queue: str) -> None:
    with pytest.raises(TypeError, match="a body must be bytes, not str"):
        client.add(queue, "text")


@pytest.mark.parametrize(
    ("serializer", "value"), [("json", {"a": [1, "ü"]}), ("text", "grüß"), ("msgpack", {"a": [1, None]}), ("bytes", b"x")]
)
def test_serializers(connect: Any, disqueue_server: Any, queue: str, serializer: str, value: Any) -> None:
    client = connect(disqueue_server.url, serializer=serializer)
    client.add(queue, value)
    job = client.get_one(queue, timeout=5)
    assert job.data == value
    job.ack()


def test_add_many_in_order(client: Any, queue: str) -> None:
    ids = client.add_many(queue, (b"%d" % number for number in range(1200)), retry=60)
    assert len(set(ids)) == 1200
    got = {job.id: job.body for job in client.get(queue, count=1200, timeout=5)}
    assert [got[job_id] for job_id in ids] == [b"%d" % number for number in range(1200)]
    assert client.ack(*ids) == 1200


def test_add_many_says_which_failed(client: Any, queue: str) -> None:
    with pytest.raises(BatchError, match="2 of 5 jobs were not added") as caught:
        client.add_many(queue, [b"x"] * 5, maxlen=3)
    assert [type(result) for result in caught.value.results] == [str, str, str, QueueFullError, QueueFullError]
    assert client.queue_length(queue) == 3


def test_get_without_jobs(client: Any, queue: str) -> None:
    assert client.get(queue, timeout=0) == []
    assert client.get(queue, timeout=0.05) == []
    assert client.get_one(queue, timeout=timedelta(milliseconds=20)) is None
    with pytest.raises(ValueError, match="at least one queue"):
        client.get(timeout=1)


def test_get_from_several_queues(client: Any, queue: str) -> None:
    for name in (f"{queue}-1", f"{queue}-2"):
        client.add_many(name, [name.encode()] * 2)
    jobs = client.get(f"{queue}-2", f"{queue}-1", count=10, timeout=5)
    assert [job.queue for job in jobs] == [f"{queue}-2", f"{queue}-1"] * 2
    assert client.ack(*jobs) == 4


def test_nack_counts_and_requeues(client: Any, queue: str) -> None:
    client.add(queue, b"x")
    client.get_one(queue, timeout=5).nack()
    job = client.get_one(queue, timeout=5)
    assert job.nacks == 1
    job.requeue()
    job = client.get_one(queue, timeout=5)
    assert (job.nacks, job.additional_deliveries) == (1, 1)
    job.fast_ack()
    assert client.show(job.id) is None


def test_commands_for_jobs(client: Any, queue: str) -> None:
    first, second = client.add_many(queue, [b"1", b"2"])
    assert client.dequeue(first, second) == 2
    assert client.queue_length(queue) == 0
    assert client.enqueue(first) == 1
    assert client.peek(queue)[0].id == first
    assert client.delete(first, second) == 2
    assert client.ack() == client.nack() == 0
    assert client.nack(first) == 0
    with pytest.raises(BadJobIdError):
        client.ack("nonsense")


def test_working(client: Any, queue: str) -> None:
    job_id = client.add(queue, b"x", retry=7)
    assert client.working(job_id) == 7
    with pytest.raises(UnknownJobError):
        client.working(UNKNOWN_ID)
    client.ack(job_id)


def test_working_has_an_end(client: Any, queue: str) -> None:
    job_id = client.add(queue, b"x", retry=1, ttl=1)

    def refused() -> bool:
        try:
            client.working(job_id)
        except TooLateError:
            return True
        return False

    assert wait_for(refused, "the server refuses WORKING")


def test_peek(client: Any, queue: str) -> None:
    ids = client.add_many(queue, [b"a", b"b", b"c"])
    assert [(job.id, job.queue) for job in client.peek(queue, 2)] == [(ids[0], queue), (ids[1], queue)]
    assert [job.body for job in client.peek(queue, 2, newest=True)] == [b"c", b"b"]
    assert client.peek(f"{queue}-none") == []
    client.ack(*ids)


def test_queue_stat(client: Any, queue: str) -> None:
    assert client.queue_stat(queue) is None
    job_id = client.add(queue, b"x")
    stat = client.queue_stat(queue)
    assert (stat.name, stat.length, stat.jobs_in, stat.jobs_out, stat.pause, stat.import_from) == (queue, 1, 1, 0, "none", ())
    client.ack(job_id)


def test_pause(client: Any, queue: str) -> None:
    assert client.pause(queue) == "none"
    assert client.pause(queue, "in", everywhere=True) == "in"
    with pytest.raises(QueuePausedError):
        client.add(queue, b"x")
    assert client.pause(queue) == "in"
    assert client.pause(queue, "none") == "none"
    with pytest.raises(ValueError, match="state must be one of"):
        client.pause(queue, "both")


def test_scans(client: Any, queue: str) -> None:
    names = [f"{queue}-{number}" for number in range(30)]
    ids = [client.add(name, b"x") for name in names]
    assert set(names) <= set(client.scan_queues(count=7, min_length=1, max_length=1))
    assert set(ids) <= set(client.scan_job_ids(count=7, states=["queued", "active"]))
    assert [(job.id, job.queue) for job in client.scan_jobs(names[3])] == [(ids[3], names[3])]
    assert list(client.scan_job_ids(names[3], states=["acked"])) == []
    client.ack(*ids)


def test_replication_that_is_not_possible(client: Any, queue: str) -> None:
    with pytest.raises(NotReplicatedError):
        client.add(queue, b"x", replicate=3)


def test_nodes(client: Any, disqueue_server: Any) -> None:
    client.ping()
    hello = client.hello()
    assert (hello.version, len(hello.node_id)) == (1, 40)
    assert [(node.id, node.port) for node in hello.nodes] == [(hello.node_id, disqueue_server.port)]
    (node,) = client.cluster("nodes")
    assert "myself" in node.flags
    assert client.cluster("myid") == hello.node_id
    assert client.cluster("info")["cluster_known_nodes"] == 1
    assert client.node.port == disqueue_server.port


def test_info_and_configuration(client: Any) -> None:
    assert client.info("server")["tcp_port"] > 0
    assert "registered_jobs" in client.info()
    before = client.config_get("maxclients")["maxclients"]
    client.config_set("maxclients", 5000)
    assert client.config_get("maxclients") == {"maxclients": "5000"}
    client.config_set("maxclients", before)


def test_any_command(client: Any, queue: str) -> None:
    assert client.execute("PING", "hi") == b"hi"
    assert client.execute("GETJOB", "TIMEOUT", 20, "FROM", queue, block=0.02) is None
    with pytest.raises(CommandError, match="unknown command"):
        client.execute("NOSUCH")
    with pytest.raises(ValueError, match="give a command"):
        client.execute()
