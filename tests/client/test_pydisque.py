"""pydisque's interface. The script below ran with pydisque 0.1.5 as well; what it returned there is what is wanted."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from disqueue.compat.pydisque import Client, Job, Node
from disqueue.testing import Server, free_port

# Names and arguments of pydisque 0.1.5.
SIGNATURES = {
    "ack_job": "(self, *job_ids)",
    "add_job": "(self, queue_name, job, timeout=200, replicate=None, delay=None, retry=None, ttl=None, maxlen=None, "
    "asynchronous=None)",
    "connect": "(self)",
    "del_job": "(self, *job_ids)",
    "dequeue": "(self, *job_ids)",
    "enqueue": "(self, *job_ids)",
    "fast_ack": "(self, *job_ids)",
    "get_connection": "(self)",
    "get_job": "(self, queues, timeout=None, count=None, nohang=False, withcounters=False)",
    "hello": "(self)",
    "info": "(self)",
    "jscan": "(self, cursor=0, count=None, busyloop=None, queue=None, state=None, reply=None)",
    "nack_job": "(self, *job_ids)",
    "pause": "(self, queue_name, kw_in=None, kw_out=None, kw_all=None, kw_none=None, kw_state=None, kw_bcast=None)",
    "qlen": "(self, queue_name)",
    "qpeek": "(self, queue_name, count)",
    "qscan": "(self, cursor=0, count=None, busyloop=None, minlen=None, maxlen=None, importrate=None)",
    "qstat": "(self, queue_name, return_dict=False)",
    "show": "(self, job_id, return_dict=False)",
    "working": "(self, job_id)",
}


@pytest.fixture
def client(disqueue_server: Server) -> Iterator[Client]:
    client = Client([f"localhost:{disqueue_server.port}"])
    client.connect()
    yield client
    assert client._client is not None
    client._client.close()


def test_signatures() -> None:
    for name, wanted in SIGNATURES.items():
        signature = inspect.signature(getattr(Client, name))
        bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
        assert str(inspect.Signature(bare)) == wanted, name


def test_a_life_of_jobs(client: Client, queue: str) -> None:
    name = queue.encode()
    job_id = client.add_job(queue, "body", timeout=100, replicate=1, retry=5, ttl=60, maxlen=10)
    assert isinstance(job_id, bytes)
    assert client.qlen(queue) == 1
    assert client.qpeek(queue, 5) == [[name, job_id, b"body"]]
    assert client.get_job([queue], timeout=100) == [(name, job_id, b"body")]
    assert client.nack_job(job_id) is None
    assert client.get_job([queue], count=3, withcounters=True) == [(name, job_id, b"body", 1, 0)]
    assert client.working(job_id) == 5
    assert client.enqueue(job_id) == 1
    assert client.dequeue(job_id) == 1
    assert client.ack_job(job_id) is None
    assert client.get_job([queue], nohang=True) == []
    assert client.get_job([queue], timeout=20) == []
    assert client.show(job_id) is None


def test_views(client: Client, queue: str) -> None:
    job_id = client.add_job(queue, b"x", delay=30, asynchronous=True)
    flat = client.show(job_id)
    assert flat[:4] == [b"id", job_id, b"queue", queue.encode()]
    assert client.show(job_id, return_dict=True)[b"delay"] == 30
    assert client.del_job(job_id) == 1
    job_id = client.add_job(queue, b"x")
    assert client.qstat(queue)[:4] == [b"name", queue.encode(), b"len", 1]
    assert client.qstat(queue, True)[b"len"] == 1
    assert queue.encode() in client.qscan(count=1, busyloop=True, minlen=1)[1]
    assert client.jscan(queue=queue, busyloop=True, state=["queued", "active"], reply="id")[1] == [job_id]
    assert client.jscan(queue=queue, busyloop=True, reply="all")[1][0][:2] == [b"id", job_id]
    assert client.fast_ack(job_id) is None
    assert "disque_version" in client.info()


def test_pause(client: Client, queue: str) -> None:
    assert client.pause(queue, kw_in=True) == b"in"
    with pytest.raises(redis.ResponseError, match="PAUSED"):
        client.add_job(queue, b"x")
    assert client.pause(queue, kw_state=True) == b"in"
    assert client.pause(queue, kw_none=True, kw_bcast=True) == b"none"


def test_hello_and_the_connected_node(client: Client, disqueue_server: Server) -> None:
    hello = client.hello()
    node = client.connected_node
    assert node is not None
    assert (hello[0], node.node_id, node.port) == (1, hello[1], disqueue_server.port)
    assert repr(node) == f"<Node localhost:{disqueue_server.port}>"


def test_before_connect_and_without_nodes() -> None:
    client = Client([f"localhost:{free_port()}"])
    with pytest.raises(redis.ConnectionError, match="not connected"):
        client.qlen("q")
    with pytest.raises(redis.ConnectionError):
        client.connect()


def test_a_queue_is_needed(client: Client) -> None:
    with pytest.raises(AssertionError):
        client.get_job([])


def test_plain_classes() -> None:
    assert repr(Job("i", "q", "p")) == "<Job id:i queue_name:q>"
    node: Any = Node("n", "h", 1, None)
    assert repr(node) == "<Node h:1>"


def test_errors_of_the_server(client: Client) -> None:
    with pytest.raises(redis.ResponseError, match=r"^BADID Invalid"):
        client.show("nonsense")
    with pytest.raises(redis.ResponseError, match=r"^RETRY time must be"):
        client.add_job("q", "x", retry=-1)
