"""What happened in a run: a digest of everything, and the last events for people to read."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqueue.simulation.world import World

KEPT_EVENTS = 200_000
SHOWN_EVENTS = 80


class Trace:
    """The events of a run. The digest covers the time and the bytes of all that arrived anywhere."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.events: deque[tuple[int, str, str, bytes]] = deque(maxlen=KEPT_EVENTS)
        self._digest = hashlib.blake2b(digest_size=16)

    def note(self, who: str, what: str, job: bytes = b"") -> None:
        """Remember an event; `job` is the id or the mark of the job that it is about."""
        self.events.append((self.world.now_ms, who, what, job))

    def bytes_arrived(self, source: str, target: str, data: bytes) -> None:
        """Take what arrived into the digest."""
        self._digest.update(b"%d %b %b %d " % (self.world.now_ms, source.encode(), target.encode(), len(data)))
        self._digest.update(data)

    def digest(self) -> str:
        """Return the digest of all so far: equal for equal runs."""
        return self._digest.hexdigest()

    def about(self, jobs: set[bytes], count: int = SHOWN_EVENTS) -> list[str]:
        """Return the last events about some jobs and about the cluster, as lines."""
        chosen = [event for event in self.events if event[3] in jobs]
        if chosen:
            first_ms = chosen[-count:][0][0] if len(chosen) > count else chosen[0][0]
            wide = [event for event in self.events if event[0] >= first_ms and (event[3] in jobs or not event[3])]
            chosen = wide if len(wide) <= 2 * count else chosen
        else:
            chosen = [event for event in self.events if not event[3]]
        return [f"{when:>8} {who:<10} {what}" for when, who, what, _ in chosen[-3 * count :]]
