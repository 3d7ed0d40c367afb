"""The journal's records as bytes: no files, no clock.

A segment file is a header and then records. A record is

    crc32c u32 | length u32 | kind u8 | payload            (little-endian; length counts kind and payload)

The checksum covers everything after itself and starts from the record's place: the checksum of the segment's header (its
*salt*) plus the record's offset in the file. So a whole record that a disk wrote to the wrong place is not taken for one.
Kinds from 128 on may be passed over by a reader that does not know them; an unknown kind below 128 means a newer format.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

FORMAT_VERSION = 1
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
OPTIONAL_KINDS = 128

WHOLE = 1
MORE = 2
DAMAGED = 3

PASS_MAGIC = b"\xf5DQpass\n"
ID_BYTES = 40

_HEADER = Struct("<8sHHI40sQ")
_CRC = Struct("<I")
_FRAME = Struct("<II")
_LENGTH_KIND = Struct("<IB")
_PASS_FIELDS = "8sqIQ"
_START_FIELDS = "IQ"
_STATE_FIELDS = "40sBHIIqqHH"
_JOB_FIELDS = "40sBHIIqqHHqqIIIHII"
_FORGOTTEN_FIELDS = "40sI"
_PASS = Struct("<IB" + _PASS_FIELDS)
_START = Struct("<IB" + _START_FIELDS)
_STATE = Struct("<IB" + _STATE_FIELDS)
_JOB = Struct("<IB" + _JOB_FIELDS)
_FORGOTTEN = Struct("<IB" + _FORGOTTEN_FIELDS)
_PASS_PAYLOAD = Struct("<" + _PASS_FIELDS)
_START_PAYLOAD = Struct("<" + _START_FIELDS)
_STATE_PAYLOAD = Struct("<" + _STATE_FIELDS)
_JOB_PAYLOAD = Struct("<" + _JOB_FIELDS)
_FORGOTTEN_PAYLOAD = Struct("<" + _FORGOTTEN_FIELDS)
_PASS_BYTES = _PASS_PAYLOAD.size
_START_BYTES = _START_PAYLOAD.size
_STATE_BYTES = _STATE_PAYLOAD.size
_JOB_BYTES = _JOB_PAYLOAD.size
_FORGOTTEN_BYTES = _FORGOTTEN_PAYLOAD.size

JOB_RECORD_BYTES = FRAME_BYTES + 1 + _JOB_BYTES
"""What a job's record takes beside its queue's name, its body and its two sets of nodes."""
STATE_RECORD_BYTES = FRAME_BYTES + 1 + _STATE_BYTES
FORGOTTEN_RECORD_BYTES = FRAME_BYTES + 1 + _FORGOTTEN_BYTES


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


def _seal(buffer: bytearray, base: int, record: bytes) -> None:
    """Append a record (from its length on) behind its checksum; `base` is the salt plus the buffer's offset in the file."""
    checksum = crc32c(record, (base + len(buffer)) & 0xFFFFFFFF)
    buffer.append(checksum & 0xFF)
    buffer.append((checksum >> 8) & 0xFF)
    buffer.append((checksum >> 16) & 0xFF)
    buffer.append((checksum >> 24) & 0xFF)
    buffer += record


def append_record(buffer: bytearray, base: int, kind: int, payload: bytes) -> None:
    """Append a record of any kind."""
    _seal(buffer, base, _LENGTH_KIND.pack(len(payload) + 1, kind) + payload)


def append_pass(buffer: bytearray, base: int, wall_ms: int, synced_segment: int, synced_offset: int) -> None:
    """Append the mark that begins a pass: everything before the given place is known to be on the disk."""
    _seal(buffer, base, _PASS.pack(1 + _PASS_BYTES, PASS, PASS_MAGIC, wall_ms, synced_segment, synced_offset))


def append_start(buffer: bytearray, base: int, previous_segment: int, previous_end: int) -> None:
    """Append the record that tells where the segment before this one ends (0, 0: there is none)."""
    _seal(buffer, base, _START.pack(1 + _START_BYTES, SEGMENT_START, previous_segment, previous_end))


def mask_bytes(mask: int) -> bytes:
    """Return a set of slots as little-endian bytes, as few as it needs."""
    if mask < 256:
        return _SMALL_MASKS[mask]
    return mask.to_bytes((mask.bit_length() + 7) >> 3, "little")


_SMALL_MASKS = [bytes([value]) if value else b"" for value in range(256)]


