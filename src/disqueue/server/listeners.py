"""The sockets that clients connect to."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat

from disqueue.config.configuration import Configuration
from disqueue.config.sources import ConfigError

ALL_ADDRESSES = ("0.0.0.0", "::")
LISTEN_HINTS = {
    errno.EADDRINUSE: "; another server runs there, choose another port",
    errno.EADDRNOTAVAIL: "; bind takes addresses of this machine",
    errno.EACCES: "; ports below 1024 are for the superuser, choose another port",
}


def open_listeners(configuration: Configuration) -> list[socket.socket]:
    """Return the bound sockets of `port`, `bind` and `unixsocket`, not yet listening. Raises ConfigError."""
    sockets: list[socket.socket] = []
    try:
        port = configuration.number("port")
        if port:
            addresses = configuration.values["bind"]
            assert isinstance(addresses, tuple)
            sockets.extend(open_tcp([str(address) for address in addresses], port))
        path = configuration.text("unixsocket")
        if path:
            sockets.append(open_unix(path, configuration.number("unixsocketperm")))
    except ConfigError:
        close_all(sockets)
        raise
    return sockets


def close_all(sockets: list[socket.socket]) -> None:
    """Close sockets."""
    for one in sockets:
        one.close()


def open_tcp(addresses: list[str], port: int) -> list[socket.socket]:
    """Return a socket for each address; without addresses for all of the machine. Raises ConfigError."""
    sockets: list[socket.socket] = []
    for address in addresses or ALL_ADDRESSES:
        try:
            found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, kind, protocol, _, target in dict.fromkeys(found):
                sockets.append(_bound(family, kind, protocol, target))
        except OSError as error:
            # A machine without IPv6 is no reason to refuse when nobody asked for it.
            if not addresses and address == "::" and error.errno != errno.EADDRINUSE:
                continue
            close_all(sockets)
            raise _refused(f"{address} port {port}", error) from None
    return sockets


def listen(one: socket.socket, backlog: int) -> None:
    """Let a bound socket take connections. Raises ConfigError: of two that bind at the same moment one gets no further."""
    try:
        one.listen(backlog)
    except OSError as error:
        name = one.getsockname()
        where = f"{name[0]} port {name[1]}" if isinstance(name, tuple) else str(name)
        raise _refused(where, error) from None


def _refused(where: str, error: OSError) -> ConfigError:
    reason = error.strerror or str(error)
    return ConfigError(f"can't listen on {where}: {reason}{LISTEN_HINTS.get(error.errno or 0, '')}")


def _bound(family: int, kind: int, protocol: int, target: object) -> socket.socket:
    one = socket.socket(family, kind, protocol)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.setblocking(False)
        one.bind(target)  # type: ignore[arg-type]
    except BaseException:
        one.close()
        raise
    return one


def open_unix(path: str, permissions: int) -> socket.socket:
    """Return a Unix socket; one that a server left behind is replaced. Raises ConfigError."""
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        one.setblocking(False)
        one.bind(path)
        if permissions:
            os.chmod(path, permissions)
    except OSError as error:
        one.close()
        raise ConfigError(f"unixsocket {path}: {error.strerror or error}") from None
    return one


def _remove_stale(path: str) -> None:
    """Remove a socket that nobody listens on. Raises OSError when somebody does, or when it is no socket."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EEXIST, "there is a file of this name that is no socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            try:
                probe.connect(path)
            except (ConnectionRefusedError, FileNotFoundError):
                os.unlink(path)
                return
            except BlockingIOError:
                pass  # its queue is full: somebody listens
        raise OSError(errno.EADDRINUSE, "another server listens there")


def remove_unix(path: str) -> None:
    """Remove our Unix socket at the end."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def keep_alive(one: socket.socket, seconds: int) -> None:
    """Probe a silent peer after `seconds`; 0: never."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(seconds > 0))
    if seconds > 0 and hasattr(socket, "TCP_KEEPIDLE"):
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, seconds)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, seconds // 3))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
