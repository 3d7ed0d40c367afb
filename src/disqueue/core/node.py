"""A node: all layers together, and what comes in from peers and from clients that come and go.

The core is driven by calls and has no clock, no sockets and no files. A pass is `begin_pass`, any number of commands and
records, `advance`, `end_pass`; see `docs/architecture.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from disqueue.core.client import BLOCKED_ADDJOB, BLOCKED_FORWARD, BLOCKED_GETJOB, Client
from disqueue.core.demand import Demand
from disqueue.core.forwarding import Request
from disqueue.core.handover import Handover
from disqueue.core.ids import JobIds
from disqueue.core.job import ACKED, ACTIVE, DELETED, DELIVERED, PLACEHOLDER, QUEUED, RESTORED, STATE_NAMES, Job
from disqueue.core.membership import Membership
from disqueue.core.membership_ports import MembershipEvents, MembershipSettings
from disqueue.core.queue import PAUSED_OUT, Queue
from disqueue.core.scheduler import LINKS_WAIT_MS
from disqueue.core.settings import Settings
from disqueue.core.timers import Timed
from disqueue.wire import job_records as wire
from disqueue.wire.job_records import DELETE, HANDOFF, RECEIVED, STORED, Batch, GotAck, SetAck, Store
from disqueue.wire.records import Ping, Pong

if TYPE_CHECKING:
    from disqueue.core.peer import Peer

Handler = Callable[["Node", "Peer", bytes, int], None]

STALL_MS = 1000
"""A pass that begins so long after it was wanted: this process, or its machine, was stopped. Others know by then."""
STALLS_APART_MS = 10_000
"""A node whose passes are always that slow must not hold its jobs back again and again."""


class Node(Handover):
    """One node of the cluster. Ports: `on_unblock`, `journal`, `members`, `log`."""

    def __init__(
        self, settings: Settings, entropy: Callable[[int], bytes], node_id: bytes, members: Membership | None = None
    ) -> None:
        Handover.__init__(self, settings, entropy, node_id)
        self.init_scheduler()
        self.init_delivery()
        if members is None:  # a node alone
            members = Membership(node_id, 1, MembershipSettings(), lambda level, event, fields: self.log(level, event, **fields))
        members.events = _MemberEvents(self)
        self.init_peers(members)
        self.init_replication()
        self.init_acknowledgement()
        self.init_forwarding()
        self.init_offers()
        self.init_handover()
        self.dropped_once = 0
        """At-most-once jobs that were dropped because the disk is an old copy."""

    # -- the pass

    def begin_pass(self, now_ms: int, wall_ms: int) -> None:
        """Set the clock of a pass: monotonic and Unix milliseconds."""
        Handover.begin_pass(self, now_ms, wall_ms)
        self.members.begin_pass(self.now_ms, wall_ms)

    def advance(self) -> None:
        """Fire what is due."""
        wake_ms: int = self.members.wake_ms
        if 0 <= wake_ms < self.now_ms - STALL_MS and self.now_ms - self.stalled_until_ms >= STALLS_APART_MS:
            self._has_stalled(self.now_ms - wake_ms)
        self.members.advance()
        Handover.advance(self)

    def _has_stalled(self, late_ms: int) -> None:
        """This process was stopped, swapped out, or its machine was: others may have taken its jobs over meanwhile."""
        self.stalled_until_ms = self.now_ms + LINKS_WAIT_MS
        self.log(
            "warning", "this node stood still: its jobs that others may have taken over are asked about", milliseconds=late_ms
        )

    def next_deadline_ms(self) -> int:
        """Return the monotonic time at which `advance` has something to do, or -1."""
        deadline_ms = Handover.next_deadline_ms(self)
        wake_ms: int = self.members.wake_ms
        return wake_ms if deadline_ms < 0 or 0 <= wake_ms < deadline_ms else deadline_ms

    def end_pass(self) -> None:
        """Serve who waits for what came in this pass. The shell then writes the journal, the peers' frames and the replies."""
        if self.ready_queues:
            self.serve_ready()
        if self.partly_answered:
            self.tell_answered()
        if self.settings.maxmemory_bytes:
            self.check_level()

    def other_timer_fired(self, timed: Timed) -> None:
        """Handle the timers that are no jobs and no clients."""
        if isinstance(timed, Request):
            self.request_timed_out(timed)
        elif isinstance(timed, Demand):
            self.demand_timer(timed)
        elif timed is self.handover_timer:
            self.handover_step()

    # -- clients

    def client_timed_out(self, client: Client) -> None:
        """The deadline of a blocked client has passed."""
        if client.blocked == BLOCKED_GETJOB:
            self.getjob_timed_out(client)

    def disconnect(self, client: Client) -> None:
        """A client has gone: nothing waits for it any more."""
        if client.blocked == BLOCKED_GETJOB:
            self.stop_waiting(client)
            self.unblock(client)
        elif client.blocked == BLOCKED_ADDJOB:
            self.cancel_adds(client)
        elif client.blocked == BLOCKED_FORWARD:
            self.cancel_request(client)
        self.timers.clear(client)

    # -- queues and jobs as clients see them

    def find_job(self, job_id: bytes) -> Job | None:
        """Return a job that clients may see."""
        job = self.jobs.get(job_id)
        if job is not None and job.flags & DELETED:
            return None
        return job

    def find_queue(self, name: bytes) -> Queue | None:
        """Return a queue that clients may see."""
        queue = self.queues.get(name)
        return queue if queue is not None and queue.visible else None

    def set_pause(self, name: bytes, pause: int, broadcast: bool) -> None:
        """Pause a queue in input, in output, both or not at all; on all nodes with `broadcast`."""
        self.pause_here(name, pause)
        if broadcast:
            for peer in self.members.peers:
                self.send(peer, wire.PauseQueue(name, pause))

    def pause_here(self, name: bytes, pause: int) -> None:
        """Set the pause state of a queue on this node."""
        queue = self.queues.get(name)
        if queue is None or not queue.visible:
            if not pause:
                return
            queue = self.queue_named(name)
            self.make_visible(queue)
        was = queue.pause
        queue.pause = pause
        queue.used_ms = self.now_ms
        if self.journal is not None and was != pause:
            self.journal.queue_changed(queue)
        if was & PAUSED_OUT and not pause & PAUSED_OUT:
            self.mark_ready(queue)

    def flush(self) -> None:
        """Forget all jobs and queues of this node; whoever waits is answered."""
        self.end_all_waits(b"")
        for job in self.jobs:
            self.delete(job)
        for queue in list(self.queues.values()):
            if queue.pause and self.journal is not None:
                queue.pause = 0
                self.journal.queue_changed(queue)
            self.hide(queue)
        self.done.clear()

    def job_fields(self, job: Job) -> list[tuple[bytes, Any]]:
        """Return what SHOW tells of a job, in its order."""
        known = not job.flags & PLACEHOLDER
        confirmed = 0
        if job.waiter is not None:
            confirmed = job.waiter.confirmed
        elif job.state == ACKED:
            confirmed = job.confirmed | 1
        due = max(0, job.due_ms - self.now_ms) if job.due_ms and job.state != ACKED else None
        if due is None and job.state == QUEUED and job.retry_s > 0:
            due = job.retry_s * 1000  # when it is handed out now
        return [
            (b"id", job.id),
            (b"queue", job.queue.name if job.queue is not None else None),
            (b"state", STATE_NAMES[job.state]),
            (b"repl", job.replicate if known else 0),
            (b"ttl", max(0, (job.expires_ms - self.now_ms + 999) // 1000)),
            (b"ctime", job.ctime_ns),
            (b"delay", job.delay_s),
            (b"retry", job.retry_s),
            (b"nacks", job.nacks),
            (b"additional-deliveries", job.deliveries),
            (b"nodes-delivered", self.node_ids(job.owners)),
            (b"nodes-confirmed", self.node_ids(confirmed)),
            (b"next-requeue-within", due),
            (b"next-awake-within", max(0, job.wake_ms - self.now_ms) if job.timer_slot >= 0 else None),
            (b"body", job.body if known and job.state != ACKED else None),
        ]

    def node_ids(self, mask: int) -> list[bytes]:
        """Return the ids of the nodes in a mask."""
        ids = [self.node_id] if mask & 1 else []
        return ids + [peer.node_id for peer in self.others(mask)]

    # -- peers

    def set_node_id(self, node_id: bytes) -> None:
        """Become another node."""
        self.node_id = node_id
        self.ids = JobIds(node_id, self.entropy)

    def hello_nodes(self) -> list[tuple[bytes, bytes, int, int]]:
        """Return id, host, port and priority of each node that clients can use."""
        return [(node_id, host.encode(), port, rank) for node_id, host, port, rank in self.members.hello_entries()]

    def receive(self, peer: Peer, records: list[Any]) -> None:
        """Handle the records of one frame of a member. Raises `BusError` for those that only a broken peer sends."""
        for record in records:
            kind = type(record)
            if kind is Batch:
                self._receive_batch(peer, record)
            elif kind is Store:
                self.store_copies(peer, record.jobs, record.queue_now)
            elif kind is SetAck:
                self._receive_set_ack(peer, record.ids, record.owners)
            elif kind is GotAck:
                self._receive_got_ack(peer, record.ids, record.owners)
            else:
                handler = RECORD_HANDLERS.get(kind)
                if handler is not None:
                    handler(self, peer, record)

    def _receive_batch(self, peer: Peer, batch: wire.Batch) -> None:
        kind = batch.kind
        numbers = batch.numbers
        if not numbers and kind in (STORED, DELETE, HANDOFF, RECEIVED):
            self._receive_usual(peer, kind, batch.ids)
            return
        handler = BATCH_HANDLERS.get(kind)
        if handler is None:
            return
        if not numbers:
            for job_id in batch.ids:
                handler(self, peer, job_id, 0)
        elif len(numbers) == len(batch.ids):
            for job_id, number in zip(batch.ids, numbers, strict=True):
                handler(self, peer, job_id, number)

    def _receive_usual(self, peer: Peer, kind: int, ids: list[bytes]) -> None:
        """What each job of a busy cluster goes through, without a function in between."""
        if kind == STORED:
            for job_id in ids:
                self.copy_stored(peer, job_id)
        elif kind == DELETE:
            for job_id in ids:
                self.delete_told(peer, job_id)
        elif kind == HANDOFF:
            for job_id in ids:
                self.job_handed_here(peer, job_id)
        elif kind == RECEIVED:
            for job_id in ids:
                self.move_received(peer, job_id)

    def _receive_set_ack(self, peer: Peer, ids: list[bytes], masks: list[Any]) -> None:
        if len(ids) == len(masks):
            for index in range(len(ids)):
                self.ack_told(peer, ids[index], self.mask_of(peer, masks[index]))

    def _receive_got_ack(self, peer: Peer, ids: list[bytes], masks: list[Any]) -> None:
        if len(ids) == len(masks):
            for index in range(len(ids)):
                self.ack_confirmed(peer, ids[index], self.mask_of(peer, masks[index]))

    def link_up(self, peer: Peer) -> None:
        """Records can be sent to a member again."""
        self.jobs_of(peer).slots_told = 0
        self.federation_link_up(peer)

    def incoming_up(self, peer: Peer) -> None:
        """What a member sent last may not have arrived; from now on it does."""
        self.federation_incoming_up(peer)

    def link_down(self, peer: Peer) -> None:
        """What was sent to a member last may not have arrived."""
        self.federation_link_down(peer)
        self.handover_link_down(peer)
        for request in list(self.requests.values()):
            if request.asked is peer:
                self.request_timed_out(request)

    def peer_forgotten(self, peer: Peer) -> None:
        """A node is no member any more: no acknowledgement waits for it."""
        self.link_down(peer)
        for job in list(self.evictable)[:10_000]:  # the others find out at their next try
            if job.state == ACKED:
                self.spread_ack(job)

    def disk_is_old(self, peer: Peer) -> None:
        """The journal was written further than the disk has it: at-most-once jobs from it may have been handed out since."""
        jobs = [job for job in self.jobs if job.flags & RESTORED and job.state in (ACTIVE, QUEUED) and not job.flags & DELIVERED]
        for job in jobs:
            self.delete(job)
        self.dropped_once += len(jobs)
        self.log(
            "warning",
            "this node's disk is an old copy, or has lost what was on it: jobs that ended since may be delivered again, and"
            " at-most-once jobs from the journal are dropped",
            known_to=peer.node_id.decode(),
            dropped=len(jobs),
        )


class _MemberEvents(MembershipEvents):
    """What membership tells, for the job layers."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def peer_link_up(self, peer: Peer) -> None:
        self._node.link_up(peer)

    def peer_link_down(self, peer: Peer) -> None:
        self._node.link_down(peer)

    def peer_incoming_up(self, peer: Peer) -> None:
        self._node.incoming_up(peer)

    def peer_forgotten(self, peer: Peer) -> None:
        self._node.peer_forgotten(peer)

    def disk_is_old(self, peer: Peer) -> None:
        self._node.disk_is_old(peer)


def _receive_owners(node: Node, peer: Peer, record: wire.Owners) -> None:
    if len(record.ids) == len(record.owners):
        for job_id, owners in zip(record.ids, record.owners, strict=True):
            node.owners_told(peer, job_id, node.mask_of(peer, owners))
            if record.confirm:
                node.tell(peer, wire.OWNERS_KNOWN, job_id, node.keeps(job_id))


RECORD_HANDLERS: dict[type, Callable[[Node, Peer, Any], None]] = {
    Ping: lambda node, peer, record: node.members.receive(peer, record),
    Pong: lambda node, peer, record: node.members.receive(peer, record),
    wire.Move: lambda node, peer, record: node.jobs_moved_here(peer, record.jobs),
    wire.Offer: lambda node, peer, record: node.jobs_offered(peer, record.jobs, record.numbers),
    wire.Owners: _receive_owners,
    wire.Want: lambda node, peer, record: node.peer_wants(peer, record.queue, record.credit, record.waiting),
    wire.Slots: lambda node, peer, record: node.learn_slots(peer, record),
    wire.PauseQueue: lambda node, _peer, record: node.pause_here(record.queue, record.pause),
    wire.Forward: lambda node, peer, record: node.forwarded(peer, record),
    wire.Answer: lambda node, peer, record: node.answered(peer, record),
}

BATCH_HANDLERS: dict[int, Handler] = {
    wire.STORED: lambda node, peer, job_id, _number: node.copy_stored(peer, job_id),
    wire.REFUSED: lambda node, peer, job_id, number: node.copy_refused(peer, job_id, number),
    wire.DELETE: lambda node, peer, job_id, _number: node.delete_told(peer, job_id),
    wire.ENQUEUE: lambda node, _peer, job_id, number: node.enqueue_ordered(job_id, number),
    wire.QUEUED: lambda node, peer, job_id, number: node.owner_queued(peer, job_id, number),
    wire.WILL_QUEUE: lambda node, peer, job_id, _number: node.owner_asks(peer, job_id),
    wire.HELD: lambda node, peer, job_id, number: node.owner_holds(peer, job_id, number),
    wire.WORKING: lambda node, peer, job_id, _number: node.owner_works(peer, job_id),
    wire.LEFT: lambda node, peer, job_id, _number: node.owner_left(peer, job_id),
    wire.OWNERS_KNOWN: lambda node, peer, job_id, number: node.owners_known(peer, job_id, number),
    wire.HANDOFF: lambda node, peer, job_id, _number: node.job_handed_here(peer, job_id),
    wire.RECEIVED: lambda node, peer, job_id, _number: node.move_received(peer, job_id),
    wire.MISSING: lambda node, peer, job_id, _number: node.move_missing(peer, job_id),
    wire.ACCEPT: lambda node, peer, job_id, number: node.offer_accepted(peer, job_id, number),
    wire.RELEASE: lambda node, peer, job_id, _number: node.job_released(peer, job_id),
    wire.RELEASED: lambda node, peer, job_id, _number: node.release_known(peer, job_id),
    wire.WITHDRAWN: lambda node, peer, job_id, _number: node.job_withdrawn(peer, job_id),
    wire.ASK_HELD: lambda node, peer, job_id, number: node.held_asked(peer, job_id, number),
}
