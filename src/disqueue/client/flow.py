"""How a command gets done: which node, what to do when that fails, when to give up. No I/O.

A flow is a generator. It yields what it needs done (`Exchange`, `Pause`), is sent the result, and returns its value.
Two small drivers run it, one with threads and one with asyncio, so that both clients decide the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from disqueue.client import requests
from disqueue.client.endpoints import Endpoint
from disqueue.client.errors import (
    AuthenticationError,
    BatchError,
    DisqueueError,
    JournalError,
    LoadingError,
    MalformedReplyError,
    NodeLeavingError,
    NoNodeError,
    NotReplicatedError,
    OutOfMemoryError,
    ReplyError,
    StoppedError,
    UnknownOutcomeError,
)
from disqueue.client.requests import Request
from disqueue.client.router import Node, Route, Router

logger = logging.getLogger("disqueue.client")

T = TypeVar("T")


class StopFlag(Protocol):
    """`threading.Event` or `asyncio.Event`."""

    def is_set(self) -> bool:
        """Whether a stop was asked for."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Send these to that node, and read one reply each: a value or a `ReplyError`."""

    endpoint: Endpoint
    requests: Sequence[Request[Any]]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait, but not beyond a stop."""

    seconds: float
    stop: StopFlag | None


Effect: TypeAlias = Exchange | Pause
Flow: TypeAlias = Generator[Effect, Any, T]


class NotSentError(Exception):
    """Thrown into a flow: the node was never told, whatever it was."""


class BrokenError(Exception):
    """Thrown into a flow: the connection broke after sending; `replies` are those that came before."""

    def __init__(self, reason: str, replies: list[Any]) -> None:
        super().__init__(reason)
        self.replies = replies


# Refusals after which another node is the answer, whatever the command.
ELSEWHERE = (NodeLeavingError, LoadingError)
# The same for adds; and these ends of NOREPL, which speak of the node alone and not of the cluster.
SPREAD = (OutOfMemoryError, JournalError)
OWN_TROUBLE = ("I'm leaving the cluster", "I'm out of memory")

# A GETJOB that waits long is sent in slices: a node that hangs is noticed after one, not after hours.
MAX_WAIT_S = 30.0

# A batch is sent in portions, so that neither side has to buffer much.
BATCH_REQUESTS = 500
BATCH_BYTES = 1_000_000

_PENDING: Any = object()


def may_fit_elsewhere(reply: ReplyError) -> bool:
    """Whether another node may take a job that this one refused."""
    return isinstance(reply, SPREAD) or (isinstance(reply, NotReplicatedError) and reply.text.endswith(OWN_TROUBLE))


def parse_reply(request: Request[T], reply: Any) -> T:
    """The value of a reply. Raises MalformedReplyError for what is no reply to this request."""
    try:
        return request.parse(reply)
    except (TypeError, ValueError, LookupError) as error:
        raise MalformedReplyError(f"the reply to {request.args[0]!s} makes no sense: {reply!r} ({error})") from error


class Flows:
    """The flows of one client."""

    def __init__(self, router: Router, retry_for: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.router = router
        self.retry_for = retry_for
        self.clock = clock

    def one(self, request: Request[T], route: Route, retry_for: float | None = None) -> Flow[T]:
        """Carry out one request. Raises its error."""
        (result,) = yield from self.batch([request], route, retry_for)
        if isinstance(result, Exception):
            raise result
        parsed: T = result
        return parsed

    def batch(
        self, batch: Sequence[Request[Any]], route: Route, retry_for: float | None = None, stop: StopFlag | None = None
    ) -> Flow[list[Any]]:
        """Carry out requests, pipelined. Returns one value or `DisqueueError` each, in order; raises none of these.

        Raises AuthenticationError, which no other node or time would mend, and StoppedError.
        """
        work = _Work(batch, self.retry_for if retry_for is None else retry_for)
        while work.pending:
            node = yield from self._settle(work, route, stop)
            if node is None:
                break
            portion = work.portion()
            try:
                replies = yield Exchange(node.endpoint, [batch[index] for index in portion])
            except NotSentError as error:
                self._failed(node, work, str(error))
                self._give_up_if_strict(route, work)
            except BrokenError as error:
                self._failed(node, work, str(error))
                self._sort(node, work, portion, error.replies)
                self._unanswered(node, work, portion[len(error.replies) :], str(error))
                self._give_up_if_strict(route, work)
            else:
                if not self._sort(node, work, portion, replies):
                    self.router.succeeded(node)
        return work.results

    def _settle(self, work: _Work, route: Route, stop: StopFlag | None) -> Flow[Node | None]:
        """A node that may be asked now; None when time is up and every pending request has its error."""
        while True:
            if stop is not None and stop.is_set():
                raise StoppedError("stopped while looking for a node")
            now = self.clock()
            left = work.time_left(now)
            if left <= 0:
                work.fail_pending()
                return None
            choice = self.router.choose(route, now)
            if isinstance(choice, float):
                work.trouble(now)
                yield Pause(min(choice, left), stop)
                continue
            if not self.router.wants_hello(choice, now):
                return choice
            yield from self._introduce(choice, work)
            self._give_up_if_strict(route, work)
            if not work.pending:
                return None

    def _introduce(self, node: Node, work: _Work) -> Flow[None]:
        """Ask a node for its cluster."""
        request = requests.hello(work.batch[0].patience_s)
        try:
            (reply,) = yield Exchange(node.endpoint, [request])
        except (NotSentError, BrokenError) as error:
            self._failed(node, work, str(error))
            return
        if isinstance(reply, AuthenticationError):
            raise reply
        if isinstance(reply, LoadingError):
            self._failed(node, work, str(reply))
        elif isinstance(reply, ReplyError):
            raise reply
        else:
            self.router.succeeded(node)
            self.router.heard(node, parse_reply(request, reply), self.clock())

    def _failed(self, node: Node, work: _Work, reason: str) -> None:
        logger.info("node %s failed: %s", node.endpoint, reason)
        now = self.clock()
        self.router.failed(node, now)
        work.trouble(now)
        work.reasons[str(node.endpoint)] = reason

    def _give_up_if_strict(self, route: Route, work: _Work) -> None:
        if route.strict and work.pending:
            work.fail_pending()

    def _sort(self, node: Node, work: _Work, portion: list[int], replies: list[Any]) -> bool:
        """Keep what was answered; leave pending what another node may do better. True if there was such."""
        work.tried.add(node.endpoint)
        refused: dict[int, ReplyError] = {}
        for index, reply in zip(portion, replies, strict=False):
            request = work.batch[index]
            if not isinstance(reply, ReplyError):
                work.results[index] = parse_reply(request, reply)
            elif isinstance(reply, AuthenticationError):
                raise reply
            elif isinstance(reply, ELSEWHERE) or (request.spread and may_fit_elsewhere(reply)):
                refused[index] = reply
            else:
                work.results[index] = reply
        if refused:
            self._refused(node, work, refused)
        work.keep_pending()
        return bool(refused)

    def _refused(self, node: Node, work: _Work, refused: dict[int, ReplyError]) -> None:
        """The node took some requests not, for reasons of its own: others first."""
        now = self.clock()
        work.trouble(now)
        work.refusals |= refused
        work.reasons[str(node.endpoint)] = text = str(next(iter(refused.values())))
        logger.info("node %s refused a command, others first: %s", node.endpoint, text)
        self.router.avoid(node, now)
        if self.router.others_left(work.tried, now):
            return
        # All have refused. What may pass is tried again, but asking at once would only make a storm of it.
        self.router.failed(node, now)
        for index, reply in refused.items():
            if not isinstance(reply, ELSEWHERE):
                work.results[index] = reply

    def _unanswered(self, node: Node, work: _Work, portion: list[int], reason: str) -> None:
        for index in portion:
            if not work.batch[index].resend:
                work.results[index] = UnknownOutcomeError(
                    f"{work.batch[index].args[0]!s} was sent to {node.endpoint}, but the reply never came ({reason}); "
                    "it may have been carried out or not"
                )
        work.keep_pending()

    # -- made of these

    def get(
        self,
        queues: tuple[bytes, ...],
        count: int,
        timeout: float | None,
        route: Route,
        stop: StopFlag | None = None,
        retry_for: float | None = None,
    ) -> Flow[list[Any]]:
        """GETJOB until jobs come, the time is up (None: never) or a stop: raw jobs, maybe none."""
        deadline = None if timeout is None else self.clock() + timeout
        while True:
            left = MAX_WAIT_S if deadline is None else max(0.0, deadline - self.clock())
            request = requests.get(queues, count, min(left, MAX_WAIT_S))
            (result,) = yield from self.batch([request], route, retry_for, stop)
            lost = isinstance(result, UnknownOutcomeError)
            if isinstance(result, Exception) and not lost:
                raise result
            if not lost and (result or left == 0 or (deadline is not None and self.clock() >= deadline)):
                jobs: list[Any] = result
                return jobs
            if stop is not None and stop.is_set():
                return []

    def add_many(self, batch: Sequence[Request[str]], route: Route) -> Flow[list[str]]:
        """Add jobs, pipelined. Raises BatchError if any was not added."""
        results = yield from self.batch(batch, route)
        if any(isinstance(result, DisqueueError) for result in results):
            raise BatchError(results)
        return results

    def by_node(self, command: str, jobs: Sequence[tuple[str | bytes, Route]]) -> Flow[int]:
        """A command for jobs, each at the node that it came from. Returns for how many it held."""
        groups: dict[int, tuple[Route, list[str | bytes]]] = {}
        for job_id, route in jobs:
            groups.setdefault(id(route.node), (route, []))[1].append(job_id)
        total = 0
        for route, ids in groups.values():
            total += yield from self.one(requests.for_jobs(command, ids), route)
        return total


class _Work:
    """The state of one batch."""

    def __init__(self, batch: Sequence[Request[Any]], retry_for: float) -> None:
        self.batch = batch
        self.retry_for = retry_for
        self.trouble_since: float | None = None
        self.results: list[Any] = [_PENDING] * len(batch)
        self.pending = list(range(len(batch)))
        self.refusals: dict[int, ReplyError] = {}
        self.reasons: dict[str, str] = {}
        self.tried: set[Endpoint] = set()

    def trouble(self, now: float) -> None:
        """Something failed: from the first time on the clock runs. Time that a command blocks as asked is none of it."""
        if self.trouble_since is None:
            self.trouble_since = now

    def time_left(self, now: float) -> float:
        """Seconds in which to go on trying."""
        return 1.0 if self.trouble_since is None else self.trouble_since + self.retry_for - now

    def portion(self) -> list[int]:
        """The next pending requests that go out together."""
        if len(self.pending) == 1:
            return self.pending
        size = 0
        portion: list[int] = []
        for index in self.pending[:BATCH_REQUESTS]:
            size += sum(len(argument) for argument in self.batch[index].args if isinstance(argument, (bytes, str)))
            if portion and size > BATCH_BYTES:
                break
            portion.append(index)
        return portion

    def keep_pending(self) -> None:
        """After results came: only what has none is pending."""
        self.pending = [index for index in self.pending if self.results[index] is _PENDING]

    def fail_pending(self) -> None:
        """Time is up: the refusal, where there was one, says more than that no node was there."""
        for index in self.pending:
            self.results[index] = self.refusals.get(index) or NoNodeError(self.reasons)
        self.pending = []
