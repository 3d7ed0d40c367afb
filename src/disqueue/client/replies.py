"""Replies of the server, in RESP2 and RESP3 shape, as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from disqueue.client.values import ClusterNode, Hello, JobInfo, NodeInfo, PeekedJob, QueueInfo


def text(value: Any) -> str:
    """A name or id as str. Names may hold any bytes: what is not UTF-8 comes through and goes back unchanged."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def optional_text(value: Any) -> str | None:
    """As `text`; a nil stays None."""
    return None if value is None else text(value)


def raw(value: Any) -> Any:
    """The reply as it came."""
    return value


def ok(value: Any) -> None:
    """For commands whose only good reply is OK."""


def fields(reply: Any) -> dict[str, Any]:
    """A flat array of names and values (RESP2) or a map (RESP3) as a dict."""
    if isinstance(reply, Mapping):
        return {text(name): value for name, value in reply.items()}
    if len(reply) % 2:
        raise ValueError(f"names and values do not pair up in {reply!r}")
    return {text(reply[i]): reply[i + 1] for i in range(0, len(reply), 2)}


def names(value: Any) -> tuple[str, ...]:
    """An array (RESP2) or a set (RESP3) of names."""
    return tuple(text(item) for item in value or ())


def job_info(reply: Any) -> JobInfo | None:
    """SHOW, and each element of JSCAN … REPLY all."""
    if reply is None:
        return None
    found = fields(reply)
    return JobInfo(
        id=text(found.pop("id")),
        queue=optional_text(found.pop("queue", None)),
        state=text(found.pop("state")),
        replicate=found.pop("repl", 0),
        ttl_s=found.pop("ttl", 0),
        created_ns=found.pop("ctime", 0),
        delay_s=found.pop("delay", 0),
        retry_s=found.pop("retry", 0),
        nacks=found.pop("nacks", 0),
        additional_deliveries=found.pop("additional-deliveries", 0),
        nodes_delivered=names(found.pop("nodes-delivered", None)),
        nodes_confirmed=names(found.pop("nodes-confirmed", None)),
        next_requeue_ms=found.pop("next-requeue-within", None),
        next_awake_ms=found.pop("next-awake-within", None),
        body=found.pop("body", None),
        extra=found,
    )


def queue_info(reply: Any) -> QueueInfo | None:
    """QSTAT."""
    if reply is None:
        return None
    found = fields(reply)
    return QueueInfo(
        name=text(found.pop("name")),
        length=found.pop("len"),
        age_s=found.pop("age", 0),
        idle_s=found.pop("idle", 0),
        blocked=found.pop("blocked", 0),
        import_from=names(found.pop("import-from", None)),
        import_rate=found.pop("import-rate", 0),
        jobs_in=found.pop("jobs-in", 0),
        jobs_out=found.pop("jobs-out", 0),
        pause=text(found.pop("pause", b"none")),
        extra=found,
    )


def peeked(reply: Any) -> list[PeekedJob]:
    """QPEEK."""
    return [PeekedJob(text(job[1]), text(job[0]), job[2]) for job in reply or ()]


def hello(reply: Any) -> Hello:
    """HELLO without arguments."""
    nodes = tuple(NodeInfo(text(node[0]), text(node[1]), int(node[2]), int(node[3])) for node in reply[2:])
    return Hello(int(reply[0]), text(reply[1]), nodes)


def number_or_text(value: str) -> int | float | str:
    """A field of INFO as what it looks like."""
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def colon_lines(reply: Any) -> dict[str, int | float | str]:
    """INFO and CLUSTER INFO: `name:value` lines; headings and empty lines are left out."""
    lines = (line.partition(":") for line in text(reply).splitlines() if ":" in line and not line.startswith("#"))
    return {name: number_or_text(value) for name, _, value in lines}


def cluster_nodes(reply: Any) -> list[ClusterNode]:
    """CLUSTER NODES."""
    nodes = []
    for line in text(reply).splitlines():
        words = line.split(" ")
        if len(words) >= 6:
            flags = frozenset(words[2].split(",")) - {"noflags"}
            nodes.append(ClusterNode(words[0], words[1], flags, int(words[3]), int(words[4]), words[5]))
    return nodes


def pairs(reply: Any) -> dict[str, str]:
    """CONFIG GET."""
    return {name: text(value) for name, value in fields(reply).items()}


def page_of_names(reply: Any) -> tuple[int, list[str]]:
    """QSCAN, and JSCAN … REPLY id: the next cursor (0: done) and the names."""
    return int(reply[0]), [text(item) for item in reply[1]]


def page_of_jobs(reply: Any) -> tuple[int, list[JobInfo]]:
    """JSCAN … REPLY all."""
    jobs = (job_info(item) for item in reply[1])
    return int(reply[0]), [job for job in jobs if job is not None]
