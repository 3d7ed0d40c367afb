"""A scripted server in a thread: answers each request with what a function says."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from disqueue.cli.reply import Incomplete, ReplyReader

Answer = Callable[[list[bytes]], bytes | None]
"""From the words of a request to the bytes of its reply; None closes the connection."""


class FakeServer:
    """Listens on a free loopback port. `requests` holds all that was asked, `answered` counts the answers that were sent,
    `connections` how many came.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[list[bytes]] = []
        self.answered = 0
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        # shutdown() wakes the threads that wait in accept() and recv().
        for one in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for one in (self._listener, *self._open):
            one.close()

    def drop_connections(self) -> None:
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        reader = ReplyReader()  # a request has the form of an array reply
        with contextlib.suppress(OSError):
            while data := connection.recv(1 << 16):
                reader.feed(data)
                while not isinstance(request := reader.next_reply(), Incomplete):
                    words = [word for word in request if isinstance(word, bytes)] if isinstance(request, list) else []
                    self.requests.append(words)
                    answer = self.answer(words)
                    if answer is None:
                        connection.shutdown(socket.SHUT_RDWR)
                        return
                    connection.sendall(answer)
                    self.answered += 1


def answers(**replies: bytes) -> Answer:
    """Fixed replies by command name, `-ERR unknown` for all others; PING x gives x."""

    def answer(words: list[bytes]) -> bytes:
        if words[0].upper() == b"PING":
            return b"$%d\r\n%s\r\n" % (len(words[1]), words[1]) if len(words) > 1 else b"+PONG\r\n"
        return replies.get(words[0].decode().upper(), b"-ERR unknown command '%s'\r\n" % words[0])

    return answer
