"""The base of the records that travel on the bus, and those of membership.

A record is encoded as a MessagePack array `[tag, field, ...]`. To grow the format:

* a new field goes to the end of its struct with a default: older nodes ignore it, newer ones read the default;
* a new record gets a new tag, a place in `disqueue.wire.job_records.AnyRecord`, and `since = <protocol version>`: it is not
  sent to a peer that speaks an older version. Tags are never used again.

Every list and text has a bound, so that a few hostile bytes cannot claim a large allocation; every integer fits a signed
64-bit one.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeAlias

from msgspec import Meta, Struct

PROTOCOL_VERSION = 1
"""What this release speaks. Raised by one when a record is added or changes its meaning."""

OLDEST_PROTOCOL_VERSION = 1
"""The oldest version this release still talks to: one release back."""

NODE_ID_BYTES = 40
MAX_GOSSIP_ENTRIES = 4096
MAX_GOSSIP_BANS = 1024
MAX_ADDRESS_BYTES = 255

NodeId: TypeAlias = Annotated[bytes, Meta(min_length=NODE_ID_BYTES, max_length=NODE_ID_BYTES)]
Uint16: TypeAlias = Annotated[int, Meta(ge=0, le=0xFFFF)]
Uint32: TypeAlias = Annotated[int, Meta(ge=0, le=0xFFFF_FFFF)]
Uint63: TypeAlias = Annotated[int, Meta(ge=0, le=0x7FFF_FFFF_FFFF_FFFF)]
Address: TypeAlias = Annotated[str, Meta(max_length=MAX_ADDRESS_BYTES)]

FLAG_SUSPECTED = 1
FLAG_FAILED = 2
FLAG_LEAVING = 4


class BusRecord(Struct, array_like=True, gc=False):
    """Base of all records."""

    since: ClassVar[int] = 1


class GossipEntry(Struct, array_like=True, gc=False, frozen=True):
    """What the sender knows of a third node."""

    node_id: NodeId
    address: Address
    port: Uint16
    bus_port: Uint16
    flags: Uint16


class GossipBan(Struct, array_like=True, gc=False, frozen=True):
    """A node that was forgotten. `stamp` orders bans of one node; `remaining_ms` 0 lifts the ban of that stamp."""

    node_id: NodeId
    stamp: Uint63
    remaining_ms: Uint32


class Ping(BusRecord, tag=1):
    """Asks for a `Pong` with the same stamp and tells what changed. `flags` are the sender's own.

    `written`: how far the sender's journal is on its disk; `seen`: how far that of earlier processes of the
    receiver was; `lost`: a place of the sender's journal that was not on its disk any more (see `core.journal_age`). 0: none.
    """

    stamp: Uint63
    flags: Uint16
    nodes: Annotated[list[GossipEntry], Meta(max_length=MAX_GOSSIP_ENTRIES)]
    bans: Annotated[list[GossipBan], Meta(max_length=MAX_GOSSIP_BANS)]
    written: Uint63 = 0
    seen: Uint63 = 0
    lost: Uint63 = 0


class Pong(BusRecord, tag=2):
    """Answers a `Ping`; its `stamp` is the ping's."""

    stamp: Uint63
    flags: Uint16
