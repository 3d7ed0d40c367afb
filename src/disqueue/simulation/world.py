"""Virtual time: what happens next, in an order that the seed alone decides."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

Action = Callable[[], None]


class Event:
    """Something that will happen, unless it is cancelled."""

    __slots__ = ("action", "when_ms")

    def __init__(self, when_ms: int, action: Action) -> None:
        self.when_ms = when_ms
        self.action: Action | None = action

    def cancel(self) -> None:
        """Let it not happen; harmless when it has."""
        self.action = None


class World:
    """The clock of a simulation and all that is still to happen.

    Events of one millisecond happen in the order in which they were planned.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now_ms = 0
        self.events_run = 0
        self._plan: list[tuple[int, int, Event]] = []
        self._order = 0

    def random(self, purpose: str) -> random.Random:
        """Return a source of chance of its own, so that what one part draws does not move what another one draws."""
        return random.Random(f"{self.seed}/{purpose}")

    def at(self, when_ms: int, action: Action) -> Event:
        """Plan an action for a time, or for now when that has passed."""
        event = Event(max(when_ms, self.now_ms), action)
        self._order += 1
        heapq.heappush(self._plan, (event.when_ms, self._order, event))
        return event

    def after(self, delay_ms: int, action: Action) -> Event:
        """Plan an action for later."""
        return self.at(self.now_ms + delay_ms, action)

    def run(self, until_ms: int, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass to `until_ms`, or until the condition holds after an event; tell whether it did."""
        plan = self._plan
        while plan and plan[0][0] <= until_ms:
            when_ms, _, event = heapq.heappop(plan)
            action = event.action
            if action is None:
                continue
            event.action = None
            self.now_ms = when_ms
            self.events_run += 1
            action()
            if until is not None and until():
                return True
        self.now_ms = max(self.now_ms, until_ms)
        return False
