"""Memory: what is used comes back, limits act in their order, and a node recovers by itself."""

from __future__ import annotations

import pytest

from .broker_session import BrokerSession

OUT_OF_MEMORY = "-OOM command not allowed when used memory > 'maxmemory'."
UNABLE = (
    "-NOREPL Not enough reachable nodes for the requested replication level, since I'm unable to hold a copy of the message"
    " for the following reason: I'm out of memory"
)


class Caller(BrokerSession):
    """A session that is called like a client."""

    def call(self, *words: str | bytes) -> str:
        """Send one request as the first client; its reply in the notation of transcripts."""
        self.send("A", [word if isinstance(word, bytes) else word.encode() for word in words])
        return str(self.receive("A"))

    def add(self, count: int, *options: str) -> list[str]:
        """Add jobs of 100 bytes; their IDs."""
        return [self.call("ADDJOB", "q", b"x" * 100, "0", *options)[1:] for _ in range(count)]

    def use(self, percent: int) -> None:
        """Set maxmemory so that this share of it is used now."""
        assert self.call("CONFIG", "SET", "maxmemory", str(self.node.memory_bytes() * 100 // percent)) == "+OK"


@pytest.fixture
def caller() -> Caller:
    return Caller()


def test_a_long_life_of_adds_and_acks_leaves_nothing(caller: Caller) -> None:
    base = caller.node.memory_bytes()
    for _ in range(500):
        ids = caller.add(4)
        caller.call("GETJOB", "COUNT", "2", "FROM", "q")
        assert caller.call("ACKJOB", *ids) == ":4"
        caller.advance(10)
    assert len(caller.node.jobs) == 0
    caller.advance(400_000)
    assert caller.node.memory_bytes() == base
    assert caller.node.next_deadline_ms() == -1


def test_a_burst_that_expires_in_one_instant_leaves_nothing(caller: Caller) -> None:
    caller.add(5000, "TTL", "60")
    caller.advance(60_000)
    assert caller.call("QLEN", "q") == ":0"
    assert len(caller.node.jobs) == 0
    caller.advance(400_000)
    assert caller.node.memory_bytes() == 0


def test_up_to_three_quarters_all_is_normal(caller: Caller) -> None:
    caller.add(1000)
    caller.use(70)
    assert caller.add(1)[0].startswith("D-")


def test_above_three_quarters_a_node_alone_goes_on(caller: Caller) -> None:
    # differs: alone-above-three-quarters
    caller.add(1000)
    caller.use(80)
    assert caller.add(1)[0].startswith("D-")


def test_above_three_quarters_new_jobs_go_elsewhere_or_are_refused_with_the_reason(caller: Caller) -> None:
    caller.add(1000)
    caller.use(80)
    caller.node.members.reachable = [object()]
    assert caller.call("ADDJOB", "q", "x", "0", "REPLICATE", "2") == UNABLE
    assert caller.call("GETJOB", "FROM", "q").startswith("*[")


def test_above_95_percent_jobs_are_refused_and_it_heals(caller: Caller) -> None:
    ids = caller.add(1000)
    caller.use(97)
    assert caller.call("ADDJOB", "q", "x", "0") == OUT_OF_MEMORY
    assert caller.call("NACK", ids[0]) == ":0"
    assert caller.call("ACKJOB", *ids[:500]) == ":500"
    assert caller.add(1)[0].startswith("D-")


def test_delivered_at_most_once_jobs_are_dropped_first_and_as_many_as_needed(caller: Caller) -> None:
    caller.add(500, "RETRY", "0")
    caller.call("GETJOB", "COUNT", "500", "FROM", "q")
    kept = caller.add(500)
    caller.use(150)
    assert caller.add(1)[0].startswith("D-")
    assert caller.call("QLEN", "q") == ":501"
    assert all(caller.call("SHOW", job).startswith("*[") for job in kept[:3])
    assert caller.node.evicted_jobs > 100


def test_noeviction_drops_nothing(caller: Caller) -> None:
    caller.add(500, "RETRY", "0")
    caller.call("GETJOB", "COUNT", "500", "FROM", "q")
    assert caller.call("CONFIG", "SET", "maxmemory-policy", "noeviction") == "+OK"
    caller.use(150)
    assert caller.call("ADDJOB", "q", "x", "0") == OUT_OF_MEMORY
    assert len(caller.node.jobs) == 500


def test_a_thousand_idle_queues_go_soon_when_memory_is_short(caller: Caller) -> None:
    for number in range(1000):
        job = caller.call("ADDJOB", f"q{number}", "x", "0")[1:]
        caller.call("ACKJOB", job)
    assert caller.node.visible_queues == 1000
    assert caller.call("CONFIG", "SET", "maxmemory", "1") == "+OK"
    caller.advance(50_000)
    assert caller.call("INFO", "queues").startswith('$"# Queues\\x0d\\x0aregistered_queues:0\\x0d')


def test_scans_see_every_queue_and_job_once(caller: Caller) -> None:
    for number in range(300):
        caller.call("ADDJOB", f"q{number}", "x", "0")
    for command in ("QSCAN", "JSCAN"):
        cursor, seen = b"0", []
        for _ in range(100):
            caller.send("A", [command.encode(), cursor, b"COUNT", b"7"])
            cursor_reply, page = caller.receive("A").items
            seen += [item.data for item in page.items]
            cursor = cursor_reply.data
            if cursor == b"0":
                break
        assert cursor == b"0"
        assert len(seen) == len(set(seen)) == 300
