"""A disk in memory that fails as disks do, by the dice of a seed.

It knows what every process sees (`content`) and what would be left after a power failure (`durable` and, by chance, parts
of what was written since). A failed fsync drops what it was to write, and the next one succeeds: that is what kernels do.
"""

from __future__ import annotations

import errno
import os
from random import Random

SECTOR_BYTES = 512

LOSE_ALL = 0
"""What a power failure does to writes that were not synced: none, all, or the first of them survive, or any sectors."""
LOSE_NONE = 1
LOSE_TAIL = 2
LOSE_SECTORS = 3


class SimulatedCrash(Exception):
    """The process died in the middle of a write."""


def failure(code: int) -> OSError:
    """Return the error of an operating system."""
    return OSError(code, os.strerror(code))


class FileData:
    """The bytes of a file: as processes see them, as they are on the platter, and the writes in between."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes | None]] = []
        """Writes (offset, data) and cuts (size, None) since the last fsync."""

    def write_at(self, offset: int, data: bytes) -> None:
        put(self.content, offset, data)
        self.pending.append((offset, data))

    def cut(self, size: int) -> None:
        del self.content[size:]
        self.pending.append((size, None))

    def settle(self) -> None:
        for offset, data in self.pending:
            apply(self.durable, offset, data)
        self.pending.clear()

    def lose_power(self, random: Random) -> None:
        """Keep of the pending writes what chance leaves."""
        mode = random.choice((LOSE_ALL, LOSE_NONE, LOSE_TAIL, LOSE_TAIL, LOSE_SECTORS))
        kept = len(self.pending) if mode in (LOSE_NONE, LOSE_SECTORS) else 0
        if mode == LOSE_TAIL and self.pending:
            kept = random.randrange(len(self.pending) + 1)
        reached: dict[int, int] = {}
        for index, (offset, data) in enumerate(self.pending[:kept]):
            if mode == LOSE_SECTORS and data is not None:
                self._keep_sectors(index, offset, data, reached, random)
            else:
                apply(self.durable, offset, data)
        if mode == LOSE_TAIL and kept < len(self.pending):
            offset, data = self.pending[kept]
            if data:
                put(self.durable, offset, data[: random.randrange(len(data))])
        self.pending.clear()
        self.content = bytearray(self.durable)

    def _keep_sectors(self, index: int, offset: int, data: bytes, reached: dict[int, int], random: Random) -> None:
        """Each sector is there as of some moment: as it was before the first writes that are lost to it."""
        end = offset + len(data)
        at = offset
        while at < end:
            sector = at // SECTOR_BYTES
            stop = min(end, (sector + 1) * SECTOR_BYTES)
            if sector not in reached:
                reached[sector] = random.choice(
                    (0, len(self.pending), len(self.pending), random.randrange(len(self.pending) + 1))
                )
            if index < reached[sector]:
                put(self.durable, at, data[at - offset : stop - offset])
            at = stop


def put(target: bytearray, offset: int, data: bytes) -> None:
    """Write into `target`; a gap before it is filled with zeros."""
    if len(target) < offset:
        target.extend(bytes(offset - len(target)))
    target[offset : offset + len(data)] = data


def apply(target: bytearray, offset: int, data: bytes | None) -> None:
    """Do a write or, when `data` is None, a cut."""
    if data is None:
        del target[offset:]
    else:
        put(target, offset, data)


class SimulatedFile:
    """An open file; it is of no use any more once the process has crashed."""

    def __init__(self, disk: SimulatedDisk, data: FileData) -> None:
        self._disk = disk
        self._data = data
        self._process = disk.process

    def write(self, data: bytes | bytearray) -> None:
        self._check()
        self._disk.write(self._data, bytes(data))

    def sync(self) -> None:
        self._check()
        self._disk.sync(self._data)

    def truncate(self, size: int) -> None:
        self._check()
        self._disk.fail_by_chance("truncate")
        self._data.cut(size)

    def close(self) -> None:
        """Nothing: closing forces nothing to the disk."""

    def _check(self) -> None:
        if self._process != self._disk.process:
            raise AssertionError("a file of a process that has crashed is used")


class SimulatedDisk:
    """A directory (see `journal.disk.Disk`) whose faults are set by its attributes.

    `failing`: operations that fail with an errno until they are taken out. `rates`: chance of EIO for each operation.
    `capacity_bytes`: more than this is ENOSPC. `misdirect_rate`: chance that a write lands elsewhere in the same file.
    `crash_after_bytes`: the process dies when it has written so many more. `sync_ms`: how long an fsync takes, for shells that
    run it in the background.
    """

    def __init__(self, random: Random, path: str = "/simulated") -> None:
        self.path = path
        self.random = random
        self.process = 0
        self.boots = 0
        self.failing: dict[str, int] = {}
        self.rates: dict[str, float] = {}
        self.capacity_bytes = -1
        self.misdirect_rate = 0.0
        self.crash_after_bytes = -1
        self.sync_ms = 1
        self.syncs = 0
        self.written_bytes = 0
        self.locked = False
        self.entries: dict[str, FileData] = {}
        self._durable_entries: dict[str, FileData] = {}
        self._pending: list[tuple[str, FileData | None]] = []

    # -- the port

    def names(self) -> list[str]:
        self.fail_by_chance("names")
        return sorted(self.entries)

    def size(self, name: str) -> int:
        return len(self._file(name).content)

    def read(self, name: str, offset: int, size: int) -> bytes:
        self.fail_by_chance("read")
        return bytes(self._file(name).content[offset : offset + size])

    def create(self, name: str) -> SimulatedFile:
        self.fail_by_chance("create")
        data = FileData()
        self._set_entry(name, data)
        return SimulatedFile(self, data)

    def open(self, name: str) -> SimulatedFile:
        self.fail_by_chance("open")
        return SimulatedFile(self, self._file(name))

    def reserve(self, name: str, size: int) -> None:
        self.remove(name)
        self.fail_by_chance("create")
        if 0 <= self._room() < size:
            raise failure(errno.ENOSPC)
        data = FileData()
        data.content, data.durable = bytearray(size), bytearray(size)
        self._set_entry(name, data)

    def replace(self, source: str, target: str) -> None:
        self.fail_by_chance("replace")
        data = self._file(source)
        # One step on disk, as rename promises.
        self._pending.append((source, None))
        self._pending.append((target, data))
        del self.entries[source]
        self.entries[target] = data

    def remove(self, name: str) -> None:
        self.fail_by_chance("remove")
        if name in self.entries:
            self._pending.append((name, None))
            del self.entries[name]

    def sync_directory(self) -> None:
        self.fail_by_chance("sync_directory")
        for name, data in self._pending:
            self._set_durable(name, data)
        self._pending.clear()

    def lock(self) -> bool:
        if self.locked:
            return False
        self.locked = True
        return True

    def unlock(self) -> None:
        self.locked = False

    def boot_id(self) -> bytes:
        return b"boot-%d" % self.boots

    # -- what files call

    def write(self, data: FileData, written: bytes) -> None:
        """Append to a file as far as the faults let it."""
        allowed = len(written)
        error: BaseException | None = None
        room = self._room()
        if 0 <= room < allowed:
            allowed, error = room, failure(errno.ENOSPC)
        if "write" in self.failing:
            allowed, error = self.random.randrange(allowed + 1), failure(self.failing["write"])
        elif self.random.random() < self.rates.get("write", 0.0):
            allowed, error = self.random.randrange(allowed + 1), failure(errno.EIO)
        if 0 <= self.crash_after_bytes <= allowed:
            allowed, error = self.crash_after_bytes, SimulatedCrash()
        offset = len(data.content)
        if self.random.random() < self.misdirect_rate:
            self._misdirect(data, written[:allowed])
        elif allowed:
            data.write_at(offset, written[:allowed])
        self.written_bytes += allowed
        if self.crash_after_bytes >= 0:
            self.crash_after_bytes -= allowed
        if error is not None:
            raise error

    def _room(self) -> int:
        """Return how many bytes are free; -1: any number."""
        if self.capacity_bytes < 0:
            return -1
        return max(0, self.capacity_bytes - sum(len(file.content) for file in self.entries.values()))

    def _misdirect(self, data: FileData, written: bytes) -> None:
        """The file grows as it should, but the bytes are written over others."""
        end = len(data.content)
        data.write_at(end, bytes(len(written)))
        data.write_at(self.random.randrange(end // SECTOR_BYTES + 1) * SECTOR_BYTES, written)

    def sync(self, data: FileData) -> None:
        """Force a file to the platter, or fail and forget what was to be written."""
        self.syncs += 1
        try:
            self.fail_by_chance("sync")
        except OSError:
            data.pending.clear()
            raise
        data.settle()

    def fail_by_chance(self, operation: str) -> None:
        """Raise OSError when a fault is set for the operation and the dice say so."""
        if operation in self.failing:
            raise failure(self.failing[operation])
        rate = self.rates.get(operation, 0.0)
        if rate and self.random.random() < rate:
            raise failure(errno.EIO)

    # -- what happens to the machine

    def kill(self) -> None:
        """The process dies; the operating system keeps what was written."""
        self.process += 1
        self.locked = False
        self.crash_after_bytes = -1

    def lose_power(self) -> None:
        """The machine dies: of what was not synced, chance decides."""
        self.kill()
        self.boots += 1
        kept = self.random.randrange(len(self._pending) + 1) if self._pending else 0
        if 0 < kept < len(self._pending) and self._pending[kept - 1][1] is None and self._pending[kept][1] is not None:
            kept -= 1  # both halves of a rename or neither
        for name, data in self._pending[:kept]:
            self._set_durable(name, data)
        self._pending.clear()
        self.entries = dict(self._durable_entries)
        for file in self.entries.values():
            file.lose_power(self.random)

    def heal(self) -> None:
        """No more faults."""
        self.failing = {}
        self.rates = {}
        self.capacity_bytes = -1
        self.misdirect_rate = 0.0
        self.crash_after_bytes = -1
        self.sync_ms = 1

    def flip_bit(self, name: str, bit: int) -> None:
        """Change one bit of a file, on the platter and in memory."""
        file = self._file(name)
        for target in (file.content, file.durable):
            if bit // 8 < len(target):
                target[bit // 8] ^= 1 << (bit % 8)

    def copy(self) -> SimulatedDisk:
        """Return another disk with the same files, all of it synced, and without faults."""
        other = SimulatedDisk(Random(self.random.random()), self.path)
        other.boots = self.boots
        for name, data in self.entries.items():
            copied = FileData()
            copied.content = bytearray(data.content)
            copied.durable = bytearray(data.content)
            other.entries[name] = copied
            other._durable_entries[name] = copied
        return other

    def _file(self, name: str) -> FileData:
        data = self.entries.get(name)
        if data is None:
            raise failure(errno.ENOENT)
        return data

    def _set_entry(self, name: str, data: FileData) -> None:
        self._pending.append((name, data))
        self.entries[name] = data

    def _set_durable(self, name: str, data: FileData | None) -> None:
        if data is None:
            self._durable_entries.pop(name, None)
        else:
            self._durable_entries[name] = data
