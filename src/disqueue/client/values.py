"""What commands return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

JobState: TypeAlias = Literal["wait-repl", "active", "queued", "acked"]
PauseState: TypeAlias = Literal["in", "out", "all", "none"]


@dataclass(frozen=True, slots=True)
class PeekedJob:
    """A queued job that was looked at, not taken."""

    id: str
    queue: str
    body: bytes


@dataclass(frozen=True, slots=True)
class JobInfo:
    """A job as a node knows it (SHOW)."""

    id: str
    queue: str | None
    state: str
    replicate: int
    ttl_s: int
    """What is left of its time to live."""
    created_ns: int
    delay_s: int
    retry_s: int
    nacks: int
    additional_deliveries: int
    nodes_delivered: tuple[str, ...]
    nodes_confirmed: tuple[str, ...]
    next_requeue_ms: int | None
    """None: it will not be queued again by itself."""
    next_awake_ms: int | None
    body: bytes | None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields that this version of the client does not know."""

    @property
    def created(self) -> datetime:
        """When the job was added."""
        return datetime.fromtimestamp(self.created_ns // 1_000_000 / 1000, UTC)


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """A queue on one node (QSTAT)."""

    name: str
    length: int
    age_s: int
    idle_s: int
    blocked: int
    import_from: tuple[str, ...]
    import_rate: int
    jobs_in: int
    jobs_out: int
    pause: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node as another one sees it (HELLO). A lower priority is better; 100 means failed or leaving."""

    id: str
    host: str
    port: int
    priority: int


@dataclass(frozen=True, slots=True)
class Hello:
    """A node's own id, and all the nodes it knows, itself included."""

    version: int
    node_id: str
    nodes: tuple[NodeInfo, ...]


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One line of CLUSTER NODES."""

    id: str
    address: str
    flags: frozenset[str]
    ping_sent_ms: int
    pong_received_ms: int
    link: str
