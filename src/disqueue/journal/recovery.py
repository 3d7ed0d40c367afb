"""Reads a journal from its manifest and segments, in steps. What does not read is judged by `judgement`."""

from __future__ import annotations

from typing import NamedTuple

from disqueue.journal.disk import Disk
from disqueue.journal.errors import JournalError
from disqueue.journal.image import Image
from disqueue.journal.judgement import REPAIR, Behind, Fault, judge
from disqueue.journal.manifest import (
    MANIFEST,
    NEW_SUFFIX,
    SEGMENT_PREFIX,
    Entry,
    Manifest,
    load_manifest,
    newer_format,
    segment_name,
)
from disqueue.journal.segments import Segment, SegmentTable
from disqueue.wire.journal_format import (
    DAMAGED,
    FORMAT_VERSION,
    HEADER_BYTES,
    SEGMENT_START,
    WHOLE,
    Header,
    RecordError,
    decode_header,
)
from disqueue.wire.journal_records import (
    RecordScanner,
)
from disqueue.wire.journal_search import decode_start, is_one_bit_off

CHUNK_BYTES = 1 << 19
"""Read in one step: about 5,000 jobs of 64 bytes, some 7 ms."""
CHANGED_TEXT = "one bit of the journal's last record has changed on the disk, so the record does not count"


class Cut(NamedTuple):
    """Where a journal ended inside a record, and what was left out behind that place.

    `torn`: a record began there and its end is missing, as when a process is killed while it writes; otherwise there is none.
    `changed`: the last record is whole but for one bit, which no crash leaves.
    """

    file: str
    offset: int
    lost_bytes: int
    segments: list[int]
    torn: bool = True
    changed: bool = False


def load_truncated_refused(cut: Cut) -> JournalError:
    """Return the error for a cut journal that is not to be loaded."""
    return JournalError(
        f"the journal ends inside a record, {cut.lost_bytes} bytes do not count, and aof-load-truncated is no",
        file=cut.file,
        offset=cut.offset,
        stake="What was written last, and perhaps not confirmed, is lost",
        remedy="Set aof-load-truncated to yes to go on without it",
    )


