"""Turns a pass's changes into records: each job that changed is written once, as it is when the pass ends."""

from __future__ import annotations

from disqueue.core.job import Job
from disqueue.core.journal_port import JournalPort
from disqueue.core.node import Node
from disqueue.core.queue import PAUSED_IN, PAUSED_OUT, Queue
from disqueue.core.restoring import slot_ids
from disqueue.journal.image import STATE_BYTES_MAX
from disqueue.journal.job_records import JobRecords
from disqueue.journal.segments import Segment, SegmentTable
from disqueue.wire.journal_format import FORGOTTEN, JOB, NODES, PAUSES, QUEUE, STATE
from disqueue.wire.journal_groups import subjects
from disqueue.wire.journal_meta import Nodes, Pauses, encode_meta
from disqueue.wire.journal_meta import Queue as QueueRecord
from disqueue.wire.journal_records import append_record
from disqueue.wire.journal_search import split_records

GONE = 4
"""Bits of `job.journal_flags`: no longer in the registry; in the list of changed jobs; to be written whole."""
_GONE = GONE
_CHANGED = 1
_WHOLE_AGAIN = 2
_STATE_BYTES_MAX = STATE_BYTES_MAX


def pause_record(name: bytes, pause: int) -> QueueRecord:
    """Return what is written of a queue's pauses."""
    return QueueRecord(name, bool(pause & PAUSED_IN), bool(pause & PAUSED_OUT))


