"""The journal as both shells use it: loading, the end of each pass, and what operators ask for.

`JournalRuntime` is what the shell holds. The core sees its `recorder` as `node.journal` while the journal is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from disqueue.core.job import WAIT_REPL
from disqueue.core.journal_age import SEGMENT_BITS
from disqueue.core.journal_port import JournalPort
from disqueue.core.node import Node
from disqueue.journal.beginning import begin_segment, remove_leftovers, settle
from disqueue.journal.compaction import Compactor
from disqueue.journal.disk import Disk
from disqueue.journal.errors import JournalError
from disqueue.journal.loading import Loaded, Loading
from disqueue.journal.manifest import segment_numbers, store_manifest
from disqueue.journal.port import Executor
from disqueue.journal.recorder import Recorder
from disqueue.journal.recovery import CHANGED_TEXT
from disqueue.journal.reserve import RESERVE
from disqueue.journal.segments import Segment, SegmentTable
from disqueue.journal.writer import ALWAYS, EVERYSEC, Writer, reason_of
from disqueue.wire.journal_format import (
    CLOSED,
    RUN,
)
from disqueue.wire.journal_meta import Closed, Run, encode_meta
from disqueue.wire.journal_records import (
    append_pass,
    append_record,
    append_start,
)

SEGMENT_BYTES = 32 << 20
CATCH_UP_JOBS = 2000
_CATCH_UP_JOBS = CATCH_UP_JOBS
"""Jobs written in one pass when many are behind: a few milliseconds."""
BUILD_JOBS = 100_000
CLOCK_STEP_MS = 1000
_CLOCK_STEP_MS = CLOCK_STEP_MS
"""When the wall clock was set by so much, the journal is compacted as a whole: so all times in it are by the new one."""
FULL_DISK = "the disk is full: acknowledging jobs gives space back, more space helps at once"

OFF = "off"
LOADING = "loading"
LOADED = "loaded"
ON = "on"


@dataclass
class JournalSettings:
    """What the configuration says."""

    policy: str = EVERYSEC
    load_truncated: bool = True
    rewrite_percentage: int = 100
    rewrite_min_bytes: int = 64 << 20
    segment_bytes: int = SEGMENT_BYTES
    reserve_bytes: int = 0


def no_log(_level: str, _event: str, **_fields: object) -> None:
    """Drop a log event."""


def ignore_error(_error: str) -> None:
    """Have nobody to tell."""


def itself(recorder: Recorder) -> JournalPort:
    """Let the node speak to the recorder without anybody in between."""
    return recorder


@contextmanager
def plain_errors(path: str) -> Iterator[None]:
    """Tell errors of the operating system as errors of the journal."""
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise JournalError(
            "this is a file, but the journal is a directory",
            file=path,
            stake="Nothing was changed; the AOF of another program cannot be loaded",
            remedy="Move the file away, or set appendfilename to another name",
        ) from error
    except OSError as error:
        raise JournalError(
            f"the journal cannot be used: {reason_of(error)}",
            file=str(error.filename or path),
            stake="Nothing is lost; the server does not start without the journal that it is told to keep",
            remedy="Make the directory writable and see that there is space, or set appendonly to no",
        ) from error


class JournalRuntime:
    """One node's journal. States: `off`, `loading`, `loaded` (and not written on), `on`.

    `error` says why the node has to refuse what the journal could not keep, as of the end of the last pass.
    """

    def __init__(
        self, settings: JournalSettings, disk: Disk, executor: Executor, node: Node, log: Callable[..., None] = no_log
    ) -> None:
        self.settings = settings
        self.disk = disk
        self.executor = executor
        self.node = node
        self.log = log
        self.state = OFF
        self.error = ""
        self.full = False
        """The reserve is in use: nothing new is taken, and what happens to the jobs that are there is kept."""
        self.loaded = Loaded()
        self._loading: Loading | None = None
        self._building = -1
        """Where the scan is that writes all jobs to a journal that was switched on at run time; -1: it is done."""
        self._clock_ms = 0
        """By how much the wall clock is ahead of the monotonic one in what is written."""
        self._catching_up = False
        self._tell_run = False
        self._locked = False
        self._first = bytearray()
        self.on_error: Callable[[str], None] = ignore_error
        self.port_of: Callable[[Recorder], JournalPort] = itself
        """What the node gets as its journal: the recorder, or something that listens in."""
        self._port = JournalPort()
        self._adopt(SegmentTable(node.node_id))

    def _adopt(self, table: SegmentTable) -> None:
        """Work on another set of segments."""
        self.table = table
        self.recorder = Recorder(table, self.node)
        self.writer = Writer(self.disk, self.executor, table, self.settings.policy, self.settings.reserve_bytes)
        self.writer.make_prologue = self._append_prologue
        self.writer.on_replaced = self._replaced
        self.writer.on_trouble = self._trouble
        self.compactor = Compactor(self.disk, table, self.writer, self.recorder, self.node.jobs)
        self.compactor.log = self.log
        self.apply_settings()

    def apply_settings(self) -> None:
        """Take over changed settings."""
        self.compactor.percentage = self.settings.rewrite_percentage
        self.compactor.min_bytes = self.settings.rewrite_min_bytes
        self._tell_node()

    # -- loading

    def load(self) -> None:
        """Begin to load what is on the disk into the node; go on with `load_step`. Raises `JournalError`."""
        with plain_errors(self.disk.path):
            self._lock()
            self._adopt(SegmentTable(self.node.node_id))
            self._loading = Loading(self.disk, self.node, self.recorder, self.settings.load_truncated)
        self.state = LOADING
        self._attach()  # a job may expire while others are still read

    def _attach(self) -> None:
        """Let the node tell this journal what changes."""
        self.node.journal = self._port = self.port_of(self.recorder)
        self._tell_node()

    def _tell_node(self) -> None:
        """Let the node know what it has to refuse."""
        self._port.error = self.error
        self._port.full = self.full
        self._port.always_synced = self.settings.policy == ALWAYS

    def load_step(self) -> bool:
        """Do a piece of loading; True when it is done. Raises `JournalError`."""
        assert self._loading is not None
        with plain_errors(self.disk.path):
            done = self._loading.step()
        if done:
            self.loaded = self._loading.result
            self.state = LOADED
            self.node.journal = None
            self._tell_loaded()
        return done

    def is_read(self) -> bool:
        """Return whether all is read, so that `settle` can be called."""
        return self._loading is not None and self._loading.is_read

    def settle(self) -> None:
        """Make the disk ready to write on, once; it blocks, and may be called from a thread. Raises `JournalError`."""
        loading = self._loading
        if loading is None or loading.is_settled:
            return
        with plain_errors(self.disk.path):
            self.disk.remove(RESERVE)  # on a full disk the start needs the space
            if loading.recovery.manifest is not None:
                settle(self.disk, loading.recovery)
        loading.is_settled = True

    def progress(self) -> float:
        """Return how much is loaded, 0 to 1."""
        return self._loading.progress() if self._loading is not None else 1.0

    def _lock(self) -> None:
        if self._locked:
            return
        self.disk.names()
        self._locked = self.disk.lock()
        if not self._locked:
            raise JournalError(
                "another process writes this journal",
                file=self.disk.path,
                stake="Two writers would destroy it",
                remedy="Stop the other server, or give this one its own dir",
            )

    def _tell_loaded(self) -> None:
        loaded = self.loaded
        self.log("notice", "journal loaded", jobs=loaded.jobs, records=loaded.records, bytes=loaded.bytes)
        if loaded.cut is not None:
            cut = loaded.cut
            self.log(
                "warning",
                CHANGED_TEXT if cut.changed else "the journal ended inside a record and is cut there",
                file=cut.file,
                offset=cut.offset,
                lost_bytes=cut.lost_bytes,
                lost_segments=len(cut.segments),
            )
        if loaded.withheld:
            event = "at-most-once jobs are dropped, because they may have been delivered shortly before the crash"
            self.log("warning", event, jobs=loaded.withheld)
        if loaded.incomplete:
            self.log("warning", "the journal was just being switched on when it ended: jobs may be missing")

    # -- going on

    def start(self) -> None:
        """Write from now on, behind what was loaded or, without loading, to a new journal. Raises `JournalError`.

        A new journal takes the place of one that is there: it tells of an earlier life. All jobs are written to it in the
        background.
        """
        loading = self._loading
        with plain_errors(self.disk.path):
            self._lock()
            if loading is not None:
                self.settle()
            else:
                self.disk.remove(RESERVE)
                self._adopt(self._fresh_table())
                self._building = 0
            self.table.runs += 1
            segment, file = begin_segment(self.disk, self.table, self.node.wall_ms)
            previous = self.table.active
            self.writer.begin(segment, file)
            remove_leftovers(self.disk, self.table)
        self._clock_ms = self.node.wall_ms - self.node.now_ms
        self._first = bytearray()
        append_start(self._first, self.writer.place(), previous.number, previous.size if previous.number else 0)
        if loading is None:
            self.recorder.first_segment = segment.number
        self._loading = None
        self.error = ""
        self.full = False
        self.state = ON
        self._attach()
        first = segment.number << SEGMENT_BITS
        loaded = (previous.number << SEGMENT_BITS) + (previous.size if previous.number else 0)
        # Without loading nothing is missing: all jobs are here.
        self.node.members.journal_age.begin(self.place, first if loading is None else loaded, first)

    def place(self) -> int:
        """Return how far the journal is known to be on the disk: it only grows as long as the disk is the same."""
        number, offset = self.writer.synced
        return (number << SEGMENT_BITS) + offset if self.state == ON else 0

    def _fresh_table(self) -> SegmentTable:
        table = SegmentTable(self.node.node_id)
        table.removing = segment_numbers(self.disk.names())
        table.next_number = max(self.table.next_number, *(number + 1 for number in table.removing), 1)
        table.complete = False
        return table

    def stop(self, switched_off: bool = False) -> str:
        """Write and force all to the disk and close the journal; return what went wrong, or "".

        `switched_off`: the node goes on without it.
        """
        problem = ""
        if self.state == ON:
            self.executor.wait()
            while self._building >= 0:
                self._build(BUILD_JOBS)
            self._catching_up = False
            self.end_pass(self.node.now_ms, self.node.wall_ms, last=True)
            self.executor.wait()
            problem = self.error or self.writer.sync_now() or self._append_end(switched_off)
            self.writer.close()
            self.node.journal = None
        self.disk.unlock()
        self._locked = False
        self.state = OFF
        self._loading = None
        if self.refusal():
            self._end_of_error(switched_off)
        return problem

    def _end_of_error(self, goes_on: bool) -> None:
        """Without a journal nothing is refused because of it, and what was held back is done: not when the process ends."""
        self.error = ""
        self.full = False
        if goes_on:
            self.node.serve_again()
        self.on_error("")

    def _append_end(self, switched_off: bool) -> str:
        """Write that nothing follows; return what went wrong, or ""."""
        if self.compactor.store_wanted:
            try:
                store_manifest(self.disk, self.table.manifest())
            except OSError as error:
                return f"storing the manifest failed: {reason_of(error)}"
        chunk = bytearray()
        append_pass(chunk, self.writer.place(), self.node.wall_ms, *self.writer.synced)
        append_record(chunk, self.writer.place(), CLOSED, encode_meta(Closed(switched_off)))
        self.writer.append(chunk, self.node.now_ms)
        self.executor.wait()
        return self.writer.sync_now()

    # -- the pass

    def end_pass(self, now_ms: int, wall_ms: int, last: bool = False) -> bool:
        """Write what changed in this pass; False: what the pass promised is not kept, so its replies must not be sent.

        Commands of this pass have seen the `error` of its begin, and what that makes them refuse promises nothing.
        """
        if self.state != ON:
            return True
        known = self.error
        writer = self.writer
        writer.wall_ms = wall_ms
        self._follow_policy()
        self._follow_clock(wall_ms - now_ms)
        if writer.error:
            writer.tick(now_ms)
        if writer.error:
            self._catching_up = True
        else:
            self._write(now_ms, wall_ms)
        writer.tick(now_ms)  # also where nothing was written
        if not last:
            self._background(now_ms)
        self._publish()
        return bool(known) or writer.kept()

    def next_deadline_ms(self) -> int:
        """Return when `end_pass` has something to do although nothing happens, or -1."""
        if self.state != ON:
            return -1
        now_ms = self.node.now_ms
        if self._building >= 0 or self._first or self.node.ready_queues or (self._catching_up and not self.writer.error):
            return now_ms + 1
        deadline_ms = self.writer.deadline_ms()
        for other_ms in (self.compactor.deadline_ms(now_ms), self.writer.reserve.deadline_ms()):
            if deadline_ms < 0 or 0 <= other_ms < deadline_ms:
                deadline_ms = other_ms
        return max(now_ms + 1, deadline_ms) if deadline_ms >= 0 else -1

    def _follow_policy(self) -> None:
        # While an fsync is under way an error that it meets could be reported to another one: let it end first.
        if self.writer.policy != self.settings.policy and not self.writer.syncing:
            self.writer.policy = self.settings.policy
            self._tell_run = True

    def _follow_clock(self, clock_ms: int) -> None:
        """Times on disk are by the wall clock: when it was set, what was written before would be due at a wrong time."""
        moved_ms = clock_ms - self._clock_ms
        if not -_CLOCK_STEP_MS < moved_ms < _CLOCK_STEP_MS:
            self._clock_ms = clock_ms
            self.compactor.rewrite()
            self.log("notice", "the wall clock was set: the journal is written anew", by_ms=moved_ms)

    def _write(self, now_ms: int, wall_ms: int) -> None:
        writer = self.writer
        recorder = self.recorder
        chunk = self._first or writer.switch()
        place = writer.place()
        started = chunk is not None
        if chunk is not None:
            self._append_prologue(chunk, place)
        elif recorder.pending() or self._tell_run:
            chunk = writer.take_buffer()
        else:
            self._catching_up = False
            return
        segment, offset = writer.synced
        append_pass(chunk, place, wall_ms, segment, offset)
        marked = len(chunk)
        if self._tell_run:
            self._append_run(chunk, place)
        recorder.append_changes(chunk, place, wall_ms - now_ms, _CATCH_UP_JOBS if self._catching_up else 0)
        self._catching_up = recorder.pending()
        if started or len(chunk) > marked:
            self._first = bytearray()
            writer.append(chunk, now_ms)

    def _append_prologue(self, chunk: bytearray, place: int) -> None:
        self._append_run(chunk, place)
        self.recorder.append_prologue(chunk, place)

    def _append_run(self, chunk: bytearray, place: int) -> None:
        self._tell_run = False
        run = Run(self.disk.boot_id(), self.writer.policy, self.table.runs, self.node.wall_ms)
        append_record(chunk, place, RUN, encode_meta(run))

    def _background(self, now_ms: int) -> None:
        """Begin the next segment in time, write jobs that are not in the journal yet, compact."""
        reserve = self.writer.reserve
        reserve.step(now_ms)
        active = self.table.active
        if (
            active.size >= self.settings.segment_bytes
            or active.number <= self.compactor.rewrite_up_to
            or (reserve.spent and self.compactor.wants_active())
        ):
            self.writer.prepare_next()
        if self._building >= 0:
            if not self._catching_up:
                self._build(CATCH_UP_JOBS)
        else:
            self.compactor.step(now_ms)

    def _build(self, limit: int) -> None:
        jobs, cursor = self.node.jobs.scan(self._building, limit)
        for job in jobs:
            if job.journal_segment < self.recorder.first_segment and job.state != WAIT_REPL:
                self.recorder.job_changed(job)
        self._building = cursor if cursor else -1
        if self._building < 0:
            self.table.complete = True
            self.compactor.store_soon()

    def _publish(self) -> None:
        """Let the commands of the next pass know whether the journal can be trusted."""
        writer = self.writer
        if writer.error:
            error = writer.error
        elif self._catching_up:
            error = "the journal is catching up after an error"
        elif writer.behind():
            error = f"the disk is too slow: {writer.unsynced_bytes >> 20} MB of the journal wait for it"
        else:
            error = ""
        full = writer.reserve.spent
        if error == self.error and full == self.full:
            return
        was, refused = self.error, self.refusal()
        self.error = error
        self.full = full
        self._tell_node()
        refusal = self.refusal()
        if refusal and not refused:
            self.log("warning", "the journal cannot be written; adds are refused until it can", why=refusal)
        elif refused and not refusal:
            self.log("notice", "the journal can be written again")
        if was and not error:
            self.node.serve_again()
        self.on_error(refusal)

    def refusal(self) -> str:
        """Return why no new jobs are taken, or ""."""
        return self.error or (FULL_DISK if self.full else "")

    # -- what the writer tells

    def _replaced(self, chunks: list[bytearray], segment: Segment, last: int, cut_bytes: int) -> None:
        """What `chunks` hold stands in another segment now."""
        self.recorder.relocate(chunks, segment, last, cut_bytes)
        self.log("notice", "what was not known to be on the disk is written again", segment=segment.number)

    def _trouble(self, problem: str) -> None:
        self.log("warning", problem)

    # -- what operators ask for

    def compact(self) -> str:
        """Begin to compact all that is written up to now; return why not, or ""."""
        if self.state != ON:
            return ""
        if self.compactor.rewriting():
            return "Background append only file rewriting already in progress"
        self.compactor.rewrite()
        return ""

    def reload(self) -> str:
        """Drop all jobs and load them again from the disk; return why not, or ""."""
        if self.state != ON:
            return "there is no journal: CONFIG SET appendonly yes makes one"
        problem = self.stop()
        if problem:
            self.start()
            return problem
        self.node.flush()
        self.load()
        while not self.load_step():
            pass
        self.start()
        return ""

    def write_all(self) -> str:
        """Write all jobs to a new journal although the journal is off; return why not, or ""."""
        try:
            self.start()
        except JournalError as error:
            return str(error)
        return self.stop()

    def figures(self) -> dict[str, object]:
        """Return what INFO says of the journal."""
        table = self.table
        compactor = self.compactor
        return {
            "loading_loaded_perc": f"{self.progress() * 100:.2f}",
            "aof_enabled": int(self.state == ON),
            "aof_state": "wait-rewrite" if self.state == ON and self._building >= 0 else self.state,
            "aof_rewrite_in_progress": int(compactor.rewriting()),
            "aof_rewrite_scheduled": 0,
            "aof_last_rewrite_time_sec": compactor.last_ms // 1000 if compactor.last_ms >= 0 else -1,
            "aof_current_rewrite_time_sec": compactor.current_ms() // 1000 if compactor.rewriting() else -1,
            "aof_last_bgrewrite_status": "err" if compactor.error else "ok",
            "aof_last_write_status": "err" if self.refusal() else "ok",
            "aof_last_error": self.refusal() or compactor.error,
            "aof_current_size": table.total_bytes(),
            "aof_base_size": table.base_bytes,
            "aof_live_size": table.live_bytes(),
            "aof_segments": len(table.by_number),
            "aof_reserve_size": self.writer.reserve.held_bytes,
            "aof_is_old_copy": int(self.node.members.journal_age.lost > 0),
            "aof_dropped_jobs": self.node.dropped_once,
            "aof_pending_rewrite": 0,
            "aof_buffer_length": self.writer.unsynced_bytes,
            "aof_pending_bio_fsync": int(self.writer.syncing),
            "aof_delayed_fsync": self.writer.delayed_syncs,
        }