class Recovery:
    """One reading of a journal. Call `open`, then `step` until it returns True.

    `image` is None when the journal is only looked at. Nothing on the disk is changed.
    """

    def __init__(self, disk: Disk, node_id: bytes | None, image: Image | None, table: SegmentTable) -> None:
        self.disk = disk
        self.node_id = node_id
        self.image = image
        self.table = table
        self.manifest: Manifest | None = None
        self.headers: dict[int, Header] = {}
        self.sizes: dict[int, int] = {}
        self.records: dict[int, int] = {}
        self.total_bytes = 0
        self.read_bytes = 0
        self.cut: Cut | None = None
        self._names: set[str] = set()
        self._index = 0
        self._offset = 0
        self._end = 0
        self._expected = 0
        self._scanner = RecordScanner(0)
        self._started = False

    # -- before reading

    def open(self) -> bool:
        """Read the manifest and the headers; False when there is no journal. Raises `JournalError` and OSError."""
        names = set(self.disk.names())
        self._names = names
        manifest = load_manifest(self.disk)
        if manifest is None:
            self._refuse_segments(names, set(), "there is no manifest, but there are segments")
            return False
        self.manifest = manifest
        if self.node_id is not None and manifest.node_id.encode() != self.node_id:
            raise JournalError(
                f"this journal belongs to node {manifest.node_id}, this is node {self.node_id.decode()}",
                file=self._path(MANIFEST),
                stake="Loaded here, its jobs would be known under the wrong owner",
                remedy="Start this node in its own dir, or put back the nodes.conf that belongs to this journal; if it is lost,"
                f" a nodes.conf with the line `{manifest.node_id} :0 myself 0 0 connected` will do, and CLUSTER MEET",
            )
        listed = {entry.number for entry in manifest.segments}
        self._refuse_segments(names, listed | set(manifest.removing), "this segment is not in the manifest")
        for entry in manifest.segments:
            self._open_segment(entry)
        self.total_bytes = sum(self._limit(entry) for entry in manifest.segments)
        table = self.table
        table.removing = list(manifest.removing)
        table.runs = manifest.runs
        table.base_bytes = manifest.base_bytes
        table.complete = manifest.complete
        table.doubtful = manifest.doubtful
        # A number is not given twice: what is said of a segment that a repair gave up must not be true of a new one.
        table.next_number = max(table.next_number, manifest.doubtful + 1, *(number + 1 for number in manifest.removing))
        return True

    def _path(self, name: str) -> str:
        return f"{self.disk.path}/{name}"

    def file_of(self, number: int) -> str:
        """Return the name under which a segment is there: the last step of its making may be missing."""
        name = segment_name(number)
        return name if name in self._names else name + NEW_SUFFIX

    def _refuse_segments(self, names: set[str], known: set[int], problem: str) -> None:
        for name in sorted(names):
            if not name.startswith(SEGMENT_PREFIX) or "." in name:
                continue
            digits = name[len(SEGMENT_PREFIX) :]
            if not digits.isdecimal() or int(digits) not in known:
                raise JournalError(
                    problem,
                    file=self._path(name),
                    stake="The manifest may be an old one, and jobs may be missing without it",
                    remedy="Put back the manifest that belongs to these segments, or move the file away. " + REPAIR,
                )

    def _open_segment(self, entry: Entry) -> None:
        name = self.file_of(entry.number)
        if name not in self._names:
            raise JournalError(
                "this segment is missing",
                file=self._path(segment_name(entry.number)),
                stake="The jobs that were written there are lost, and jobs that ended there may come back",
                remedy="Put the file back. " + REPAIR,
            )
        size = self.disk.size(name)
        header = decode_header(self.disk.read(name, 0, HEADER_BYTES))
        if header is None:
            stake = "All of this segment would be lost"
            raise JournalError("the header is damaged", file=self._path(name), offset=0, stake=stake, remedy=REPAIR)
        if header.version > FORMAT_VERSION:
            raise newer_format(self._path(name), header.version)
        assert self.manifest is not None
        if header.number != entry.number or header.node_id != self.manifest.node_id.encode():
            raise JournalError(
                f"this is segment {header.number} of node {header.node_id.decode('ascii', 'replace')}, not segment "
                f"{entry.number} of node {self.manifest.node_id}",
                file=self._path(name),
                stake="Nothing was changed",
                remedy="Put the right file back. " + REPAIR,
            )
        if entry.end is not None and size < entry.end:
            raise JournalError(
                f"the file has {size} bytes, it had {entry.end}",
                file=self._path(name),
                offset=size,
                stake="The jobs that were written there are lost, and jobs that ended there may come back",
                remedy=REPAIR,
            )
        self.headers[entry.number] = header
        self.sizes[entry.number] = size

    def _limit(self, entry: Entry) -> int:
        return self.sizes[entry.number] if entry.end is None else entry.end

    # -- reading

    def step(self) -> bool:
        """Read about half a megabyte; True when all is read. Raises `JournalError` and OSError."""
        assert self.manifest is not None
        if self._index >= len(self.manifest.segments):
            return True
        entry = self.manifest.segments[self._index]
        if not self._started:
            self._start(entry)
        status = self._read(entry)
        if self._offset == self._end:
            if self._expected > self._end:
                return self._stop(entry, False)  # the file is shorter than the segment behind it says
            self._index += 1
            self._started = False
        elif status == DAMAGED or self._offset + self._scanner.needed > self._end:
            return self._stop(entry, status != DAMAGED)
        return self._index >= len(self.manifest.segments)

    def _start(self, entry: Entry) -> None:
        assert self.manifest is not None
        header = self.headers[entry.number]
        self.table.add(Segment(entry.number, header.salt, HEADER_BYTES))
        self.records[entry.number] = 0
        self._scanner = RecordScanner(header.salt)
        self._offset = HEADER_BYTES
        self._expected = 0
        self._end = self._limit(entry)
        if entry.end is None and self._index + 1 < len(self.manifest.segments):
            start = self._start_record(self.manifest.segments[self._index + 1].number)
            if start is not None and start[0] == entry.number:
                self._expected = start[1]
                self._end = min(self._end, start[1])
        self._started = True

    def _start_record(self, number: int) -> tuple[int, int] | None:
        """Return where the segment before this one ends, as this one says."""
        scanner = RecordScanner(self.headers[number].salt)
        scanner.feed(self.disk.read(self.file_of(number), HEADER_BYTES, 64), HEADER_BYTES)
        if scanner.advance() != WHOLE or scanner.kind != SEGMENT_START:
            return None
        return decode_start(scanner.data, scanner.start, scanner.end)

    def _read(self, entry: Entry) -> int:
        """Read a chunk, or one record when it is larger; return how it ended."""
        segment = self.table.by_number[entry.number]
        name = self.file_of(entry.number)
        wanted = CHUNK_BYTES
        while True:
            self._scanner.feed(self.disk.read(name, self._offset, min(wanted, self._end - self._offset)), self._offset)
            status = self._scan(segment)
            needed = self._scanner.needed
            if status == DAMAGED or self._scanner.offset > self._offset or needed <= wanted:
                break
            if self._offset + needed > self._end:
                break
            wanted = needed
        self.read_bytes += self._scanner.offset - self._offset
        self._offset = self._scanner.offset
        segment.size = self._offset
        return status

    def _scan(self, segment: Segment) -> int:
        scanner = self._scanner
        image = self.image
        count = 0
        while True:
            status = scanner.advance()
            if status != WHOLE:
                break
            count += 1
            try:
                if image is not None:
                    image.apply(scanner.kind, scanner.data, scanner.start, scanner.end, segment)
            except RecordError as error:
                name = self._path(self.file_of(segment.number))
                stake = "The checksum of this record is right, so no disk has damaged it"
                remedy = "Start the release that wrote it, or a later one"
                raise JournalError(str(error), file=name, offset=scanner.offset, stake=stake, remedy=remedy) from error
        self.records[segment.number] += count
        return status

    def _stop(self, entry: Entry, torn: bool) -> bool:
        """The journal does not read on from here: a cut is noted, and reading is over; damage raises `JournalError`."""
        assert self.manifest is not None
        short = self._expected > self.sizes[entry.number] or self._expected == 0
        settled, holes = entry.end is not None, self._may_have_holes()
        fault = Fault(entry.number, self._offset, self._scanner.needed, settled=settled, short=short, holes=holes)
        later = [other.number for other in self.manifest.segments[self._index + 1 :]]
        lost_bytes = self.sizes[entry.number] - self._offset
        behind = [self._behind(entry.number, self._offset)]
        for number in later:
            lost_bytes += self.sizes[number] - HEADER_BYTES
            behind.append(self._behind(number, HEADER_BYTES))
        name = self._path(self.file_of(entry.number))
        judge(fault, name, behind)
        changed = not later and is_one_bit_off(behind[0].data, self._offset, behind[0].salt)
        self.cut = Cut(name, self._offset, lost_bytes, later, torn and not changed, changed)
        self._index = len(self.manifest.segments)
        return True

    def _may_have_holes(self) -> bool:
        """Whether the machine may have lost its power since this was written."""
        run = None if self.image is None else self.image.run
        return run is None or run.boot_id == b"" or run.boot_id != self.disk.boot_id()

    def _behind(self, number: int, offset: int) -> Behind:
        data = self.disk.read(self.file_of(number), offset, self.sizes[number] - offset)
        return Behind(number, offset, self.headers[number].salt, data)
