"""The journal's records as bytes, written and read; `journal_records.pyx` is the compiled twin.

`base` is always the place at which a buffer will stand: the salt of the segment plus the buffer's offset in the file.
"""

from __future__ import annotations

from struct import Struct

from crc32c import crc32c

from disqueue.wire.journal_format import (
    FORGOTTEN,
    FORGOTTEN_BYTES,
    FORGOTTEN_FIELDS,
    FRAME_BYTES,
    ID_BYTES,
    JOB,
    JOB_BYTES,
    JOB_FIELDS,
    PASS,
    PASS_BYTES,
    PASS_FIELDS,
    PASS_MAGIC,
    RECORD_BYTES_MAX,
    SEGMENT_START,
    START_BYTES,
    START_FIELDS,
    STATE,
    STATE_BYTES,
    STATE_FIELDS,
    RecordError,
)

WHOLE = 1
"""What `RecordScanner.advance` found."""
MORE = 2
DAMAGED = 3

_CRC = Struct("<I")
_FRAME = Struct("<II")
_LENGTH_KIND = Struct("<IB")
_PASS = Struct("<IB" + PASS_FIELDS)
_START = Struct("<IB" + START_FIELDS)
_STATE = Struct("<IB" + STATE_FIELDS)
_JOB = Struct("<IB" + JOB_FIELDS)
_FORGOTTEN = Struct("<IB" + FORGOTTEN_FIELDS)
_STATE_PAYLOAD = Struct("<" + STATE_FIELDS)
_JOB_PAYLOAD = Struct("<" + JOB_FIELDS)
_FORGOTTEN_PAYLOAD = Struct("<" + FORGOTTEN_FIELDS)


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
    _seal(buffer, base, _PASS.pack(1 + PASS_BYTES, PASS, PASS_MAGIC, wall_ms, synced_segment, synced_offset))


def append_start(buffer: bytearray, base: int, previous_segment: int, previous_end: int) -> None:
    """Append the record that tells where the segment before this one ends (0, 0: there is none)."""
    _seal(buffer, base, _START.pack(1 + START_BYTES, SEGMENT_START, previous_segment, previous_end))


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
        1 + STATE_BYTES + owner_size + confirmed_size,
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
        1 + JOB_BYTES + owner_size + confirmed_size + queue_size + body_size,
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
    _seal(buffer, base, _FORGOTTEN.pack(1 + FORGOTTEN_BYTES, FORGOTTEN, job_id, segment))


def reseal(buffer: bytearray, base: int) -> None:
    """Give the whole records in `buffer` the checksums of another place."""
    view = memoryview(buffer)
    at = 0
    while at < len(buffer):
        (length,) = _CRC.unpack_from(buffer, at + 4)
        end = at + FRAME_BYTES + length
        _CRC.pack_into(buffer, at, crc32c(view[at + 4 : end], (base + at) & 0xFFFFFFFF))
        at = end


def fill_frame(buffer: bytearray, base: int, at: int) -> None:
    """Fill in the frame of the record that begins at `at` and reaches to the end of the buffer."""
    _CRC.pack_into(buffer, at + 4, len(buffer) - at - FRAME_BYTES)
    _CRC.pack_into(buffer, at, crc32c(memoryview(buffer)[at + 4 :], (base + at) & 0xFFFFFFFF))


def empty(buffer: bytearray) -> None:
    """Empty a buffer that is filled again. The compiled twin keeps its memory, unless most of that was not used."""
    buffer.clear()


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


def decode_mask(data: bytes, start: int, size: int) -> int:
    """Return the set of slots in `size` bytes at `start`."""
    if size == 1:
        return data[start]
    return int.from_bytes(data[start : start + size], "little")


class JobFields:
    """What a record says of a job; filled in by `read_job` and `read_state`."""

    def __init__(self) -> None:
        self.id = b""
        self.state = 0
        self.flags = 0
        self.nacks = 0
        self.deliveries = 0
        self.due_wall_ms = 0
        self.order_ns = 0
        self.owners = 0
        self.confirmed = 0
        self.ctime_ns = 0
        self.expires_wall_ms = 0
        self.retry_s = 0
        self.delay_s = 0
        self.ttl_s = 0
        self.repl = 0
        self.queue = b""
        self.body = b""


def read_state(data: bytes, start: int, end: int, fields: JobFields) -> None:
    """Fill in what a state record says: from `id` to `confirmed`. Raises `RecordError`."""
    if end - start < STATE_BYTES:
        raise RecordError("a state record is too short")
    (
        fields.id,
        fields.state,
        fields.flags,
        fields.nacks,
        fields.deliveries,
        fields.due_wall_ms,
        fields.order_ns,
        owner_size,
        confirmed_size,
    ) = _STATE_PAYLOAD.unpack_from(data, start)
    at = start + STATE_BYTES
    if at + owner_size + confirmed_size > end:
        raise RecordError("the sets of nodes in a state record are longer than the record")
    fields.owners = decode_mask(data, at, owner_size)
    fields.confirmed = decode_mask(data, at + owner_size, confirmed_size)


def read_job(data: bytes, start: int, end: int, fields: JobFields) -> None:
    """Fill in what a job's record says. What follows its body belongs to later versions. Raises `RecordError`."""
    if end - start < JOB_BYTES:
        raise RecordError("a job record is too short")
    (
        fields.id,
        fields.state,
        fields.flags,
        fields.nacks,
        fields.deliveries,
        fields.due_wall_ms,
        fields.order_ns,
        owner_size,
        confirmed_size,
        fields.ctime_ns,
        fields.expires_wall_ms,
        fields.retry_s,
        fields.delay_s,
        fields.ttl_s,
        fields.repl,
        queue_size,
        body_size,
    ) = _JOB_PAYLOAD.unpack_from(data, start)
    at = start + JOB_BYTES
    queue_at = at + owner_size + confirmed_size
    body_at = queue_at + queue_size
    if body_at + body_size > end:
        raise RecordError("the queue name and the body in a job record are longer than the record")
    fields.owners = decode_mask(data, at, owner_size)
    fields.confirmed = decode_mask(data, at + owner_size, confirmed_size)
    fields.queue = data[queue_at:body_at]
    fields.body = data[body_at : body_at + body_size]


def decode_forgotten(data: bytes, start: int, end: int) -> tuple[bytes, int]:
    """Return a job's id and the segment that holds its newest full record."""
    if end - start < FORGOTTEN_BYTES:
        raise RecordError("a record of a forgotten job is too short")
    job_id, segment = _FORGOTTEN_PAYLOAD.unpack_from(data, start)
    return job_id, segment


def job_id_at(data: bytes, start: int) -> bytes:
    """Return the id that the payload of a record about a job begins with."""
    return data[start : start + ID_BYTES]
