"""One run: a cluster with load and faults, then healed, drained and calm; all of it decided by the seed."""

from __future__ import annotations

import gc
import traceback
from dataclasses import dataclass, field

from disqueue.core.job import ACKED, Job
from disqueue.simulation.checker import Checker, Figures
from disqueue.simulation.cluster import Cluster
from disqueue.simulation.faults import Faults
from disqueue.simulation.ledger import NEVER_MS, OK, Entry, Violation
from disqueue.simulation.options import Options, draw, draw_journaled
from disqueue.simulation.process import Process
from disqueue.simulation.state import check_answers, check_process, describe_holders
from disqueue.simulation.workload import Workload

CHECK_MS = 1000
JOIN_MS = 15_000
MEET_MS = 1000
FINISH_MS = 15_000
DRAIN_MS = 30_000
COLLECT_MS = 240_000
IDLE_MS = 20_000
MAX_EVENTS = 5_000_000
"""A run with more is taken for one that never ends."""
IDLE_RECORDS_PER_S = 3
"""Of one node to each other one, when nothing happens: pings and their answers."""


@dataclass
class Result:
    """How a run ended. `violation` is empty when all held."""

    options: Options
    digest: str = ""
    violation: str = ""
    trace: list[str] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    simulated_ms: int = 0
    bus_records: int = 0
    network_bytes: int = 0
    converged_ms: int = 0
    events: int = 0

    @property
    def invariant(self) -> str:
        return self.violation.partition(":")[0]


