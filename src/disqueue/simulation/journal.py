"""The journal of a simulated process: the real one, on a disk and with a thread that the dice decide about."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from disqueue.core.journal_port import JournalPort
from disqueue.journal.errors import JournalError
from disqueue.journal.recorder import Recorder
from disqueue.journal.repair import Repair
from disqueue.journal.runtime import JournalRuntime, JournalSettings
from disqueue.simulation.ledger import Violation

if TYPE_CHECKING:
    from disqueue.core.job import Job
    from disqueue.core.node import Node
    from disqueue.core.queue import Queue
    from disqueue.simulation.process import Process

Done = Callable[[BaseException | None], None]


class SimulatedExecutor:
    """A thread in virtual time. A task happens at its begin or at its end, and the process hears of it after the disk's time."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._dice = process.cluster.world.random(f"journal {process.machine.name} {process.incarnation}")
        self._waiting: deque[tuple[Callable[[], None], Done]] = deque()

    def submit(self, task: Callable[[], None], done: Done) -> None:
        if self._dice.random() < 0.5:
            result = _result(task)
            self._waiting.append((lambda: _raise(result), done))
        else:
            self._waiting.append((task, done))
        delay_ms = self._dice.randrange(self._process.machine.disk.sync_ms + 1)
        self._process.cluster.world.after(delay_ms, lambda: self._process.post(self._finish))

    def wait(self) -> None:
        while self._waiting:
            self._finish()

    def _finish(self) -> None:
        if self._waiting:
            task, done = self._waiting.popleft()
            done(_result(task))


def _result(task: Callable[[], None]) -> OSError | None:
    try:
        task()
    except OSError as error:
        return error
    return None


def _raise(error: OSError | None) -> None:
    if error is not None:
        raise error


class WatchedJournal(JournalPort):
    """The journal port of a node: tells the observer, and then the journal."""

    def __init__(self, observed: JournalPort, recorder: Recorder) -> None:
        super().__init__()
        self._observed = observed
        self._recorder = recorder

    def job_added(self, job: Job) -> None:
        self._observed.job_added(job)
        self._recorder.job_added(job)

    def job_changed(self, job: Job) -> None:
        self._observed.job_changed(job)
        self._recorder.job_changed(job)

    def body_dropped(self, job: Job) -> None:
        self._observed.body_dropped(job)
        self._recorder.body_dropped(job)

    def job_forgotten(self, job: Job) -> None:
        self._observed.job_forgotten(job)
        self._recorder.job_forgotten(job)

    def queue_changed(self, queue: Queue) -> None:
        self._observed.queue_changed(queue)
        self._recorder.queue_changed(queue)

    def node_changed(self) -> None:
        self._observed.node_changed()


class SimulatedJournal:
    """What a process has of its machine's journal."""

    def __init__(self, process: Process, observed: JournalPort) -> None:
        machine = process.machine
        node: Node = process.node
        self.process = process
        self.settings = JournalSettings(
            policy=machine.journal_policy,
            segment_bytes=machine.segment_bytes,
            rewrite_min_bytes=4 * machine.segment_bytes,
            reserve_bytes=2 * machine.segment_bytes,
        )
        self.runtime = JournalRuntime(self.settings, machine.disk, SimulatedExecutor(process), node, process.log)
        self.runtime.port_of = lambda recorder: WatchedJournal(observed, recorder)
        self.failed_ms = -1
        """Since when the journal cannot be written; -1: it can."""
        self.runtime.on_error = self._error_changed

    def _error_changed(self, error: str) -> None:
        if not error:
            self.failed_ms = -1
        elif self.failed_ms < 0:
            self.failed_ms = self.process.cluster.world.now_ms
        self.process.broker.dispatcher.set_guards(write_error=error.encode())

    def start(self) -> bool:
        """Load what the machine has, and write from now on; False: the disk errs, the process ends.

        A journal that is refused is repaired, which only one that was damaged may need.
        """
        try:
            self._load()
        except JournalError as error:
            machine = self.process.machine
            if isinstance(error.__cause__, OSError):
                return False
            if not machine.disk_damaged:
                raise Violation("S22 journal", f"{machine.name} refuses a journal that was not damaged: {error}") from error
            machine.cluster.trace.note(machine.name, f"repairs its journal: {error}")
            machine.disk.kill()
            machine.disk.misdirect_rate = 0.0
            try:
                Repair(machine.disk).run()
                machine.disk.sync_directory()
                self._load()
            except OSError:
                return False
            except JournalError as again:
                if isinstance(again.__cause__, OSError):
                    return False
                raise Violation("S22 journal", f"{machine.name} refuses a repaired journal: {again}") from again
        return True

    def _load(self) -> None:
        runtime = self.runtime
        runtime.load()
        while not runtime.load_step():
            pass
        runtime.start()

    def end_pass(self) -> bool:
        """Write what the pass changed; False: what it promised must not leave the process."""
        return self.runtime.end_pass(self.process.node.now_ms, self.process.node.wall_ms)

    def next_deadline_ms(self) -> int:
        return self.runtime.next_deadline_ms()
