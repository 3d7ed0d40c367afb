"""The timing wheel against a sorted list."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from disqueue.core.timers import NEVER_MS, Timed, TimerWheel

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("set"), st.integers(0, 30), st.one_of(st.integers(-5, 200), st.integers(0, 10**7), st.integers(0, 2**46))
        ),
        st.tuples(st.just("clear"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("turn"), st.one_of(st.integers(0, 300), st.integers(0, 10**8), st.integers(0, 2**45)), st.just(0)),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(start=st.integers(0, 2**40), operations=OPERATIONS, budget=st.integers(3, 50))
def test_wheel_fires_what_a_sorted_list_would(start: int, operations: list[tuple[str, int, int]], budget: int) -> None:
    """Everything due is fired at its turn, nothing early, nothing twice, and a cleared timer leaves nothing behind."""
    wheel = TimerWheel(start)
    timers = [Timed() for _ in range(31)]
    expected: dict[int, int] = {}
    now = start
    for name, number, offset in operations:
        if name == "set":
            wheel.set(timers[number], now + offset)
            expected[number] = now + offset
        elif name == "clear":
            wheel.clear(timers[number])
            expected.pop(number, None)
        else:
            now += number
            due: list[Timed] = []
            while True:
                deadline = wheel.next_ms()
                if deadline < 0 or deadline > now:
                    break
                due.extend(wheel.pop_due(now, budget))
            wanted = {key for key, when in expected.items() if when <= now}
            assert {timers.index(timed) for timed in due} == wanted
            assert len(due) == len(wanted)
            for key in wanted:
                assert timers[key].timer_slot == -1
                del expected[key]
        assert wheel.count == len(expected)
        assert sum(len(slot) for slot in wheel.slots) == len(expected)
        if expected:
            assert 0 <= wheel.next_ms() <= max(min(expected.values()), wheel.now_ms)
        else:
            assert wheel.next_ms() == -1


def test_a_deadline_of_never_is_not_kept() -> None:
    wheel = TimerWheel(0)
    timed = Timed()
    wheel.set(timed, NEVER_MS)
    assert wheel.count == 0
    wheel.set(timed, 5)
    wheel.set(timed, NEVER_MS + 1)
    assert wheel.count == 0
    assert wheel.next_ms() == -1


def test_a_burst_is_handed_out_within_the_budget() -> None:
    """A hundred thousand timers of one instant never cost one turn more than its budget."""
    wheel = TimerWheel(0)
    timers = [Timed() for _ in range(100_000)]
    for timed in timers:
        wheel.set(timed, 300_000)
    fired = 0
    turns = 0
    while wheel.next_ms() >= 0:
        wheel_time = 300_000
        fired += len(wheel.pop_due(wheel_time, 2000))
        turns += 1
        assert turns < 300
    assert fired == 100_000
    assert turns >= 100_000 // 2000
