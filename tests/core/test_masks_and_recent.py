"""Sets of nodes, and the ids of jobs that are over: what both twins do, against plain Python."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disqueue.core.masks import count_of, covers, unconfirmed
from disqueue.core.recent import GENERATION_IDS, GENERATION_MS, RecentIds

masks = st.one_of(st.integers(0, 300), st.integers(0, 1 << 70), st.sampled_from([(1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63]))
steps = st.lists(st.tuples(st.sampled_from(["add", "add", "add", "ask", "wait", "clear"]), st.integers(0, 400)), max_size=400)


@given(owners=masks, members=masks, unknown=masks, confirmed=masks)
def test_masks_of_any_size(owners: int, members: int, unknown: int, confirmed: int) -> None:
    assert unconfirmed(owners, members, unknown, confirmed) == owners & (members | unknown) & ~confirmed & ~1
    assert covers(owners, members) == (owners | members == owners)
    assert covers(owners, owners & members)
    assert count_of(owners) == bin(owners).count("1")


def id_of_number(number: int) -> bytes:
    return b"D-00000000-%024d-05a1" % number


@settings(max_examples=150, deadline=None)
@given(steps=steps)
def test_ids_are_remembered_for_a_generation(steps: list[tuple[str, int]]) -> None:
    ids = RecentIds()
    added_ms: dict[int, int] = {}
    now_ms = GENERATION_MS
    for name, value in steps:
        if name == "add":
            ids.add(id_of_number(value), now_ms)
            added_ms[value] = now_ms
        elif name == "wait":
            now_ms += value * GENERATION_MS // 200
        elif name == "clear":
            ids.clear()
            added_ms = {}
        elif value not in added_ms:
            assert not ids.holds(id_of_number(value))
        elif now_ms - added_ms[value] < GENERATION_MS:
            assert ids.holds(id_of_number(value))
            assert id_of_number(value) in ids


@pytest.mark.parametrize("rounds", [1, 3])
def test_more_ids_than_a_generation_takes(rounds: int) -> None:
    """The last generation is held whole, the first of three is forgotten, and what was allocated for it is used again."""
    ids = RecentIds()
    for number in range(rounds * GENERATION_IDS):
        ids.add(id_of_number(number), 1)
    newest = range((rounds - 1) * GENERATION_IDS, rounds * GENERATION_IDS)
    assert all(ids.holds(id_of_number(number)) for number in newest)
    assert sum(ids.holds(id_of_number(number)) for number in range(GENERATION_IDS)) == (GENERATION_IDS if rounds == 1 else 0)


def test_what_is_no_id_is_not_held() -> None:
    ids = RecentIds()
    ids.add(id_of_number(1), 1)
    assert not ids.holds(b"")
    assert not ids.holds(id_of_number(1) + b"x")
    with pytest.raises(ValueError, match="40 bytes, not 3"):
        ids.add(b"D-1", 1)
