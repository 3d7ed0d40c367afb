"""Links over real sockets: joining, strangers, TLS, and what a broken peer can do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from disqueue.core.links import Link
from disqueue.core.membership_ports import MembershipEvents
from disqueue.core.peer import Peer
from disqueue.server.peers import host_of, is_loopback, tls_contexts
from disqueue.wire.bus import encode_frames
from disqueue.wire.handshake import ACCEPTOR, DIALLER, INTENT_MEET, Handshake, Identity
from disqueue.wire.job_records import Want
from disqueue.wire.records import Pong
from tests.server.bus_node import LoopNode, until

CERTIFICATES = Path(__file__).parent / "certificates"


def tls(name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return tls_contexts(str(CERTIFICATES / f"{name}.pem"), "", str(CERTIFICATES / "ca.crt"))


@asynccontextmanager
async def running(*nodes: LoopNode) -> AsyncIterator[None]:
    for node in nodes:
        await node.start()
    try:
        yield
    finally:
        for node in nodes:
            await node.stop()


def play(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(scene())  # type: ignore[arg-type]


def mesh(*nodes: LoopNode) -> bool:
    return all(len(node.members.reachable) == len(nodes) - 1 for node in nodes)


def test_three_nodes_join_by_address_and_by_name() -> None:
    async def scene() -> None:
        one, two, three = (LoopNode(number) for number in (1, 2, 3))
        async with running(one, two, three):
            one.meet("127.0.0.1", two.port)
            two.meet("localhost", three.port)
            await until(lambda: mesh(one, two, three))
            assert one.members.me.address == "127.0.0.1"
            assert {entry[1:3] for entry in one.members.hello_entries()} == {("127.0.0.1", port) for port in (1001, 1002, 1003)}

    play(scene)


def test_records_arrive_in_order_across_many_frames() -> None:
    async def scene() -> None:
        one, two = LoopNode(1), LoopNode(2)
        async with running(one, two):
            one.meet("127.0.0.1", two.port)
            await until(lambda: mesh(one, two))
            sent = [Want(b"%d" % number * (number % 5000), number) for number in range(3_000)]
            for start in range(0, len(sent), 500):
                one.begin_event()
                one.members.peers[0].outbox.extend(sent[start : start + 500])
                await asyncio.sleep(0)
            await until(lambda: len(two.got) == len(sent))
            assert two.got == sent

    play(scene)


def test_a_peer_that_goes_away_is_unreachable_at_once_and_comes_back() -> None:
    async def scene() -> None:
        one, two = LoopNode(1), LoopNode(2)
        async with running(one, two):
            one.meet("127.0.0.1", two.port)
            await until(lambda: mesh(one, two))
            two.bus.disconnect(two.members.peers[0])
            await until(lambda: not one.members.reachable)
            two.begin_event()
            two.members.link_lost(two.members.peers[0])
            await until(lambda: mesh(one, two))

    play(scene)


class FaultyEvents(MembershipEvents):
    """What a fault of the job layers looks like from below: one of them raises, once."""

    def __init__(self, fault: str) -> None:
        self.faults = [fault]

    def _happens(self, event: str) -> None:
        if event in self.faults:
            self.faults.remove(event)
            raise RuntimeError("a fault inside")

    def peer_link_up(self, peer: Peer) -> None:
        self._happens("link up")

    def peer_incoming_up(self, peer: Peer) -> None:
        self._happens("incoming up")

    def peer_link_down(self, peer: Peer) -> None:
        self._happens("link down")


@pytest.mark.parametrize("fault", ["link up", "incoming up", "link down"])
def test_a_fault_inside_costs_a_link_and_nothing_more(fault: str) -> None:
    async def scene() -> None:
        one, two = LoopNode(1), LoopNode(2)
        events = one.members.events = FaultyEvents(fault)
        async with running(one, two):
            one.meet("127.0.0.1", two.port)
            if fault == "link down":
                await until(lambda: mesh(one, two))
                two.bus.disconnect(two.members.peers[0])
                two.begin_event()
                two.members.link_lost(two.members.peers[0])
            await until(lambda: not events.faults)
            await until(lambda: mesh(one, two) and one.members.peers[0].link is not None and not one.members.peers[0].dialling)

    play(scene)


def test_a_fault_of_a_dial_is_a_dial_that_failed() -> None:
    async def scene() -> None:
        one, two = LoopNode(1), LoopNode(2)
        connect, faults = one.network._connect, ["a fault inside"]

        async def fail_once(link: Link, host: str, port: int) -> None:
            if faults:
                raise RuntimeError(faults.pop())
            await connect(link, host, port)

        failed, reasons = one.network._failed, []

        def note(link: Link, reason: str) -> None:
            reasons.append(reason)
            failed(link, reason)

        one.network._connect, one.network._failed = fail_once, note  # type: ignore[method-assign]
        async with running(one, two):
            one.meet("127.0.0.1", two.port)
            await until(lambda: mesh(one, two))
            assert reasons == ["internal error"], "not only when the dial is overdue"

    play(scene)


def test_another_secret_is_refused_and_both_logs_say_so() -> None:
    async def scene() -> None:
        one, two = LoopNode(1), LoopNode(2, secret=b"another")
        async with running(one, two):
            one.meet("127.0.0.1", two.port)
            await until(lambda: bool(two.logged("bus connection refused")))
            await until(lambda: "cluster-secret" in one.members.joining.handshakes[0].failure)
            assert not one.members.peers
            assert not two.members.peers

    play(scene)


def test_a_bus_that_is_closed_says_what_to_set() -> None:
    async def scene() -> None:
        one, two = LoopNode(1), LoopNode(2, closed="set cluster-secret")
        async with running(one, two):
            one.meet("127.0.0.1", two.port)
            await until(lambda: "set cluster-secret" in one.members.joining.handshakes[0].failure)
            assert two.logged("bus connection refused")

    play(scene)


def test_mutual_certificates() -> None:
    async def scene() -> None:
        one, two, three = LoopNode(1, tls=tls("node")), LoopNode(2, tls=tls("node")), LoopNode(3, tls=tls("stranger"))
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # asyncio tells of each failed handshake
        async with running(one, two, three):
            one.meet("127.0.0.1", two.port)
            await until(lambda: mesh(one, two))
            three.meet("127.0.0.1", one.port)
            await until(lambda: bool(three.members.joining.handshakes[0].failure))
            one.meet("127.0.0.1", three.port)
            await until(lambda: "certificate" in one.members.joining.handshakes[0].failure)
            assert len(one.members.peers) == 1
            assert not three.members.peers

    play(scene)


def test_nobody_without_tls_speaks_to_a_node_with_it() -> None:
    async def scene() -> None:
        one, two = LoopNode(1, tls=tls("node")), LoopNode(2)
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with running(one, two):
            one.meet("127.0.0.1", two.port)
            await until(lambda: any("TLS" in str(fields["why"]) for fields in two.logged("bus connection refused")))

    play(scene)


async def closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Wait until the other end has closed the connection."""
    with contextlib.suppress(ConnectionError):
        await reader.read()
    writer.close()


