"""A server's part in its cluster: its identity on disk, its bus port, and the options that steer them."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from disqueue.config.configuration import Configuration
from disqueue.config.kinds import Value
from disqueue.config.sources import ConfigError
from disqueue.core.addresses import is_node_id
from disqueue.core.links import Bus, BusSettings
from disqueue.core.membership import Membership
from disqueue.core.membership_ports import MembershipSettings
from disqueue.core.nodes_text import BUS_PORT_OFFSET, NodeLine, NodesTable, restore
from disqueue.journal.errors import JournalError
from disqueue.journal.manifest import MANIFEST, MANIFEST_BYTES_MAX, decode_manifest
from disqueue.server import listeners, logs
from disqueue.server.nodes_file import DirectoryInUseError, NodesFile
from disqueue.server.nodes_keeper import NodesKeeper
from disqueue.server.peers import PeerNetwork, is_loopback, tls_contexts

if TYPE_CHECKING:
    from disqueue.server.shell import Shell

PORT_MAX = 0xFFFF
BUS_BACKLOG = 100
MEETING_STEPS = 20
MEETING_STEP_S = 0.005
"""A start waits for its peers for 100 ms at the most: links take a few, and one that is down must not hold it up."""
SET_SECRET = "set the same cluster-secret on all nodes (or tls-cluster)"
NO_SECRET_WITH_PASSWORD = (
    "this node requires a password and has no cluster-secret, so that its bus serves this machine only: " + SET_SECRET
)
NO_SECRET_PROTECTED = (
    "this node is in protected mode and has no cluster-secret, so that its bus serves this machine only: "
    + SET_SECRET
    + ", or set bind, or protected-mode no"
)


class Cluster:
    """Made before the node: locks the directory, reads nodes.conf, binds the bus port. Raises `ConfigError`."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._port = configuration.number("port")
        self._bus_port = _bus_port(configuration)
        self._tls = _load_tls(configuration)
        self._file = NodesFile(Path(configuration.text("dir"), configuration.text("cluster-config-file")).absolute())
        self._table = self._load()
        self._sockets = self._bind()
        self.members = Membership(
            self._table.me.node_id if self._table.me else os.urandom(20).hex().encode(),
            int.from_bytes(os.urandom(7), "big") | 1,
            MembershipSettings(),
            logs.log_event,
        )
        self._bus: Bus
        self._network: PeerNetwork
        self._keeper: NodesKeeper

    def attach(self, shell: Shell) -> None:
        """Put the bus under the node of a shell, whose clock is set."""
        addresses = self.configuration.values["bind"]
        assert isinstance(addresses, tuple)
        server_tls, client_tls = self._tls

        self._network = PeerNetwork(
            lambda: begin_event(shell), self._refusal, [str(one) for one in addresses], server_tls, client_tls
        )
        self._keeper = NodesKeeper(self.members, self._file, lambda step: shell.end_once.append(step))
        if self._table.me is None and (trouble := self._keeper.save_now()):  # an id that clients have seen is kept
            logs.log_event("warning", "nodes.conf could not be written, it is tried again", why=trouble)
        self._keeper.hold()
        if self._bus_port:
            self._bus = self._network.bus = Bus(self.members, self._network, BusSettings(), shell.node.receive)
            shell.end_with_peers.append(self._bus.flush)
        self._follow_configuration()

    async def start(self, shell: Shell) -> None:
        """Dial the nodes of nodes.conf and accept links: all that is on disk is loaded."""
        begin_event(shell)
        restore(self.members, self._table)
        self._keeper.release()
        self.members.joining.adopting = bool(self._table.me and self._table.problems)
        if self.members.me.leaving:
            shell.node.set_leaving(True)
        if not self._bus_port:
            logs.log_event("notice", "no bus: set cluster-port (or port) to join other nodes")
            return
        for one in self._sockets:
            listeners.listen(one, BUS_BACKLOG)
        await self._network.listen(self._sockets)
        logs.log_event("notice", "the bus is open", port=self._bus_port)
        if reason := self._policy():
            logs.log_event("notice", reason)

    async def met_peers(self) -> None:
        """Give the links to the nodes of nodes.conf a moment: usually all are there after some milliseconds."""
        for _ in range(MEETING_STEPS):
            heard = self.members.journal_age.heard  # also what they know of this node's journal, before a job of it is handed out
            if all(peer.reachable and peer.slot in heard for peer in self.members.peers):
                return
            await asyncio.sleep(MEETING_STEP_S)

    def stop(self) -> None:
        """The end of the process: the last table is written."""
        self._network.close()
        if self._bus_port:
            self._bus.flush()
            self._bus.close()
        self._keeper.close()

    # -- options

    def _follow_configuration(self) -> None:
        listen = self.configuration.listen
        listen("cluster-node-timeout", self._timeout_changed)
        for option in ("cluster-announce-ip", "cluster-announce-port", "cluster-announce-bus-port"):
            listen(option, self._announcement_changed)
        listen("cluster-secret", self._secret_changed)
        listen("requirepass", self._protection_changed)
        listen("protected-mode", self._protection_changed)

    def _timeout_changed(self, value: Value) -> None:
        assert isinstance(value, int)
        self.members.settings.node_timeout_ms = value
        if self.members.peers:
            self.members.wake_at(self.members.now_ms)

    def _announcement_changed(self, _value: Value) -> None:
        number, settings, me = self.configuration.number, self.members.settings, self.members.me
        settings.announce_address = self.configuration.text("cluster-announce-ip")
        settings.announce_port = me.port = number("cluster-announce-port") or self._port
        settings.announce_bus_port = me.bus_port = number("cluster-announce-bus-port") or self._bus_port
        if settings.announce_address:
            me.address = settings.announce_address

    def _secret_changed(self, value: Value) -> None:
        self._protection_changed(value)
        if self._bus_port:
            self._bus.settings.secret = str(value).encode("utf-8", "surrogateescape")

    def _protection_changed(self, _value: Value) -> None:
        """A running cluster is not cut apart by a password that comes without a secret."""
        reason = self._policy()
        if reason and any(peer.link_up and not is_loopback(peer.address) for peer in self.members.peers):
            raise ConfigError(f"nodes on other machines are connected; {reason}")

    def _policy(self) -> str:
        """Why only this machine is spoken to, or nothing."""
        configuration = self.configuration
        if configuration.text("cluster-secret") or configuration.flag("tls-cluster"):
            return ""
        if configuration.text("requirepass"):
            return NO_SECRET_WITH_PASSWORD
        if configuration.flag("protected-mode") and not configuration.values["bind"]:
            return NO_SECRET_PROTECTED
        return ""

    def _refusal(self, address: str) -> str:
        return "" if is_loopback(address) or not _is_literal(address) else self._policy()

    # -- opening

    def _load(self) -> NodesTable:
        try:
            self._file.lock()
            table = self._file.load()
        except DirectoryInUseError as error:
            raise ConfigError(str(error)) from None
        except OSError as error:
            self._file.unlock()
            raise ConfigError(f"{self._file.path}: {error.strerror}") from None
        if table.problems and table.me is None:
            table.me = self._as_the_journal_says()
        return table

    def _as_the_journal_says(self) -> NodeLine | None:
        """Return who this node is when its nodes.conf is damaged and does not tell: who the journal beside it belongs to."""
        manifest = self._file.path.with_name(self.configuration.text("appendfilename")) / MANIFEST
        try:
            node_id = decode_manifest(manifest.read_bytes()[:MANIFEST_BYTES_MAX], str(manifest)).node_id.encode()
        except (OSError, JournalError):
            node_id = b""
        if not is_node_id(node_id):
            logs.log_event("warning", "this node starts as a new one: CLUSTER MEET joins it again")
            return None
        logs.log_event("warning", "this node is the one that its journal belongs to", node=node_id.decode(), file=str(manifest))
        return NodeLine(node_id, "", self._port, self._bus_port, frozenset())

    def _bind(self) -> list[socket.socket]:
        if not self._bus_port:
            return []
        addresses = self.configuration.values["bind"]
        assert isinstance(addresses, tuple)
        try:
            return listeners.open_tcp([str(address) for address in addresses], self._bus_port)
        except ConfigError as error:
            self._file.unlock()
            source = "cluster-port" if self.configuration.number("cluster-port") else "port + 10000, as cluster-port is not set"
            raise ConfigError(f"port for other nodes ({source}): {error}") from None


def begin_event(shell: Shell) -> None:
    """Make sure that a pass is under way."""
    shell.begin_event()


def _bus_port(configuration: Configuration) -> int:
    """The port to listen on for other nodes; 0: none."""
    port, bus_port = configuration.number("port"), configuration.number("cluster-port")
    if bus_port or not port:
        return bus_port
    if port + BUS_PORT_OFFSET > PORT_MAX:
        raise ConfigError(
            f"port {port}: the port for other nodes would be {port + BUS_PORT_OFFSET}, above {PORT_MAX}: set cluster-port"
        )
    return port + BUS_PORT_OFFSET


def _load_tls(configuration: Configuration) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
    if not configuration.flag("tls-cluster"):
        return None, None
    names = ("tls-cert-file", "tls-key-file", "tls-ca-cert-file")
    certificate, key, authorities = (configuration.text(name) for name in names)
    if not certificate or not authorities:
        raise ConfigError("tls-cluster yes needs tls-cert-file, tls-key-file and tls-ca-cert-file")
    try:
        return tls_contexts(certificate, key, authorities)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"tls-cluster: {certificate}, {key or certificate} or {authorities}: {error}") from None


def _is_literal(address: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, address.partition("%")[0])
        except OSError:
            continue
        return True
    return False
