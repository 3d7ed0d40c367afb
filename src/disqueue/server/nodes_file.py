"""nodes.conf on disk: the node's id and the nodes it knows, and the lock that keeps a second process away.

Written to a temporary file, synced and renamed, so that a crash leaves the old one or the new one. A damaged file never keeps
a node from starting: it is set aside, and what can be read of it is used.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from disqueue.core.nodes_text import NodesTable, parse_nodes
from disqueue.server import logs

MAX_DAMAGED_COPIES = 20
MAX_FILE_BYTES = 4 << 20
"""Far more than a table of the largest cluster has."""

NOBODY = "nodes.conf is damaged and does not say who this node is"


class DirectoryInUseError(Exception):
    """Another process has the lock. The text says which file and which process."""


@dataclass(slots=True)
class NodesFile:
    """`path` is absolute, so that a later change of the working directory does not move it."""

    path: Path
    _lock: int = -1

    def lock(self) -> None:
        """Keep other processes from this file until this one ends. Raises `DirectoryInUseError`, `OSError`."""
        lock_path = self.path.with_name(self.path.name + ".lock")
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise DirectoryInUseError(
                f"{self.path} is in use by another node (process {owner or 'unknown'}): "
                "give each node a directory of its own (dir)"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        self._lock = descriptor

    def unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def load(self) -> NodesTable:
        """What the file holds; a damaged one is set aside with a line in the log. Raises `OSError` when it cannot be read."""
        try:
            with self.path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES)
        except FileNotFoundError:
            return NodesTable()
        table = parse_nodes(data.decode("utf-8", "replace"))
        if table.problems:
            copy = self._set_aside(data)
            logs.log_event(
                "warning",
                f"{self.path.name} is damaged, what can be read of it is used" if table.me else NOBODY,
                file=str(self.path),
                copy=copy,
                problems="; ".join(table.problems),
                nodes_read=len(table.others),
            )
        return table

    def save(self, text: str) -> None:
        """Replace the file. Raises `OSError`; the old file is whole then."""
        temporary = self.path.with_name(self.path.name + ".tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fsync(descriptor)
            os.replace(temporary, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        directory = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _set_aside(self, data: bytes) -> str:
        """Keep a copy of a damaged file; the last of many is overwritten. Returns its name, or why there is none."""
        for number in range(1, MAX_DAMAGED_COPIES + 1):
            copy = self.path.with_name(f"{self.path.name}.damaged-{number}")
            if number < MAX_DAMAGED_COPIES and copy.exists():
                continue
            try:
                copy.write_bytes(data)
            except OSError as error:
                return f"none ({error.strerror})"
            return copy.name
        return "none"