class Recorder(JournalPort):
    """What the core sees of the journal (`JournalPort`), and the records of a pass.

    Jobs carry what the journal knows of them: `journal_segment` (of the newest full record, 0: none) and `journal_bytes` (what it
    takes), `journal_state` (of the newest state record behind it, 0: none) and `journal_state_bytes`, and `journal_flags`.
    """

    def __init__(self, table: SegmentTable, node: Node) -> None:
        JournalPort.__init__(self)
        self.table = table
        self.node = node
        self.first_segment = 0
        """What jobs know of older segments belongs to an earlier life of the journal."""
        self.changed: list[Job] = []
        self.endings: list[tuple[bytes, int]] = []
        self.changed_queues: set[bytes] = set()
        self.slots_written: list[bytes] = []
        self.records = JobRecords()

    def job_added(self, job: Job) -> None:
        """See `JournalPort`."""
        self.job_changed(job)

    def job_changed(self, job: Job) -> None:
        """See `JournalPort`."""
        flags = job.journal_flags
        if flags & _CHANGED == 0:
            self.changed.append(job)
        job.journal_flags = (flags | _CHANGED) & ~_GONE

    def job_forgotten(self, job: Job) -> None:
        """See `JournalPort`. A job that came and went between two writes leaves no trace."""
        flags = job.journal_flags
        if flags & _CHANGED == 0:
            if job.journal_segment == 0:
                return
            self.changed.append(job)
        job.journal_flags = flags | _CHANGED | _GONE

    def body_dropped(self, job: Job) -> None:
        """See `JournalPort`. Compaction would write the job without it."""
        if job.journal_segment and job.journal_segment >= self.first_segment:
            segment = self._segment(job.journal_segment)
            body_bytes = len(job.body)
            segment.job_bytes -= body_bytes
            job.journal_bytes -= body_bytes

    def rewrite_job(self, job: Job) -> None:
        """Write a job whole again, because its segment is to go."""
        self.job_changed(job)
        job.journal_flags |= _WHOLE_AGAIN

    def queue_changed(self, queue: Queue) -> None:
        """See `JournalPort`."""
        self.changed_queues.add(queue.name)

    def pending(self) -> bool:
        """Return whether there is something to write."""
        return bool(self.changed or self.endings or self.changed_queues)

    def append_prologue(self, buffer: bytearray, base: int) -> None:
        """Append all that is not a job, so that no older segment is needed for it."""
        self.changed_queues.clear()
        self.slots_written = []
        self._append_slots(buffer, base)
        paused = [pause_record(queue.name, queue.pause) for queue in self.node.queues.values() if queue.pause]
        append_record(buffer, base, PAUSES, encode_meta(Pauses(paused)))

    def append_changes(self, buffer: bytearray, base: int, wall_offset_ms: int, jobs_max: int = 0) -> None:
        """Append what changed since the last time, of at most `jobs_max` jobs (0: all).

        `base` is the place of the buffer in the active segment, as in `wire.journal_records`; `wall_offset_ms` is Unix time
        less monotonic time.
        """
        self._append_slots(buffer, base)
        for name in sorted(self.changed_queues):
            queue = self.node.queues.get(name)
            record = pause_record(name, 0 if queue is None else queue.pause)
            append_record(buffer, base, QUEUE, encode_meta(record))
        self.changed_queues.clear()
        records = self.records
        records.begin(buffer, base)
        for job_id, segment in self.endings:
            self._account_ending(segment, records.ended_id(job_id, segment))
        self.endings.clear()
        changed = self.changed
        self.changed = []
        if jobs_max and len(changed) > jobs_max:
            self.changed = changed[jobs_max:]
            del changed[jobs_max:]
        for job in changed:
            self._append_change(records, job, wall_offset_ms)
        records.finish()

    def _append_change(self, records: JobRecords, job: Job, wall_offset_ms: int) -> None:
        flags = job.journal_flags
        job.journal_flags = 0
        if job.journal_segment < self.first_segment:
            job.journal_segment = 0
            job.journal_state = 0
        segment = job.journal_segment
        if flags & _GONE:
            if segment:
                self._unaccount(job)
                self._account_ending(segment, records.ended(job, segment))
        elif segment and not flags & _WHOLE_AGAIN:
            self._account_state(job, self.table.active, records.changed(job, wall_offset_ms))
        else:
            if segment:
                self._unaccount(job)
            self._account_job(job, self.table.active, records.whole(job, wall_offset_ms))

    def _account_ending(self, segment: int, size: int) -> None:
        """The end of a job was written; it is needed as long as the segment of its full record is there."""
        active = self.table.active
        if segment != active.number:
            active.endings[segment] = active.endings.get(segment, 0) + size

    def _segment(self, number: int) -> Segment:
        """Return a segment by its number; most often it is the active one."""
        active = self.table.active
        return active if active.number == number else self.table.by_number[number]

    def _append_slots(self, buffer: bytearray, base: int) -> None:
        """Say which nodes the slots stand for, before a set of nodes is written that needs it. Slots are only added."""
        written = self.slots_written
        members = self.node.members
        if len(members.by_slot) != len(written) or members.me.node_id != written[0]:
            self.slots_written = slot_ids(self.node)
            append_record(buffer, base, NODES, encode_meta(Nodes(self.slots_written)))

    def _account_job(self, job: Job, segment: Segment, size: int) -> None:
        """A full record of a job now stands in `segment`, its first or its newest, and takes `size` bytes."""
        segment.jobs += 1
        segment.job_bytes += size
        queue = job.queue
        if queue is not None:
            segment.name_bytes = max(segment.name_bytes, len(queue.name))
        job.journal_segment = segment.number
        job.journal_bytes = size

    def _account_state(self, job: Job, segment: Segment, size: int) -> None:
        """The newest state record of a job now stands in `segment`."""
        if job.journal_state:
            self._unaccount_state(job)
        size = min(size, _STATE_BYTES_MAX)
        segment.states += 1
        segment.state_bytes += size
        job.journal_state = segment.number
        job.journal_state_bytes = size

    def _unaccount_state(self, job: Job) -> None:
        segment = self._segment(job.journal_state)
        segment.states -= 1
        segment.state_bytes -= job.journal_state_bytes
        job.journal_state = 0

    def relocate(self, chunks: list[bytearray], segment: Segment, last: int, cut_bytes: int) -> None:
        """The records in `chunks` were written again, to `segment`: count them there instead of in `last` and those after it.

        The first `cut_bytes` of them stood in `last`.
        """
        cut = self.table.by_number[last]
        gone: dict[bytes, list[Job]] = {}  # an id can have gone more than once while nothing could be written
        for job in self.changed:
            if job.journal_flags & _GONE:
                gone.setdefault(job.id, []).append(job)
        for chunk in chunks:
            data = bytes(chunk)
            for record, start, end in split_records(data):
                for kind, job_id, target, size in subjects(record, data, start, end):
                    if kind == FORGOTTEN:
                        segment.endings[target] = segment.endings.get(target, 0) + size
                        if cut_bytes > 0 and target != last:
                            cut.endings[target] -= size
                        continue
                    for job in (*gone.get(job_id, ()), self.node.jobs.get(job_id)):
                        if job is not None:
                            self._relocate_job(job, kind, segment, last, size)
            cut_bytes -= len(data)

    def _relocate_job(self, job: Job, kind: int, segment: Segment, last: int, size: int) -> None:
        if kind == JOB:
            if job.journal_segment >= last:
                self._unaccount(job)
                self._account_job(job, segment, size)
        elif kind == STATE and (job.journal_segment >= last or job.journal_state >= last):
            self._account_state(job, segment, size)

    def _unaccount(self, job: Job) -> None:
        """What is written of a job is not needed any more."""
        if job.journal_segment:
            segment = self._segment(job.journal_segment)
            segment.jobs -= 1
            segment.job_bytes -= job.journal_bytes
            job.journal_segment = 0
        if job.journal_state:
            self._unaccount_state(job)
