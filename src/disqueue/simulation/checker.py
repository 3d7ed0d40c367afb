"""Checks each step of a run against the ledger: what a node takes, forgets, answers and hands out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from disqueue.core.job import ACKED, DELETED, HELD, LEASED, PLACEHOLDER, QUEUED, Job
from disqueue.core.journal_port import JournalPort
from disqueue.core.queue import PAUSE_NAMES
from disqueue.simulation.ledger import NEVER_MS, OK, REFUSED, UNKNOWN, Delivery, Entry, Ledger, Violation
from disqueue.simulation.observer import Observer
from disqueue.simulation.replies import Reply, ReplyError
from disqueue.simulation.restarts import Restarts

if TYPE_CHECKING:
    from disqueue.core.queue import Queue
    from disqueue.simulation.connection import ClientConnection, Request
    from disqueue.simulation.process import Process

ENDING = (b"ACKJOB", b"FASTACK", b"DELJOB")
FORCING = (b"NACK", b"ENQUEUE", b"DEQUEUE")
ACK_RACE_MS = 1000
"""In a run without faults no job is handed out so long after its acknowledgement."""
FORWARDED_MS = 20_000
"""A command that was passed on may take effect so much later, when a way was blocked."""
PAUSED_IN = (b"in", b"all")
PAUSED_OUT = (b"out", b"all")


@dataclass
class Figures:
    """What is reported and not judged."""

    added: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    deliveries: int = 0
    duplicates: int = 0
    """Deliveries of a job while a worker elsewhere still had its lease."""
    redeliveries: int = 0
    after_ack: int = 0
    lost_with_memory: int = 0
    double_queued: int = 0
    delays_ms: list[int] = field(default_factory=list)
    """From the answer to ADDJOB, or the end of its delay, to the first delivery."""
    collected_ms: list[int] = field(default_factory=list)
    """From an acknowledgement until no node knows the job."""
    requests: dict[str, int] = field(default_factory=dict)


class CheckedJournal(JournalPort):
    """Tells the checker what happens to the jobs of one process."""

    def __init__(self, checker: Checker, process: Process) -> None:
        super().__init__()
        self.checker = checker
        self.process = process

    def job_added(self, job: Job) -> None:
        self.checker.job_added(self.process, job)

    def job_changed(self, job: Job) -> None:
        self.checker.job_changed(self.process, job)

    def job_forgotten(self, job: Job) -> None:
        self.checker.job_forgotten(self.process, job)

    def node_changed(self) -> None:
        self.process.leaving_ms = self.checker.now_ms

    def queue_changed(self, queue: Queue) -> None:
        self.checker.pause_changed(self.process, queue)


class Checker(Observer):
    """Holds the ledger. `calm`: no faults are injected, so that nothing excuses a duplicate."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.figures = Figures()
        self.restarts = Restarts(self.ledger)
        self.calm = True
        self.forgetful = False
        """Nodes that live have been forgotten: an at-most-once job on its way between two that are parted then may be lost."""
        self.late_ms = 1000
        """How much later than its TTL a job may be handed out where it was on its way while time passed."""
        self.hop_ms = 0
        """How long a way is at most; a job lives longer by that each time that a node takes it from another one."""
        self.pauses: dict[tuple[Process, bytes], tuple[bytes, int]] = {}
        """Queues whose pause state is known for certain, with the time since when."""
        self.broadcasts: dict[tuple[bytes, bytes], int] = {}
        """When a state of a queue was last told to all nodes: it may reach one of them much later."""
        self._asked: dict[tuple[Process, bytes], bytes] = {}
        """Pause states that a request of a process has just asked for."""
        self._overruled: dict[tuple[Process, bytes], int] = {}
        """When something else has changed a pause state: a reply of the same pass does not know of it."""
        self.waiters: dict[Process, dict[Request, None]] = {}
        self.served: list[tuple[Request, bytes]] = []

    # -- shorthands

    @property
    def now_ms(self) -> int:
        return self.cluster.world.now_ms

    def note(self, process: Process, what: str, entry: Entry | None = None) -> None:
        """Write a line into the trace."""
        self.cluster.trace.note(process.machine.name, what, entry.mark if entry is not None else b"")

    def journal_of(self, process: Process) -> JournalPort:
        return CheckedJournal(self, process)

    # -- what nodes do with jobs

    def job_added(self, process: Process, job: Job) -> None:
        """A process takes a job into its memory."""
        if job.flags & PLACEHOLDER:  # the acknowledgement of a job that the node does not know
            return
        ledger = self.ledger
        entry = ledger.entry_of(job.body)
        ledger.identify(entry, job.id)
        self._check_identity(entry, job)
        if process.node.leaving:
            self._check_leaving(process, entry, job)
        if process in entry.holders:
            raise Violation("S23 tables", f"{process.machine.name} took {entry} twice", entry)
        entry.holders[process] = None
        entry.taken += 1
        entry.known_to[process] = None
        self.note(process, f"takes {job.id.decode()} (state {job.state}, flags {job.flags}, owners {job.owners:b})", entry)
        self._follow_state(process, entry, job)
        self.restarts.taken(process, entry)

    def _check_leaving(self, process: Process, entry: Entry, job: Job) -> None:
        """A leaving node takes only what was on its way to it, what it will pass on, and what is done."""
        if job.flags & DELETED:
            return
        made_here = entry.id[2:10] == process.machine.node_id[:8]
        begun_before = entry.started_ms <= process.leaving_ms
        if made_here and not (entry.known_to or entry.at_most_once or begun_before or entry.ended_ms != NEVER_MS):
            raise Violation("S17 leaving", f"the leaving node {process.machine.name} keeps {entry}", entry)
        if not made_here and self.now_ms - process.leaving_ms > self.late_ms + 1000:
            raise Violation("S17 leaving", f"the leaving node {process.machine.name} took a copy of {entry}", entry)

    def _check_identity(self, entry: Entry, job: Job) -> None:
        queue = job.queue
        assert queue is not None
        if not entry.ctime_ns:
            entry.ctime_ns = job.ctime_ns
        seen = (queue.name, job.ttl_s, job.retry_s, job.delay_s, job.ctime_ns)
        if seen != (entry.queue, entry.ttl_s, entry.retry_s, entry.delay_s, entry.ctime_ns):
            raise Violation("S2 integrity", f"{entry} is kept as {seen}", entry)
        if entry.copies == 0:
            entry.copies = job.replicate

    def job_changed(self, process: Process, job: Job) -> None:
        """A job of a process has changed."""
        entry = self.ledger.by_id.get(job.id)
        if entry is None or process not in entry.holders:
            return
        wait_ms = job.due_ms - process.node.now_ms if job.due_ms else -1
        self.note(process, f"has it in state {job.state}, flags {job.flags}, owners {job.owners:b}, due in {wait_ms} ms", entry)
        self._follow_state(process, entry, job)

    def _follow_state(self, process: Process, entry: Entry, job: Job) -> None:
        if job.state == ACKED:
            entry.acked_on.setdefault(process, self.now_ms)
        if job.state == QUEUED:
            entry.queued_on[process] = None
            if len(entry.queued_on) > 1:
                self.figures.double_queued += 1
                if self.calm and entry.forced_ms == NEVER_MS:
                    raise Violation("S12 queued once", f"{entry} is queued on two nodes without a fault", entry)
        else:
            entry.queued_on.pop(process, None)

    def job_forgotten(self, process: Process, job: Job) -> None:
        """A process forgets a job."""
        entry = self.ledger.by_id.get(job.id)
        if entry is None or process not in entry.holders:
            return
        expired = job.expires_ms <= process.node.now_ms
        self.note(process, f"forgets it (flags {job.flags}{', expired' if expired else ''})", entry)
        del entry.holders[process]
        entry.queued_on.pop(process, None)
        was_acked = entry.acked_on.pop(process, None) is not None
        entry.leases.pop(process, None)
        entry.counters.pop(process, None)
        if process.node.leaving:
            entry.handed_over = True
        evicted = process.node.evicted_jobs != process.evicted_jobs
        process.evicted_jobs = process.node.evicted_jobs
        if expired or evicted:
            return
        if was_acked:
            self._check_collection(process, entry, job)
        if not (entry.at_most_once and job.flags & LEASED):  # it leaves in a reply of this pass
            self._check_loss(process, entry)
        if not entry.holders and entry.ended_ms != NEVER_MS:
            self.figures.collected_ms.append(self.now_ms - entry.ended_ms)

    def _check_collection(self, process: Process, entry: Entry, job: Job) -> None:
        """An acknowledgement is forgotten: nobody may be left who would hand the job out."""
        if entry.acked_on or entry.fast_ended or self.forgetful:
            return
        if entry.memories_lost or entry.outdated or self.now_ms >= entry.expires_ms:
            return  # who knew of all owners may be gone, or has forgotten a job whose TTL had ended
        unaware = [holder for holder in entry.holders if self._counts(process, holder, entry, job)]
        if unaware and all(process.members.find(holder.machine.node_id) is not None for holder in entry.known_to):
            names = ", ".join(holder.machine.name for holder in unaware)
            raise Violation("S10 ack kept", f"{process.machine.name} forgot the ack of {entry}, which {names} still has", entry)

    def _counts(self, process: Process, holder: Process, entry: Entry, forgotten: Job) -> bool:
        """Whether `process` has to mind that `holder` has the job without knowing of the ack."""
        job = holder.node.jobs.get(entry.id)
        peer = process.members.find(holder.machine.node_id)
        if peer is None or (job is not None and job.flags & HELD):  # what is held will be withdrawn
            return False
        # One that had left the job, and has it back from its journal, counts from when it has made itself heard.
        return holder not in entry.revived or bool(forgotten.owners & ~forgotten.confirmed & peer.bit)

    def _check_loss(self, process: Process, entry: Entry) -> None:
        """A confirmed job that nobody has ended may not be forgotten by the last who has it."""
        if entry.holders or entry.answer != OK or entry.ended_ms != NEVER_MS or self.now_ms >= entry.expires_ms:
            return
        if entry.at_most_once and (entry.deliveries or entry.memories_lost or self.forgetful):
            return
        if process.node.leaving and entry.memories_lost:
            return  # it could not know yet that the other one has died
        may_pass_on = process is entry.origin and process.machine.maxmemory_bytes
        if may_pass_on and entry.memories_lost >= entry.copies:
            return  # short of memory, it was none of those that were to keep it, and these have died since they said that they do
        if any(one.node.jobs.get(entry.id) is not None for one in self.cluster.processes if one is not process):
            return  # the node that it was added to still looks for others to keep it
        raise Violation("S4 no loss", f"{process.machine.name} was the last to have {entry}, and forgot it", entry)

    def process_restored(self, process: Process) -> None:
        self.restarts.restored(process)

    def process_ended(self, process: Process) -> None:
        self.restarts.ended(process)
        self.waiters.pop(process, None)
        for entry in self.ledger.by_mark.values():
            if process not in entry.holders:
                passing = process is entry.origin and (entry.asynchronous or entry.answer == UNKNOWN)
                passing = passing or (entry.at_most_once and process in entry.known_to)
                entry.memories_lost += passing  # what it knew of a job on its way is lost as well
                entry.outdated |= entry.id in process.node.left
                continue
            del entry.holders[process]
            entry.acked_on.pop(process, None)
            entry.queued_on.pop(process, None)
            entry.memories_lost += 1
            if not entry.holders and entry.answer == OK and entry.ended_ms == NEVER_MS and not entry.deliveries:
                self._lost_with_memory(process, entry)

    def _lost_with_memory(self, process: Process, entry: Entry) -> None:
        self.figures.lost_with_memory += 1
        self.note(process, "was the last to have it", entry)
        promised = 1 if entry.asynchronous or entry.at_most_once or entry.handed_over else entry.copies
        if entry.memories_lost < promised and self.now_ms < entry.expires_ms:
            raise Violation("S4 no loss", f"{entry} was lost with {entry.memories_lost} memories", entry)

    # -- requests

    def request_started(self, connection: ClientConnection, request: Request) -> None:
        process, name = connection.process, request.name
        figures = self.figures
        figures.requests[name.decode("latin-1")] = figures.requests.get(name.decode("latin-1"), 0) + 1
        if name == b"ADDJOB" and len(request.args) > 3:
            self._add_started(process, request)
        elif name in ENDING or name in FORCING or name == b"WORKING":
            for job_id in request.args[1:]:
                entry = self.ledger.by_id.get(job_id)
                if entry is not None:
                    self._id_command_started(process, name, entry)
        elif name == b"PAUSE" and len(request.args) > 2:
            self._pause_started(process, request)
        if name == b"GETJOB":
            self.waiters.setdefault(process, {})[request] = None

    def _add_started(self, process: Process, request: Request) -> None:
        entry = self.ledger.by_mark.get(request.args[2].partition(b" ")[0])
        if entry is not None and entry.body == request.args[2] and entry.started_ms == NEVER_MS:
            entry.started_ms = self.now_ms
            entry.origin = process
            words = [arg.decode() for number, arg in enumerate(request.args) if number != 2]
            self.note(process, "executes " + " ".join(words), entry)

    def _id_command_started(self, process: Process, name: bytes, entry: Entry) -> None:
        self.note(process, f"executes {name.decode()}", entry)
        if name in ENDING:
            if entry.ended_ms == NEVER_MS:
                entry.ended_ms = self.now_ms
            if name == b"FASTACK":
                entry.fast_ended = True
        elif name in FORCING:
            entry.forced_ms = self.now_ms
            entry.dequeued |= name == b"DEQUEUE"

    def _pause_started(self, process: Process, request: Request) -> None:
        key, state = (process, request.args[1]), request.args[2].lower()
        if b"BCAST" in {arg.upper() for arg in request.args[2:]}:
            self.broadcasts[request.args[1], state] = self.now_ms
        self.pauses.pop(key, None)
        self._asked[key] = state

    def pause_changed(self, process: Process, queue: Queue) -> None:
        """A process has another pause state of a queue: asked for there, or a broadcast of that state has reached it."""
        state = PAUSE_NAMES[queue.pause]
        self.note(process, f"pause of {queue.name.decode()} is {state.decode()}")
        if self._asked.pop((process, queue.name), b"") == state:
            return
        if self.now_ms - self.broadcasts.get((queue.name, state), NEVER_MS - FORWARDED_MS) < FORWARDED_MS:
            self.pause_overruled(process, queue.name)

    def node_forgotten(self) -> None:
        """From here on nodes may count on others that do not know them any more."""
        self.forgetful = True

    def pause_overruled(self, process: Process, name: bytes) -> None:
        """The pause state of a queue is set by something else than the last request there."""
        self.pauses.pop((process, name), None)
        self._asked.pop((process, name), None)
        self._overruled[process, name] = self.now_ms

    # -- replies

    def reply_left(self, connection: ClientConnection, request: Request | None, reply: Reply) -> None:
        process = connection.process
        if request is None:
            raise Violation("S24 replies", f"{process.machine.name} sent {reply!r} without a request")
        name = request.name
        if name == b"ADDJOB" and len(request.args) > 3:
            self._add_answered(process, request, reply)
        elif name == b"GETJOB":
            self._get_answered(process, request, reply)
        elif name in ENDING and reply == 1 and len(request.args) == 2:
            entry = self.ledger.by_id.get(request.args[1])
            if entry is not None and name != b"FASTACK" and entry.end_confirmed_ms == NEVER_MS:
                entry.end_confirmed_ms = self.now_ms
        elif name == b"WORKING" and isinstance(reply, int):
            self._working_answered(process, request)
        elif name == b"PAUSE" and isinstance(reply, bytes):
            key = (process, request.args[1])
            if self._overruled.get(key, NEVER_MS) < request.started_ms:
                self.pauses[key] = (reply, self.now_ms)

    def _add_answered(self, process: Process, request: Request, reply: Reply) -> None:
        entry = self.ledger.by_mark.get(request.args[2].partition(b" ")[0])
        if entry is None or entry.answer != "unknown":
            return
        entry.answered_ms = self.now_ms
        if isinstance(reply, ReplyError):
            entry.answer = REFUSED
            refused = self.figures.refused
            refused[reply.word] = refused.get(reply.word, 0) + 1
            self.note(process, f"answers {reply.text[:40]}", entry)
            return
        if not isinstance(reply, bytes):
            raise Violation("S24 replies", f"ADDJOB was answered with {reply!r}", entry)
        self.note(process, f"answers {reply.decode('latin-1')}", entry)
        self.ledger.identify(entry, reply)
        entry.answer = OK
        self.figures.added += 1
        self._check_copies(process, entry)
        pause, since_ms = self.pauses.get((process, entry.queue), (b"none", 0))
        if pause in PAUSED_IN and since_ms < entry.started_ms:
            raise Violation("S16 pause", f"{process.machine.name} took {entry} for a queue that is paused in input", entry)

    def _check_copies(self, process: Process, entry: Entry) -> None:
        """The answer is leaving: as many memories hold the job as it promises."""
        if entry.asynchronous or entry.ended_ms != NEVER_MS or entry.handed_over:
            return
        promised = 1 if entry.at_most_once else max(entry.copies, 1)
        have = len(entry.holders) + entry.memories_lost
        if have < promised and not (entry.at_most_once and entry.deliveries) and self.now_ms < entry.expires_ms:
            raise Violation(
                "S3 copies at OK", f"{process.machine.name} answers OK with {have} copies of {promised} for {entry}", entry
            )

    def _working_answered(self, process: Process, request: Request) -> None:
        entry = self.ledger.by_id.get(request.args[1])
        here = entry is not None and process in entry.holders and request.started_ms == self.now_ms
        if entry is not None and here and entry.retry_s and entry.deliveries:
            if not any(until_ms > self.now_ms for until_ms in entry.leases.values()):
                entry.late_working_ms = self.now_ms
            entry.leases[process] = self.now_ms + entry.retry_s * 1000

    def _get_answered(self, process: Process, request: Request, reply: Reply) -> None:
        self.waiters.get(process, {}).pop(request, None)
        if not isinstance(reply, list):
            return
        fresh: dict[bytes, int] = {}
        for item in reply:
            if not isinstance(item, list) or not isinstance(item[0], bytes) or not isinstance(item[2], bytes):
                raise Violation("S24 replies", f"GETJOB was answered with {reply!r}")
            entry = self.ledger.entry_of(item[2])
            if entry.queue != item[0]:
                raise Violation("S1 no invention", f"{entry} was handed out from {item[0]!r}", entry)
            self.ledger.identify(entry, item[1])  # type: ignore[arg-type]
            self._check_order(process, entry, fresh)
            counters = (item[4], item[6]) if len(item) >= 7 else (0, 0)
            self._delivered(process, entry, int(counters[0]), int(counters[1]))  # type: ignore[arg-type]
            if request.waited:
                self.served.append((request, entry.queue))

    def _check_order(self, process: Process, entry: Entry, fresh: dict[bytes, int]) -> None:
        """Jobs of one reply that were made here, were never out before and had no delay come in the order of creation."""
        made_here = entry.id[2:10] == process.machine.node_id[:8]
        if not made_here or entry.deliveries or entry.delay_s or entry.forced_ms != NEVER_MS or len(entry.holders) != 1:
            return
        if entry.ctime_ns < fresh.get(entry.queue, 0):
            raise Violation("S13 order", f"{entry} came after a younger job", entry)
        fresh[entry.queue] = entry.ctime_ns

    def _delivered(self, process: Process, entry: Entry, nacks: int, additional: int) -> None:
        """A job leaves a node in a reply."""
        now_ms = self.now_ms
        self.note(process, "delivers it", entry)
        before = entry.deliveries
        if entry.at_most_once and before:
            raise Violation("S6 at most once", f"{entry} was delivered by {before[0].process.machine.name} before", entry)
        if entry.acked_on.get(process, now_ms) < now_ms:
            raise Violation(
                "S8 acks are final", f"{process.machine.name} delivers {entry}, which it knows to be acknowledged", entry
            )
        self._check_times(process, entry)
        pause, since_ms = self.pauses.get((process, entry.queue), (b"none", 0))
        if pause in PAUSED_OUT and since_ms < now_ms:
            raise Violation("S16 pause", f"{process.machine.name} delivers {entry} from a queue that is paused in output", entry)
        if nacks or additional:
            self._check_counters(process, entry, nacks, additional)
        figures = self.figures
        figures.deliveries += 1
        if before:
            figures.redeliveries += 1
            if any(until_ms > now_ms for until_ms in entry.leases.values()) and entry.forced_ms == NEVER_MS:
                figures.duplicates += 1
        elif entry.answer == OK:
            figures.delays_ms.append(now_ms - max(entry.answered_ms, entry.started_ms + entry.delay_s * 1000))
        if entry.end_confirmed_ms != NEVER_MS:
            figures.after_ack += 1
        entry.deliveries.append(Delivery(now_ms, process))
        entry.leases[process] = now_ms + entry.retry_s * 1000

    def _check_times(self, process: Process, entry: Entry) -> None:
        now_ms = self.now_ms
        forced = entry.forced_ms != NEVER_MS and now_ms - entry.forced_ms < FORWARDED_MS + entry.retry_s * 1000
        if now_ms < entry.started_ms + entry.delay_s * 1000 and entry.forced_ms == NEVER_MS:
            raise Violation("S11 delay", f"{entry} is delivered before its delay has passed", entry)
        if now_ms > entry.expires_ms + self.late_ms + entry.taken * self.hop_ms:
            raise Violation("S11 ttl", f"{entry} is delivered {now_ms - entry.expires_ms} ms after its TTL", entry)
        if forced:
            return
        # A worker that was late may have said WORKING in the pass in which the job was handed out again, and be answered first.
        if now_ms < entry.leases.get(process, 0) and entry.late_working_ms != now_ms:
            left_ms = entry.leases[process] - now_ms
            raise Violation("S11 lease", f"{process.machine.name} delivers {entry} {left_ms} ms before its lease ends", entry)
        if not self.calm:
            return
        raced = entry.late_working_ms != NEVER_MS and now_ms - entry.late_working_ms < ACK_RACE_MS
        if any(until_ms > now_ms for until_ms in entry.leases.values()) and not raced:
            raise Violation("S11 lease", f"{entry} is delivered twice within its lease and without a fault", entry)
        if entry.end_confirmed_ms != NEVER_MS and now_ms > entry.end_confirmed_ms + ACK_RACE_MS:
            raise Violation("S9 acks win", f"{entry} is delivered after its acknowledgement, without a fault", entry)

    def _check_counters(self, process: Process, entry: Entry, nacks: int, additional: int) -> None:
        before = entry.counters.get(process, (0, 0))
        if nacks < before[0] or additional < before[1]:
            raise Violation("S19 counters", f"the counters of {entry} went back on {process.machine.name}", entry)
        entry.counters[process] = (nacks, additional)

    def reply_withheld(self, connection: ClientConnection, request: Request | None, reply: Reply) -> None:
        if request is None or request.name != b"GETJOB":
            return
        self.waiters.get(connection.process, {}).pop(request, None)
        if not isinstance(reply, list):
            return
        for item in reply:
            if isinstance(item, list) and isinstance(item[2], bytes):
                entry = self.ledger.entry_of(item[2])
                entry.memories_lost += entry.at_most_once  # it may be lost now, as in a reply to a client that is gone

    # -- passes

    def connection_ended(self, connection: ClientConnection) -> None:
        waiting = self.waiters.get(connection.process)
        if waiting is not None:
            for request in connection.pending:
                waiting.pop(request, None)

    def pass_ended(self, process: Process) -> None:
        if not self.served:
            return
        served, self.served = self.served, []
        waiting = self.waiters.get(process, {})
        for request, queue in served:
            for other in waiting:
                if other.waited and other.order < request.order and queue in other.queues:
                    raise Violation("L6 first come", f"{process.machine.name} served a later client of {queue!r} first")

    def process_failed(self, process: Process, error: Exception) -> None:
        if not isinstance(error, Violation):
            raise Violation("S24 no exception", f"{process.machine.name}: {type(error).__name__}: {error}") from error
