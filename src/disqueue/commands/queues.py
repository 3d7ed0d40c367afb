"""Commands about queues, and the scans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from disqueue.commands.jobs import SYNTAX_ERROR, write_fields
from disqueue.commands.numbers import INVALID, parse_integer
from disqueue.commands.scan import ScanOptions, parse_scan
from disqueue.commands.table import Command
from disqueue.core.job import DELAYED, DELETED, PLACEHOLDER, STATE_NAMES, Job
from disqueue.core.queue import PAUSE_NAMES, PAUSED_IN, PAUSED_OUT, Queue

if TYPE_CHECKING:
    from disqueue.commands.broker import Broker
    from disqueue.core.client import Client
    from disqueue.core.node import Node

NOT_INTEGER = b"ERR value is not an integer or out of range"
MAX_PEEK = 1_000_000
STATES = frozenset(STATE_NAMES[:4]) | {b"delayed"}
SCAN_CHUNK = 256


def qlen(broker: Broker, client: Client, args: list[bytes]) -> None:
    """QLEN queue"""
    queue = broker.node.find_queue(args[1])
    client.reply.integer(queue.jobs.count if queue is not None else 0)


def qstat(broker: Broker, client: Client, args: list[bytes]) -> None:
    """QSTAT queue"""
    node = broker.node
    queue = node.find_queue(args[1])
    if queue is None:
        client.reply.null_array()
        return
    demand: Any = queue.demand
    sources = [peer.node_id for peer in demand.recent_sources(node.now_ms)] if demand is not None else []
    fields: list[tuple[bytes, object]] = [
        (b"name", queue.name),
        (b"len", queue.jobs.count),
        (b"age", (node.now_ms - queue.created_ms) // 1000),
        (b"idle", (node.now_ms - queue.used_ms) // 1000),
        (b"blocked", len(queue.waiters)),
        (b"import-from", sources),
        (b"import-rate", demand.import_rate(node.now_ms) if demand is not None else 0),
        (b"jobs-in", queue.jobs_in),
        (b"jobs-out", queue.jobs_out),
        (b"pause", PAUSE_NAMES[queue.pause]),
        (b"delayed", queue.delayed_jobs),
        (b"added", queue.added),
        (b"imported", queue.imported),
        (b"requeued", queue.requeued),
        (b"delivered", queue.delivered),
        (b"acked", queue.acked),
        (b"exported", queue.exported),
        (b"expired", queue.expired),
    ]
    write_fields(client.reply, fields)


def qpeek(broker: Broker, client: Client, args: list[bytes]) -> None:
    """QPEEK queue count [OFFSET n]"""
    count = parse_integer(args[2])
    offset = 0
    if len(args) == 5 and args[3].upper() == b"OFFSET":
        offset = parse_integer(args[4])
    elif len(args) != 3:
        client.reply.error(SYNTAX_ERROR)
        return
    if count == INVALID or offset < 0:
        client.reply.error(NOT_INTEGER)
        return
    queue = broker.node.find_queue(args[1])
    jobs: list[Job] = []
    if queue is not None and count != 0:
        jobs = queue.jobs.page(offset, min(abs(count), MAX_PEEK), count < 0)
    client.reply.array(len(jobs))
    for job in jobs:
        client.reply.job(args[1], job.id, job.body)


def pause(broker: Broker, client: Client, args: list[bytes]) -> None:
    """PAUSE queue option [option ...]"""
    node = broker.node
    state = 0
    changed = False
    broadcast = False
    for argument in args[2:]:
        word = argument.upper()
        if word == b"NONE":
            state = 0
            changed = True
        elif word in (b"IN", b"OUT", b"ALL"):
            state |= {b"IN": PAUSED_IN, b"OUT": PAUSED_OUT, b"ALL": PAUSED_IN | PAUSED_OUT}[word]
            changed = True
        elif word == b"BCAST":
            broadcast = True
        elif word != b"STATE":
            client.reply.error(SYNTAX_ERROR)
            return
    name = args[1]
    if not name or len(name) > node.settings.max_queue_name_bytes:
        limit = node.settings.max_queue_name_bytes
        client.reply.error(b"ERR a queue name has between 1 and %d bytes (max-queue-name-bytes)" % limit)
        return
    queue = node.find_queue(name)
    if not changed:
        state = queue.pause if queue is not None else 0
    if changed or broadcast:
        node.set_pause(name, state, broadcast)
    client.reply.status(PAUSE_NAMES[state])


# -- QSCAN


def qscan(broker: Broker, client: Client, args: list[bytes]) -> None:
    """QSCAN [cursor] [COUNT n] [BUSYLOOP] [MINLEN n] [MAXLEN n] [IMPORTRATE n]"""
    options = parse_scan(args[1:], frozenset((b"MINLEN", b"MAXLEN", b"IMPORTRATE")))
    if isinstance(options, bytes):
        client.reply.error(options)
        return
    limits = {word: parse_integer(values[-1]) for word, values in options.values.items()}
    if INVALID in limits.values():
        client.reply.error(NOT_INTEGER)
        return
    queues, cursor = _scan_queues(broker.node, options, limits)
    client.reply.array(2)
    client.reply.bulk(b"%d" % cursor)
    client.reply.bulk_array([queue.name for queue in queues])


def _scan_queues(node: Node, options: ScanOptions, limits: dict[bytes, int]) -> tuple[list[Queue], int]:
    """Return the next matching queues and the next cursor."""
    if options.all_at_once:
        return [queue for queue in node.queues.values() if queue.visible and _queue_matches(node, queue, limits)], 0
    cursor = options.cursor
    found: list[Queue] = []
    steps = options.steps()
    while True:
        page, cursor = node.scanned_queues.page(cursor, max(options.count - len(found), 1))
        found.extend(queue for queue in page if _queue_matches(node, queue, limits))
        steps -= len(page)
        if cursor == 0 or len(found) >= options.count or steps <= 0:
            return found, cursor


def _queue_matches(node: Node, queue: Queue, limits: dict[bytes, int]) -> bool:
    length = queue.jobs.count
    minimum = limits.get(b"MINLEN", -1)
    maximum = limits.get(b"MAXLEN", -1)
    rate = limits.get(b"IMPORTRATE", -1)
    if (minimum >= 0 and length < minimum) or (maximum >= 0 and length > maximum):
        return False
    if rate < 0:
        return True
    demand: Any = queue.demand
    return (demand.import_rate(node.now_ms) if demand is not None else 0) >= rate


# -- JSCAN


def jscan(broker: Broker, client: Client, args: list[bytes]) -> None:
    """JSCAN [cursor] [COUNT n] [BUSYLOOP] [QUEUE q ...] [STATE s ...] [REPLY all|id]"""
    options = parse_scan(args[1:], frozenset((b"QUEUE", b"STATE", b"REPLY")))
    if isinstance(options, bytes):
        client.reply.error(options)
        return
    states = frozenset(state.lower() for state in options.values.get(b"STATE", []))
    if not states <= STATES:
        client.reply.error(b"ERR Invalid job state name")
        return
    style = options.values.get(b"REPLY", [b"id"])[-1].lower()
    if style not in (b"id", b"all"):
        client.reply.error(b"ERR Invalid REPLY type, try ID or ALL")
        return
    jobs, cursor = _scan_jobs(broker.node, options, states, frozenset(options.values.get(b"QUEUE", [])))
    client.reply.array(2)
    client.reply.bulk(b"%d" % cursor)
    client.reply.array(len(jobs))
    for job in jobs:
        if style == b"id":
            client.reply.status(job.id)
        else:
            write_fields(client.reply, broker.node.job_fields(job))


def _scan_jobs(node: Node, options: ScanOptions, states: frozenset[bytes], queues: frozenset[bytes]) -> tuple[list[Job], int]:
    cursor = options.cursor
    found: list[Job] = []
    steps = options.steps()
    while True:
        chunk = SCAN_CHUNK if options.all_at_once else min(SCAN_CHUNK, max(options.count - len(found), 1))
        page, cursor = node.jobs.scan(cursor, chunk)
        found.extend(job for job in page if _job_matches(job, states, queues))
        steps -= len(page)
        if cursor == 0 or (not options.all_at_once and (len(found) >= options.count or steps <= 0)):
            return found, cursor


def _job_matches(job: Job, states: frozenset[bytes], queues: frozenset[bytes]) -> bool:
    if job.flags & (PLACEHOLDER | DELETED):
        return False
    if queues and job.queue.name not in queues:
        return False
    if not states or STATE_NAMES[job.state] in states:
        return True
    return b"delayed" in states and bool(job.flags & DELAYED)


COMMANDS = (
    Command(b"qlen", 2, ("readonly", "fast"), "Tell how many jobs wait in a queue on this node", "queues", "queue", qlen),
    Command(
        b"qpeek",
        -3,
        ("readonly",),
        "Look at jobs of a queue without taking them; a negative count shows the newest first",
        "queues",
        "queue count [OFFSET n]",
        qpeek,
    ),
    Command(b"qstat", 2, ("readonly", "fast"), "Show figures of a queue", "queues", "queue", qstat),
    Command(
        b"qscan",
        -1,
        ("readonly",),
        "Go through the queues page by page",
        "queues",
        "[cursor] [COUNT n] [BUSYLOOP] [MINLEN n] [MAXLEN n] [IMPORTRATE n]",
        qscan,
    ),
    Command(
        b"pause",
        -3,
        ("readonly", "fast"),
        "Stop a queue from taking jobs (in), giving them (out) or both; BCAST does it on all nodes",
        "queues",
        "queue [none|in|out|all|state|bcast ...]",
        pause,
    ),
    Command(
        b"jscan",
        -1,
        ("readonly",),
        "Go through the jobs of this node page by page",
        "jobs",
        "[cursor] [COUNT n] [BUSYLOOP] [QUEUE q ...] [STATE s ...] [REPLY all|id]",
        jscan,
    ),
)
