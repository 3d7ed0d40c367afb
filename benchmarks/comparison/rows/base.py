"""What a row is: one kind of work, who does it, what is measured, and what is wanted of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from comparison.peers.base import Peer
from comparison.peers.found import Peers
from disqueue.cli.bench_throughput import Measured, Progress


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `remark`: what has to be known to read it right."""

    work: str
    unit: str
    value: float
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """What is wanted: the figure `of` a form of ours, alone or over that of another, is at most (or at least) `limit`."""

    work: str
    limit: float
    over: str = ""
    of: str = "Disqueue"
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture of a row. `kind`: `bars` of works by peer, or `lines` of values over the number that begins each work."""

    name: str
    title: str
    works: Sequence[str]
    kind: str = "bars"
    logarithmic: bool = False
    axis: str = ""
    """What the numbers of `lines` are."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work a run does."""

    jobs: int
    held: int
    most_held: int


@dataclass(slots=True)
class Context:
    """What a row needs to run."""

    peers: Peers
    sizes: Sizes
    tell: Progress
    shared: dict[str, object] = field(default_factory=dict)


class Row(ABC):
    """One kind of work. `rounds` 0: as many as were asked for. `long`: other programs must not wait for a turn."""

    key: str
    title: str
    rounds = 0
    long = False
    targets: Sequence[Target] = ()
    plots: Sequence[Plot] = ()

    @abstractmethod
    def contenders(self, peers: Peers) -> Sequence[Peer]:
        """Who does the work, in turn."""

    @abstractmethod
    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        """Do the work once with one of them. Raises ServerFailed, ConnectionFailed, ReplyError."""


BUSY_SHARE = 0.9


def generator_remark(measured: Measured) -> str:
    """Whether the load generator was what limited the rate, and how that is known."""
    usage = measured.usage
    if usage.own_share >= BUSY_SHARE:
        return "the load generator was the limit: it kept a processor busy"
    if usage.own_s > usage.server_s:
        return "the load generator was the limit: it used more CPU a job than the servers"
    return ""
