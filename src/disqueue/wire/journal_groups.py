"""Records about several jobs, read; `journal_groups.pyx` is the compiled twin.

They are written by `journal.job_records`. A job of such a record takes its part of it, the first one the record's head too.
"""

from __future__ import annotations

from struct import Struct

from disqueue.wire.journal_format import (
    ENDS,
    ENDS_BYTES,
    ENDS_FIELDS,
    FORGOTTEN,
    FRAME_BYTES,
    JOB,
    JOBS,
    JOBS_BYTES,
    JOBS_FIELDS,
    JOBS_ITEM_BYTES,
    STATE,
    STATES,
    STATES_BYTES,
    STATES_FIELDS,
    TAIL_BYTES,
    RecordError,
)
from disqueue.wire.journal_records import JobFields, decode_forgotten, job_id_at

_STATES = Struct("<" + STATES_FIELDS)
_JOBS = Struct("<" + JOBS_FIELDS)
_ENDS = Struct("<" + ENDS_FIELDS)
_ITEM = Struct("<qi")
_HEAD_BYTES = {JOBS: JOBS_BYTES, STATES: STATES_BYTES, ENDS: ENDS_BYTES}


class GroupReader:
    """The jobs of a record, one after the other.

    After `begin`, `fields` has what they have in common, of an end `target` is the segment of the newest full record. Each
    `advance` that returns True fills in what belongs to one job; `size` is what it takes. Of `STATES` no order is told: it is the
    job's ctime.
    """

    def __init__(self) -> None:
        self.fields = JobFields()
        self.target = 0
        self.size = 0
        self._kind = 0
        self._data = b""
        self._at = 0
        self._left = 0
        self._prefix = b""
        self._lead = 0
        self._body_bytes = 0

    def begin(self, kind: int, data: bytes, start: int, end: int) -> None:
        """Go through the payload `data[start:end]` of a record of this kind. Raises `RecordError`."""
        at = start + _HEAD_BYTES[kind]
        self._left = 0  # of a record that is refused there is nothing to go through
        if at > end:
            raise RecordError("a record about several jobs is too short")
        fields = self.fields
        item_bytes = TAIL_BYTES
        queue_size = 0
        if kind == ENDS:
            self._prefix, count, self.target = _ENDS.unpack_from(data, start)
        else:
            (
                self._prefix,
                count,
                fields.state,
                fields.flags,
                fields.nacks,
                fields.deliveries,
                fields.due_wall_ms,
                fields.owners,
            ) = _STATES.unpack_from(data, start)
            fields.confirmed = 0
        if kind == JOBS:
            *_, fields.retry_s, fields.delay_s, fields.ttl_s, fields.repl, queue_size, self._body_bytes = _JOBS.unpack_from(
                data, start
            )
            item_bytes = JOBS_ITEM_BYTES + self._body_bytes
            fields.queue = data[at : at + queue_size]
        if count == 0 or at + queue_size + count * item_bytes > end:
            raise RecordError("a record about several jobs is shorter than it says")
        self._kind = kind
        self._data = data
        self._left = count
        self._at = at + queue_size
        self._lead = FRAME_BYTES + 1 + self._at - start

    def advance(self) -> bool:
        """Go to the next job; False: there is none. Raises `RecordError`."""
        if self._left == 0:
            return False
        self._left -= 1
        fields = self.fields
        data = self._data
        at = self._at
        fields.id = self._prefix + data[at : at + TAIL_BYTES]
        at += TAIL_BYTES
        if self._kind == JOBS:
            ctime_ns, later_ms = _ITEM.unpack_from(data, at)
            if ctime_ns < 0:
                raise RecordError("a job in a record about several was made before all times")
            fields.ctime_ns = fields.order_ns = ctime_ns
            fields.expires_wall_ms = ctime_ns // 1_000_000 + fields.ttl_s * 1000 + later_ms
            at += _ITEM.size
            fields.body = data[at : at + self._body_bytes]
            at += self._body_bytes
        self.size = self._lead + at - self._at
        self._lead = 0
        self._at = at
        return True


def subjects(kind: int, data: bytes, start: int, end: int) -> list[tuple[int, bytes, int, int]]:
    """Return what a record says of whom: `JOB`, `STATE` or `FORGOTTEN`, the id, of an end the segment, and what that takes.

    Nothing for a record about something else. Raises `RecordError`.
    """
    size = FRAME_BYTES + 1 + end - start
    if kind in (JOB, STATE):
        return [(kind, job_id_at(data, start), 0, size)]
    if kind == FORGOTTEN:
        job_id, target = decode_forgotten(data, start, end)
        return [(kind, job_id, target, size)]
    single = _SINGLE.get(kind)
    if single is None:
        return []
    reader = GroupReader()
    reader.begin(kind, data, start, end)
    found = []
    while reader.advance():
        found.append((single, reader.fields.id, reader.target, reader.size))
    return found


_SINGLE = {JOBS: JOB, STATES: STATE, ENDS: FORGOTTEN}
