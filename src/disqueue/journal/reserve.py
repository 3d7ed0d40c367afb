"""Space that is kept free for the day the disk is full: so that acknowledgements can be written and old segments be removed."""

from __future__ import annotations

import errno

from disqueue.journal.disk import Disk
from disqueue.journal.port import Executor

RESERVE = "reserve"
"""The name of the file that takes the space."""
RESERVE_BYTES = 40 << 20
"""A segment, which a start may have to write again, and room for acknowledgements: each takes 53 bytes."""
SMALLER = 4
SMALLER_TIMES = 3
"""Where that much is not free a fourth is asked for, and so on: 640 KB is better than nothing."""
AGAIN_MS = 1000
LATER_MS = 60_000
"""While nothing is missing yet, so often it is tried again to have a reserve."""
FULL = (errno.ENOSPC, errno.EDQUOT)


def is_full(error: BaseException) -> bool:
    """Tell whether an operation failed because there is no space."""
    return isinstance(error, OSError) and error.errno in FULL


class Reserve:
    """A file that takes space of the disk until it is needed. `size` 0: there is none.

    `spent`: the disk was full, the file is gone, and its space could not be had again yet. Then `left_bytes` is what is still
    there of it, as far as this process knows.
    """

    def __init__(self, disk: Disk, executor: Executor, size: int) -> None:
        self.disk = disk
        self.executor = executor
        self.size = size
        self.held_bytes = 0
        self.spent = False
        self.left_bytes = 0
        self._taking = False
        self._try_at_ms = 0

    def step(self, now_ms: int) -> None:
        """Have the reserve (again), in the background, if it is time to try."""
        if self.held_bytes or self._taking or self.size == 0 or now_ms < self._try_at_ms:
            return
        self._try_at_ms = now_ms + (AGAIN_MS if self.spent else LATER_MS)
        # Once there was one it has to be as large again, or the node would take jobs with ever less to fall back on.
        sizes = [self.size] if self.spent else [self.size // SMALLER**times for times in range(SMALLER_TIMES + 1)]
        taken: list[int] = []

        def take() -> None:
            for size in sizes:
                try:
                    self.disk.reserve(RESERVE, size)
                except OSError as error:
                    if size == sizes[-1] or not is_full(error):
                        raise
                else:
                    taken.append(size)
                    return

        def done(error: BaseException | None) -> None:
            self._taking = False
            if error is None:
                self.size = self.held_bytes = taken[0]
                self.spent = False

        self._taking = True
        self.executor.submit(take, done)

    def deadline_ms(self) -> int:
        """Return when `step` has something to do that somebody waits for, or -1."""
        return self._try_at_ms if self.spent and not self._taking else -1

    def release(self, now_ms: int) -> bool:
        """Give the space to who needs it; False: there is none to give."""
        if not self.held_bytes:
            return False
        try:
            self.disk.remove(RESERVE)
        except OSError:
            return False
        self.left_bytes = self.held_bytes
        self.held_bytes = 0
        self.spent = True
        self._try_at_ms = now_ms + AGAIN_MS
        return True

    def give_up(self) -> None:
        """Have no reserve any more: the journal is closed."""
        self.size = 0
        self.held_bytes = 0
        self.spent = False
