"""What goes wrong in a run: one endless script a fault class, which strikes now and then until the cluster is healed."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from disqueue.simulation.process import BUS_PORT, CLIENT_PORT

if TYPE_CHECKING:
    from disqueue.simulation.cluster import Cluster, Machine
    from disqueue.simulation.network import Endpoint
    from disqueue.simulation.options import Options
    from disqueue.simulation.process import Process
    from disqueue.simulation.workload import Workload

Damage = Generator[int, None, None]
"""A script of a fault; it yields how many ms it waits."""

LONGEST_MS = 20_000
HOUR_MS = 3_600_000
TOGETHER_SHARE = 0.3
"""So often another node is told to leave at the same time."""


class Faults:
    """The nemesis. `heal` ends all faults at once and for ever."""

    def __init__(self, cluster: Cluster, options: Options, workload: Workload) -> None:
        self.cluster = cluster
        self.options = options
        self.workload = workload
        self.over = False

    def start(self) -> None:
        """Let the faults of the options begin."""
        for name, mean_ms in self.options.faults.items():
            strike: Callable[[random.Random], Damage] | None = getattr(self, f"_{name}", None)
            if strike is not None:
                self._run(self._repeat(strike, self.cluster.world.random(f"fault {name}"), mean_ms))

    def _repeat(self, strike: Callable[[random.Random], Damage], dice: random.Random, mean_ms: int) -> Damage:
        while True:
            yield int(dice.expovariate(1 / mean_ms))
            yield from strike(dice)

    def _run(self, script: Damage) -> None:
        def go_on() -> None:
            if not self.over:
                wait_ms = next(script, None)
                if wait_ms is not None:
                    self.cluster.world.after(wait_ms, go_on)

        go_on()

    def heal(self) -> None:
        """End all faults: everything runs, is connected and is what it was told to be."""
        self.over = True
        cluster = self.cluster
        cluster.trace.note("world", "all faults end")
        cluster.network.heal()
        for machine in cluster.machines:
            machine.pass_delay_ms = 0
            machine.disk.heal()
            if machine.process is None:
                machine.start()
            process = machine.process
            assert process is not None
            process.pass_delay_ms = 0
            process.pause(False)
            process.post(lambda node=process.node: node.set_leaving(False))  # type: ignore[misc]
        self.unpause()

    def unpause(self) -> None:
        """No queue is paused any more; a broadcast may still be on its way, so this is done again before the end."""
        for process in self.cluster.processes:
            process.post(lambda process=process: self._unpause(process))  # type: ignore[misc]

    def _unpause(self, process: Process) -> None:
        for queue in self.workload.queues:
            process.node.set_pause(queue, 0, False)
            self.cluster.observer.pause_overruled(process, queue)

    # -- the network

    def _partition(self, dice: random.Random) -> Damage:
        machines = self.cluster.machines
        if len(machines) < 2:
            return
        kind = dice.choice(("halves", "one", "ring", "pair"))
        pairs: list[tuple[Machine, Machine]] = []
        order = dice.sample(machines, len(machines))
        if kind == "halves":
            half = dice.randrange(1, len(order))
            pairs = [(a, b) for a in order[:half] for b in order[half:]]
        elif kind == "one":
            pairs = [(order[0], b) for b in order[1:]]
        elif kind == "ring":  # everybody sees a majority, and each another one
            count = len(order)
            pairs = [(order[i], order[(i + step) % count]) for i in range(count) for step in range(2, count - 1)]
        else:
            pairs = [(order[0], order[1])]
        yield from self._block(dice, [*pairs, *((b, a) for a, b in pairs)], f"partition ({kind})")

    def _one_way(self, dice: random.Random) -> Damage:
        machines = self.cluster.machines
        if len(machines) > 1:
            pairs = [tuple(dice.sample(machines, 2)) for _ in range(dice.randint(1, len(machines)))]
            yield from self._block(dice, [(a, b) for a, b in pairs], "one way")

    def _block(self, dice: random.Random, pairs: list[tuple[Machine, Machine]], what: str) -> Damage:
        network = self.cluster.network
        ways = [(a.host.address, b.host.address) for a, b in pairs]
        names = " ".join(f"{a.name}>{b.name}" for a, b in pairs)
        self.cluster.trace.note("world", f"{what} begins: {names}")
        for way in ways:
            network.block(*way)
        yield min(int(dice.expovariate(1 / 4000)) + 100, LONGEST_MS)
        self.cluster.trace.note("world", f"{what} ends: {names}")
        for way in ways:
            network.unblock(*way)

    def _clog(self, dice: random.Random) -> Damage:
        machines = self.cluster.machines
        if len(machines) > 1:
            one, other = dice.sample(machines, 2)
            network = self.cluster.network
            self.cluster.trace.note("world", f"{one.name} and {other.name} are clogged")
            network.block(one.host.address, other.host.address)
            network.block(other.host.address, one.host.address)
            yield dice.randrange(50, 2000)
            network.unblock(one.host.address, other.host.address)
            network.unblock(other.host.address, one.host.address)

    def _swizzle(self, dice: random.Random) -> Damage:
        """A random part of the nodes is clogged one by one, and set free in another order."""
        machines = self.cluster.machines
        network = self.cluster.network
        chosen = dice.sample(machines, dice.randint(1, len(machines)))
        ways: dict[str, list[tuple[str, str]]] = {}
        for machine in chosen:
            own = machine.host.address
            ways[machine.name] = [(own, other.host.address) for other in machines if other is not machine]
            for source, target in ways[machine.name]:
                network.block(source, target)
                network.block(target, source)
            self.cluster.trace.note("world", f"swizzle: {machine.name} is clogged")
            yield dice.randrange(1500)
        for machine in dice.sample(chosen, len(chosen)):
            for source, target in ways[machine.name]:
                network.unblock(source, target)
                network.unblock(target, source)
            self.cluster.trace.note("world", f"swizzle: {machine.name} is free")
            yield dice.randrange(1500)

    def _some_endpoint(self, dice: random.Random) -> Endpoint | None:
        endpoints = [one for machine in self.cluster.machines for one in machine.host.endpoints]
        return dice.choice(endpoints) if endpoints else None

    def _reset(self, dice: random.Random) -> Damage:
        endpoint = self._some_endpoint(dice)
        if endpoint is not None:
            self.cluster.trace.note("world", f"{endpoint.host.address} - {endpoint.far.address} is reset")
            self.cluster.network.reset(endpoint, False)
        yield 0

    def _half_open(self, dice: random.Random) -> Damage:
        endpoint = self._some_endpoint(dice)
        if endpoint is not None:
            self.cluster.trace.note("world", f"{endpoint.host.address} loses its link to {endpoint.far.address} alone")
            self.cluster.network.reset(endpoint, True)
        yield 0

    def _slow_link(self, dice: random.Random) -> Damage:
        machines = self.cluster.machines
        if len(machines) > 1:
            one, other = dice.sample(machines, 2)
            way = (one.host.address, other.host.address)
            self.cluster.trace.note("world", f"slow from {one.name} to {other.name}")
            self.cluster.network.slow[way] = (dice.choice((20, 200, 800)), dice.choice((0, 2000, 20_000)))
            yield dice.randrange(500, 10_000)
            self.cluster.network.slow.pop(way, None)

    # -- processes

    def _kill(self, dice: random.Random) -> Damage:
        yield from self._stop_and_start(dice, False)

    def _power(self, dice: random.Random) -> Damage:
        yield from self._stop_and_start(dice, True)

    def _stop_and_start(self, dice: random.Random, power: bool) -> Damage:
        machine = dice.choice(self.cluster.machines)
        if machine.process is None:
            return
        machine.kill(power)
        network = self.cluster.network
        if power:
            network.silence(machine.host.address, True)
        yield min(int(dice.expovariate(1 / 3000)), LONGEST_MS)
        if power:
            network.silence(machine.host.address, False)
        if machine.running:
            return
        lost_table = "new_table" in self.options.faults and dice.random() < 0.5
        if lost_table:
            machine.nodes_file = ""
        machine.start()
        if lost_table:
            self._meet_somebody(dice, machine)

    def _meet_somebody(self, dice: random.Random, machine: Machine) -> None:
        others = [other for other in self.cluster.machines if other is not machine and other.running]
        if others:
            self.cluster.meet(machine, dice.choice(others))

    def _pause(self, dice: random.Random) -> Damage:
        machine = dice.choice(self.cluster.machines)
        process = machine.process
        if process is None or process.paused:
            return
        self.cluster.trace.note(machine.name, "is stopped")
        process.pause(True)
        yield min(int(dice.expovariate(1 / 2500)) + 50, LONGEST_MS)
        self.cluster.trace.note(machine.name, "goes on")
        process.pause(False)

    def _slow_node(self, dice: random.Random) -> Damage:
        machine = dice.choice(self.cluster.machines)
        process = machine.process
        if process is not None:
            process.pass_delay_ms = dice.choice((5, 50, 300))
            machine.slowest_pass_ms = max(machine.slowest_pass_ms, process.pass_delay_ms)
            yield dice.randrange(500, 8000)
            process.pass_delay_ms = 0

    def _clock_jump(self, dice: random.Random) -> Damage:
        machine = dice.choice(self.cluster.machines)
        machine.skew_ms = dice.choice((-1, 1)) * dice.choice((50, 2000, HOUR_MS, 24 * HOUR_MS))
        self.cluster.trace.note(machine.name, f"its wall clock is {machine.skew_ms} ms off")
        yield 0

    # -- disks

    def _disk_error(self, dice: random.Random) -> Damage:
        machine = dice.choice(self.cluster.machines)
        rates = {operation: dice.choice((0.0, 0.3, 1.0)) for operation in ("write", "sync", "create", "replace", "truncate")}
        self.cluster.trace.note(machine.name, f"its disk errs: {rates}")
        machine.disk.rates = rates
        yield dice.randrange(100, 6000)
        machine.disk.rates = {}

    def _disk_full(self, dice: random.Random) -> Damage:
        machine = dice.choice(self.cluster.machines)
        self.cluster.trace.note(machine.name, "its disk is full")
        machine.disk.capacity_bytes = dice.randrange(20_000)
        yield dice.randrange(100, 6000)
        machine.disk.capacity_bytes = -1

    def _disk_slow(self, dice: random.Random) -> Damage:
        machine = dice.choice(self.cluster.machines)
        machine.disk.sync_ms = dice.choice((20, 200, 3000))
        machine.slowest_sync_ms = max(machine.slowest_sync_ms, machine.disk.sync_ms)
        yield dice.randrange(500, 10_000)
        machine.disk.sync_ms = 1

    def _bit_flip(self, dice: random.Random) -> Damage:
        machine = dice.choice(self.cluster.machines)
        names = machine.disk.names() if not machine.disk.rates else []
        if names:
            name = dice.choice(names)
            if size := machine.disk.size(name):
                self.cluster.trace.note(machine.name, f"a bit of {name} flips")
                machine.disk_damaged = True
                machine.disk.flip_bit(name, dice.randrange(size * 8))
        yield 0

    def _misdirect(self, dice: random.Random) -> Damage:
        machine = dice.choice(self.cluster.machines)
        self.cluster.trace.note(machine.name, "its disk writes to wrong places")
        machine.disk_damaged = True
        machine.disk.misdirect_rate = 0.05
        yield dice.randrange(100, 2000)
        machine.disk_damaged = True
        machine.disk.misdirect_rate = 0.0

    # -- operators

    def _leave(self, dice: random.Random) -> Damage:
        machine = dice.choice(self.cluster.machines)
        process = machine.process
        if process is None:
            return
        self.cluster.trace.note(machine.name, "is told to leave")
        process.post(lambda: process.node.set_leaving(True))
        if dice.random() < TOGETHER_SHARE:
            self._run(self._leave(dice))
        yield min(int(dice.expovariate(1 / 5000)), LONGEST_MS)
        if machine.process is process and not process.paused:
            if process.node.leaving and not len(process.node.jobs):
                machine.kill()
                yield dice.randrange(3000)
                if not machine.running:
                    machine.start()
            self._stay(machine)

    def _stay(self, machine: Machine) -> None:
        process = machine.process
        if process is not None:
            self.cluster.trace.note(machine.name, "is told to stay")
            process.post(lambda: process.node.set_leaving(False))

    def _forget(self, dice: random.Random) -> Damage:
        machines = self.cluster.machines
        if len(machines) < 2:
            return
        asked, forgotten = dice.sample(machines, 2)
        process = asked.process
        if process is None or process.members.find(forgotten.node_id) is None:
            return
        self.cluster.trace.note(asked.name, f"is told to forget {forgotten.name}")

        def forget() -> None:
            # One that is stopped now does it when it goes on, and that may be when the faults are over.
            if not self.over and process.members.find(forgotten.node_id) is not None:
                self.cluster.observer.node_forgotten()
                process.members.forget(forgotten.node_id)

        process.post(forget)
        yield dice.randrange(500, 15_000)
        self._meet_somebody(dice, forgotten)

    def _queue_pause(self, dice: random.Random) -> Damage:
        client = self.workload.add_client("pauser")
        queue = dice.choice(self.workload.queues)
        words = [dice.choice((b"in", b"out", b"all"))] + ([b"BCAST"] if dice.random() < 0.5 else [])
        machine = dice.choice(self.cluster.machines)
        client.run(self.workload.say(machine, [b"PAUSE", queue, *words]))
        yield dice.randrange(100, 5000)
        client = self.workload.add_client("pauser")
        client.run(self.workload.say(machine, [b"PAUSE", queue, b"none", *words[1:]]))

    def _client_loss(self, dice: random.Random) -> Damage:
        client = dice.choice(self.workload.clients)
        client.drop()
        yield 0

    def _garbage(self, dice: random.Random) -> Damage:
        machine = dice.choice(self.cluster.machines)
        host = self.cluster.network.host("10.2.0.1")
        host.post = host.post or (lambda call: call())
        data = dice.choice((dice.randbytes(200), b"*1\r\n$4\r\nPING\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x05abcde"))

        def connected(endpoint: Endpoint) -> None:
            endpoint.write(data)
            self.cluster.world.after(dice.randrange(2000), endpoint.abort)

        port = dice.choice((CLIENT_PORT, BUS_PORT))
        self.cluster.network.dial(host, machine.host.address, port, connected, lambda _reason: None, lambda: self.over)
        yield 0
