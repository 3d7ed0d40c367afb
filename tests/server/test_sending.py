"""Replies that go straight to the socket: in order, whole, and never to somebody else."""

from __future__ import annotations

import socket

from disqueue.server.sending import send_now
from disqueue.wire.resp import ReplyWriter


def test_what_fits_is_sent_and_the_rest_waits_in_order() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        writer = ReplyWriter()
        body = bytes(range(256)) * 8192
        writer.bulk(body)
        expected = b"$%d\r\n%b\r\n" % (len(body), body)
        received = bytearray()
        sent = send_now(writer, ours.fileno())
        assert 0 < sent < len(expected)
        assert writer.size == len(expected) - sent
        assert send_now(writer, ours.fileno()) == 0
        while len(received) < len(expected):
            received += theirs.recv(1 << 20)
            sent += send_now(writer, ours.fileno())
        assert bytes(received) == expected
        assert sent == len(expected)
        assert writer.size == 0


def test_a_socket_that_is_gone_takes_nothing() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        theirs.close()
        writer = ReplyWriter()
        writer.status(b"OK")
        assert send_now(writer, ours.fileno()) == 0
        assert writer.take() == b"+OK\r\n"
        assert send_now(writer, ours.fileno()) == 0
