"""What is done on the disk before a journal is written on: what a crash left undone, and the first segment of this run.

All of it blocks, and all of it can be interrupted at any byte and done again.
"""

from __future__ import annotations

from disqueue.journal.disk import Disk, DiskFile
from disqueue.journal.manifest import NEW_SUFFIX, SEGMENT_PREFIX, segment_name, store_manifest
from disqueue.journal.recovery import Recovery
from disqueue.journal.segments import Segment, SegmentTable
from disqueue.wire.journal_format import (
    HEADER_BYTES,
    decode_header,
    encode_header,
)

COPY_BYTES = 1 << 20


def settle(disk: Disk, recovery: Recovery) -> None:
    """Make the files what `recovery` has read, and see that all of it is on the disk."""
    table = recovery.table
    manifest = recovery.manifest
    assert manifest is not None
    if recovery.cut is not None:
        table.removing += recovery.cut.segments
    ends = {entry.number: entry.end for entry in manifest.segments}
    for number, segment in sorted(table.by_number.items()):
        name = segment_name(number)
        if recovery.file_of(number) != name:
            disk.replace(recovery.file_of(number), name)
        if ends[number] is None:
            _write_again(disk, name, segment.size)
        segment.settled = True
    disk.sync_directory()


def _write_again(disk: Disk, name: str, size: int) -> None:
    """Put a copy of the first `size` bytes of a file in its place.

    An fsync of the file itself would prove nothing: one of the process before may have failed, and then the kernel has dropped
    what it could not write, still shows it to readers, and calls the next fsync a success.
    """
    file = disk.create(name + NEW_SUFFIX)
    try:
        for offset in range(0, size, COPY_BYTES):
            file.write(disk.read(name, offset, min(COPY_BYTES, size - offset)))
        file.sync()
    finally:
        file.close()
    disk.replace(name + NEW_SUFFIX, name)


def begin_segment(disk: Disk, table: SegmentTable, wall_ms: int) -> tuple[Segment, DiskFile]:
    """Make the segment that this run begins with, and a manifest with it."""
    number = table.next_number
    header = encode_header(number, table.node_id, wall_ms)
    decoded = decode_header(header)
    assert decoded is not None
    name = segment_name(number)
    file = disk.create(name + NEW_SUFFIX)
    try:
        file.write(header)
        file.sync()
        disk.sync_directory()
        store_manifest(disk, table.manifest(number))
        disk.replace(name + NEW_SUFFIX, name)
        disk.sync_directory()
    except OSError:
        file.close()
        raise
    return Segment(number, decoded.salt, HEADER_BYTES), file


def remove_leftovers(disk: Disk, table: SegmentTable) -> None:
    """Remove the segments that the manifest on the disk does not name."""
    for name in disk.names():
        if not name.startswith(SEGMENT_PREFIX):
            continue
        digits, new, rest = name.removeprefix(SEGMENT_PREFIX).partition(NEW_SUFFIX)
        if rest or not digits.isdecimal() or int(digits) in table.by_number:
            continue
        if new or int(digits) in table.removing:
            disk.remove(name)
    table.removing = []
