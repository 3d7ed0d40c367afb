"""What only sockets show: TLS, large bodies, event loops that come and go, a move to where the jobs come from."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis

from disqueue.client import AsyncClient, Client, ClientClosedError, NoNodeError, ReplyError, connections, router, transport
from disqueue.testing import Cluster, Server
from disqueue.testing.server import wait_for

from .conftest import Connect

CERTIFICATES = Path(__file__).parents[1] / "server" / "certificates"


class TlsFront:
    """Ends TLS in front of a server."""

    def __init__(self, server_port: int) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "node.pem")
        self._context = context
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(plain,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, plain: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            self._context.wrap_socket(plain, server_side=True) as front,
            socket.create_connection(("127.0.0.1", self._server_port)) as back,
        ):
            forward = threading.Thread(target=self._copy, args=(back, front), daemon=True)
            forward.start()
            self._copy(front, back)
            forward.join()

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def tls_port(disqueue_server: Server) -> Iterator[int]:
    front = TlsFront(disqueue_server.port)
    yield front.port
    front.close()


def test_without_hiredis(connect: Connect, disqueue_server: Server, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """redis-py then reads replies in Python, with other parsers."""
    monkeypatch.setattr(transport, "PARSERS", connections.PYTHON_PARSERS)
    monkeypatch.setattr(transport, "ASYNC_PARSERS", connections.ASYNC_PYTHON_PARSERS)
    client = connect(disqueue_server.url)
    assert client.queue_stat(queue) is None
    assert client.get(queue, timeout=0.01) == []
    assert client.config_get("port") == {"port": str(disqueue_server.port)}
    job_id = client.add(queue, b"\r\n\0")
    with client.get_one(queue, timeout=5) as job:
        assert (job.id, job.body, client.show(job_id).nodes_confirmed) == (job_id, b"\r\n\0", ())
    with pytest.raises(ReplyError, match="NOJOB"):
        client.working(job_id)
    watcher = disqueue_server.client()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(client.get, queue, timeout=30)
        wait_for(lambda: watcher.queue_stat(queue).blocked == 1, "GETJOB waits")
        client.close()
        assert isinstance(waiting.exception(), ClientClosedError)
    watcher.close()


def test_a_server_in_protected_mode_says_so(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            with contextlib.suppress(OSError):
                while True:
                    one, _ = listener.accept()
                    with one:
                        one.sendall(b"-DENIED only clients of the same machine\r\n")
                        one.shutdown(socket.SHUT_WR)
                        while one.recv(4096):
                            pass

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        client = connect(f"disque://127.0.0.1:{listener.getsockname()[1]}?discover=no", retry_for=0.2)
        with pytest.raises(NoNodeError, match="only clients of the same machine"):
            client.ping()
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def test_tls(connect: Connect, tls_port: int, queue: str) -> None:
    url = f"disques://127.0.0.1:{tls_port}?discover=no&ssl_check_hostname=no&ssl_ca_certs={CERTIFICATES / 'ca.crt'}"
    client = connect(url)
    job_id = client.add(queue, bytes(100_000))
    with client.get_one(queue, timeout=5) as job:
        assert (job.id, len(job.body)) == (job_id, 100_000)


def test_tls_with_a_stranger(connect: Connect, tls_port: int) -> None:
    client = connect(f"disques://127.0.0.1:{tls_port}?discover=no", retry_for=0.2)
    with pytest.raises(NoNodeError, match=r"(?i)certificate"):
        client.ping()


def test_large_bodies(client: Any, queue: str) -> None:
    body = bytes(range(256)) * 40_000
    client.add(queue, body)
    with client.get_one(queue, timeout=5) as job:
        assert job.body == body


def test_an_async_client_in_one_loop_after_the_other(disqueue_server: Server, queue: str) -> None:
    client = AsyncClient(disqueue_server.url)

    async def once() -> bytes:
        await client.add(queue, b"x")
        job = await client.get_one(queue, timeout=5)
        assert job is not None
        async with job:
            body = job.body
        await client._transport.close()
        return body

    assert [asyncio.run(once()) for _ in range(2)] == [b"x"] * 2


def test_tasks_share_a_client(disqueue_server: Server, queue: str) -> None:
    async def main() -> None:
        async with AsyncClient(disqueue_server.url, max_connections=3) as client:
            ids = await asyncio.gather(*(client.add(queue, b"x") for _ in range(200)))
            assert len(set(ids)) == 200
            jobs = await client.get(queue, count=200, timeout=5)
            assert sum(await asyncio.gather(*(client.ack(job) for job in jobs))) == 200

    asyncio.run(main())


def test_a_cancelled_wait_leaves_no_reply_behind(disqueue_server: Server, queue: str) -> None:
    async def main() -> None:
        async with AsyncClient(disqueue_server.url) as client:
            waiting = asyncio.create_task(client.get(queue, timeout=30))
            while not await blocked(client, queue):
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert await client.execute("PING", "mine") == b"mine"

    async def blocked(client: AsyncClient, queue: str) -> bool:
        return bool((await client.info("clients"))["blocked_clients"])

    asyncio.run(main())


def test_a_client_that_another_thread_closes_between_sending_and_reading(
    disqueue_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(disqueue_server.url)
    client.ping()
    send = redis.Connection.send_packed_command

    def send_and_close(self: redis.Connection, *arguments: Any, **options: Any) -> None:
        send(self, *arguments, **options)
        client.close()

    monkeypatch.setattr(redis.Connection, "send_packed_command", send_and_close)
    with pytest.raises(ClientClosedError):
        client.ping()


def test_a_consumer_moves_to_its_jobs(
    connect: Connect, start_cluster: Callable[[int], Cluster], queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "MOVE_INTERVAL_S", 0.0)
    first, second = start_cluster(2).servers
    client = connect(first.url)
    with second.client() as producer:
        assert producer.node is None
        seen = moved = 0
        consumer = client.consume(queue, timeout=10, poll=0.2)
        for job in refilled(consumer, producer, queue):
            job.ack()
            seen += 1
            moved = consumer._supply.route.node.endpoint.port == second.port
            if moved:
                break
        assert moved
        assert seen >= router.MOVE_JOBS


def refilled(consumer: Any, producer: Any, queue: str) -> Iterator[Any]:
    """Jobs of a consumer; whenever ten were taken, ten more are added on the other node."""
    producer.add_many(queue, [b"x"] * 20, replicate=1)
    for number, job in enumerate(consumer):
        if number % 10 == 0:
            producer.add_many(queue, [b"x"] * 10, replicate=1)
        yield job
