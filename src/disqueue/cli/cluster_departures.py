"""`disqueue cluster forget|leave`."""

from __future__ import annotations

import time
from collections.abc import Sequence

from disqueue.cli.cluster_changes import ChangeRefused, Waiting, command
from disqueue.cli.cluster_status import OK, report
from disqueue.cli.connection import Connection, ConnectionFailed, Target, join_address
from disqueue.cli.membership import ANSWER_TIMEOUT_S, POLL_S, NodeView, ask, ask_all, counted, explore, short, wait_for
from disqueue.cli.reply import ErrorReply

_QUEUES_SHOWN = 10


def forget(member: Target, who: str, waiting: Waiting, *, force: bool) -> int:
    """Make every node drop one of them for good, named by its id (or the start of it) or HOST:PORT."""
    views = explore([member])
    if views[0].error:
        raise ChangeRefused(views[0].error)
    node_id = _find_node(views, who)
    lost = next((view for view in views if view.node_id == node_id), None)
    if lost is not None and not force:
        _refuse_if_needed(lost)
    remaining = [view.target for view in views if not view.error and view.node_id != node_id]
    if not remaining:
        raise ChangeRefused(f"{who} is the only node that answers: a node can't forget itself")
    views_left: list[NodeView] = []

    def forgotten() -> bool:
        # A node that has not been told yet may gossip it back to one that was: tell all of them again.
        views_left[:] = ask_all(remaining)
        holders = [view for view in views_left if node_id in view.peers]
        for view in holders:
            _tell_to_forget(view, node_id)
        return not holders

    if wait_for(forgotten, waiting.timeout_s):
        return report(views_left, as_json=waiting.as_json)
    holders = ", ".join(view.label for view in views_left if node_id in view.peers)
    return report(views_left, as_json=waiting.as_json, problems=[f"{short(node_id)} is still known to {holders}"])


def _tell_to_forget(view: NodeView, node_id: str) -> None:
    try:
        command(view.target, "CLUSTER", "FORGET", node_id)
    except ChangeRefused as error:
        if "Unknown node" not in str(error):  # it has heard of it from another one in the meantime
            raise


def _find_node(views: Sequence[NodeView], who: str) -> str:
    """The id of the node meant by `who`."""
    found = {view.node_id for view in views if view.node_id and view.label == who}
    for view in views:
        found |= {peer.node_id for peer in view.peers.values() if join_address(peer.host, peer.port) == who}
        found |= {peer.node_id for peer in view.peers.values() if len(who) >= 4 and peer.node_id.startswith(who)}
    if len(found) == 1:
        return found.pop()
    if found:
        raise ChangeRefused(f"'{who}' means more than one node ({', '.join(sorted(found))}): give the whole id")
    raise ChangeRefused(
        f"no node '{who}' in this cluster: give HOST:PORT, or a node id (4 or more characters) as 'status' shows it"
    )


def _refuse_if_needed(lost: NodeView) -> None:
    if lost.error:
        return
    if not lost.leaving:
        raise ChangeRefused(
            f"{lost.label} is up: 'disqueue cluster leave {lost.label}' first, or --force to lose what only it holds"
        )
    jobs = int(lost.info.get("registered_jobs", "0"))
    if jobs:
        raise ChangeRefused(
            f"{lost.label} still holds {counted(jobs, 'job')}: 'disqueue cluster leave {lost.label}' waits, --force does not"
        )


def leave(target: Target, waiting: Waiting, *, stay: bool, shutdown: bool) -> int:
    """Let a node hand over what it holds, until it can be stopped without loss; `stay` takes that back."""
    label = join_address(target.host, target.port)
    command(target, "CLUSTER", "LEAVING", "no" if stay else "yes")
    if stay:
        print(f"{label} stays")
        return OK
    deadline = time.monotonic() + waiting.timeout_s
    shown = -1
    while True:
        view = ask(target)
        if view.error:
            raise ChangeRefused(view.error)
        jobs = int(view.info.get("registered_jobs", "0"))
        if jobs == 0:
            break
        if time.monotonic() >= deadline:
            return _tell_what_holds_it(view, jobs, waiting)
        if jobs != shown and not waiting.as_json:
            print(f"{label} is leaving: {counted(jobs, 'job')} left", flush=True)
            shown = jobs
        time.sleep(POLL_S)
    if shutdown:
        _shut_down(target)
    if not waiting.as_json:
        ending = "and was stopped" if shutdown else f"and can be stopped: disqueue cli -h {target.host} -p {target.port} SHUTDOWN"
        print(f"{label} holds no job {ending}")
        print(f"then let the others drop it: disqueue cluster forget OTHER:PORT {short(view.node_id)}")
        return OK
    return report([view], as_json=True)


def _shut_down(target: Target) -> None:
    try:
        connection = Connection(target, timeout_s=ANSWER_TIMEOUT_S)
    except ConnectionFailed as error:
        raise ChangeRefused(str(error)) from error
    try:
        connection.call("SHUTDOWN", timeout_s=ANSWER_TIMEOUT_S)
    except ErrorReply as error:
        raise ChangeRefused(f"{join_address(target.host, target.port)} did not stop: {error}") from error
    except ConnectionFailed:
        pass  # the connection ends with the server
    finally:
        connection.close()


def _tell_what_holds_it(view: NodeView, jobs: int, waiting: Waiting) -> int:
    problems = [
        f"{view.label} still holds {counted(jobs, 'job')} after {waiting.timeout_s:g} seconds; it goes on leaving",
        *_queue_lines(view),
    ]
    problems.append("consume them, delete them, or wait on with the same command; --stay takes the leaving back")
    return report([view], as_json=waiting.as_json, problems=problems)


def _queue_lines(view: NodeView) -> list[str]:
    """The queues with jobs on a node, the longest first."""
    try:
        connection = Connection(view.target, timeout_s=ANSWER_TIMEOUT_S)
        try:
            lengths = _queue_lengths(connection)
        finally:
            connection.close()
    except (ConnectionFailed, ErrorReply):
        return []
    if not lengths:
        return ["none is queued: they are with workers, delayed, or acknowledged and not yet confirmed by all their owners"]
    shown = [f"queue {name}: {counted(length, 'job')}" for length, name in lengths[:_QUEUES_SHOWN]]
    return shown + ([f"and {len(lengths) - _QUEUES_SHOWN} queues more"] if len(lengths) > _QUEUES_SHOWN else [])


def _queue_lengths(connection: Connection) -> list[tuple[int, str]]:
    reply = connection.call("QSCAN", "BUSYLOOP", "MINLEN", 1, timeout_s=ANSWER_TIMEOUT_S)
    names = reply[1] if isinstance(reply, list) and len(reply) == 2 else None
    lengths: list[tuple[int, str]] = []
    for name in names if isinstance(names, list) else []:
        if isinstance(name, bytes):
            length = connection.call("QLEN", name, timeout_s=ANSWER_TIMEOUT_S)
            lengths.append((length if isinstance(length, int) else 0, name.decode("utf-8", "backslashreplace")))
    return sorted(lengths, reverse=True)
