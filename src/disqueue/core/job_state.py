"""The states of a job, and the flags that go with them."""

from __future__ import annotations

WAIT_REPL = 0
"""Its producer waits for the copies."""
ACTIVE = 1
"""Known but not queued: a replica, delayed, or out with a worker."""
QUEUED = 2
ACKED = 3
"""Acknowledged; kept until every owner knows."""
GONE = 4
"""No longer registered; somebody may still hold the object."""

STATE_NAMES = (b"wait-repl", b"active", b"queued", b"acked", b"gone")

DELIVERED = 1
"""Handed out by this node at least once, to a worker or to another node."""
ONCE_QUEUED = 2
"""Queued before, here or elsewhere: the next queueing is an additional delivery and is announced."""
ASKED = 4
"""The other owners have been asked whether one of them has the job; nobody has said so yet."""
LEASED = 8
"""Out with a worker of this node until `due_ms`."""
PLACEHOLDER = 16
"""Nothing is known but the id: the acknowledgement of a job that this node has never seen."""
DELETED = 32
"""Acknowledged by DELJOB or FASTACK: for clients the job does not exist any more."""
HELD = 64
"""An at-most-once job on its way between two nodes: neither may deliver it yet."""
DELAYED = 128
"""Not queued anywhere yet: `due_ms` is its first queueing."""

MOVED = 256
"""Sent to another node, which has it queued or out with a worker until `due_ms`; bit of that node in `confirmed`."""

CONTESTED = 512
"""Another node has the job too, while it is out with a worker of this one: ask again before it is queued."""

RESTORED = 1024
"""An at-most-once job that this process has from its journal: it goes when the disk turns out to be an old copy."""

COUNTER_MAX = 0xFFFF
