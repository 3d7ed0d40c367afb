"""`disqueue cluster …`: the arguments."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from disqueue.cli.cluster_changes import ChangeRefused, Waiting, add, create
from disqueue.cli.cluster_departures import forget, leave
from disqueue.cli.cluster_local import MAX_NODES, run_local
from disqueue.cli.cluster_status import report
from disqueue.cli.connection import DEFAULT_PORT, AddressError, Target, default_target, parse_port
from disqueue.cli.membership import explore, target_of
from disqueue.cli.nodes import BUS_PORT_OFFSET

DEFAULT_TIMEOUT_S = 30.0


def make_parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-a", dest="password", metavar="PASSWORD", help="password of the nodes (or DISQUEUE_AUTH)")
    common.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    common.add_argument(
        "--timeout",
        type=_seconds,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help=f"wait so long until all agree ({DEFAULT_TIMEOUT_S:g})",
    )
    parser = argparse.ArgumentParser(
        prog="disqueue cluster",
        description="Create, inspect and change a cluster.",
        epilog="Exit status: 0 when all nodes agree, 1 when they do not or nothing was changed, 2 after wrong arguments.",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="{create,status,add,forget,leave,local}", required=True)

    def action(name: str, text: str) -> argparse.ArgumentParser:
        return actions.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", parents=[common], allow_abbrev=False
        )

    create_parser = action("create", "join nodes that are alone into one cluster")
    create_parser.add_argument("nodes", nargs="+", metavar="HOST:PORT")
    status_parser = action("status", "ask every node how it sees the others, and say what does not fit")
    status_parser.add_argument("nodes", nargs="*", metavar="HOST:PORT", help="any nodes of the cluster; the others are found")
    add_parser = action("add", "join new nodes to a cluster")
    add_parser.add_argument("member", metavar="HOST:PORT", help="any node of the cluster")
    add_parser.add_argument("nodes", nargs="+", metavar="NEW-HOST:PORT")
    forget_parser = action("forget", "make every node drop one that is gone")
    forget_parser.add_argument("member", metavar="HOST:PORT", help="any other node of the cluster")
    forget_parser.add_argument("who", metavar="NODE", help="the node to drop: HOST:PORT, or (the start of) its id")
    forget_parser.add_argument("--force", action="store_true", help="also if it is up, and holds jobs")
    leave_parser = action("leave", "let a node hand over its jobs, and wait until it can be stopped without loss")
    leave_parser.add_argument("node", metavar="HOST:PORT")
    leave_parser.add_argument("--shutdown", action="store_true", help="stop it when it holds no job any more")
    leave_parser.add_argument("--stay", action="store_true", help="take the leaving back")
    _add_local(action("local", "run nodes on this machine, joined, until Ctrl-C"))
    return parser


def _add_local(parser: argparse.ArgumentParser) -> None:
    parser.usage = "disqueue cluster local [-h] [--port PORT] [--dir DIR] [--timeout SECONDS] [--json] N [-- server options]"
    parser.add_argument("count", type=_node_count, metavar="N", help="how many")
    parser.add_argument("--port", type=_port, default=DEFAULT_PORT, help=f"port of the first, the others follow ({DEFAULT_PORT})")
    parser.add_argument("--dir", type=Path, default=None, help="directory for their data and logs (a temporary one)")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is no time in seconds: write 10 or 0.5")
    return seconds


def _port(text: str) -> int:
    try:
        return parse_port(text)
    except AddressError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _node_count(text: str) -> int:
    count = int(text) if text.isdigit() else 0
    if not 1 <= count <= MAX_NODES:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of nodes: 1 to {MAX_NODES}")
    return count


def _targets(given: argparse.Namespace, addresses: Sequence[str]) -> list[Target]:
    return [target_of(address, _password(given)) for address in addresses]


def _password(given: argparse.Namespace) -> str:
    return given.password if given.password is not None else os.environ.get("DISQUEUE_AUTH", "")


def _waiting(given: argparse.Namespace) -> Waiting:
    return Waiting(given.timeout, given.json)


def _create(given: argparse.Namespace, _: list[str]) -> int:
    return create(_targets(given, given.nodes), _waiting(given))


def _status(given: argparse.Namespace, _: list[str]) -> int:
    return report(explore(_targets(given, given.nodes) or [default_target()]), as_json=given.json)


def _add(given: argparse.Namespace, _: list[str]) -> int:
    return add(target_of(given.member, _password(given)), _targets(given, given.nodes), _waiting(given))


def _forget(given: argparse.Namespace, _: list[str]) -> int:
    return forget(target_of(given.member, _password(given)), given.who, _waiting(given), force=given.force)


def _leave(given: argparse.Namespace, _: list[str]) -> int:
    return leave(target_of(given.node, _password(given)), _waiting(given), stay=given.stay, shutdown=given.shutdown)


def _local(given: argparse.Namespace, server_options: list[str]) -> int:
    last_bus_port = given.port + given.count - 1 + BUS_PORT_OFFSET
    if given.port < 1 or last_bus_port > 65535:
        raise AddressError(f"--port {given.port}: the bus ports are {BUS_PORT_OFFSET} higher and must stay below 65536")
    return run_local(given.count, given.port, given.dir, server_options, _waiting(given), password=_password(given))


_ACTIONS: dict[str, Callable[[argparse.Namespace, list[str]], int]] = {
    "create": _create,
    "status": _status,
    "add": _add,
    "forget": _forget,
    "leave": _leave,
    "local": _local,
}


def run(argv: Sequence[str]) -> int:
    """Run `disqueue cluster` with its arguments; returns the exit status."""
    words = list(argv)
    cut = words.index("--") if "--" in words else len(words)
    parser = make_parser()
    given = parser.parse_args(words[:cut])
    server_options = words[cut + 1 :]
    if server_options and given.action != "local":
        parser.error("only 'local' takes server options after --")
    try:
        return _ACTIONS[given.action](given, server_options)
    except AddressError as error:
        parser.error(str(error))
    except ChangeRefused as error:
        print(error, file=sys.stderr)
        return 1
