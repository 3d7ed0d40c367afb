"""What the job layers say to other nodes: records into the outbox of a peer, ids of one kind gathered into one record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from disqueue.core.delivery import Delivery
from disqueue.core.job import ACTIVE, DELAYED, LEASED, MOVED, WAIT_REPL, Job, id_of
from disqueue.core.peer_jobs import PeerJobs
from disqueue.core.queue import Queue
from disqueue.core.scheduler import ASK_AHEAD_MS
from disqueue.wire.frames import encode_job
from disqueue.wire.job_records import (
    MAX_SLOT_ENTRIES,
    STORED,
    Batch,
    GotAck,
    Mask,
    Offer,
    Owners,
    SetAck,
    Slots,
    mask_from_wire,
    wire_mask,
)

if TYPE_CHECKING:
    from disqueue.core.peer import Peer

MAX_HELD_BACK = 100_000
"""About 20 MB; a peer that is not told asks again, or takes its job back when the link breaks."""
RANDOM_BLOCK_BYTES = 512
MASKS_KEPT = 4096
SMALL_MASK = (1 << 62) - 1
BATCH_IDS = 4096
SHARED_JOBS = 64
"""So many join one record."""
SHARED_JOB_BYTES = 1 << 16
"""Larger jobs have a record of their own, so that one record always fits a frame."""


class Peers(Delivery):
    """Sending to peers, and the masks that stand for sets of them. Bit 0 is this node."""

    def init_peers(self, members: Any) -> None:
        """Take the membership that says who is there."""
        self.members = members
        self.random_block = b""
        self.random_offset = 0
        self.first_target = 0
        self.held_back: list[tuple[Peer, int, bytes]] = []
        """What peers are told when the journal can be written again."""
        self.peers_of_masks: dict[int, list[Peer]] = {}
        # What `wire_owners` returned last: the jobs of a pass mostly have the same owners.
        self.named_mask: int | None = None
        self.named_among = 0
        self.named_wire: Mask = 0

    # -- masks

    def others(self, mask: int) -> list[Peer]:
        """Return the members in a mask, without this node. The list belongs to a cache: do not change it."""
        mask &= self.members.members_mask
        found = self.peers_of_masks.get(mask)
        if found is None:
            found = self._find_others(mask)
        return found

    def _find_others(self, mask: int) -> list[Peer]:
        """Work out what `others` returns; a slot stands for the same peer for ever, so that it may be kept."""
        by_slot = self.members.by_slot
        found = [by_slot[slot] for slot in range(1, mask.bit_length()) if mask >> slot & 1]
        if len(self.peers_of_masks) >= MASKS_KEPT:
            self.peers_of_masks.clear()
        self.peers_of_masks[mask] = found
        return found

    def jobs_of(self, peer: Peer) -> PeerJobs:
        """Return what the job layers know about a peer."""
        data: PeerJobs | None = peer.data
        if data is None:
            data = peer.data = PeerJobs()
        return data

    def from_peer_mask(self, peer: Peer, mask: int) -> int:
        """Translate a mask of the peer's slots to this node's; bits that the peer has not explained are dropped."""
        data = self.jobs_of(peer)
        known = data.translated.get(mask)
        if known is not None:
            return known
        result = 0
        rest = mask
        slot = 0
        while rest and slot < len(data.slot_map):
            if rest & 1 and data.slot_map[slot] >= 0:
                result |= 1 << data.slot_map[slot]
            rest >>= 1
            slot += 1
        if len(data.translated) >= MASKS_KEPT:  # a hostile peer may send any number of masks
            data.translated.clear()
        data.translated[mask] = result
        return result

    def learn_slots(self, peer: Peer, record: Slots) -> None:
        """Note which nodes the bits of the peer's masks stand for; a new link starts again from bit 0."""
        data = self.jobs_of(peer)
        if record.first == 0:
            data.slot_map = []
        if record.first != len(data.slot_map) or len(data.slot_map) + len(record.nodes) > MAX_SLOT_ENTRIES:
            return
        for node_id in record.nodes:
            known = self.members.intern(node_id)
            data.slot_map.append(known.slot if known is not None else -1)
        data.translated = {}
        data.heard_mask = None

    def send_slots(self, peer: Peer) -> None:
        """Explain the slots that the peer has not been told yet; comes before any mask that needs them."""
        by_slot = self.members.by_slot
        data = peer.data
        if data is None:
            data = self.jobs_of(peer)
        if data.slots_told < len(by_slot):
            peer.outbox.append(Slots(data.slots_told, [known.node_id for known in by_slot[data.slots_told :]]))
            data.slots_told = len(by_slot)

    # -- records

    def send(self, peer: Peer, record: Any) -> bool:
        """Put a record into the outbox of a peer; tell whether there is a link to carry it."""
        if not peer.link_up:
            return False
        peer.outbox.append(record)
        return True

    def tell(self, peer: Peer, kind: int, job_id: bytes, number: int = -1) -> None:
        """Send one id of a `Batch` kind; it joins the record before it when that has the same kind."""
        if not peer.link_up:
            return
        if peer.open_kind == kind and self._is_open(peer, BATCH_IDS):
            peer.open_items.append(job_id)
            if number >= 0:
                peer.open_numbers.append(number)
            return
        ids = [job_id]
        numbers = [number] if number >= 0 else []
        self._open(peer, Batch(kind, ids, numbers), Batch, kind, ids, numbers)

    def _is_open(self, peer: Peer, limit: int) -> bool:
        """Tell whether the record that was opened last may take one more: it has room, and nothing came behind it."""
        outbox = peer.outbox
        return len(outbox) > 0 and outbox[-1] is peer.open_record and len(peer.open_items) < limit

    def _open(self, peer: Peer, record: Any, kind: Any, number: int, items: list[Any], numbers: list[Any]) -> None:
        """Put a record into the outbox that others of its kind may join."""
        peer.outbox.append(record)
        peer.open_record = record
        peer.open_type = kind
        peer.open_kind = number
        peer.open_items = items
        peer.open_numbers = numbers

    def promise(self, peer: Peer, kind: int, job_id: bytes) -> None:
        """Tell a peer what it may rely on even if this node crashes: at once, or when the journal can be written again."""
        if not self.journal_fails():
            self.tell(peer, kind, job_id)
        elif len(self.held_back) < MAX_HELD_BACK:
            self.held_back.append((peer, kind, job_id))

    def serve_again(self) -> None:
        """The journal can be written again: do what was held back."""
        held_back, self.held_back = self.held_back, []
        for peer, kind, job_id in held_back:
            if kind != STORED or self.jobs.get(job_id) is not None:  # a leaving node may have given the copy away since
                self.tell(peer, kind, job_id)
        Delivery.serve_again(self)

    def tell_all(self, peers: Iterable[Peer], kind: int, job_id: bytes, number: int = -1) -> None:
        """`tell` each of them."""
        for peer in peers:
            self.tell(peer, kind, job_id, number)

    def tell_ack(self, peer: Peer, kind: type[SetAck] | type[GotAck] | type[Owners], job_id: bytes, owners: int) -> None:
        """Send one id of a `SetAck`, `GotAck` or `Owners`."""
        if not peer.link_up:
            return
        self.send_slots(peer)
        if peer.open_type is kind and self._is_open(peer, BATCH_IDS):
            peer.open_items.append(job_id)
            peer.open_numbers.append(self.wire_owners(owners))
            return
        ids = [job_id]
        masks = [self.wire_owners(owners)]
        self._open(peer, kind(ids, masks), kind, 0, ids, masks)

    def send_job(self, peers: Iterable[Peer], kind: Any, job: Job, queue_now: bool = False) -> None:
        """Send a job to peers in a `Store` or `Move`; it is encoded once, and joins a record of the same kind."""
        raw = self.encode(job)
        for peer in peers:
            if peer.link_up:
                self.send_slots(peer)
                self._append_job(peer, kind, raw, queue_now)

    def send_offer(self, peer: Peer, job: Job) -> None:
        """Send a job to a peer in an `Offer`, with the number of the offer; it joins a record like other jobs."""
        if not peer.link_up:
            return
        self.send_slots(peer)
        raw = self.encode(job)
        if peer.open_type is Offer and len(raw) <= SHARED_JOB_BYTES and self._is_open(peer, SHARED_JOBS):
            peer.open_items.append(raw)
            peer.open_numbers.append(job.offer)
            return
        jobs = [raw]
        numbers = [job.offer]
        if len(raw) > SHARED_JOB_BYTES:
            peer.outbox.append(Offer(jobs, numbers))
        else:
            self._open(peer, Offer(jobs, numbers), Offer, 0, jobs, numbers)

    def _append_job(self, peer: Peer, kind: Any, raw: Any, queue_now: bool) -> None:
        if queue_now or len(raw) > SHARED_JOB_BYTES:
            peer.outbox.append(kind([raw], True) if queue_now else kind([raw]))
        elif peer.open_type is kind and self._is_open(peer, SHARED_JOBS):
            peer.open_items.append(raw)
        else:
            jobs = [raw]
            self._open(peer, kind(jobs), kind, 0, jobs, [])

    def encode(self, job: Job) -> Any:
        """Return a job as an encoded `JobRecord`."""
        wait_ms = 0
        if job.delay_s and (job.state == WAIT_REPL or job.flags & DELAYED):
            wait_ms = max(0, job.due_ms - self.now_ms)
        elif job.delay_s and job.state == ACTIVE and not job.flags & (LEASED | MOVED):
            # A copy of a job that may still wait for its delay elsewhere: it takes over a RETRY after that at the earliest.
            wait_ms = max(0, job.due_ms - self.now_ms - job.retry_s * 1000 - ASK_AHEAD_MS)
        queue: Queue = job.queue
        left_ms = job.expires_ms - self.now_ms
        return encode_job(
            id_of(job),
            queue.name,
            job.body,
            job.ctime_ns,
            job.ttl_s,
            job.retry_s,
            job.delay_s,
            job.replicate,
            left_ms if left_ms > 0 else 0,
            wait_ms,
            job.nacks,
            job.deliveries,
            self.wire_owners(job.owners),
        )

    def wire_owners(self, mask: int) -> Any:
        """Return an owner set for the wire, without nodes that were forgotten."""
        members = self.members
        if mask is self.named_mask and members.members_mask is self.named_among and members.unknown_mask == 0:
            return self.named_wire
        known = mask & (members.members_mask | members.unknown_mask)
        wire: Mask = known if known <= SMALL_MASK else wire_mask(known)
        if members.unknown_mask == 0:
            self.named_mask, self.named_among, self.named_wire = mask, members.members_mask, wire
        return wire

    def mask_of(self, peer: Peer, mask: Any) -> int:
        """Return a mask that came in a record of the peer, in this node's slots."""
        data = peer.data
        if data is None:
            data = self.jobs_of(peer)
        if mask is data.heard_mask:
            return data.heard_owners
        known = data.translated.get(mask)
        if known is None:
            known = self.from_peer_mask(peer, mask_from_wire(mask))
        data.heard_mask, data.heard_owners = mask, known
        return known

    # -- chance

    def random_below(self, limit: int) -> int:
        """Return a random number from 0 to `limit` - 1 for jitter; not for secrets."""
        if self.random_offset + 2 > len(self.random_block):
            self.random_block = self.entropy(RANDOM_BLOCK_BYTES)
            self.random_offset = 0
        offset = self.random_offset
        self.random_offset = offset + 2
        return (self.random_block[offset] * 256 + self.random_block[offset + 1]) * limit >> 16
