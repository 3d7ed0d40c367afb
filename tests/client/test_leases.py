"""When WORKING is sent, on a clock of the test's own."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from disqueue.client.errors import NoNodeError, TooLateError, UnknownJobError
from disqueue.client.leases import AGAIN_S, FIRST_S, MAX_INTERVAL_S, SHORTEST_LEASE_S, LeaseBook


def test_short_work_costs_nothing() -> None:
    book = LeaseBook()
    lease = book.start("a", 0)
    book.hold(lease)
    assert book.take_due(FIRST_S - 0.01) == []
    book.release(lease)
    assert book.take_due(100) == []
    assert book.next_due() is None
    assert len(book) == 0


def test_a_third_of_the_lease_between_two() -> None:
    book = LeaseBook()
    lease = book.start("a", 0)
    book.hold(lease)
    assert book.next_due() == FIRST_S
    assert book.take_due(FIRST_S) == [lease]
    assert book.take_due(FIRST_S) == []
    book.prolonged(lease, 30, 0.5)
    assert (book.next_due(), lease.until) == (10.5, 30.5)
    assert not book.over(lease, 30)
    assert book.over(lease, 30.5)
    assert book.take_due(11) == [lease]
    book.prolonged(lease, 3600, 11)
    assert book.next_due() == 11 + MAX_INTERVAL_S


def test_at_most_once_jobs_have_no_lease() -> None:
    book = LeaseBook()
    lease = book.start("a", 0)
    book.hold(lease)
    (due,) = book.take_due(1)
    book.prolonged(due, 0, 1)
    assert book.next_due() is None
    assert not book.over(lease, 1e9)


def test_refusals() -> None:
    book = LeaseBook()
    leases = [book.start(name, 0) for name in "abc"]
    for lease in leases:
        book.hold(lease)
    book.take_due(FIRST_S)
    for lease, error in zip(leases, [UnknownJobError(""), TooLateError(""), NoNodeError({})], strict=True):
        book.refused(lease, error, 0.5)
    assert [(lease.lost, lease.final) for lease in leases] == [(True, True), (False, True), (False, False)]
    assert book.next_due() == 0.5 + AGAIN_S
    assert book.take_due(2) == [leases[2]]
    book.refused(leases[2], NoNodeError({}), 2)  # so long without any word: it is over
    assert leases[2].lost
    assert book.next_due() == 2 + AGAIN_S


def test_a_lease_that_is_held_again_goes_on_from_what_is_known() -> None:
    book = LeaseBook()
    lease = book.start("a", 0)
    book.hold(lease)
    book.take_due(1)
    book.prolonged(lease, 30, 1)
    book.release(lease)
    book.hold(lease)
    assert book.next_due() == 11
    assert book.take_due(11) == [lease]


@given(st.integers(0, 2**32), st.integers(1, 400))
def test_nothing_is_left_behind_and_nothing_is_forgotten(seed: int, steps: int) -> None:
    rng, book, now, held = random.Random(seed), LeaseBook(), 0.0, {}
    for step in range(steps):
        now += rng.random()
        if held and rng.random() < 0.5:
            book.release(held.pop(rng.choice(list(held))))
        else:
            held[step] = book.start(str(step), now)
            book.hold(held[step])
        for lease in book.take_due(now):
            assert lease.held
            book.prolonged(lease, rng.choice([1, 5, 300]), now)
        assert all(
            not book.over(lease, now) for lease in held.values() if lease.confirmed or now - lease.received_at < SHORTEST_LEASE_S
        )
        assert len(book._due) <= 2 * len(held) + 65
    assert len(book) == len(held)
