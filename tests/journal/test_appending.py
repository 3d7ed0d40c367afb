"""Writing to a file, and the buffers that are used again, in both twins."""

from __future__ import annotations

import errno
import importlib
import os
import resource
import signal
from pathlib import Path
from types import ModuleType

import pytest

from disqueue._twins import load_plain
from disqueue.journal.writer import UNSYNCED_BYTES_SOON
from tests.journal.support import new_server

NAME = "disqueue.journal.appending"
TWINS = [importlib.import_module(NAME), load_plain([NAME])[NAME]]


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("size", [0, 1, 70_000, (1 << 21) + 5])
def test_all_is_written(twin: ModuleType, size: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    with path.open("wb") as file:
        twin.append_all(file.fileno(), data)
        twin.append_all(file.fileno(), bytearray(data))
    assert path.read_bytes() == data * 2


@pytest.mark.parametrize("twin", TWINS)
def test_an_error_is_told_and_a_part_may_have_been_written(twin: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "file"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with path.open("wb") as file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
            with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
                twin.append_all(file.fileno(), b"x" * 1500)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.stat().st_size == 1000


@pytest.mark.parametrize("twin", TWINS)
def test_what_is_no_file_or_no_bytes_is_refused(twin: ModuleType) -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        twin.append_all(-1, b"x")
    with pytest.raises(TypeError):
        twin.append_all(1, "text")


def test_buffers_are_used_again_and_hold_what_is_new() -> None:
    server = new_server(policy="always")
    for number in range(50):
        server.add(body=b"%d" % number * (1 + number % 7))
        server.run_pass()
        assert server.runtime.writer.unsynced_bytes == 0
    writer = server.runtime.writer
    assert len(writer.spare) <= 2  # the beginning of the segment, and the one of the passes
    assert writer.spare_bytes == sum(map(len, writer.spare))
    assert server.restarted().state() == server.state()


def test_buffers_that_are_kept_have_a_bound() -> None:
    server = new_server(policy="no", segment_bytes=1 << 30)
    writer = server.runtime.writer
    while server.node.used_bytes < 3 * UNSYNCED_BYTES_SOON:
        server.add(body=bytes(1 << 20))
        server.run_pass()
    writer.sync_soon()
    server.run_pass()
    assert 0 < writer.spare_bytes <= UNSYNCED_BYTES_SOON
    assert writer.spare_bytes == sum(map(len, writer.spare))
