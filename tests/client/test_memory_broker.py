"""The broker inside the process, in virtual and in real time."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta

import pytest

from disqueue.client import AsyncJob, BadJobIdError, CommandError, NotReplicatedError, OutOfMemoryError
from disqueue.testing import MemoryBroker, WaitsForEverError

YEAR_S = 365 * 86400


def test_delays_cost_no_time(disqueue_broker: MemoryBroker) -> None:
    client = disqueue_broker.client()
    started = time.monotonic()
    client.add("q", b"x", delay=timedelta(days=300), ttl=YEAR_S)
    assert client.get_one("q", timeout=0) is None
    disqueue_broker.advance(299 * 86400)
    assert client.get_one("q", timeout=0) is None
    disqueue_broker.advance(86400)
    with client.get_one("q", timeout=0) as job:  # type: ignore[union-attr]
        assert job.body == b"x"
    assert disqueue_broker.job_count() == 0
    assert time.monotonic() - started < 5


def test_a_wait_moves_time_just_as_far_as_needed(disqueue_broker: MemoryBroker) -> None:
    client = disqueue_broker.client()
    before = disqueue_broker.clock.now()
    client.add("q", b"x", delay=50)
    job = client.get_one("q", timeout=1000)
    assert job is not None
    assert 50 <= disqueue_broker.clock.now() - before < 51
    job.ack()
    before = disqueue_broker.clock.now()
    assert client.get_one("q", timeout=7) is None
    assert 7 <= disqueue_broker.clock.now() - before < 7.1


def test_a_lease_ends_and_the_job_comes_back(disqueue_broker: MemoryBroker) -> None:
    client = disqueue_broker.client()
    job_id = client.add("q", b"x", retry=30)
    assert client.get_one("q", timeout=0) is not None
    disqueue_broker.advance(29)
    assert client.get_one("q", timeout=0) is None
    disqueue_broker.advance(3)
    again = client.get_one("q", timeout=0)
    assert again is not None
    assert (again.id, again.additional_deliveries) == (job_id, 1)


def test_a_job_in_hand_is_kept_alive(disqueue_broker: MemoryBroker) -> None:
    client = disqueue_broker.client()
    client.add("q", b"x", retry=2, ttl=3600)
    with client.get_one("q", timeout=0) as job:  # type: ignore[union-attr]
        disqueue_broker.advance(600)
        assert client.queue_length("q") == 0
        assert not job.lease_lost
        disqueue_broker.advance(1500)  # more than half of its time to live: now it is given to others
        assert client.queue_length("q") == 1
    assert disqueue_broker.job_count() == 0


def test_waiting_for_ever_is_an_error_not_a_hang(disqueue_broker: MemoryBroker) -> None:
    client = disqueue_broker.client()
    with pytest.raises(WaitsForEverError, match="give it a timeout"):
        client.get("q")
    with pytest.raises(WaitsForEverError):
        next(iter(client.consume("q")))


def test_consuming(disqueue_broker: MemoryBroker) -> None:
    client = disqueue_broker.client(serializer="json")
    client.add_many("q", range(20))
    seen = []
    for job in client.consume("q", prefetch=7, timeout=1):
        with job:
            seen.append(job.data)
    assert seen == list(range(20))
    assert disqueue_broker.job_count() == 0


def test_options_and_errors() -> None:
    broker = MemoryBroker(virtual_time=True, options={"maxmemory": "1mb"})
    client = broker.client()
    with pytest.raises((OutOfMemoryError, NotReplicatedError), match="memory"):
        [client.add("q", bytes(10_000)) for _ in range(1000)]
    with pytest.raises(BadJobIdError):
        client.show("x")
    with pytest.raises(CommandError, match="SHUTDOWN"):
        client.execute("SHUTDOWN")
    broker.clear()
    assert broker.job_count() == 0
    assert client.hello().node_id


def test_real_time_and_threads() -> None:
    broker = MemoryBroker()
    client = broker.client()
    with pytest.raises(ValueError, match="virtual_time=True"):
        broker.advance(1)
    adder = threading.Timer(0.02, lambda: client.add("q", b"x", retry=1))
    adder.start()
    job = client.get_one("q", timeout=20)
    adder.join()
    assert job is not None
    with job:
        assert client.get_one("q", timeout=1.6) is None
        assert not job.lease_lost
    assert broker.job_count() == 0
    client.close()


@pytest.mark.parametrize("virtual_time", [False, True])
def test_asyncio(virtual_time: bool) -> None:
    broker = MemoryBroker(virtual_time=virtual_time)

    async def take() -> AsyncJob | None:
        async with broker.async_client() as client:
            return await client.get_one("q", timeout=20)

    async def main() -> None:
        waiting = asyncio.create_task(take())
        async with broker.async_client() as client:
            await client.add("q", b"x")
            job = await waiting
            assert job is not None
            assert job.body == b"x"
            assert await client.ack(job) == 1
            assert await client.get_one("q", timeout=0.05) is None

    asyncio.run(main())
    assert broker.job_count() == 0
