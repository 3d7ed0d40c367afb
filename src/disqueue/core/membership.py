"""Who is in the cluster: the table of nodes, how a node gets in and out of it, and who can be reached.

A pure state machine on the time it is given. It talks to three ports: `bus` dials and closes links, `events` hears of
changes, `log` takes a line for people. `disqueue.core.links.Bus` is the bus of both shells.

Each node dials every other: the link that A dialled carries A's records to B, the one B dialled carries B's to A. A peer
is *reachable* when both are up, nothing suspects it, and it is not leaving.
"""

from __future__ import annotations

from disqueue.core.addresses import is_address, is_loopback, is_node_id
from disqueue.core.bans import Bans
from disqueue.core.dialling import STALE_MS, Dialling
from disqueue.core.gossip import Gossip
from disqueue.core.heartbeat import Heartbeat
from disqueue.core.joining import MAX_MEMBERS, Joining
from disqueue.core.journal_age import JournalAge
from disqueue.core.membership_ports import (
    BusPort,
    ClusterError,
    Log,
    MembershipEvents,
    MembershipSettings,
    MembershipStats,
    NoBus,
    TableKeeper,
)
from disqueue.core.peer import FORGOTTEN, HANDSHAKE, MEMBER, UNKNOWN, Peer
from disqueue.wire.bus import BusError
from disqueue.wire.handshake import INTENT_MEET, INTENT_MEMBER, Identity
from disqueue.wire.records import FLAG_LEAVING, GossipBan, Ping, Pong

MAX_SLOTS = 16_384
"""Ids seen in the life of a process: owner masks of jobs have that many bits at most."""
TAKEOVER_MS = 1_000
"""A node id may move from one process to another this often: two processes with one id must not spin."""


