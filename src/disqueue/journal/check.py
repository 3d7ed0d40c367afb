"""`disqueue check-journal DIR [--repair]`: says what is in a journal, and makes a damaged one load again."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence

from disqueue.core.job import STATE_NAMES
from disqueue.journal.disk import Disk, OsDisk
from disqueue.journal.errors import JournalError, LaterFormatError
from disqueue.journal.image import Image
from disqueue.journal.manifest import MANIFEST
from disqueue.journal.recovery import CHANGED_TEXT, Recovery
from disqueue.journal.repair import Repair
from disqueue.journal.segments import SegmentTable
from disqueue.journal.writer import reason_of

WHOLE = 0
DAMAGED = 1
UNUSABLE = 2


class Slots:
    """Gives node ids slots in the order in which they come."""

    def __init__(self) -> None:
        self.known: dict[bytes, int] = {}

    def __call__(self, node_id: bytes) -> int:
        return self.known.setdefault(node_id, len(self.known))


def look(disk: Disk) -> list[str]:
    """Return what a start would find in a journal, a line each. Raises `JournalError` where a start would."""
    table = SegmentTable(b"")
    image = Image(table, Slots())
    recovery = Recovery(disk, None, image, table)
    if not recovery.open():
        return ["there is no journal here: a start would begin a new one"]
    while not recovery.step():
        pass
    assert recovery.manifest is not None
    lines = [f"node {recovery.manifest.node_id}, {recovery.manifest.runs} starts so far"]
    for number, segment in sorted(table.by_number.items()):
        needed = table.kept_bytes(segment)
        lines.append(
            f"{recovery.file_of(number)}: {recovery.sizes[number]} bytes, {recovery.records[number]} records, "
            f"{segment.jobs} jobs, {needed} bytes are needed"
        )
    states = Counter(STATE_NAMES[job.state].decode() for job in image.jobs)
    lines.append(f"jobs: {len(image.jobs)}" + "".join(f", {count} {state}" for state, count in sorted(states.items())))
    if image.pauses:
        lines.append(f"paused queues: {len(image.pauses)}")
    if image.closed is not None:
        lines.append("the journal was switched off at run time" if image.closed.switched_off else "the server was shut down")
    if recovery.cut is not None:
        cut = recovery.cut
        why = CHANGED_TEXT if cut.changed else "as by a crash"
        lines.append(f"{cut.file}: cut at offset {cut.offset}, {why}: a start leaves the last {cut.lost_bytes} bytes out")
    return lines


def check(disk: Disk, repair: bool) -> tuple[int, list[str]]:
    """Look at a journal and repair it if that is wanted and needed; return the exit code and what to print."""
    try:
        return WHOLE, [*look(disk), "the journal is whole"]
    except JournalError as error:
        lines = [f"error: {error}"]
        if not repair or isinstance(error, LaterFormatError):
            return DAMAGED, lines
    try:
        lines += Repair(disk).run()
        return WHOLE, [*lines, *look(disk), "the journal is repaired"]
    except JournalError as error:
        return DAMAGED, [*lines, f"error: this cannot be repaired: {error}"]


def main(argv: Sequence[str]) -> int:
    """Run the command; 0: the journal is whole, 1: it is damaged, 2: it cannot be looked at."""
    parser = argparse.ArgumentParser(prog="disqueue check-journal", description="Check a journal; the server must not run.")
    parser.add_argument("directory", metavar="DIR", help="the journal's directory: appendfilename in dir")
    parser.add_argument("--repair", action="store_true", help="make a damaged journal load again; a copy of each file is kept")
    options = parser.parse_args(argv)
    if not os.path.isdir(options.directory):
        sys.stderr.write(f"{options.directory}: there is no directory of this name; DIR is appendfilename in dir\n")
        return UNUSABLE
    disk = OsDisk(options.directory, make=False)
    try:
        if not disk.lock():
            sys.stderr.write(f"{disk.path}: a server runs on this journal: stop it first\n")
            return UNUSABLE
        if not any(name == MANIFEST or name.startswith("segment-") for name in disk.names()):
            sys.stderr.write(f"{disk.path}: no journal is here; DIR is appendfilename in dir, for example /var/lib/disque.aof\n")
            return UNUSABLE
        code, lines = check(disk, options.repair)
    except OSError as error:
        sys.stderr.write(f"{error.filename or disk.path}: {reason_of(error)}\n")
        return UNUSABLE
    finally:
        disk.unlock()
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return code
