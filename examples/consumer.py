"""Consume until SIGTERM or Ctrl-C, or until nothing came for a while: python examples/consumer.py."""

from __future__ import annotations

from disqueue import Client, Job

ATTEMPTS_MAX = 5


def handle(job: Job) -> None:
    """The work."""
    number: int = job.data["number"]
    if number == 3 and not job.nacks:
        raise RuntimeError("order 3 fails at first")


def main() -> None:
    done = 0
    with Client(serializer="json", client_name="consumer") as client:
        for job in client.consume("orders", prefetch=5, timeout=2, stop_on_signals=True):
            if job.nacks >= ATTEMPTS_MAX:
                client.add("orders.failed", job.data, ttl=30 * 86400)
                job.ack()
                continue
            try:
                with job:
                    handle(job)
                done += 1
            except RuntimeError as error:
                print("given back:", error)
    print(done, "orders done")


if __name__ == "__main__":
    main()
