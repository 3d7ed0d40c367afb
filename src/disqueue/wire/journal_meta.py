"""The journal's rare records: what a queue, the node and its table of nodes are. Maps by name, so that they can grow."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from disqueue.wire.journal_format import (
    RecordError,
)


class Nodes(msgspec.Struct, frozen=True):
    """The ids of the nodes that the slots of the sets `owners` and `confirmed` stand for, from slot 0 on."""

    slots: list[bytes]


class Queue(msgspec.Struct, frozen=True):
    """A queue's pauses, that replace earlier ones."""

    name: bytes
    paused_in: bool = False
    paused_out: bool = False


class Pauses(msgspec.Struct, frozen=True):
    """All queues that are paused; the others are not."""

    queues: list[Queue]


class Run(msgspec.Struct, frozen=True):
    """Who writes from here on: the start of the machine, the fsync policy and the node's count of starts with this journal."""

    boot_id: bytes
    policy: str
    run: int
    wall_ms: int


class Closed(msgspec.Struct, frozen=True):
    """The journal ends here. `switched_off`: the node went on without it, so what follows is not known."""

    switched_off: bool = False


Meta = TypeVar("Meta", Nodes, Queue, Pauses, Run, Closed)

_encode = msgspec.msgpack.Encoder().encode
_decoders = {kind: msgspec.msgpack.Decoder(kind) for kind in (Nodes, Queue, Pauses, Run, Closed)}


def encode_meta(meta: Nodes | Queue | Pauses | Run | Closed) -> bytes:
    """Return the payload of a record."""
    return _encode(meta)


def decode_meta(kind: type[Meta], payload: bytes) -> Meta:
    """Return what a payload holds; raises `RecordError`."""
    try:
        return _decoders[kind].decode(payload)  # type: ignore[return-value]
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise RecordError(f"a {kind.__name__} record cannot be read: {error}") from error
