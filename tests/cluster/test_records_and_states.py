"""Every record of the bus meets every state of a job: nothing raises, all tables fit, nothing stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from disqueue.core import forwarding
from disqueue.core.job import (
    ACKED,
    ACTIVE,
    DELAYED,
    DELETED,
    DELIVERED,
    HELD,
    LEASED,
    MOVED,
    PLACEHOLDER,
    QUEUED,
    WAIT_REPL,
)
from disqueue.wire import job_records as wire

from .lone_node import UNKNOWN_ID, UNKNOWN_ONCE, LoneNode

# -- states: each function brings a job into one, and returns its id


def unknown(_one: LoneNode) -> bytes:
    return UNKNOWN_ID


def unknown_once(_one: LoneNode) -> bytes:
    return UNKNOWN_ONCE


def over(one: LoneNode) -> bytes:
    one.receive(one.peers[0], wire.Batch(wire.DELETE, [UNKNOWN_ID], []))
    return UNKNOWN_ID


def waits_for_copies(one: LoneNode) -> bytes:
    return one.add(replicate=3, timeout_ms=60_000)


def waits_for_copies_elsewhere(one: LoneNode) -> bytes:
    one.node.settings.maxmemory_bytes = 1
    job = one.add(replicate=2)
    one.node.settings.maxmemory_bytes = 0
    return job


def copied_in_the_background(one: LoneNode) -> bytes:
    return one.add(replicate=3, asynchronous=1)


def queued(one: LoneNode) -> bytes:
    return one.add()


def queued_with_copies(one: LoneNode) -> bytes:
    job = waits_for_copies(one)
    for peer in one.peers:
        one.receive(peer, wire.Batch(wire.STORED, [job], []))
    return job


def queued_once(one: LoneNode) -> bytes:
    return one.add(retry_s=0)


def replica(one: LoneNode) -> bytes:
    return one.replica()


def leased(one: LoneNode) -> bytes:
    job = one.add()
    one.take()
    return job


def leased_with_copies(one: LoneNode) -> bytes:
    job = queued_with_copies(one)
    one.take()
    return job


def delivered_once(one: LoneNode) -> bytes:
    job = one.add(retry_s=0)
    one.take()
    return job


def delayed(one: LoneNode) -> bytes:
    return one.add(delay_s=30)


def delayed_once(one: LoneNode) -> bytes:
    return one.add(delay_s=30, retry_s=0)


def moved(one: LoneNode) -> bytes:
    one.receive(one.peers[0], wire.Want(b"q", 1))
    return one.add()


def moved_and_received(one: LoneNode) -> bytes:
    job = moved(one)
    one.receive(one.peers[0], wire.Batch(wire.RECEIVED, [job], []))
    return job


def offered(one: LoneNode) -> bytes:
    one.receive(one.peers[0], wire.Want(b"q", 1))
    return one.add(retry_s=0)


def given_up(one: LoneNode) -> bytes:
    job = offered(one)
    one.receive(one.peers[0], wire.Batch(wire.ACCEPT, [job], []))
    return job


def held(one: LoneNode) -> bytes:
    one.receive(one.peers[0], wire.Offer([one.record(UNKNOWN_ONCE)]))
    return UNKNOWN_ONCE


def imported(one: LoneNode) -> bytes:
    one.receive(one.peers[0], wire.Move([one.record(UNKNOWN_ID)]))
    return UNKNOWN_ID


def acked(one: LoneNode) -> bytes:
    job = queued_with_copies(one)
    one.run(lambda: one.node.id_command(one.client(), forwarding.ACKJOB, [job]))
    return job


def deleted(one: LoneNode) -> bytes:
    job = queued_with_copies(one)
    one.run(lambda: one.node.id_command(one.client(), forwarding.DELJOB, [job]))
    return job


def acked_unknown(one: LoneNode) -> bytes:
    one.run(lambda: one.node.id_command(one.client(), forwarding.ACKJOB, [UNKNOWN_ID]))
    return UNKNOWN_ID


def being_handed_over(one: LoneNode) -> bytes:
    job = one.replica()
    one.run(lambda: one.node.set_leaving(True))
    one.let_pass(60)
    return job


def departing(one: LoneNode) -> bytes:
    job = being_handed_over(one)
    for peer in one.peers:
        one.receive(peer, wire.Batch(wire.STORED, [job], []))
    return job


STATES: dict[Callable[[LoneNode], bytes], tuple[int, int] | None] = {
    unknown: None,
    unknown_once: None,
    over: None,
    given_up: None,
    waits_for_copies: (WAIT_REPL, 0),
    waits_for_copies_elsewhere: (WAIT_REPL, 0),
    copied_in_the_background: (QUEUED, 0),
    queued: (QUEUED, 0),
    queued_with_copies: (QUEUED, 0),
    queued_once: (QUEUED, 0),
    replica: (ACTIVE, 0),
    leased: (ACTIVE, LEASED),
    leased_with_copies: (ACTIVE, LEASED),
    delivered_once: (ACTIVE, DELIVERED),
    delayed: (ACTIVE, DELAYED),
    delayed_once: (ACTIVE, DELAYED),
    moved: (ACTIVE, MOVED),
    moved_and_received: (ACTIVE, MOVED),
    offered: (ACTIVE, HELD),
    held: (ACTIVE, HELD),
    imported: (QUEUED, 0),
    acked: (ACKED, 0),
    deleted: (ACKED, DELETED),
    acked_unknown: (ACKED, PLACEHOLDER),
    being_handed_over: (ACTIVE, 0),
    departing: (ACTIVE, 0),
}
"""And the state and a flag that show that the job is in it; None: the node does not know the job."""

# -- records about a job

KINDS = range(wire.STORED, wire.OWNERS_KNOWN + 1)
NUMBERS = (0, 1, 3, 6, 1 << 46)
MASKS: tuple[int | bytes, ...] = (0, 3, 15, b"\xff" * 40)
Record = Callable[[LoneNode, bytes], Any]

RECORDS: dict[str, Record] = {
    "store": lambda one, job: wire.Store([one.record(job)]),
    "store and queue": lambda one, job: wire.Store([one.record(job)], True),
    "store for another queue": lambda one, job: wire.Store([one.record(job, b"other")]),
    "move": lambda one, job: wire.Move([one.record(job)]),
    "offer": lambda one, job: wire.Offer([one.record(job)]),
    "answer": lambda _one, _job: wire.Answer(1, [1]),
    "answer unknown": lambda _one, _job: wire.Answer(1, [-1]),
    "want": lambda _one, _job: wire.Want(b"q", 1000),
    "want no more": lambda _one, _job: wire.Want(b"q", 0),
    "slots": lambda _one, _job: wire.Slots(0, [b"f" * 40, b"0" * 40]),
    "slots with a gap": lambda _one, _job: wire.Slots(900, [b"e" * 40]),
}
for kind in KINDS:
    for number in NUMBERS:
        RECORDS[f"batch {kind} {number}"] = lambda _one, job, kind=kind, number=number: wire.Batch(kind, [job], [number])
    RECORDS[f"batch {kind} without numbers"] = lambda _one, job, kind=kind: wire.Batch(kind, [job, job], [])
    RECORDS[f"batch {kind} with too few numbers"] = lambda _one, job, kind=kind: wire.Batch(kind, [job, job], [1])
for mask in MASKS:
    for record_type in (wire.SetAck, wire.GotAck, wire.Owners):
        RECORDS[f"{record_type.__name__} {mask!r}"] = lambda _one, job, kind=record_type, mask=mask: kind([job], [mask])
for verb in range(9):
    RECORDS[f"forward {verb}"] = lambda _one, job, verb=verb: wire.Forward(5, verb, [job, job])
for pause in range(4):
    RECORDS[f"pause {pause}"] = lambda _one, _job, pause=pause: wire.PauseQueue(b"q", pause)
FROM_BOTH = {name for name in RECORDS if name.endswith((" 3", " 7", "numbers", "store", "move", "offer"))}
"""These also come from a node that has nothing to do with the job."""


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_each_record_meets_each_state(state: Callable[[LoneNode], bytes]) -> None:
    for name, record in RECORDS.items():
        for sender in (0, 1) if name in FROM_BOTH else (0,):
            one = LoneNode()
            job = state(one)
            expected, found = STATES[state], one.node.jobs.get(job)
            assert (found is None) == (expected is None)
            if found is not None and expected is not None:
                assert found.state == expected[0], state.__name__
                assert found.flags & expected[1] == expected[1], state.__name__
            one.check()
            try:
                one.receive(one.peers[sender], record(one, job))
                one.check()
                one.let_pass(20_000)
                one.check()
                one.check_nothing_left()
            except Exception as error:
                raise AssertionError(f"{name} from peer {sender} in the state {state.__name__}: {error!r}") from error


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_each_state_meets_broken_links_and_forgotten_nodes(state: Callable[[LoneNode], bytes]) -> None:
    for forgotten in (False, True):
        one = LoneNode()
        state(one)
        for peer in list(one.peers):
            one.lose(peer)
            one.check()
            if forgotten:
                one.forget(peer)
                one.check()
        one.let_pass(3000)
        for peer in one.peers:
            one.regain(peer)
            one.check()
        one.check_nothing_left()


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_each_state_meets_each_command(state: Callable[[LoneNode], bytes]) -> None:
    for verb in range(1, 8):
        one = LoneNode()
        job = state(one)
        if verb == forwarding.WORKING:
            one.run(lambda one=one, job=job: one.node.working(one.client(), job))
        else:
            one.run(lambda one=one, job=job, verb=verb: one.node.id_command(one.client(), verb, [job, job]))
        one.check()
        one.let_pass(20_000)
        one.check()
        one.run(one.node.flush)
        one.check()
        assert len(one.node.jobs) == 0
        one.check_nothing_left()


# -- any order of all of them

STEPS = st.one_of(
    st.tuples(st.just("record"), st.sampled_from(sorted(RECORDS)), st.integers(0, 2), st.integers(0, 5)),
    st.tuples(st.just("state"), st.sampled_from(list(STATES)), st.just(0), st.just(0)),
    st.tuples(st.just("command"), st.integers(1, 7), st.just(0), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.sampled_from([1, 60, 700, 5_000, 60_000]), st.just(0), st.just(0)),
    st.tuples(st.sampled_from(["take", "leave", "stay", "wait for jobs"]), st.just(0), st.just(0), st.just(0)),
    st.tuples(st.sampled_from(["lose", "regain"]), st.just(0), st.integers(0, 2), st.just(0)),
)


class Story:
    """Steps on one node, about the jobs that they have made."""

    def __init__(self) -> None:
        self.one = LoneNode()
        self.ids = [UNKNOWN_ID, UNKNOWN_ONCE]

    def step(self, what: str, detail: Any, peer: int, job: int) -> None:
        one, node = self.one, self.one.node
        job_id = self.ids[-1 - job % len(self.ids)]
        if what == "record":
            if one.peers[peer].link_up:
                one.receive(one.peers[peer], RECORDS[detail](one, job_id))
        elif what == "state":
            if not node.leaving and len(node.members.reachable) == len(one.peers):
                try:
                    self.ids.append(detail(one))
                except StopIteration:
                    pass  # paused, or moved on at once
        elif what == "command":
            one.run(lambda: node.id_command(one.client(), detail, [job_id]))
        elif what == "wait":
            one.let_pass(detail)
        elif what == "take":
            one.take()
        elif what == "wait for jobs":
            one.run(lambda: node.get_jobs(one.client(), [b"q"], 1, 0, False, False))
        elif what in ("leave", "stay"):
            one.run(lambda: node.set_leaving(what == "leave"))
        else:
            (one.lose if what == "lose" else one.regain)(one.peers[peer])
        one.check()
        one.sent()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, max_size=40))
def test_any_order_of_records_commands_and_faults(steps: list[tuple[str, Any, int, int]]) -> None:
    story = Story()
    for step in steps:
        story.step(*step)
    story.one.run(lambda: story.one.node.set_leaving(False))
    story.one.run(lambda: story.one.node.pause_here(b"q", 0))
    story.one.check_nothing_left()
