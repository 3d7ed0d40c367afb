"""The demo's producers and workers: threads with connections of their own."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from disqueue.cli.connection import Connection, ConnectionFailed, Target
from disqueue.cli.demo_ledger import Kind, Ledger
from disqueue.cli.reply import ErrorReply, Reply

ADD_TIMEOUT_MS = 5000
GET_TIMEOUT_MS = 200  # so that a worker looks at the stop event often enough
ANSWER_TIMEOUT_S = 10.0
_JOIN_S = 5.0
_RETRY_ADD = 20  # an ADDJOB refused while a node is being lost is tried again, this often at most
_RETRY_ADD_S = 0.1


class Crew:
    """All threads of the demo. The first failure of any of them is kept and stops all."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.stop = threading.Event()
        self.failure = ""
        self._threads: list[threading.Thread] = []

    def start(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._guarded, args=(name, work), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except (ConnectionFailed, ErrorReply) as error:
            if not self.stop.is_set():
                self.failure = self.failure or f"{name}: {error}"
                self.stop.set()

    def join(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(_JOIN_S)


@contextlib.contextmanager
def connected(target: Target) -> Iterator[Connection]:
    connection = Connection(target)
    try:
        yield connection
    finally:
        connection.close()


def produce(crew: Crew, target: Target, kinds: Sequence[Kind], day_s: float) -> None:
    """Send all jobs, mixed and spread over the day."""
    plan = [kind for kind in kinds for _ in range(kind.jobs)]
    random.Random(7).shuffle(plan)  # the same day each time
    started_s = time.monotonic()
    with connected(target) as connection:
        for number, kind in enumerate(plan):
            pause_s = started_s + day_s * number / len(plan) - time.monotonic()
            if pause_s > 0 and crew.stop.wait(pause_s):
                return
            sent_s = time.monotonic()
            job_id = _add(crew, connection, kind, f"{kind.queue} {number}")
            if not job_id:
                return
            crew.ledger.sent(job_id, kind, sent_s)
    crew.ledger.tell(f"all {len(plan)} jobs are sent")


def _add(crew: Crew, connection: Connection, kind: Kind, body: str) -> str:
    """The job's id. NOREPL is no loss but a clear answer: the producer tries again."""
    for attempt in range(_RETRY_ADD):
        try:
            reply = connection.call("ADDJOB", kind.queue, body, ADD_TIMEOUT_MS, *kind.options, timeout_s=ANSWER_TIMEOUT_S)
        except ErrorReply as error:
            if error.prefix != "NOREPL" or attempt == _RETRY_ADD - 1:
                raise
            if attempt == 0:
                crew.ledger.tell(f"a producer is told that there are not enough copies, and tries again: {error}")
            if crew.stop.wait(_RETRY_ADD_S):
                return ""
        else:
            return reply.decode() if isinstance(reply, bytes) else ""
    return ""


class Worker:
    """Takes jobs of one kind. One worker of a kind is the clumsy one: it dies, or refuses, as the kind says."""

    def __init__(self, crew: Crew, target: Target, kind: Kind, *, clumsy: bool) -> None:
        self._crew = crew
        self._target = target
        self._kind = kind
        self._abandon = kind.abandon if clumsy else 0
        self._refuse = kind.refuse if clumsy else 0

    def run(self) -> None:
        while not self._crew.stop.is_set():
            with connected(self._target) as connection:
                self._serve(connection)

    def _serve(self, connection: Connection) -> None:
        """Until the day is over, or until this worker dies; `run` lets another one take its place then."""
        while not self._crew.stop.is_set():
            reply = connection.call(
                "GETJOB", "TIMEOUT", GET_TIMEOUT_MS, "WITHCOUNTERS", "FROM", self._kind.queue, timeout_s=ANSWER_TIMEOUT_S
            )
            for job in reply if isinstance(reply, list) else ():
                if not self._handle(connection, job):
                    return

    def _handle(self, connection: Connection, job: Reply) -> bool:
        """Do one job; False when the worker dies over it."""
        if not isinstance(job, list) or len(job) < 7 or not isinstance(job[1], bytes):
            raise ConnectionFailed(f"GETJOB answered {job!r}")
        job_id = job[1].decode()
        nacks, additional = (count if isinstance(count, int) else 0 for count in (job[4], job[6]))
        ledger = self._crew.ledger
        entry = ledger.delivered(job_id, self._kind, again=bool(nacks or additional))
        if self._abandon and entry.deliveries == 1:
            self._abandon -= 1
            entry.abandoned = True
            ledger.tell(f"a {self._kind.queue} worker dies with job {job_id[:20]}… in its hands")
            return False
        if self._refuse and entry.deliveries == 1:
            self._refuse -= 1
            entry.refused = True
            connection.call("NACK", job_id, timeout_s=ANSWER_TIMEOUT_S)
            ledger.tell(f"a {self._kind.queue} worker refuses job {job_id[:20]}… (NACK)")
            return True
        if entry.interrupted:
            ledger.tell(f"job {job_id[:20]}… is back: nacks {nacks}, additional-deliveries {additional}")
        self._crew.stop.wait(self._kind.work_ms / 1000)
        connection.call("ACKJOB", job_id, timeout_s=ANSWER_TIMEOUT_S)
        ledger.acked(entry)
        return True
