"""The simulator finds bugs: the core is broken on purpose, and each time an invariant is reported as violated."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from disqueue._twins import load_plain

NAMES = (
    "disqueue.core.acknowledgement",
    "disqueue.core.delivery",
    "disqueue.core.federation",
    "disqueue.core.forwarding",
    "disqueue.core.job",
    "disqueue.core.registry",
    "disqueue.core.replication",
    "disqueue.core.scheduler",
    "disqueue.simulation.options",
    "disqueue.simulation.run",
    "disqueue.wire.job_records",
)
SEEDS = range(1, 7)
Modules = dict[str, ModuleType]


def _class(modules: Modules, name: str, cls: str) -> Any:
    return getattr(modules[f"disqueue.core.{name}"], cls)


def drop_owner_on_import(modules: Modules) -> None:
    """The node that a job comes to counts neither itself nor the sender."""
    federation = _class(modules, "federation", "Federation")
    original, moved = federation._import, federation.move_to

    def broken(self: Any, peer: Any, job: Any) -> None:
        original(self, peer, job)
        job.owners = 1

    def broken_move(self: Any, peer: Any, job: Any) -> None:
        moved(self, peer, job)
        job.owners &= ~(1 << peer.slot)

    federation._import, federation.move_to = broken, broken_move


def confirm_before_storing(modules: Modules) -> None:
    """A copy is confirmed, and not kept."""
    stored = modules["disqueue.wire.job_records"].STORED

    def broken(self: Any, peer: Any, jobs: list[Any], queue_now: bool) -> None:
        for record in jobs:
            self.tell(peer, stored, record.id)

    _class(modules, "replication", "Replication").store_copies = broken


def forget_ack_early(modules: Modules) -> None:
    """An acknowledgement is told to the owners once and forgotten."""
    acknowledgement = _class(modules, "acknowledgement", "Acknowledgement")
    original = acknowledgement.spread_ack

    def broken(self: Any, job: Any) -> None:
        original(self, job)
        if self.jobs.get(job.id) is job:
            self.delete(job)

    acknowledgement.spread_ack = broken


def lease_from_enqueue(modules: Modules) -> None:
    """The lease began when the job was queued, half a second before it was handed out."""
    scheduler = _class(modules, "scheduler", "Scheduler")
    original = scheduler.start_lease

    def broken(self: Any, job: Any) -> None:
        original(self, job)
        if job.due_ms:
            job.due_ms -= 500
            self.arm(job)

    scheduler.start_lease = broken


def ack_does_nothing(modules: Modules) -> None:
    """ACKJOB answers 1, and the job comes back."""
    forwarding = _class(modules, "forwarding", "Forwarding")
    original, ackjob = forwarding.apply, modules["disqueue.core.forwarding"].ACKJOB

    def broken(self: Any, verb: int, job: Any) -> Any:
        return 1 if verb == ackjob else original(self, verb, job)

    forwarding.apply = broken


def deliver_acked(modules: Modules) -> None:
    """A job that is acknowledged while it is queued stays in its queue."""
    delivery = _class(modules, "delivery", "Delivery")
    original = delivery._reply_jobs

    def broken(self: Any, client: Any, jobs: list[Any], with_counters: bool) -> None:
        acked = modules["disqueue.core.job"].ACKED
        known = [job for job in self.evictable if job.state == acked and job.queue is not None]
        original(self, client, [*jobs, *known[:1]], with_counters)

    delivery._reply_jobs = broken


def lose_jobs_with_a_link(modules: Modules) -> None:
    """What was on its way when a link broke is forgotten."""
    federation = _class(modules, "federation", "Federation")

    def broken(self: Any, peer: Any) -> None:
        data = self.jobs_of(peer)
        for job in [*data.in_flight.values(), *data.offered.values()]:
            if self.jobs.get(job.id) is job:
                self.delete(job)
        data.in_flight, data.offered, data.wanted = {}, {}, {}

    federation.federation_link_down = broken


def release_before_accept(modules: Modules) -> None:
    """An at-most-once job is given up before the other node has it."""
    federation = _class(modules, "federation", "Federation")
    original = federation.move_to

    def broken(self: Any, peer: Any, job: Any) -> None:
        original(self, peer, job)
        if job.retry_s == 0:
            self.offer_accepted(peer, job.id, job.offer)

    federation.move_to = broken


def keep_what_was_released(modules: Modules) -> None:
    """An at-most-once job that is offered stays queued: two nodes hand it out."""
    federation = _class(modules, "federation", "Federation")
    original, held = federation.move_to, modules["disqueue.core.job"].HELD

    def broken(self: Any, peer: Any, job: Any) -> None:
        original(self, peer, job)
        if job.retry_s == 0:
            job.flags &= ~held
            self.enqueue(job, 3)

    federation.move_to = broken


def expire_early(modules: Modules) -> None:
    """A job lives for a fifth of a second, whatever its TTL."""
    replication = _class(modules, "replication", "Replication")
    original = replication.begin_life

    def broken(self: Any, job: Any) -> None:
        job.expires_ms = self.now_ms + 200
        original(self, job)

    replication.begin_life = broken


def count_memory_once(modules: Modules) -> None:
    """The account is not reduced when a job goes."""
    registry = _class(modules, "registry", "Registry")
    original = registry.unregister

    def broken(self: Any, job: Any) -> None:
        before = self.used_bytes
        original(self, job)
        self.used_bytes = before

    registry.unregister = broken


MUTATIONS: tuple[Callable[[Modules], None], ...] = (
    drop_owner_on_import,
    confirm_before_storing,
    forget_ack_early,
    lease_from_enqueue,
    ack_does_nothing,
    deliver_acked,
    lose_jobs_with_a_link,
    release_before_accept,
    keep_what_was_released,
    expire_early,
    count_memory_once,
)


def options_for(modules: Modules, seed: int) -> Any:
    """A short run of three nodes: calm for odd seeds, with broken links for even ones."""
    options = modules["disqueue.simulation.options"].Options(seed)
    options.duration_ms = 8000
    options.clients = 8
    options.max_jobs = 150
    options.retries_s = (1,)
    options.copies = (0, 1, 2)
    options.at_most_once_share = 0.3
    options.async_share = 0.0
    options.work_ms = 100
    options.pause_ms = 100
    options.ack_share = 0.7
    if seed % 2 == 0:
        options.faults = {"reset": 100, "partition": 3000}
        options.min_latency_ms, options.max_latency_ms = 20, 60
    return options


def violations(mutation: Callable[[Modules], None] | None) -> list[str]:
    modules = load_plain(NAMES)
    if mutation is not None:
        mutation(modules)
    found = []
    for seed in SEEDS:
        result = modules["disqueue.simulation.run"].run_options(options_for(modules, seed))
        if result.violation:
            found.append(result.violation)
            if mutation is not None:
                break
    return found


def test_the_core_as_it_is_has_no_violation_in_these_runs() -> None:
    assert violations(None) == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_broken_core_is_found_out(mutation: Callable[[Modules], None]) -> None:
    (found,) = violations(mutation)
    assert not found.startswith("S24 no exception"), f"the mutation does not fit the core any more: {found}"
