"""Looks into the tables of a node: accounts, counters and cross references must fit what is there."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from disqueue.core.client import BLOCKED_GETJOB, NOT_BLOCKED
from disqueue.core.ids import is_at_least_once
from disqueue.core.job import ACKED, ACTIVE, DELAYED, GONE, PLACEHOLDER, QUEUED, WAIT_REPL, Job
from disqueue.core.registry import JOB_BYTES, QUEUE_BYTES
from disqueue.journal.recorder import GONE as FORGOTTEN
from disqueue.journal.runtime import ON
from disqueue.simulation.ledger import Violation

if TYPE_CHECKING:
    from disqueue.core.node import Node
    from disqueue.journal.runtime import JournalRuntime
    from disqueue.simulation.cluster import Cluster
    from disqueue.simulation.ledger import Entry
    from disqueue.simulation.process import Process

TABLES = "S23 tables"
GRACE_MS = 700
"""A node may answer so much later than a command's own deadline."""
FORWARD_MS = 2000


def check_process(process: Process) -> None:
    """Check all tables of a node. Raises `Violation`."""
    node = process.node
    name = process.machine.name
    jobs = list(node.jobs)
    _compare(name, "jobs", len(jobs), len(node.jobs))
    _check_counts(name, node, jobs)
    _check_memory(name, node, jobs)
    _check_queues(name, process)
    _check_timers(name, process, jobs)
    for job in jobs:
        _check_job(name, node, job)
    if process.journal is not None and process.journal.runtime.state == ON:
        _check_segments(name, process.journal.runtime, jobs)


def _compare(name: str, what: str, found: int, said: int) -> None:
    if found != said:
        raise Violation(TABLES, f"{name} counts {said} {what}, there are {found}")


def _check_counts(name: str, node: Node, jobs: list[Job]) -> None:
    _compare(name, "queued jobs", sum(job.state == QUEUED for job in jobs), node.queued_jobs)
    _compare(name, "acked jobs", sum(job.state == ACKED for job in jobs), node.acked_jobs)
    _compare(name, "waiting jobs", sum(job.state == WAIT_REPL for job in jobs), node.waiting_jobs)
    _compare(name, "delayed jobs", sum(bool(job.flags & DELAYED) for job in jobs), node.delayed_jobs)
    _compare(name, "placeholders", sum(bool(job.flags & PLACEHOLDER) for job in jobs), node.placeholders)
    for job in node.evictable:
        if node.jobs.get(job.id) is not job:
            raise Violation(TABLES, f"{name} would evict {job.id.decode()}, which it has not got")


def _check_memory(name: str, node: Node, jobs: list[Job]) -> None:
    used = sum(JOB_BYTES + len(job.body) for job in jobs)
    used += sum(QUEUE_BYTES + len(queue.name) for queue in node.queues.values())
    _compare(name, "bytes", used, node.used_bytes)


def _check_queues(name: str, process: Process) -> None:
    node = process.node
    _compare(name, "visible queues", sum(queue.visible for queue in node.queues.values()), node.visible_queues)
    clients = {connection.client for connection in process.connections}
    for queue in node.queues.values():
        found = sum(len(block) for block in queue.jobs.blocks[queue.jobs.first_block :])
        _compare(name, f"jobs in {queue.name!r}", found, queue.jobs.count)
        for client in queue.waiters:
            if client not in clients or client.blocked != BLOCKED_GETJOB:
                raise Violation(TABLES, f"{name}: a client waits at {queue.name!r} that is gone or does not wait")
        if not (queue.visible or queue.known_jobs or queue.waiters or queue.demand is not None):
            raise Violation(TABLES, f"{name} keeps the queue {queue.name!r}, which nothing refers to")
    _compare(name, "blocked clients", sum(client.blocked != NOT_BLOCKED for client in clients), node.blocked_clients)


def _check_timers(name: str, process: Process, jobs: list[Job]) -> None:
    node = process.node
    kept = sum(len(slot) for slot in node.timers.slots)
    _compare(name, "timers", kept, node.timers.count)
    for slot in node.timers.slots:
        for timed in slot:
            if isinstance(timed, Job) and node.jobs.get(timed.id) is not timed:
                raise Violation(TABLES, f"{name} has a timer of {timed.id.decode()}, which it has not got")
    for job in jobs:
        if job.timer_slot < 0:
            raise Violation(TABLES, f"{name} has {job.id.decode()} without a timer")


