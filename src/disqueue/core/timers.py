"""A hierarchical timing wheel: O(1) to set and to clear, and a cleared timer leaves nothing behind.

Eight levels of 64 slots cover 2**48 ms. Level 0 has a slot a millisecond; a timer further away waits in a coarser slot
and is moved down when the wheel gets there. A slot is a plain list and every timer knows its place in it, so that
clearing swaps it with the last one. Moving down and firing take a budget, so that a million timers of one instant do
not stop the loop. (G. Varghese, T. Lauck: Hashed and Hierarchical Timing Wheels, 1987.)
"""

from __future__ import annotations

from array import array

LEVELS = 8
SLOTS = 64
SLOT_BITS = 6
SLOT_MASK = 63
NEVER_MS = 1 << 47
"""A deadline at or after this one is not kept: it is about 4,400 years away."""
_NEVER_MS = NEVER_MS
UNKNOWN_MS = -2
"""`TimerWheel.soonest_ms` has to be worked out again."""


class Timed:
    """Something with one wake-up time. `wake_ms` is monotonic; `timer_slot` is -1 while it is not in a wheel."""

    def __init__(self) -> None:
        self.wake_ms = 0
        self.timer_slot = -1
        self.timer_index = 0


class TimerWheel:
    """The wake-up times of many `Timed` objects.

    `now_ms` is how far the wheel has turned: everything due before it has been handed out.
    """

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self.count = 0
        self.slots: list[list[Timed]] = [[] for _ in range(LEVELS * SLOTS)]
        self.masks = array("Q", bytes(8 * LEVELS))
        """Which slots of each level hold timers, one bit a slot."""
        self.soonest_ms = UNKNOWN_MS
        """What `next_ms` returned last, while it may still be right: it is asked for several times a pass."""

    def set(self, timed: Timed, wake_ms: int) -> None:
        """Wake `timed` at `wake_ms` instead of whatever was set before. A time that has passed fires at the next turn."""
        if timed.timer_slot >= 0:
            if timed.wake_ms == wake_ms:
                return
            self.clear(timed)
        timed.wake_ms = wake_ms
        if wake_ms < _NEVER_MS:
            start_ms = self._insert(timed, wake_ms)
            if self.count == 0 or start_ms < self.soonest_ms:
                self.soonest_ms = start_ms
            self.count += 1

    def clear(self, timed: Timed) -> None:
        """Forget the wake-up time of `timed`, if it has one."""
        slot = timed.timer_slot
        if slot < 0:
            return
        entries = self.slots[slot]
        last = entries.pop()
        if last is not timed:
            index = timed.timer_index
            entries[index] = last
            last.timer_index = index
        elif not entries:
            self._empty(slot)
        timed.timer_slot = -1
        self.count -= 1

    def next_ms(self) -> int:
        """Return when the wheel wants to be turned next (never after the first deadline), or -1 when it is empty."""
        if self.count == 0:
            return -1
        if self.soonest_ms >= self.now_ms:
            return self.soonest_ms
        best = -1
        level = 0
        while level < LEVELS:
            mask = self.masks[level]
            if mask != 0:
                start = self._slot_start(level, mask)
                if best < 0 or start < best:
                    best = start
            level += 1
        self.soonest_ms = best
        return best

    def pop_due(self, now_ms: int, budget: int) -> list[Timed]:
        """Turn the wheel to `now_ms` and return what is due, at most `budget` of them, ordered by wake-up time.

        What is returned has no wake-up time any more. The wheel stops early when the budget, which also pays for moving timers
        down, is used up; `next_ms()` is then not after `now_ms`.
        """
        due: list[Timed] = []
        left = budget
        while left > 0 and self.count > 0:
            start = self.next_ms()
            if start > now_ms:
                break
            if start > self.now_ms:
                self.now_ms = start
            left = self._drain(due, left)
            self.soonest_ms = UNKNOWN_MS
        if self.count == 0 or left > 0:
            self.now_ms = max(self.now_ms, now_ms)
        return due

    def _drain(self, due: list[Timed], left: int) -> int:
        """Hand out or move down what the wheel has reached; return what is left of the budget."""
        now_ms = self.now_ms
        level = LEVELS
        while level > 0:
            level -= 1
            slot = level * SLOTS + ((now_ms >> (SLOT_BITS * level)) & SLOT_MASK)
            entries = self.slots[slot]
            while entries:
                if left <= 0:
                    return 0
                left -= 1
                timed = entries.pop()
                timed.timer_slot = -1
                if timed.wake_ms <= now_ms:
                    self.count -= 1
                    due.append(timed)
                else:
                    self._insert(timed, timed.wake_ms)
            self._empty(slot)
        return left

    def _insert(self, timed: Timed, wake_ms: int) -> int:
        """Put a timer into its slot; return when the wheel has to be turned for it."""
        now_ms = self.now_ms
        if wake_ms < now_ms:
            wake_ms = now_ms
        # The level is where the deadline and the present first differ, so a slot of a level never means two rounds.
        level = 0
        difference = (wake_ms ^ now_ms) >> SLOT_BITS
        while difference != 0:
            difference >>= SLOT_BITS
            level += 1
        position = (wake_ms >> (SLOT_BITS * level)) & SLOT_MASK
        slot = level * SLOTS + position
        entries = self.slots[slot]
        timed.timer_slot = slot
        timed.timer_index = len(entries)
        entries.append(timed)
        bit = 1
        bit <<= position
        self.masks[level] |= bit
        shift = SLOT_BITS * level
        wake_ms = wake_ms >> shift << shift
        return wake_ms if wake_ms > now_ms else now_ms

    def _empty(self, slot: int) -> None:
        bit = 1
        bit <<= slot & SLOT_MASK
        self.masks[slot >> SLOT_BITS] &= ~bit

    def _slot_start(self, level: int, mask: int) -> int:
        """Return when the first used slot of a level begins; slots before the present one do not exist."""
        position = _lowest_bit(mask)
        shift = SLOT_BITS * level
        base = (self.now_ms >> (shift + SLOT_BITS)) << (shift + SLOT_BITS)
        start = position
        start = base + (start << shift)
        return start if start > self.now_ms else self.now_ms


def _lowest_bit(mask: int) -> int:
    """Return the number of the lowest bit that is set in a mask of 64 bits."""
    position = 0
    width = 32
    low = 0xFFFFFFFF
    while width > 0:
        if mask & low == 0:
            mask >>= width
            position += width
        width >>= 1
        low >>= width
    return position
