"""Writes each pass's records to the active segment and forces them to the disk as the policy says.

What is not known to be on the disk is kept in memory, so that nothing depends on a file whose write or fsync failed:

* a failed write is taken back (the file is cut to its last whole record) and tried again with the same bytes;
* after a failed fsync the operating system may have dropped what it could not write and call the next fsync a success.
  So the segment counts only up to the last good fsync, and all since then is written again, to a new segment.

While something is wrong `error` says what. It heals without help when the disk does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from disqueue.journal.disk import Disk, DiskFile
from disqueue.journal.manifest import NEW_SUFFIX, Manifest, segment_name, store_manifest
from disqueue.journal.port import Executor
from disqueue.journal.reserve import Reserve, is_full
from disqueue.journal.segments import Segment, SegmentTable
from disqueue.wire.journal_format import (
    HEADER_BYTES,
    decode_header,
    encode_header,
)
from disqueue.wire.journal_records import (
    append_start,
    empty,
    reseal,
)

ALWAYS = "always"
EVERYSEC = "everysec"
NO = "no"
POLICIES = (ALWAYS, EVERYSEC, NO)

SYNC_MS = 1000
UNSYNCED_BYTES_MAX = 64 << 20
"""What may wait for the disk, in memory too, before more adds are refused: seconds of a fast disk, a minute of a slow one."""
UNSYNCED_BYTES_SOON = 16 << 20
"""The disk is asked after this much whatever the policy: what waits has a bound, and a disk that keeps up is never behind."""
_SYNC_MS, _UNSYNCED_BYTES_MAX, _UNSYNCED_BYTES_SOON = SYNC_MS, UNSYNCED_BYTES_MAX, UNSYNCED_BYTES_SOON
RETRY_MS = 100
RETRY_MS_MAX = 1000


class Writer:
    """The end of the journal. `error` is empty while all that was taken in is written as the policy promises.

    At most one task that stores a manifest runs at a time (`busy`), so manifests get to the disk in the order of events.
    """

    def __init__(self, disk: Disk, executor: Executor, table: SegmentTable, policy: str, reserve_bytes: int = 0) -> None:
        self.disk = disk
        self.executor = executor
        self.table = table
        self.policy = policy
        self.reserve = Reserve(disk, executor, reserve_bytes)
        self.error = ""
        self.busy = False
        self.files: dict[int, DiskFile] = {}
        self.written_offset = 0
        self.unsynced: deque[bytearray] = deque()
        self.unsynced_bytes = 0
        self.unwritten = 0
        """How many chunks at the end of `unsynced` are not in the file yet."""
        self.synced = (0, 0)
        """Up to here, as segment and offset, all is on the disk."""
        self.syncing = False
        self.sync_wanted = False
        self.synced_ms = 0
        self.delayed_syncs = 0
        self.lost = False
        """What was written since the last good fsync does not count any more."""
        self.failures = 0
        self.retry_at_ms = 0
        self.prepare_at_ms = 0
        self.next: tuple[Segment, DiskFile] | None = None
        self.make_prologue: Callable[[bytearray, int], None] | None = None
        self.on_replaced: Callable[[list[bytearray], Segment, int, int], None] | None = None
        self.on_trouble: Callable[[str], None] | None = None
        self.now_ms = 0
        self.wall_ms = 0
        self.spare: list[bytearray] = []
        """Buffers of chunks that are on the disk: each second's are written over the last one's, instead of in fresh memory."""
        self.spare_bytes = 0
        self.synced_chunks = 0
        """How many chunks have left `unsynced` since the start."""

    # -- taking in

    def begin(self, segment: Segment, file: DiskFile) -> None:
        """Append to `segment`, whose header is on the disk, from now on."""
        self.files[segment.number] = file
        self.table.add(segment)
        self.written_offset = segment.size
        self.synced = (segment.number, segment.size)

    def place(self) -> int:
        """Return where the next records will stand: the `base` for encoding them."""
        active = self.table.active
        return active.salt + active.size

    def take_buffer(self) -> bytearray:
        """Return an empty buffer for the records of a pass."""
        if not self.spare:
            return bytearray()
        buffer = self.spare.pop()
        self.spare_bytes -= len(buffer)
        empty(buffer)
        return buffer

    def _give_buffer(self, buffer: bytearray) -> None:
        """Nobody needs what is in it any more."""
        if self.spare_bytes + len(buffer) <= _UNSYNCED_BYTES_SOON:
            self.spare_bytes += len(buffer)
            self.spare.append(buffer)

    def append(self, chunk: bytearray, now_ms: int) -> None:
        """Take in the records of a pass, write them, and see to it that they are forced to the disk."""
        self.now_ms = now_ms
        self.unsynced.append(chunk)
        self.unsynced_bytes += len(chunk)
        self.unwritten += 1
        active = self.table.active
        active.size += len(chunk)
        self.reserve.left_bytes -= len(chunk)
        self._write()
        self._force()

    def tick(self, now_ms: int) -> None:
        """Do what is due: fsync, another try."""
        self.now_ms = now_ms
        if self.error and now_ms >= self.retry_at_ms:
            if self.lost:
                self._replace()
            else:
                self._write()
        self._force()

    def deadline_ms(self) -> int:
        """Return when `tick` has something to do, or -1."""
        if self.error:
            return self.retry_at_ms
        if self.policy == EVERYSEC and len(self.unsynced) > self.unwritten and not self.syncing:
            return self.synced_ms + _SYNC_MS
        return -1

    def kept(self) -> bool:
        """Return whether all that was taken in is as safe as the policy promises."""
        return self.unwritten == 0 and (self.policy != ALWAYS or not self.unsynced)

    def behind(self) -> bool:
        """Return whether so much waits for the disk that no more should be taken in."""
        return self.unsynced_bytes > _UNSYNCED_BYTES_MAX

    def file_name(self) -> str:
        """Return the path of the active segment."""
        return f"{self.disk.path}/{segment_name(self.table.active.number)}"

    # -- writing

    def _write(self) -> None:
        if self.lost or not self.files:
            return
        file = self.files[self.table.active.number]
        while self.unwritten:
            chunk = self.unsynced[-self.unwritten]
            try:
                file.write(chunk)
            except OSError as error:
                if self._makes_room(file, error):
                    continue
                self._write_failed(file, error)
                return
            self.written_offset += len(chunk)
            self.unwritten -= 1
        self.error = ""
        self.failures = 0

    def _makes_room(self, file: DiskFile, error: OSError) -> bool:
        """Whether a write can be tried again at once, because the reserve was given for it."""
        if not is_full(error) or not self.reserve.release(self.now_ms):
            return False
        try:
            file.truncate(self.written_offset)
        except OSError:
            return False
        return True

    def _write_failed(self, file: DiskFile, error: OSError) -> None:
        self._fail(f"writing to {self.file_name()} failed: {reason_of(error)}")
        try:
            file.truncate(self.written_offset)
        except OSError:
            self.lost = True  # part of a record may stand there now; nothing can be put behind it

    def _fail(self, problem: str) -> None:
        self.error = problem
        self.failures += 1
        self.retry_at_ms = self.now_ms + min(RETRY_MS * self.failures, RETRY_MS_MAX)

    # -- forcing to the disk

    def _force(self) -> None:
        written = len(self.unsynced) - self.unwritten
        if self.lost or written == 0:
            return
        if self.policy == ALWAYS:
            if not self.syncing:
                self._sync_here()
        elif self.syncing:
            if self.policy == EVERYSEC and self.now_ms - self.synced_ms > 2 * _SYNC_MS:
                self.synced_ms = self.now_ms
                self.delayed_syncs += 1
        elif self.sync_wanted or self._sync_due():
            self._sync_elsewhere()

    def _sync_due(self) -> bool:
        if self.unsynced_bytes >= _UNSYNCED_BYTES_SOON:
            return True
        return self.policy == EVERYSEC and self.now_ms - self.synced_ms >= _SYNC_MS

    def sync_soon(self) -> None:
        """Force what is written to the disk now, whatever the policy, without waiting for it."""
        self.sync_wanted = True
        self._force()

    def _sync_here(self) -> None:
        try:
            for file in self.files.values():
                file.sync()
        except OSError as error:
            self._sync_failed(error)
            return
        self._synced_up_to((self.table.active.number, self.written_offset), self._written_chunks())

    def _sync_elsewhere(self) -> None:
        files = list(self.files.values())
        position = (self.table.active.number, self.written_offset)
        chunks = self._written_chunks()
        self.syncing = True
        self.sync_wanted = False
        self.synced_ms = self.now_ms

        def sync() -> None:
            for file in files:
                file.sync()

        def done(error: BaseException | None) -> None:
            self.syncing = False
            if error is None:
                self._synced_up_to(position, chunks)
            else:
                self._sync_failed(error)

        self.executor.submit(sync, done)

    def _written_chunks(self) -> int:
        return self.synced_chunks + len(self.unsynced) - self.unwritten

    def _synced_up_to(self, position: tuple[int, int], chunks: int) -> None:
        while self.synced_chunks < chunks:
            chunk = self.unsynced.popleft()
            self.unsynced_bytes -= len(chunk)
            self.synced_chunks += 1
            self._give_buffer(chunk)
        self.synced = position
        for number in [number for number in self.files if number < position[0]]:
            self.files.pop(number).close()
            if number in self.table.by_number:
                self.table.by_number[number].settled = True

    def _sync_failed(self, error: BaseException) -> None:
        self.lost = True
        self._fail(f"forcing {self.file_name()} to the disk failed: {reason_of(error)}")
        self.retry_at_ms = self.now_ms

    # -- the next segment

    def prepare_next(self) -> None:
        """Make the file of the next segment, unless that or another such task is going on; `switch` begins it later."""
        if self.busy or self.next is not None or self.error or self.now_ms < self.prepare_at_ms:
            return
        number, header, salt = self._new_segment()
        made: list[DiskFile] = []

        def make() -> None:
            made.append(self._make_segment(number, header))
            self._commit(number, manifest)

        def done(error: BaseException | None) -> None:
            self.busy = False
            if error is None:
                self.next = (Segment(number, salt, HEADER_BYTES), made[0])
                self.table.upcoming = number
            else:
                self._abandon(number, made)
                self._tell(f"beginning segment {number} failed: {reason_of(error)}")

        manifest = self.table.manifest(number)
        self.busy = True
        self.executor.submit(make, done)

    def switch(self) -> bytearray | None:
        """Begin the next segment if it is there: return its first record, behind which the prologue belongs."""
        if self.next is None or self.unwritten:
            return None
        segment, file = self.next
        self.next = None
        before = self.table.active
        self.files[segment.number] = file
        self.table.add(segment)
        self.written_offset = segment.size
        start = bytearray()
        append_start(start, self.place(), before.number, before.size)
        return start

    def _new_segment(self) -> tuple[int, bytes, int]:
        number = self.table.next_number
        self.table.next_number += 1
        header = encode_header(number, self.table.node_id, self.wall_ms)
        decoded = decode_header(header)
        assert decoded is not None
        return number, header, decoded.salt

    def _make_segment(self, number: int, content: bytes | bytearray) -> DiskFile:
        file = self.disk.create(segment_name(number) + NEW_SUFFIX)
        try:
            file.write(content)
            file.sync()
            self.disk.sync_directory()
        except OSError:
            file.close()
            raise
        return file

    def _commit(self, number: int, manifest: Manifest) -> None:
        store_manifest(self.disk, manifest)
        self.disk.replace(segment_name(number) + NEW_SUFFIX, segment_name(number))
        self.disk.sync_directory()

    def _abandon(self, number: int, made: list[DiskFile]) -> None:
        """A segment could not be made; whatever is there of it does not count."""
        self.table.removing.append(number)
        for file in made:
            file.close()

    def _tell(self, trouble: str) -> None:
        self.prepare_at_ms = self.now_ms + RETRY_MS_MAX
        if self.on_trouble is not None:
            self.on_trouble(trouble)

    # -- a new segment instead of what was lost

    def _replace(self) -> None:
        """Write all since the last good fsync to a new segment; the manifest cuts off what it replaces."""
        if self.busy or self.syncing:
            return
        number, header, salt = self._new_segment()
        content = bytearray(header)
        start = bytearray()
        append_start(start, salt + HEADER_BYTES, *self.synced)
        chunks = list(self.unsynced)
        prologue = bytearray()
        if self.make_prologue is not None:
            self.make_prologue(prologue, 0)
        made: list[DiskFile] = []

        def make() -> None:
            # First, because sets of nodes mean nothing without names; last, because pauses have changed since those chunks.
            records = start + prologue + b"".join(chunks) + prologue
            reseal(records, salt + HEADER_BYTES)
            content.extend(records)
            made.append(self._make_segment(number, content))
            self._commit(number, manifest)

        def done(error: BaseException | None) -> None:
            self.busy = False
            if error is None:
                self._replaced(Segment(number, salt, len(content)), made[0], len(chunks))
            else:
                self._abandon(number, made)
                if is_full(error):
                    self.reserve.release(self.now_ms)
                self._fail(f"{cause}; beginning segment {number} failed: {reason_of(error)}")

        cause = self.error.partition("; ")[0]
        manifest = self._replacing_manifest(number)
        self.busy = True
        self.executor.submit(make, done)

    def _replacing_manifest(self, number: int) -> Manifest:
        manifest = self.table.manifest(number)
        last, end = self.synced
        manifest.segments = [entry for entry in manifest.segments if entry.number <= last or entry.number == number]
        for entry in manifest.segments:
            if entry.number == last:
                entry.end = end
        dropped = [other for other in self.table.by_number if other > last]
        if self.table.upcoming:
            dropped.append(self.table.upcoming)
        manifest.removing += dropped
        return manifest

    def _replaced(self, segment: Segment, file: DiskFile, chunks: int) -> None:
        """The new segment is on the disk, up to and with the first `chunks` of what was unsynced."""
        table = self.table
        last, end = self.synced
        cut_bytes = table.by_number[last].size - end
        table.by_number[last].size = end
        table.by_number[last].settled = True
        lost = [number for number in table.by_number if number > last]
        table.add(segment)
        self.synced = (segment.number, segment.size)
        self.written_offset = segment.size
        self.unwritten = len(self.unsynced) - chunks
        for chunk in list(self.unsynced)[chunks:]:
            reseal(chunk, self.place())
            segment.size += len(chunk)
        if self.on_replaced is not None:
            self.on_replaced(list(self.unsynced), segment, last, cut_bytes)
        for number in lost:
            table.drop(number)
        if self.next is not None:
            table.removing.append(table.upcoming)
            table.upcoming = 0
            self.next[1].close()
            self.next = None
        for old in self.files.values():
            old.close()
        self.files = {segment.number: file}
        for _ in range(chunks):
            self.unsynced_bytes -= len(self.unsynced.popleft())
            self.synced_chunks += 1
        self.lost = False
        self._write()
        self._force()

    # -- the end

    def sync_now(self) -> str:
        """Force all to the disk and wait for it; return what went wrong, or ""."""
        self._write()
        if not self.error and len(self.unsynced) > self.unwritten:
            self._sync_here()
        return self.error

    def close(self) -> None:
        """Close the files as they are."""
        for file in self.files.values():
            file.close()
        if self.next is not None:
            self.next[1].close()
            self.next = None
        self.files = {}


def reason_of(error: BaseException) -> str:
    """Return what the operating system says."""
    return getattr(error, "strerror", None) or str(error)
