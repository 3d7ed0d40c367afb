"""`disqueue cluster status`, and the report that ends every change of a cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from disqueue.cli.connection import join_address
from disqueue.cli.membership import NodeView, disagreements, short

OK, PROBLEMS = 0, 1


def report(views: Sequence[NodeView], *, as_json: bool, problems: list[str] | None = None) -> int:
    """Print what the nodes say and what is wrong; returns the exit status."""
    found = disagreements(views) if problems is None else problems
    if as_json:
        print(json.dumps({"agree": not found, "nodes": [_node_json(view, views) for view in views], "problems": found}))
        return PROBLEMS if found else OK
    console().print(_table(views))
    for problem in found:
        print(f"! {problem}", file=sys.stderr)
    if not found:
        count = len(views)
        print("one node, alone" if count == 1 else f"all {count} nodes agree")
    return PROBLEMS if found else OK


def console() -> Console:
    """Rich output; where no terminal is, wide enough that no cell is cut."""
    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 160)


def _state(view: NodeView) -> str:
    if view.error:
        return "unreachable"
    return "leaving" if view.leaving else "up"


def _seen_by(view: NodeView, views: Sequence[NodeView]) -> tuple[int, int]:
    """How many of the other nodes that answered have this one as a healthy member, and how many there are."""
    others = [other for other in views if other is not view and not other.error]
    if view.node_id:
        seen = [other for other in others if view.node_id in other.peers and not other.peers[view.node_id].trouble]
    else:
        address = (view.target.host, view.target.port)
        seen = [o for o in others if any((p.host, p.port) == address and not p.trouble for p in o.peers.values())]
    return len(seen), len(others)


def _table(views: Sequence[NodeView]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = ("node", "address", "state", "seen by", "knows", "jobs", "queues", "memory", "clients", "version")
    for column in columns:
        table.add_column(column, no_wrap=True, justify="right" if column in ("jobs", "queues", "memory", "clients") else "left")
    for view in views:
        seen, others = _seen_by(view, views)
        field = view.info.get
        table.add_row(
            short(view.node_id) or "?",
            view.label,
            _state(view),
            f"{seen}/{others}",
            str(len(view.members)) if not view.error else "-",
            field("registered_jobs", "-"),
            field("registered_queues", "-"),
            field("used_memory_human", "-"),
            field("connected_clients", "-"),
            field("disqueue_version") or field("disque_version", "-"),
        )
    return table


def _node_json(view: NodeView, views: Sequence[NodeView]) -> dict[str, object]:
    seen, others = _seen_by(view, views)
    field = view.info.get
    return {
        "id": view.node_id or None,
        "address": view.label,
        "state": _state(view),
        "error": view.error or None,
        "seen_by": seen,
        "others": others,
        "peers": [
            {
                "id": peer.node_id,
                "address": join_address(peer.host, peer.port),
                "flags": sorted(peer.flags),
                "connected": peer.connected,
            }
            for peer in view.peers.values()
            if not peer.is_self
        ],
        "jobs": _integer(field("registered_jobs")),
        "queues": _integer(field("registered_queues")),
        "memory_bytes": _integer(field("used_memory")),
        "clients": _integer(field("connected_clients")),
        "version": field("disqueue_version") or field("disque_version"),
    }


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
