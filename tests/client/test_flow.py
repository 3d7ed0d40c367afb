"""What becomes of commands when nodes fail: flows driven by hand, without sockets and without time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue.client import (
    AuthenticationError,
    BatchError,
    CommandError,
    JournalError,
    LoadingError,
    MalformedReplyError,
    NodeLeavingError,
    NoNodeError,
    NotReplicatedError,
    OutOfMemoryError,
    QueueFullError,
    UnknownOutcomeError,
    requests,
)
from disqueue.client.endpoints import Endpoint
from disqueue.client.errors import BY_CODE, DisqueueError, ReplyError, StoppedError, error_from_reply
from disqueue.client.flow import BATCH_REQUESTS, MAX_WAIT_S, BrokenError, Exchange, Flows, NotSentError, Pause
from disqueue.client.router import Route, Router

A, B = Endpoint("a", 1), Endpoint("b", 2)
LOST = BrokenError("reset", [])
REFUSED = NotSentError("refused")


class Stop:
    def __init__(self) -> None:
        self.asked = False

    def is_set(self) -> bool:
        return self.asked


class World:
    """Nodes that answer as the test says, and a clock that only pauses move."""

    def __init__(self, *seeds: Endpoint, retry_for: float = 15.0) -> None:
        self.now = 0.0
        self.router = Router(list(seeds or (A,)), discover=False, rng=random.Random(3))
        self.flows = Flows(self.router, retry_for, lambda: self.now)
        self.sent: list[tuple[Endpoint, list[Any]]] = []

    def run(self, flow: Any, answer: Callable[[Endpoint, list[Any]], Any]) -> Any:
        """Drive a flow; `answer` returns the replies, or an exception to throw into it."""
        try:
            effect = next(flow)
            while True:
                if isinstance(effect, Pause):
                    self.now += effect.seconds
                    effect = flow.send(None)
                    continue
                assert isinstance(effect, Exchange)
                names = [request.args for request in effect.requests]
                self.sent.append((effect.endpoint, names))
                assert len(self.sent) < 10_000
                result = answer(effect.endpoint, names)
                effect = flow.throw(result) if isinstance(result, Exception) else flow.send(result)
        except StopIteration as done:
            return done.value


def add(duplicates_ok: bool = False) -> requests.Request[str]:
    none: dict[str, Any] = dict.fromkeys(("timeout", "replicate", "delay", "at", "retry", "ttl", "maxlen"))
    return requests.add("q", b"x", requests.add_options(**none, asynchronous=False, duplicates_ok=duplicates_ok))


def script(*results: Any) -> Callable[[Endpoint, list[Any]], Any]:
    """One result for each exchange, the last one for ever."""
    left = list(results)
    return lambda endpoint, batch: left.pop(0) if len(left) > 1 else left[0]


def test_reads_are_sent_again() -> None:
    world = World()
    assert world.run(world.flows.one(requests.queue_length("q"), Route()), script(LOST, REFUSED, [7])) == 7
    assert len(world.sent) == 3


def test_an_add_is_sent_again_only_when_it_was_never_sent() -> None:
    world = World()
    assert world.run(world.flows.one(add(), Route()), script(REFUSED, REFUSED, [b"D-1"])) == "D-1"
    with pytest.raises(UnknownOutcomeError, match="ADDJOB was sent to a:1, but the reply never came"):
        world.run(world.flows.one(add(), Route()), script(LOST))
    assert world.run(world.flows.one(add(duplicates_ok=True), Route()), script(LOST, [b"D-1"])) == "D-1"


def test_it_gives_up_in_time_and_says_why() -> None:
    world = World(A, B, retry_for=5)
    with pytest.raises(NoNodeError) as caught:
        world.run(world.flows.one(requests.ping(), Route()), script(REFUSED))
    assert caught.value.reasons == {"a:1": "refused", "b:2": "refused"}
    assert 5 <= world.now < 6
    assert len(world.sent) < 40


def test_no_time_at_all_is_one_attempt() -> None:
    world = World(retry_for=0)
    with pytest.raises(NoNodeError):
        world.run(world.flows.one(requests.ping(), Route()), script(REFUSED))
    assert len(world.sent) == 1


@pytest.mark.parametrize("error", [NodeLeavingError("x"), LoadingError("x")])
def test_other_nodes_are_asked(error: ReplyError) -> None:
    world = World(A, B)
    assert world.run(world.flows.one(requests.ping(), Route()), script([error], [b"PONG"])) is None
    assert [endpoint for endpoint, _ in world.sent] in ([A, B], [B, A])
    world = World(A, B, retry_for=1)
    with pytest.raises(type(error)):
        world.run(world.flows.one(requests.ping(), Route()), script([error]))
    assert len(world.sent) < 40


@pytest.mark.parametrize(
    "error",
    [
        OutOfMemoryError("full"),
        JournalError("no space"),
        NotReplicatedError("Not enough reachable nodes …: I'm leaving the cluster"),
        NotReplicatedError("Not enough reachable nodes …: I'm out of memory"),
    ],
)
def test_adds_go_where_there_is_room(error: ReplyError) -> None:
    world = World(A, B)
    assert world.run(world.flows.one(add(), Route()), script([error], [b"D-1"])) == "D-1"
    world = World(A, B)
    with pytest.raises(type(error)):
        world.run(world.flows.one(add(), Route()), script([error]))
    assert len(world.sent) == 2  # each node once, no waiting
    world = World(A, B)
    with pytest.raises(type(error)):
        world.run(world.flows.one(requests.ping(), Route()), script([error]))
    assert len(world.sent) == 1


def test_other_errors_come_back_at_once() -> None:
    world = World(A, B)
    for error in (
        CommandError("x"),
        QueueFullError("x"),
        NotReplicatedError("Not enough reachable nodes"),
        AuthenticationError("x"),
    ):
        with pytest.raises(type(error)):
            world.run(world.flows.one(add(), Route()), script([error]))
    assert len(world.sent) == 4


def test_a_reply_that_makes_no_sense() -> None:
    world = World()
    with pytest.raises(MalformedReplyError, match="QLEN"):
        world.run(world.flows.one(requests.queue_length("q"), Route()), script([[b"what"]]))


def test_a_batch_is_sorted_out() -> None:
    world = World()
    full, broken = QueueFullError("x"), BrokenError("reset", [b"D-1"])
    with pytest.raises(BatchError) as caught:
        world.run(world.flows.add_many([add() for _ in range(3)], Route()), script(broken))
    first, *others = caught.value.results
    assert (first, [type(other) for other in others]) == ("D-1", [UnknownOutcomeError] * 2)
    with pytest.raises(BatchError) as caught:
        world.run(world.flows.add_many([add() for _ in range(3)], Route()), script([b"D-1", full, b"D-3"]))
    assert caught.value.results == ["D-1", full, "D-3"]
    batch = [add(duplicates_ok=True) for _ in range(3)]
    assert world.run(world.flows.add_many(batch, Route()), script(broken, [b"D-2", b"D-3"])) == ["D-1", "D-2", "D-3"]


def test_what_a_leaving_node_refused_of_a_batch_goes_elsewhere() -> None:
    world = World(A, B)
    leaving = NodeLeavingError("x")
    results = world.run(
        world.flows.add_many([add() for _ in range(3)], Route()), script([b"D-1", leaving, leaving], [b"D-2", b"D-3"])
    )
    assert results == ["D-1", "D-2", "D-3"]
    assert [len(batch) for _, batch in world.sent] == [3, 2]


def test_batches_go_in_portions() -> None:
    world = World()
    count = BATCH_REQUESTS * 2 + 1
    assert (
        len(world.run(world.flows.add_many([add() for _ in range(count)], Route()), lambda _, batch: [b"D"] * len(batch)))
        == count
    )
    assert [len(batch) for _, batch in world.sent] == [BATCH_REQUESTS, BATCH_REQUESTS, 1]
    world = World()
    options = requests.add_options(
        timeout=1, replicate=None, delay=None, at=None, retry=None, ttl=None, maxlen=None, asynchronous=False, duplicates_ok=False
    )
    big = [requests.add("q", bytes(600_000), options) for _ in range(3)]
    world.run(world.flows.add_many(big, Route()), lambda _, batch: [b"D"] * len(batch))
    assert [len(batch) for _, batch in world.sent] == [1, 1, 1]


def test_getjob_waits_in_slices_and_only_as_long_as_asked() -> None:
    world = World()

    def empty(endpoint: Endpoint, batch: list[Any]) -> list[Any]:
        ((_, word, wait_ms, *_),) = batch
        assert word == "TIMEOUT"
        world.now += wait_ms / 1000
        return [None]

    assert world.run(world.flows.get((b"q",), 1, 70.0, Route()), empty) == []
    waits = [batch[0][2] for _, batch in world.sent]
    assert waits == [MAX_WAIT_S * 1000, MAX_WAIT_S * 1000, 10_000]


def test_getjob_is_sent_again_for_the_rest_of_its_time() -> None:
    world, waits = World(), []

    def answer(endpoint: Endpoint, batch: list[Any]) -> Any:
        waits.append(batch[0][2] if batch[0][1] == "TIMEOUT" else 0)
        world.now += 4
        return LOST if len(waits) < 3 else [[[b"q", b"D-1", b"x"]]]

    assert world.run(world.flows.get((b"q",), 1, 10.0, Route()), answer) == [[b"q", b"D-1", b"x"]]
    assert waits[0] == 10_000
    assert waits[0] > waits[1] > waits[2]


def test_a_lost_getjob_is_not_an_empty_queue() -> None:
    world = World(retry_for=1)

    def dying(endpoint: Endpoint, batch: list[Any]) -> Any:
        world.now += 1
        return LOST if len(world.sent) == 1 else REFUSED

    with pytest.raises(NoNodeError):
        world.run(world.flows.get((b"q",), 1, 0.5, Route()), dying)


def test_a_stop_ends_the_search_for_a_node() -> None:
    world, stop = World(), Stop()

    def refuse(endpoint: Endpoint, batch: list[Any]) -> Any:
        stop.asked = len(world.sent) == 5
        return REFUSED

    with pytest.raises(StoppedError):
        world.run(world.flows.get((b"q",), 1, None, Route(), stop, float("inf")), refuse)


def test_jobs_go_back_to_their_nodes() -> None:
    world = World(A, B)
    routes = [Route(node, pinned=True) for node in world.router.nodes]
    jobs = [("D-1", routes[0]), ("D-2", routes[1]), ("D-3", routes[0])]
    assert world.run(world.flows.by_node("ACKJOB", jobs), lambda _, batch: [len(batch[0]) - 1]) == 3
    assert world.sent == [(A, [("ACKJOB", b"D-1", b"D-3")]), (B, [("ACKJOB", b"D-2")])]


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_every_prefix_has_its_class(code: str) -> None:
    error = error_from_reply(f"{code} some text")
    assert type(error) is BY_CODE[code]
    assert isinstance(error, DisqueueError)
    assert (error.reply_code, error.text, str(error)) == (code, "some text", f"{code} some text")


def test_other_prefixes() -> None:
    assert type(error_from_reply("STRANGE thing")) is ReplyError
    assert type(error_from_reply("no prefix at all")) is CommandError
    assert type(error_from_reply("ERR invalid password")) is AuthenticationError
    assert len({BY_CODE[code] for code in BY_CODE}) == len(BY_CODE) - 1


@given(
    st.lists(st.sampled_from(["ok", "lost", "refused", "leaving", "oom", "error"]), max_size=30), st.integers(1, 6), st.booleans()
)
def test_every_job_of_a_batch_has_one_fate(events: list[str], size: int, duplicates_ok: bool) -> None:
    """Whatever happens, each add ends with an id, or an error; without leave it is executed at most once."""
    world = World(A, B, retry_for=2)
    executed: dict[int, int] = {}
    left = list(events)

    def answer(endpoint: Endpoint, batch: list[Any]) -> Any:
        event = left.pop() if left else "ok"
        numbers = [int(arguments[2]) for arguments in batch]
        if event == "refused":
            return REFUSED
        if event in ("ok", "lost"):
            for number in numbers:
                executed[number] = executed.get(number, 0) + 1
        if event == "lost":
            half = len(batch) // 2
            return BrokenError("reset", [b"D-%d" % number for number in numbers[:half]])
        errors = {"leaving": NodeLeavingError("x"), "oom": OutOfMemoryError("x"), "error": CommandError("x")}
        return [errors.get(event, b"D-%d" % number) for number in numbers]

    options = requests.add_options(
        timeout=1,
        replicate=None,
        delay=None,
        at=None,
        retry=None,
        ttl=None,
        maxlen=None,
        asynchronous=False,
        duplicates_ok=duplicates_ok,
    )
    batch = [requests.add("q", b"%d" % number, options) for number in range(size)]
    results = world.run(world.flows.batch(batch, Route()), answer)
    for number, result in enumerate(results):
        if isinstance(result, str):
            assert result == f"D-{number}"
            assert executed[number] >= 1
        elif not isinstance(result, UnknownOutcomeError):
            assert isinstance(result, DisqueueError)
            assert duplicates_ok or number not in executed
        assert duplicates_ok or executed.get(number, 0) <= 1
