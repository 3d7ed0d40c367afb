"""The format of the journal: kinds and lengths of records, and the headers of segments.

A segment file is a header and then records. A record is

    crc32c u32 | length u32 | kind u8 | payload            (little-endian; length counts kind and payload)

The checksum covers everything after itself and starts from the record's place: the checksum of the segment's header (its
*salt*) plus the record's offset in the file. So a whole record that a disk wrote to the wrong place is not taken for one.
A record about several jobs (`JOBS`, `STATES`, `ENDS`) says once what they have in common and how their ids begin, then the rest
of each. Only jobs with no node in `confirmed`, and with their ctime as their order, stand in it.
Kinds from 128 on may be passed over by a reader that does not know them; an unknown kind below 128 means a newer format.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

FORMAT_VERSION = 2
"""What is written; journals of format 1, which has none of the kinds about several jobs, are read."""
HEADER_MAGIC = b"DISQJRNL"
HEADER_BYTES = 80
FRAME_BYTES = 8
RECORD_BYTES_MAX = (512 << 20) + (1 << 20)
"""The largest body a client may send, and room for the rest of its record."""

PASS = 1
SEGMENT_START = 2
JOB = 3
STATE = 4
FORGOTTEN = 5
NODES = 6
QUEUE = 7
RUN = 8
CLOSED = 9
PAUSES = 10
JOBS = 11
STATES = 12
ENDS = 13
OPTIONAL_KINDS = 128

WHOLE = 1
MORE = 2
DAMAGED = 3

PASS_MAGIC = b"\xf5DQpass\n"
ID_BYTES = 40
PREFIX_BYTES = 11
"""What the ids of all jobs of one node begin with, and what is written once for all jobs of a record."""
TAIL_BYTES = ID_BYTES - PREFIX_BYTES
GROUP_BYTES_MAX = 8192
"""A record about several jobs is not made longer: so much is lost, or left out by a repair, where one bit is damaged."""

PASS_FIELDS = "8sqIQ"
START_FIELDS = "IQ"
STATE_FIELDS = "40sBHIIqqHH"
JOB_FIELDS = "40sBHIIqqHHqqIIIHII"
FORGOTTEN_FIELDS = "40sI"
STATES_FIELDS = "11sHBHHHqQ"
JOBS_FIELDS = STATES_FIELDS + "IIIHHI"
ENDS_FIELDS = "11sHI"
"""The fixed parts of payloads, as in `struct`, all of them little-endian and without gaps."""
PASS_BYTES = Struct("<" + PASS_FIELDS).size
START_BYTES = Struct("<" + START_FIELDS).size
STATE_BYTES = Struct("<" + STATE_FIELDS).size
JOB_BYTES = Struct("<" + JOB_FIELDS).size
FORGOTTEN_BYTES = Struct("<" + FORGOTTEN_FIELDS).size
STATES_BYTES = Struct("<" + STATES_FIELDS).size
JOBS_BYTES = Struct("<" + JOBS_FIELDS).size
ENDS_BYTES = Struct("<" + ENDS_FIELDS).size
JOBS_ITEM_BYTES = TAIL_BYTES + 12
"""A job's part of a record, but for its body: the rest of its id, its ctime, and how far its expiry is from ctime and TTL."""

JOB_RECORD_BYTES = FRAME_BYTES + 1 + JOB_BYTES
"""What a job's record takes beside its queue's name, its body and its two sets of nodes."""
STATE_RECORD_BYTES = FRAME_BYTES + 1 + STATE_BYTES
FORGOTTEN_RECORD_BYTES = FRAME_BYTES + 1 + FORGOTTEN_BYTES

_HEADER = Struct("<8sHHI40sQ")
_CRC = Struct("<I")


class RecordError(ValueError):
    """A record whose checksum is right but whose content makes no sense."""


class Header(NamedTuple):
    """What the first bytes of a segment file say, and the salt of its records' checksums."""

    version: int
    number: int
    node_id: bytes
    created_ms: int
    salt: int


def encode_header(number: int, node_id: bytes, created_ms: int) -> bytes:
    """Return the header of segment `number`, `HEADER_BYTES` long; `node_id` has 40 characters."""
    head = _HEADER.pack(HEADER_MAGIC, FORMAT_VERSION, HEADER_BYTES, number, node_id, created_ms)
    head += bytes(HEADER_BYTES - 4 - len(head))
    return head + _CRC.pack(crc32c(head))


def decode_header(data: bytes) -> Header | None:
    """Return the header that `data` begins with, or None when it is cut or damaged. The version is not judged here."""
    if len(data) < HEADER_BYTES or data[:8] != HEADER_MAGIC:
        return None
    (salt,) = _CRC.unpack_from(data, HEADER_BYTES - 4)
    if crc32c(data[: HEADER_BYTES - 4]) != salt:
        return None
    _, version, _, number, node_id, created_ms = _HEADER.unpack_from(data)
    return Header(version, number, node_id, created_ms, salt)
