"""How the nodes of a cluster see each other: asking all of them, and finding what does not fit."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from disqueue.cli.connection import AddressError, Connection, ConnectionFailed, Target, join_address, parse_address
from disqueue.cli.nodes import BUS_PORT_OFFSET
from disqueue.cli.reply import ErrorReply, Reply
from disqueue.cli.watch import info_fields

ANSWER_TIMEOUT_S = 5.0
PROBE_TIMEOUT_S = 1.0
POLL_S = 0.1
_MAX_NODES = 1000  # more addresses than this come from a damaged table, not from a cluster
_SHORT_ID = 8


@dataclass(frozen=True, slots=True)
class PeerView:
    """What one node says of another (or of itself): a line of CLUSTER NODES."""

    node_id: str
    host: str
    port: int
    flags: frozenset[str]
    connected: bool

    @property
    def is_self(self) -> bool:
        return "myself" in self.flags

    @property
    def in_handshake(self) -> bool:
        return "handshake" in self.flags

    @property
    def trouble(self) -> str:
        """What keeps this peer from being of use to the one who sees it so; empty when all is well."""
        for flag in ("fail", "fail?", "handshake", "noaddr"):
            if flag in self.flags:
                return flag
        return "" if self.connected or self.is_self else "disconnected"


@dataclass(slots=True)
class NodeView:
    """One node that was asked: its own words, or why there are none."""

    target: Target
    error: str = ""
    node_id: str = ""
    peers: dict[str, PeerView] = field(default_factory=dict)
    info: dict[str, str] = field(default_factory=dict)
    bus_port: int = 0

    @property
    def label(self) -> str:
        return join_address(self.target.host, self.target.port)

    @property
    def leaving(self) -> bool:
        own = self.peers.get(self.node_id)
        return own is not None and "leaving" in own.flags

    @property
    def meet_failures(self) -> int:
        """How many joins that it was told to start have failed since it runs."""
        count = self.info.get("cluster_meet_failures", "0")
        return int(count) if count.isdigit() else 0

    @property
    def members(self) -> frozenset[str]:
        """The ids it counts as members, itself among them."""
        return frozenset(node_id for node_id, peer in self.peers.items() if not peer.in_handshake)


def short(node_id: str) -> str:
    return node_id[:_SHORT_ID]


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def parse_nodes(reply: Reply) -> dict[str, PeerView]:
    """The text of CLUSTER NODES by node id; lines that are not understood are left out."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else ""
    peers: dict[str, PeerView] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) < 6:
            continue
        host, _, port = words[1].partition("@")[0].rpartition(":")
        peers[words[0]] = PeerView(
            node_id=words[0],
            host=host.strip("[]"),
            port=int(port) if port.isdigit() else 0,
            flags=frozenset(words[2].split(",")),
            connected=words[5] == "connected",
        )
    return peers


def ask(target: Target) -> NodeView:
    """The view of one node; never raises for a node that can't be asked."""
    view = NodeView(target)
    try:
        connection = Connection(target, timeout_s=ANSWER_TIMEOUT_S)
    except ConnectionFailed as failure:
        view.error = str(failure)
        return view
    try:
        view.peers = parse_nodes(connection.call("CLUSTER", "NODES", timeout_s=ANSWER_TIMEOUT_S))
        view.info = info_fields(connection.call("INFO", timeout_s=ANSWER_TIMEOUT_S))
        view.info.update(info_fields(connection.call("CLUSTER", "INFO", timeout_s=ANSWER_TIMEOUT_S)))
        view.bus_port = _bus_port(connection)
        view.node_id = next((peer.node_id for peer in view.peers.values() if peer.is_self), "")
        if not view.node_id:
            view.error = f"{view.label} is no Disqueue node: its CLUSTER NODES names none as itself"
    except (ConnectionFailed, ErrorReply) as failure:
        view.error = f"{view.label}: {failure}"
    finally:
        connection.close()
    return view


def _bus_port(connection: Connection) -> int:
    """Where other nodes connect to; a node that does not tell uses the port that belongs to its client port."""
    try:
        reply = connection.call("CONFIG", "GET", "cluster-port", timeout_s=ANSWER_TIMEOUT_S)
    except ErrorReply:  # CONFIG may be renamed or forbidden
        reply = None
    told = reply[1] if isinstance(reply, list) and len(reply) == 2 else b"0"
    port = int(told) if isinstance(told, bytes) and told.isdigit() else 0
    return port or connection.target.port + BUS_PORT_OFFSET


