"""Writing to a file without making objects of it. The compiled twin is `appending.pyx`."""

from __future__ import annotations

import os


def append_all(descriptor: int, data: bytes | bytearray) -> None:
    """Write all of `data` to a file. Raises OSError; then any part of it may have been written."""
    written = os.write(descriptor, data)
    if written < len(data):
        view = memoryview(data)[written:]
        while view:
            view = view[os.write(descriptor, view) :]
