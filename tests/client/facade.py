"""The async client with the methods of the sync one, so that one suite tests both."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

from disqueue.client import AsyncClient, AsyncConsumer, AsyncJob

WAIT_S = 60.0


class LoopThread:
    """An event loop that runs in a thread of its own, so that tasks go on while the test does something else."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="test-loop", daemon=True)
        self._thread.start()

    def run(self, awaitable: Any) -> Any:
        async def wrapped() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(wrapped(), self.loop).result(WAIT_S)

    def close(self) -> None:
        self.run(self.loop.shutdown_asyncgens())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(WAIT_S)
        self.loop.close()


class Facade:
    """Wraps an async object: coroutines are run to their end, async iterators become iterators."""

    def __init__(self, loop: LoopThread, target: Any) -> None:
        self._loop = loop
        self._target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        return self._method(value) if callable(value) else value

    def _method(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            plain = [item._target if isinstance(item, Facade) else item for item in args]
            result = method(*plain, **options)
            return self._wrap(self._loop.run(result) if inspect.isawaitable(result) else result)

        return call

    def _wrap(self, value: Any) -> Any:
        if isinstance(value, (AsyncJob, AsyncConsumer)):
            return Facade(self._loop, value)
        if isinstance(value, list):
            return [self._wrap(item) for item in value]
        if inspect.isasyncgen(value):
            return self._iterate(value)
        return value

    def _iterate(self, generator: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self._wrap(self._loop.run(anext(generator)))
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run(generator.aclose())

    def __iter__(self) -> Iterator[Any]:
        return self._iterate(aiter(self._target))

    def __enter__(self) -> Facade:
        self._loop.run(self._target.__aenter__())
        return self

    def __exit__(self, *error: Any) -> None:
        self._loop.run(self._target.__aexit__(*error))

    def __repr__(self) -> str:
        return repr(self._target)


def async_client(loop: LoopThread, *args: Any, **options: Any) -> Any:
    """An AsyncClient that looks like a Client."""

    async def make() -> AsyncClient:
        return AsyncClient(*args, **options)

    return Facade(loop, loop.run(make()))
