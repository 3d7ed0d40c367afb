"""ADDJOB, and copies of jobs on other nodes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from disqueue.core.client import BLOCKED_ADDJOB, NOT_BLOCKED, Answer, Client
from disqueue.core.copying import MAX_STEP_MS, STEP_MS, Copying
from disqueue.core.job import (
    ACTIVE,
    DELAYED,
    DELIVERED,
    GONE,
    HELD,
    ONCE_QUEUED,
    WAIT_REPL,
    Job,
    id_of,
    make_job,
    new_job,
)
from disqueue.core.job_replies import reply_id
from disqueue.core.masks import count_of, covers
from disqueue.core.peers import Peers
from disqueue.core.queue import PAUSED_IN, Queue
from disqueue.core.recent import RecentIds
from disqueue.core.registry import LEVEL_NORMAL
from disqueue.core.scheduler import ASK_AHEAD_MS, BY_MOVE, BY_TIME
from disqueue.core.timers import NEVER_MS
from disqueue.wire.frames import JobRecord
from disqueue.wire.job_records import (
    DELETE,
    ENQUEUE,
    REFUSED,
    REFUSED_DONE,
    REFUSED_LEAVING,
    REFUSED_MEMORY,
    REFUSED_PAUSED,
    REFUSED_SIZE,
    STORED,
    SetAck,
    Store,
)

if TYPE_CHECKING:
    from disqueue.core.peer import Peer
    from disqueue.wire.resp import ReplyWriter

NOREPL_TEXT = b"NOREPL Not enough reachable nodes for the requested replication level"
NOREPL_SINCE = NOREPL_TEXT + b", since I'm unable to hold a copy of the message for the following reason: "
NOREPL_TIMEOUT = b"NOREPL Timeout reached before replicating to the requested number of nodes"
WHY_REFUSED = {
    REFUSED_MEMORY: b"they are short of memory, or of space on their disks",
    REFUSED_LEAVING: b"they are leaving the cluster",
    REFUSED_SIZE: b"it is larger than their max-job-size or max-queue-name-bytes allows",
}
NOREPL_REMOVED = b"NOREPL job removed (expired?) before the requested replication level was achieved"
MAXLEN_TEXT = b"MAXLEN Queue is already longer than the specified MAXLEN count"
PAUSED_TEXT = b"PAUSED Queue paused in input, try later"
DEFAULT_COPIES = 3
TAKEOVER_JITTER_MS = 500
"""Owners that would queue the same job again wait up to this much longer, each its own time, so that one is first."""
_TAKEOVER_JITTER_MS = TAKEOVER_JITTER_MS


class Replication(Peers):
    """Making jobs and their copies."""

    def init_replication(self) -> None:
        """Start without memories."""
        self.done = RecentIds()
        """Jobs acknowledged or deleted lately: a copy that is still on its way is refused."""
        self.partly_answered: list[Client] = []
        """Producers that have answers and still wait for more: the shell is told once a pass."""

    # -- ADDJOB

    def add_job(
        self,
        client: Client,
        name: bytes,
        body: bytes,
        timeout_ms: int,
        replicate: int,
        ttl_s: int,
        retry_s: int,
        delay_s: int,
        maxlen: int,
        asynchronous: bool,
    ) -> None:
        """Make a job; reply with its id when the copies are made, or with what is in the way.

        `replicate` 0: as many as there are nodes to reach, 3 at the most. `maxlen` 0: no limit.
        """
        external = self.leaving
        if self.settings.maxmemory_bytes != 0 and self.memory_level() > LEVEL_NORMAL and self.members.reachable:
            external = True  # while there is nowhere else, the memory up to 95 % is better used than refused
        if replicate == 0:
            replicate = self._default_copies(retry_s, external)
        wanted = replicate if external else replicate - 1
        at_once = external and retry_s == 0  # it is moved to another node now, or never
        if wanted > 0 and wanted > len(self.members.reachable) and (at_once or wanted > self._hopeful_nodes()):
            client.reply.error(self._too_few_nodes(wanted, external))
            return
        queue = self.known_queue(name)
        if queue is not None:
            if maxlen and queue.jobs.count >= maxlen:
                client.reply.error(MAXLEN_TEXT)
                return
            if queue.pause & PAUSED_IN:
                client.reply.error(PAUSED_TEXT)
                return
        else:
            queue = self.queue_named(name)
        job = make_job(self.ids, ttl_s, retry_s, queue, body, self.next_ctime_ns())
        job.delay_s = delay_s
        job.replicate = replicate
        job.expires_ms = self.now_ms + ttl_s * 1000
        if delay_s:
            job.due_ms = self.now_ms + delay_s * 1000
        if wanted <= 0:
            self.register(job)
            self.begin_life(job)
            reply: ReplyWriter = client.reply
            reply_id(reply, job)
        elif at_once:
            self.register(job)
            self.pass_on(job)
            client.reply.status(job.id)
        elif asynchronous:
            self._add_asynchronously(client, job, wanted, external)
        else:
            self._add_synchronously(client, job, wanted, external, timeout_ms)

    def begin_life(self, job: Job) -> None:
        """The copies are made: queue the job, now or after its delay."""
        job.state = ACTIVE
        queue: Queue = job.queue
        if not queue.visible:
            self.make_visible(queue)
        queue.added += 1
        queued_elsewhere = job.flags & ONCE_QUEUED
        if job.delay_s and not queued_elsewhere:
            self.set_delayed(job)
        if self.journal is not None:
            self.journal.job_added(job)
        if queued_elsewhere:
            job.due_ms = self.now_ms + job.retry_s * 1000 + ASK_AHEAD_MS + self.random_below(_TAKEOVER_JITTER_MS)
        elif not job.delay_s:
            self.enqueue(job, BY_MOVE)
        elif job.due_ms <= self.now_ms:
            self.enqueue(job, BY_TIME)
        if job.state == ACTIVE:
            self.arm(job)

    def _default_copies(self, retry_s: int, external: bool) -> int:
        if retry_s == 0:
            return 1
        nodes = len(self.members.reachable)
        if not external:
            nodes += 1
        return max(1, min(DEFAULT_COPIES, nodes))

    def _hopeful_nodes(self) -> int:
        """Count the nodes that may take a copy before the producer's timeout: a link that has just broken may come back."""
        return sum(not (peer.suspected or peer.failed or peer.leaving) for peer in self.members.peers)

    def _too_few_nodes(self, wanted: int, external: bool) -> bytes:
        if external and wanted - 1 == len(self.members.reachable):
            return NOREPL_SINCE + (b"I'm leaving the cluster" if self.leaving else b"I'm out of memory")
        return NOREPL_TEXT

    def _add_synchronously(self, client: Client, job: Job, wanted: int, external: bool, timeout_ms: int) -> None:
        copying = Copying(client, external, self.now_ms + STEP_MS)
        if 0 < timeout_ms < NEVER_MS - self.now_ms:
            copying.deadline_ms = self.now_ms + timeout_ms
        client.pending_adds.append(copying)
        if client.blocked == NOT_BLOCKED:
            self.block(client, BLOCKED_ADDJOB, 0)
        self._begin_copying(job, copying, wanted)

    def _begin_copying(self, job: Job, copying: Copying, wanted: int) -> None:
        """Keep a job back until other nodes have copies."""
        job.state = WAIT_REPL
        self.waiting_jobs += 1
        if copying.external:
            job.owners = 0
        copying.job_id = id_of(job)
        job.waiter = copying
        self.register(job)
        targets = self._choose_targets(job, copying, wanted)
        copying.told = job.owners
        self._copy_to(job, targets)
        self._plan_step(copying, targets)
        self.arm(job)

    def pass_on(self, job: Job) -> None:
        """An at-most-once job came to a node that keeps none; a higher layer moves it."""

    def _add_asynchronously(self, client: Client, job: Job, wanted: int, external: bool) -> None:
        copying = Copying(None, external, self.now_ms + STEP_MS)
        if external:  # nobody waits, and yet the job stays until others have it: it must not get lost on the way
            self._begin_copying(job, copying, wanted)
            client.reply.status(job.id)
            return
        self.register(job)
        targets = self._choose_targets(job, copying, wanted)
        job.waiter = copying
        self._plan_step(copying, targets)
        self.begin_life(job)
        self._copy_to(job, targets)  # after its life has begun: the copies are told what is left of the delay
        client.reply.status(job.id)

    # -- targets

    def _choose_targets(self, job: Job, copying: Copying, wanted: int) -> list[Peer]:
        """Pick reachable nodes that have not been asked, in turn so that copies spread; they become owners."""
        reachable = self.members.reachable
        count = len(reachable)
        targets: list[Peer] = []
        avoid = job.owners | copying.refused
        self.first_target += 1
        place = self.first_target
        for _ in range(count):
            peer = reachable[place % count]
            place += 1
            if not covers(avoid, peer.bit):
                targets.append(peer)
                if len(targets) == wanted:
                    break
        for peer in targets:
            self.add_owners(job, peer.bit)
        return targets

    def _copy_to(self, job: Job, targets: list[Peer]) -> None:
        if targets:
            self.send_job(targets, Store, job)

    def _plan_step(self, copying: Copying, targets: list[Peer]) -> None:
        """Say when to try one more node: later where round trips are long, and less often as it goes on."""
        wait_ms = copying.step_ms
        for peer in targets:
            rtt_ms = int(peer.rtt_ms)
            if wait_ms < 2 * rtt_ms:
                wait_ms = 2 * rtt_ms
        copying.next_ms = self.now_ms + wait_ms

    def copy_step(self, job: Job) -> None:
        """Copies are missing: try one more node, or the same ones again when there is no other."""
        copying = job.waiter
        assert copying is not None
        if job.state == WAIT_REPL and count_of(copying.confirmed) >= job.replicate:
            if self._must_wait(copying):
                self._plan_step(copying, [])
            else:
                self.replicated(job)
            return
        targets = self._choose_targets(job, copying, 1)
        if not targets:
            copying.step_ms = min(copying.step_ms * 2, MAX_STEP_MS)
            targets = [peer for peer in self.others(job.owners & ~copying.confirmed) if peer.link_up]
            for peer in targets:
                copying.repeated |= peer.bit & ~copying.refused
                copying.refused &= ~peer.bit
            if copying.refused and not targets:
                copying.refused = 0  # memory may be free again, pauses may have ended
        self._copy_to(job, targets)
        self._plan_step(copying, targets)

    def _must_wait(self, copying: Copying) -> bool:
        """Tell whether the producer cannot be answered now, because this node's own copy could not be written."""
        return not copying.external and self.journal_fails()

    # -- answers

    def copy_stored(self, peer: Peer, job_id: bytes) -> None:
        """A node keeps a copy now."""
        job = self.jobs.get(job_id)
        if job is None:
            if self.done.holds(job_id):
                self.tell_ack(peer, SetAck, job_id, 0)  # and not DELETE: the node may be the only one that tells the others
            return
        self.add_owners(job, peer.bit)
        copying: Copying | None = job.waiter
        if copying is None:
            return
        copying.confirmed |= peer.bit
        if count_of(copying.confirmed) >= job.replicate:
            if job.state == WAIT_REPL:
                if not self._must_wait(copying):
                    self.replicated(job)
            else:
                job.waiter = None
                self.arm(job)
        else:
            self._give_up_paused(job, copying)

    def copy_refused(self, peer: Peer, job_id: bytes, reason: int) -> None:
        """A node keeps no copy."""
        job = self.jobs.get(job_id)
        if job is None or job.waiter is None:
            return
        copying = job.waiter
        assert copying is not None
        bit = peer.bit
        if copying.confirmed & bit:
            return
        if reason == REFUSED_PAUSED:
            copying.paused = True
        copying.refused |= bit
        copying.reason = reason
        if copying.repeated & bit:  # it may have granted the later request: an owner until that is known
            copying.repeated &= ~bit
            return
        job.owners &= ~bit
        copying.told = 0  # what the others were told is not true any more
        targets = self._choose_targets(job, copying, 1)
        if targets:  # otherwise those who refused are asked again with the next step: at once they would refuse again
            self._copy_to(job, targets)
            self._plan_step(copying, targets)
        if not self._give_up_paused(job, copying):
            self.arm(job)

    def _give_up_paused(self, job: Job, copying: Copying) -> bool:
        """Answer the producer when the queue is paused elsewhere, copies are missing, and no other node is left to hear of.

        One that has its answer already, because it did not want to wait, must not lose the job: the nodes are asked again.
        """
        if job.state != WAIT_REPL or copying.client is None or not copying.paused or job.owners & ~copying.confirmed & ~1:
            return False
        self.fail_add(job, PAUSED_TEXT)
        return True

    def replicated(self, job: Job) -> None:
        """There are as many copies as were asked for: answer the producer, and let the job live."""
        copying = job.waiter
        assert copying is not None
        self._end_copying(job, copying)
        if copying.external:
            self._hand_out_external(job, copying)
        else:
            self.begin_life(job)

    def _end_copying(self, job: Job, copying: Copying) -> None:
        """Answer the producer with the id."""
        job.waiter = None
        self.waiting_jobs -= 1
        job.state = ACTIVE
        client = copying.client
        if client is None or client.pending_adds[0] is not copying:
            self._answer_add(copying, b"+" + copying.job_id + b"\r\n")
            return
        copying.client = None  # its turn has come: without a text that is kept
        reply: ReplyWriter = client.reply
        reply_id(reply, job)
        client.pending_adds.popleft()
        self._write_answers(client)

    def _answer_add(self, copying: Copying, text: bytes) -> None:
        """Answer a producer, once the ADDJOBs before this one on its connection have their answers."""
        copying.text = text
        client = copying.client
        if client is None:
            return
        copying.client = None
        if client.pending_adds[0] is copying:
            self._write_answers(client)

    def _write_answers(self, client: Client) -> None:
        """Write the answers that are known, up to the first one that is not."""
        pending = client.pending_adds
        reply: ReplyWriter = client.reply
        while pending:
            answer: Answer = pending[0]
            if not answer.text:
                break
            reply.raw(answer.text)
            pending.popleft()
        if not pending:
            self.unblock(client)
        elif not self.partly_answered or self.partly_answered[-1] is not client:  # still blocked: the shell sends what is there
            self.partly_answered.append(client)

    def tell_answered(self) -> None:
        """Let the shell send what producers that go on waiting have been answered."""
        answered, self.partly_answered = self.partly_answered, []
        for client in answered:
            self.on_unblock(client)

    def acked_while_copying(self, job: Job) -> None:
        """The job is done before its producer knows of it; this node keeps it, to spread the acknowledgement."""
        copying = job.waiter
        assert copying is not None
        if not copying.external:
            self.replicated(job)
            return
        self._end_copying(job, copying)
        job.owners |= 1
        if self.journal is not None:
            self.journal.job_added(job)

    def _hand_out_external(self, job: Job, copying: Copying) -> None:
        """One of the nodes that keep a copy queues it; this one forgets it."""
        holders = self.others(copying.confirmed)
        delay_ms = max(0, job.due_ms - self.now_ms) if job.delay_s else 0
        if holders and not job.flags & ONCE_QUEUED:
            self.tell(holders[self.random_below(len(holders))], ENQUEUE, job.id, delay_ms)
        if not job.owners & ~copying.told:  # they know each other from the job itself
            self.unregister(job)
            job.state = GONE
            return
        job.owners |= 1
        if self.journal is not None:
            self.journal.job_added(job)
        self.stand_back(job, delay_ms + job.retry_s * 1000)
        self.depart(job)

    def depart(self, job: Job) -> None:
        """Forget the job as soon as its owners know each other; a higher layer sees to it."""

    # -- failures

    def fail_add(self, job: Job, error: bytes) -> None:
        """Answer the producer with an error, and see that the job is deleted wherever it may have come to."""
        copying = job.waiter
        assert copying is not None
        self.waiting_jobs -= 1
        job.waiter = None
        job.state = ACTIVE
        self.give_up(job)
        self._answer_add(copying, b"-%b\r\n" % error)

    def give_up(self, job: Job) -> None:
        """Delete an active job on all nodes that were asked to keep it; a higher layer knows how."""

    def add_failed(self, job: Job) -> None:
        """The job is forgotten, or has expired, while its producer waits: the others are told once."""
        copying = job.waiter
        assert copying is not None
        self.waiting_jobs -= 1
        job.waiter = None
        job.state = GONE
        self.unregister(job)
        self.done.add(job.id, self.now_ms)
        self.tell_all(self.others(job.owners), DELETE, job.id)
        self._answer_add(copying, b"-%b\r\n" % NOREPL_REMOVED)

    def add_timed_out(self, job: Job) -> None:
        """The producer's timeout has passed."""
        copying = job.waiter
        assert copying is not None
        why = WHY_REFUSED.get(copying.reason)
        self.fail_add(job, NOREPL_TIMEOUT if why is None else NOREPL_TIMEOUT + b", since others refuse a copy: " + why)

    def cancel_adds(self, client: Client) -> None:
        """The producer has gone: its jobs that are not copied yet go too."""
        pending = client.pending_adds
        client.pending_adds = deque()
        for answer in pending:
            if isinstance(answer, Copying) and answer.client is not None:
                answer.client = None
                job = self.jobs.get(answer.job_id)
                if job is not None and job.state == WAIT_REPL:
                    self.fail_add(job, NOREPL_REMOVED)
        self.unblock(client)

    # -- the other side

    def store_copies(self, peer: Peer, jobs: list[JobRecord], queue_now: bool) -> None:
        """Keep copies for a peer, or say why not."""
        for record in jobs:
            job_id = record.id
            known = self.jobs.get(job_id)
            if known is not None:
                self.add_owners(known, self.mask_of(peer, record.owners))
                self.promise(peer, STORED, job_id)
                continue
            reason = self._why_refuse(record)
            if reason:
                self.tell(peer, REFUSED, job_id, reason)
                continue
            job = self._take_copy(peer, record)
            if queue_now:
                self.begin_life(job)
            else:
                self._keep_replica(job, record.wait_ms)
            self.promise(peer, STORED, job_id)

    def _why_refuse(self, record: JobRecord) -> int:
        if self.done.holds(record.id):
            return REFUSED_DONE
        if self.leaving:
            return REFUSED_LEAVING
        if self.memory_level() > LEVEL_NORMAL or self.journal_refuses():
            return REFUSED_MEMORY
        name = record.queue
        if len(record.body) > self.settings.max_job_bytes or len(name) > self.settings.max_queue_name_bytes:
            return REFUSED_SIZE
        queue = self.known_queue(name)
        if queue is not None and queue.pause & PAUSED_IN:
            return REFUSED_PAUSED
        return 0

    def job_from_record(self, peer: Peer, record: JobRecord) -> Job:
        """Return a job that came from a peer, which is one of its owners, as this node is now; not registered yet."""
        queue: Queue = self.queue_named(record.queue)
        job = new_job(record.id, queue, record.body, record.ctime_ns)
        job.ttl_s = record.ttl_s
        job.retry_s = record.retry_s
        job.delay_s = record.delay_s
        copies = record.replicate
        job.replicate = copies if copies > 0 else 1
        left_ms = record.left_ms
        if left_ms > job.ttl_s * 1000:
            left_ms = job.ttl_s * 1000
        job.expires_ms = self.now_ms + left_ms
        job.nacks = record.nacks
        job.deliveries = record.deliveries
        job.owners = self.mask_of(peer, record.owners) | 1
        job.state = ACTIVE
        return job

    def _take_copy(self, peer: Peer, record: JobRecord) -> Job:
        job = self.job_from_record(peer, record)
        wait_ms = record.wait_ms
        if wait_ms:
            job.due_ms = self.now_ms + wait_ms
        job.owners |= peer.bit  # it keeps the job until it knows that others do
        self.register(job)
        return job

    def _keep_replica(self, job: Job, wait_ms: int) -> None:
        """Keep a copy that takes over when nobody is heard of when its lease would have ended."""
        job.due_ms = 0
        if job.retry_s > 0:
            job.flags |= ONCE_QUEUED
            job.due_ms = self.now_ms + wait_ms + job.retry_s * 1000 + ASK_AHEAD_MS + self.random_below(_TAKEOVER_JITTER_MS)
        if self.journal is not None:
            self.journal.job_added(job)
        self.arm(job)

    def enqueue_ordered(self, job_id: bytes, delay_ms: int) -> None:
        """The node that took the job from its producer keeps no copy: this one queues it, now or after its delay."""
        job = self.jobs.get(job_id)
        if job is None or job.state != ACTIVE or job.flags & (DELIVERED | HELD):
            return  # it was queued here already, because the order came late
        if delay_ms > 0 and job.flags & DELAYED:
            return  # it waits for its delay here, as it was told before
        job.flags &= ~ONCE_QUEUED
        if delay_ms > 0:
            job.due_ms = self.now_ms + delay_ms
            self.set_delayed(job)
            self.arm(job)
            if self.journal is not None:
                self.journal.job_changed(job)
        else:
            self.enqueue(job, BY_TIME)