def ask_all(targets: Iterable[Target]) -> list[NodeView]:
    return [ask(target) for target in targets]


def explore(seeds: Sequence[Target]) -> list[NodeView]:
    """The views of the given nodes and of every node that any of them knows, found step by step."""
    waiting = list(seeds)
    seen: set[tuple[str, int]] = set()
    views: list[NodeView] = []
    known_ids: set[str] = set()
    while waiting and len(views) < _MAX_NODES:
        target = waiting.pop(0)
        if (target.host, target.port) in seen:
            continue
        seen.add((target.host, target.port))
        view = ask(target)
        if view.node_id and view.node_id in known_ids:
            continue  # the same node under a second address
        known_ids.add(view.node_id)
        views.append(view)
        waiting += [
            replace(target, host=peer.host, port=peer.port)
            for peer in view.peers.values()
            if not peer.is_self and peer.host and peer.port and peer.node_id not in known_ids
        ]
    return views


def target_of(address: str, password: str) -> Target:
    """The target that HOST:PORT names. Raises AddressError; the port must be given."""
    if not address.rpartition("]")[2].count(":"):
        raise AddressError(f"'{address}' names no port: write it as {address}:7711")
    host, port = parse_address(address)
    return Target(host, port, password=password)


def disagreements(views: Sequence[NodeView]) -> list[str]:
    """What keeps these nodes from being one healthy cluster, in whole sentences; empty when all agree."""
    return [*_unreachable(views), *_same_ids(views), *_missing(views), *_troubles(views)]


def _unreachable(views: Sequence[NodeView]) -> list[str]:
    return [view.error for view in views if view.error]


def _same_ids(views: Sequence[NodeView]) -> list[str]:
    by_id: dict[str, list[str]] = {}
    for view in views:
        if view.node_id:
            by_id.setdefault(view.node_id, []).append(view.label)
    return [
        f"{' and '.join(labels)} have the same node id {short(node_id)}: one has a copy of the other's nodes.conf. "
        "Stop one, remove its nodes.conf and start it again."
        for node_id, labels in by_id.items()
        if len(labels) > 1
    ]


def _names(views: Sequence[NodeView]) -> dict[str, str]:
    """Addresses by node id, as those say who were asked, else as others see them."""
    names: dict[str, str] = {}
    for view in views:
        for peer in view.peers.values():
            if peer.port and not peer.is_self:
                names.setdefault(peer.node_id, join_address(peer.host, peer.port))
    names.update({view.node_id: view.label for view in views if view.node_id})
    return names


def _missing(views: Sequence[NodeView]) -> list[str]:
    asked = [view for view in views if not view.error]
    names = _names(views)
    everyone = frozenset().union(*(view.members for view in asked)) if asked else frozenset()
    return [
        f"{view.label} does not know {_listing(names.get(node_id, short(node_id)) for node_id in everyone - view.members)}"
        for view in asked
        if everyone - view.members
    ]


_TROUBLES = {
    "fail": "sees {peer} as failed",
    "fail?": "gets no answer from {peer}",
    "handshake": "has not finished its handshake with {peer}",
    "noaddr": "has lost the address of {peer}",
    "disconnected": "has no link to {peer}",
}


def _troubles(views: Sequence[NodeView]) -> list[str]:
    names = _names(views)
    found: list[str] = []
    for view in views:
        for peer in view.peers.values():
            if peer.trouble:
                name = names.get(peer.node_id) or (join_address(peer.host, peer.port) if peer.port else short(peer.node_id))
                found.append(f"{view.label} {_TROUBLES[peer.trouble].format(peer=name)}")
    return found


def _listing(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def wait_for(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Ask again and again until the condition holds; False when the time is over."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def probe(host: str, port: int) -> str:
    """Why no TCP connection can be made from here; empty when it can."""
    try:
        socket.create_connection((host, port), PROBE_TIMEOUT_S).close()
    except TimeoutError:
        return "no answer; a firewall may drop the packets"
    except OSError as error:
        return error.strerror or str(error)
    return ""
