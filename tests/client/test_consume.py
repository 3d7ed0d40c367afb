"""Consuming: acks and nacks of `with job:`, jobs kept alive, jobs fetched ahead, the end of a loop."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from disqueue.client import Client, QueuePausedError
from disqueue.testing import Server
from disqueue.testing.server import wait_for

from .conftest import Connect


def test_with_job_acknowledges(client: Any, queue: str) -> None:
    ids = client.add_many(queue, [b"1", b"2", b"3"])
    seen = []
    for job in client.consume(queue, timeout=0.2):
        with job:
            seen.append(job.id)
    assert seen == ids
    assert [client.show(job_id) for job_id in ids] == [None] * 3


def test_an_error_gives_the_job_back(client: Any, queue: str) -> None:
    client.add(queue, b"x")
    job = next(iter(client.consume(queue, timeout=5)))
    with pytest.raises(RuntimeError, match="broken"), job:
        raise RuntimeError("broken")
    job = client.get_one(queue, timeout=5)
    assert (job.nacks, job.additional_deliveries) == (1, 0)
    job.ack()


def test_an_interrupt_is_not_the_jobs_fault(client: Any, queue: str) -> None:
    client.add(queue, b"x")
    job = client.get_one(queue, timeout=5)
    with pytest.raises(KeyboardInterrupt), job:
        raise KeyboardInterrupt
    job = client.get_one(queue, timeout=5)
    assert (job.nacks, job.additional_deliveries) == (0, 1)
    job.ack()


def test_long_work_is_kept_alive(client: Any, queue: str) -> None:
    client.add(queue, b"x", retry=1)
    job = client.get_one(queue, timeout=5)
    with job:
        # Nobody else gets it in more than twice its lease.
        assert client.get(queue, timeout=2.3) == []
        assert not job.lease_lost
    assert client.show(job.id) is None


def test_a_job_that_is_gone_is_known_as_lost(client: Any, queue: str) -> None:
    client.add(queue, b"x", retry=1)
    job = client.get_one(queue, timeout=5)
    with job:
        client.ack(job.id)
        wait_for(lambda: job.lease_lost, "the keeper learns that the job is gone")


def test_jobs_fetched_ahead_keep_their_lease(client: Any, queue: str) -> None:
    ids = client.add_many(queue, [b"x"] * 3, retry=1)
    seen = []
    with client.consume(queue, prefetch=3, timeout=0.2) as consumer:
        for job in consumer:
            with job:
                seen.append(job.id)
                if len(seen) == 1:
                    assert client.get(queue, timeout=1.5) == []
    assert seen == ids
    assert consumer.dropped == 0


def test_what_was_fetched_ahead_is_given_back(client: Any, queue: str) -> None:
    client.add_many(queue, [b"x"] * 5)
    with client.consume(queue, prefetch=5) as consumer:
        for job in consumer:
            with job:
                assert client.queue_length(queue) == 0
                consumer.stop()
    assert consumer.stopped
    assert client.queue_length(queue) == 4
    assert [job.nacks for job in client.get(queue, count=4, timeout=5)] == [0] * 4


def test_leaving_the_loop_gives_back(client: Any, queue: str) -> None:
    client.add_many(queue, [b"x"] * 5)
    with client.consume(queue, prefetch=5) as consumer:
        for job in consumer:
            job.ack()
            break
    assert client.queue_length(queue) == 4


def test_at_most_once_jobs_are_finished_at_a_stop(client: Any, queue: str) -> None:
    client.add_many(queue, [b"x"] * 4, retry=0, replicate=1)
    seen = 0
    consumer = client.consume(queue, prefetch=4)
    for job in consumer:
        with job:
            seen += 1
            consumer.stop()
    assert seen == 4


def test_a_stop_ends_a_loop_that_waits(client: Any, queue: str) -> None:
    consumer = client.consume(queue, poll=0.1)
    stopper = threading.Timer(0.05, consumer.stop)
    stopper.start()
    assert list(consumer) == []
    stopper.join()


def test_bad_arguments(client: Any, queue: str) -> None:
    for options in ({"prefetch": 0}, {"prefetch": 20_000}, {"poll": 0}, {"timeout": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            client.consume(queue, **options)
    with pytest.raises(ValueError, match="at least one queue"):
        client.consume()


def test_a_signal_stops_in_order(disqueue_server: Server, queue: str) -> None:
    with disqueue_server.client() as client:
        client.add_many(queue, [b"x"] * 3)
        done = []
        for job in client.consume(queue, prefetch=3, stop_on_signals=True):
            with job:
                os.kill(os.getpid(), signal.SIGTERM)
                done.append(job.id)
        assert len(done) == 1
        assert client.queue_length(queue) == 2
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_signals_need_the_main_thread(disqueue_server: Server, queue: str) -> None:
    caught: list[BaseException] = []

    def consume() -> None:
        with disqueue_server.client() as client:
            try:
                list(client.consume(queue, stop_on_signals=True))
            except ValueError as error:
                caught.append(error)

    thread = threading.Thread(target=consume)
    thread.start()
    thread.join()
    assert "main thread only" in str(caught[0])


def test_threads_share_a_client(disqueue_server: Server, queue: str) -> None:
    with Client(disqueue_server.url, max_connections=3) as client:
        client.add_many(queue, [b"%d" % number for number in range(400)])
        seen: list[bytes] = []

        def work() -> None:
            for job in client.consume(queue, prefetch=5, timeout=0.3, poll=0.1):
                with job:
                    seen.append(job.body)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == sorted(b"%d" % number for number in range(400))


def test_a_fork_gets_its_own_connections(disqueue_server: Server, queue: str) -> None:
    with disqueue_server.client() as client:
        client.add(queue, b"parent")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                job = client.get_one(queue, timeout=5)
                with job:
                    client.add(f"{queue}-answer", job.body + b" and child")
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        answer = client.get_one(f"{queue}-answer", timeout=5)
        assert answer.body == b"parent and child"
        answer.ack()


def test_a_paused_queue_is_waited_for(connect: Connect, disqueue_server: Server, queue: str) -> None:
    client = connect(disqueue_server.url)
    client.pause(queue, "in")
    with pytest.raises(QueuePausedError):
        client.add(queue, b"x")
    client.pause(queue, "none")
    client.ack(client.add(queue, b"x"))
