"""One builder for each command: arguments in, a `Request` out. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeAlias, TypeVar

from disqueue.client import replies
from disqueue.client.durations import Duration, delay_until, milliseconds, seconds, whole_seconds
from disqueue.client.values import Hello, JobInfo, PeekedJob, QueueInfo

T = TypeVar("T")
Argument: TypeAlias = bytes | str | int | float


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A command, how its reply is read, and what may be done when no reply comes.

    `resend`: carrying it out twice does no harm, so it is sent again when a connection breaks.
    `block_s`: how long the server may keep it waiting; None is for ever.
    `spread`: a node that refuses it for lack of memory or disk is passed over, others are tried.
    `patience_s`: how long the reply may take beyond `block_s`; None is what the client is set to.
    """

    args: tuple[Argument, ...]
    parse: Callable[[Any], T]
    resend: bool = True
    block_s: float | None = 0.0
    spread: bool = False
    patience_s: float | None = None


def name_bytes(value: str | bytes, what: str) -> bytes:
    """A queue name or id as bytes."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes):
        return value
    raise TypeError(f"{what} must be str or bytes, not {type(value).__name__}")


def positive(value: int, name: str) -> int:
    """`value` if it is an int above 0."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be 1 or more, not {value}")
    return value


@dataclass(frozen=True, slots=True)
class AddOptions:
    """The options of ADDJOB, checked and in the server's units, without queue and body."""

    timeout_s: float | None
    words: tuple[Argument, ...]
    duplicates_ok: bool


def add_options(
    *,
    timeout: Duration | None,
    replicate: int | None,
    delay: Duration | None,
    at: datetime | None,
    retry: Duration | None,
    ttl: Duration | None,
    maxlen: int | None,
    asynchronous: bool,
    duplicates_ok: bool,
) -> AddOptions:
    """Check the options of an add. Raises TypeError or ValueError that name the argument."""
    if delay is not None and at is not None:
        raise ValueError("give delay or at, not both")
    timeout_s = None if timeout is None else seconds(timeout, "timeout")
    if timeout_s == 0:
        raise ValueError("timeout must be above 0 (None waits without limit, asynchronous=True does not wait)")
    words: list[Argument] = []
    if replicate is not None:
        words += "REPLICATE", positive(replicate, "replicate")
    delay_s = delay_until(at) if at is not None else whole_seconds(delay, "delay") if delay is not None else 0
    if delay_s:
        words += "DELAY", delay_s
    if retry is not None:
        words += "RETRY", whole_seconds(retry, "retry")
    if ttl is not None:
        words += "TTL", positive(whole_seconds(ttl, "ttl"), "ttl")
    if maxlen is not None:
        words += "MAXLEN", positive(maxlen, "maxlen")
    if asynchronous:
        words.append("ASYNC")
    return AddOptions(timeout_s, tuple(words), duplicates_ok)


def add(queue: str | bytes, body: bytes, options: AddOptions) -> Request[str]:
    """ADDJOB."""
    timeout_ms = 0 if options.timeout_s is None else milliseconds(options.timeout_s)
    args = ("ADDJOB", name_bytes(queue, "queue"), body, timeout_ms, *options.words)
    return Request(args, replies.text, resend=options.duplicates_ok, block_s=options.timeout_s, spread=True)


def queue_names(queues: Sequence[str | bytes]) -> tuple[bytes, ...]:
    """The names of queues, at least one."""
    if not queues:
        raise ValueError("name at least one queue")
    return tuple(name_bytes(queue, "queue") for queue in queues)


def get(queues: tuple[bytes, ...], count: int, wait_s: float) -> Request[list[list[Any]]]:
    """GETJOB; `wait_s` 0 does not wait. Not resent by itself: who asks knows how much of the wait is left."""
    wait: tuple[Argument, ...] = ("TIMEOUT", milliseconds(wait_s)) if wait_s > 0 else ("NOHANG",)
    args = ("GETJOB", *wait, "COUNT", positive(count, "count"), "WITHCOUNTERS", "FROM", *queues)
    return Request(args, lambda reply: reply or [], resend=False, block_s=wait_s)


def for_jobs(command: str, ids: Iterable[str | bytes]) -> Request[int]:
    """ACKJOB, FASTACK, DELJOB, NACK, ENQUEUE, DEQUEUE: the reply counts the jobs that it held for."""
    return Request((command, *(name_bytes(job_id, "job id") for job_id in ids)), int)


