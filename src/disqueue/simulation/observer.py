"""Who watches a run: the interface between the simulated shell and the checkers. This one does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.core.journal_port import JournalPort

if TYPE_CHECKING:
    from disqueue.simulation.cluster import Cluster
    from disqueue.simulation.connection import ClientConnection, Request
    from disqueue.simulation.process import Process
    from disqueue.simulation.replies import Reply


class Observer:
    """Hears of what happens; raises `Violation` for what must not."""

    cluster: Cluster

    def journal_of(self, process: Process) -> JournalPort | None:
        """Return the journal port for a new process."""
        return JournalPort()

    def request_started(self, connection: ClientConnection, request: Request) -> None:
        """A node is about to execute a request."""

    def reply_left(self, connection: ClientConnection, request: Request | None, reply: Reply) -> None:
        """A node has sent a reply; `request` is None for one that nobody asked for."""

    def reply_withheld(self, connection: ClientConnection, request: Request | None, reply: Reply) -> None:
        """A reply was thrown away: what it promises could not be written, or the client is gone."""

    def node_forgotten(self) -> None:
        """A node is about to be removed from the cluster."""

    def pause_overruled(self, process: Process, name: bytes) -> None:
        """The pause state of a queue was set by something else than a request of a client."""

    def connection_ended(self, connection: ClientConnection) -> None:
        """A client is gone."""

    def pass_ended(self, process: Process) -> None:
        """A pass of a node is over."""

    def process_ended(self, process: Process) -> None:
        """A node's process was killed; its memory is lost."""

    def process_restored(self, process: Process) -> None:
        """A new process has loaded the journal of its machine."""

    def process_failed(self, process: Process, error: Exception) -> None:
        """A node raised an exception."""
