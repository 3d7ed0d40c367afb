"""Which peers this machine has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from comparison.peers.base import Peer, ProtocolPeer
from comparison.peers.beanstalkd import BeanstalkdPeer
from comparison.peers.disque import DisqueServer, Disqueue, original
from comparison.peers.nats import Nats
from comparison.peers.rabbitmq import RabbitMQ
from comparison.peers.redis import Redis
from disqueue.cli.bench_protocols import RedisList, RedisStream


@dataclass
class Peers:
    """Ours in its forms, and the others that can be run; `missing`: one line for each that can't."""

    ours: Disqueue = field(default_factory=Disqueue)
    plain: Disqueue = field(default_factory=lambda: Disqueue(plain=True))
    everysec: Disqueue = field(default_factory=lambda: Disqueue(journal="everysec"))
    always: Disqueue = field(default_factory=lambda: Disqueue(journal="always"))
    original: DisqueServer | None = None
    others: list[Peer] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def all(self) -> list[Peer]:
        """Everybody but our other forms: ours, the original, then the rest."""
        return [self.ours, *([self.original] if self.original else []), *self.others]

    def that_can(self, ability: str) -> list[ProtocolPeer]:
        """Those whose servers `disqueue bench` drives this way."""
        return [peer for peer in self.all() if isinstance(peer, ProtocolPeer) and ability in peer.can]


def find_peers(path_of_original: str | None) -> Peers:
    """Look for each peer's program."""
    peers = Peers()
    if path_of_original:
        peers.original = original(path_of_original)
        _keep([peers.original], peers.missing)
        if peers.missing:
            peers.original = None
    else:
        peers.missing.append("original: name its binary with --original")
    peers.others = _keep([Redis(RedisList), Redis(RedisStream), BeanstalkdPeer(), Nats(), RabbitMQ()], peers.missing)
    return peers


def _keep(candidates: Iterable[Peer], missing: list[str]) -> list[Peer]:
    kept = []
    for peer in candidates:
        reason = peer.missing()
        if reason:
            missing.append(f"{peer.name}: {reason}")
        else:
            kept.append(peer)
    return kept
