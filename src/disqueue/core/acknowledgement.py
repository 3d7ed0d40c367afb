"""Acknowledgements: they reach every owner of a job, and are kept until every owner knows.

ACKJOB makes a job acknowledged here, and `SetAck` tells the other owners. Each answers `GotAck` with the owners that it knows
of, so that the sets grow together; when all have answered, `DELETE` ends it everywhere. A node that does not know
the job promises with its answer to refuse a copy that comes late (`RecentIds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.core.ids import id_ttl_minutes
from disqueue.core.job import (
    ACKED,
    ACTIVE,
    ASKED,
    CONTESTED,
    DELAYED,
    DELETED,
    GONE,
    HELD,
    LEASED,
    MOVED,
    ONCE_QUEUED,
    PLACEHOLDER,
    QUEUED,
    WAIT_REPL,
    Job,
    id_of,
    new_job,
)
from disqueue.core.masks import covers, unconfirmed
from disqueue.core.replication import NOREPL_REMOVED, TAKEOVER_JITTER_MS, Replication
from disqueue.core.scheduler import ASK_AHEAD_MS, BY_NACK, BY_TIME
from disqueue.wire.job_records import (
    DELETE,
    QUEUED_DELIVERY,
    QUEUED_FORCED,
    QUEUED_NACK,
    REFUSED_DONE,
    WILL_QUEUE,
    GotAck,
    Owners,
    SetAck,
)
from disqueue.wire.job_records import HELD as TELL_HELD
from disqueue.wire.job_records import QUEUED as TELL_QUEUED
from disqueue.wire.job_records import WORKING as TELL_WORKING

if TYPE_CHECKING:
    from disqueue.core.peer import Peer
    from disqueue.core.queue import Queue

ACK_RETRY_MS = 1000
ACK_RETRY_LIMIT_MS = 180_000
DOUBLINGS = 8
"""Tries after which the limit is reached."""
_TAKEOVER_JITTER_MS = TAKEOVER_JITTER_MS
MAX_PLACEHOLDERS = 100_000
"""Acknowledgements of unknown jobs kept at a time, about 40 MB: ids are not secret, so anybody could send any number."""
PLACEHOLDER_EXTRA_MS = 60_000
"""The TTL in an id is rounded down to minutes."""


class Acknowledgement(Replication):
    """Acks, and what owners of one job tell each other about it."""

    def init_acknowledgement(self) -> None:
        """Start with no placeholders."""
        self.placeholders = 0

    # -- by a client of this node

    def ack(self, job: Job) -> bool:
        """Acknowledge a known job; tell whether it was not acknowledged yet."""
        if job.state == WAIT_REPL:
            self.acked_while_copying(job)
        if job.state == ACKED:
            self.spread_ack(job)
            return False
        queue: Queue | None = job.queue
        if queue is not None:
            queue.acked += 1
        if job.owners == 1:  # nobody else has to know
            self._finish_ack(job)
            return True
        self._become_acked(job)
        self.spread_ack(job)
        return True

    def ack_and_hide(self, job: Job) -> None:
        """Delete a job on all its owners, those that are away now included: an acknowledgement that clients do not see."""
        if job.state == WAIT_REPL:
            self.fail_add(job, NOREPL_REMOVED)
            return
        job.flags |= DELETED
        if job.state != ACKED:
            self._become_acked(job)
        elif self.journal is not None:
            self.journal.job_changed(job)
        self.spread_ack(job)

    def give_up(self, job: Job) -> None:
        """Delete an active job that was never alive here: like an acknowledgement, until all that may have it know.

        Told only once, a node that cannot be reached now would hand it out, and an acknowledgement of it would miss others: it
        is only here that all of them are known.
        """
        job.owners |= 1
        if not self._unaware(job):
            self.unregister(job)
            job.state = GONE
            return
        job.flags |= DELETED
        if self.journal is not None:
            self.journal.job_added(job)
        self.ack_and_hide(job)

    def forget_everywhere(self, job: Job) -> None:
        """Tell the owners to forget a job, once: who does not hear it keeps it."""
        self.done.add(job.id, self.now_ms)
        self.tell_all(self.others(job.owners), DELETE, job.id)

    def _become_acked(self, job: Job) -> None:
        if job.flags & HELD:
            self.no_longer_held(job)
        moved_to = job.confirmed if job.flags & MOVED else 0
        job.waiter = None
        self.set_acked(job)
        if moved_to:
            # Behind the job on the same link: the node that has it queued hears of the ack, whoever finishes first.
            for peer in self.others(moved_to):
                self.tell_ack(peer, SetAck, job.id, job.owners)
        job.flags &= ~(LEASED | MOVED | HELD | ASKED)
        if self.journal is not None:
            self.journal.body_dropped(job)
            self.journal.job_changed(job)
        self.used_bytes -= len(job.body)
        job.body = b""

    def no_longer_held(self, job: Job) -> None:
        """An at-most-once job on its way between two nodes is over; a higher layer forgets that it was on its way."""

    def spread_ack(self, job: Job) -> None:
        """Tell the owners that have not confirmed; forget the job when all have."""
        missing = self._unaware(job)
        if missing == 0:
            self._finish_ack(job)
            return
        job_id = id_of(job)
        owners = self.owners_left(job_id) if job.flags & PLACEHOLDER else job.owners
        for peer in self.others(missing):
            self.tell_ack(peer, SetAck, job_id, owners)
        wait_ms = ACK_RETRY_LIMIT_MS
        if job.attempts < DOUBLINGS:
            wait_ms = ACK_RETRY_MS
            wait_ms <<= job.attempts
            job.attempts += 1
        job.due_ms = self.now_ms + wait_ms + self.random_below(_TAKEOVER_JITTER_MS)
        self.arm(job)

    def _unaware(self, job: Job) -> int:
        """Return the mask of the nodes that have to know of the acknowledgement before it is forgotten, and have not confirmed.

        A node that was forgotten is not waited for; one that is not known yet is: others count it as a member.
        """
        members = self.members
        if job.flags & PLACEHOLDER:
            return unconfirmed(members.members_mask, members.members_mask, 0, job.confirmed)
        return unconfirmed(job.owners, members.members_mask, members.unknown_mask, job.confirmed)

    def _finish_ack(self, job: Job) -> None:
        if job.owners == 1:
            if self.members.peers and job.id[2:10] != self.node_id[:8]:
                self.done.add(job.id, self.now_ms)  # the node that made it may not know yet that it is here
        elif not job.flags & PLACEHOLDER:
            job_id = id_of(job)
            self.done.add(job_id, self.now_ms)
            if covers(job.confirmed | 1, job.owners):  # otherwise the others may count a node that was forgotten here
                self.tell_all(self.others(job.owners), DELETE, job_id)
        self.delete(job)

    def delete(self, job: Job) -> None:
        """Forget a job on this node, and what else knows of it."""
        if job.flags & PLACEHOLDER:
            self.placeholders -= 1
        elif job.flags & HELD:
            self.no_longer_held(job)
        Replication.delete(self, job)

    def make_placeholder(self, job_id: bytes) -> Job | None:
        """Keep the acknowledgement of a job that this node does not know, until somebody who does takes it over.

        None when there are too many.
        """
        if self.placeholders >= MAX_PLACEHOLDERS:
            return None
        job = new_job(job_id, None, b"", 0)
        job.flags = PLACEHOLDER
        job.owners = 0
        job.expires_ms = self.now_ms + id_ttl_minutes(job_id) * 60_000 + PLACEHOLDER_EXTRA_MS
        self.register(job)
        self.set_acked(job)
        self.evictable[job] = None
        self.placeholders += 1
        if self.journal is not None:
            self.journal.job_added(job)
        return job

    # -- between owners

    def ack_told(self, peer: Peer, job_id: bytes, owners: int) -> None:
        """A peer says that a job is acknowledged. `owners` 0: it does not know the job itself."""
        job = self.jobs.get(job_id)
        if job is None:
            self.done.add(job_id, self.now_ms)
            self.tell_ack(peer, GotAck, job_id, self.owners_left(job_id) if owners else 0)
            return
        if job.flags & PLACEHOLDER:
            self._adopt_placeholder(peer, job, owners)
            return
        if owners:
            self.add_owners(job, owners | peer.bit)
        if job.state == WAIT_REPL:
            self.acked_while_copying(job)
        first_time = job.state != ACKED
        if first_time:
            if owners and job.flags & MOVED and job.confirmed == peer.bit and job_id not in self.jobs_of(peer).in_flight:
                job.flags &= ~MOVED  # it has arrived where it is acknowledged: that node need not hear of it
            queue: Queue | None = job.queue
            if queue is not None:
                queue.acked += 1
            self._become_acked(job)
        job.confirmed |= peer.bit
        if not self.journal_fails():
            self.tell_ack(peer, GotAck, job_id, job.owners | 1)  # otherwise the peer asks again
        if not owners:
            self.spread_ack(job)  # the peer knows nobody: this node takes it on
        elif first_time:
            job.attempts = 1
            job.due_ms = self.now_ms + 2 * ACK_RETRY_MS + self.random_below(_TAKEOVER_JITTER_MS)
            self.arm(job)

    def copy_refused(self, peer: Peer, job_id: bytes, reason: int) -> None:
        """A node keeps no copy; one that knows that the job is over says so with that."""
        job = self.jobs.get(job_id)
        if reason == REFUSED_DONE and job is not None and job.retry_s > 0 and job.state != ACKED:
            self.ack_told(peer, job_id, 0)
        else:
            Replication.copy_refused(self, peer, job_id, reason)

    def _adopt_placeholder(self, peer: Peer, job: Job, owners: int) -> None:
        """A peer acknowledges what is acknowledged here as unknown."""
        self.tell_ack(peer, GotAck, job.id, 0)
        if owners:
            self.done.add(job.id, self.now_ms)
            self.ack_resolved(job.id, True)
            self.delete(job)

    def ack_confirmed(self, peer: Peer, job_id: bytes, owners: int) -> None:
        """A peer answers `SetAck`. `owners` 0: the job is unknown there."""
        job = self.jobs.get(job_id)
        if job is None or job.state != ACKED:
            return
        job.confirmed |= peer.bit
        if job.flags & PLACEHOLDER:
            if owners or not self._unaware(job):
                self.done.add(job_id, self.now_ms)  # a copy may be on its way here, and its sender counts on this node
                self.ack_resolved(job_id, owners != 0)
                self.delete(job)
            return
        if not covers(job.owners, owners):
            self.add_owners(job, owners)
            for other in self.others(job.owners & ~job.confirmed):
                self.tell_ack(other, SetAck, job_id, job.owners)
        if not self._unaware(job):
            self._finish_ack(job)

    def owners_left(self, job_id: bytes) -> int:
        """Return the owners that a job had when this node gave its copy up without telling all of them; 0: nothing is known."""
        return 0

    def ack_resolved(self, job_id: bytes, known: bool) -> None:
        """Somebody, or nobody, knows a job that a client of this node has acknowledged; a higher layer answers the client."""

    def delete_told(self, peer: Peer, job_id: bytes) -> None:
        """A peer says that everybody knows that the job is over, or that it has forgotten the job itself.

        The latter when it does not know of the acknowledgement that this node spreads: its ADDJOB failed, or FASTACK.
        """
        self.done.add(job_id, self.now_ms)
        job = self.jobs.get(job_id)
        if job is None:
            return
        if job.state == ACKED:
            bit = peer.bit
            if job.flags & PLACEHOLDER:
                self.ack_resolved(job_id, True)
            elif not covers(job.confirmed, bit):
                job.confirmed |= bit
                if self._unaware(job):
                    return
        self.delete(job)

    def renew(self, job: Job) -> None:
        """A queued or acknowledged job is due: tell its owners again."""
        if job.state == ACKED:
            self.evictable[job] = None  # from its second try on: most acknowledgements are over before that
            self.spread_ack(job)
        elif job.retry_s > 0 and job.owners != 1:
            self.tell_all(self.others(job.owners), TELL_QUEUED, job.id, 0)
            job.due_ms = self.now_ms + self._renew_ms(job)
        else:
            job.due_ms = 0

    def _renew_ms(self, job: Job) -> int:
        """A queued job is announced before the other owners come to ask."""
        return job.retry_s * 750

    # -- who has it

    def ask_owners(self, job: Job) -> None:
        """Ask the other owners whether one of them has the job queued or out with a worker."""
        self.tell_all(self.others(job.owners), WILL_QUEUE, job.id)

    def _tell_over(self, peer: Peer, job_id: bytes) -> None:
        """A peer speaks of a job that is not known here: tell it that it is over, or who had it: it may have missed that."""
        if self.done.holds(job_id):
            self.tell_ack(peer, SetAck, job_id, 0)
            return
        owners = self.owners_left(job_id)
        if owners:
            self.tell_ack(peer, Owners, job_id, owners)

    def owner_asks(self, peer: Peer, job_id: bytes) -> None:
        """A peer is about to queue the job: say so when this node has it."""
        job = self.jobs.get(job_id)
        if job is None:
            self._tell_over(peer, job_id)
            return
        bit = peer.bit
        new = bit & ~job.owners
        self.add_owners(job, bit)
        if job.state == ACKED:
            self.tell_ack(peer, SetAck, job_id, job.owners)
        elif job.state in (QUEUED, WAIT_REPL):
            self.tell(peer, TELL_HELD, job_id, job.retry_s * 1000)
        elif self._has_in_hand(job, bit):
            self.tell(peer, TELL_HELD, job_id, job.due_ms - self.now_ms)
            self._ask_new_owners(job, new)  # it may know who has the job that went on from here
        else:
            if self.others(job.owners & ~bit):
                self.tell_ack(peer, Owners, job_id, job.owners)
            if job.due_ms - self.now_ms <= 2 * ASK_AHEAD_MS and (not job.flags & ASKED or self._peer_wins(peer, job_id)):
                self.stand_back(job, ASK_AHEAD_MS)  # two that ask each other would both queue it; this one looks again later
            else:
                self._ask_new_owners(job, new)  # it may have the job out with a worker, who is about to run out of time

    def owners_told(self, peer: Peer, job_id: bytes, owners: int) -> None:
        """A peer names the owners that it knows: those that are new are asked, or told, what the others have been."""
        job = self.jobs.get(job_id)
        if job is None:  # Owners are no answer to owners: of two nodes that have left the job each would go on telling the other
            if self.done.holds(job_id):
                self.tell_ack(peer, SetAck, job_id, 0)
            return
        if job.flags & PLACEHOLDER:
            return
        new = owners & ~job.owners & ~1
        self.add_owners(job, new)
        if new and job.state == ACKED:
            self.spread_ack(job)
        else:
            self._ask_new_owners(job, new)

    def _ask_new_owners(self, job: Job, new: int) -> None:
        """The other owners have been asked already: ask those that were not known then."""
        if new and job.state == ACTIVE and job.flags & ASKED:
            self.tell_all(self.others(new), WILL_QUEUE, job.id)

    def _has_in_hand(self, job: Job, asker: int) -> bool:
        """Tell whether a job is out with a worker of this node, waits here for its delay, or has just been moved on."""
        if job.state != ACTIVE or job.due_ms <= self.now_ms:
            return False
        return bool(job.flags & (LEASED | DELAYED)) or bool(job.flags & MOVED and not job.confirmed & asker)

    def owner_holds(self, peer: Peer, job_id: bytes, for_ms: int) -> None:
        """A peer has the job queued or out with a worker: look again after that."""
        job = self.jobs.get(job_id)
        if job is None or job.retry_s == 0:
            return
        if job.state == QUEUED:
            self.dequeue(job)
        if job.state != ACTIVE or job.flags & DELAYED:
            return
        if job.flags & LEASED and job.due_ms > self.now_ms:
            job.flags |= CONTESTED  # two have it; the worker of this node is protected until its lease ends
            return
        wait_ms = min(for_ms, max(0, job.expires_ms - self.now_ms))
        self.stand_back(job, wait_ms)

    def stand_back(self, job: Job, wait_ms: int) -> None:
        """Let another owner be first to queue the job, `wait_ms` from now: ask after that, and queue it only then.

        From here on this node does not say any more that it has the job: nodes that say so because of each other would wait for
        ever.
        """
        job.due_ms = self.now_ms + wait_ms + ASK_AHEAD_MS + 1 + self.random_below(_TAKEOVER_JITTER_MS)
        job.flags &= ~(ASKED | LEASED | MOVED | CONTESTED)
        self.arm(job)
        if self.journal is not None:
            self.journal.job_changed(job)

    def announce_queued(self, job: Job, reason: int) -> None:
        """Tell the other owners that the job is queued here again."""
        if job.owners == 1:
            return
        flags = QUEUED_DELIVERY
        if reason == BY_NACK:
            flags = QUEUED_NACK | QUEUED_FORCED
        elif reason != BY_TIME:
            flags = QUEUED_DELIVERY | QUEUED_FORCED
        self.tell_all(self.others(job.owners), TELL_QUEUED, job.id, flags)

    def owner_queued(self, peer: Peer, job_id: bytes, flags: int) -> None:
        """A peer has queued the job."""
        job = self.jobs.get(job_id)
        if job is None:
            self._tell_over(peer, job_id)
            return
        self.add_owners(job, peer.bit)
        if job.state == ACKED:
            self.tell_ack(peer, SetAck, job_id, job.owners)
            return
        self._count_queueing(job, flags)
        if job.state == WAIT_REPL:
            job.flags |= ONCE_QUEUED  # for later: the producer still waits for copies
            return
        leased = job.state == ACTIVE and job.flags & LEASED and job.due_ms > self.now_ms
        if leased and not flags & QUEUED_FORCED:
            self.tell(peer, TELL_HELD, job_id, job.due_ms - self.now_ms)
            return
        if job.state == QUEUED:
            if not self._peer_wins(peer, job_id):
                self.tell(peer, TELL_QUEUED, job_id, 0)
                return
            self.dequeue(job)
        if job.flags & DELAYED:
            self.clear_delayed(job)
        job.flags &= ~(LEASED | MOVED)
        self.stand_back(job, job.retry_s * 1000)

    def _count_queueing(self, job: Job, flags: int) -> None:
        if flags & QUEUED_NACK:
            self.count_nack(job)
        elif flags & QUEUED_DELIVERY and job.deliveries < 0xFFFF:
            job.deliveries += 1
        if self.journal is not None and job.state != WAIT_REPL:
            self.journal.job_changed(job)

    def _peer_wins(self, peer: Peer, job_id: bytes) -> bool:
        """Two nodes have the job queued: both find the same one to keep it, each as often as the other."""
        mine = hash_of(job_id, self.node_id)
        other = hash_of(job_id, peer.node_id)
        return other > mine

    def work_goes_on(self, job: Job) -> None:
        """A worker connected to this node goes on with the job: the lease starts again, here and at the other owners."""
        if job.state == QUEUED:
            self.dequeue(job)
        job.flags = (job.flags | LEASED) & ~(ASKED | MOVED)
        self.postpone(job, job.retry_s * 1000)
        self.tell_all(self.others(job.owners), TELL_WORKING, job.id)

    def owner_works(self, peer: Peer, job_id: bytes) -> None:
        """A worker goes on with the job, says a peer."""
        job = self.jobs.get(job_id)
        if job is None:
            self._tell_over(peer, job_id)
            return
        self.add_owners(job, peer.bit)
        if job.state == ACKED:
            self.tell_ack(peer, SetAck, job_id, job.owners)
            return
        if job.retry_s == 0:
            return  # its worker has no more time for that, and nobody else gets it
        if job.state == QUEUED:
            self.dequeue(job)
        if job.state == ACTIVE:
            if job.flags & DELAYED:
                self.clear_delayed(job)
            # Also where it was handed out: two with leases that end at the same time would both queue it then.
            self.stand_back(job, job.retry_s * 1000)

    def owner_left(self, peer: Peer, job_id: bytes) -> None:
        """A peer has handed its copy over and is no owner any more."""
        job = self.jobs.get(job_id)
        if job is not None:
            job.owners &= ~peer.bit
            if job.waiter is not None:
                job.waiter.confirmed &= ~peer.bit
                job.waiter.told &= ~peer.bit  # it may be asked again, and those that were asked meanwhile do not know of it
            if self.journal is not None and job.state != WAIT_REPL:
                self.journal.job_changed(job)


def hash_of(job_id: bytes, node_id: bytes) -> int:
    """Return a number that depends on both ids alike (FNV-1a, 64 bits), the same on every node and in every process."""
    value = 0xCBF29CE484222325
    for character in job_id + node_id:
        value = ((value ^ character) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value
