"""One node between peers that say whatever a test wants: the core alone, without network."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from disqueue.core.client import NOT_BLOCKED, Client
from disqueue.core.job import ACTIVE, GONE, HELD
from disqueue.core.membership import Membership
from disqueue.core.membership_ports import MembershipSettings
from disqueue.core.node import Node
from disqueue.core.peer import MEMBER, Peer
from disqueue.core.settings import Settings
from disqueue.simulation.state import check_process
from disqueue.wire import job_records as wire
from disqueue.wire.frames import JobRecord
from disqueue.wire.resp import ReplyWriter

PEERS = 3
START_WALL_MS = 1_750_000_000_000
TTL_S = 60
UNKNOWN_ID = b"D-aaaaaaaa-" + b"u" * 24 + b"-0001"
UNKNOWN_ONCE = b"D-aaaaaaaa-" + b"v" * 24 + b"-0000"
ALL_OVER_MS = 1_000_000
"""By then every TTL has ended, and every queue has been idle for long."""


class Quiet(Membership):
    """Sends no pings: nobody would answer them here."""

    def advance(self) -> None:
        """Nothing is ever due."""


class LoneNode:
    """`node` and its `peers`, which are all linked. `client()` makes a connection."""

    def __init__(self, seed: int = 1) -> None:
        dice = random.Random(seed)
        self.node = Node(Settings(), dice.randbytes, b"0" * 40, Quiet(b"0" * 40, 1, MembershipSettings(), lambda *_: None))
        self.connections: list[Any] = []
        members = self.node.members
        for slot in range(1, PEERS + 1):
            peer = Peer(slot, b"%d" % slot * 40, MEMBER)
            peer.link_up = peer.reachable = True
            members.by_slot.append(peer)
            members.by_id[peer.node_id] = peer
            members.peers.append(peer)
            members.reachable.append(peer)
            members.members_mask |= peer.bit
        self.peers: list[Peer] = members.peers
        self.now_ms = 1000
        self.wall_ms = START_WALL_MS
        self.begin()
        for peer in self.peers:
            self.node.link_up(peer)
            self.receive(peer, wire.Slots(0, [peer.node_id, b"0" * 40, *(b"%d" % slot * 40 for slot in range(1, PEERS + 1))]))

    # In the table of each peer slot 0 is the peer itself, 1 is this node, 2 and up are the peers.

    def begin(self) -> None:
        self.node.begin_pass(self.now_ms, self.wall_ms + self.now_ms)

    def client(self) -> Client:
        client = Client(len(self.connections) + 1, ReplyWriter())
        self.connections.append(SimpleNamespace(client=client))
        return client

    def run(self, work: Callable[[], object]) -> None:
        """Do something in a pass of its own."""
        self.begin()
        work()
        self.node.advance()
        self.node.end_pass()

    def receive(self, peer: Peer, *records: Any) -> None:
        self.run(lambda: self.node.receive(peer, list(records)))

    def let_pass(self, milliseconds: int) -> None:
        """Fire the timers of some time, each when it is due."""
        end_ms = self.now_ms + milliseconds
        for _ in range(20_000):
            deadline_ms = self.node.timers.next_ms()
            if deadline_ms < 0 or deadline_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, deadline_ms)
            self.run(lambda: None)
        else:
            raise AssertionError("timers without end")
        self.now_ms = end_ms
        self.begin()

    def sent(self) -> list[Any]:
        """Take what the peers would have been sent."""
        records = [record for peer in self.peers for record in peer.outbox]
        for peer in self.peers:
            peer.outbox = []
        return records

    def add(self, **options: int) -> bytes:
        """Add a job and return its id, also while its copies are being made."""
        before = {job.id for job in self.node.jobs}
        client = self.client()
        wanted = {"timeout_ms": 0, "replicate": 1, "ttl_s": TTL_S, "retry_s": 5, "delay_s": 0, "maxlen": 0} | options
        asynchronous = bool(wanted.pop("asynchronous", 0))
        self.run(lambda: self.node.add_job(client, b"q", b"body", *wanted.values(), asynchronous))
        return next(job.id for job in self.node.jobs if job.id not in before)

    def take(self) -> None:
        client = self.client()
        self.run(lambda: self.node.get_jobs(client, [b"q"], 1, 0, True, False))

    def record(self, job_id: bytes, queue: bytes = b"q") -> JobRecord:
        retry_s = 5 if job_id[-1] in b"13579bdf" else 0
        return JobRecord(job_id, queue, b"body", START_WALL_MS * 1_000_000, TTL_S, retry_s, 0, 2, TTL_S * 1000, 0, 0, 0, 7)

    def check(self) -> None:
        """All tables fit each other."""
        check_process(
            SimpleNamespace(node=self.node, machine=SimpleNamespace(name="node"), connections=self.connections, journal=None)
        )
        for peer in self.peers:
            data = self.node.jobs_of(peer)
            for name in ("held", "offered"):
                for job_id, job in getattr(data, name).items():
                    assert self.node.jobs.get(job_id) is job, name
                    assert job.state == ACTIVE, name
                    assert job.flags & HELD, name
        for departure in self.node.departures.values():  # those that are gone are dropped by the next step
            assert departure.job.state == GONE or self.node.jobs.get(departure.job.id) is departure.job

    def check_nothing_left(self) -> None:
        """When links are gone and all TTLs have ended, nothing stays in any table."""
        for peer in self.peers:
            self.lose(peer)
        self.run(lambda: self.node.pause_here(b"q", 0))
        self.run(lambda: self.node.set_leaving(False))
        for connection in self.connections:
            client = connection.client
            if client.blocked != NOT_BLOCKED:
                self.run(lambda client=client: self.node.disconnect(client))
        self.let_pass(ALL_OVER_MS)
        self.check()
        node = self.node
        assert (len(node.jobs), node.queues, node.used_bytes, node.requests, node.ack_requests) == (0, {}, 0, {}, {})
        assert (node.departures, node.evictable, node.blocked_clients) == ({}, {}, 0)
        assert node.timers.count == 0
        for peer in self.peers:
            data = node.jobs_of(peer)
            assert (data.in_flight, data.offered, data.held, data.wanted) == ({}, {}, {}, {})

    def lose(self, peer: Peer) -> None:
        """The link to a peer breaks."""
        if peer.link_up:
            peer.link_up = False
            peer.outbox = []
            if peer in self.node.members.reachable:
                self.node.members.reachable.remove(peer)
            self.run(lambda: self.node.link_down(peer))

    def regain(self, peer: Peer) -> None:
        """The link to a peer is there again."""
        if not peer.link_up:
            peer.link_up = True
            self.node.members.reachable.append(peer)
            self.node.link_up(peer)

    def forget(self, peer: Peer) -> None:
        """An operator removes a node whose link is gone."""
        self.node.members.members_mask &= ~peer.bit
        self.peers.remove(peer)
        self.run(lambda: self.node.peer_forgotten(peer))

    def replica(self, job_id: bytes = UNKNOWN_ID) -> bytes:
        self.receive(self.peers[0], wire.Store([self.record(job_id)]))
        return job_id