class Run:
    """A run of some options."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.checker = Checker()
        self.checker.calm = options.calm
        self.checker.late_ms = 100 if options.calm else 30_000
        self.checker.hop_ms = options.max_latency_ms
        self.cluster = Cluster(options.seed, options.nodes, self.checker, options.node_timeout_ms)
        network = self.cluster.network
        network.min_latency_ms, network.max_latency_ms = options.min_latency_ms, options.max_latency_ms
        network.cut_share = options.cut_share
        for machine in self.cluster.machines:
            machine.maxmemory_bytes = options.maxmemory_bytes
            machine.journal_policy = options.journal
            machine.segment_bytes = options.segment_bytes
        self.workload = Workload(self.cluster, options, self.checker.ledger)
        self.faults = Faults(self.cluster, options, self.workload)
        self.result = Result(options)
        self._checked_ms = 0

    def execute(self) -> Result:
        """Run to the end, or to the first violation."""
        result = self.result
        try:
            self._safety()
            self._liveness()
        except Violation as violation:
            result.violation = str(violation)
            marks = {entry.mark for entry in violation.entries}
            result.trace = self.cluster.trace.about(marks)
            result.trace += [line for entry in violation.entries for line in describe_holders(self.cluster, entry)]
            cause = violation.__cause__
            if cause is not None:
                result.trace += "".join(traceback.format_exception(cause)).splitlines()
        result.digest = self.cluster.trace.digest()
        result.figures = self.checker.figures
        result.simulated_ms = self.cluster.world.now_ms
        result.network_bytes = self.cluster.network.bytes_sent
        result.events = self.cluster.world.events_run
        for process in self.cluster.processes:
            process.discard()
        return result

    # -- phases

    def _safety(self) -> None:
        cluster = self.cluster
        cluster.start()
        if not cluster.join(JOIN_MS + 20 * self.options.max_latency_ms):
            raise Violation("L5 membership", "the nodes of a new cluster do not reach each other")
        self.workload.start()
        self.faults.start()
        self._let_pass(self.options.duration_ms)

    def _liveness(self) -> None:
        self.workload.stopping = True
        self.faults.heal()
        self._await_membership()
        self._await(FINISH_MS, lambda: self.workload.finished, "L1 answers", "the clients do not come to an end")
        self._drain()
        self._check_deliveries()
        self._collect()
        self.workload.stopping = True
        self._await(FINISH_MS, lambda: self.workload.finished, "L1 answers", "the workers do not come to an end")
        self._check_idle()

    def _let_pass(self, duration_ms: int) -> None:
        """Let time pass, and look into the nodes now and then."""
        world = self.cluster.world
        end_ms = world.now_ms + duration_ms
        while world.now_ms < end_ms:
            world.run(min(self._checked_ms + CHECK_MS, end_ms))
            if world.now_ms >= self._checked_ms + CHECK_MS:
                self._check_nodes()

    def _check_nodes(self) -> None:
        self._checked_ms = self.cluster.world.now_ms
        if self.cluster.world.events_run > MAX_EVENTS:
            raise Violation("L7 no storm", f"more than {MAX_EVENTS} events")
        for process in self.cluster.processes:
            if not process.paused:
                check_process(process)
                check_answers(process)

    def _await(self, limit_ms: int, condition: object, invariant: str, text: str) -> None:
        """Let time pass until a condition holds; it must within the limit."""
        assert callable(condition)
        world = self.cluster.world
        end_ms = world.now_ms + limit_ms
        while not condition():
            if world.now_ms >= end_ms:
                raise Violation(invariant, text)
            self._let_pass(100)

    def _await_membership(self) -> None:
        world = self.cluster.world
        start_ms = world.now_ms
        limit_ms = 3 * self.options.node_timeout_ms + JOIN_MS
        if "forget" in self.options.faults:
            limit_ms += 60_000
        end_ms = start_ms + limit_ms
        while not self.cluster.is_joined():
            if world.now_ms >= end_ms:
                raise Violation("L5 membership", "the healed nodes do not reach each other")
            self._meet_again()
            self._let_pass(MEET_MS if "forget" in self.options.faults or "new_table" in self.options.faults else 100)
        self.result.converged_ms = world.now_ms - start_ms

    def _meet_again(self) -> None:
        """The operator brings back nodes that were forgotten, or that have forgotten."""
        if "forget" in self.options.faults or "new_table" in self.options.faults:
            for one in self.cluster.machines:
                for other in self.cluster.machines:
                    if one.process is not None and one is not other and one.process.members.find(other.node_id) is None:
                        self.cluster.meet(one, other)

    def _drain(self) -> None:
        """All jobs that are left are handed out and acknowledged in time."""
        workload, machines = self.workload, self.cluster.machines
        workload.stopping = False
        self.faults.unpause()
        clients = [workload.add_client(f"drain {machine.name}") for machine in machines]
        for index, client in enumerate(clients):
            client.run(workload.drain(client, index))
        options = self.options
        limit_ms = DRAIN_MS + 1000 * (2 * max(options.retries_s) + max(options.delays_s))
        world = self.cluster.world
        end_ms = world.now_ms + limit_ms
        while left := self._left():
            if world.now_ms >= end_ms:
                raise Violation("L2 delivery", f"{len(left)} jobs are not handed out: {left[0]}", left[0])
            self._let_pass(100)

    def _left(self) -> list[Entry]:
        """Return the jobs that somebody holds who does not know them to be done."""
        now_ms = self.cluster.world.now_ms
        return [
            entry
            for entry in self.checker.ledger.by_mark.values()
            if (entry.holders or self._is_waiting(entry))
            and now_ms < entry.expires_ms
            and not (entry.at_most_once and (entry.deliveries or entry.dequeued))
            and (not entry.holders or not self._is_acked(entry))
        ]

    def _is_waiting(self, entry: Entry) -> bool:
        """Whether a node that keeps no copies still looks for others that do."""
        if entry.answer != OK or not entry.asynchronous or entry.deliveries or entry.ended_ms != NEVER_MS:
            return False
        return any(process.node.jobs.get(entry.id) is not None for process in self.cluster.processes)

    def _is_acked(self, entry: Entry) -> bool:
        for holder in entry.holders:
            job = holder.node.jobs.get(entry.id)
            if job is not None and job.state != ACKED:
                return False
        return True

    def _check_deliveries(self) -> None:
        """Every confirmed job was handed out, unless somebody ended it first, its time ended, or all who held it died."""
        for entry in self.checker.ledger.by_mark.values():
            if entry.answer != OK or entry.deliveries or entry.ended_ms != NEVER_MS:
                continue
            if self.cluster.world.now_ms >= entry.expires_ms or entry.memories_lost:
                continue
            if entry.stranded or (entry.at_most_once and self.checker.forgetful):
                continue
            raise Violation("S4 no loss", f"{entry} was never handed out", entry)

    def _collect(self) -> None:
        """Everything is acknowledged: nothing stays."""
        world = self.cluster.world
        end_ms = world.now_ms + COLLECT_MS
        while self._kept():
            if world.now_ms >= end_ms:
                self._raise_left_over()
            self._let_pass(1000)

    def _kept(self) -> list[tuple[Process, Job]]:
        """Return the jobs that nodes still keep, but for those that may wait for an operator."""
        by_id = self.checker.ledger.by_id
        kept = [(process, job) for process in self.cluster.processes if len(process.node.jobs) for job in process.node.jobs]
        return [one for one in kept if not (one[1].id in by_id and by_id[one[1].id].stranded)]

    def _raise_left_over(self) -> None:
        process, job = self._kept()[0]
        entry = self.checker.ledger.by_id.get(job.id)
        text = f"{process.machine.name} still keeps {job.id.decode()} (state {job.state}, flags {job.flags},"
        text += f" owners {job.owners:b}, confirmed {job.confirmed:b}, attempts {job.attempts}): {entry}"
        raise Violation("L3 collection", text, *([entry] if entry is not None else []))

    def _check_idle(self) -> None:
        """Nothing happens any more, and so nearly nothing is sent."""
        self._let_pass(5000)
        before = self._records()
        self.result.bus_records = sum(before)
        self._let_pass(IDLE_MS)
        for process, sent, earlier in zip(self.cluster.processes, self._records(), before, strict=True):
            limit = IDLE_RECORDS_PER_S * (len(self.cluster.machines) - 1) * IDLE_MS // 1000
            if sent - earlier > limit:
                raise Violation("L7 no storm", f"{process.machine.name} sent {sent - earlier} records in {IDLE_MS} idle ms")

    def _records(self) -> list[int]:
        return [process.members.stats.messages_sent for process in self.cluster.processes]


def run_seed(seed: int, journaled: bool = False) -> Result:
    """Run the options that a seed draws; `journaled`: those for nodes that keep a journal."""
    return run_options(draw_journaled(seed) if journaled else draw(seed))


def run_options(options: Options) -> Result:
    """Run some options. The garbage of the run before is gone, so that memory stays flat over thousands of runs."""
    gc.collect()
    return Run(options).execute()
