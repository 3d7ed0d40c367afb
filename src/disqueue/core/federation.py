"""Jobs go where consumers wait.

A node whose consumers find a queue empty tells its peers how many jobs it wants (`Want`, a credit). A peer that has jobs that no
consumer of its own waits for sends them at once. The credit stays until it is used or withdrawn; it grows with what is consumed.

At-least-once jobs go as `Move` (or `HANDOFF`, when the receiver owns a copy already): both nodes are owners then. At-most-once
jobs are offered: see `offers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.core.demand import MAX_BATCH, Demand
from disqueue.core.job import (
    ACKED,
    ACTIVE,
    DELIVERED,
    GONE,
    LEASED,
    MOVED,
    ONCE_QUEUED,
    WAIT_REPL,
    Job,
    id_of,
)
from disqueue.core.offers import Offers
from disqueue.core.queue import Queue
from disqueue.core.scheduler import BY_MOVE
from disqueue.wire.frames import JobRecord
from disqueue.wire.job_records import (
    HANDOFF,
    MISSING,
    RECEIVED,
    Move,
    SetAck,
    Want,
)

if TYPE_CHECKING:
    from disqueue.core.peer import Peer

WITHDRAW_MS = 2000
"""What consumers asked for is withdrawn when none has waited or asked for this long."""
BATCH_MS = 50
"""A batch is what consumers have lately taken in this time."""
LOST_LINK_MS = 1000
"""Jobs on their way when a link breaks are looked for after this."""


class Federation(Offers):
    """Moving queued jobs between nodes."""

    def demand_of(self, queue: Queue) -> Demand:
        """Return the demand of a queue, made if need be."""
        demand: Demand | None = queue.demand
        if demand is None:
            demand = Demand(queue)
            queue.demand = demand
        return demand

    # -- asking

    def consumer_waits(self, queue: Queue) -> None:
        """A client has begun to wait at this queue: ask the peers for jobs."""
        if self.members.peers:
            demand = self.demand_of(queue)
            self._ask(demand, len(queue.waiters), True)
            self._watch(demand)

    def consumer_missed(self, name: bytes, count: int) -> None:
        """A client that does not wait found no job: ask for the next ones, for a while."""
        if self.members.peers and not self.leaving:
            demand = self.demand_of(self.queue_named(name))
            demand.missed_ms = self.now_ms
            demand.missed_count = count
            self._ask(demand, count, False)
            self._watch(demand)

    def _ask(self, demand: Demand, wanted: int, waiting: bool) -> None:
        """See that each peer may send: those that sent lately the batch, the others what is waited for."""
        sources = demand.sources
        news = waiting and not demand.told_waiting
        demand.told_waiting |= waiting
        batch = min(demand.import_rate(self.now_ms) * BATCH_MS // 1000, MAX_BATCH) if sources else 0
        for peer in self.members.peers:
            credit = min(max(wanted, batch) if peer in sources else wanted, MAX_BATCH)
            known = demand.asked.get(peer, 0)
            if peer.link_up and (news or known * 2 < credit + 1):
                demand.asked[peer] = credit
                self.send(peer, Want(demand.queue.name, credit, demand.told_waiting))

    def _ask_again(self, peer: Peer) -> None:
        """A link to or from a peer is new: what it was asked for, and what it sent for that, may have been lost."""
        for queue in list(self.queues.values()):
            demand: Demand | None = queue.demand
            if demand is not None:
                demand.asked.pop(peer, None)
            if queue.waiters:
                self.consumer_waits(queue)

    def use_credit(self, peer: Peer, queue: Queue | None) -> None:
        """A peer has sent a job: it may send one less."""
        demand: Demand | None = None if queue is None else queue.demand
        if demand is None:
            return
        credit = demand.asked.get(peer, 0)
        if credit > 1:
            demand.asked[peer] = credit - 1
        else:
            demand.asked.pop(peer, None)

    def _came_in_vain(self, peer: Peer, queue: Queue | None) -> None:
        """A peer has sent a job that cannot be handed out here: whoever waits goes on waiting for another one."""
        if queue is not None:
            self.use_credit(peer, queue)
            if queue.waiters:
                self.consumer_waits(queue)

    def _watch(self, demand: Demand) -> None:
        if demand.timer_slot < 0:
            self.timers.set(demand, self.now_ms + WITHDRAW_MS)

    def demand_timer(self, demand: Demand) -> None:
        """Withdraw what nobody waits for any more; forget a demand that is over."""
        queue = demand.queue
        if queue.demand is not demand:
            return
        waited = queue.waiters or (demand.missed_ms and self.now_ms - demand.missed_ms < WITHDRAW_MS)
        demand.recent_sources(self.now_ms)
        if waited:
            # While clients wait nothing changes by itself: look again only for those that do not wait.
            if not queue.waiters:
                self.timers.set(demand, self.now_ms + WITHDRAW_MS)
            return
        self._withdraw(demand)
        self.mark_ready(queue)  # what came for those that are gone goes on
        if demand.import_rate(self.now_ms) or demand.sources:
            self.timers.set(demand, self.now_ms + WITHDRAW_MS)
        else:
            self.drop_demand(demand)

    def withdraw_all(self) -> None:
        """Ask the peers for nothing any more."""
        for queue in list(self.queues.values()):
            demand: Demand | None = queue.demand
            if demand is not None:
                self._withdraw(demand)
                self._watch(demand)

    def _withdraw(self, demand: Demand) -> None:
        for peer, credit in demand.asked.items():
            if credit:
                self.send(peer, Want(demand.queue.name, 0))
        demand.asked = {}
        demand.told_waiting = False

    def stop_waiting(self, client: object) -> None:
        """Take a client off its queues; what was asked for it is withdrawn after a while."""
        queues: list[Queue] = client.waiting_queues  # type: ignore[attr-defined]
        Offers.stop_waiting(self, client)  # type: ignore[arg-type]
        for queue in queues:
            demand: Demand | None = queue.demand
            if demand is not None and not queue.waiters:
                self._watch(demand)

    def drop_demand(self, demand: Demand) -> None:
        """Forget a demand that neither side needs."""
        if demand.wanted_by or demand.asked or demand.queue.waiters:
            return
        self.timers.clear(demand)
        demand.queue.demand = None
        self.drop_unused(demand.queue)

    # -- being asked

    def peer_wants(self, peer: Peer, name: bytes, credit: int, waiting: bool = True) -> None:
        """Consumers of a peer want up to `credit` jobs of a queue."""
        wanted = self.jobs_of(peer).wanted
        if credit == 0:
            wanted.pop(name, None)
            queue = self.queues.get(name)
            if queue is not None and queue.demand is not None:
                demand: Demand = queue.demand
                demand.wanted_by.pop(peer, None)
                demand.waiting.pop(peer, None)
                self._watch(demand)
            return
        if len(name) > self.settings.max_queue_name_bytes:
            return
        queue = self.queue_named(name)
        wanted[name] = credit
        demand = self.demand_of(queue)
        demand.wanted_by[peer] = min(credit, MAX_BATCH)
        if waiting:
            demand.waiting[peer] = None
        else:
            demand.waiting.pop(peer, None)
        self.mark_ready(queue)

    def serve_peers(self, queue: Queue) -> None:
        """Send jobs that no client of this node waits for to the peers that want them, in fair shares.

        While clients of this node come now and then for jobs, these go only to where somebody waits: between two nodes with
        such clients they would go to and fro.
        """
        demand = queue.demand
        assert demand is not None
        self._watch(demand)  # a demand that is met is forgotten after a while
        while queue.jobs.count and demand.wanted_by:
            wanted_here = demand.missed_ms and self.now_ms - demand.missed_ms < WITHDRAW_MS
            peers = [peer for peer in demand.wanted_by if peer.link_up and not (wanted_here and peer not in demand.waiting)]
            if not peers:
                return
            share = max(1, (queue.jobs.count + len(peers) - 1) // len(peers))
            before = queue.jobs.count
            for peer in peers:
                credit = demand.wanted_by.pop(peer)
                sent = self._send_jobs(peer, queue, min(credit, share))
                credit -= sent
                if credit > 0:
                    demand.wanted_by[peer] = credit  # behind the others now
                else:
                    self.jobs_of(peer).wanted.pop(queue.name, None)
                if not queue.jobs.count:
                    return
            if queue.jobs.count == before:
                return  # what is there has to stay for now

    def _send_jobs(self, peer: Peer, queue: Queue, limit: int) -> int:
        sent = 0
        while sent < limit:
            job = self.take_first(queue)
            if job is None:
                break
            self.move_to(peer, job)
            sent += 1
        return sent

    def move_to(self, peer: Peer, job: Job) -> None:
        """Send a job that is active and not leased to a peer, to be queued there."""
        queue: Queue = job.queue
        queue.exported += 1
        if job.retry_s == 0:
            self.offer_to(peer, job)
            return
        data = self.jobs_of(peer)
        job_id = id_of(job)
        bit = peer.bit
        job.confirmed = bit
        if job.owners & bit:
            self.tell(peer, HANDOFF, job_id)
        else:
            job.owners |= bit
            self.send_job([peer], Move, job)
        data.in_flight[job_id] = job
        job.flags = (job.flags | MOVED | DELIVERED) & ~LEASED
        job.due_ms = self.now_ms + job.retry_s * 1000
        self.arm(job)
        if self.journal is not None:
            self.journal.job_changed(job)

    def pass_on(self, job: Job) -> None:
        """Move an at-most-once job that this node does not want to keep; it is queued here if it comes back, or cannot leave."""
        if not self.members.reachable:
            self.begin_life(job)
            return
        if job.delay_s:
            self.set_delayed(job)
        if self.journal is not None:
            self.journal.job_added(job)
        reachable: list[Peer] = self.members.reachable
        self.move_to(reachable[self.random_below(len(reachable))], job)

    # -- receiving at-least-once jobs

    def jobs_moved_here(self, peer: Peer, records: list[JobRecord]) -> None:
        """Queue jobs that a peer had queued."""
        for record in records:
            job_id = record.id
            if self.done.holds(job_id):
                self.tell_ack(peer, SetAck, job_id, 0)
                self.tell(peer, RECEIVED, job_id)
                self._came_in_vain(peer, self.queues.get(record.queue))
                continue
            job = self.jobs.get(job_id)
            if job is None:
                job = self.job_from_record(peer, record)
                job.owners |= peer.bit
                job.flags |= ONCE_QUEUED
                self.register(job)
                if self.journal is not None:
                    self.journal.job_added(job)
            self._import(peer, job)

    def job_handed_here(self, peer: Peer, job_id: bytes) -> None:
        """Queue the copy that this node has of a job that a peer had queued."""
        job = self.jobs.get(job_id)
        if job is not None:
            self._import(peer, job)
        elif self.done.holds(job_id):
            self.tell_ack(peer, SetAck, job_id, 0)
            self.tell(peer, MISSING, job_id)
        else:
            self.tell(peer, MISSING, job_id)

    def _import(self, peer: Peer, job: Job) -> None:
        self.add_owners(job, peer.bit)
        self.promise(peer, RECEIVED, id_of(job))
        if job.state == ACKED:
            self.tell_ack(peer, SetAck, job.id, job.owners)
            self._came_in_vain(peer, job.queue)
            return
        leased = job.flags & LEASED and job.state == ACTIVE and job.due_ms > self.now_ms
        if job.state == WAIT_REPL or leased:  # out with a worker here: the sender learns that when it asks
            self._came_in_vain(peer, job.queue)
            return
        if job.state == ACTIVE:
            job.flags |= ONCE_QUEUED
            self.enqueue(job, BY_MOVE)
        self.use_credit(peer, job.queue)
        self.count_import(peer, job)

    def count_import(self, peer: Peer, job: Job) -> None:
        queue: Queue = job.queue
        queue.imported += 1
        demand = self.demand_of(queue)
        demand.note_import(peer, self.now_ms, 1)
        self._watch(demand)
        self.mark_ready(queue)

    def move_received(self, peer: Peer, job_id: bytes) -> None:
        """A moved job has arrived."""
        job = self.jobs_of(peer).in_flight.pop(job_id, None)
        if job is not None and job.state != GONE:
            self.handed_over(peer, job)

    def handed_over(self, peer: Peer, job: Job) -> None:
        """A moved job is at the peer; a leaving node forgets its copy then."""

    def move_missing(self, peer: Peer, job_id: bytes) -> None:
        """The peer has no copy of a job that was handed off to it, or can't hold one that was offered."""
        data = self.jobs_of(peer)
        job = data.offered.pop(job_id, None)
        if job is not None:  # refused: nothing of this queue is offered to the peer again before it asks
            self.peer_wants(peer, job.queue.name, 0)
            self.keep_after_all(job)
            return
        job = data.in_flight.pop(job_id, None)
        if job is None:
            return
        if job.state != ACTIVE or not job.flags & MOVED:
            if peer.link_up:
                name = job.queue.name
                self.peer_wants(peer, name, data.wanted.get(name, 0) + 1)
        elif peer.link_up:
            # The whole job then. The peer stays an owner: a copy may be on its way to it from a third node.
            self.add_owners(job, peer.bit)  # it may have said that it has left it
            data.in_flight[job_id] = job
            self.send_job([peer], Move, job)
        else:
            job.flags &= ~MOVED
            self.enqueue(job, BY_MOVE)

    def not_now(self, peer: Peer, name: bytes) -> None:
        """What a peer has sent of a queue cannot be taken: it is asked again later."""
        queue = self.queues.get(name)
        if queue is not None and queue.demand is not None:
            queue.demand.asked.pop(peer, None)

    def serve_again(self) -> None:
        """Look at all queues that somebody waits at, and ask the peers again."""
        Offers.serve_again(self)
        for queue in list(self.queues.values()):
            if queue.waiters:
                self.consumer_waits(queue)

    # -- links

    def federation_link_up(self, peer: Peer) -> None:
        """Tell a peer that can be reached again what is wanted, what is released, and ask about what is held."""
        self.offers_link_up(peer)
        self._ask_again(peer)
        for name in self.jobs_of(peer).wanted:  # by a link from there that was up first
            queue = self.queues.get(name)
            if queue is not None:
                self.mark_ready(queue)

    def federation_incoming_up(self, peer: Peer) -> None:
        """Records of a peer come on a new link: answers may have been lost with the old one, so say everything again."""
        self._ask_again(peer)
        self.offers_incoming_up(peer)
        self.jobs_of(peer).in_flight = {}

    def federation_link_down(self, peer: Peer) -> None:
        """Forget what a peer wants, take back what was offered, and look soon for what was on its way."""
        data = self.jobs_of(peer)
        for name in data.wanted:
            queue = self.queues.get(name)
            if queue is not None and queue.demand is not None:
                demand: Demand = queue.demand
                demand.wanted_by.pop(peer, None)
                demand.waiting.pop(peer, None)
                self._watch(demand)
        data.wanted = {}
        for queue in list(self.queues.values()):
            if queue.demand is not None:
                demand = queue.demand
                demand.asked.pop(peer, None)
                demand.sources.pop(peer, None)
        self.take_back(peer)
        in_flight = list(data.in_flight.values())
        data.in_flight = {}
        for job in in_flight:
            if job.state == ACTIVE and job.flags & MOVED:
                job.due_ms = min(job.due_ms, self.now_ms + LOST_LINK_MS)
                self.arm(job)
