"""Random commands with random arguments: one reply each, no exception, and figures that fit what is there."""

from __future__ import annotations

import random

import pytest

from disqueue.commands.catalogue import COMMANDS
from disqueue.core.client import NOT_BLOCKED

from .broker_session import BrokerSession

COMMANDS_A_RUN = 2000
NEVER = {b"shutdown", b"monitor", b"debug", b"quit"}
NAMES = [name for name in COMMANDS if name not in NEVER]
BUSY = (b"addjob", b"getjob", b"ackjob", b"nack", b"enqueue", b"dequeue", b"working", b"pause", b"deljob", b"fastack", b"jscan")
WORDS = (
    b"REPLICATE TTL RETRY DELAY MAXLEN ASYNC NOHANG TIMEOUT COUNT WITHCOUNTERS FROM BUSYLOOP QUEUE STATE REPLY all"
    b" id queued active delayed MINLEN IMPORTRATE in out none state bcast OFFSET GET SET LIST KILL ID TYPE normal"
    b" ADDR SKIPME yes no REPLY ON OFF SKIP RESETSTAT LEN RESET LATEST HISTORY DOCTOR GRAPH command INFO DOCS AUTH"
    b" default SETNAME MYID NODES LEAVING FORGET MEET 127.0.0.1 7711 HARD PAUSE maxmemory jobs q p"
).split()
NUMBERS = (
    b"0",
    b"1",
    b"2",
    b"-1",
    b"10",
    b"300",
    b"86400",
    b"4294967296",
    b"9223372036854775807",
    b"9223372036854775808",
    b"1.5",
    b"+1",
)
ODD = (b"", b"\x00", b"\xff\xfe", b"\r\n", b"%s%b{}", b"x" * 300, b"-", b"D-00000000-aaaaaaaaaaaaaaaaaaaaaaaa-05a1")


class Fuzzer:
    """Sends requests that are half right."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.session = BrokerSession()
        self.ids: list[bytes] = [b"D-00000000-aaaaaaaaaaaaaaaaaaaaaaaa-05a1"]

    def argument(self) -> bytes:
        kind = self.dice.random()
        if kind < 0.4:
            return self.dice.choice(WORDS)
        if kind < 0.6:
            return self.dice.choice(NUMBERS)
        return self.dice.choice(self.ids[-50:]) if kind < 0.9 else self.dice.choice(ODD)

    def request(self) -> list[bytes]:
        kind = self.dice.random()
        if kind < 0.25:
            options = self.dice.choices((b"RETRY", b"TTL", b"DELAY"), k=self.dice.randrange(3))
            return [
                b"ADDJOB",
                self.dice.choice((b"q", b"p")),
                b"body",
                b"0",
                *(w for o in options for w in (o, self.dice.choice(NUMBERS))),
            ]
        if kind < 0.4:
            return [b"GETJOB", b"NOHANG", b"COUNT", self.dice.choice((b"1", b"3")), b"FROM", b"q", b"p"]
        name = self.dice.choice(BUSY) if kind < 0.7 else self.dice.choice(NAMES)
        return [name, *(self.argument() for _ in range(self.dice.randrange(7)))]

    def step(self) -> None:
        """One request of one client, some time, and the check of what came back."""
        letter = self.dice.choice("ABC")
        client = self.session.client(letter)
        if client.core.blocked != NOT_BLOCKED or client.core.close_after_reply or client.core.reply_mode:
            self.session.disconnect(letter)
            return
        request = self.request()
        self.session.send(letter, request)
        client.decoder.feed(client.core.reply.take())
        reply = client.decoder.next()
        if client.core.blocked == NOT_BLOCKED and not client.core.reply_mode and request[0].lower() != b"client":
            assert reply is not None, f"no reply to {request}"
        assert not client.decoder.buffer, f"more than one reply to {request}"
        if reply is not None and reply.kind == "+" and reply.data.startswith(b"D-"):
            self.ids.append(reply.data)
        if self.dice.random() < 0.2:
            self.session.advance(self.dice.choice((1, 100, 1000, 20_000)))
            for other in self.session.clients.values():
                other.core.reply.take()

    def check_figures(self) -> None:
        """Counts of the node against what its tables hold."""
        node = self.session.node
        jobs = list(node.jobs)
        assert node.queued_jobs == sum(queue.jobs.count for queue in node.queues.values())
        assert node.visible_queues == sum(queue.visible for queue in node.queues.values())
        for queue in node.queues.values():
            assert queue.known_jobs == sum(job.queue is queue for job in jobs)


@pytest.mark.parametrize("seed", range(12))
def test_random_commands(seed: int) -> None:
    fuzzer = Fuzzer(seed)
    for _ in range(COMMANDS_A_RUN):
        fuzzer.step()
    fuzzer.check_figures()
    session = fuzzer.session
    for letter in list(session.clients):
        session.disconnect(letter)
    session.client("Z").core.authenticated = True
    session.send("Z", [b"DEBUG", b"FLUSHALL"])
    assert str(session.receive("Z")) == "+OK"
    assert (len(session.node.jobs), session.node.queues, session.node.used_bytes) == (0, {}, 0)
    session.advance(100_000_000)
    assert session.node.next_deadline_ms() == -1
