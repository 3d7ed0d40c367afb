"""`disqueue cluster create|add`."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from disqueue.cli.cluster_status import report
from disqueue.cli.connection import Connection, ConnectionFailed, Target, join_address
from disqueue.cli.membership import ANSWER_TIMEOUT_S, NodeView, ask_all, counted, disagreements, explore, probe, short, wait_for
from disqueue.cli.nodes import BUS_PORT_OFFSET
from disqueue.cli.reply import ErrorReply

_QUEUES_SHOWN = 10


class ChangeRefused(Exception):
    """Nothing was changed; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long to wait for the nodes to agree, and how to tell the result."""

    timeout_s: float
    as_json: bool


def command(target: Target, *words: str | int) -> None:
    """Run one command at a node. Raises ChangeRefused with the node's address."""
    try:
        connection = Connection(target, timeout_s=ANSWER_TIMEOUT_S)
        try:
            connection.call(*words, timeout_s=ANSWER_TIMEOUT_S)
        finally:
            connection.close()
    except (ConnectionFailed, ErrorReply) as error:
        told = " ".join(map(str, words))
        raise ChangeRefused(f"{join_address(target.host, target.port)} did not do '{told}': {error}") from error


def create(targets: Sequence[Target], waiting: Waiting) -> int:
    """Join nodes that are alone (or among themselves) into one cluster."""
    views = _reachable_and_distinct(targets)
    ids = {view.node_id for view in views}
    for view in views:
        if foreign := view.members - ids:
            raise ChangeRefused(
                f"{view.label} is in a cluster with {counted(len(foreign), 'other node')}: 'disqueue cluster add {view.label} "
                "HOST:PORT' lets others join it, CLUSTER RESET HARD at it takes it out (this deletes its jobs)"
            )
    _meet(views[0], views[1:])
    return _until_agreed(targets, views[0], waiting)


def add(member: Target, newcomers: Sequence[Target], waiting: Waiting) -> int:
    """Join nodes that are alone to the cluster of `member`."""
    known = explore([member])
    if known[0].error:
        raise ChangeRefused(known[0].error)
    views = _reachable_and_distinct([member, *newcomers])
    cluster_ids = known[0].members
    for view in views[1:]:
        if view.members - cluster_ids - {view.node_id}:
            raise ChangeRefused(
                f"{view.label} already belongs to another cluster; CLUSTER RESET HARD at it takes it out (this deletes its jobs)"
            )
    _meet(views[0], [view for view in views[1:] if view.node_id not in cluster_ids])
    members = [view.target for view in known if not view.error]
    asked = {(target.host, target.port) for target in members}
    return _until_agreed([*members, *(t for t in newcomers if (t.host, t.port) not in asked)], views[0], waiting)


def _reachable_and_distinct(targets: Sequence[Target]) -> list[NodeView]:
    views = ask_all(targets)
    if errors := [view.error for view in views if view.error]:
        raise ChangeRefused("\n".join(errors))
    by_id: dict[str, NodeView] = {}
    for view in views:
        twin = by_id.setdefault(view.node_id, view)
        if twin is not view:
            raise ChangeRefused(
                f"{twin.label} and {view.label} have the same node id {short(view.node_id)}: one node, or one with a copy "
                "of the other's nodes.conf (stop it, remove that file, start it again)"
            )
    loopback = [view.label for view in views if _is_loopback(view.target.host)]
    if loopback and len(loopback) < len(views):
        raise ChangeRefused(
            f"{loopback[0]} is this machine only: the other nodes can't reach it under that address, name its real one"
        )
    return views


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _meet(first: NodeView, others: Sequence[NodeView]) -> None:
    for other in others:
        if other.node_id not in first.members:
            host, port = other.target.host, other.target.port
            unusual = [other.bus_port] if other.bus_port != port + BUS_PORT_OFFSET else []
            command(first.target, "CLUSTER", "MEET", host, port, *unusual)


def _until_agreed(targets: Sequence[Target], first: NodeView, waiting: Waiting) -> int:
    """Wait until all see all, then report; at the deadline, or when a join has failed, say what is in the way.

    `first` was told to meet the others; it is the view from before that.
    """
    views: list[NodeView] = []

    def agreed() -> bool:
        everyone = {view.node_id for view in views}
        return not disagreements(views) and all(view.members >= everyone for view in views)

    def decided() -> bool:
        views[:] = ask_all(targets)
        return agreed() or bool(_failed_meets(first, views))

    wait_for(decided, waiting.timeout_s)
    if agreed():
        return report(views, as_json=waiting.as_json)
    failures = _failed_meets(first, views)
    summary = failures or [f"no agreement after {waiting.timeout_s:g} seconds"]
    problems = [*summary, *disagreements(views), *(() if failures else _strangers(views)), *_closed_bus_ports(views)]
    return report(views, as_json=waiting.as_json, problems=problems)


def _failed_meets(first: NodeView, views: Sequence[NodeView]) -> list[str]:
    """What the node that was to meet the others tells of a join that failed since then: a wrong secret, a closed port."""
    return [
        f"{view.label} could not join {view.info.get('cluster_last_meet_failure') or 'another node'}"
        for view in views
        if view.node_id == first.node_id and view.meet_failures > first.meet_failures
    ]


def _strangers(views: Sequence[NodeView]) -> list[str]:
    """Nodes that were to be joined and know nobody: their handshake failed."""
    lonely = [view for view in views if not view.error and len(view.members) == 1]
    return [
        f"{view.label} knows no other node: the handshake failed. Check that all nodes have the same cluster secret "
        "(and TLS settings), that the bus ports are open between them, and the log of this node"
        for view in lonely
    ]


def _closed_bus_ports(views: Sequence[NodeView]) -> list[str]:
    found = []
    for view in views:
        if not view.error and (reason := probe(view.target.host, view.bus_port)):
            found.append(f"the bus port {join_address(view.target.host, view.bus_port)} can't be reached from here: {reason}")
    return found
