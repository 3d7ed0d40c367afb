"""Keeps nodes.conf up to date without holding up the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from disqueue.core.membership import Membership
from disqueue.core.membership_ports import TableKeeper
from disqueue.core.nodes_text import nodes_file
from disqueue.server import logs
from disqueue.server.nodes_file import NodesFile

RETRY_S = 5.0


class NodesKeeper(TableKeeper):
    """Writes the table after the passes that changed it, in a thread, one write at a time: the last state wins.

    `at_end` lets `end_pass` be called at the end of the pass under way.
    """

    def __init__(self, membership: Membership, file: NodesFile, at_end: Callable[[Callable[[], None]], None]) -> None:
        self._membership = membership
        self._file = file
        self._thread = ThreadPoolExecutor(1, "nodes-file")
        self._writing: asyncio.Future[None] | None = None
        self._dirty = True
        self._held = False
        self._at_end = at_end
        membership.keeper = self
        at_end(self.end_pass)

    def hold(self) -> None:
        """Write nothing until `release`: the table is not in memory yet, and what is on disk is all there is of it."""
        self._held = True

    def release(self) -> None:
        """The table is in memory, and may be written."""
        self._held = False
        if self._dirty:
            self._at_end(self.end_pass)

    def changed(self) -> None:
        if not self._dirty:
            self._dirty = True
            self._at_end(self.end_pass)

    def end_pass(self) -> None:
        """Begin a write when one is needed."""
        if self._dirty and self._writing is None and not self._held:
            self._dirty = False
            loop = asyncio.get_running_loop()
            self._writing = loop.run_in_executor(self._thread, self._file.save, nodes_file(self._membership))
            self._writing.add_done_callback(self._written)

    def save_now(self) -> str:
        """Write and wait for it; returns what went wrong, or nothing."""
        if self._held:
            return "the node is still starting"
        self._dirty = False
        try:
            self._thread.submit(self._file.save, nodes_file(self._membership)).result()
        except OSError as error:
            self.changed()  # it is tried again
            return error.strerror or str(error)
        return ""

    def close(self) -> None:
        """The last write, at the end of the process."""
        trouble = self.save_now() if (self._dirty or self._writing is not None) and not self._held else ""
        if trouble:
            logs.log_event("warning", "nodes.conf could not be written", why=trouble)
        self._thread.shutdown()
        self._file.unlock()

    def _written(self, future: asyncio.Future[None]) -> None:
        error = future.exception()
        if error is not None:
            self._dirty = True
            logs.log_event("warning", "nodes.conf could not be written, it is tried again", why=str(error))
            asyncio.get_running_loop().call_later(RETRY_S, self._retry)
            return
        self._writing = None
        if self._dirty:
            self.end_pass()

    def _retry(self) -> None:
        self._writing = None
        self.end_pass()