def _check_job(name: str, node: Node, job: Job) -> None:
    text = job.id.decode()
    if job.state == GONE:
        raise Violation(TABLES, f"{name} keeps {text}, which is gone")
    if job.flags & PLACEHOLDER:
        if not is_at_least_once(job.id):
            raise Violation("S7 no acks of at-most-once jobs", f"{name} keeps an ack of the unknown {text}")
        return
    queue = job.queue
    if queue is None or node.queues.get(queue.name) != queue:
        raise Violation(TABLES, f"{name} has {text} in a queue that it has not got")
    if is_at_least_once(job.id) != (job.retry_s > 0):
        raise Violation("S7 parity", f"{name}: the id {text} does not fit RETRY {job.retry_s}")
    if job.state == QUEUED and job not in queue.jobs.page(0, queue.jobs.count, False):
        raise Violation(TABLES, f"{name}: {text} is queued, but not in its queue")
    if job.state == WAIT_REPL and (job.waiter is None or (job.waiter.client is None and not job.waiter.external)):
        raise Violation(TABLES, f"{name}: {text} waits for copies, and nobody waits for it")
    if job.state == ACTIVE and job.expires_ms + 5000 < node.now_ms:
        raise Violation("S11 ttl", f"{name} keeps {text} after its TTL")


def _check_segments(name: str, runtime: JournalRuntime, jobs: list[Job]) -> None:
    """What the table of segments says to be needed is needed by a job that is there, or whose end is still to be written."""
    gone = [job for job in runtime.recorder.changed if job.journal_flags & FORGOTTEN]
    whole = Counter(job.journal_segment for job in (*jobs, *gone))
    changes = Counter(job.journal_state for job in (*jobs, *gone))
    whole_bytes: Counter[int] = Counter()
    changed_bytes: Counter[int] = Counter()
    for job in (*jobs, *gone):
        whole_bytes[job.journal_segment] += job.journal_bytes
        changed_bytes[job.journal_state] += job.journal_state_bytes
    for number, segment in runtime.table.by_number.items():
        _compare(name, f"jobs in its journal's segment {number}", whole[number], segment.jobs)
        _compare(name, f"changes of jobs in its journal's segment {number}", changes[number], segment.states)
        _compare(name, f"bytes of jobs in its journal's segment {number}", whole_bytes[number], segment.job_bytes)
        _compare(name, f"bytes of changes in its journal's segment {number}", changed_bytes[number], segment.state_bytes)


def describe_holders(cluster: Cluster, entry: Entry) -> list[str]:
    """Say in lines what each node knows of a job."""
    lines = []
    for process in cluster.processes:
        job = process.node.jobs.get(entry.id) if entry.id else None
        if job is None:
            continue
        names = {one.node_id: one.name for one in cluster.machines}
        owners = ",".join(names.get(owner, "?") for owner in process.node.node_ids(job.owners))
        line = f"{process.machine.name}: state {job.state}, flags {job.flags}, owners {owners}, confirmed {job.confirmed:b},"
        line += f" due {job.due_ms - process.node.now_ms if job.due_ms else None},"
        line += f" wakes {job.wake_ms - process.node.now_ms}, attempts {job.attempts}"
        for peer in process.members.peers:
            data = process.node.jobs_of(peer)
            tables = ("in_flight", "offered", "held", "released")
            line += "".join(f", {table} {names.get(peer.node_id)}" for table in tables if job.id in getattr(data, table))
        lines.append(line)
    return lines


def check_answers(process: Process) -> None:
    """Check that no request waits longer than it may. Raises `Violation`."""
    world = process.cluster.world
    for connection in process.connections:
        if not connection.pending:
            continue
        request = connection.pending[0]
        limit_ms = _limit_ms(request.args)
        since_ms = max(request.started_ms, process.resumed_ms)
        if limit_ms >= 0 and world.now_ms - since_ms > limit_ms + GRACE_MS + 3 * process.pass_delay_ms:
            words = b" ".join(request.args[:6])[:100].decode("latin-1")
            raise Violation("L1 answers", f"{process.machine.name} has not answered {words} for {world.now_ms - since_ms} ms")


def _limit_ms(args: list[bytes]) -> int:
    """Return how long a command may take; -1: for ever."""
    name = args[0].upper()
    words = [arg.upper() for arg in args]
    if name == b"GETJOB":
        return int(args[words.index(b"TIMEOUT") + 1]) if b"TIMEOUT" in words else 0 if b"NOHANG" in words else -1
    if name == b"ADDJOB" and len(args) > 3:
        return int(args[3]) or -1
    return FORWARD_MS
