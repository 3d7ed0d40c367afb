"""The segments that the journal is made of, and what in them is still needed."""

from __future__ import annotations

from disqueue.journal.manifest import Entry, Manifest
from disqueue.wire.journal_format import JOB_RECORD_BYTES, STATE_RECORD_BYTES

SETS_BYTES = 16
"""Two sets of 64 nodes. A job's part of a shared record, which is counted too, is longer than those in its own."""


class Segment:
    """One file, and what of it is needed.

    `jobs`/`job_bytes`: jobs whose newest full record is here; `name_bytes`: the longest name of their queues. `states`/
    `state_bytes`: jobs whose newest state record is here, behind their full one. `endings`: bytes of forgotten jobs' records, by
    the segment whose full record they cancel. Of a record about several jobs each takes its part, and the first one the head.
    `settled`: nothing will be added to the segment, and all of it is known to be on the disk.
    """

    def __init__(self, number: int, salt: int, size: int = 0) -> None:
        self.number = number
        self.salt = salt
        self.size = size
        self.settled = False
        self.jobs = 0
        self.job_bytes = 0
        self.name_bytes = 0
        self.states = 0
        self.state_bytes = 0
        self.endings: dict[int, int] = {}


class SegmentTable:
    """All segments by number; the active one is the last.

    `unsettled` are segments of which a compaction moved jobs away without the file being gone yet: they hold older copies of
    jobs that live elsewhere, so no other segment may go before they do.
    """

    def __init__(self, node_id: bytes) -> None:
        self.node_id = node_id
        self.by_number: dict[int, Segment] = {}
        self.active = Segment(0, 0)
        self.upcoming = 0
        """The segment that is made, is in the manifest, and is not begun yet; 0: none."""
        self.next_number = 1
        self.removing: list[int] = []
        self.unsettled: set[int] = set()
        self.runs = 0
        self.base_bytes = 0
        self.complete = True
        self.doubtful = 0

    def add(self, segment: Segment) -> None:
        """Make a segment the active one."""
        self.by_number[segment.number] = segment
        self.active = segment
        if segment.number == self.upcoming:
            self.upcoming = 0
        self.next_number = max(self.next_number, segment.number + 1)

    def drop(self, number: int) -> None:
        """Take a segment out; its file is to be removed once a manifest without it is on the disk."""
        del self.by_number[number]
        self.unsettled.discard(number)
        self.removing.append(number)

    def manifest(self, next_number: int = 0) -> Manifest:
        """Return the manifest as of now; `next_number`: a segment that is about to begin."""
        entries = [
            Entry(segment.number, segment.size if segment.settled else None) for _, segment in sorted(self.by_number.items())
        ]
        entries += [Entry(number) for number in (self.upcoming, next_number) if number]
        return Manifest(
            node_id=self.node_id.decode("ascii"),
            segments=entries,
            removing=list(self.removing),
            runs=self.runs,
            base_bytes=self.base_bytes,
            complete=self.complete,
            doubtful=self.doubtful,
        )

    def kept_bytes(self, segment: Segment) -> int:
        """Return what of this segment is needed."""
        return segment.job_bytes + segment.state_bytes + self._ending_bytes(segment)

    def rewritten_bytes_max(self, segment: Segment) -> int:
        """Return what writing that again may take: jobs that shared a record, and a queue's name in it, need not do so then."""
        alone = segment.jobs * (JOB_RECORD_BYTES + segment.name_bytes) + segment.states * (STATE_RECORD_BYTES + SETS_BYTES)
        return segment.job_bytes + alone + 2 * self._ending_bytes(segment)

    def _ending_bytes(self, segment: Segment) -> int:
        return sum(size for target, size in segment.endings.items() if target != segment.number and target in self.by_number)

    def total_bytes(self) -> int:
        """Return the size of all segments."""
        return sum(segment.size for segment in self.by_number.values())

    def live_bytes(self) -> int:
        """Return the size of the newest full records of all jobs."""
        return sum(segment.job_bytes for segment in self.by_number.values())
