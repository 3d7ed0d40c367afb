"""Frames of the bus: a 32-bit length, then a MessagePack list of records.

All that a node has for one peer in a pass goes into one frame. A frame that is too long, cut short or not what
`disqueue.wire.records` describes raises `BusError`; the link it came on is closed, nothing else happens.
"""

from __future__ import annotations

from collections.abc import Sequence

from disqueue.wire.frames import MAX_FRAME_RECORDS, decode_records, encode_records
from disqueue.wire.job_records import AnyRecord

HEADER_BYTES = 4
MAX_FRAME_BYTES = (1 << 29) + (1 << 21)
"""The largest body that any node can be configured to take, with its queue's name and the rest of its record."""
SPLIT_FRAME_BYTES = 1 << 26
"""Records share a frame up to this size."""


class BusError(Exception):
    """A peer broke the protocol, or is not one. The text is for the log."""


def encode_frames(
    records: Sequence[AnyRecord], split_bytes: int = SPLIT_FRAME_BYTES, max_bytes: int = MAX_FRAME_BYTES
) -> list[bytes]:
    """Encode `records` in their order: one frame if it is not above `split_bytes`, several otherwise.

    Raises `BusError` when a single record is longer than `max_bytes`.
    """
    payload = encode_records(records) if len(records) <= MAX_FRAME_RECORDS else b""
    if payload and (len(payload) <= split_bytes or len(records) == 1):
        if len(payload) > max_bytes:
            raise BusError(f"a {type(records[0]).__name__} record of {len(payload)} bytes is longer than the {max_bytes} allowed")
        return [len(payload).to_bytes(HEADER_BYTES, "big") + payload]
    middle = len(records) // 2
    return encode_frames(records[:middle], split_bytes, max_bytes) + encode_frames(records[middle:], split_bytes, max_bytes)


def decode_frame(payload: bytes | bytearray | memoryview) -> list[AnyRecord]:
    """The records of one frame's payload."""
    try:
        return decode_records(payload)
    except (ValueError, RecursionError, MemoryError) as error:
        raise BusError(f"malformed frame of {len(payload)} bytes: {error}") from None


class FrameReader:
    """Cuts a stream of bytes into the payloads of frames.

    Memory follows what has arrived, never what a header announces. `max_frame_bytes` may be raised between two
    frames: a link starts with the small bound of the handshake.
    """

    __slots__ = ("_header", "_payload", "_wanted", "max_frame_bytes")

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._header = b""
        self._payload = bytearray()
        self._wanted = -1

    @property
    def buffered_bytes(self) -> int:
        return len(self._header) + len(self._payload)

    def feed(self, data: bytes) -> list[bytes | bytearray | memoryview]:
        """The payloads that `data` completes. Raises `BusError` at the first length out of bounds."""
        payloads: list[bytes | bytearray | memoryview] = []
        position = 0
        view = memoryview(data)
        while position < len(view):
            if self._wanted < 0:
                position = self._read_header(view, position)
                continue
            missing = self._wanted - len(self._payload)
            if not self._payload and len(view) - position >= missing:
                payloads.append(view[position : position + missing])
            else:
                self._payload += view[position : position + missing]
                if len(self._payload) < self._wanted:
                    break
                payloads.append(self._payload)
                self._payload = bytearray()  # the old one belongs to whoever decodes it
            position += missing
            self._wanted = -1
        return payloads

    def _read_header(self, view: memoryview, position: int) -> int:
        taken = min(HEADER_BYTES - len(self._header), len(view) - position)
        self._header += bytes(view[position : position + taken])
        if len(self._header) == HEADER_BYTES:
            length = int.from_bytes(self._header, "big")
            if not 0 < length <= self.max_frame_bytes:
                raise BusError(_describe_bad_header(self._header, length, self.max_frame_bytes))
            self._wanted = length
            self._header = b""
        return position + taken


def _describe_bad_header(header: bytes, length: int, max_frame_bytes: int) -> str:
    if header == b"DbuZ":
        return "the peer speaks the bus protocol of Disque 1.0, which cannot join a Disqueue cluster"
    if header[:1] == b"*" or header.isalpha():
        return f"the peer starts with {header!r}: a client seems to use the bus port"
    if header[:2] == b"\x16\x03":
        return "the peer speaks TLS, this node's bus does not: set tls-cluster alike on all nodes"
    return f"frame of {length} bytes, allowed are 1 to {max_frame_bytes}"
