"""`disqueue cluster local N`: nodes on this machine, joined, until Ctrl-C."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from disqueue.cli.cluster_changes import ChangeRefused, Waiting, create
from disqueue.cli.nodes import SERVER_COMMAND, LocalNode, NodeFailed, stopped_at_end, termination_as_interrupt

MAX_NODES = 64  # each is a process and a full mesh of links
_WATCH_S = 0.2


def run_local(
    count: int,
    port: int,
    directory: Path | None,
    options: Sequence[str],
    waiting: Waiting,
    *,
    password: str = "",
    command: Sequence[str] = SERVER_COMMAND,
) -> int:
    """Start, join, watch, stop. Without a directory a temporary one is used and removed at the end."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(termination_as_interrupt())
        base = directory or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="disqueue-")))
        nodes = [LocalNode(port + number, base / f"node-{port + number}", options, command, password) for number in range(count)]
        stack.enter_context(stopped_at_end(nodes))
        try:
            for node in nodes:
                node.start()
            for node in nodes:
                node.wait_ready()
        except NodeFailed as error:
            raise ChangeRefused(str(error)) from error
        status = create([node.target for node in nodes], waiting)
        if status:
            return status
        return _watch(nodes, f"{base} ({'removed at the end' if directory is None else 'kept'})")


def _watch(nodes: Sequence[LocalNode], directory: str) -> int:
    """Until Ctrl-C, or until no node is left; tells of each that ends by itself."""
    running = list(nodes)
    try:
        print(f"directory: {directory}; each node's log is server.log there")
        print("Ctrl-C stops all", flush=True)
        while running:
            for node in [node for node in running if node.status is not None]:
                running.remove(node)
                told = f"the node on port {node.port} ended with status {node.status}:\n{node.log_tail()}"
                print(told, file=sys.stderr, flush=True)
            time.sleep(_WATCH_S)
    except KeyboardInterrupt:
        print("stopping all nodes", flush=True)
        return 0
    print("no node is left", file=sys.stderr)
    return 1
