"""The ids of jobs that are over, remembered for a while. The plain twin of `recent.pyx`."""

from __future__ import annotations

GENERATION_MS = 30_000
GENERATION_IDS = 50_000
"""Two generations of at most so many ids: about 7 MB in C; at more than 1,000 a second the memory gets shorter than 30 s."""
ID_BYTES = 40


class RecentIds:
    """A set that forgets: an id stays for at least one generation, unless they come faster than the limit allows."""

    def __init__(self) -> None:
        self.young: set[bytes] = set()
        self.old: set[bytes] = set()
        self.started_ms = 0

    def add(self, job_id: bytes, now_ms: int) -> None:
        """Remember an id. Raises ValueError for what is none."""
        if len(job_id) != ID_BYTES:
            raise ValueError(f"a job id has {ID_BYTES} bytes, not {len(job_id)}")
        if len(self.young) >= GENERATION_IDS or now_ms - self.started_ms >= GENERATION_MS:
            self.old = self.young
            self.young = set()
            self.started_ms = now_ms
        self.young.add(job_id)

    def holds(self, job_id: bytes) -> bool:
        """Tell whether an id is remembered."""
        return job_id in self.young or job_id in self.old

    def __contains__(self, job_id: bytes) -> bool:
        return self.holds(job_id)

    def clear(self) -> None:
        """Forget all."""
        self.young = set()
        self.old = set()
