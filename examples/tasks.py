"""Handlers for `disqueue worker`, to be run in this directory.

disqueue worker tasks:shout --queue shouts
disqueue worker tasks:whisper --queue whispers --concurrency 20
"""

from __future__ import annotations

import asyncio

from disqueue import AsyncJob, Job


def shout(job: Job) -> None:
    """Runs in a thread."""
    print(job.body.decode().upper(), flush=True)


async def whisper(job: AsyncJob) -> None:
    """Runs in an event loop."""
    await asyncio.sleep(0)
    print(job.body.decode().lower(), flush=True)
