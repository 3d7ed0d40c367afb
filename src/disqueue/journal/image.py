"""What the records of a journal add up to: the state of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from disqueue.core.job import Job, new_job
from disqueue.core.job_table import JobTable
from disqueue.core.masks import covers
from disqueue.journal.job_order import JobOrder
from disqueue.journal.segments import Segment, SegmentTable
from disqueue.wire.journal_format import (
    CLOSED,
    ENDS,
    FORGOTTEN,
    FRAME_BYTES,
    JOB,
    JOBS,
    NODES,
    OPTIONAL_KINDS,
    PASS,
    PAUSES,
    QUEUE,
    RUN,
    SEGMENT_START,
    STATE,
    STATES,
    RecordError,
)
from disqueue.wire.journal_groups import GroupReader
from disqueue.wire.journal_meta import Closed, Nodes, Pauses, Queue, Run, decode_meta
from disqueue.wire.journal_records import (
    JobFields,
    decode_forgotten,
    read_job,
    read_state,
)
from disqueue.wire.journal_search import decode_pass

STATE_BYTES_MAX = 255
_STATE_BYTES_MAX = STATE_BYTES_MAX
"""More than this is not counted of a state record; only sets of very many nodes are longer."""


class Image:
    """A node's state as the journal tells it, built record by record.

    Until it is handed to a node a job's `queue` is the queue's name, and `due_ms` and `expires_ms` are times of a clock that
    never goes back: Unix time and `shift_ms`, which grows by what the wall clock was set back. `last_ms` is when the last pass
    was, by that clock. Sets of nodes are in the slots of this process: `slot_of(node_id)` gives them.
    """

    def __init__(self, table: SegmentTable, slot_of: Callable[[bytes], int]) -> None:
        self.table = table
        self.slot_of = slot_of
        self.slots = [0]
        self.unchanged = 1
        """The slots of the journal that are the same in this process."""
        self.jobs = JobTable()
        """A table whose growth and end never take long, as that of one dictionary does with a million jobs."""
        self.order = JobOrder()
        self.names: dict[bytes, bytes] = {}
        self.pauses: dict[bytes, Queue] = {}
        self.run: Run | None = None
        self.closed: Closed | None = None
        self.records = 0
        self.shift_ms = 0
        self.last_ms = 0
        self.fields = JobFields()
        self.group = GroupReader()

    def apply(self, kind: int, data: bytes, start: int, end: int, segment: Segment) -> None:
        """Take in one record of `segment`; raises `RecordError`."""
        self.records += 1
        if kind in (JOBS, STATES, ENDS):
            self._apply_group(kind, data, start, end, segment)
        elif kind == JOB:
            read_job(data, start, end, self.fields)
            self._apply_job(self.fields, segment, FRAME_BYTES + 1 + end - start)
        elif kind == STATE:
            read_state(data, start, end, self.fields)
            self._apply_state(self.fields, segment, FRAME_BYTES + 1 + end - start, False)
        elif kind == FORGOTTEN:
            job_id, target = decode_forgotten(data, start, end)
            self._apply_forgotten(job_id, target, segment, FRAME_BYTES + 1 + end - start)
        elif kind == PASS:
            self._apply_pass(decode_pass(data, start, end).wall_ms)
        elif kind != SEGMENT_START and kind < OPTIONAL_KINDS:
            self._apply_meta(kind, data[start:end])

    def _apply_pass(self, wall_ms: int) -> None:
        """A pass began. When the clock was set back, no time has passed since the one before."""
        time_ms = wall_ms + self.shift_ms
        if time_ms < self.last_ms:
            self.shift_ms += self.last_ms - time_ms
            time_ms = self.last_ms
        self.last_ms = time_ms

    def _apply_group(self, kind: int, data: bytes, start: int, end: int, segment: Segment) -> None:
        group = self.group
        group.begin(kind, data, start, end)
        while group.advance():
            if kind == JOBS:
                self._apply_job(group.fields, segment, group.size)
            elif kind == STATES:
                self._apply_state(group.fields, segment, group.size, True)
            else:
                self._apply_forgotten(group.fields.id, group.target, segment, group.size)

    def _apply_job(self, fields: JobFields, segment: Segment, size: int) -> None:
        job_id = fields.id
        older = self.jobs.get(job_id)
        if older is not None:
            if older.journal_segment != segment.number:
                self.table.unsettled.add(older.journal_segment)
            self._take_out(older)
        job = new_job(job_id, None, fields.body, fields.ctime_ns)
        job.queue = cast(Any, self.names.setdefault(fields.queue, fields.queue))
        job.expires_ms = fields.expires_wall_ms + self.shift_ms
        job.retry_s = fields.retry_s
        job.delay_s = fields.delay_s
        job.ttl_s = fields.ttl_s
        job.replicate = fields.repl
        self._set_state(job, fields)
        job.order_ns = fields.order_ns
        job.journal_segment = segment.number
        job.journal_bytes = size
        segment.jobs += 1
        segment.job_bytes += size
        segment.name_bytes = max(segment.name_bytes, len(fields.queue))
        self.jobs.add(job)
        self.order.add(job)

    def _apply_state(self, fields: JobFields, segment: Segment, size: int, in_order: bool) -> None:
        """`in_order`: the job's order is its ctime."""
        job = self.jobs.get(fields.id)
        if job is None:
            return  # its job's segment went away after it was forgotten
        self._set_state(job, fields)
        job.order_ns = job.ctime_ns if in_order else fields.order_ns
        if job.journal_state:
            self._take_out_state(job)
        size = min(size, _STATE_BYTES_MAX)
        job.journal_state = segment.number
        job.journal_state_bytes = size
        segment.states += 1
        segment.state_bytes += size

    def _set_state(self, job: Job, fields: JobFields) -> None:
        job.state = fields.state
        job.flags = fields.flags
        job.nacks = fields.nacks
        job.deliveries = fields.deliveries
        due_ms = fields.due_wall_ms
        job.due_ms = due_ms + self.shift_ms if due_ms != 0 else 0
        job.owners = fields.owners if covers(self.unchanged, fields.owners) else self._translate(fields.owners)
        job.confirmed = fields.confirmed if covers(self.unchanged, fields.confirmed) else self._translate(fields.confirmed)

    def _apply_forgotten(self, job_id: bytes, target: int, segment: Segment, size: int) -> None:
        segment.endings[target] = segment.endings.get(target, 0) + size
        job = self.jobs.get(job_id)
        if job is not None:
            self._take_out(job)

    def _take_out(self, job: Job) -> None:
        self.jobs.remove(job)
        self.order.remove(job)
        segment = self.table.by_number[job.journal_segment]
        segment.jobs -= 1
        segment.job_bytes -= job.journal_bytes
        if job.journal_state:
            self._take_out_state(job)

    def _take_out_state(self, job: Job) -> None:
        segment = self.table.by_number[job.journal_state]
        segment.states -= 1
        segment.state_bytes -= job.journal_state_bytes

    def _apply_meta(self, kind: int, payload: bytes) -> None:
        self.closed = None
        if kind == NODES:
            self._apply_nodes(decode_meta(Nodes, payload).slots)
        elif kind == QUEUE:
            queue = decode_meta(Queue, payload)
            self.pauses.pop(queue.name, None)
            if queue.paused_in or queue.paused_out:
                self.pauses[queue.name] = queue
        elif kind == PAUSES:
            self.pauses = {queue.name: queue for queue in decode_meta(Pauses, payload).queues}
        elif kind == RUN:
            self.run = decode_meta(Run, payload)
        elif kind == CLOSED:
            self.closed = decode_meta(Closed, payload)
        else:
            raise RecordError(f"a record of kind {kind}, which only a later release knows")

    def _apply_nodes(self, node_ids: list[bytes]) -> None:
        self.slots = [self.slot_of(node_id) for node_id in node_ids]
        self.unchanged = sum(1 << slot for slot, local in enumerate(self.slots) if slot == local)

    def _translate(self, mask: int) -> int:
        """Return a set of nodes in the slots of this process; a slot that was never named is dropped."""
        translated = 0
        for slot, local in enumerate(self.slots):
            if mask >> slot & 1 and local >= 0:
                translated |= 1 << local
        return translated
