"""Which processes on this machine belong to the servers that are measured."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from disqueue.cli.bench_process import is_watchable
from disqueue.cli.connection import Connection, ConnectionFailed, Target
from disqueue.cli.reply import ErrorReply, Reply
from disqueue.cli.watch import info_fields

ANSWER_TIMEOUT_S = 10.0
MAX_NODES = 256


def find_processes(targets: Sequence[Target]) -> list[int]:
    """The process ids of the servers and of the nodes that they know, those on this machine; none when one of them is elsewhere.

    Raises ConnectionFailed when a target does not answer.
    """
    pids: dict[int, None] = {}
    waiting = list(dict.fromkeys(targets))
    known = set(waiting)
    while waiting and len(known) <= MAX_NODES:
        target = waiting.pop()
        if not _is_here(target):
            return []
        try:
            with closing(Connection(target)) as connection:
                pid = info_fields(connection.call("INFO", timeout_s=ANSWER_TIMEOUT_S)).get("process_id", "")
                nodes = _nodes(connection, target)
        except ConnectionFailed:
            if target in targets:
                raise
            continue  # a member that is down uses no CPU
        if not pid.isdigit() or not is_watchable(int(pid)):
            return []
        pids[int(pid)] = None
        waiting += [node for node in nodes if node not in known]
        known.update(nodes)
    return list(pids)


def _nodes(connection: Connection, target: Target) -> list[Target]:
    """The members that HELLO names, under the addresses that clients use."""
    reply: Reply = None
    with contextlib.suppress(ErrorReply):
        reply = connection.call("HELLO", timeout_s=ANSWER_TIMEOUT_S)
    found = []
    for entry in reply[2:] if isinstance(reply, list) and len(reply) > 3 else []:
        if isinstance(entry, list) and len(entry) >= 3 and isinstance(entry[1], bytes) and isinstance(entry[2], bytes):
            host, port = entry[1].decode(), entry[2]
            if host and port.isdigit():
                found.append(replace(target, host=host, port=int(port), socket_path=""))
    return found


def _is_here(target: Target) -> bool:
    if target.socket_path or target.host == "localhost":
        return True
    try:
        return ipaddress.ip_address(target.host).is_loopback
    except ValueError:
        return False
