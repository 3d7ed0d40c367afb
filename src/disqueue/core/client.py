"""What the broker knows of one client connection."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from disqueue.core.timers import Timed

if TYPE_CHECKING:
    from disqueue.wire.resp import ReplyWriter

NOT_BLOCKED = 0
BLOCKED_GETJOB = 1
BLOCKED_ADDJOB = 2
BLOCKED_FORWARD = 3

REPLY_ON = 0
REPLY_OFF = 1
REPLY_SKIP_NEXT = 2
REPLY_SKIP = 3


MAX_PENDING_ADDS = 1000
"""ADDJOBs of one connection that wait for their copies at a time; more wait in the connection."""


class Answer:
    """The reply to one ADDJOB that waits, or to one that came behind it: `text` is empty until it is known."""

    def __init__(self, text: bytes) -> None:
        self.text = text


class Client(Timed):
    """One connection, as the core and the commands see it.

    A blocked client's further requests are kept back by the shell until the node calls `on_unblock`; only an ADDJOB behind others
    that wait for their copies may be executed at once, by `Dispatcher.execute_behind`.
    `wake_ms` (from `Timed`) is the deadline of the command it is blocked in.
    """

    def __init__(self, client_id: int, reply: ReplyWriter, address: str = "") -> None:
        Timed.__init__(self)
        self.id = client_id
        self.reply = reply
        self.connection: object = None
        """The shell's own object for this client; the core does not look at it."""
        self.address = address
        self.name = b""
        self.library_name = b""
        self.library_version = b""
        self.authenticated = False
        self.monitor = False
        self.unix_socket = False
        self.close_asap = False
        self.close_after_reply = False
        self.reply_mode = REPLY_ON
        self.connected_ms = 0
        self.active_ms = 0
        self.last_command = b""
        # blocked state
        self.blocked = NOT_BLOCKED
        self.waiting_queues: list[Any] = []
        self.wanted_jobs = 0
        self.with_counters = False
        self.request: Any = None
        """The `Request` that a blocked client waits for."""
        self.pending_adds: deque[Answer] = deque()
        """The ADDJOBs that wait for their copies, in the order of their replies."""
