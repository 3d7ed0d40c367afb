"""The table of nodes as text: what CLUSTER NODES replies and nodes.conf holds.

A line is `<id> <host>:<port>[@<bus port>] <flags> <ping sent> <pong received> connected|disconnected`, as in Disque; the bus
port is there only when it is not the client port + 10000. Times are Unix milliseconds, 0 for none. nodes.conf ends with a
`vars` line, which Disque ignores: `vars bans <id>,<stamp>,<end>;...`, and one of how far the journals of others were when
this node heard of them: `vars journals <id>,<place>;...`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from disqueue.core.addresses import is_address, is_node_id
from disqueue.core.joining import MAX_MEMBERS
from disqueue.core.membership import Membership
from disqueue.core.peer import HANDSHAKE, Peer

BUS_PORT_OFFSET = 10_000
FLAG_WORDS = frozenset(("myself", "fail?", "fail", "handshake", "noaddr", "leaving", "noflags"))
MAX_PROBLEMS = 10


@dataclass(slots=True)
class NodeLine:
    """A node of the table on disk."""

    node_id: bytes
    address: str
    port: int
    bus_port: int
    flags: frozenset[str]


@dataclass(slots=True)
class NodesTable:
    """What could be read of a nodes.conf. `problems` says what could not, a line each."""

    me: NodeLine | None = None
    others: list[NodeLine] = field(default_factory=list)
    bans: list[tuple[bytes, int, int]] = field(default_factory=list)
    journals: list[tuple[bytes, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def nodes_reply(membership: Membership) -> str:
    """The text of CLUSTER NODES: this node, the members, the meetings under way."""
    me = membership.me
    lines = [_format(membership, peer, "myself" if peer is me else "") for peer in (me, *membership.peers)]
    lines += [_format(membership, peer, "handshake") for peer in membership.joining.handshakes]
    return "".join(lines)


def nodes_file(membership: Membership) -> str:
    """The text of nodes.conf."""
    me = membership.me
    lines = [_format(membership, peer, "myself" if peer is me else "") for peer in (me, *membership.peers)]
    bans = ";".join(
        f"{ban.node_id.decode()},{ban.stamp},{membership.wall_ms + ban.remaining_ms}"
        for ban in membership.bans.export(membership.now_ms)
        if ban.remaining_ms
    )
    known = membership.journal_age.known
    journals = ";".join(
        f"{peer.node_id.decode()},{known[peer.node_id].furthest}" for peer in membership.peers if peer.node_id in known
    )
    lines += [f"vars {name} {items}\n" for name, items in (("bans", bans), ("journals", journals)) if items]
    return "".join(lines)


def parse_nodes(text: str) -> NodesTable:
    """Read a nodes.conf, of this project or of Disque, as far as possible."""
    table = NodesTable()
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        problem = ""
        if words and words[0] == "vars":
            problem = _parse_vars(table, words)
        elif words:
            problem = _parse_line(table, words)
        if problem and len(table.problems) < MAX_PROBLEMS:
            table.problems.append(f"line {number}: {problem}")
    if text and not text.endswith("\n"):
        table.problems.append("the last line is cut")
    if table.me is None and (table.others or table.problems):
        table.problems.append("no valid line is about this node itself")
    return table


def restore(membership: Membership, table: NodesTable) -> None:
    """Put what was read into a fresh membership."""
    if table.me is not None:
        membership.me.leaving = "leaving" in table.me.flags
        if not membership.settings.announce_address:
            membership.me.address = table.me.address
    for line in table.others:
        membership.restore_member(line.node_id, line.address, line.port, line.bus_port, "leaving" in line.flags)
    for node_id, stamp, end_wall_ms in table.bans:
        if end_wall_ms > membership.wall_ms:
            membership.bans.restore(node_id, stamp, end_wall_ms - membership.wall_ms, membership.now_ms)
    for node_id, place in table.journals:
        membership.journal_age.restore(node_id, place)


def _format(membership: Membership, peer: Peer, role: str) -> str:
    bus_port = f"@{peer.bus_port}" if peer.bus_port != peer.port + BUS_PORT_OFFSET else ""
    flags = ",".join(_flags(peer, role)) or "noflags"
    sent_ms = _wall_ms(membership, peer.ping_sent_ms if peer.silent_since_ms else 0)
    link = "connected" if peer.link_up or role == "myself" else "disconnected"
    address = f"{peer.address}:{peer.port}{bus_port}"
    return f"{peer.node_id.decode()} {address} {flags} {sent_ms} {_wall_ms(membership, peer.pong_ms)} {link}\n"


def _flags(peer: Peer, role: str) -> Iterator[str]:
    if role == "myself":
        yield role
    if peer.failed:
        yield "fail"
    elif peer.suspected or (peer.state == HANDSHAKE and peer.failure):
        yield "fail?"
    if role == "handshake":
        yield role
    if peer.no_address:
        yield "noaddr"
    if peer.leaving:
        yield "leaving"


def _wall_ms(membership: Membership, time_ms: int) -> int:
    return max(0, membership.wall_ms - (membership.now_ms - time_ms)) if time_ms else 0


def _parse_line(table: NodesTable, words: list[str]) -> str:
    """Take one node into the table; returns what is wrong, or nothing."""
    if len(words) != 6:
        return f"{len(words)} fields instead of 6"
    node_id = words[0].encode("utf-8", "replace")
    if not is_node_id(node_id):
        return "the node id is not 40 hex digits"
    flags = frozenset(words[2].split(","))
    if not flags <= FLAG_WORDS:
        return f"unknown flags {','.join(sorted(flags - FLAG_WORDS))[:80]}"
    if words[5] not in ("connected", "disconnected") or not _is_number(words[3]) or not _is_number(words[4]):
        return "times or link state are malformed"
    address, _, ports = words[1].rpartition(":")
    port, _, bus_port = ports.partition("@")
    if not _is_port(port) or not _is_port(bus_port or "0") or (address and not is_address(address)):
        return "the address is not <host>:<port>"
    if "handshake" in flags:
        return ""
    line = NodeLine(node_id, address, int(port), int(bus_port or 0) or int(port) + BUS_PORT_OFFSET, flags)
    known = {other.node_id for other in table.others} | ({table.me.node_id} if table.me else set())
    if node_id in known:
        return "the node is there twice"
    if "myself" not in flags:
        if line.bus_port > 0xFFFF:
            return f"the bus port {line.bus_port} is above 65535"
        if len(table.others) >= MAX_MEMBERS - 1:
            return f"more than {MAX_MEMBERS} nodes"
        table.others.append(line)
    elif table.me is None:
        table.me = line
    else:
        return "a second line says that it is this node itself"
    return ""


def _parse_vars(table: NodesTable, words: list[str]) -> str:
    if len(words) == 3 and words[1] == "journals":
        return _parse_journals(table, words[2])
    if len(words) != 3 or words[1] != "bans":
        return ""  # variables of other releases
    for item in words[2].split(";"):
        node_id, _, times = item.partition(",")
        stamp, _, end = times.partition(",")
        if not is_node_id(node_id.encode("utf-8", "replace")) or not _is_number(stamp) or not _is_number(end):
            return "malformed ban"
        table.bans.append((node_id.encode(), int(stamp), int(end)))
    return ""


def _parse_journals(table: NodesTable, text: str) -> str:
    for item in text.split(";")[:MAX_MEMBERS]:
        node_id, _, place = item.partition(",")
        if not is_node_id(node_id.encode("utf-8", "replace")) or not _is_number(place):
            return "malformed place of a journal"
        table.journals.append((node_id.encode(), int(place)))
    return ""


def _is_port(text: str) -> bool:
    return _is_number(text) and int(text) <= 0xFFFF


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18
