"""LEAVING: a node gives its jobs away until it holds none, so that it can be stopped.

A queued job moves like a federated one; a delayed job or a replica is copied to a node that has none. When the other node
says that it has the job, this one tells all owners of each other, and forgets the job when they all know: an acknowledgement must
not miss one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.core.delivery import LEAVING_TEXT
from disqueue.core.federation import Federation
from disqueue.core.job import ACKED, ACTIVE, DELAYED, DELIVERED, HELD, ONCE_QUEUED, QUEUED, WAIT_REPL, Job
from disqueue.core.timers import Timed
from disqueue.wire.frames import JobRecord
from disqueue.wire.job_records import ENQUEUE, KEEPS, KEEPS_FOR_NOW, KEEPS_NOT, LEFT, Owners, Store

if TYPE_CHECKING:
    from disqueue.core.peer import Peer

STEP_MS = 50
IDLE_STEP_MS = 500
"""While nothing can be given away: what is left waits for acknowledgements, or for other nodes."""
JOBS_A_STEP = 500
"""Jobs looked at in one step: about 10,000 a second leave while the node goes on serving."""
TELL_AGAIN_MS = 1000
MAX_LEFT = 20_000
"""Jobs remembered that were left while an owner had failed, about 4 MB; of older ones an acknowledgement may miss an owner."""


class Departure:
    """A job that this node is about to forget.

    `told`: mask of the owners that all are told of; `known`: of those that know them; `kept`: of those that have said with that
    that they keep the job. Where it was sent is asked as well: a job that was handed off to a copy came without its owners.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.told = 0
        self.known = 0
        self.kept = 0
        self.next_ms = 0


