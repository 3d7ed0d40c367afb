"""The manifest: which segments make up the journal. It is replaced as a whole, so it is the moment at which things happen."""

from __future__ import annotations

import msgspec
from crc32c import crc32c

from disqueue.journal.disk import Disk
from disqueue.journal.errors import JournalError, LaterFormatError
from disqueue.wire.journal_format import (
    FORMAT_VERSION,
)

MANIFEST = "manifest"
MANIFEST_NEW = "manifest.new"
MANIFEST_BYTES_MAX = 16 << 20
SEGMENT_PREFIX = "segment-"
NEW_SUFFIX = ".new"


class Entry(msgspec.Struct):
    """A segment; `end` is its length once the next segment has begun, what is behind that does not count."""

    number: int
    end: int | None = None


class Manifest(msgspec.Struct):
    """What the journal is made of, oldest segment first.

    `removing`: files that no longer count and may still be there. `runs`: how often a server has written here.
    `base_bytes`: the journal's size after it was last compacted as a whole. `complete`: false while a journal that was
    switched on at run time does not hold all jobs yet. `doubtful`: up to this segment a repair left something out.
    """

    node_id: str
    segments: list[Entry]
    removing: list[int] = []
    runs: int = 0
    base_bytes: int = 0
    complete: bool = True
    doubtful: int = 0
    format: int = FORMAT_VERSION


def segment_name(number: int) -> str:
    """Return the name of a segment's file."""
    return f"{SEGMENT_PREFIX}{number:010d}"


def segment_numbers(names: list[str]) -> list[int]:
    """Return the numbers of the segments among file names, those that were about to be made included."""
    digits = [name[len(SEGMENT_PREFIX) :].removesuffix(NEW_SUFFIX) for name in names if name.startswith(SEGMENT_PREFIX)]
    return sorted({int(number) for number in digits if number.isascii() and number.isdecimal()})


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the file: one line of JSON and one with its checksum."""
    text = msgspec.json.encode(manifest)
    return b"%s\ncrc32c %08x\n" % (text, crc32c(text))


def decode_manifest(data: bytes, file: str) -> Manifest:
    """Return the manifest in a file; raises `JournalError`."""
    stake = "Without it the journal's segments cannot be told from leftovers"
    remedy = "Run `disqueue check-journal --repair` on this directory: it rebuilds the manifest from the segments"
    text, _, rest = data.partition(b"\n")
    if rest != b"crc32c %08x\n" % crc32c(text):
        raise JournalError("the manifest is damaged: its checksum is wrong", file=file, offset=0, stake=stake, remedy=remedy)
    try:
        version = msgspec.json.decode(text, type=dict[str, object]).get("format")
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise newer_format(file, version)
        return msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise JournalError(f"the manifest is not one: {error}", file=file, offset=0, stake=stake, remedy=remedy) from error


def newer_format(file: str, version: int) -> LaterFormatError:
    """Return the error for files of a later release."""
    return LaterFormatError(
        f"it is written in format {version}, this release reads up to format {FORMAT_VERSION}",
        file=file,
        stake="Nothing was changed",
        remedy="Start the release that wrote it, or a later one",
    )


def load_manifest(disk: Disk) -> Manifest | None:
    """Return the manifest, or None when there is none; raises `JournalError` and OSError."""
    if MANIFEST not in disk.names():
        return None
    return decode_manifest(disk.read(MANIFEST, 0, MANIFEST_BYTES_MAX), f"{disk.path}/{MANIFEST}")


def store_manifest(disk: Disk, manifest: Manifest) -> None:
    """Replace the manifest; when this returns the new one is on the disk."""
    file = disk.create(MANIFEST_NEW)
    try:
        file.write(encode_manifest(manifest))
        file.sync()
    finally:
        file.close()
    disk.replace(MANIFEST_NEW, MANIFEST)
    disk.sync_directory()
