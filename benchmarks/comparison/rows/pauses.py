"""How long the loop stands still with many jobs held, under load, while the journal is compacted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing

from comparison.pauses import probing
from comparison.peers.base import Peer, ProtocolPeer, Work
from comparison.peers.found import Peers
from comparison.rows.base import Context, Figure, Plot, Row, Target
from disqueue.cli.connection import Connection
from disqueue.cli.watch import info_fields

PAUSE = "longest pause, CPU"
PAUSE_MS = 20.0
LEAST_TURNS, MOST_TURNS = 5, 60


class Compacting(Row):
    """A million jobs, a load of cycles, and BGREWRITEAOF from beginning to end."""

    key = "pauses"
    title = "Longest pause with many jobs held, under load, with compaction running"
    rounds = 1
    long = True
    targets = (Target(PAUSE, PAUSE_MS, of="Disqueue, journal everysec"),)
    plots = (Plot("pauses", "Longest pause of the loop under load while the journal is compacted", (PAUSE,)),)

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return [peers.ours, peers.everysec]

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        assert isinstance(peer, ProtocolPeer)
        with peer.nodes() as running, closing(Connection(running.target())) as asking:
            peer.adds(running, Work(context.sizes.held, pipeline=200), context.tell)
            journal = info_fields(asking.call("INFO")).get("aof_enabled") == "1"
            turns = 0
            with probing(running) as pauses:
                if journal:
                    asking.call("BGREWRITEAOF")
                while turns < LEAST_TURNS or (turns < MOST_TURNS and journal and _compacts(asking)):
                    peer.cycle(running, Work(context.sizes.jobs), context.tell)
                    turns += 1
            fields = info_fields(asking.call("INFO"))
        yield Figure(PAUSE, "ms", pauses.cpu_ms, "" if not journal or not _still(fields) else "compaction did not end in time")
        yield Figure("longest wait of a client, wall", "ms", pauses.wall_ms)
        yield Figure("pauses above 20 ms", "of all", pauses.above_20_ms)
        yield Figure("probes", "of a ms each", pauses.asked)


def _compacts(asking: Connection) -> bool:
    return _still(info_fields(asking.call("INFO")))


def _still(fields: dict[str, str]) -> bool:
    return fields.get("aof_rewrite_in_progress") == "1"
