"""The records about jobs and queues that nodes exchange.

Owner sets travel as bit masks of the sender's node slots; `Slots` tells the receiver which node a bit stands for, and comes on a
link before the first mask that needs it. Times are relative milliseconds: clocks of two nodes are never compared.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from disqueue.wire.records import BusRecord, NodeId, Ping, Pong, Uint16, Uint32, Uint63

MAX_BATCH = 65_536
MAX_JOBS = 4_096
MAX_SLOT_ENTRIES = 16_384
MAX_NAME_BYTES = 1 << 20

JobId: TypeAlias = Annotated[bytes, Meta(min_length=40, max_length=40)]
Seconds: TypeAlias = Annotated[int, Meta(ge=0, le=0x7FFF_FFFF)]
Milliseconds: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 46)]
"""2,000 years: more than any TTL, RETRY or DELAY has, and far from what a sum of two could overflow."""
Number: TypeAlias = Annotated[int, Meta(ge=-1, le=1 << 46)]
Nanoseconds: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 62)]
Mask: TypeAlias = Annotated[int, Meta(ge=0)] | Annotated[bytes, Meta(max_length=4096)]
"""A bit mask of slots: a number, or little-endian bytes where it has more than 63 bits."""

# Kinds of `Batch`, what `numbers` holds, and the receiver's part in `core`.
STORED = 1
"""The sender keeps a copy now."""
REFUSED = 2
"""It does not; number: one of the REFUSED_ reasons."""
DELETE = 3
"""Forget the job whatever its state: everybody knows that it is done."""
ENQUEUE = 4
"""Queue your copy; number: after so many ms."""
QUEUED = 5
"""The sender queued it again; number: QUEUED_ flags."""
WILL_QUEUE = 6
"""The sender is about to queue it, unless the receiver has it."""
HELD = 7
"""The sender has it queued, or out with a worker; number: for how many ms."""
WORKING = 8
"""A worker goes on with it: start the lease again."""
LEFT = 9
"""The sender has handed its copy over and is no owner any more."""
HANDOFF = 10
"""Queue your copy in place of the sender's."""
RECEIVED = 11
"""Jobs of `Move` or `HANDOFF` have arrived."""
MISSING = 12
"""There was no copy for a `HANDOFF`."""
ACCEPT = 13
"""An offered at-most-once job is held; number: of the offer, 0 or none from nodes that do not number them."""
RELEASE = 14
"""The sender has given it up: it is the receiver's."""
RELEASED = 15
"""The receiver knows."""
WITHDRAWN = 16
"""It is not the receiver's: drop what is held."""
ASK_HELD = 17
"""Is this held job the sender's? number: of the offer, as in `ACCEPT`."""
OWNERS_KNOWN = 18
"""Answers an `Owners` that asks for it; number: one of the KEEPS_ below."""

KEEPS_NOT = 0
KEEPS = 1
KEEPS_FOR_NOW = 2
"""The sender has the job and is about to give it away: two that do may not both count on the other."""

QUEUED_NACK = 1
QUEUED_DELIVERY = 2
QUEUED_FORCED = 4
"""By a command of a client: a running lease elsewhere ends."""

REFUSED_MEMORY = 1
REFUSED_LEAVING = 2
REFUSED_PAUSED = 3
REFUSED_DONE = 4
"""The job is known to be acknowledged or deleted."""
REFUSED_SIZE = 5


class JobRecord(Struct, array_like=True, gc=False):
    """A job on its way: what never changes, and how far it is."""

    id: JobId
    queue: Annotated[bytes, Meta(max_length=MAX_NAME_BYTES)]
    body: bytes
    ctime_ns: Nanoseconds
    ttl_s: Seconds
    retry_s: Seconds
    delay_s: Seconds
    replicate: Uint16
    left_ms: Milliseconds
    """Until the TTL ends."""
    wait_ms: Milliseconds
    """Until the first queueing: what is left of the delay."""
    nacks: Uint16
    deliveries: Uint16
    owners: Mask


