"""Commands about the connection itself: who is there, in which protocol, and the end of it."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from disqueue import __version__
from disqueue.commands.arguments import NOT_AN_INTEGER, integer_between
from disqueue.commands.table import Command
from disqueue.core.client import REPLY_ON, Client

if TYPE_CHECKING:
    from disqueue.commands.broker import Broker

PASSWORD_BYTES_MAX = 512
NAME_BYTES_MAX = 512
USER = b"default"
"""The one user there is: what today's Redis clients send when only a password is given."""

BAD_NAME = b"ERR Client names cannot contain spaces, newlines or special characters."


def ping(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`PING [message]`"""
    if len(args) == 1:
        client.reply.status(b"PONG")
    elif len(args) == 2:
        client.reply.bulk(args[1])
    else:
        client.reply.error(b"ERR wrong number of arguments for 'ping' command")


def echo(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`ECHO message`"""
    client.reply.bulk(args[1])


def auth(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`AUTH password`; a wrong password leaves an earlier login as it was."""
    error = _login(broker, client, args[1])
    if error:
        client.reply.error(error)
    else:
        client.reply.status(b"OK")


def _login(broker: Broker, client: Client, password: bytes) -> bytes:
    """Authenticate; return the error, or b""."""
    wanted = broker.dispatcher.password
    if not wanted:
        return b"ERR Client sent AUTH, but no password is set"
    if len(password) > PASSWORD_BYTES_MAX or not hmac.compare_digest(password, wanted):
        broker.node.log("verbose", "wrong password", client=client.address)
        return b"ERR invalid password"
    client.authenticated = True
    return b""


def hello(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`HELLO` gives the nodes as in Disque; `HELLO 2|3 [AUTH default password] [SETNAME name]` chooses the protocol."""
    if len(args) == 1:
        if broker.dispatcher.password and not client.authenticated:
            client.reply.error(b"NOAUTH Authentication required.")
        else:
            _hello_nodes(broker, client)
        return
    protocol = integer_between(args[1])
    if protocol is None:
        client.reply.error(b"ERR Protocol version is not an integer or out of range")
    elif protocol not in (2, 3):
        client.reply.error(b"NOPROTO unsupported protocol version")
    else:
        error = _hello_options(broker, client, args)
        if error:
            client.reply.error(error)
        else:
            client.reply.protocol = protocol
            _hello_server(broker, client, protocol)


def _hello_options(broker: Broker, client: Client, args: list[bytes]) -> bytes:
    """Carry out AUTH and SETNAME; return an error, or b""."""
    name: bytes | None = None
    at = 2
    while at < len(args):
        word = args[at].lower()
        if word == b"auth" and at + 2 < len(args):
            if args[at + 1] != USER:
                return b"WRONGPASS there is only the user 'default'"
            if error := _login(broker, client, args[at + 2]):
                return b"WRONGPASS invalid password" if error.startswith(b"ERR invalid") else error
            at += 3
        elif word == b"setname" and at + 1 < len(args):
            name = args[at + 1]
            if not valid_name(name):
                return BAD_NAME
            at += 2
        else:
            return b"ERR Syntax error in HELLO option '%b'" % args[at][:128]
    if broker.dispatcher.password and not client.authenticated:
        return (
            b"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass>"
            b" option can be used to authenticate the client and select the RESP protocol version at the same time"
        )
    if name is not None:
        client.name = name
    return b""


def valid_name(name: bytes) -> bool:
    """Whether a client may be called so: printable, without blanks."""
    return len(name) <= NAME_BYTES_MAX and all(0x21 <= byte <= 0x7E for byte in name)


def _hello_nodes(broker: Broker, client: Client) -> None:
    nodes = broker.node.members.hello_entries()
    reply = client.reply
    reply.array(2 + len(nodes))
    reply.integer(1)
    reply.bulk(broker.node.node_id)
    for node_id, host, port, priority in nodes:
        reply.array(4)
        reply.bulk(node_id)
        reply.bulk(host.encode())
        reply.bulk(b"%d" % port)
        reply.bulk(b"%d" % priority)


def _hello_server(broker: Broker, client: Client, protocol: int) -> None:
    reply = client.reply
    reply.map(7)
    for key, value in ((b"server", b"disqueue"), (b"version", __version__.encode())):
        reply.bulk(key)
        reply.bulk(value)
    for key, number in ((b"proto", protocol), (b"id", client.id)):
        reply.bulk(key)
        reply.integer(number)
    for key, value in ((b"mode", b"standalone"), (b"role", b"master")):
        reply.bulk(key)
        reply.bulk(value)
    reply.bulk(b"modules")
    reply.array(0)


def quit_(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`QUIT`: what follows it is not executed."""
    client.reply.status(b"OK")
    broker.close(client)


def reset(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`RESET`: the connection as it was in the beginning."""
    broker.dispatcher.forget(client)
    client.reply_mode = REPLY_ON
    client.name = b""
    client.authenticated = False
    client.reply.protocol = 2
    client.reply.status(b"RESET")


def select(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`SELECT 0`: the one database there is."""
    number = integer_between(args[1])
    if number is None:
        client.reply.error(NOT_AN_INTEGER)
    elif number != 0:
        client.reply.error(b"ERR DB index is out of range: there is only database 0")
    else:
        client.reply.status(b"OK")


def time(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`TIME`"""
    seconds, microseconds = divmod(broker.clock.wall_us(), 1_000_000)
    client.reply.array(2)
    client.reply.bulk(b"%d" % seconds)
    client.reply.bulk(b"%d" % microseconds)


COMMANDS = (
    Command(b"ping", -1, ("readonly", "fast"), "Answer PONG, or the message", "connection", "[message]", ping),
    Command(b"echo", 2, ("readonly", "fast"), "Answer the message", "connection", "message", echo),
    Command(
        b"auth",
        2,
        ("readonly", "loading", "noauth", "fast"),
        "Authenticate with the server's password",
        "connection",
        "password",
        auth,
    ),
    Command(
        b"hello",
        -1,
        ("readonly", "loading", "noauth", "fast"),
        "List the nodes of the cluster, or choose the version of the protocol",
        "connection",
        "[2|3 [AUTH default password] [SETNAME name]]",
        hello,
    ),
    Command(b"quit", -1, ("readonly", "loading", "noauth", "fast"), "Close the connection", "connection", "", quit_),
    Command(
        b"reset",
        1,
        ("readonly", "loading", "noauth", "fast"),
        "Bring the connection back to its first state",
        "connection",
        "",
        reset,
    ),
    Command(b"select", 2, ("readonly", "loading", "fast"), "Choose database 0, the only one", "connection", "0", select),
    Command(b"time", 1, ("readonly", "loading", "fast"), "Return the server's time", "server", "", time),
)
