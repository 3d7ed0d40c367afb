"""Tells a journal that was cut from one that is damaged.

A journal may end in the middle of a record: that is what a crash leaves. Anything else that does not read is damage, and
is refused with what to do about it. The two are told apart by what stands behind the fault:

* nothing whole: the journal was cut there;
* the mark of a pass that knows the place to have been on the disk: damage;
* whole records that were never known to be on the disk: damage, unless the fault is a hole of zeros (blocks that a power
  failure kept from the disk while later ones reached it) or the file is shorter than the segment behind it says. Without a
  power failure since, zeros are no hole: bytes of a record are often 0.
"""

from __future__ import annotations

from typing import NamedTuple

from disqueue.journal.errors import JournalError
from disqueue.wire.journal_format import (
    RECORD_BYTES_MAX,
)
from disqueue.wire.journal_search import (
    CHECKSUM_BYTES,
    checksum_of,
    find_passes,
    next_record,
)

SECTOR_BYTES = 512
REPAIR = "Run `disqueue check-journal DIR` on this directory to see what is there, and with --repair to load what still reads"
STAKE = "The records there are lost: jobs may be missing, and jobs that ended there may come back"


class Fault(NamedTuple):
    """A place in a segment where no whole record is, and the bytes the record there would take.

    `settled`: the manifest says that all of the segment was on the disk. `short`: the next segment says that the file was longer,
    or does not say anything because its own first record is lost. `holes`: the machine may have lost its power since.
    """

    segment: int
    offset: int
    needed: int
    settled: bool
    short: bool
    holes: bool = True


class Behind(NamedTuple):
    """What a segment has from `offset` on."""

    segment: int
    offset: int
    salt: int
    data: bytes


def judge(fault: Fault, file: str, behind: list[Behind]) -> None:
    """Return when the journal was cut at `fault`; raise `JournalError` when it is damaged there.

    `behind`: the rest of the segment, and the later ones.
    """
    synced = (0, 0)
    whole = [False, False]
    for part in behind:
        marks = find_passes(part.data, part.offset, part.salt)
        synced = max([synced, *((mark.synced_segment, mark.synced_offset) for mark in marks)])
        if marks or next_record(part.data, 0, part.offset, part.salt) < len(part.data):
            whole[part.segment != fault.segment] = True
    here, later = whole
    if fault.settled or synced > (fault.segment, fault.offset):
        raise _damage(fault, file, "the journal is damaged here: this had been written to the disk whole")
    if (here or (later and not fault.short)) and not (fault.holes and _is_hole(fault, behind[0])):
        raise _damage(fault, file, "the journal is damaged here: whole records stand behind this place")


def _damage(fault: Fault, file: str, problem: str) -> JournalError:
    return JournalError(problem, file=file, offset=fault.offset, stake=STAKE, remedy=REPAIR)


def _is_hole(fault: Fault, part: Behind) -> bool:
    """Tell whether a sector of zeros is among the bytes that the record at the fault would take."""
    data = part.data
    reach = fault.needed if fault.needed <= RECORD_BYTES_MAX else 0
    first = -fault.offset % SECTOR_BYTES
    if data and not any(data[:first]) and _is_lost_beginning(part, first):
        return True
    sectors = range(first, min(len(data), reach + SECTOR_BYTES), SECTOR_BYTES)
    return any(not any(data[at : at + SECTOR_BYTES]) for at in sectors)


def _is_lost_beginning(part: Behind, zeros: int) -> bool:
    """Tell whether zeros at the end of a sector are a record's beginning that never reached the disk.

    A record does not begin with a checksum of zeros but once in 2^32. If less of the checksum is in that sector, the rest of the
    record has to be what the rest of the checksum says.
    """
    if zeros >= CHECKSUM_BYTES:
        return True
    checksum = checksum_of(part.data, 0, part.offset, part.salt)
    return zeros > 0 and checksum[zeros:] == part.data[zeros:CHECKSUM_BYTES] != b""
