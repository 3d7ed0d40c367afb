"""What clients do in a run: producers, workers of all habits, operators who try every command."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from disqueue.simulation.client import Call, Connect, Script, SimulatedClient, Sleep
from disqueue.simulation.ledger import Entry, Ledger

if TYPE_CHECKING:
    from disqueue.simulation.cluster import Cluster, Machine
    from disqueue.simulation.options import Options

MARGIN_MS = 3000
"""A client waits this much longer for a reply than the command says."""
RECONNECT_MS = 300
LONGEST_SLEEP_MS = 5000
"""What chance draws is cut to this: at the end of a run all clients must be ready in time."""
WORKING_SHARE = 0.15
UNKNOWN_ID = b"D-%08x-%b-%04x"


class Workload:
    """The clients of a run. `stop` lets each finish what it does."""

    def __init__(self, cluster: Cluster, options: Options, ledger: Ledger) -> None:
        self.cluster = cluster
        self.options = options
        self.ledger = ledger
        self.stopping = False
        self.queues = [b"q%d" % number for number in range(options.queues)]
        self.clients: list[SimulatedClient] = []

    def start(self) -> None:
        """Let the clients begin."""
        dice = self.cluster.world.random("habits")
        for number in range(self.options.clients):
            draw = dice.random()
            if number == 0 or draw < 0.4:
                habit = self.produce
            elif number == 1 or draw >= 0.4 + self.options.operator_share:
                habit = self.consume
            else:
                habit = self.operate
            client = self.add_client(f"c{number}")
            client.run(habit(client, self.cluster.world.random(f"client {number}")))

    def add_client(self, name: str) -> SimulatedClient:
        """Return a new client on a host of its own."""
        client = SimulatedClient(self.cluster, name, f"10.1.0.{len(self.clients) + 1}")
        self.clients.append(client)
        return client

    @property
    def finished(self) -> bool:
        return all(client.finished for client in self.clients)

    def is_stopping(self) -> bool:
        return self.stopping

    # -- producers

    def produce(self, client: SimulatedClient, dice: random.Random) -> Script:
        """Add jobs with all kinds of options, one by one or in pipelines."""
        while not self.stopping and len(self.ledger.by_mark) < self.options.max_jobs:
            if not client.connected and not (yield Connect(dice.choice(self.cluster.machines))):
                yield Sleep(RECONNECT_MS)
                continue
            requests = [self.add_request(dice) for _ in range(dice.choice((1, 1, 1, 2, 5)))]
            yield Call(requests, max(int(args[3]) or 2000 for args in requests) + MARGIN_MS)
            yield Sleep(self._pause(dice))

    def add_request(self, dice: random.Random) -> list[bytes]:
        """Draw an ADDJOB and enter its job into the ledger."""
        options = self.options
        queue = dice.choice(self.queues)
        once = dice.random() < options.at_most_once_share
        retry_s = 0 if once else dice.choice(options.retries_s)
        copies = 1 if once and dice.random() < 0.5 else 0 if once else dice.choice(options.copies)
        ttl_s = dice.choice(options.ttls_s)
        delay_s = dice.choice(options.delays_s)
        if delay_s >= ttl_s:
            delay_s = 0
        mark = b"j%d" % len(self.ledger.by_mark)
        body = mark + b" " + dice.randbytes(dice.randrange(options.body_bytes))
        entry = Entry(mark, queue, body, ttl_s, retry_s, delay_s, copies)
        entry.asynchronous = dice.random() < options.async_share
        self.ledger.add(entry)
        args = [b"ADDJOB", queue, body, dice.choice((b"0", b"200", b"1000", b"3000"))]
        args += [b"RETRY", b"%d" % retry_s, b"TTL", b"%d" % ttl_s]
        if copies:
            args += [b"REPLICATE", b"%d" % copies]
        if delay_s:
            args += [b"delay", b"%d" % delay_s]
        if dice.random() < 0.1:
            args += [b"MAXLEN", b"%d" % dice.choice((1, 20, 1000))]
        if entry.asynchronous:
            args.append(b"ASYNC")
        return args

    def _pause(self, dice: random.Random) -> int:
        return min(int(dice.expovariate(1 / self.options.pause_ms)), LONGEST_SLEEP_MS)

    def _work(self, dice: random.Random) -> int:
        return min(int(dice.expovariate(1 / (self.options.work_ms + 1))), LONGEST_SLEEP_MS)

    # -- workers

    def consume(self, client: SimulatedClient, dice: random.Random) -> Script:
        """Get jobs and do with them what workers do."""
        reliability = dice.choice((self.options.ack_share, self.options.ack_share, 1.0))
        while not self.stopping:
            if not client.connected and not (yield Connect(dice.choice(self.cluster.machines))):
                yield Sleep(RECONNECT_MS)
                continue
            timeout_ms = dice.choice((100, 1000, 3000))
            if dice.random() < 0.05:  # a worker that dies while it waits, or just when it is handed a job
                client.cluster.world.after(dice.randrange(1, 500), client.drop)
            replies = yield Call([self.get_request(dice, timeout_ms)], timeout_ms + MARGIN_MS)
            assert isinstance(replies, list)
            jobs = replies[0] if replies and isinstance(replies[0], list) else []
            for job in jobs:
                assert isinstance(job, list)
                assert isinstance(job[1], bytes)
                yield Sleep(self._work(dice))
                if self.is_stopping():
                    break
                if not client.connected and not (yield Connect(dice.choice(self.cluster.machines))):
                    break
                yield from self._handle(dice, job[1], reliability)
            if not jobs:
                yield Sleep(self._pause(dice))

    def get_request(self, dice: random.Random, timeout_ms: int) -> list[bytes]:
        """Draw a GETJOB."""
        args = [b"GETJOB"]
        if dice.random() < 0.3:
            args.append(b"NOHANG")
        else:
            args += [b"TIMEOUT", b"%d" % timeout_ms]
        if dice.random() < 0.4:
            args += [b"COUNT", b"%d" % dice.choice((1, 2, 5, 20))]
        if dice.random() < 0.5:
            args.append(b"WITHCOUNTERS")
        names = dice.sample(self.queues, dice.randint(1, len(self.queues)))
        return [*args, b"FROM", *names]

    def _handle(self, dice: random.Random, job_id: bytes, reliability: float) -> Script:
        if dice.random() < WORKING_SHARE:
            yield Call([[b"WORKING", job_id]], MARGIN_MS)
            yield Sleep(self._work(dice))
        if dice.random() < reliability:
            verb = dice.choice((b"ACKJOB", b"ACKJOB", b"ACKJOB", b"FASTACK", b"DELJOB"))
        else:
            verb = dice.choice((b"NACK", b"NACK", b"", b"ENQUEUE"))
        if verb:
            yield Call([[verb, job_id]], MARGIN_MS)

    # -- operators

    def operate(self, client: SimulatedClient, dice: random.Random) -> Script:
        """Send all other commands, also about jobs of others and about jobs that do not exist."""
        while not self.stopping:
            if not client.connected and not (yield Connect(dice.choice(self.cluster.machines))):
                yield Sleep(RECONNECT_MS)
                continue
            yield Call([self.operator_request(dice) for _ in range(dice.choice((1, 1, 4)))], MARGIN_MS)
            yield Sleep(self._pause(dice))

    def operator_request(self, dice: random.Random) -> list[bytes]:
        """Draw a command."""
        queue = dice.choice(self.queues)
        job_id = self._some_id(dice)
        requests: tuple[list[bytes], ...] = (
            [b"QLEN", queue],
            [b"QSTAT", queue],
            [b"QPEEK", queue, dice.choice((b"1", b"-3", b"10"))],
            [b"QSCAN"],
            [b"JSCAN", b"COUNT", b"10", b"REPLY", b"all"],
            [b"SHOW", job_id],
            [b"SHOW", job_id],
            [b"INFO"],
            [b"CLUSTER", b"NODES"],
            [b"CLUSTER", b"INFO"],
            [b"HELLO"],
            [b"PING"],
            [b"WORKING", job_id],
            [b"ENQUEUE", job_id],
            [b"ENQUEUE", job_id, self._some_id(dice)],
            [b"DEQUEUE", job_id],
            [b"NACK", job_id],
            [b"ACKJOB", job_id],
            [b"ACKJOB", job_id, self._some_id(dice), self._some_id(dice)],
            [b"FASTACK", job_id],
            [b"DELJOB", job_id, self._some_id(dice)],
            [b"GETJOB", b"NOHANG", b"FROM", b"empty%d" % dice.randrange(50)],
        )
        return dice.choice(requests)

    def _some_id(self, dice: random.Random) -> bytes:
        ids = self.ledger.ids
        if not ids or dice.random() < 0.2:
            text = bytes(dice.choices(b"abcdefghijklmnopqrstuvwxyz0123456789", k=24))
            return UNKNOWN_ID % (dice.randrange(1 << 32), text, dice.choice((0, 1, 60, 61)))
        return dice.choice(ids[-40:])

    # -- the end

    def drain(self, client: SimulatedClient, index: int) -> Script:
        """Get and acknowledge all jobs at one node, until told to stop."""
        names = self.queues
        while not self.stopping:
            if not client.connected and not (yield Connect(self.cluster.machines[index])):
                yield Sleep(RECONNECT_MS)
                continue
            replies = yield Call([[b"GETJOB", b"TIMEOUT", b"1000", b"COUNT", b"20", b"FROM", *names]], 1000 + MARGIN_MS)
            assert isinstance(replies, list)
            jobs = replies[0] if replies and isinstance(replies[0], list) else []
            ids = [job[1] for job in jobs if isinstance(job, list) and isinstance(job[1], bytes)]
            if ids:
                yield Call([[b"ACKJOB", *ids]], MARGIN_MS)

    def say(self, machine: Machine, request: list[bytes]) -> Script:
        """Send one request to one node."""
        if (yield Connect(machine)):
            yield Call([request], MARGIN_MS)
