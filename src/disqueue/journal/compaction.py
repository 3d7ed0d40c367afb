"""Gives the space of what is not needed any more back, in small steps.

A segment of which nothing is needed is removed. One of which little is needed is read again, record by record: what of it
is still the newest about a job is written once more with the next pass, and when that is on the disk, the segment is removed.
A job's end is written once more as long as an older segment still holds the job.

The manifest without the segment is stored before the file is removed, and not before everything that replaces it is on the
disk. So at any moment the files on the disk are a whole journal, and a crash only means that some work is done again.
"""

from __future__ import annotations

from collections.abc import Callable

from disqueue.journal.disk import Disk
from disqueue.journal.manifest import NEW_SUFFIX, segment_name, store_manifest
from disqueue.journal.port import JobSource
from disqueue.journal.recorder import Recorder
from disqueue.journal.segments import Segment, SegmentTable
from disqueue.journal.writer import Writer, reason_of
from disqueue.wire.journal_format import (
    FORGOTTEN,
    HEADER_BYTES,
    JOB,
    STATE,
    WHOLE,
)
from disqueue.wire.journal_groups import subjects
from disqueue.wire.journal_records import RecordScanner

CHUNK_BYTES = 512 << 10
"""Read ahead in the background."""
STEP_BYTES = 96 << 10
_STEP_BYTES = STEP_BYTES
"""Looked at in one step: about 500 records, two milliseconds when all of them are to be written again."""
LOOK_MS = 5
_LOOK_MS = LOOK_MS
"""So often it is looked for segments of which little is needed, and not in each of the many passes of a busy server."""
SHARE_MAX = 0.8
"""A segment of which more is needed than this is not worth the work."""
RESERVE_SHARE = 16
"""While the disk is full the active segment ends early when it has so large a part of the reserve's size."""
MANIFEST_ROOM = 1024
"""What a new manifest and the head of a segment take, about."""
SEGMENTS_MAX = 64
"""More files than this are made fewer, whatever is in them: each start of a server begins one."""

IDLE = 0
READING = 1
SYNCING = 2
DROPPING = 3
_IDLE, _READING, _SYNCING = IDLE, READING, SYNCING


def no_log(_level: str, _event: str, **_fields: object) -> None:
    """Drop a log event."""


