"""CLUSTER: meeting, forgetting and looking at other nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from disqueue.commands.numbers import INVALID, parse_integer
from disqueue.commands.table import Command
from disqueue.core.membership_ports import ClusterError
from disqueue.core.nodes_text import BUS_PORT_OFFSET, nodes_reply
from disqueue.wire.records import NODE_ID_BYTES

if TYPE_CHECKING:
    from disqueue.commands.broker import Broker
    from disqueue.core.client import Client

    Subcommand = Callable[[Broker, Client, list[bytes]], None]

WRONG = b"ERR Wrong CLUSTER subcommand or number of arguments"
PORT_MAX = 0xFFFF
SHOWN_BYTES_MAX = 128


def cluster(broker: Broker, client: Client, args: list[bytes]) -> None:
    """Run a subcommand; `args` are all words of the request."""
    entry = SUBCOMMANDS.get(args[1].lower())
    if entry is None or not entry[1] <= len(args) - 2 <= entry[2]:
        client.reply.error(WRONG)
        return
    try:
        entry[0](broker, client, args[2:])
    except ClusterError as error:
        client.reply.error(b"ERR " + str(error).encode("utf-8", "replace"))


def _meet(broker: Broker, client: Client, args: list[bytes]) -> None:
    for word in args[1:]:
        if parse_integer(word) == INVALID:
            raise ClusterError(f"Invalid TCP port specified: {_shown(word)}")
    port = parse_integer(args[1])
    bus_port = parse_integer(args[2]) if len(args) == 3 else port + BUS_PORT_OFFSET
    if not 1 <= port <= PORT_MAX or not 1 <= bus_port <= PORT_MAX:
        raise ClusterError(f"Invalid node address specified: {_shown(args[0])}:{_shown(args[1])}")
    host = args[0].decode("ascii", "replace")
    broker.node.members.joining.meet(host, port, bus_port)
    client.reply.status(b"OK")


def _nodes(broker: Broker, client: Client, args: list[bytes]) -> None:
    client.reply.bulk(nodes_reply(broker.node.members).encode())


def _my_id(broker: Broker, client: Client, args: list[bytes]) -> None:
    client.reply.bulk(broker.node.node_id)


def _info(broker: Broker, client: Client, args: list[bytes]) -> None:
    members = broker.node.members
    stats = members.stats
    fields = (
        ("cluster_state", "ok"),
        ("cluster_known_nodes", members.size + len(members.joining.handshakes)),
        ("cluster_reachable_nodes", len(members.reachable)),
        ("cluster_size", members.size),
        ("cluster_stats_messages_sent", stats.messages_sent),
        ("cluster_stats_messages_received", stats.messages_received),
        ("cluster_suspected_nodes", sum(peer.suspected for peer in members.peers)),
        ("cluster_failed_nodes", sum(peer.failed for peer in members.peers)),
        ("cluster_banned_nodes", len(members.bans)),
        ("cluster_meet_failures", stats.meet_failures),
        ("cluster_last_meet_failure", stats.last_meet_failure),
        ("cluster_refused_connections", stats.links_refused),
    )
    client.reply.bulk("".join(f"{name}:{value}\r\n" for name, value in fields).encode())


def _save_config(broker: Broker, client: Client, args: list[bytes]) -> None:
    trouble = broker.node.members.keeper.save_now()
    if trouble:
        raise ClusterError(f"error saving the cluster node config: {trouble}")
    client.reply.status(b"OK")


def _keep(broker: Broker, done: str) -> None:
    """Have what an operator said outlast a crash before it is answered."""
    trouble = broker.node.members.keeper.save_now()
    if trouble:
        raise ClusterError(f"{done}, but saving the cluster node config failed: {trouble}")


def _forget(broker: Broker, client: Client, args: list[bytes]) -> None:
    if len(args[0]) != NODE_ID_BYTES:
        raise ClusterError("Invalid node identifier")
    broker.node.members.forget(args[0])
    _keep(broker, "the node is forgotten")
    client.reply.status(b"OK")


def _reset(broker: Broker, client: Client, args: list[bytes]) -> None:
    """Become a node alone and empty, with HARD also a new one. It stays no longer one that is leaving."""
    kind = args[0].lower() if args else b"soft"
    if kind not in (b"soft", b"hard"):
        raise ClusterError("syntax error")
    node = broker.node
    node.flush()
    node.set_leaving(False)
    new_id = node.entropy(NODE_ID_BYTES // 2).hex().encode() if kind == b"hard" else None
    node.members.reset(new_id)
    if new_id is not None:
        node.set_node_id(new_id)
    _keep(broker, "the node is reset")
    client.reply.status(b"OK")


def _leaving(broker: Broker, client: Client, args: list[bytes]) -> None:
    node = broker.node
    if not args:
        client.reply.status(b"yes" if node.leaving else b"no")
        return
    word = args[0].lower()
    if word not in (b"yes", b"no"):
        raise ClusterError("Wrong argument for CLUSTER LEAVING. Use 'yes' or 'no'")
    node.set_leaving(word == b"yes")
    _keep(broker, "the node is leaving" if node.leaving else "the node stays")
    client.reply.status(b"OK")


def _shown(word: bytes) -> str:
    return word[:SHOWN_BYTES_MAX].decode("ascii", "replace")


SUBCOMMANDS: dict[bytes, tuple[Subcommand, int, int]] = {
    b"meet": (_meet, 2, 3),
    b"nodes": (_nodes, 0, 0),
    b"myid": (_my_id, 0, 0),
    b"info": (_info, 0, 0),
    b"saveconfig": (_save_config, 0, 0),
    b"forget": (_forget, 1, 1),
    b"reset": (_reset, 0, 1),
    b"leaving": (_leaving, 0, 1),
}
"""Name -> handler, least and most number of arguments after it."""

COMMANDS = (
    Command(
        b"cluster",
        -2,
        ("readonly", "admin"),
        "Manage the nodes of the cluster, and see them",
        "cluster",
        "MEET host port [bus-port] | NODES | MYID | INFO | SAVECONFIG | FORGET node-id | RESET [SOFT|HARD] | LEAVING [yes|no]",
        cluster,
    ),
)
