"""Makes a damaged journal load again, with all that still reads.

Nothing is destroyed: before a file is replaced or left out, it is copied under a name that the server passes over. What is
damaged is left out record by record. So jobs may be missing and jobs that ended may come back; at-most-once jobs whose end
may have been in the damaged part are never delivered again, because the manifest says up to which segment there is doubt.
"""

from __future__ import annotations

from disqueue.journal.disk import Disk
from disqueue.journal.errors import JournalError, LaterFormatError
from disqueue.journal.manifest import (
    MANIFEST,
    NEW_SUFFIX,
    SEGMENT_PREFIX,
    Entry,
    Manifest,
    load_manifest,
    newer_format,
    segment_name,
    segment_numbers,
    store_manifest,
)
from disqueue.wire.journal_format import (
    FORMAT_VERSION,
    FRAME_BYTES,
    HEADER_BYTES,
    JOB,
    JOBS,
    NODES,
    SEGMENT_START,
    STATE,
    STATES,
    WHOLE,
    Header,
    decode_header,
)
from disqueue.wire.journal_records import (
    RecordScanner,
    reseal,
)
from disqueue.wire.journal_search import next_record, split_records

WITH_SETS = (JOB, STATE, JOBS, STATES)
"""Records with sets of nodes."""


class Repair:
    """One repair of the journal on a disk. `run` returns what was done, a line each."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.lines: list[str] = []
        self.doubtful = 0
        self._names: set[str] = set()
        self._kept = ""
        self._nodes = b""
        """The newest record that names the nodes of the sets of nodes."""

    def run(self) -> list[str]:
        """Repair; raises `LaterFormatError`, when nothing was changed, and OSError."""
        self._names = set(self.disk.names())
        self._kept = self._free_prefix()
        old = self._old_manifest()
        numbers = segment_numbers(sorted(self._names)) if old is None else [entry.number for entry in old.segments]
        ends = {} if old is None else {entry.number: entry.end for entry in old.segments}
        headers = {number: self._header(number) for number in numbers}
        for number, header in headers.items():
            if header is not None and header.version > FORMAT_VERSION:
                raise newer_format(f"{self.disk.path}/{self._file(number)}", header.version)
        node_id = self._node_id(old, headers)
        entries: list[Entry] = []
        written: list[int] = []
        for number in numbers:
            header = headers[number]
            if header is None or header.node_id != node_id or header.number != number:
                self._leave_out(number)
                continue
            size, changed = self._salvage(number, header, ends.get(number))
            entries.append(Entry(number, size))
            if changed:
                written.append(number)
        if entries:
            self._commit(old, node_id, entries, written)
        else:
            self._give_up()
        return self.lines

    def _free_prefix(self) -> str:
        """Return what the names of the copies begin with."""
        number = 1
        while any(name.startswith(f"kept-{number}-") for name in self._names):
            number += 1
        return f"kept-{number}-"

    def _old_manifest(self) -> Manifest | None:
        try:
            return load_manifest(self.disk)
        except LaterFormatError:
            raise
        except JournalError:
            return None

    def _file(self, number: int) -> str:
        name = segment_name(number)
        return name if name in self._names else name + NEW_SUFFIX

    def _header(self, number: int) -> Header | None:
        name = self._file(number)
        return decode_header(self.disk.read(name, 0, HEADER_BYTES)) if name in self._names else None

    def _node_id(self, old: Manifest | None, headers: dict[int, Header | None]) -> bytes:
        if old is not None:
            return old.node_id.encode()
        ids = [header.node_id for header in headers.values() if header is not None]
        self.doubtful = max(headers, default=0)
        self.lines.append("the manifest is made anew from the segments: jobs of segments that were given up may come back")
        return max(ids, key=ids.count, default=b"")

    def _leave_out(self, number: int) -> None:
        self.doubtful = max(self.doubtful, number)
        name = self._file(number)
        if name in self._names:
            self._keep_copy(name)
            self.lines.append(f"{name} is left out: its header does not belong to this journal or cannot be read")
        else:
            self.lines.append(f"{name} is missing: the journal goes on without it")

    def _keep_copy(self, name: str) -> None:
        size = self.disk.size(name)
        copy = self.disk.create(self._kept + name)
        try:
            for offset in range(0, size, 1 << 20):
                copy.write(self.disk.read(name, offset, 1 << 20))
            copy.sync()
        finally:
            copy.close()
        self.lines.append(f"{name} is kept as {self._kept}{name}")

    def _salvage(self, number: int, header: Header, end: int | None) -> tuple[int, bool]:
        """Write a segment again without what is damaged; return its length and whether it was written.

        One of which not all was known to be on the disk is written again in any case, so that it is then.
        """
        name = self._file(number)
        size = self.disk.size(name)
        data = self.disk.read(name, HEADER_BYTES, (size if end is None else min(size, end)) - HEADER_BYTES)
        records, holes = whole_records(data, header.salt)
        self._name_nodes(records)
        missing = 0 if end is None else max(0, end - size)
        if not holes and not missing and end is not None:
            return HEADER_BYTES + len(data), False
        if holes or missing:
            self.doubtful = max(self.doubtful, number)
            self._keep_copy(name)
        for start, stop in holes:
            self.lines.append(f"{name}: {stop - start} bytes at offset {HEADER_BYTES + start} are left out")
        if missing:
            self.lines.append(f"{name}: the last {missing} bytes are missing")
        reseal(records, header.salt + HEADER_BYTES)
        file = self.disk.create(name + ".repaired")
        try:
            file.write(self.disk.read(name, 0, HEADER_BYTES))
            file.write(records)
            file.sync()
        finally:
            file.close()
        return HEADER_BYTES + len(records), True

    def _name_nodes(self, records: bytearray) -> None:
        """Name the nodes before a segment's first job where that is damaged: the segment before may go before this one."""
        before = self._nodes
        at, named, place = 0, False, -1
        for kind, start, end in split_records(bytes(records)):
            if kind == SEGMENT_START:
                at = end
            elif kind == NODES:
                named = True
                self._nodes = bytes(records[start - FRAME_BYTES - 1 : end])
            elif kind in WITH_SETS and not named and place < 0:
                place = at
        if place >= 0:
            records[place:place] = before

    def _give_up(self) -> None:
        """Nothing can be read: make way for a new journal."""
        for name in sorted(self._names):
            if name == MANIFEST or (name.startswith(SEGMENT_PREFIX) and self._kept + name not in self.disk.names()):
                self._keep_copy(name)
        self.disk.remove(MANIFEST)
        for number in segment_numbers(sorted(self._names)):
            self.disk.remove(self._file(number))
        self.disk.sync_directory()
        self.lines.append("nothing of this journal can be read: the next start begins a new one")

    def _commit(self, old: Manifest | None, node_id: bytes, entries: list[Entry], written: list[int]) -> None:
        manifest = Manifest(node_id.decode("ascii", "replace"), entries)
        if old is not None:
            manifest.runs, manifest.base_bytes, manifest.complete = old.runs, old.base_bytes, old.complete
            manifest.removing = old.removing
            self.doubtful = max(self.doubtful, old.doubtful)
        manifest.doubtful = self.doubtful
        listed = {entry.number for entry in entries}
        manifest.removing += [number for number in segment_numbers(sorted(self._names)) if number not in listed]
        for number in segment_numbers(sorted(self._names)):
            if number not in listed and self._kept + self._file(number) not in self.disk.names():
                self._keep_copy(self._file(number))
        if MANIFEST in self._names:
            self._keep_copy(MANIFEST)
        for number in written:
            name = self._file(number)
            self.disk.replace(name + ".repaired", name)
        store_manifest(self.disk, manifest)


def whole_records(data: bytes, salt: int) -> tuple[bytearray, list[tuple[int, int]]]:
    """Return the whole records in the bytes of a segment behind its header, and the places between them that are none."""
    records = bytearray()
    holes: list[tuple[int, int]] = []
    scanner = RecordScanner(salt)
    at = 0
    while at < len(data):
        scanner.feed(data[at:] if at else data, HEADER_BYTES + at)
        while scanner.advance() == WHOLE:
            pass
        stop = scanner.offset - HEADER_BYTES
        records += data[at:stop]
        if stop >= len(data):
            break
        at = next_record(data, stop + 1, HEADER_BYTES, salt)
        holes.append((stop, at))
    return records, holes