class Compactor:
    """The background work on one journal.

    `step` is called once a pass, after its records are written; `deadline_ms` tells whether there is more to do.
    """

    def __init__(self, disk: Disk, table: SegmentTable, writer: Writer, recorder: Recorder, jobs: JobSource) -> None:
        self.disk = disk
        self.table = table
        self.writer = writer
        self.recorder = recorder
        self.jobs = jobs
        self.percentage = 100
        self.min_bytes = 64 << 20
        self.state = IDLE
        self.error = ""
        self.rewrite_up_to = 0
        self.log: Callable[..., None] = no_log
        self.last_ms = -1
        """How long the last compaction on demand took."""
        self._began_ms = 0
        self.store_wanted = False
        self._source: Segment | None = None
        self._scanner = RecordScanner(0)
        self._offset = 0
        self._ready: bytes | None = None
        self._loading = False
        self._wait_for = (0, 0)
        self._retry_at_ms = 0
        self._look_at_ms = 0
        self._stopped = False
        """The accounts of a segment turned out wrong: nothing is removed any more by this process."""

    # -- on demand

    def rewrite(self) -> None:
        """Compact all that is written up to now; begin with what is sealed."""
        self.rewrite_up_to = self.table.active.number
        self._began_ms = self.writer.now_ms

    def rewriting(self) -> bool:
        """Return whether a compaction on demand is going on."""
        return self.rewrite_up_to != 0

    def current_ms(self) -> int:
        """Return how long the compaction on demand has been going on."""
        return self.writer.now_ms - self._began_ms

    def store_soon(self) -> None:
        """Store a manifest with what has changed in the table."""
        self.store_wanted = True

    # -- steps

    def deadline_ms(self, now_ms: int) -> int:
        """Return when `step` has something to do, or -1."""
        if self._stopped:
            return -1
        if self.error:
            return self._retry_at_ms
        if self.state == _READING and self._ready is not None:
            return now_ms + 1
        if self.state == _SYNCING or self.rewrite_up_to or self.store_wanted:
            return now_ms + 5
        return -1

    def step(self, now_ms: int) -> None:
        """Do a bounded piece of work. Nothing is done while the journal is in trouble."""
        if self._stopped or self.writer.error or (self.error and now_ms < self._retry_at_ms):
            return
        if self.state == _IDLE:
            if now_ms >= self._look_at_ms or self.rewrite_up_to or self.store_wanted:
                self._look_at_ms = now_ms + _LOOK_MS
                self._choose()
                if self.error and self.state == _IDLE:
                    self._retry_at_ms = now_ms + 1000  # nothing could be begun that would show whether it works again
        elif self.state == _READING:
            self._read()
        elif self.state == _SYNCING:
            self._drop_when_synced()

    def _choose(self) -> None:
        full = self.writer.reserve.spent
        source = self._unsettled() or self._dead() or (self._cheapest() if full else self._wanted() or self._worst())
        if source is not None and full and not self._fits(source):
            return  # acknowledgements make it fit, or somebody gives space
        if source is not None:
            self._begin(source)
        elif self.rewrite_up_to:
            if min(self.table.by_number) > self.rewrite_up_to:
                self._rewritten()
            else:
                self.writer.sync_soon()  # a segment is looked at when all of it is on the disk
        elif self.store_wanted and not self.writer.busy:
            self._drop(None)
        elif full and len(self.writer.files) > 1:
            self.writer.sync_soon()

    def _begin(self, source: Segment) -> None:
        self._source = source
        if self.table.kept_bytes(source) == 0:
            self._await_sync()
            return
        self.table.unsettled.add(source.number)
        self._scanner = RecordScanner(source.salt)
        self._offset = HEADER_BYTES
        self._ready = None
        self.state = _READING
        self._load()

    def _candidates(self) -> list[Segment]:
        active = self.table.active.number
        return [segment for number, segment in self.table.by_number.items() if number != active and segment.settled]

    def _unsettled(self) -> Segment | None:
        """Return the oldest segment of which a compaction began: copies of its jobs may stand in newer ones of the kind."""
        unsettled = [segment for segment in self._candidates() if segment.number in self.table.unsettled]
        return min(unsettled, key=_number, default=None)

    def _dead(self) -> Segment | None:
        for segment in self._candidates():
            if self.table.kept_bytes(segment) == 0:
                return segment
        return None

    def _wanted(self) -> Segment | None:
        """Return the oldest segment that a compaction on demand has still to look at."""
        if not self.rewrite_up_to:
            return None
        wanted = [segment for segment in self._candidates() if segment.number <= self.rewrite_up_to]
        return min(wanted, key=_number, default=None)

    def _worst(self) -> Segment | None:
        """Return the segment of which least is needed, if it is time to compact."""
        candidates = self._candidates()
        if not candidates:
            return None
        if len(candidates) >= SEGMENTS_MAX:
            return min(candidates, key=self.table.kept_bytes)
        total = self.table.total_bytes()
        if self.percentage == 0 or total < self.min_bytes:
            return None
        kept = sum(self.table.kept_bytes(segment) for segment in self.table.by_number.values())
        if total * 100 < kept * (100 + self.percentage):
            return None
        worst = min(candidates, key=self._share)
        return worst if self._share(worst) <= SHARE_MAX else None

    def _cheapest(self) -> Segment | None:
        """Return the segment of which least is needed, if its removal gives more than it takes: the disk is full."""
        segment = min(self._candidates(), key=self.table.kept_bytes, default=None)
        return segment if segment is not None and self._share(segment) <= SHARE_MAX else None

    def _fits(self, segment: Segment) -> bool:
        return self.table.rewritten_bytes_max(segment) + MANIFEST_ROOM <= self.writer.reserve.left_bytes

    def wants_active(self) -> bool:
        """Return whether the active segment should end, because compacting it would help a disk that is full."""
        active = self.table.active
        worth = active.size >= self.writer.reserve.size // RESERVE_SHARE and self.table.kept_bytes(active) * 2 <= active.size
        return worth and self._fits(active)

    def _share(self, segment: Segment) -> float:
        return self.table.kept_bytes(segment) / segment.size

    # -- reading a segment again

    def _load(self) -> None:
        source = self._source
        assert source is not None
        name = segment_name(source.number)
        offset = self._offset
        size = min(CHUNK_BYTES, source.size - offset)
        loaded: list[bytes] = []

        def load() -> None:
            data = self.disk.read(name, offset, size)
            scanner = RecordScanner(source.salt)
            scanner.feed(data, offset)
            status = scanner.advance()
            if status != WHOLE and size < scanner.needed <= source.size - offset:
                data = self.disk.read(name, offset, scanner.needed)
            loaded.append(data)

        def done(error: BaseException | None) -> None:
            self._loading = False
            if error is not None:
                self._fail(f"reading segment {source.number} failed: {reason_of(error)}")
                return
            self._ready = loaded[0]
            self._scanner.feed(loaded[0], offset)

        self._loading = True
        self.writer.executor.submit(load, done)

    def _read(self) -> None:
        source = self._source
        assert source is not None
        if self._ready is None:
            if not self._loading:
                self._load()
            return
        scanner = self._scanner
        stop = scanner.at + _STEP_BYTES
        while scanner.at < stop:
            if scanner.advance() != WHOLE:
                self._chunk_read(source, scanner.offset)
                return
            self._keep(source, scanner)
        if scanner.data_offset + scanner.at >= source.size:
            self._chunk_read(source, source.size)

    def _chunk_read(self, source: Segment, offset: int) -> None:
        self._ready = None
        if offset >= source.size:
            self._await_sync()
        elif offset == self._offset:
            self._fail(f"segment {source.number} does not read at offset {offset}: run `disqueue check-journal`")
        else:
            self._offset = offset
            self._load()

    def _keep(self, source: Segment, scanner: RecordScanner) -> None:
        """Have a record written once more if it is still needed."""
        for kind, job_id, target, _ in subjects(scanner.kind, scanner.data, scanner.start, scanner.end):
            job = self.jobs.get(job_id)
            if kind == JOB:
                if job is not None and job.journal_segment == source.number:
                    self.recorder.rewrite_job(job)
            elif kind == STATE:
                if job is not None and job.journal_state == source.number:
                    self.recorder.job_changed(job)
            elif kind == FORGOTTEN and target != source.number and target in self.table.by_number:
                self.recorder.endings.append((job_id, target))
                if job is not None:
                    self.recorder.rewrite_job(job)  # it came back: its new life has to stand behind its end

    # -- removing a segment

    def _await_sync(self) -> None:
        """What replaces the segment is written with the next pass; wait until that is on the disk."""
        self.state = _SYNCING
        self._wait_for = (0, 0)

    def _drop_when_synced(self) -> None:
        source = self._source
        assert source is not None
        if self._wait_for == (0, 0):
            if self.recorder.pending():
                return  # not written yet
            self._wait_for = (self.table.active.number, self.table.active.size)
        if self.writer.synced < self._wait_for:
            self.writer.sync_soon()
            return
        if self.writer.busy:
            return
        if source.jobs or source.states:
            self._stopped = True
            self.rewrite_up_to = 0
            self._fail(f"segment {source.number} is kept, and nothing is removed: jobs that should be in it were not found")
            return
        self._drop(source)

    def _drop(self, source: Segment | None) -> None:
        """Store a manifest without the segment (None: only store it) and remove what does not count any more."""
        manifest = self.table.manifest()
        if source is not None:
            manifest.segments = [entry for entry in manifest.segments if entry.number != source.number]
            manifest.removing.append(source.number)
        removing = list(manifest.removing)
        removed: list[int] = []
        stored = False

        def drop() -> None:
            nonlocal stored
            store_manifest(self.disk, manifest)
            stored = True
            for number in removing:
                self.disk.remove(segment_name(number))
                self.disk.remove(segment_name(number) + NEW_SUFFIX)
                removed.append(number)

        def done(error: BaseException | None) -> None:
            self.writer.busy = False
            self.state = _IDLE
            if stored and source is not None:
                self.writer.reserve.left_bytes += source.size
                self.table.drop(source.number)  # a file that could not be removed is tried again with the next one
            self.table.removing = [number for number in self.table.removing if number not in removed]
            self._source = None
            self.error = ""
            if error is not None:
                self.store_wanted = True  # or what is left to do would wait for the next segment that goes
                self._fail(f"giving back the space of the journal failed: {reason_of(error)}")

        self.store_wanted = False
        self.state = DROPPING
        self.writer.busy = True
        self.writer.executor.submit(drop, done)

    def _rewritten(self) -> None:
        self.rewrite_up_to = 0
        self.last_ms = self.current_ms()
        self.table.base_bytes = self.table.total_bytes()
        self.store_wanted = True
        self.log("notice", "the journal is compacted", bytes=self.table.base_bytes, took_ms=self.last_ms)

    def _fail(self, problem: str) -> None:
        """Say what is wrong and begin again with the segment after a while."""
        if problem != self.error:
            self.log("warning", problem)
        self.error = problem
        self.state = _IDLE
        self._retry_at_ms = self.writer.now_ms + 1000


def _number(segment: Segment) -> int:
    return segment.number
