"""Commands about jobs that this node does not know are passed to the nodes that may.

The node that made the job (its id says which) is asked first, then the others one by one, so that a NACK cannot queue a job
on two of them. An acknowledgement of an unknown at-least-once job is kept as a placeholder as well, so that it
survives owners that are away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.core.acknowledgement import Acknowledgement
from disqueue.core.client import BLOCKED_FORWARD, Client
from disqueue.core.ids import is_at_least_once
from disqueue.core.job import ACKED, ACTIVE, DELAYED, DELETED, DELIVERED, HELD, PLACEHOLDER, QUEUED, WAIT_REPL, Job
from disqueue.core.replication import TAKEOVER_JITTER_MS
from disqueue.core.scheduler import ASK_AHEAD_MS, BY_COMMAND, BY_NACK
from disqueue.core.timers import Timed
from disqueue.wire.job_records import MAX_BATCH, Answer, Forward

if TYPE_CHECKING:
    from disqueue.core.peer import Peer
    from disqueue.wire.resp import ReplyWriter

ACKJOB = 1
NACK = 2
ENQUEUE = 3
DEQUEUE = 4
WORKING = 5
DELJOB = 6
FASTACK = 7
VERBS = frozenset((ACKJOB, NACK, ENQUEUE, DEQUEUE, WORKING, DELJOB, FASTACK))
ENDINGS = frozenset((ACKJOB, DELJOB, FASTACK))
_ACKJOB, _NACK, _ENQUEUE, _DEQUEUE, _WORKING, _DELJOB = ACKJOB, NACK, ENQUEUE, DEQUEUE, WORKING, DELJOB
_MAX_BATCH = MAX_BATCH

UNKNOWN = -1
WORKING_TOO_LATE = 0
WORKING_ACKED = 1
WORKING_GOES_ON = 2
"""Results of WORKING; the last one plus the RETRY."""

STEP_MS = 500
"""A node that does not answer for this long is passed over."""
LIMIT_MS = 2000
"""No command waits longer than this for other nodes."""
NOJOB_TEXT = b"NOJOB Job not known in the context of this node."
TOOLATE_TEXT = b"TOOLATE Half of job TTL already elapsed, you are no longer allowed to postpone the next delivery."
ACKED_TEXT = b"ACKED This job was already acknowledged: stop working on it."


class Request(Timed):
    """A client's command that waits for other nodes."""

    def __init__(self, number: int, client: Client, verb: int, total: int, deadline_ms: int) -> None:
        Timed.__init__(self)
        self.number = number
        self.client: Client | None = client
        self.verb = verb
        self.total = total
        self.deadline_ms = deadline_ms
        self.unknown: list[bytes] = []
        self.acks: set[bytes] = set()
        self.candidates: list[Peer] = []
        self.asked: Peer | None = None
        self.result = UNKNOWN
        """The last result, for WORKING."""


