"""At-most-once jobs on their way between two nodes: never on both, and never on neither for longer than it takes to ask.

They go in steps, `Offer`, `ACCEPT`, `RELEASE`, `RELEASED`: the sender keeps the job until the receiver holds it, and the receiver
does not deliver before the sender has given it up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.core.forwarding import Forwarding
from disqueue.core.job import ACTIVE, DELAYED, HELD, Job, id_of
from disqueue.core.scheduler import BY_MOVE
from disqueue.wire.job_records import ACCEPT, ASK_HELD, MISSING, RELEASE, RELEASED, WITHDRAWN

if TYPE_CHECKING:
    from disqueue.core.peer import Peer
    from disqueue.core.peer_jobs import PeerJobs
    from disqueue.core.queue import Queue
    from disqueue.wire.frames import JobRecord

MAX_OFFER = 1 << 30
FORGOTTEN_OFFER = MAX_OFFER + 1
"""No offer's number: a job is held, and by which one is not in the journal."""
MAX_GIVEN = 10_000
"""Jobs remembered that were given up, about 2 MB; of older ones an acknowledgement may miss the node that has it."""


class Offers(Forwarding):
    """Handing at-most-once jobs over."""

    def init_offers(self) -> None:
        """Number offers from somewhere else in each process: answers to one before may still come."""
        self.given: dict[bytes, int] = {}
        """The bits of the nodes that jobs were given up to: who still holds an earlier offer may hear of an acknowledgement."""
        self.last_offer = self.members.me.incarnation * 2_654_435_761 % MAX_OFFER

    # -- what a higher layer knows

    def use_credit(self, peer: Peer, queue: Queue | None) -> None:
        """A peer has sent a job of those that it was asked for."""

    def count_import(self, peer: Peer, job: Job) -> None:
        """A job has come from a peer."""

    def not_now(self, peer: Peer, name: bytes) -> None:
        """What a peer has sent of a queue cannot be taken: it is asked again later."""

    def owners_left(self, job_id: bytes) -> int:
        """Return the owners that a job had when this node gave it up; 0: nothing is known."""
        return self.given.get(job_id, 0)

    # -- the sender

    def offer_to(self, peer: Peer, job: Job) -> None:
        """Offer a job that is active to a peer; it stays this node's until the peer holds it."""
        data = self.jobs_of(peer)
        job_id = id_of(job)
        job.confirmed = peer.bit
        job.flags |= HELD
        job.owners &= ~peer.bit  # the receiver has this bit in its own: so a restart tells one from the other
        data.released.pop(job_id, None)  # from an earlier time: it has come back
        data.offered[job_id] = job
        self.last_offer = self.last_offer % MAX_OFFER + 1
        job.offer = self.last_offer
        self.send_offer(peer, job)
        self.arm(job)

    def offer_accepted(self, peer: Peer, job_id: bytes, offer: int) -> None:
        """The peer holds an offered job: give it up.

        Not when it speaks of an earlier `offer`: what it held by that it may have dropped since, and this one may never arrive.
        """
        data = self.jobs_of(peer)
        job = data.offered.get(job_id)
        if job is not None and offer and offer != job.offer:
            return
        data.offered.pop(job_id, None)
        if job is None or job.state != ACTIVE:
            self._tell_whose(peer, job_id)
            return
        if self.journal_fails():
            # After a crash it could be delivered by both: it is not given up now.
            self.keep_after_all(job)
            self.tell(peer, WITHDRAWN, job_id)
            return
        data.released[job_id] = job.expires_ms
        self.delete(job)
        self.given.pop(job_id, None)
        self.given[job_id] = peer.bit
        if len(self.given) > MAX_GIVEN:
            del self.given[next(iter(self.given))]
        self.promise(peer, RELEASE, job_id)

    def release_known(self, peer: Peer, job_id: bytes) -> None:
        """The peer knows that a job is its own."""
        self.jobs_of(peer).released.pop(job_id, None)

    def held_asked(self, peer: Peer, job_id: bytes, offer: int) -> None:
        """After a broken link: the peer asks whether a job that it holds was released to it."""
        if job_id in self.jobs_of(peer).offered:  # its ACCEPT was lost
            self.offer_accepted(peer, job_id, offer)
            return
        self._tell_whose(peer, job_id)

    def _tell_whose(self, peer: Peer, job_id: bytes) -> None:
        """Tell a peer whether a job that it holds is its own."""
        if job_id in self.jobs_of(peer).released:
            self.promise(peer, RELEASE, job_id)
        else:
            self.tell(peer, WITHDRAWN, job_id)

    def take_back(self, peer: Peer) -> None:
        """The link to a peer broke: what was only offered to it is queued here again."""
        data = self.jobs_of(peer)
        offered = list(data.offered.values())
        data.offered = {}
        for job in offered:
            self.keep_after_all(job)

    def keep_after_all(self, job: Job) -> None:
        """What was only offered is this node's as before: queued, or waiting for its delay."""
        if job.state != ACTIVE or not job.flags & HELD:
            return
        job.flags &= ~HELD
        job.confirmed = 0
        self._own_once(job)

    def _own_once(self, job: Job) -> None:
        """An at-most-once job is nobody else's any more: queue it when its delay has passed."""
        if job.due_ms <= self.now_ms:
            self.enqueue(job, BY_MOVE)
            return
        if not job.flags & DELAYED:
            self.set_delayed(job)
        self.arm(job)
        if self.journal is not None:
            self.journal.job_changed(job)

    def no_longer_held(self, job: Job) -> None:
        """An at-most-once job on its way, to here or from here, is over."""
        slot = job.confirmed.bit_length() - 1
        if slot > 0:
            data = self.jobs_of(self.members.by_slot[slot])
            data.held.pop(job.id, None)
            data.offered.pop(job.id, None)

    def ask_about_held(self, job: Job) -> None:
        """A job is on its way for long: offer it again, or ask whether it is this node's."""
        slot = job.confirmed.bit_length() - 1
        if slot <= 0:
            return
        peer = self.members.by_slot[slot]
        data = self.jobs_of(peer)
        if job.id in data.held:
            self.tell(peer, ASK_HELD, job.id, job.offer)
        elif job.id in data.offered:
            self.send_offer(peer, job)

    # -- the receiver

    def jobs_offered(self, peer: Peer, records: list[JobRecord], offers: list[int]) -> None:
        """Hold at-most-once jobs until they are released; `offers`: their numbers, none from a node that does not number them."""
        if len(offers) != len(records):
            offers = [0] * len(records)
        for record, number in zip(records, offers, strict=True):
            offer = number if 0 < number <= MAX_OFFER else 0
            self.use_credit(peer, self.queues.get(record.queue))
            job = self.jobs.get(record.id)
            if record.retry_s == 0 and (job is None or job.flags & HELD) and self.journal_refuses():
                self._refuse_offer(peer, record)
                continue
            if job is None and record.retry_s == 0:
                job = self._hold(peer, record)
            if job is not None and job.retry_s == 0:
                if job.state == ACTIVE and job.flags & HELD:
                    self._held_for(peer, job)
                    job.offer = offer
                self.tell(peer, ACCEPT, record.id, offer)

    def _held_for(self, peer: Peer, job: Job) -> None:
        """A job that is held was taken back by the one that offered it, and now comes from another one."""
        self.no_longer_held(job)
        job.confirmed = peer.bit
        job.owners = 1 | job.confirmed
        self.jobs_of(peer).held[job.id] = job
        if self.journal is not None:
            self.journal.job_changed(job)  # after a restart the one that has it now is asked, and not the one before

    def _hold(self, peer: Peer, record: JobRecord) -> Job:
        job = self.job_from_record(peer, record)
        job.owners = 1 | peer.bit  # an acknowledgement has to reach whoever of the two keeps it
        job.due_ms = self.now_ms + record.wait_ms if record.wait_ms else 0
        job.flags |= HELD
        job.confirmed = peer.bit
        self.jobs_of(peer).held[job.id] = job
        self.register(job)
        self.arm(job)
        if self.journal is not None:
            self.journal.job_added(job)
        return job

    def _refuse_offer(self, peer: Peer, record: JobRecord) -> None:
        """The journal could not keep the job: the peer keeps it, and is asked again when the journal can be written."""
        self.not_now(peer, record.queue)
        self.tell(peer, MISSING, record.id)

    def job_released(self, peer: Peer, job_id: bytes) -> None:
        """A held job is this node's."""
        job = self.jobs_of(peer).held.pop(job_id, None)
        if job is not None and job.state == ACTIVE:
            job.flags &= ~HELD
            job.confirmed = 0
            job.owners = 1
            self._own_once(job)
            self.count_import(peer, job)
        self.promise(peer, RELEASED, job_id)

    def job_withdrawn(self, peer: Peer, job_id: bytes) -> None:
        """A held job is not this node's."""
        job = self.jobs_of(peer).held.pop(job_id, None)
        if job is not None and job.state == ACTIVE:
            self.delete(job)

    # -- links

    def offers_link_up(self, peer: Peer) -> None:
        """Tell a peer that can be reached again what is released to it, and ask about what is held."""
        data = self.jobs_of(peer)
        for job_id, until_ms in list(data.released.items()):
            if until_ms <= self.now_ms:
                del data.released[job_id]
            else:
                self.promise(peer, RELEASE, job_id)
        self._ask_about_all(peer, data)

    def offers_incoming_up(self, peer: Peer) -> None:
        """Records of a peer come on a new link: answers may have been lost with the old one."""
        data = self.jobs_of(peer)
        self._ask_about_all(peer, data)
        for job in data.offered.values():
            self.send_offer(peer, job)

    def _ask_about_all(self, peer: Peer, data: PeerJobs) -> None:
        for job in data.held.values():
            self.tell(peer, ASK_HELD, job.id, job.offer)
