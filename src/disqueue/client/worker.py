"""`disqueue worker`: run a Python function, or a command, for each job of some queues."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import inspect
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

from disqueue.client.aio import AsyncClient
from disqueue.client.consume import MAX_PREFETCH, STOP_SIGNALS, AsyncConsumer, Consumer
from disqueue.client.errors import DisqueueError
from disqueue.client.jobs import AsyncJob, Job, ReceivedJob
from disqueue.client.serializers import BY_NAME
from disqueue.client.sync import Client

logger = logging.getLogger("disqueue.worker")

MAX_CONCURRENCY = 1000

# A job that fails at once would otherwise go round as fast as the server can deliver it.
FIRST_PAUSE_S = 0.1
MAX_PAUSE_S = 10.0

USAGE_STATUS = 2
FAILURE_STATUS = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """What a worker is to do."""

    handler: Callable[[Any], Any]
    queues: tuple[str, ...]
    concurrency: int = 1
    prefetch: int = 1
    idle_timeout: float | None = None


class CommandFailedError(Exception):
    """The command of a job ended with a status other than 0."""


class CommandHandler:
    """Runs a command for a job: the body on its input, what is known of the job in its environment.

    Raises ValueError when there is no such program.
    """

    def __init__(self, command: Sequence[str]) -> None:
        if shutil.which(command[0]) is None:
            raise ValueError(f"there is no program {command[0]!r} that can be run")
        self.command = list(command)

    def __call__(self, job: ReceivedJob) -> None:
        environment = os.environ | {
            "DISQUEUE_JOB_ID": job.id,
            "DISQUEUE_QUEUE": job.queue,
            "DISQUEUE_NACKS": str(job.nacks),
            "DISQUEUE_ADDITIONAL_DELIVERIES": str(job.additional_deliveries),
        }
        # In a session of its own, so that Ctrl-C at a terminal stops the worker and lets the command finish.
        try:
            done = subprocess.run(self.command, input=job.body, env=environment, start_new_session=True, check=False)
        except OSError as error:
            raise CommandFailedError(f"{self.command[0]} could not be started: {error.strerror}") from error
        if done.returncode:
            end = f"ended with status {done.returncode}" if done.returncode > 0 else f"was ended by signal {-done.returncode}"
            raise CommandFailedError(f"{self.command[0]} {end}")


def load_handler(target: str) -> Callable[[Any], Any]:
    """The function that `module:function` names. Raises ValueError that says what is wrong."""
    module_name, colon, path = target.partition(":")
    if not colon or not module_name or not path:
        raise ValueError(f"{target!r} is no handler: use module:function")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module_name)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{target!r} can't be loaded: {error}") from error
    if not callable(found):
        raise ValueError(f"{target!r} is no function but {type(found).__name__}")
    handler: Callable[[Any], Any] = found
    return handler


def report_failure(job: ReceivedJob, error: Exception) -> None:
    """Log what a handler raised: one line for a command, which has its own output, a traceback for a function."""
    cause, traceback = (f": {error}", None) if isinstance(error, CommandFailedError) else ("", error)
    logger.error("job %s of %s failed, nacks so far: %d%s", job.id, job.queue, job.nacks, cause, exc_info=traceback)


def pause_after_failure(job: ReceivedJob) -> float:
    """Seconds for which a failed job is held back; they grow with the times it failed."""
    return min(MAX_PAUSE_S, FIRST_PAUSE_S * float(2 ** min(job.nacks, 20)))


class Stoppable(Protocol):
    """A worker as the signal handler sees it."""

    def stop(self) -> None:
        """Finish what is at hand, then end."""


class Worker:
    """Threads that each take one job at a time."""

    def __init__(self, client: Client, plan: Plan) -> None:
        self._client = client
        self._plan = plan
        self._stopping = threading.Event()
        self._consumers: list[Consumer] = [
            client.consume(*plan.queues, prefetch=plan.prefetch, timeout=plan.idle_timeout) for _ in range(plan.concurrency)
        ]
        self._errors: list[BaseException] = []

    def stop(self) -> None:
        """Finish what is at hand, then end."""
        self._stopping.set()
        for consumer in self._consumers:
            consumer.stop()

    def run(self) -> None:
        """Work until `stop`, or until there was nothing to do for the plan's time. Raises what ended a thread."""
        threads = [threading.Thread(target=self._work, args=(consumer,), name="disqueue-worker") for consumer in self._consumers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _work(self, consumer: Consumer) -> None:
        try:
            with consumer:
                for job in consumer:
                    self._handle(job)
        except Exception as error:
            self._errors.append(error)
            self.stop()

    def _handle(self, job: Job) -> None:
        try:
            with job:
                try:
                    self._plan.handler(job)
                except Exception as error:
                    report_failure(job, error)
                    self._stopping.wait(pause_after_failure(job))
                    raise
        except DisqueueError as error:
            logger.error("job %s: %s", job.id, error)
        except Exception:
            return  # reported above, and given back


class AsyncWorker:
    """Tasks that each take one job at a time."""

    def __init__(self, client: AsyncClient, plan: Plan) -> None:
        self._client = client
        self._plan = plan
        self._stopping = asyncio.Event()
        self._consumers: list[AsyncConsumer] = [
            client.consume(*plan.queues, prefetch=plan.prefetch, timeout=plan.idle_timeout) for _ in range(plan.concurrency)
        ]

    def stop(self) -> None:
        """Finish what is at hand, then end."""
        self._stopping.set()
        for consumer in self._consumers:
            consumer.stop()

    async def run(self) -> None:
        """Work until `stop`, or until there was nothing to do for the plan's time. Raises what ended a task."""
        try:
            async with asyncio.TaskGroup() as group:
                for consumer in self._consumers:
                    group.create_task(self._work(consumer))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _work(self, consumer: AsyncConsumer) -> None:
        async with consumer:
            async for job in consumer:
                await self._handle(job)

    async def _handle(self, job: AsyncJob) -> None:
        try:
            async with job:
                try:
                    await self._plan.handler(job)
                except Exception as error:
                    report_failure(job, error)
                    await self._pause(pause_after_failure(job))
                    raise
        except DisqueueError as error:
            logger.error("job %s: %s", job.id, error)
        except Exception:
            return  # reported above, and given back

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return


def stop_on_signals(worker: Stoppable) -> None:
    """The first signal stops the worker in order; the next one ends the process as it always would."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        logger.info("%s: finishing what is at hand (once more to end at once)", signal.Signals(number).name)
        for known in STOP_SIGNALS:
            signal.signal(known, signal.SIG_DFL)
        worker.stop()

    for known in STOP_SIGNALS:
        signal.signal(known, on_signal)


def _settings(plan: Plan, serializer: str) -> dict[str, Any]:
    """How the client is made; a password in a URL comes before the one in the environment."""
    password = os.environ.get("DISQUEUE_AUTH") or None
    return {"serializer": serializer, "max_connections": plan.concurrency + 8, "password": password}


def run(plan: Plan, nodes: list[str] | None, serializer: str) -> None:
    """Run the plan until it ends. Raises DisqueueError when no node is there at the start."""
    if inspect.iscoroutinefunction(plan.handler):
        asyncio.run(_run_async(plan, nodes, serializer))
        return
    with Client(nodes, **_settings(plan, serializer)) as client:
        client.ping()
        worker = Worker(client, plan)
        stop_on_signals(worker)
        logger.info("threads at work: %d, on %s, node %s", plan.concurrency, ", ".join(plan.queues), client.node)
        worker.run()


async def _run_async(plan: Plan, nodes: list[str] | None, serializer: str) -> None:
    async with AsyncClient(nodes, **_settings(plan, serializer)) as client:
        await client.ping()
        worker = AsyncWorker(client, plan)
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, _stop_once, loop, worker)
        logger.info("tasks at work: %d, on %s, node %s", plan.concurrency, ", ".join(plan.queues), client.node)
        await worker.run()


def _stop_once(loop: asyncio.AbstractEventLoop, worker: AsyncWorker) -> None:
    logger.info("finishing what is at hand (once more to end at once)")
    for number in STOP_SIGNALS:
        loop.remove_signal_handler(number)
    worker.stop()


def parser() -> argparse.ArgumentParser:
    """The arguments of `disqueue worker`."""
    parser = argparse.ArgumentParser(
        prog="disqueue worker",
        description="Run a Python function, or a command, for each job of some queues.",
        epilog="The job is acknowledged when the function returns (the command ends with status 0), and given back as failed "
        "when it raises (any other status). A coroutine function runs in one event loop, others in threads. A command gets the "
        "body on its input, and DISQUEUE_JOB_ID, DISQUEUE_QUEUE, DISQUEUE_NACKS and DISQUEUE_ADDITIONAL_DELIVERIES in its "
        "environment. DISQUEUE_AUTH has the servers' password, unless the URL does.",
    )
    parser.add_argument("handler", nargs="?", metavar="module:function", help="called with each job")
    parser.add_argument("--queue", "-q", action="append", required=True, help="a queue to take jobs from; may be repeated")
    parser.add_argument("--concurrency", "-c", type=_between(1, MAX_CONCURRENCY), default=1, metavar="N", help="jobs at a time")
    parser.add_argument(
        "--prefetch", type=_between(1, MAX_PREFETCH), default=1, metavar="N", help="jobs that are fetched at once (default 1)"
    )
    parser.add_argument("--nodes", action="append", metavar="URL", help="disque://host:port,… (default: DISQUEUE_URL, or local)")
    parser.add_argument("--serializer", choices=sorted(BY_NAME), default="bytes", help="how job.data is decoded (default bytes)")
    parser.add_argument("--idle-timeout", type=float, metavar="SECONDS", help="end when no job came for this long")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error", "critical"), default="info")
    parser.add_argument("--exec", nargs=argparse.REMAINDER, metavar="COMMAND", help="run this command; takes all that follows")
    return parser


def _between(low: int, high: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is no number between {low} and {high}")
        return int(text)

    return integer


def main(argv: Sequence[str] | None = None) -> int:
    """Run `disqueue worker` with these arguments. Returns the exit status."""
    arguments = parser()
    options = arguments.parse_args(argv)
    if (options.handler is None) == (options.exec is None) or options.exec == []:
        arguments.error("give either module:function or --exec COMMAND")
    try:
        handler = CommandHandler(options.exec) if options.exec else load_handler(options.handler)
    except ValueError as error:
        arguments.error(str(error))
    logging.basicConfig(level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    plan = Plan(handler, tuple(options.queue), options.concurrency, options.prefetch, options.idle_timeout)
    try:
        run(plan, options.nodes, options.serializer)
    except (DisqueueError, ValueError) as error:
        logger.error("%s", error)
        return FAILURE_STATUS
    return 0
