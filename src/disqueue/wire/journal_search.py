"""Looking for whole records in the bytes of a segment, wherever they stand."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from disqueue.wire.journal_format import (
    ENDS,
    FORGOTTEN,
    FRAME_BYTES,
    GROUP_BYTES_MAX,
    JOB,
    JOBS,
    PASS,
    PASS_BYTES,
    PASS_FIELDS,
    PASS_MAGIC,
    RECORD_BYTES_MAX,
    START_BYTES,
    START_FIELDS,
    STATE,
    STATES,
    RecordError,
)

CHECKSUM_BYTES = 4
"""A record begins with them (see `journal_format`)."""

ONE_BIT_BYTES_MAX = FRAME_BYTES + 1 + GROUP_BYTES_MAX + 1024
"""Longer records are not tried bit by bit: each bit takes a look at the whole record. All are shorter but those of large jobs."""

_FRAME = Struct("<II")
_PASS = Struct("<" + PASS_FIELDS)
_START = Struct("<" + START_FIELDS)


class PassRecord(NamedTuple):
    """The mark that begins a pass."""

    wall_ms: int
    synced_segment: int
    synced_offset: int


def decode_pass(data: bytes, start: int, end: int) -> PassRecord:
    """Return the mark in a payload."""
    if end - start < PASS_BYTES:
        raise RecordError("the mark of a pass is too short")
    _, wall_ms, segment, offset = _PASS.unpack_from(data, start)
    return PassRecord(wall_ms, segment, offset)


def decode_start(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the number and the end of the segment before this one."""
    if end - start < START_BYTES:
        raise RecordError("the first record of a segment is too short")
    number, previous_end = _START.unpack_from(data, start)
    return number, previous_end


def next_record(data: bytes, start: int, offset: int, salt: int) -> int:
    """Return where the next whole record in `data` begins that is a mark of a pass or is about a job, or the end of `data`.

    `data` are the bytes of a segment from `offset` on; looks from `start` on.
    """
    marks = {PASS_MAGIC: (PASS,), b"D-": (JOB, STATE, FORGOTTEN, JOBS, STATES, ENDS)}
    found = [len(data)]
    for mark, kinds in marks.items():
        at = data.find(mark, start + FRAME_BYTES + 1)
        while at >= 0:
            begin = at - FRAME_BYTES - 1
            if data[at - 1] in kinds and _is_whole(data, begin, offset, salt):
                found.append(begin)
                break
            at = data.find(mark, at + 1)
    return min(found)


def _is_whole(data: bytes, begin: int, offset: int, salt: int) -> bool:
    return checksum_of(data, begin, offset, salt) == data[begin : begin + CHECKSUM_BYTES]


def checksum_of(data: bytes, begin: int, offset: int, salt: int) -> bytes:
    """Return the checksum that the bytes of the record at `begin` should have; b"" when they are not all there."""
    if begin + FRAME_BYTES > len(data):
        return b""
    length = _FRAME.unpack_from(data, begin)[1]
    end = begin + FRAME_BYTES + length
    if length > RECORD_BYTES_MAX or end > len(data):
        return b""
    return crc32c(data[begin + CHECKSUM_BYTES : end], (salt + offset + begin) & 0xFFFFFFFF).to_bytes(CHECKSUM_BYTES, "little")


def is_one_bit_off(data: bytes, offset: int, salt: int) -> bool:
    """Tell whether `data`, the end of a segment from `offset` on, is one record that is whole but for a single bit.

    No crash leaves that: a record that was written in part looks like it once in 2^32 for each of its bits.
    """
    size = len(data)
    if not FRAME_BYTES < size <= ONE_BIT_BYTES_MAX:
        return False
    start = (salt + offset) & 0xFFFFFFFF
    checksum, length = _FRAME.unpack_from(data)
    covered = bytearray(data[CHECKSUM_BYTES:])
    length_bits = length ^ (size - FRAME_BYTES)
    if length_bits:
        covered[:CHECKSUM_BYTES] = (size - FRAME_BYTES).to_bytes(CHECKSUM_BYTES, "little")
        return bool(length_bits.bit_count() == 1 and crc32c(covered, start) == checksum)
    if (crc32c(covered, start) ^ checksum).bit_count() == 1:
        return True
    for at in range(CHECKSUM_BYTES, len(covered)):
        byte = covered[at]
        for bit in range(8):
            covered[at] = byte ^ 1 << bit
            if crc32c(covered, start) == checksum:
                return True
        covered[at] = byte
    return False


def find_passes(data: bytes, offset: int, salt: int) -> list[PassRecord]:
    """Return the marks of passes that stand whole in `data`, the bytes of a segment from `offset` on."""
    found = []
    at = data.find(PASS_MAGIC, FRAME_BYTES + 1)
    while at >= 0:
        if data[at - 1] == PASS and _is_whole(data, at - FRAME_BYTES - 1, offset, salt):
            found.append(decode_pass(data, at, len(data)))
        at = data.find(PASS_MAGIC, at + 1)
    return found


def split_records(data: bytes) -> list[tuple[int, int, int]]:
    """Return kind, start and end of the payload of each of the whole records in `data`; checksums are not looked at."""
    found = []
    at = 0
    while at < len(data):
        _, length = _FRAME.unpack_from(data, at)
        end = at + FRAME_BYTES + length
        found.append((data[at + FRAME_BYTES], at + FRAME_BYTES + 1, end))
        at = end
    return found