class Membership:
    """The table of nodes. `wake_ms` says when `advance` has something to do (-1: never)."""

    def __init__(self, node_id: bytes, incarnation: int, settings: MembershipSettings, log: Log) -> None:
        self.settings = settings
        self.log = log
        self.bus: BusPort = NoBus()
        self.events = MembershipEvents()
        self.keeper = TableKeeper()
        self.stats = MembershipStats()
        self.now_ms = 0
        self.wall_ms = 0
        self.wake_ms = -1
        self.me = Peer(0, node_id, MEMBER)
        self.me.incarnation = incarnation
        self.me.port = settings.announce_port
        self.me.bus_port = settings.announce_bus_port
        self.me.address = settings.announce_address
        self.by_slot: list[Peer] = [self.me]
        self.by_id: dict[bytes, Peer] = {node_id: self.me}
        self.peers: list[Peer] = []  # the members but this node, in the order they joined
        self.reachable: list[Peer] = []
        self.members_mask = 1
        self.unknown_mask = 0
        """Nodes of which only the id is known, from owner sets: members elsewhere, which will turn up here too."""
        self.reachable_mask = 0
        self.failed_mask = 0
        self.bans = Bans()
        self.gossip = Gossip(self)
        self.heartbeat = Heartbeat(self)
        self.joining = Joining(self)
        self.dialling = Dialling(self)
        self.journal_age = JournalAge(self)

    # -- passes ---------------------------------------------------------------------------------------------------

    def begin_pass(self, now_ms: int, wall_ms: int) -> None:
        self.now_ms = now_ms
        self.wall_ms = wall_ms

    def advance(self) -> None:
        """Do what is due: dial, ping, suspect, spread news. Cheap when nothing is."""
        now_ms = self.now_ms
        if self.wake_ms < 0 or now_ms < self.wake_ms:
            return
        self.heartbeat.forgive_stall(now_ms - self.wake_ms)
        self.bus.advance(now_ms)
        self.bans.expire(now_ms)
        self.joining.expire()
        self.dialling.due()
        self.heartbeat.advance()
        self.gossip.flush()
        self._plan()

    def wake_at(self, deadline_ms: int) -> None:
        """`advance` shall run at `deadline_ms` at the latest."""
        if self.wake_ms < 0 or deadline_ms < self.wake_ms:
            self.wake_ms = deadline_ms

    def _plan(self) -> None:
        self.wake_ms = -1
        for deadline_ms in (self.bus.wake_ms, self.heartbeat.next_deadline_ms(), self.gossip.flush_ms):
            if deadline_ms >= 0:
                self.wake_at(deadline_ms)
        for peer in self.joining.handshakes:
            self.wake_at(peer.expires_ms)
        for peer in self.joining.handshakes + self.peers:
            if not peer.link_up and not peer.dialling:
                self.wake_at(peer.next_dial_ms)

    # -- what is known --------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Members, this node and failed ones included."""
        return len(self.peers) + 1

    def find(self, node_id: bytes) -> Peer | None:
        """The member with this id."""
        peer = self.by_id.get(node_id)
        return peer if peer is not None and peer.state == MEMBER else None

    def intern(self, node_id: bytes) -> Peer | None:
        """The peer of an id that stands in a job's owner list, member or not. None when the id is invalid or one too many."""
        peer = self.by_id.get(node_id)
        if peer is None and is_node_id(node_id) and len(self.by_slot) < MAX_SLOTS:
            peer = Peer(len(self.by_slot), node_id, UNKNOWN)
            self.by_slot.append(peer)
            self.by_id[node_id] = peer
            if not self.bans.holds(node_id, self.now_ms):
                self.unknown_mask |= peer.bit
        return peer

    def identity(self, intent: int = INTENT_MEMBER, introducer: bytes = b"") -> Identity:
        """What this node says of itself in a handshake."""
        settings = self.settings
        return Identity(
            self.me.node_id,
            self.me.incarnation,
            settings.announce_address,
            settings.announce_port,
            settings.announce_bus_port,
            self.me.flags,
            intent,
            introducer,
        )

    def hello_entries(self) -> list[tuple[bytes, str, int, int]]:
        """`(id, host, port, priority)` of each node a client can use, this one first. Lower priorities are better."""
        entries = [(self.me.node_id, self.me.address, self.me.port, 100 if self.me.leaving else 1)]
        for peer in self.peers:
            if peer.address and peer.port and not peer.no_address:
                priority = 100 if peer.failed or peer.leaving else 10 if peer.suspected else 1 if peer.link_up else 5
                entries.append((peer.node_id, peer.address, peer.port, priority))
        return entries

    # -- what operators ask for -------------------------------------------------------------------------------------------

    def forget(self, node_id: bytes) -> None:
        """Drop a node from the cluster, everywhere, and keep gossip from bringing it back for a while."""
        if node_id == self.me.node_id:
            raise ClusterError("I tried hard but I can't forget myself...")
        peer = self.find(node_id)
        if peer is None:
            met = next((peer for peer in self.joining.handshakes if peer.node_id == node_id), None)
            if met is None:
                raise ClusterError(f"Unknown node {node_id.decode('ascii', 'replace')}")
            self.joining.end(met, "it was forgotten")
            return
        self.bans.add(node_id, self.wall_ms, self.now_ms)
        self._remove(peer)
        self.gossip.spread_ban(node_id)
        self.log("notice", "node forgotten", {"node": peer.node_id.decode(), "by": "command"})

    def reset(self, new_id: bytes | None) -> None:
        """Forget all other nodes, without a ban; with `new_id` become a new node."""
        for peer in list(self.joining.handshakes):
            self.joining.end(peer, "this node was reset")
        for peer in list(self.peers):
            self._remove(peer)
        self.bans.clear()
        self.gossip.clear()
        self.joining.adopting = False
        if new_id is not None:
            del self.by_id[self.me.node_id]
            self.me.node_id = new_id
            self.by_id[new_id] = self.me
        self.keeper.changed()

    def set_leaving(self, leaving: bool) -> None:
        if self.me.leaving != leaving:
            self.me.leaving = leaving
            self.heartbeat.ping_all()
            self.keeper.changed()

    def restore_member(self, node_id: bytes, address: str, port: int, bus_port: int, leaving: bool) -> None:
        """A member read from disk; it is dialled at once, and suspected when it does not answer in time."""
        peer = self._make_member(node_id)
        peer.address, peer.port, peer.bus_port = address, port, bus_port
        peer.no_address = not address
        peer.leaving = leaving
        peer.silent_since_ms = self.now_ms or 1

    # -- links ----------------------------------------------------------------------------------------------------

    def dialled(self, dialled: Peer, identity: Identity, remote: str, local: str, version: int) -> Peer | None:
        """A dial ended with a proven identity. Returns the peer whose link it is now; None: not needed after all.

        Raises `BusError` when the node at that address is not the one looked for.
        """
        dialled.dialling = False
        self._check_identity(identity)
        self._check_dialled(dialled, identity)
        peer = self.joining.finish(dialled, identity, remote) if dialled.state == HANDSHAKE else dialled
        if peer.link_up:
            return None
        self._note_identity(peer, identity)
        self._set_address(peer, identity, peer.dial_target[0] if peer is dialled else remote)
        self._learn_own_address(local, False)
        peer.link_up = True
        peer.link_up_ms = self.now_ms
        peer.version = version
        peer.alternate = ("", 0, 0)
        return peer

    def link_began(self, peer: Peer) -> None:
        """The bus has the link that was dialled: whatever fails from here on ends it."""
        self.events.peer_link_up(peer)
        self.gossip.introduce(peer)
        self._answer(peer)
        self._refresh(peer)

    def dial_failed(self, peer: Peer, reason: str) -> None:
        """A dial ended without a link; it is tried again later."""
        peer.dialling = False
        if peer.failure != reason and peer.state == MEMBER:
            self.log("notice", "cannot reach node", {"node": peer.node_id.decode(), "at": target_text(peer), "why": reason})
        peer.failure = reason
        self.dialling.plan(peer)

    def denied(self, dialled: Peer, identity: Identity) -> None:
        """A dialled node proved who it is and refused; `dial_failed` follows. Raises `BusError` when it is the wrong one."""
        self._check_identity(identity)
        self._check_dialled(dialled, identity)

    def accepted(self, identity: Identity, remote: str, local: str) -> Peer:
        """A node that proved the secret has dialled here. Raises `BusError` with the reason when it is not wanted."""
        self._check_identity(identity)
        if identity.node_id == self.me.node_id:
            if identity.incarnation == self.me.incarnation:
                raise BusError("this node has dialled itself: a node that it knows has left its address to it (CLUSTER FORGET)")
            raise BusError("the node has this node's own id: was its directory copied?")
        peer = self.find(identity.node_id)
        if peer is None:
            peer = self.joining.admit(identity, remote)
        elif peer.incarnation and peer.incarnation != identity.incarnation:
            self._take_over(peer)
        self._note_identity(peer, identity)
        self._set_address(peer, identity, peer.address if peer.link_up and peer.address else remote)
        self._learn_own_address(local, identity.intent == INTENT_MEET)
        if peer.dialling and self.now_ms - peer.dialled_ms >= STALE_MS:  # it hangs, and the way is free again
            self.bus.drop_dial(peer)
            peer.dialling = False
        if not peer.link_up and not peer.dialling:  # it is there: a pause that began while it was not is over
            peer.next_dial_ms = self.now_ms
            self.wake_at(self.now_ms)
        return peer

    def incoming_began(self, peer: Peer) -> None:
        """The bus has the link that the peer dialled."""
        peer.incoming_up = True
        self._refresh(peer)
        self.events.peer_incoming_up(peer)

    def link_lost(self, peer: Peer) -> None:
        """The link dialled from here ended."""
        peer.link_up = False
        peer.outbox.clear()
        if not peer.silent_since_ms:
            peer.silent_since_ms = self.now_ms or 1
        self._refresh(peer)
        if peer.state == MEMBER:
            self.dialling.plan(peer)
        self.events.peer_link_down(peer)  # last: a fault there must not leave a peer that is taken for reachable

    def incoming_lost(self, peer: Peer) -> None:
        """The link that the peer dialled ended."""
        peer.incoming_up = False
        self._refresh(peer)

    def receive(self, peer: Peer, record: Ping | Pong) -> None:
        """A record of membership's own. Raises `BusError` on bad content."""
        if peer.state != MEMBER:
            return
        if isinstance(record, Ping):
            self._set_leaving_flag(peer, bool(record.flags & FLAG_LEAVING))
            if record.stamp:
                peer.pong_owed = record.stamp
                self._answer(peer)
            self.gossip.receive(peer, record)
            self.journal_age.receive(peer, record)
        else:
            self._set_leaving_flag(peer, bool(record.flags & FLAG_LEAVING))
            self.heartbeat.receive_pong(peer, record.stamp)

    # -- changes that the heartbeat and gossip ask for ------------------------------------------------------------

    def set_failing(self, peer: Peer, suspected: bool, failed: bool) -> None:
        if (peer.suspected, peer.failed) == (suspected, failed):
            return
        word = "failed" if failed else "suspected" if suspected else "back"
        level = "warning" if failed or suspected else "notice"
        why = {"why": peer.failure or "no answer"} if suspected else {}
        self.log(level, f"node {word}", {"node": peer.node_id.decode(), "at": f"{peer.address}:{peer.port}", **why})
        peer.suspected, peer.failed = suspected, failed
        if not suspected:
            peer.reports.clear()
        self._refresh(peer)
        self.gossip.spread_node(peer)
        self.keeper.changed()

    def drop_link(self, peer: Peer) -> None:
        """Give up a link that no answer comes through; it is dialled anew."""
        self.bus.drop_link(peer)
        self.link_lost(peer)

    def apply_ban(self, ban: GossipBan) -> None:
        """A member says that a node was forgotten, or that this was taken back."""
        if ban.node_id == self.me.node_id or not self.bans.merge(ban, self.now_ms):
            return
        self.gossip.spread_ban(ban.node_id)
        peer = self.find(ban.node_id)
        if self.bans.holds(ban.node_id, self.now_ms):
            if peer is not None:
                self._remove(peer)
                self.log("notice", "node forgotten", {"node": peer.node_id.decode(), "by": "gossip"})
            elif ban.node_id in self.by_id:
                self.unknown_mask &= ~self.by_id[ban.node_id].bit

    # -- inside ---------------------------------------------------------------------------------------------------

    def join(self, identity: Identity, remote: str) -> Peer:
        if self.size >= MAX_MEMBERS:
            raise BusError(f"the cluster has {MAX_MEMBERS} nodes already")
        peer = self._make_member(identity.node_id)
        self._set_address(peer, identity, remote)
        self.gossip.spread_node(peer)
        self.log("notice", "node joined", {"node": peer.node_id.decode(), "at": f"{peer.address}:{peer.port}"})
        self.events.peer_joined(peer)
        self.keeper.changed()
        return peer

    def _make_member(self, node_id: bytes) -> Peer:
        peer = self.intern(node_id)
        if peer is None:
            raise BusError("too many different nodes in the life of this process")
        peer.clear()
        peer.state = MEMBER
        peer.next_dial_ms = self.now_ms
        self.peers.append(peer)
        self.members_mask |= peer.bit
        self.unknown_mask &= ~peer.bit
        self.wake_at(self.now_ms)
        return peer

    def _remove(self, peer: Peer) -> None:
        self.bus.disconnect(peer)
        if peer.link_up:
            self.events.peer_link_down(peer)
        peer.clear()
        self._refresh(peer)
        peer.state = FORGOTTEN
        peer.incarnation = 0
        self.peers.remove(peer)
        self.members_mask &= ~peer.bit
        self.failed_mask &= ~peer.bit
        self.gossip.drop(peer)
        for other in self.peers:
            other.reports.pop(peer.slot, None)
        self.events.peer_forgotten(peer)
        self.keeper.changed()

    def _take_over(self, peer: Peer) -> None:
        """The peer's id comes from a new process."""
        if peer.reachable and self.now_ms - peer.takeover_ms < TAKEOVER_MS and peer.takeover_ms:
            raise BusError("another process with the same node id was here just now: was its directory copied?")
        peer.takeover_ms = self.now_ms
        self.bus.disconnect(peer)
        peer.dialling = peer.incoming_up = False
        if peer.link_up:
            self.link_lost(peer)
        peer.dial_attempts = 0
        peer.next_dial_ms = self.now_ms
        self.wake_at(self.now_ms)

    def _note_identity(self, peer: Peer, identity: Identity) -> None:
        before, peer.incarnation = peer.incarnation, identity.incarnation
        self._set_leaving_flag(peer, bool(identity.flags & FLAG_LEAVING))
        peer.failure = ""
        if before and before != identity.incarnation:
            peer.rtt_ms = 0.0
            self.log("notice", "node restarted", {"node": peer.node_id.decode()})
            self.events.peer_restarted(peer)

    def _set_address(self, peer: Peer, identity: Identity, seen: str) -> None:
        address = identity.address or seen
        if (peer.address, peer.port, peer.bus_port) != (address, identity.port, identity.bus_port):
            peer.address, peer.port, peer.bus_port = address, identity.port, identity.bus_port
            if not peer.link_up and not peer.dialling:
                peer.next_dial_ms = self.now_ms
                self.wake_at(self.now_ms)
            self.gossip.spread_node(peer)
            self.keeper.changed()
        peer.no_address = False

    def _note_lost_address(self, peer: Peer) -> None:
        if not peer.no_address:
            peer.no_address = True
            self.log(
                "warning",
                "another node lives at the address of",
                {"node": peer.node_id.decode(), "at": target_text(peer)},
            )
            self.keeper.changed()

    def _learn_own_address(self, local: str, met: bool) -> None:
        """`local` is this end of a link. A node that was met there takes it, like one that knows no better."""
        me = self.me
        if self.settings.announce_address or not is_address(local) or me.address == local:
            return
        if not me.address or met or (is_loopback(me.address) and not is_loopback(local)):
            me.address = local
            self.log("notice", "own address learned", {"address": local})
            self.keeper.changed()

    def _set_leaving_flag(self, peer: Peer, leaving: bool) -> None:
        if peer.leaving != leaving:
            peer.leaving = leaving
            self.log("notice", "node is leaving" if leaving else "node stays", {"node": peer.node_id.decode()})
            self._refresh(peer)
            self.keeper.changed()

    def _answer(self, peer: Peer) -> None:
        """Send the answer to the last ping, now or when there is a link for it."""
        if peer.link_up and peer.pong_owed:
            peer.outbox.append(Pong(peer.pong_owed, self.me.flags))
            peer.pong_owed = 0

    def _refresh(self, peer: Peer) -> None:
        reachable = peer.link_up and peer.incoming_up and not peer.suspected and not peer.failed and not peer.leaving
        self.failed_mask = self.failed_mask | peer.bit if peer.failed else self.failed_mask & ~peer.bit
        if reachable != bool(self.reachable_mask & peer.bit):
            peer.reachable = reachable
            self.reachable_mask ^= peer.bit
            self.reachable = [other for other in self.peers if other.reachable]
            self.events.peer_reachable_changed(peer)

    def _check_dialled(self, dialled: Peer, identity: Identity) -> None:
        """The node at the other end must be the one that was looked for."""
        if identity.node_id == self.me.node_id:
            trouble = "the address is this node itself"
        elif dialled.state == MEMBER and identity.node_id != dialled.node_id:
            trouble = f"node {identity.node_id.decode()} lives at this address now"
        elif dialled.expected_id not in (b"", identity.node_id):
            trouble = f"node {identity.node_id.decode()} lives at this address, {dialled.expected_id.decode()} was expected"
        else:
            return
        if dialled.state == MEMBER:
            self._note_lost_address(dialled)
        elif dialled.state == HANDSHAKE:
            self.joining.end(dialled, trouble)
        raise BusError(trouble)

    def _check_identity(self, identity: Identity) -> None:
        if not is_node_id(identity.node_id):
            raise BusError("the peer's node id is not 40 hex digits")
        if identity.address and not is_address(identity.address):
            raise BusError("the peer announces an address that is none")
        if not identity.bus_port or not identity.incarnation:
            raise BusError("the peer's identity lacks its bus port or incarnation")


def target_text(peer: Peer) -> str:
    """Where a peer was dialled last."""
    host, bus_port = peer.dial_target
    return f"{host}:{bus_port}"
