"""Putting jobs that were kept elsewhere, in a journal, back into a node as they were."""

from __future__ import annotations

from disqueue.core.job import (
    ACKED,
    ACTIVE,
    ASKED,
    CONTESTED,
    DELAYED,
    DELIVERED,
    HELD,
    LEASED,
    MOVED,
    ONCE_QUEUED,
    PLACEHOLDER,
    QUEUED,
    RESTORED,
    Job,
)
from disqueue.core.node import Node
from disqueue.core.offers import FORGOTTEN_OFFER
from disqueue.core.replication import TAKEOVER_JITTER_MS
from disqueue.core.scheduler import ASK_AHEAD_MS, LINKS_WAIT_MS


def slot_ids(node: Node) -> list[bytes]:
    """Return the ids of the nodes by the slots that they have in the sets of nodes of this process."""
    return [peer.node_id for peer in node.members.by_slot]


def slot_of(node: Node, node_id: bytes) -> int:
    """Return the slot of a node, a new one if need be; -1 when there are too many."""
    if node_id == node.node_id:
        return 0
    peer = node.members.intern(node_id)
    return -1 if peer is None else peer.slot


def restore_job(node: Node, job: Job, name: bytes) -> bool:
    """Register a job in the state it has, due when it was due; False: there is nothing left to do with it.

    `name` is its queue's. Nothing is written to the journal and nobody is told.
    """
    state = job.state
    if job.expires_ms <= node.now_ms or state not in (ACTIVE, QUEUED, ACKED) or node.jobs.get(job.id) is not None:
        return False
    if state == ACTIVE and job.retry_s == 0 and job.flags & DELIVERED:
        return False  # handed out at most once, and that was that
    if state != ACKED and _may_be_elsewhere(node, job):
        _ask_first(node, job)
        state = ACTIVE
    queue = None if job.flags & PLACEHOLDER else node.queue_named(name)
    job.queue = queue
    if job.retry_s == 0:
        job.flags |= RESTORED
    delayed = job.flags & DELAYED
    job.flags &= ~DELAYED
    node.register(job)
    if state == QUEUED and queue is not None:
        node.make_visible(queue)
        node.mark_queued(job)
        queue.jobs.add(job)
    elif state == ACKED:
        _restore_ack(node, job)
    elif delayed:
        node.set_delayed(job)
    if job.flags & HELD:
        _restore_held(node, job)
    if job.ctime_ns > node.last_ctime_ns and job.id[2:10] == node.node_id[:8]:
        node.last_ctime_ns = job.ctime_ns
    node.arm(job)
    return True


def _may_be_elsewhere(node: Node, job: Job) -> bool:
    """Tell whether another owner may have queued a job while this node was down.

    None does before the time at which this node would have queued it again, or have said that it still has it queued.
    """
    members = node.members
    if job.retry_s == 0 or job.due_ms == 0 or not job.owners & (members.members_mask | members.unknown_mask) & ~1:
        return False
    taken_over_ms = job.due_ms
    if job.flags & DELAYED:
        taken_over_ms += job.retry_s * 1000
    return taken_over_ms <= node.now_ms + LINKS_WAIT_MS + ASK_AHEAD_MS


def _ask_first(node: Node, job: Job) -> None:
    """Let a job be queued only when its other owners have been asked, and none of them has it.

    A worker whose lease has not ended keeps it until then.
    """
    job.state = ACTIVE
    if job.due_ms <= node.now_ms:
        job.flags &= ~LEASED
    job.flags = (job.flags | ONCE_QUEUED) & ~(ASKED | MOVED | CONTESTED | DELAYED)
    job.due_ms = node.now_ms + LINKS_WAIT_MS + ASK_AHEAD_MS + 1 + node.random_below(TAKEOVER_JITTER_MS)


def _restore_ack(node: Node, job: Job) -> None:
    node.acked_jobs += 1
    node.evictable[job] = None
    if job.flags & PLACEHOLDER:
        node.placeholders += 1
    job.due_ms = node.now_ms + LINKS_WAIT_MS + node.random_below(LINKS_WAIT_MS)


def _restore_held(node: Node, job: Job) -> None:
    """An at-most-once job on its way: here, so that the node that offered it, its bit in `confirmed`, is asked when there is a
    link; or from here, and not given up yet, so that it is still this node's.
    """
    slot = job.confirmed.bit_length() - 1
    if slot <= 0 or not job.owners & job.confirmed:
        node.keep_after_all(job)
    else:
        job.offer = FORGOTTEN_OFFER
        node.jobs_of(node.members.by_slot[slot]).held[job.id] = job