def working(job_id: str | bytes, patience_s: float | None = None) -> Request[int]:
    """WORKING: seconds until the next delivery."""
    return Request(("WORKING", name_bytes(job_id, "job id")), int, patience_s=patience_s)


def show(job_id: str | bytes) -> Request[JobInfo | None]:
    """SHOW."""
    return Request(("SHOW", name_bytes(job_id, "job id")), replies.job_info)


def queue_length(queue: str | bytes) -> Request[int]:
    """QLEN."""
    return Request(("QLEN", name_bytes(queue, "queue")), int)


def queue_stat(queue: str | bytes) -> Request[QueueInfo | None]:
    """QSTAT."""
    return Request(("QSTAT", name_bytes(queue, "queue")), replies.queue_info)


def peek(queue: str | bytes, count: int, newest: bool) -> Request[list[PeekedJob]]:
    """QPEEK."""
    wanted = positive(count, "count")
    return Request(("QPEEK", name_bytes(queue, "queue"), -wanted if newest else wanted), replies.peeked)


def scan_queues(
    cursor: int, count: int, min_length: int | None, max_length: int | None, min_import_rate: int | None
) -> Request[tuple[int, list[str]]]:
    """QSCAN, one page."""
    args: list[Argument] = ["QSCAN", cursor, "COUNT", positive(count, "count")]
    for word, value in (("MINLEN", min_length), ("MAXLEN", max_length), ("IMPORTRATE", min_import_rate)):
        if value is not None:
            args += word, value
    return Request(tuple(args), replies.page_of_names)


def scan_words(queue: str | bytes | None, states: Iterable[str], count: int) -> tuple[Argument, ...]:
    """The options of JSCAN that stay the same from page to page."""
    args: list[Argument] = ["COUNT", positive(count, "count")]
    if queue is not None:
        args += "QUEUE", name_bytes(queue, "queue")
    for state in states:
        args += "STATE", state
    return tuple(args)


def scan_job_ids(cursor: int, words: tuple[Argument, ...]) -> Request[tuple[int, list[str]]]:
    """JSCAN … REPLY id, one page."""
    return Request(("JSCAN", cursor, *words, "REPLY", "id"), replies.page_of_names)


def scan_jobs(cursor: int, words: tuple[Argument, ...]) -> Request[tuple[int, list[JobInfo]]]:
    """JSCAN … REPLY all, one page."""
    return Request(("JSCAN", cursor, *words, "REPLY", "all"), replies.page_of_jobs)


PAUSE_WORDS = ("in", "out", "all", "none")


def pause(queue: str | bytes, state: str | None, everywhere: bool) -> Request[str]:
    """PAUSE: set the state, or only ask for it when `state` is None."""
    if state is not None and state not in PAUSE_WORDS:
        raise ValueError(f"state must be one of {', '.join(PAUSE_WORDS)}, not {state!r}")
    words = (state or "state", *(("bcast",) if everywhere else ()))
    return Request(("PAUSE", name_bytes(queue, "queue"), *words), replies.text)


def hello(patience_s: float | None = None) -> Request[Hello]:
    """HELLO."""
    return Request(("HELLO",), replies.hello, patience_s=patience_s)


def ping() -> Request[None]:
    """PING."""
    return Request(("PING",), replies.ok)


def info(section: str | None) -> Request[dict[str, int | float | str]]:
    """INFO."""
    return Request(("INFO", *((section,) if section is not None else ())), replies.colon_lines)


CLUSTER_PARSERS: dict[str, Callable[[Any], Any]] = {"NODES": replies.cluster_nodes, "INFO": replies.colon_lines}


def cluster(subcommand: str, args: Iterable[Argument]) -> Request[Any]:
    """CLUSTER: NODES and INFO as values, everything else as text."""
    return Request(("CLUSTER", subcommand, *args), CLUSTER_PARSERS.get(subcommand.upper(), replies.text))


def config_get(pattern: str) -> Request[dict[str, str]]:
    """CONFIG GET."""
    return Request(("CONFIG", "GET", pattern), replies.pairs)


def config_set(name: str, value: Argument) -> Request[None]:
    """CONFIG SET."""
    return Request(("CONFIG", "SET", name, value), replies.ok)


def raw(args: Sequence[Argument], *, resend: bool, block: Duration | None) -> Request[Any]:
    """Any command, its reply as it comes."""
    if not args:
        raise ValueError("give a command")
    return Request(tuple(args), replies.raw, resend=resend, block_s=None if block is None else seconds(block, "block"))