class Forwarding(Acknowledgement):
    """Commands that take job ids."""

    def init_forwarding(self) -> None:
        """Start with no requests."""
        self.requests: dict[int, Request] = {}
        self.last_request = 0
        self.ack_requests: dict[bytes, list[Request]] = {}
        """Acknowledged and unknown here -> the commands that wait for somebody who knows the job."""

    # -- commands of clients

    def id_command(self, client: Client, verb: int, ids: list[bytes], first: int = 0) -> None:
        """Do a command that counts jobs, here or where the jobs are; reply with the count. The ids begin at place `first`."""
        count = len(ids)
        if count - first > _MAX_BATCH and self.members.peers:
            client.reply.error(b"ERR %d job ids are too many for one command, the limit is %d" % (count - first, MAX_BATCH))
            return
        total = 0
        unknown: list[bytes] | None = None
        for index in range(first, count):
            job_id = ids[index]
            job = self.jobs.get(job_id)
            if job is not None and not job.flags & (PLACEHOLDER | DELETED):
                total += self.apply(verb, job)
            elif unknown is None:
                unknown = [job_id]
            else:
                unknown.append(job_id)
        if unknown is None or not self.members.peers:
            reply: ReplyWriter = client.reply
            reply.integer(total)
        else:
            self._forward(client, verb, unknown, total)

    def working(self, client: Client, job_id: bytes) -> None:
        """WORKING: reply with the RETRY, or why the job cannot be postponed."""
        job = self.jobs.get(job_id)
        if job is not None and not job.flags & (PLACEHOLDER | DELETED):
            self._reply_working(client, self.apply(WORKING, job))
        elif not self.members.peers:
            client.reply.error(NOJOB_TEXT)
        else:
            self._forward(client, WORKING, [job_id], 0)

    def apply(self, verb: int, job: Job) -> int:
        """Do a command to a job of this node; return its result."""
        if verb == _ACKJOB:
            return 1 if self.ack(job) else 0
        if verb == _NACK:
            return self._nack(job)
        if verb == _WORKING:
            return self._work(job)
        if verb == _ENQUEUE:
            return self._enqueue(job)
        if verb == _DEQUEUE:
            return self._dequeue(job)
        if verb == _DELJOB:
            self.ack_and_hide(job)
            return 1
        self.forget_everywhere(job)
        self.delete(job)
        return 1

    def _nack(self, job: Job) -> int:
        if job.state != ACTIVE or job.flags & HELD or (job.retry_s == 0 and job.flags & DELIVERED):
            return 0
        self.count_nack(job)
        self.enqueue(job, BY_NACK)
        return 1

    def _enqueue(self, job: Job) -> int:
        return 1 if self.enqueue(job, BY_COMMAND) else 0

    def _dequeue(self, job: Job) -> int:
        if job.state != QUEUED:
            return 0
        self.dequeue(job)
        self.arm(job)
        if self.journal is not None:
            self.journal.job_changed(job)
        return 1

    def _work(self, job: Job) -> int:
        if job.state == ACKED:
            return WORKING_ACKED
        ttl_ms = job.ttl_s * 1000
        if (job.expires_ms - self.now_ms) * 2 < ttl_ms and job.retry_s > 0:
            return WORKING_TOO_LATE
        if job.state != WAIT_REPL and job.retry_s > 0 and not self._waits_for_delay(job):
            self.work_goes_on(job)
        return WORKING_GOES_ON + job.retry_s

    def _waits_for_delay(self, job: Job) -> bool:
        """Tell whether the DELAY of a job has not passed, here or for a copy: WORKING must not bring it forward."""
        latest_ms = self.now_ms + job.retry_s * 1000 + ASK_AHEAD_MS + TAKEOVER_JITTER_MS
        return bool(job.flags & DELAYED) or (job.state == ACTIVE and job.due_ms > latest_ms)

    def _reply_working(self, client: Client, result: int) -> None:
        if result == UNKNOWN:
            client.reply.error(NOJOB_TEXT)
        elif result == WORKING_TOO_LATE:
            client.reply.error(TOOLATE_TEXT)
        elif result == WORKING_ACKED:
            client.reply.error(ACKED_TEXT)
        else:
            client.reply.integer(result - WORKING_GOES_ON)

    # -- asking other nodes

    def _forward(self, client: Client, verb: int, unknown: list[bytes], total: int) -> None:
        self.last_request += 1
        request = Request(self.last_request, client, verb, total, self.now_ms + LIMIT_MS)
        self.requests[request.number] = request
        if verb == ACKJOB:
            unknown = self._keep_acks(request, unknown)
        request.unknown = unknown
        request.candidates = self._candidates(unknown) if unknown else []
        client.request = request
        self.block(client, BLOCKED_FORWARD, 0)
        self._next_step(request)

    def _keep_acks(self, request: Request, unknown: list[bytes]) -> list[bytes]:
        """Make placeholders for the ids that allow it; return the others."""
        rest = []
        anybody = any(peer.link_up for peer in self.members.peers)
        for job_id in unknown:
            if not is_at_least_once(job_id):
                rest.append(job_id)
                continue
            job = self.jobs.get(job_id)
            if job is None:
                job = self.make_placeholder(job_id)
            if job is None:
                rest.append(job_id)
                continue
            if anybody and job.flags & PLACEHOLDER:
                request.acks.add(job_id)
                self.ack_requests.setdefault(job_id, []).append(request)
            self.spread_ack(job)
        return rest

    def _candidates(self, unknown: list[bytes]) -> list[Peer]:
        """Return the peers to ask, the maker of the first job last: they are taken from the end."""
        maker = unknown[0][2:10]
        peers = [peer for peer in self.members.peers if peer.link_up]
        return [peer for peer in peers if peer.node_id[:8] != maker] + [peer for peer in peers if peer.node_id[:8] == maker]

    def _next_step(self, request: Request) -> None:
        """Ask the next node about what nobody knew so far, or answer the client."""
        request.asked = None
        while request.unknown and request.candidates:
            peer = request.candidates.pop()
            if self.send(peer, Forward(request.number, request.verb, list(request.unknown))):
                request.asked = peer
                break
        if request.asked is None and not request.acks:
            self._finish(request)
            return
        self.timers.set(request, min(self.now_ms + STEP_MS, request.deadline_ms))

    def _finish(self, request: Request) -> None:
        if self.requests.pop(request.number, None) is None:
            return
        self._forget_acks(request)
        self.timers.clear(request)
        client = request.client
        if client is None:
            return
        client.request = None
        if request.verb == WORKING:
            self._reply_working(client, request.result)
        else:
            client.reply.integer(request.total)
        self.unblock(client)

    def _forget_acks(self, request: Request) -> None:
        for job_id in request.acks:
            others = [other for other in self.ack_requests.pop(job_id, ()) if other is not request]
            if others:
                self.ack_requests[job_id] = others
        request.acks = set()

    def cancel_request(self, client: Client) -> None:
        """The client of a request has gone."""
        request: Request = client.request
        client.request = None
        request.client = None
        self.unblock(client)

    def ack_resolved(self, job_id: bytes, known: bool) -> None:
        """An acknowledgement of an unknown job has found its owner, or there is none."""
        for request in self.ack_requests.pop(job_id, ()):
            request.acks.discard(job_id)
            if known:
                request.total += 1
            if not request.acks and request.asked is None:
                self._finish(request)

    def answered(self, peer: Peer, answer: Answer) -> None:
        """A peer has done what it could of a forwarded command."""
        request = self.requests.get(answer.request)
        if request is None or request.asked is not peer or len(answer.results) != len(request.unknown):
            return
        rest = []
        for job_id, result in zip(request.unknown, answer.results, strict=True):
            if result == UNKNOWN:
                rest.append(job_id)
            else:
                request.total += result
                request.result = result
        request.unknown = rest
        self._next_step(request)

    def forwarded(self, peer: Peer, forward: Forward) -> None:
        """Do a command of a peer's client to the jobs that are known here."""
        refused = forward.verb not in VERBS  # of a later release
        if forward.verb in ENDINGS and self.journal is not None and self.journal.always_synced and self.journal_fails():
            refused = True
        results = []
        for job_id in forward.ids:
            job = self.jobs.get(job_id)
            if refused or job is None or job.flags & (PLACEHOLDER | DELETED):
                results.append(UNKNOWN)
            else:
                results.append(self.apply(forward.verb, job))
        self.send(peer, Answer(forward.request, results))

    def request_timed_out(self, request: Request) -> None:
        """A node does not answer: ask the next one, or give up."""
        if self.now_ms >= request.deadline_ms:
            request.unknown = []
            request.asked = None
            self._finish(request)
        else:
            self._next_step(request)
