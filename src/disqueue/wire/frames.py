"""What stands in a frame: a list of records as MessagePack. The plain twin of `frames.pyx`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from disqueue.wire.job_records import AnyRecord, JobRecord, Mask

__all__ = ["MAX_FRAME_RECORDS", "JobRecord", "decode_records", "encode_job", "encode_records"]

MAX_FRAME_RECORDS = 1 << 17
"""Keeps the list that a decoder allocates on the word of a header at one megabyte."""

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[list[AnyRecord]] = msgspec.msgpack.Decoder(
    Annotated[list[AnyRecord], msgspec.Meta(max_length=MAX_FRAME_RECORDS)]
)


def encode_job(
    job_id: bytes,
    queue: bytes,
    body: bytes,
    ctime_ns: int,
    ttl_s: int,
    retry_s: int,
    delay_s: int,
    replicate: int,
    left_ms: int,
    wait_ms: int,
    nacks: int,
    deliveries: int,
    owners: Mask,
) -> msgspec.Raw:
    """Return the fields of a `JobRecord`, encoded once for all the peers that it goes to.

    What it returns goes into the `jobs` of a record, has a length, and gives its bytes to `bytes`.
    """
    fields = (job_id, queue, body, ctime_ns, ttl_s, retry_s, delay_s, replicate, left_ms, wait_ms, nacks, deliveries, owners)
    return msgspec.Raw(_encoder.encode(fields))


def encode_records(records: Sequence[AnyRecord]) -> bytes:
    """Return the payload of a frame."""
    return _encoder.encode(records)


def decode_records(payload: bytes | bytearray | memoryview) -> list[AnyRecord]:
    """Return the records of a payload. Raises ValueError (`msgspec.DecodeError` is one), RecursionError or MemoryError."""
    return _decoder.decode(payload)
