"""Disqueue in its forms, and the original server: the same protocol, the same options."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence

import disqueue
from comparison.peers.base import CLUSTER, ProtocolPeer, Work
from comparison.servers import HERE, Running, ask, wait_for
from disqueue.cli.bench_protocols import Disque, Protocol

PLAIN_SHARE = 8


class DisqueServer(ProtocolPeer):
    """A server that speaks Disque's protocol."""

    can = ProtocolPeer.can | {CLUSTER}

    def __init__(self, name: str, words: Sequence[str], options: Sequence[str] = ()) -> None:
        self.name = name
        self.program = words[0]
        self.words = words
        self.options = options

    def command(self, port: int, folder: str) -> Sequence[str]:
        common = ["--port", str(port), "--dir", folder, "--maxmemory", "16gb", "--loglevel", "warning"]
        return [*self.words, *common, *self.options]

    def join(self, running: Running) -> None:
        for port in running.ports[1:]:
            ask(running.ports[0], f"CLUSTER MEET {HERE} {port}".encode())
        others = b"cluster_reachable_nodes:%d" % (len(running.ports) - 1)
        for port in running.ports:
            wait_for(lambda port=port: others in ask(port, b"CLUSTER INFO"), f"{self.name}: all nodes know each other")  # type: ignore[misc]

    def protocol(self, queue: bytes, work: Work, waits: bool) -> Protocol:
        return Disque(queue, work.body_bytes, work.copies)


class Disqueue(DisqueServer):
    """This package, run by this interpreter. `journal`: a policy of appendfsync; `plain`: Python, not compiled."""

    def __init__(self, journal: str = "", plain: bool = False) -> None:
        name = "Disqueue" + (f", journal {journal}" if journal else "") + (", plain Python" if plain else "")
        options = ["--appendonly", "yes", "--appendfsync", journal] if journal else []
        super().__init__(name, [sys.executable, "-m", "disqueue", "server"], options)
        self.share = PLAIN_SHARE if plain else 1
        self._environment = {"DISQUEUE_PURE": "1"} if plain else {}

    def environment(self, port: int, folder: str) -> Mapping[str, str]:
        return self._environment

    def version(self) -> str:
        return f"Disqueue {disqueue.__version__}, Python {platform.python_version()}"


def original(path: str) -> DisqueServer:
    """The original server, by the path of its binary."""
    return DisqueServer("original", [path])
