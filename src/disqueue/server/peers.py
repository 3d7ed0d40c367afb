"""The sockets under the bus: listeners, dials, and the transport of one link, plain or TLS."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import cast

from disqueue.core.links import MAX_HANDSHAKE_MS, Bus, Link
from disqueue.server import logs
from disqueue.wire.handshake import NONCE_BYTES

DIAL_TIMEOUT_S = MAX_HANDSHAKE_MS / 1000
KEEPALIVE_S = 15
READ_BYTES = 1 << 14
"""Read from a peer at once, some milliseconds of work. What fills it may have much behind it, which waits for the next pass."""


class PeerProtocol(asyncio.BufferedProtocol):
    """One socket of the bus: asyncio's protocol, and the transport of its `Link`."""

    def __init__(self, network: PeerNetwork, link: Link | None) -> None:
        self._network = network
        self._link = link
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none of asyncio's classes
        remote = host_of(transport.get_extra_info("peername"))
        local = host_of(transport.get_extra_info("sockname"))
        _set_options(transport.get_extra_info("socket"))
        self._network.begin_event()
        try:
            if self._link is not None:
                self._link.connected(self, remote, local)
            else:
                self._link = self._network.bus.accept(self, remote, local)
        except Exception as error:
            logs.log_event("warning", "a connection of a peer failed inside the server", peer=remote, exception=error)
            self.abort()  # `connection_lost` tells the link, if there is one

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._network.buffer

    def buffer_updated(self, count: int) -> None:
        link = self._link
        if link is None or link.closed:
            return
        self._network.begin_event()
        try:
            link.received(bytes(self._network.buffer[:count]))
        except Exception as error:  # a fault of ours must cost no more than this link
            logs.log_event("warning", "a record of a peer failed inside the server", peer=link.remote, exception=error)
            link.fail("internal error")
        if count == READ_BYTES and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        """The pass has ended: read what else the peer has sent."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        link = self._link
        if link is None or link.closed:
            return
        self._network.begin_event()
        try:
            link.lost(describe(error) if error else "closed by the peer")
        except Exception as fault:  # the link is gone all the same
            logs.log_event("warning", "the end of a link failed inside the server", peer=link.remote, exception=fault)

    # -- the transport of the link

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def buffered_bytes(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0


class PeerNetwork:
    """The network port of `Bus` on asyncio.

    `begin_event` makes sure that a pass is under way. `refusal(address)` says why the node there is not spoken to, or "".
    """

    def __init__(
        self,
        begin_event: Callable[[], None],
        refusal: Callable[[str], str],
        source_addresses: Sequence[str],
        server_tls: ssl.SSLContext | None,
        client_tls: ssl.SSLContext | None,
    ) -> None:
        self.begin_event = begin_event
        self._refusal = refusal
        self.bus: Bus
        self.buffer = memoryview(bytearray(READ_BYTES))
        """What any link reads goes through here and is copied at once."""
        self._sources = [address for address in source_addresses if _is_specific(address)]
        self._server_tls = server_tls
        self._client_tls = client_tls
        self._servers: list[asyncio.Server] = []
        self._dials: set[asyncio.Task[None]] = set()

    async def listen(self, sockets: Sequence[socket.socket]) -> None:
        """Accept links on bound sockets."""
        loop = asyncio.get_running_loop()
        timeout_s = DIAL_TIMEOUT_S if self._server_tls else None
        for one in sockets:
            server = await loop.create_server(
                lambda: PeerProtocol(self, None), sock=one, ssl=self._server_tls, ssl_handshake_timeout=timeout_s
            )
            self._servers.append(server)

    def close(self) -> None:
        """Accept and dial no more."""
        for server in self._servers:
            server.close()
        for task in self._dials:
            task.cancel()

    # -- the port

    def nonce(self) -> bytes:
        return os.urandom(NONCE_BYTES)

    def refusal(self, address: str) -> str:
        return self._refusal(address)

    def dial(self, link: Link, host: str, port: int) -> None:
        task = asyncio.get_running_loop().create_task(self._dial(link, host, port))
        self._dials.add(task)
        task.add_done_callback(self._dials.discard)

    async def _dial(self, link: Link, host: str, port: int) -> None:
        try:
            async with asyncio.timeout(DIAL_TIMEOUT_S):
                await self._connect(link, host, port)
        except (OSError, ssl.SSLError, ssl.CertificateError, UnicodeError) as error:
            reason = "no connection in time" if isinstance(error, TimeoutError) else describe(error)
            self._failed(link, reason)
        except Exception as error:  # a fault of ours: without this the peer would be dialled again only when the dial is overdue
            logs.log_event("warning", "a dial failed inside the server", peer=f"{host}:{port}", exception=error)
            self._failed(link, "internal error")

    def _failed(self, link: Link, reason: str) -> None:
        if not link.closed:
            self.begin_event()
            link.failed(reason)

    async def _connect(self, link: Link, host: str, port: int) -> None:
        """Try the addresses of `host` one after the other. Raises what the last one did."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        trouble: OSError = OSError(f"{host} has no address")
        for family, _, _, _, target in dict.fromkeys(found):
            address = str(target[0])
            if reason := self.refusal(address):
                trouble = OSError(reason)
                continue
            source = self._source_for(family, address)
            try:
                await loop.create_connection(
                    lambda: PeerProtocol(self, link),
                    address,
                    port,
                    ssl=self._client_tls,
                    server_hostname="" if self._client_tls else None,
                    local_addr=(source, 0) if source else None,
                )
            except OSError as error:
                trouble = error
            else:
                return
        raise trouble

    def _source_for(self, family: int, target: str) -> str:
        """The configured address that fits `target`: the other end shall see the address that this node listens on."""
        for address in self._sources:
            same_family = (":" in address) == (family == socket.AF_INET6)
            if same_family and is_loopback(address) == is_loopback(target):
                return address
        return ""


def tls_contexts(certificate: str, key: str, authorities: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The contexts for accepting and for dialling: both ends show a certificate of one of `authorities`.

    Names are not compared, since nodes know each other by addresses that change. Raises `OSError`, `ssl.SSLError`.
    """
    contexts = []
    for purpose in (ssl.Purpose.CLIENT_AUTH, ssl.Purpose.SERVER_AUTH):
        context = ssl.create_default_context(purpose, cafile=authorities)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(certificate, key or None)
        contexts.append(context)
    return contexts[0], contexts[1]


def host_of(name: object) -> str:
    """The host in what a socket says of one of its ends; IPv4 inside IPv6 in its usual form."""
    host = str(name[0]) if isinstance(name, tuple) and name else ""
    return host.removeprefix("::ffff:") if "." in host else host


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return address == "localhost"


def describe(error: Exception) -> str:
    """What went wrong on a socket, in one line."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ConnectionResetError):
        return "connection reset"
    if isinstance(error, socket.gaierror):
        return f"the name cannot be resolved: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _is_specific(address: str) -> bool:
    try:
        return not ipaddress.ip_address(address).is_unspecified
    except ValueError:
        return False


def _set_options(one: socket.socket | None) -> None:
    """No delay for small frames; the system finds out about dead hosts even when nothing is sent."""
    if one is None or one.family == socket.AF_UNIX:
        return
    try:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_S)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_S // 3)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    except OSError:
        pass  # gone already; its end is reported
