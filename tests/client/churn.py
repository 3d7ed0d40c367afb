"""Nodes that die one after the other while jobs are produced and consumed: what comes of it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from disqueue.client import Client, DisqueueError, UnknownOutcomeError
from disqueue.testing import Cluster
from disqueue.testing.server import wait_for

RETRY_S = 2
DRAIN_S = 60.0


@dataclass
class Tally:
    """What producers were promised, and what consumers got."""

    promised: set[bytes] = field(default_factory=set)
    uncertain: set[bytes] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    delivered: Counter[bytes] = field(default_factory=Counter)
    consumer_errors: list[BaseException] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def lost(self) -> set[bytes]:
        """Promised, never delivered."""
        return self.promised - set(self.delivered)

    @property
    def unexpected(self) -> set[bytes]:
        """Delivered, though nobody had added them."""
        return set(self.delivered) - self.promised - self.uncertain

    @property
    def duplicates(self) -> int:
        """Deliveries beyond the first."""
        return sum(self.delivered.values()) - len(self.delivered)


class Churn:
    """Producers and consumers on a cluster of which one node after the other dies and comes back."""

    def __init__(self, cluster: Cluster, queue: str, producers: int = 2, consumers: int = 2) -> None:
        self.tally = Tally()
        self._cluster = cluster
        self._queue = queue
        self._ending = threading.Event()
        self._producers = [threading.Thread(target=self._produce, args=(number,)) for number in range(producers)]
        self._clients = [Client(cluster.url, retry_for=30.0, response_timeout=3.0) for _ in range(consumers)]
        self._sources = [client.consume(queue, prefetch=10, poll=0.5) for client in self._clients]
        self._consumers = [threading.Thread(target=self._consume, args=(number,)) for number in range(consumers)]

    def _produce(self, number: int) -> None:
        with Client(self._cluster.url, retry_for=30.0, response_timeout=3.0) as client:
            count = 0
            while not self._ending.is_set():
                body = f"{number}-{count}".encode()
                count += 1
                try:
                    client.add(self._queue, body, replicate=2, retry=RETRY_S, timeout=1.0)
                except UnknownOutcomeError:
                    with self.tally.lock:
                        self.tally.uncertain.add(body)
                except DisqueueError as error:
                    with self.tally.lock:
                        # A copy may be left where the add was given up.
                        self.tally.uncertain.add(body)
                        self.tally.refused[type(error).__name__] += 1
                else:
                    with self.tally.lock:
                        self.tally.promised.add(body)

    def _consume(self, number: int) -> None:
        try:
            for job in self._sources[number]:
                with job, self.tally.lock:
                    self.tally.delivered[job.body] += 1
        except BaseException as error:
            self.tally.consumer_errors.append(error)

    def run(self, deaths: int, interval: float) -> Tally:
        """Let nodes die, `interval` seconds and at least some deliveries between; then drain, and stop all."""
        for thread in (*self._producers, *self._consumers):
            thread.start()
        try:
            for death in range(deaths):
                victim = self._cluster.servers[death % len(self._cluster.servers)]
                # Two copies survive one death: the next one comes when all that the last one touched has been delivered.
                self.wait_for_progress()
                self.wait_for_delivery(set(self.tally.promised))
                victim.kill()
                self._ending.wait(interval)
                self.wait_for_progress()
                victim.start()
                self._cluster.wait_until_whole()
            self.wait_for_progress()
            self._ending.set()
            for thread in self._producers:
                thread.join()
            self.wait_for_delivery(self.tally.promised)
        finally:
            self._ending.set()
            for source in self._sources:
                source.stop()
            for thread in (*self._producers, *self._consumers):
                thread.join()
            for client in self._clients:
                client.close()
        return self.tally

    def wait_for_delivery(self, promised: set[bytes]) -> None:
        """Until all these were delivered."""
        wait_for(lambda: promised <= self.tally.delivered.keys(), "every promised job is delivered", DRAIN_S)

    def wait_for_progress(self, jobs: int = 50) -> None:
        """Until so many more jobs were delivered: throughput is there, or has returned."""
        aim = len(self.tally.delivered) + jobs
        wait_for(
            lambda: len(self.tally.delivered) >= aim or self.tally.consumer_errors, f"{jobs} more jobs are delivered", DRAIN_S
        )


def report(tally: Tally, seconds: float) -> str:
    """The outcome in a few lines."""
    return (
        f"{len(tally.promised)} jobs promised in {seconds:.0f} s, {len(tally.delivered)} delivered, lost {len(tally.lost)}, "
        f"unexpected {len(tally.unexpected)}, duplicates {tally.duplicates}, adds of unknown outcome or refused "
        f"{len(tally.uncertain)} {dict(tally.refused)}, errors in consuming loops {len(tally.consumer_errors)}"
    )


def main(seconds: float = 60.0, interval: float = 2.0) -> int:
    """A minute of it, from the command line: python -m tests.client.churn."""
    with Cluster(3) as cluster:
        started = time.monotonic()
        tally = Churn(cluster, "churn").run(deaths=int(seconds / (2 * interval)), interval=interval)
        print(report(tally, time.monotonic() - started))
    return 1 if tally.lost or tally.unexpected or tally.consumer_errors else 0


if __name__ == "__main__":
    raise SystemExit(main())
