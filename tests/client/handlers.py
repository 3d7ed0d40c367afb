"""Handlers for the tests of the worker."""

from __future__ import annotations

import asyncio
from typing import Any

from disqueue.client import AsyncJob, Client, Job


def echo(job: Job) -> None:
    """Answer in the queue that the body names."""
    Client().add(job.body, f"{job.queue} {job.nacks}".encode())


def fail_once(job: Job) -> None:
    """Fail at first, then answer."""
    if not job.nacks:
        raise RuntimeError("not yet")
    echo(job)


async def echo_async(job: AsyncJob) -> None:
    """As `echo`, in an event loop."""
    await asyncio.to_thread(echo, job)  # type: ignore[arg-type]


not_callable: Any = 3
