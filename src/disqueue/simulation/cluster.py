"""The machines of a simulated cluster, and what can be done to them from outside."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from disqueue.simulation.disk import SimulatedDisk
from disqueue.simulation.network import Network
from disqueue.simulation.process import BUS_PORT, CLIENT_PORT, Process
from disqueue.simulation.trace import Trace
from disqueue.simulation.world import World

if TYPE_CHECKING:
    from disqueue.simulation.observer import Observer

RESTART_MS = 500
"""A process that cannot use its disk is started again after this."""
START_WALL_MS = 1_750_000_000_000


class Machine:
    """Where one node lives: what of it outlasts its processes."""

    def __init__(self, cluster: Cluster, index: int) -> None:
        self.cluster = cluster
        self.index = index
        self.name = f"n{index + 1}"
        self.host = cluster.network.host(f"10.0.0.{index + 1}")
        self.node_id = hashlib.sha1(b"%d %d" % (cluster.world.seed, index)).hexdigest().encode()
        self.nodes_file = ""
        self.skew_ms = 0
        self.starts = 0
        self.pass_delay_ms = 0
        self.maxmemory_bytes = 0
        self.process: Process | None = None
        self.journal_policy = ""
        """Its fsync policy; "": this machine keeps no journal."""
        self.segment_bytes = 4000
        self.disk = SimulatedDisk(cluster.world.random(f"disk {index}"), f"/{self.name}")
        self.disk_damaged = False
        """Something that was on the disk has been changed."""
        self.lost_power = False
        self.slowest_sync_ms = 0
        self.slowest_pass_ms = 0

    def wall_ms(self) -> int:
        """Unix time as this machine's clock shows it."""
        return START_WALL_MS + self.cluster.world.now_ms + self.skew_ms

    def configure(self, process: Process) -> None:
        """Give a new process the options of this machine."""
        timeout_ms = self.cluster.node_timeout_ms
        process.members.settings.node_timeout_ms = timeout_ms
        process.broker.configuration.set(
            [("cluster-node-timeout", str(timeout_ms)), ("maxmemory", str(self.maxmemory_bytes))],
        )
        process.pass_delay_ms = self.pass_delay_ms

    @property
    def running(self) -> bool:
        return self.process is not None

    @property
    def responsive(self) -> bool:
        """Runs and is not stopped."""
        return self.process is not None and not self.process.paused

    def start(self) -> Process:
        """Start a process; what the one before had in memory is gone."""
        assert self.process is None
        self.starts += 1
        self.cluster.trace.note(self.name, "starts")
        self.process = process = Process(self, self.index * 1_000_003 + self.starts, self.cluster.observer)
        if not process.running:
            self.cluster.trace.note(self.name, "cannot use its disk")
            self.disk.kill()
            self.process = None
            self.cluster.world.after(RESTART_MS, self._start_again)
        return process

    def _start_again(self) -> None:
        if self.process is None and not self.host.listeners:
            self.start()

    def kill(self, silently: bool = False) -> None:
        """Kill -9; `silently`: the machine loses its power, so that nobody gets a reset."""
        process = self.process
        if process is None:
            return
        self.cluster.trace.note(self.name, "loses its power" if silently else "is killed")
        process.end()
        self.process = None
        self.host.post = None
        self.host.listeners = {}
        self.cluster.observer.process_ended(process)
        self.lost_power = silently
        if silently:
            self.disk.lose_power()
        else:
            self.disk.kill()
        self.cluster.network.hang_up_all(self.host, silently)
        process.discard()


class Cluster:
    """World, network and machines of a run."""

    def __init__(self, seed: int, size: int, observer: Observer, node_timeout_ms: int = 5000) -> None:
        self.world = World(seed)
        self.trace = Trace(self.world)
        self.network = Network(self.world, self.trace)
        self.observer = observer
        self.secret = b"a secret"
        self.node_timeout_ms = node_timeout_ms
        observer.cluster = self
        self.machines = [Machine(self, index) for index in range(size)]

    def start(self) -> None:
        """Start all nodes and have them meet."""
        for machine in self.machines:
            machine.start()
        for machine in self.machines[1:]:
            self.meet(machine, self.machines[0])

    def meet(self, machine: Machine, other: Machine) -> None:
        """An operator has one node meet another."""
        process = machine.process
        if process is not None:
            process.post(lambda: process.members.joining.meet(other.host.address, CLIENT_PORT, BUS_PORT))

    @property
    def processes(self) -> list[Process]:
        """The running processes."""
        return [machine.process for machine in self.machines if machine.process is not None]

    def is_joined(self) -> bool:
        """Whether every node reaches every other one."""
        count = len(self.machines) - 1
        return all(machine.process is not None and len(machine.process.members.reachable) == count for machine in self.machines)

    def join(self, limit_ms: int = 30_000) -> bool:
        """Let time pass until all nodes reach each other; tell whether they do."""
        return self.world.run(self.world.now_ms + limit_ms, self.is_joined) or self.is_joined()
