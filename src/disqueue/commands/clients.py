"""CLIENT: look at connections, name, silence, pause and close them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from disqueue.commands.arguments import I64_MAX, NOT_AN_INTEGER, SYNTAX_ERROR, integer_between
from disqueue.commands.connection import BAD_NAME, valid_name
from disqueue.commands.table import Command
from disqueue.core.client import NOT_BLOCKED, REPLY_OFF, REPLY_ON, REPLY_SKIP_NEXT, Client

if TYPE_CHECKING:
    from disqueue.commands.broker import Broker

USAGE = b"ERR Syntax error, try CLIENT (LIST | KILL ip:port | GETNAME | SETNAME connection-name)"
PAUSE_MS_MAX = 86_400_000
"""A day: a typing error in CLIENT PAUSE shall not silence a node for ever."""

Subcommand = Callable[["Broker", Client, list[bytes]], None]


def line(broker: Broker, client: Client) -> bytes:
    """Return what CLIENT LIST says of a client, without the line's end."""
    facts = broker.server.describe(client)
    now_ms = broker.node.now_ms
    pending = client.reply.size
    fields = (
        ("id", client.id),
        ("addr", client.address),
        ("fd", facts.descriptor),
        ("name", client.name.decode("latin-1")),
        ("age", (now_ms - client.connected_ms) // 1000),
        ("idle", (now_ms - client.active_ms) // 1000),
        ("flags", _flags(client)),
        ("qbuf", facts.input_bytes),
        ("qbuf-free", 0),
        ("obl", pending),
        ("oll", 0),
        ("omem", facts.output_bytes),
        ("events", "rw" if facts.writable else "r"),
        ("cmd", client.last_command.decode("latin-1") or "NULL"),
        ("resp", client.reply.protocol),
        ("lib-name", client.library_name.decode("latin-1")),
        ("lib-ver", client.library_version.decode("latin-1")),
    )
    return " ".join(f"{name}={value}" for name, value in fields).encode("utf-8", "surrogateescape")


def _flags(client: Client) -> str:
    letters = (
        ("O", client.monitor),
        ("b", client.blocked != NOT_BLOCKED),
        ("c", client.close_after_reply),
        ("A", client.close_asap),
        ("U", client.unix_socket),
    )
    return "".join(letter for letter, holds in letters if holds) or "N"


def _list(broker: Broker, client: Client, args: list[bytes]) -> None:
    chosen = _chosen(args)
    if isinstance(chosen, bytes):
        client.reply.error(chosen)
        return
    lines = [line(broker, other) + b"\n" for other in broker.server.clients() if chosen is None or other.id in chosen]
    client.reply.bulk(b"".join(lines))


def _chosen(args: list[bytes]) -> set[int] | bytes | None:
    """Return the ids that `LIST [TYPE normal | ID id…]` asks for, None for all, or an error."""
    if len(args) == 2:
        return None
    word = args[2].lower()
    if word == b"type" and len(args) == 4:
        return None if args[3].lower() == b"normal" else b"ERR Unknown client type '%b'" % args[3]
    if word == b"id" and len(args) > 3:
        ids = {integer_between(arg, 1) for arg in args[3:]}
        return b"ERR Invalid client ID" if None in ids else {number for number in ids if number is not None}
    return USAGE


def _info(broker: Broker, client: Client, args: list[bytes]) -> None:
    client.reply.bulk(line(broker, client) + b"\n")


def _id(broker: Broker, client: Client, args: list[bytes]) -> None:
    client.reply.integer(client.id)


def _getname(broker: Broker, client: Client, args: list[bytes]) -> None:
    if client.name:
        client.reply.bulk(client.name)
    else:
        client.reply.null_bulk()


def _setname(broker: Broker, client: Client, args: list[bytes]) -> None:
    if not valid_name(args[2]):
        client.reply.error(BAD_NAME)
        return
    client.name = args[2]
    client.reply.status(b"OK")


def _setinfo(broker: Broker, client: Client, args: list[bytes]) -> None:
    attribute = args[2].lower()
    if attribute not in (b"lib-name", b"lib-ver"):
        client.reply.error(b"ERR Unrecognized option '%b': CLIENT SETINFO knows LIB-NAME and LIB-VER" % args[2][:128])
    elif not valid_name(args[3]):
        client.reply.error(b"ERR %b cannot contain spaces, newlines or special characters." % attribute)
    else:
        if attribute == b"lib-name":
            client.library_name = args[3]
        else:
            client.library_version = args[3]
        client.reply.status(b"OK")


def _kill(broker: Broker, client: Client, args: list[bytes]) -> None:
    if len(args) == 3:
        victims = [other for other in broker.server.clients() if other.address.encode("utf-8", "surrogateescape") == args[2]]
        _close_all(broker, client, victims[:1])
        if victims:
            client.reply.status(b"OK")
        else:
            client.reply.error(b"ERR No such client")
        return
    wanted = _kill_filter(args[2:])
    if isinstance(wanted, bytes):
        client.reply.error(wanted)
        return
    victims = [other for other in broker.server.clients() if wanted(client, other)]
    client.reply.integer(len(victims))
    _close_all(broker, client, victims)


def _kill_filter(options: list[bytes]) -> Callable[[Client, Client], bool] | bytes:
    """Return a test (caller, other) from `ID n`, `TYPE normal`, `ADDR a`, `SKIPME yes|no`, or an error."""
    client_id: int | None = None
    address: str | None = None
    skip_me = True
    if len(options) % 2:
        return SYNTAX_ERROR
    for word, value in zip(options[::2], options[1::2], strict=True):
        option = word.lower()
        if option == b"id":
            client_id = integer_between(value, 1)
            if client_id is None:
                return NOT_AN_INTEGER
        elif option == b"type":
            if value.lower() != b"normal":
                return b"ERR Unknown client type '%b'" % value
        elif option == b"addr":
            address = value.decode("utf-8", "surrogateescape")
        elif option == b"skipme" and value.lower() in (b"yes", b"no"):
            skip_me = value.lower() == b"yes"
        else:
            return SYNTAX_ERROR

    def matches(caller: Client, other: Client) -> bool:
        return (
            (client_id is None or other.id == client_id)
            and (address is None or other.address == address)
            and not (skip_me and other is caller)
        )

    return matches


def _close_all(broker: Broker, caller: Client, victims: list[Client]) -> None:
    for victim in victims:
        if victim is caller:
            broker.close(victim)
        else:
            victim.close_asap = True
            broker.server.close_client(victim)


def _pause(broker: Broker, client: Client, args: list[bytes]) -> None:
    duration_ms = integer_between(args[2])
    if duration_ms is None:
        client.reply.error(b"ERR timeout is not an integer or out of range")
    elif duration_ms < 0:
        client.reply.error(b"ERR timeout is negative")
    elif len(args) == 4 and args[3].lower() not in (b"all", b"write"):
        client.reply.error(SYNTAX_ERROR)
    else:
        broker.server.pause_clients(broker.node.now_ms + min(duration_ms, PAUSE_MS_MAX))
        client.reply.status(b"OK")


def _unpause(broker: Broker, client: Client, args: list[bytes]) -> None:
    broker.server.pause_clients(0)
    client.reply.status(b"OK")


def _reply(broker: Broker, client: Client, args: list[bytes]) -> None:
    mode = args[2].lower()
    if mode == b"on":
        broker.dispatcher.unmute(client)
        client.reply_mode = REPLY_ON
        client.reply.status(b"OK")
    elif mode == b"off":
        client.reply_mode = REPLY_OFF
        broker.dispatcher.mute(client)
    elif mode == b"skip":
        if client.reply_mode != REPLY_OFF:
            client.reply_mode = REPLY_SKIP_NEXT
    else:
        client.reply.error(SYNTAX_ERROR)


def _switch(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`NO-EVICT` and `NO-TOUCH`: clients are not evicted and jobs have no access time, so that both are always so."""
    if args[2].lower() in (b"on", b"off"):
        client.reply.status(b"OK")
    else:
        client.reply.error(SYNTAX_ERROR)


def _refuse(broker: Broker, client: Client, args: list[bytes]) -> None:
    client.reply.error(
        b"ERR CLIENT %b is not supported: there are no keys to track and no notifications to send" % args[1].upper()
    )


ANY = 1 << 20
SUBCOMMANDS: dict[bytes, tuple[int, int, Subcommand]] = {
    b"list": (2, ANY, _list),
    b"info": (2, 2, _info),
    b"id": (2, 2, _id),
    b"getname": (2, 2, _getname),
    b"setname": (3, 3, _setname),
    b"setinfo": (4, 4, _setinfo),
    b"kill": (3, ANY, _kill),
    b"pause": (3, 4, _pause),
    b"unpause": (2, 2, _unpause),
    b"reply": (3, 3, _reply),
    b"no-evict": (3, 3, _switch),
    b"no-touch": (3, 3, _switch),
    b"tracking": (2, ANY, _refuse),
    b"maint_notifications": (2, ANY, _refuse),
}
"""Least and most arguments, both with CLIENT itself, and the handler."""


def client_command(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`CLIENT subcommand …`"""
    least, most, handler = SUBCOMMANDS.get(args[1].lower(), (I64_MAX, 0, _refuse))
    if least <= len(args) <= most:
        handler(broker, client, args)
    else:
        client.reply.error(USAGE)


COMMANDS = (
    Command(
        b"client",
        -2,
        ("readonly", "admin", "loading"),
        "Look at connections, name, silence, pause and close them",
        "connection",
        "LIST | INFO | ID | GETNAME | SETNAME name | SETINFO LIB-NAME|LIB-VER value | KILL ip:port | KILL [ID id] [ADDR ip:port]"
        " [TYPE normal] [SKIPME yes|no] | PAUSE ms | UNPAUSE | REPLY ON|OFF|SKIP | NO-EVICT on|off | NO-TOUCH on|off",
        client_command,
    ),
)