GARBAGE = {
    "random": random.Random(2).randbytes(5_000),
    "a client": b"*1\r\n$4\r\nPING\r\n",
    "Disque": b"DbuZ" + bytes(140),
    "endless frame": b"\0\0\x0f\xff" + b"x" * 5_000,
    "empty frame": bytes(8),
    "nested": b"\0\0\x03\xe8" + b"\x91" * 1_000,
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_closes_its_connection_and_nothing_else(kind: str) -> None:
    async def scene() -> None:
        one, two = LoopNode(1), LoopNode(2)
        async with running(one, two):
            one.meet("127.0.0.1", two.port)
            await until(lambda: mesh(one, two))
            reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
            writer.write(GARBAGE[kind])
            await closed(reader, writer)
            await until(lambda: one.members.stats.links_refused == 1)
            assert mesh(one, two)

    play(scene)


def test_silent_strangers_make_room_for_others() -> None:
    async def scene() -> None:
        one, two = LoopNode(1), LoopNode(2)
        async with running(one, two):
            strangers = [await asyncio.open_connection("127.0.0.1", one.port) for _ in range(200)]
            two.meet("127.0.0.1", one.port)
            await until(lambda: mesh(one, two))
            assert one.members.stats.links_refused >= 100
            assert len(one.logged("bus connection refused")) < 5, "a flood is not a flood of log lines"
            for _, writer in strangers:
                writer.close()

    play(scene)


async def member(node: LoopNode, number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A scripted node that is let in and may send records."""
    reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
    identity = Identity(b"%040x" % number, number, "127.0.0.1", 1, 1, 0, INTENT_MEET)
    handshake = Handshake(DIALLER, identity, b"secret", os.urandom(32))
    writer.write(handshake.start())
    while not handshake.done:
        length = int.from_bytes(await reader.readexactly(4), "big")
        writer.write(handshake.receive(await reader.readexactly(length)))
    return reader, writer


@pytest.mark.parametrize(
    "data",
    [b"\xff\xff\xff\xff", b"\0\0\0\x01\xc1", encode_frames([Pong(1 << 60, 0)])[0], random.Random(1).randbytes(3_000)],
    ids=["length", "content", "answer to nothing", "random"],
)
def test_a_member_that_breaks_the_protocol_loses_its_link_only(data: bytes) -> None:
    async def scene() -> None:
        one, two = LoopNode(1), LoopNode(2)
        async with running(one, two):
            one.meet("127.0.0.1", two.port)
            await until(lambda: mesh(one, two))
            reader, writer = await member(one, 77)
            assert len(one.members.peers) == 2
            writer.write(data)
            await closed(reader, writer)
            assert one.logged("incoming link lost")
            assert len(one.members.reachable) == 1

    play(scene)


def test_a_fault_inside_costs_the_link_only() -> None:
    async def scene() -> None:
        one, two = LoopNode(1), LoopNode(2)
        async with running(one, two):
            one.meet("127.0.0.1", two.port)
            await until(lambda: mesh(one, two))

            def broken(*_: object) -> None:
                raise KeyError("bug")

            one.bus.deliver, whole = broken, one.bus.deliver
            reader, writer = await member(one, 77)
            writer.write(encode_frames([Want(b"q", 1)])[0])
            await closed(reader, writer)
            one.bus.deliver = whole
            await until(lambda: mesh(one, two) or len(one.members.reachable) == 1)

    play(scene)


def test_a_handshake_that_hangs_is_given_up() -> None:
    async def scene() -> None:
        one = LoopNode(1, node_timeout_ms=100)  # half a second, the shortest
        async with running(one):
            reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
            writer.write(Handshake(ACCEPTOR, one.members.identity(), b"", bytes(32)).start()[:-1])
            assert await reader.read() == b""
            writer.close()
            assert "no handshake in time" in str(one.logged("bus connection refused")[0]["why"])

    play(scene)


def test_addresses_of_sockets() -> None:
    assert host_of(("10.0.0.1", 5)) == "10.0.0.1"
    assert host_of(("::ffff:10.0.0.1", 5, 0, 0)) == "10.0.0.1"
    assert host_of(("fe80::1%eth0", 5, 0, 2)) == "fe80::1%eth0"
    assert host_of(None) == ""
    assert [is_loopback(address) for address in ("127.8.0.1", "::1", "localhost", "10.0.0.1", "x.example")] == [True] * 3 + [
        False
    ] * 2
