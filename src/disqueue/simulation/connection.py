"""The server's end of a simulated client connection: what `disqueue.server.connection` is for real sockets."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from disqueue.core.client import BLOCKED_ADDJOB, NOT_BLOCKED, Client
from disqueue.simulation.replies import Reply, ReplyReader
from disqueue.wire.resp import ProtocolError, ReplyWriter, RequestParser

if TYPE_CHECKING:
    from disqueue.simulation.network import Endpoint
    from disqueue.simulation.process import Process

REQUESTS_A_TURN = 1000


class Request:
    """A request that a node has executed, until its reply leaves."""

    __slots__ = ("args", "order", "queues", "started_ms", "waited")

    def __init__(self, args: list[bytes], started_ms: int) -> None:
        self.args = args
        self.started_ms = started_ms
        self.waited = False
        """It blocked its client."""
        self.order = 0
        """Its number among the requests of the process that blocked their clients."""
        self.queues: frozenset[bytes] = frozenset()
        """What a GETJOB waits at."""

    @property
    def name(self) -> bytes:
        return self.args[0].upper()


class ClientConnection:
    """A client of a process. Pairs the replies that leave with their requests, for the checkers."""

    def __init__(self, process: Process, endpoint: Endpoint, number: int) -> None:
        self.process = process
        self.endpoint = endpoint
        self.parser = RequestParser()
        self.client = Client(number, ReplyWriter(), f"{endpoint.far.address}:{number}")
        self.client.connection = self
        self.pending: deque[Request] = deque()
        self.reader = ReplyReader()
        self._held: list[bytes] | None = None
        """A request that waits for the end of the one before it."""
        self.dirty = False
        self.closed = False
        process.broker.connect(self.client)

    # -- the network

    def received(self, data: bytes) -> None:
        """Bytes of the client."""
        try:
            self.parser.feed(data)
        except ProtocolError as error:
            self._refuse(error)
            return
        self.take_turn()

    def lost(self, _reason: str) -> None:
        """The client is gone, and what it would have been told in this pass goes with it."""
        self.closed = True
        self._drop_replies()
        self.process.forget_connection(self)

    # -- execution

    def take_turn(self) -> None:
        """Execute requests until none is complete or the client blocks."""
        client = self.client
        dispatcher = self.process.broker.dispatcher
        dispatcher.mark()
        for _ in range(REQUESTS_A_TURN):
            if self.closed or client.close_asap or client.close_after_reply:
                break
            try:
                args = self._held or self.parser.next_request()
            except ProtocolError as error:
                self._refuse(error)
                return
            if args is None:
                break
            behind = client.blocked != NOT_BLOCKED
            if behind and not (client.blocked == BLOCKED_ADDJOB and dispatcher.may_go_behind(client, args)):
                self._held = args
                break
            self._held = None
            self._execute(args, behind)
        else:
            self.process.give_turn(self)
        self.process.mark_dirty(self)

    def _execute(self, args: list[bytes], behind: bool) -> None:
        client, dispatcher = self.client, self.process.broker.dispatcher
        request = Request(args, self.process.cluster.world.now_ms)
        self.pending.append(request)
        self.process.observer.request_started(self, request)
        if behind:
            dispatcher.execute_behind(client, args)
        else:
            dispatcher.execute(client, args)
        if client.blocked != NOT_BLOCKED:
            self._note_wait(request)

    def flush(self) -> None:
        """Send what was written in this pass."""
        self.dirty = False
        client = self.client
        if self.closed:
            return
        if client.reply.size:
            data = client.reply.take()
            for reply in self.reader.feed(data):
                self._reply_leaves(reply)
            self.endpoint.write(data)
        if client.close_asap:
            self.endpoint.abort()
        elif client.close_after_reply:
            self.endpoint.close()
        else:
            return
        self.closed = True
        self.process.forget_connection(self)

    def withhold(self) -> None:
        """Throw away what was written in this pass, and end the connection if there was something."""
        client = self.client
        if client.reply.size or client.pending_adds:
            client.close_asap = True
            self._drop_replies()

    def _drop_replies(self) -> None:
        for reply in self.reader.feed(self.client.reply.take()):
            self.process.observer.reply_withheld(self, self.pending.popleft() if self.pending else None, reply)

    def _note_wait(self, request: Request) -> None:
        process = self.process
        process.waits += 1
        request.waited = True
        request.order = process.waits
        if request.name == b"GETJOB":
            words = [word.upper() for word in request.args]
            request.queues = frozenset(request.args[words.index(b"FROM") + 1 :])

    def _reply_leaves(self, reply: Reply) -> None:
        request = self.pending.popleft() if self.pending else None
        self.process.observer.reply_left(self, request, reply)

    def _refuse(self, error: ProtocolError) -> None:
        self.pending.append(Request([b"?"], self.process.cluster.world.now_ms))
        self.client.reply.error(error.reply)
        self.client.close_after_reply = True
        self.process.mark_dirty(self)