class Handover(Federation):
    """Giving all jobs away."""

    def init_handover(self) -> None:
        """Make the timer of the steps."""
        self.handover_timer = Timed()
        self.handover_cursor = 0
        self.departures: dict[bytes, Departure] = {}
        """Jobs that others have now, while not all of them know each other."""
        self.left: dict[bytes, int] = {}
        """Their owners, where one that had failed, or is not known yet, was not told: it may still ask this node only."""

    def set_leaving(self, leaving: bool) -> None:
        """Begin to leave the cluster, or stay after all."""
        self.leaving = leaving
        self.members.set_leaving(leaving)
        if self.journal is not None:
            self.journal.node_changed()
        if leaving:
            self.end_all_waits(LEAVING_TEXT)
            self.withdraw_all()
            self.timers.set(self.handover_timer, self.now_ms + STEP_MS)
        else:
            self.departures.clear()  # a node that stays keeps the copies that it still has

    def handover_step(self) -> None:
        """Give the next jobs away. Those that this node takes for others while its memory is full go also when it stays."""
        for departure in list(self.departures.values()):
            if self.now_ms >= departure.next_ms:
                self._tell_owners(departure)
        if not self.leaving:
            if self.departures:
                self.timers.set(self.handover_timer, self.now_ms + STEP_MS)
            return
        given = 0
        if self.members.reachable and self.jobs.count:
            jobs, self.handover_cursor = self.jobs.scan(self.handover_cursor, JOBS_A_STEP)
            for job in jobs:
                given += self._give_away(job)
        self.timers.set(self.handover_timer, self.now_ms + (STEP_MS if given or self.handover_cursor else IDLE_STEP_MS))

    def _give_away(self, job: Job) -> bool:
        """Give one job away, if it is time; tell whether there was anything to do."""
        if job.state in (ACKED, WAIT_REPL) or job.flags & HELD or job.id in self.departures or self._on_its_way(job):
            return False
        if job.state == ACTIVE and job.retry_s == 0 and job.flags & DELIVERED:
            self.delete(job)  # nothing can happen to it any more
            return True
        peer = self._heir(job)
        if peer is None:
            if job.state == ACTIVE and not job.flags & DELAYED and self.others(job.owners):
                self.depart(job)  # every node that can be reached has a copy already
                return True
            return False
        if job.state == QUEUED:
            job.queue.jobs.remove(job)
            self.queued_jobs -= 1
            job.state = ACTIVE
            job.due_ms = 0
            self.move_to(peer, job)
        elif job.retry_s == 0:
            self.move_to(peer, job)
        else:
            self._copy_away(peer, job)
        return True

    def _on_its_way(self, job: Job) -> bool:
        return any(job.id in self.jobs_of(peer).in_flight for peer in self.members.peers)

    def _heir(self, job: Job) -> Peer | None:
        """Return a node without a copy, so that no copy is lost; for a queued or delayed job otherwise an owner."""
        reachable: list[Peer] = self.members.reachable
        self.first_target += 1
        owner: Peer | None = None
        for step in range(len(reachable)):
            peer = reachable[(self.first_target + step) % len(reachable)]
            if not job.owners & peer.bit:
                return peer
            owner = peer
        return owner if job.state == QUEUED or job.flags & DELAYED else None

    def _copy_away(self, peer: Peer, job: Job) -> None:
        self.add_owners(job, peer.bit)
        self.jobs_of(peer).in_flight[job.id] = job
        self.send_job([peer], Store, job)
        if job.flags & DELAYED:  # that node queues it when its delay is over, and not this one as well
            wait_ms = max(1, job.due_ms - self.now_ms)
            self.tell(peer, ENQUEUE, job.id, wait_ms)
            self.clear_delayed(job)
            self.stand_back(job, wait_ms + job.retry_s * 1000)

    def copy_stored(self, peer: Peer, job_id: bytes) -> None:
        """A node keeps a copy now; a leaving node forgets its own then."""
        Federation.copy_stored(self, peer, job_id)
        if self.jobs_of(peer).in_flight:
            self.move_received(peer, job_id)

    def copy_refused(self, peer: Peer, job_id: bytes, reason: int) -> None:
        """A node keeps no copy; a leaving node tries another one."""
        job = self.jobs_of(peer).in_flight.pop(job_id, None)
        if job is not None:
            job.owners &= ~peer.bit
            self._wait_for_delay_again(job)
        Federation.copy_refused(self, peer, job_id, reason)

    def _wait_for_delay_again(self, job: Job) -> None:
        """A delayed job was sent to another node, which does not keep it: it is queued here, when it was to be."""
        if job.state == ACTIVE and job.delay_s and not job.flags & (ONCE_QUEUED | DELIVERED | DELAYED):
            begun_ms = job.expires_ms - job.ttl_s * 1000
            job.due_ms = max(begun_ms + job.delay_s * 1000, self.now_ms)
            self.set_delayed(job)
            self.arm(job)
            if self.journal is not None:
                self.journal.job_changed(job)

    def handed_over(self, peer: Peer, job: Job) -> None:
        """A job has arrived where it was sent."""
        if self.leaving and job.state == ACTIVE and job.id not in self.departures:
            self.depart(job)

    # -- being an owner no more

    def depart(self, job: Job) -> None:
        """Forget an active job as soon as all owners know each other and one keeps it."""
        departure = Departure(job)
        self.departures[job.id] = departure
        self._tell_owners(departure)
        if self.departures and self.handover_timer.timer_slot < 0:
            self.timers.set(self.handover_timer, self.now_ms + STEP_MS)

    def _tell_owners(self, departure: Departure) -> None:
        job = departure.job
        if job.owners & ~departure.told:
            departure.told |= job.owners
            departure.known = 0
        missing = self._unaware_of(departure)
        if missing and job.state == ACTIVE:
            for peer in missing:
                if peer.link_up:
                    self.send_slots(peer)
                    peer.outbox.append(Owners([job.id], [self.wire_owners(job.owners)], True))
            departure.next_ms = self.now_ms + TELL_AGAIN_MS
            return
        del self.departures[job.id]
        if job.state == ACTIVE and departure.kept:  # otherwise something else has happened to it, or it needs a new owner
            counted = self.members.members_mask | self.members.unknown_mask
            if job.owners & counted & ~departure.known & ~1:
                self.left.pop(job.id, None)
                self.left[job.id] = job.owners & ~1
                if len(self.left) > MAX_LEFT:
                    del self.left[next(iter(self.left))]
            self._leave_job(job, departure.known)

    def _leave_job(self, job: Job, known: int) -> None:
        """Forget a job. Owners that do not know all others go on counting on this node: it tells them when they ask."""
        self.tell_all(self.others(job.owners & known), LEFT, job.id)
        self.delete(job)

    def job_from_record(self, peer: Peer, record: JobRecord) -> Job:
        """Return a job that came from a peer; one that this node has left comes back with the owners that it had then."""
        job = Federation.job_from_record(self, peer, record)
        if self.left:
            job.owners |= self.left.pop(job.id, 0)
        return job

    def owners_left(self, job_id: bytes) -> int:
        """Return the owners that a job had when this node gave its copy up without telling all of them; 0: nothing is known."""
        return self.left.get(job_id, 0) or Federation.owners_left(self, job_id)

    def keeps(self, job_id: bytes) -> int:
        """Say how far a node that is about to forget a job may count on this one: a number for `OWNERS_KNOWN`."""
        if self.jobs.get(job_id) is None:
            return KEEPS_NOT
        return KEEPS_FOR_NOW if self.leaving or job_id in self.departures else KEEPS

    def owners_known(self, peer: Peer, job_id: bytes, kept: int) -> None:
        """An owner knows all the others of a job, and says how far it can be counted on."""
        departure = self.departures.get(job_id)
        if departure is not None:
            departure.known |= peer.bit
            if kept == KEEPS:
                departure.kept |= peer.bit
            else:
                departure.kept &= ~peer.bit
            # Of an acknowledged job a copy may be on its way there: the acknowledgement follows it.
            if kept == KEEPS_NOT and departure.job.state == ACTIVE:
                departure.job.owners &= ~peer.bit
            if not self._unaware_of(departure):
                self._tell_owners(departure)

    def handover_link_down(self, peer: Peer) -> None:
        """What a peer said may not be true any more: it is asked again when it is back."""
        for departure in self.departures.values():
            departure.known &= ~peer.bit
            departure.kept &= ~peer.bit

    def _unaware_of(self, departure: Departure) -> list[Peer]:
        """Return the owners that do not know yet; failed ones are not waited for: the heir asks them before it queues the job."""
        owners = departure.job.owners & ~departure.known
        return [peer for peer in self.others(owners) if not peer.failed]

    def what_holds(self) -> str:
        """Return what a leaving node still has, for people; nothing when it can be stopped without loss."""
        count = len(self.jobs)
        if not self.leaving or not count:
            return ""
        text = f"this node is leaving and still holds {count} jobs ({self.queued_jobs} queued, {self.acked_jobs} acknowledged"
        if not self.members.reachable:
            return text + "), and there is no node that can take them"
        missing = [peer.node_id[:8].decode() for peer in self.members.peers if not peer.link_up]
        if missing:
            return text + f"), and cannot reach {', '.join(missing[:3])}: bring them back, or CLUSTER FORGET them"
        return text + "): wait until they are gone"
