"""What the journal costs: encoding a job's life, and loading a million jobs. Prints CPU time, which a busy machine distorts
least.

Usage: python benchmarks/journal.py [jobs]
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from disqueue import build_info
from disqueue.core.client import Client
from disqueue.core.node import Node
from disqueue.core.settings import Settings
from disqueue.journal.disk import OsDisk
from disqueue.journal.runtime import JournalRuntime, JournalSettings
from disqueue.wire.resp import ReplyWriter

NODE_ID = b"0123456789abcdef0123456789abcdef01234567"
BODY = b"x" * 64
A_PASS = 200


class ThreadExecutor:
    """Runs background work in a thread and waits for it, so that it counts for the process but not for the loop's thread."""

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1)

    def submit(self, task: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self.thread.submit(task).result()
        done(None)

    def wait(self) -> None:
        """Nothing is ever left."""


class Bench:
    """A node with or without a journal, and how long its passes take."""

    def __init__(self, directory: str) -> None:
        self.node = Node(Settings(), os.urandom, NODE_ID)
        self.settings = JournalSettings()
        self.journal = JournalRuntime(self.settings, OsDisk(directory), ThreadExecutor(), self.node)
        self.client = Client(1, ReplyWriter())
        self.now_ms = 1000
        self.longest_ms = 0.0
        self.node.begin_pass(self.now_ms, self.wall_ms())

    def wall_ms(self) -> int:
        return 1_800_000_000_000 + self.now_ms

    def end_pass(self) -> None:
        node = self.node
        node.end_pass()
        self.journal.end_pass(self.now_ms, self.wall_ms())
        self.client.reply.take()
        self.now_ms += 1
        node.begin_pass(self.now_ms, self.wall_ms())
        node.advance()

    def add(self, count: int) -> None:
        for _ in range(count):
            self.node.add_job(self.client, b"queue", BODY, 0, 1, 86_400, 300, 0, 0, False)

    def get(self, count: int) -> list[bytes]:
        self.node.get_jobs(self.client, [b"queue"], count, 0, True, False)
        words = self.client.reply.take().split(b"\r\n")
        return [word for word in words if word.startswith(b"D-")]

    def ack(self, ids: list[bytes]) -> None:
        jobs = self.node.jobs
        for job_id in ids:
            self.node.ack(jobs.get(job_id))

    def cycles(self, count: int, apart: bool) -> float:
        """Return the CPU microseconds of adding, getting and acknowledging a job; `apart`: each in a pass of its own."""
        start = time.process_time()
        for _ in range(count // A_PASS):
            self.add(A_PASS)
            if apart:
                self.end_pass()
            ids = self.get(A_PASS)
            if apart:
                self.end_pass()
            self.ack(ids)
            self.end_pass()
        return (time.process_time() - start) * 1e6 / count


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{build_info().form} Python, {count} jobs of {len(BODY)} bytes")
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(directory)
        print(f"cycle without journal, three passes  {bench.cycles(200_000, True):8.2f} us")
        bench.journal.start()
        print(f"cycle with journal, three passes     {bench.cycles(200_000, True):8.2f} us")
        print(f"cycle with journal, one pass         {bench.cycles(200_000, False):8.2f} us")
        start = time.process_time()
        for _ in range(count // A_PASS):
            bench.add(A_PASS)
            bench.end_pass()
        print(f"add with journal                     {(time.process_time() - start) * 1e6 / count:8.2f} us")
        figures = bench.journal.figures()
        print(f"journal                              {int(str(figures['aof_current_size'])) / count:8.1f} bytes a job")
        bench.journal.stop()

        bench = Bench(directory)
        gc.disable()  # as the server does
        start = time.process_time()
        bench.journal.load()
        longest = 0.0
        done = False
        while not done:
            step = time.thread_time()
            done = bench.journal.load_step()
            longest = max(longest, time.thread_time() - step)
        bench.journal.start()
        elapsed = time.process_time() - start
        gc.freeze()
        gc.enable()
        print(f"loading                              {len(bench.node.jobs) / elapsed:8.0f} jobs a second of CPU")
        print(f"longest step of loading              {longest * 1000:8.1f} ms")
        bench.journal.compact()
        passes = []
        start = time.process_time()
        while bench.journal.compactor.rewriting():
            began = time.thread_time()
            bench.end_pass()
            passes.append(time.thread_time() - began)
        print(f"compacting all                       {(time.process_time() - start):8.2f} s of CPU")
        print(f"longest pass while compacting        {max(passes) * 1000:8.1f} ms")
        bench.journal.stop()


if __name__ == "__main__":
    main()