def append_state(
    buffer: bytearray,
    base: int,
    job_id: bytes,
    state: int,
    flags: int,
    nacks: int,
    deliveries: int,
    due_wall_ms: int,
    order_ns: int,
    owners: int,
    confirmed: int,
) -> None:
    """Append what changes in a job's life. `due_wall_ms` is Unix time, 0: nothing is due."""
    owner_bytes = mask_bytes(owners)
    confirmed_bytes = mask_bytes(confirmed)
    owner_size = len(owner_bytes)
    confirmed_size = len(confirmed_bytes)
    fixed = _STATE.pack(
        1 + _STATE_BYTES + owner_size + confirmed_size,
        STATE,
        job_id,
        state,
        flags,
        nacks,
        deliveries,
        due_wall_ms,
        order_ns,
        owner_size,
        confirmed_size,
    )
    _seal(buffer, base, fixed + owner_bytes + confirmed_bytes)


def append_job(
    buffer: bytearray,
    base: int,
    job_id: bytes,
    state: int,
    flags: int,
    nacks: int,
    deliveries: int,
    due_wall_ms: int,
    order_ns: int,
    owners: int,
    confirmed: int,
    ctime_ns: int,
    expires_wall_ms: int,
    retry_s: int,
    delay_s: int,
    ttl_s: int,
    repl: int,
    queue: bytes,
    body: bytes,
) -> None:
    """Append everything of a job: its state as in `append_state`, and what never changes.

    `ctime_ns`: Unix time; `expires_wall_ms`: when its time to live ends; retry, delay and ttl are 32-bit seconds.
    """
    owner_bytes = mask_bytes(owners)
    confirmed_bytes = mask_bytes(confirmed)
    owner_size = len(owner_bytes)
    confirmed_size = len(confirmed_bytes)
    queue_size = len(queue)
    body_size = len(body)
    fixed = _JOB.pack(
        1 + _JOB_BYTES + owner_size + confirmed_size + queue_size + body_size,
        JOB,
        job_id,
        state,
        flags,
        nacks,
        deliveries,
        due_wall_ms,
        order_ns,
        owner_size,
        confirmed_size,
        ctime_ns,
        expires_wall_ms,
        retry_s,
        delay_s,
        ttl_s,
        repl,
        queue_size,
        body_size,
    )
    _seal(buffer, base, b"".join((fixed, owner_bytes, confirmed_bytes, queue, body)))


def append_forgotten(buffer: bytearray, base: int, job_id: bytes, segment: int) -> None:
    """Append a job's end; `segment` holds its newest full record, so this one is needed as long as that file is there."""
    _seal(buffer, base, _FORGOTTEN.pack(1 + _FORGOTTEN_BYTES, FORGOTTEN, job_id, segment))


def reseal(buffer: bytearray, base: int) -> None:
    """Give the whole records in `buffer` the checksums of another place."""
    view = memoryview(buffer)
    at = 0
    while at < len(buffer):
        (length,) = _CRC.unpack_from(buffer, at + 4)
        end = at + FRAME_BYTES + length
        _CRC.pack_into(buffer, at, crc32c(view[at + 4 : end], (base + at) & 0xFFFFFFFF))
        at = end


class RecordScanner:
    """Finds the records in the bytes of one segment.

    After `advance()` returned `WHOLE`, `kind` and the payload `data[start:end]` are those of the record at `offset` in the
    file. After `MORE`, the record at `offset` needs `needed` bytes from there; after `DAMAGED`, no whole record is at `offset`.
    """

    def __init__(self, salt: int) -> None:
        self.salt = salt
        self.data = b""
        self.view = memoryview(b"")
        self.data_offset = 0
        self.at = 0
        self.size = 0
        self.kind = 0
        self.start = 0
        self.end = 0
        self.offset = 0
        self.needed = 0

    def feed(self, data: bytes, offset: int) -> None:
        """Go on in `data`, the bytes of the file from `offset` on; a record begins there."""
        self.data = data
        self.view = memoryview(data)
        self.data_offset = offset
        self.offset = offset
        self.at = 0
        self.size = len(data)

    def advance(self) -> int:
        """Step to the next record: `WHOLE`, `MORE` or `DAMAGED`."""
        at = self.at
        left = self.size - at
        self.offset = self.data_offset + at
        self.needed = FRAME_BYTES
        if left < FRAME_BYTES:
            return MORE
        checksum, length = _FRAME.unpack_from(self.data, at)
        if length < 1 or length > RECORD_BYTES_MAX:
            return DAMAGED
        self.needed = FRAME_BYTES + length
        if left < self.needed:
            return MORE
        end = at + self.needed
        if crc32c(self.view[at + 4 : end], (self.salt + self.offset) & 0xFFFFFFFF) != checksum:
            return DAMAGED
        self.kind = self.data[at + FRAME_BYTES]
        self.start = at + FRAME_BYTES + 1
        self.end = end
        self.at = end
        return WHOLE

    def payload(self) -> bytes:
        """Return the payload of the record that was found."""
        return self.data[self.start : self.end]


