"""The one way to the journal's files: the port, and the real disk."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Protocol

from disqueue.journal.appending import append_all


class DiskFile(Protocol):
    """A file that is only appended to."""

    def write(self, data: bytes | bytearray) -> None:
        """Append all of `data`, or raise OSError; then any part of it may have been written."""

    def sync(self) -> None:
        """Return when what was written is on the disk; OSError: what was written since the last success may be lost."""

    def truncate(self, size: int) -> None:
        """Cut the file; the next write goes there."""

    def close(self) -> None:
        """Close the file without syncing it."""


class Disk(Protocol):
    """A directory of files, named by their base names. Every method may raise OSError."""

    path: str

    def names(self) -> list[str]:
        """Return the names of the files there; creates the directory when it is missing."""

    def size(self, name: str) -> int:
        """Return how many bytes a file has."""

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset` on, fewer only at the file's end."""

    def create(self, name: str) -> DiskFile:
        """Make an empty file, in place of one that is there."""

    def open(self, name: str) -> DiskFile:
        """Open a file that is there to append to it."""

    def reserve(self, name: str, size: int) -> None:
        """Make a file that takes `size` bytes of space, in place of one that is there; none is left when that fails."""

    def replace(self, source: str, target: str) -> None:
        """Give a file another name, in place of one that is there."""

    def remove(self, name: str) -> None:
        """Remove a file; one that is missing is fine."""

    def sync_directory(self) -> None:
        """Return when the names are on the disk."""

    def lock(self) -> bool:
        """Keep other processes off this directory; False when one is there."""

    def unlock(self) -> None:
        """Let others in again."""

    def boot_id(self) -> bytes:
        """Return what is the same as long as the operating system runs, and so keeps what was written but not synced."""


class OsFile:
    """A file of the operating system."""

    def __init__(self, path: str, flags: int) -> None:
        self._descriptor = os.open(path, flags | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o640)
        self._counts_links = os.fstat(self._descriptor).st_nlink > 0  # not all file systems do

    def write(self, data: bytes | bytearray) -> None:
        append_all(self._descriptor, data)

    def sync(self) -> None:
        os.fdatasync(self._descriptor)
        if self._counts_links and os.fstat(self._descriptor).st_nlink == 0:  # the disk takes it, but no start will find it
            raise OSError(errno.ENOENT, "the file has been removed while the server runs")

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def close(self) -> None:
        os.close(self._descriptor)


class OsDisk:
    """A directory of the operating system, made when it is missing (`make`).

    Its path is made absolute once, so that a change of directory does not move it.
    """

    def __init__(self, path: str | os.PathLike[str], make: bool = True) -> None:
        self.path = os.path.abspath(path)
        self._make = make
        self._lock = -1

    def _file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def names(self) -> list[str]:
        if self._make:
            os.makedirs(self.path, mode=0o750, exist_ok=True)
        return sorted(entry.name for entry in os.scandir(self.path) if entry.is_file(follow_symlinks=False))

    def size(self, name: str) -> int:
        return os.stat(self._file(name)).st_size

    def read(self, name: str, offset: int, size: int) -> bytes:
        with open(self._file(name), "rb", buffering=0) as file:
            file.seek(offset)
            pieces = []
            while size > 0:
                piece = file.read(size)
                if not piece:
                    break
                pieces.append(piece)
                size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def create(self, name: str) -> OsFile:
        return OsFile(self._file(name), os.O_CREAT | os.O_TRUNC)

    def open(self, name: str) -> OsFile:
        return OsFile(self._file(name), 0)

    def reserve(self, name: str, size: int) -> None:
        descriptor = os.open(self._file(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
        try:
            _fill(descriptor, size)
            os.fsync(descriptor)
        except OSError:
            self.remove(name)
            raise
        finally:
            os.close(descriptor)

    def replace(self, source: str, target: str) -> None:
        os.replace(self._file(source), self._file(target))

    def remove(self, name: str) -> None:
        Path(self._file(name)).unlink(missing_ok=True)

    def sync_directory(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self) -> bool:
        descriptor = os.open(self._file("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._lock = descriptor
        return True

    def unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def boot_id(self) -> bytes:
        try:
            return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
        except OSError:
            return b""


def _fill(descriptor: int, size: int) -> None:
    """Give a new file its space; where the system cannot do that without writing, zeros are written."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    zeros = bytes(1 << 20)
    while size > 0:
        size -= os.write(descriptor, zeros[:size])
