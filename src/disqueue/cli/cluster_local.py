"""`disqueue cluster local N`: nodes on this machine, joined, until Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from disqueue.cli.cluster_changes import ChangeRefused, Waiting, create
from disqueue.cli.nodes import SERVER_COMMAND, LocalNode, NodeFailed, stop_all

MAX_NODES = 64  # each is a process and a full mesh of links
_WATCH_S = 0.2


def run_local(
    count: int,
    port: int,
    directory: Path | None,
    options: Sequence[str],
    waiting: Waiting,
    command: Sequence[str] = SERVER_COMMAND,
) -> int:
    """Start, join, watch, stop. Without a directory a temporary one is used and removed at the end."""
    with contextlib.ExitStack() as stack:
        base = directory or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="disqueue-")))
        nodes = [LocalNode(port + number, base / f"node-{port + number}", options, command) for number in range(count)]
        stack.enter_context(_stopped_at_end(nodes))
        stop = stack.enter_context(_stop_event())
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
        print(f"directory: {base} ({'removed at the end' if directory is None else 'kept'}); each node's log is server.log there")
        print("Ctrl-C stops all", flush=True)
        return _watch(nodes, stop)


@contextlib.contextmanager
def _stopped_at_end(nodes: Sequence[LocalNode]) -> Iterator[None]:
    try:
        yield
    finally:
        for node in stop_all(nodes):
            print(f"the node on port {node.port} did not stop in time and was killed", file=sys.stderr)


@contextlib.contextmanager
def _stop_event() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM, from here to the end of the block."""
    event = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    previous = [signal.signal(number, lambda *_: event.set()) for number in signals]
    try:
        yield event
    finally:
        for number, handler in zip(signals, previous, strict=True):
            signal.signal(number, handler)


def _watch(nodes: Sequence[LocalNode], stop: threading.Event) -> int:
    """Until a signal, or until no node is left; tells of each that ends by itself."""
    running = list(nodes)
    while not stop.wait(_WATCH_S):
        for node in [node for node in running if node.status is not None]:
            running.remove(node)
            print(
                f"the node on port {node.port} ended with status {node.status}:\n{node.log_tail()}", file=sys.stderr, flush=True
            )
        if not running:
            print("no node is left", file=sys.stderr)
            return 1
    print("stopping all nodes", flush=True)
    return 0
