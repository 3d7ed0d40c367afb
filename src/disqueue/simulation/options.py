"""What one run is made of, drawn from its seed: swarm testing gives every run its own mix of faults and load.

A run with few faults gets far into rare states; one with all of them at once never leaves the first ones. So each fault class is
on or off, and its rate is drawn too. (A. Groce and others: Swarm Testing, 2012.)
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

FAULTS = (
    "partition",
    "one_way",
    "clog",
    "swizzle",
    "reset",
    "half_open",
    "slow_link",
    "kill",
    "power",
    "new_table",
    "pause",
    "slow_node",
    "clock_jump",
    "memory",
    "leave",
    "forget",
    "queue_pause",
    "client_loss",
    "garbage",
)
"""Every fault class. `power`: a machine vanishes without a reset. `new_table`: a node comes back without its nodes.conf."""
DISK_FAULTS = ("disk_error", "disk_full", "disk_slow", "bit_flip", "misdirect", "kill", "power")
"""What is drawn for nodes that keep a journal; restarts more often than for others."""
CALM_SHARE = 0.12
"""So many runs have no faults at all; only these show that nothing is ever done twice."""


JOURNALED_EACH = 4
"""Of the seeds of a swarm, each one that this divides runs with journals."""


@dataclass
class Options:
    """The parameters of a run. `faults`: fault class -> how often it strikes, as a mean pause in ms."""

    seed: int
    nodes: int = 3
    clients: int = 6
    duration_ms: int = 30_000
    node_timeout_ms: int = 5000
    min_latency_ms: int = 1
    max_latency_ms: int = 3
    cut_share: float = 0.1
    queues: int = 2
    pause_ms: int = 200
    """What a client waits between two things that it does, on average."""
    body_bytes: int = 100
    retries_s: tuple[int, ...] = (1, 3)
    ttls_s: tuple[int, ...] = (3600,)
    delays_s: tuple[int, ...] = (0,)
    copies: tuple[int, ...] = (0,)
    at_most_once_share: float = 0.2
    async_share: float = 0.1
    work_ms: int = 300
    ack_share: float = 0.8
    """How many deliveries end in an acknowledgement; the others in a NACK, a crash or nothing."""
    operator_share: float = 0.2
    maxmemory_bytes: int = 0
    max_jobs: int = 600
    faults: dict[str, int] = field(default_factory=dict)
    journal: str = ""
    """The fsync policy of all nodes; "": they keep no journal."""
    segment_bytes: int = 4000

    @property
    def calm(self) -> bool:
        """Whether nothing goes wrong in this run."""
        return not self.faults

    def __str__(self) -> str:
        kept = f", journal {self.journal}, segments of {self.segment_bytes} bytes" if self.journal else ""
        faults = ", ".join(f"{name} each {mean_ms} ms" for name, mean_ms in self.faults.items()) or "none"
        return (
            f"seed {self.seed}: {self.nodes} nodes, {self.clients} clients, {self.duration_ms} ms,"
            f" node timeout {self.node_timeout_ms} ms, latency {self.min_latency_ms}-{self.max_latency_ms} ms{kept};"
            f" faults: {faults}"
        )


def draw(seed: int) -> Options:
    """Return the options of a seed."""
    dice = random.Random(f"{seed}/options")
    options = Options(seed)
    options.nodes = dice.choice((1, 2, 2, 3, 3, 3, 3, 4, 5, 5, 6, 7))
    options.clients = dice.randint(2, 14)
    options.duration_ms = dice.choice((10_000, 30_000, 30_000, 60_000))
    options.node_timeout_ms = dice.choice((1000, 3000, 5000, 15_000))
    options.min_latency_ms = dice.choice((1, 1, 1, 5, 20))
    options.max_latency_ms = options.min_latency_ms + dice.choice((0, 2, 10, 60))
    options.cut_share = dice.choice((0.0, 0.1, 0.5))
    options.queues = dice.randint(1, 6)
    options.pause_ms = dice.choice((20, 100, 300, 1000))
    options.body_bytes = dice.choice((10, 100, 100, 3000))
    options.retries_s = tuple(dice.choices((1, 1, 2, 3, 5, 10), k=2))
    options.ttls_s = (3600,) if dice.random() < 0.6 else (3600, dice.choice((2, 5, 15, 40)))
    options.delays_s = (0,) if dice.random() < 0.5 else (0, 0, dice.choice((1, 2, 5)))
    options.copies = dice.choice(((0,), (0, 1, 2, 3), (1,), (2,), (3,), (0, options.nodes)))
    options.at_most_once_share = dice.choice((0.0, 0.1, 0.3, 0.8))
    options.async_share = dice.choice((0.0, 0.1, 0.5))
    options.work_ms = dice.choice((0, 50, 300, 1500))
    options.ack_share = dice.choice((0.5, 0.8, 0.95, 1.0))
    options.operator_share = dice.choice((0.0, 0.1, 0.3))
    if dice.random() >= CALM_SHARE:
        _draw_faults(dice, options)
    return options


def draw_journaled(seed: int) -> Options:
    """Return the options of a seed for nodes that keep a journal; those with faults may have bad disks too."""
    options = draw(seed)
    dice = random.Random(f"{seed}/journal")
    options.journal = dice.choice(("always", "everysec", "no"))
    options.segment_bytes = dice.choice((1500, 4000, 100_000))
    if not options.faults:
        return options
    # Times on disk are those of the wall clock: what it is set forward by while a node is down counts as time (test_clocks.py).
    options.faults.pop("clock_jump", None)
    share = dice.choice((0.0, 0.3, 0.6))
    for name in DISK_FAULTS:
        if dice.random() < share:
            options.faults[name] = dice.choice((1000, 3000, 8000))
    return options


def _draw_faults(dice: random.Random, options: Options) -> None:
    share = dice.choice((0.15, 0.3, 0.6))
    for name in FAULTS:
        if dice.random() < share:
            options.faults[name] = dice.choice((1000, 3000, 8000))
    if "memory" in options.faults:
        options.maxmemory_bytes = dice.choice((60_000, 150_000))
    if not options.faults:
        options.faults[dice.choice(FAULTS)] = 3000
