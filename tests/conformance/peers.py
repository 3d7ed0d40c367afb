"""Programs of others that tests talk to: where they are, and how to install them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

NODE_DIRECTORY = Path(__file__).parent / "node"
INSTALL = ".ci/install-peers installs what is missing"
PEERS = ("redis-cli", "redis-benchmark", "node")


def installed(peer: str) -> bool:
    """Whether the program (for node: its packages too) is there."""
    if shutil.which(peer) is None:
        return False
    return peer != "node" or (NODE_DIRECTORY / "node_modules" / "ioredis").is_dir()


def missing() -> tuple[str, ...]:
    """The peers that are not there and may be absent: on CI none may be, and a test that needs one fails."""
    return () if os.environ.get("CI") else tuple(peer for peer in PEERS if not installed(peer))
