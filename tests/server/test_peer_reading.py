"""A peer that sends much has its turn and then waits for the next pass."""

from __future__ import annotations

import asyncio
from typing import cast

from disqueue.core.links import Link
from disqueue.server.peers import READ_BYTES, PeerNetwork, PeerProtocol


class Transport:
    """Reads what `arrived` until it is told to pause, as an event loop does for a socket with much in it."""

    def __init__(self, protocol: PeerProtocol, arrived: bytes) -> None:
        self.protocol = protocol
        self.arrived = arrived
        self.reading = True
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        assert not self.closing
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.closing
        self.reading = True

    def read(self) -> None:
        while self.reading and self.arrived:
            view = self.protocol.get_buffer(-1)
            part = self.arrived[: len(view)]
            view[: len(part)] = part
            self.arrived = self.arrived[len(part) :]
            self.protocol.buffer_updated(len(part))


class OneLink:
    closed = False
    remote = "127.0.0.1"

    def __init__(self) -> None:
        self.received_bytes: list[bytes] = []

    def received(self, data: bytes) -> None:
        self.received_bytes.append(data)


def connect(arrived: bytes) -> tuple[Transport, OneLink]:
    link = OneLink()
    network = PeerNetwork(lambda: None, lambda address: "", [], None, None)
    protocol = PeerProtocol(network, cast("Link", link))
    transport = Transport(protocol, arrived)
    protocol._transport = cast("asyncio.Transport", transport)
    return transport, link


def test_what_fills_a_read_ends_the_turn_of_a_peer() -> None:
    async def run() -> None:
        arrived = bytes(range(256)) * (5 * READ_BYTES // 512)  # two reads and a half
        transport, link = connect(arrived)
        for turn in (1, 2):
            transport.read()
            assert len(link.received_bytes) == turn
            assert not transport.reading
            await asyncio.sleep(0)
        transport.read()
        assert transport.reading, "a read that is not full had nothing behind it"
        assert b"".join(link.received_bytes) == arrived

    asyncio.run(run())


def test_a_link_that_closes_in_its_turn_is_left_alone() -> None:
    async def run() -> None:
        transport, _ = connect(bytes(READ_BYTES))
        transport.read()
        transport.closing = True
        await asyncio.sleep(0)
        assert not transport.reading

    asyncio.run(run())
