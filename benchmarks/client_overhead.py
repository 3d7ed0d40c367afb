"""What the client costs a job, beside the same commands through bare redis-py: python benchmarks/client_overhead.py.

One job at a time: add, get, ack. CPU seconds of this process, not of the server, which runs beside it; so that the figures
say what a program pays for routing, retries, typed jobs and acks that know where to go.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable

import redis
import redis.asyncio

from disqueue.client import AsyncClient, Client
from disqueue.testing import Server

BODY = b"x" * 64
QUEUE = "overhead"


def raw(server: Server, jobs: int) -> float:
    connection = redis.Redis(host="127.0.0.1", port=server.port, protocol=2)
    started = time.process_time()
    for _ in range(jobs):
        connection.execute_command("ADDJOB", QUEUE, BODY, 5000)
        ((_, job_id, _, *_),) = connection.execute_command("GETJOB", "TIMEOUT", 5000, "WITHCOUNTERS", "FROM", QUEUE)
        connection.execute_command("ACKJOB", job_id)
    return time.process_time() - started


def sync_client(server: Server, jobs: int) -> float:
    with Client(server.url) as client:
        started = time.process_time()
        for _ in range(jobs):
            client.add(QUEUE, BODY)
            (job,) = client.get(QUEUE, timeout=5)
            job.ack()
        return time.process_time() - started


def sync_consumer(server: Server, jobs: int) -> float:
    with Client(server.url) as client:
        started = time.process_time()
        client.add_many(QUEUE, [BODY] * jobs)
        for number, job in enumerate(client.consume(QUEUE, prefetch=100)):
            with job:
                if number == jobs - 1:
                    break
        return time.process_time() - started


def raw_async(server: Server, jobs: int) -> float:
    async def main() -> float:
        connection = redis.asyncio.Redis(host="127.0.0.1", port=server.port, protocol=2)
        started = time.process_time()
        for _ in range(jobs):
            await connection.execute_command("ADDJOB", QUEUE, BODY, 5000)
            ((_, job_id, _, *_),) = await connection.execute_command("GETJOB", "TIMEOUT", 5000, "WITHCOUNTERS", "FROM", QUEUE)
            await connection.execute_command("ACKJOB", job_id)
        elapsed = time.process_time() - started
        await connection.aclose()
        return elapsed

    return asyncio.run(main())


def async_client(server: Server, jobs: int) -> float:
    async def main() -> float:
        async with AsyncClient(server.url) as client:
            started = time.process_time()
            for _ in range(jobs):
                await client.add(QUEUE, BODY)
                (job,) = await client.get(QUEUE, timeout=5)
                await job.ack()
            return time.process_time() - started

    return asyncio.run(main())


WAYS: dict[str, Callable[[Server, int], float]] = {
    "redis-py, one by one": raw,
    "Client, one by one": sync_client,
    "Client, add_many and consume(prefetch=100)": sync_consumer,
    "redis-py asyncio, one by one": raw_async,
    "AsyncClient, one by one": async_client,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--jobs", type=int, default=3000)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    figures: dict[str, list[float]] = {name: [] for name in WAYS}
    with Server() as server:
        for _ in range(options.rounds):  # in turns, so that a busy moment of the machine hits all
            for name, way in WAYS.items():
                figures[name].append(way(server, options.jobs) / options.jobs * 1e6)
    for name, values in figures.items():
        print(f"{name:45} {statistics.median(values):7.1f} us of CPU a job")


if __name__ == "__main__":
    main()