class Store(BusRecord, tag=10):
    """Keep copies of these jobs. `queue_now`: and queue them, the sender keeps none."""

    jobs: Annotated[list[JobRecord], Meta(max_length=MAX_JOBS)]
    queue_now: bool = False


class Move(BusRecord, tag=11):
    """Queue these jobs in place of the sender, which stays an owner."""

    jobs: Annotated[list[JobRecord], Meta(max_length=MAX_JOBS)]


class Offer(BusRecord, tag=12):
    """Hold these at-most-once jobs until the sender releases them.

    `numbers`: one for each job, another one with each time that it is offered; `ACCEPT` and `ASK_HELD` say which offer they mean.
    """

    jobs: Annotated[list[JobRecord], Meta(max_length=MAX_JOBS)]
    numbers: Annotated[list[Number], Meta(max_length=MAX_BATCH)] = []


class Batch(BusRecord, tag=13):
    """Something about many jobs: a kind from above, and where the kind has one, a number for each."""

    kind: Uint16
    ids: Annotated[list[JobId], Meta(max_length=MAX_BATCH)]
    numbers: Annotated[list[Number], Meta(max_length=MAX_BATCH)]


class SetAck(BusRecord, tag=14):
    """These jobs are acknowledged; the sender knows of these owners (0: the sender does not know the job)."""

    ids: Annotated[list[JobId], Meta(max_length=MAX_BATCH)]
    owners: Annotated[list[Mask], Meta(max_length=MAX_BATCH)]


class GotAck(BusRecord, tag=15):
    """Answers `SetAck`: these are acknowledged here too, with the owners known here (0: unknown, and refused from now on)."""

    ids: Annotated[list[JobId], Meta(max_length=MAX_BATCH)]
    owners: Annotated[list[Mask], Meta(max_length=MAX_BATCH)]


class Want(BusRecord, tag=16):
    """Consumers of the sender want jobs of a queue: send up to `credit` when there are. 0: none any more.

    `waiting`: they are blocked; otherwise they came and found nothing, and may come again.
    """

    queue: Annotated[bytes, Meta(max_length=MAX_NAME_BYTES)]
    credit: Uint32
    waiting: bool = True


class Slots(BusRecord, tag=17):
    """Bit `first` + i of the sender's masks stands for node i of the list."""

    first: Uint32
    nodes: Annotated[list[NodeId], Meta(max_length=MAX_SLOT_ENTRIES)]


class PauseQueue(BusRecord, tag=18):
    """Set the pause state of a queue."""

    queue: Annotated[bytes, Meta(max_length=MAX_NAME_BYTES)]
    pause: Annotated[int, Meta(ge=0, le=3)]


class Forward(BusRecord, tag=19):
    """A client's command about jobs that the sender does not know."""

    request: Uint63
    verb: Uint16
    ids: Annotated[list[JobId], Meta(max_length=MAX_BATCH)]


class Owners(BusRecord, tag=21):
    """The owners of jobs that the sender knows of.

    It answers `WILL_QUEUE` where the sender has not got the job in hand, but one of these may. With `confirm` the sender is about
    to forget its copy, and waits for `OWNERS_KNOWN`.
    """

    ids: Annotated[list[JobId], Meta(max_length=MAX_BATCH)]
    owners: Annotated[list[Mask], Meta(max_length=MAX_BATCH)]
    confirm: bool = False


class Answer(BusRecord, tag=20):
    """Answers `Forward`: per id -1 unknown here, otherwise the verb's result; SHOW has its fields in `payload`."""

    request: Uint63
    results: Annotated[list[Number], Meta(max_length=MAX_BATCH)]
    payload: bytes = b""


AnyRecord: TypeAlias = (
    Ping | Pong | Store | Move | Offer | Batch | SetAck | GotAck | Want | Slots | PauseQueue | Forward | Answer | Owners
)


def wire_mask(mask: int) -> Mask:
    """Return a mask for the wire."""
    if mask >> 63:
        return mask.to_bytes((mask.bit_length() + 7) // 8, "little")
    return mask


def mask_from_wire(mask: Mask) -> int:
    """Return a mask from the wire."""
    return mask if isinstance(mask, int) else int.from_bytes(mask, "little")
