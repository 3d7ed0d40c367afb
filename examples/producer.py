"""Add jobs with all that can be said about one: python examples/producer.py."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from disqueue import Client
from disqueue.client import BatchError, NotReplicatedError, QueueFullError, UnknownOutcomeError


def add_orders(client: Client, count: int) -> list[str]:
    """Many at once; says which did not get in."""
    try:
        return client.add_many("orders", [{"number": number} for number in range(count)], retry=30)
    except BatchError as error:
        for result in error.results:
            if not isinstance(result, str):
                print("not added:", result)
        return [result for result in error.results if isinstance(result, str)]


def add_careful(client: Client) -> str | None:
    """One that must not be doubled, in a queue that must not grow."""
    try:
        return client.add("orders", {"number": 99}, maxlen=1000, timeout=2)
    except QueueFullError:
        print("consumers do not keep up: slow down")
    except NotReplicatedError:
        print("not enough nodes at present: try later")
    except UnknownOutcomeError:
        print("the connection broke: look before you try again")
    return None


def main() -> None:
    with Client(serializer="json", client_name="producer") as client:
        print(len(add_orders(client, 10)), "orders")
        print("careful:", add_careful(client) is not None)
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        reminder = client.add("reminders", {"text": "stock-taking"}, at=tomorrow, ttl=timedelta(days=3))
        job = client.show(reminder)
        print("reminder:", job.state if job is not None else "gone")


if __name__ == "__main__":
    main()
