"""A job whose copies are being made on other nodes."""

from __future__ import annotations

from disqueue.core.client import Answer, Client
from disqueue.core.timers import NEVER_MS

STEP_MS = 50
"""Another node is tried when confirmations are missing for this long, or longer where round trips take longer."""
MAX_STEP_MS = 2000


class Copying(Answer):
    """How far the copies are. `client` waits for them, or is None (ASYNC, or the client went away)."""

    def __init__(self, client: Client | None, external: bool, next_ms: int) -> None:
        self.text = b""
        self.client = client
        self.job_id = b""
        self.deadline_ms = NEVER_MS
        """When the client's timeout has passed."""
        self.external = external
        """This node keeps no copy itself: it is leaving or short of memory."""
        self.confirmed = 0 if external else 1
        """Mask of the nodes that keep one."""
        self.told = 0
        """Mask of the owners that stood in the first copies that went out."""
        self.refused = 0
        self.reason = 0
        """Why a node refused last."""
        self.repeated = 0
        """Mask of the nodes that were asked again before they had answered: one more answer will come from each."""
        self.paused = False
        """A node refused because the queue is paused there."""
        self.next_ms = next_ms
        self.step_ms = STEP_MS
