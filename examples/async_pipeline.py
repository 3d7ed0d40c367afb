"""Two steps, many jobs at a time, in one event loop: python examples/async_pipeline.py."""

from __future__ import annotations

import asyncio

import msgspec

from disqueue import AsyncClient
from disqueue.client import MsgspecSerializer

WORKERS = 4


class Page(msgspec.Struct):
    """The body of a job; bodies of another shape are refused when they are decoded."""

    url: str
    depth: int = 0


async def fetch(client: AsyncClient) -> int:
    """The first step: takes pages, adds what they link to for the second."""
    fetched = 0
    async for job in client.consume("pages", prefetch=2, timeout=1):
        async with job:
            page: Page = job.data
            # The next step's job is added before this one is acknowledged: dying in between doubles it, and loses nothing.
            await client.add("links", Page(f"{page.url}/linked", page.depth + 1))
            fetched += 1
    return fetched


async def main() -> None:
    async with AsyncClient(serializer=MsgspecSerializer(Page)) as client:
        await client.add_many("pages", [Page(f"https://example.org/{number}") for number in range(20)])
        counts = await asyncio.gather(*(fetch(client) for _ in range(WORKERS)))
        print(sum(counts), "pages,", await client.queue_length("links"), "links")


if __name__ == "__main__":
    asyncio.run(main())
