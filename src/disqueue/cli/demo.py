"""`disqueue demo`: real servers, a day of jobs, and the proof that nothing was lost."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from disqueue.cli.cluster_status import console
from disqueue.cli.connection import ConnectionFailed
from disqueue.cli.demo_actors import ANSWER_TIMEOUT_S, Crew, Worker, connected, produce
from disqueue.cli.demo_ledger import Kind, Ledger
from disqueue.cli.demo_show import Show
from disqueue.cli.membership import ask_all, counted, disagreements, wait_for
from disqueue.cli.nodes import SERVER_COMMAND, LocalNode, NodeFailed, free_ports, stopped_at_end, termination_as_interrupt
from disqueue.cli.reply import ErrorReply
from disqueue.cli.watch import info_fields

DEFAULT_NODES = 3
MAX_NODES = 9
DAY_S = 8.0
DRAIN_S = 20.0  # after the last job was sent; a lease of a second and the collection of acks need about three
JOIN_S = 20.0
KILL_AT, RESTART_AT = 0.45, 0.75  # of the day
KILLABLE_NODES = 3
_REFRESH_S = 0.1

KINDS = (
    Kind("mail", "plain jobs", 400, ("RETRY", "30"), workers=2),
    Kind("invoice", "delayed 2 s, never early", 40, ("DELAY", "2", "RETRY", "30"), delay_ms=2000),
    Kind("payment", "at most once", 50, ("RETRY", "0", "REPLICATE", "1")),
    Kind("thumbnail", "worker dies: they return", 60, ("RETRY", "1"), workers=2, abandon=2),
    Kind("parcel", "refused: delivered again", 60, ("RETRY", "30"), refuse=3),
)


def run(argv: Sequence[str]) -> int:
    """Run `disqueue demo`; 0 when every promise was kept."""
    parser = argparse.ArgumentParser(
        prog="disqueue demo", description="Start a server and watch a day of jobs.", allow_abbrev=False
    )
    parser.add_argument("--nodes", type=int, default=DEFAULT_NODES, metavar="N", help=f"how many servers ({DEFAULT_NODES})")
    given = parser.parse_args(argv)
    if not 1 <= given.nodes <= MAX_NODES:
        parser.error(f"--nodes {given.nodes}: 1 to {MAX_NODES} servers")
    return run_demo(given.nodes)


def run_demo(count: int, command: Sequence[str] = SERVER_COMMAND, kinds: Sequence[Kind] = KINDS, day_s: float = DAY_S) -> int:
    """Start `count` servers, run the day, judge, stop the servers; returns the exit status."""
    try:
        with tempfile.TemporaryDirectory(prefix="disqueue-demo-") as directory, termination_as_interrupt():
            nodes = [LocalNode(port, Path(directory) / f"node-{port}", (), command) for port in free_ports(count)]
            with stopped_at_end(nodes):
                return _Day(nodes, kinds, day_s).run()
    except NodeFailed as error:
        print(f"the demo can't run: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the demo's servers are gone", file=sys.stderr)
        return 130


class _Day:
    """One run of the demo on nodes that are not started yet."""

    def __init__(self, nodes: Sequence[LocalNode], kinds: Sequence[Kind], day_s: float) -> None:
        self._nodes = nodes
        self._kinds = kinds
        self._day_s = day_s
        self._ledger = Ledger(kinds)
        self._crew = Crew(self._ledger)
        self._console = console()
        self._show = Show(self._ledger, self._console)
        self._victim = nodes[2] if len(nodes) >= KILLABLE_NODES else None

    def run(self) -> int:
        self._start_nodes()
        with self._show.running():
            self._work()
            leftovers = self._leftovers()
        return self._judge(leftovers)

    def _start_nodes(self) -> None:
        for node in self._nodes:
            node.start()
        for node in self._nodes:
            node.wait_ready()
        ports = ", ".join(str(node.port) for node in self._nodes)
        self._ledger.tell(f"{counted(len(self._nodes), 'server')} started on this machine, port {ports}")
        if len(self._nodes) > 1:
            self._join_nodes()

    def _join_nodes(self) -> None:
        with connected(self._nodes[0].target) as connection:
            for node in self._nodes[1:]:
                connection.call("CLUSTER", "MEET", node.target.host, node.port, timeout_s=ANSWER_TIMEOUT_S)
        if not wait_for(self._all_agree, JOIN_S):
            problems = "\n".join(disagreements(ask_all(node.target for node in self._nodes)))
            raise NodeFailed(f"the servers did not join within {JOIN_S:g} seconds:\n{problems}")
        self._ledger.tell("they are joined; jobs are produced on the first and consumed on the second")

    def _all_agree(self) -> bool:
        views = ask_all(node.target for node in self._nodes)
        return not disagreements(views) and all(len(view.members) == len(self._nodes) for view in views)

    def _work(self) -> None:
        first, second = self._nodes[0], self._nodes[min(1, len(self._nodes) - 1)]
        try:
            for kind in self._kinds:
                for number in range(kind.workers):
                    worker = Worker(self._crew, second.target, kind, clumsy=number == 0)
                    self._crew.start(f"{kind.queue} worker {number + 1}", worker.run)
            self._crew.start("producer", lambda: produce(self._crew, first.target, self._kinds, self._day_s))
            self._watch_day()
        finally:
            self._crew.join()
            self._show.update()

    def _watch_day(self) -> None:
        """Keep the display up to date, kill and restart the victim, until all is done or the time is over."""
        began_s = self._ledger.elapsed_s()
        acts = [(KILL_AT, self._kill), (RESTART_AT, self._restart)] if self._victim else []
        while not self._crew.failure:
            day_gone = (self._ledger.elapsed_s() - began_s) / self._day_s
            while acts and day_gone >= acts[0][0]:
                acts.pop(0)[1]()
            if not acts and self._ledger.all_acked():
                return
            if day_gone * self._day_s > self._day_s + DRAIN_S:
                return
            self._show.update()
            self._crew.stop.wait(_REFRESH_S)

    def _kill(self) -> None:
        if self._victim is not None:
            self._victim.kill()
            self._ledger.tell(f"the server on port {self._victim.port} is killed (kill -9), in the middle of all")

    def _restart(self) -> None:
        if self._victim is not None:
            self._victim.start()
            self._victim.wait_ready()
            self._ledger.tell(f"the server on port {self._victim.port} is started again, with an empty memory")

    def _leftovers(self) -> list[str]:
        """Servers that still hold jobs although all are acknowledged; the last acks need a moment to be collected."""
        if self._crew.failure:
            return []
        holders: list[str] = []

        def empty() -> bool:
            holders[:] = [
                f"the server on port {node.port} still holds {jobs} jobs"
                for node in self._nodes
                if (jobs := _registered_jobs(node))
            ]
            self._show.update()
            return not holders

        wait_for(empty, DRAIN_S)
        if not holders:
            self._ledger.tell("every job is acknowledged, and no server holds one any more")
        return holders

    def _judge(self, leftovers: list[str]) -> int:
        self._show.update()
        verdicts = self._ledger.verdicts(exact=self._victim is None)
        self._show.summary(verdicts)
        wrong = [f"{queue}: {text}" for queue, texts in verdicts.items() for text in texts]
        problems = [text for text in (self._crew.failure, *wrong, *leftovers) if text]
        for problem in problems:
            print(f"! {problem}", file=sys.stderr)
        if problems:
            return 1
        total = sum(self._ledger.line(kind).acked for kind in self._kinds)
        self._console.print(
            f"Nothing was lost: {total} jobs sent, delivered and acknowledged in {self._ledger.elapsed_s():.0f} seconds."
        )
        return 0


def _registered_jobs(node: LocalNode) -> int:
    try:
        with connected(node.target) as connection:
            return int(info_fields(connection.call("INFO", timeout_s=ANSWER_TIMEOUT_S)).get("registered_jobs", "0"))
    except (ConnectionFailed, ErrorReply, ValueError):
        return -1