class PassRecord(NamedTuple):
    """The mark that begins a pass."""

    wall_ms: int
    synced_segment: int
    synced_offset: int


def decode_mask(data: bytes, start: int, size: int) -> int:
    """Return the set of slots in `size` bytes at `start`."""
    if size == 1:
        return data[start]
    return int.from_bytes(data[start : start + size], "little")


def decode_state(data: bytes, start: int, end: int) -> tuple[bytes, int, int, int, int, int, int, int, int]:
    """Return the state in a payload: id, state, flags, nacks, deliveries, due_wall_ms, order_ns, owners, confirmed."""
    if end - start < _STATE_BYTES:
        raise RecordError("a state record is too short")
    fields = _STATE_PAYLOAD.unpack_from(data, start)
    owner_size = fields[7]
    confirmed_size = fields[8]
    at = start + _STATE_BYTES
    if at + owner_size + confirmed_size > end:
        raise RecordError("the sets of nodes in a state record are longer than the record")
    owners = decode_mask(data, at, owner_size)
    confirmed = decode_mask(data, at + owner_size, confirmed_size)
    return (*fields[:7], owners, confirmed)


def decode_job(
    data: bytes, start: int, end: int
) -> tuple[bytes, int, int, int, int, int, int, int, int, int, int, int, int, int, int, bytes, bytes]:
    """Return the job in a payload.

    Like `decode_state`, and then ctime_ns, expires_wall_ms, retry_s, delay_s, ttl_s, repl, queue, body. What follows the body
    belongs to later versions and is passed over.
    """
    if end - start < _JOB_BYTES:
        raise RecordError("a job record is too short")
    fields = _JOB_PAYLOAD.unpack_from(data, start)
    owner_size = fields[7]
    confirmed_size = fields[8]
    at = start + _JOB_BYTES
    queue_at = at + owner_size + confirmed_size
    body_at = queue_at + fields[15]
    body_end = body_at + fields[16]
    if body_end > end:
        raise RecordError("the queue name and the body in a job record are longer than the record")
    owners = decode_mask(data, at, owner_size)
    confirmed = decode_mask(data, at + owner_size, confirmed_size)
    return (*fields[:7], owners, confirmed, *fields[9:15], data[queue_at:body_at], data[body_at:body_end])


def decode_forgotten(data: bytes, start: int, end: int) -> tuple[bytes, int]:
    """Return a job's id and the segment that holds its newest full record."""
    if end - start < _FORGOTTEN_BYTES:
        raise RecordError("a record of a forgotten job is too short")
    job_id, segment = _FORGOTTEN_PAYLOAD.unpack_from(data, start)
    return job_id, segment


def decode_pass(data: bytes, start: int, end: int) -> PassRecord:
    """Return the mark in a payload."""
    if end - start < _PASS_BYTES:
        raise RecordError("the mark of a pass is too short")
    _, wall_ms, segment, offset = _PASS_PAYLOAD.unpack_from(data, start)
    return PassRecord(wall_ms, segment, offset)


def decode_start(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the number and the end of the segment before this one."""
    if end - start < _START_BYTES:
        raise RecordError("the first record of a segment is too short")
    number, previous_end = _START_PAYLOAD.unpack_from(data, start)
    return number, previous_end


def next_record(data: bytes, start: int, offset: int, salt: int) -> int:
    """Return where the next whole record in `data` begins that is a mark of a pass or is about a job, or the end of `data`.

    `data` are the bytes of a segment from `offset` on; looks from `start` on.
    """
    marks = {PASS_MAGIC: (PASS,), b"D-": (JOB, STATE, FORGOTTEN)}
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
    checksum, length = _FRAME.unpack_from(data, begin)
    end = begin + FRAME_BYTES + length
    if length > RECORD_BYTES_MAX or end > len(data):
        return False
    return bool(crc32c(data[begin + 4 : end], (salt + offset + begin) & 0xFFFFFFFF) == checksum)


def find_passes(data: bytes, offset: int, salt: int) -> list[PassRecord]:
    """Return the marks of passes that stand whole in `data`, the bytes of a segment from `offset` on."""
    found = []
    at = data.find(PASS_MAGIC, FRAME_BYTES + 1)
    while at >= 0:
        if data[at - 1] == PASS and _is_whole(data, at - FRAME_BYTES - 1, offset, salt):
            found.append(decode_pass(data, at, len(data)))
        at = data.find(PASS_MAGIC, at + 1)
    return found


def job_id_at(data: bytes, start: int) -> bytes:
    """Return the id that the payload of a record about a job begins with."""
    return data[start : start + ID_BYTES]


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
