"""Protected mode: without a password and an address only clients of the same machine are served, others are told why."""

from __future__ import annotations

import asyncio
import socket

import pytest

from disqueue.config.configuration import Configuration
from disqueue.core.node import Node
from disqueue.core.settings import Settings
from disqueue.server.shell import Shell

HERE = ("127.0.0.1", 4711)
ELSEWHERE = ("192.0.2.7", 4711)


class Transport(asyncio.Transport):
    """The server's end of a connection from some address."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.socket()
        super().__init__({"socket": self.socket, "peername": address})
        self.written = b""

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is kept back."""

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self.socket.close()

    abort = close


async def first_words(options: dict[str, object], address: tuple[str, int]) -> bytes:
    """What a client from `address` is sent before it has sent anything."""
    configuration = Configuration()
    for name, value in options.items():
        configuration.change(name, value)  # type: ignore[arg-type]
    shell = Shell(Node(Settings(), bytes, b"0" * 40), configuration)
    shell.loop = asyncio.get_running_loop()
    transport = Transport(address)
    shell.new_connection().connection_made(transport)
    while shell.in_pass:
        await asyncio.sleep(0)
    transport.close()
    return transport.written


@pytest.mark.differs("protected-mode")
@pytest.mark.parametrize(
    ("options", "address", "refused"),
    [
        ({}, ELSEWHERE, True),
        ({}, HERE, False),
        ({"requirepass": "secret"}, ELSEWHERE, False),
        ({"bind": ("192.0.2.1",)}, ELSEWHERE, False),
        ({"protected-mode": False}, ELSEWHERE, False),
    ],
)
def test_protected_mode(options: dict[str, object], address: tuple[str, int], refused: bool) -> None:
    words = asyncio.run(first_words(options, address))
    assert words.startswith(b"-DENIED ") == refused
    assert (b"requirepass" in words and b"protected-mode no" in words) == refused
