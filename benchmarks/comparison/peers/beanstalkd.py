"""beanstalkd, without its binlog."""

from __future__ import annotations

from collections.abc import Sequence

from comparison.peers.base import ProtocolPeer, Work
from comparison.servers import HERE, ask
from disqueue.cli.bench_protocols import Beanstalkd, Protocol


class BeanstalkdPeer(ProtocolPeer):
    """beanstalkd, as its package installs it."""

    name = "beanstalkd"
    program = "beanstalkd"

    def version_words(self) -> Sequence[str]:
        return ["-v"]

    def command(self, port: int, folder: str) -> Sequence[str]:
        return [self.program, "-l", HERE, "-p", str(port)]

    def is_ready(self, port: int) -> bool:
        return ask(port, b"list-tube-used").startswith(b"USING")

    def protocol(self, queue: bytes, work: Work, waits: bool) -> Protocol:
        return Beanstalkd(queue, work.body_bytes, 0)
