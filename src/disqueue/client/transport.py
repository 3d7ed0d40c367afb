"""Carrying out what flows ask for, over redis-py's connections: one transport for threads, one for asyncio."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import redis
import redis.asyncio as aioredis

from disqueue.client.connections import ASYNC_PARSERS, PARSERS, connection_arguments, reason, reply_error
from disqueue.client.endpoints import Endpoint, Settings
from disqueue.client.flow import BrokenError, NotSentError
from disqueue.client.requests import Request

CONNECTION_ERRORS = (redis.ConnectionError, redis.TimeoutError, OSError)
# Errors of the protocol itself, after which a connection is of no use. ValueError: redis-py's parser met what is no number,
# or its buffer was closed by another thread.
UNUSABLE = (*CONNECTION_ERRORS, redis.InvalidResponse, ValueError)

# A network that takes longer counts as broken.
SLOWEST_BYTES_PER_S = 1_000_000


class Transport(Protocol):
    """What a `Client` needs of the outside.

    `background`: time passes by itself, so that jobs are kept alive by a thread.
    """

    background: bool

    def exchange(self, endpoint: Endpoint, batch: Sequence[Request[Any]]) -> list[Any]:
        """Send, and read a reply each: a value or a `ReplyError`. Raises NotSentError, BrokenError."""

    def pause(self, seconds: float, stop: Any) -> None:
        """Wait, or until the `threading.Event` is set."""

    def clock(self) -> float:
        """Monotonic seconds."""

    def close(self) -> None:
        """Close all connections."""

    def after_fork(self) -> None:
        """Called in the child: forget what belongs to the parent."""


class AsyncTransport(Protocol):
    """What an `AsyncClient` needs of the outside."""

    async def exchange(self, endpoint: Endpoint, batch: Sequence[Request[Any]]) -> list[Any]:
        """Send, and read a reply each: a value or a `ReplyError`. Raises NotSentError, BrokenError."""

    async def pause(self, seconds: float, stop: Any) -> None:
        """Wait, or until the `asyncio.Event` is set."""

    def clock(self) -> float:
        """Monotonic seconds."""

    async def close(self) -> None:
        """Close all connections."""


@dataclass(slots=True, eq=False)
class _Pool:
    """Connections to one node. The limit makes callers wait; redis-py's own would make them fail."""

    connections: Any  # redis-py's pools are only half typed
    limit: threading.Semaphore


@dataclass(slots=True, eq=False)
class _AsyncPool:
    connections: Any
    limit: asyncio.Semaphore


def read_timeout(request: Request[Any], response_timeout: float) -> float | None:
    """Seconds until a reply must have come; None: it may take for ever."""
    if request.block_s is None:
        return None
    return request.block_s + (response_timeout if request.patience_s is None else request.patience_s)


def pack(connection: Any, batch: Sequence[Request[Any]]) -> Any:
    """Requests as redis-py sends them: a list of bytes."""
    if len(batch) == 1:
        return connection.pack_command(*batch[0].args)
    return connection.pack_commands([request.args for request in batch])


def send_timeout(packed: Sequence[bytes], response_timeout: float) -> float:
    """Seconds in which all of it must have been sent: large bodies need their time."""
    return response_timeout + sum(map(len, packed)) / SLOWEST_BYTES_PER_S


class NetworkTransport:
    """Sockets, for threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pools: dict[Endpoint, _Pool] = {}
        self._lock = threading.Lock()
        self.clock = time.monotonic
        self.background = True

    def _pool(self, endpoint: Endpoint) -> _Pool:
        pool = self._pools.get(endpoint)
        if pool is None:
            with self._lock:
                pool = self._pools.get(endpoint) or self._new_pool(endpoint)
                self._pools[endpoint] = pool
        return pool

    def _new_pool(self, endpoint: Endpoint) -> _Pool:
        kind: type[redis.Connection | redis.UnixDomainSocketConnection] = redis.Connection
        if endpoint.path:
            kind = redis.UnixDomainSocketConnection
        elif self._settings.tls:
            kind = redis.SSLConnection
        arguments = connection_arguments(kind, endpoint, self._settings)
        arguments["parser_class"] = PARSERS[self._settings.protocol]
        pool = redis.ConnectionPool(connection_class=kind, **arguments)
        return _Pool(pool, threading.Semaphore(self._settings.max_connections))

    def exchange(self, endpoint: Endpoint, batch: Sequence[Request[Any]]) -> list[Any]:
        pool = self._pool(endpoint)
        with pool.limit:
            try:
                connection = pool.connections.get_connection()
            except redis.ResponseError as error:  # the handshake was refused
                return [reply_error(error)] * len(batch)
            except CONNECTION_ERRORS as error:
                raise NotSentError(reason(error)) from error
            try:
                return self._talk(connection, batch)
            except AttributeError as error:
                if connection._sock is not None:
                    raise
                raise BrokenError("another thread has closed the connection", []) from error
            except BaseException:
                connection.disconnect()
                raise
            finally:
                pool.connections.release(connection)

    def _talk(self, connection: Any, batch: Sequence[Request[Any]]) -> list[Any]:
        packed = pack(connection, batch)
        connection._sock.settimeout(send_timeout(packed, self._settings.response_timeout))
        try:
            connection.send_packed_command(packed, check_health=False)
        except CONNECTION_ERRORS as error:
            # What was sent of the last command is incomplete, so it was not carried out; those before it may have been.
            raise (NotSentError(reason(error)) if len(batch) == 1 else BrokenError(reason(error), [])) from error
        connection._sock.settimeout(self._settings.response_timeout)
        replies: list[Any] = []
        try:
            for request in batch:
                replies.append(self._read(connection, request))
        except UNUSABLE as error:
            raise BrokenError(reason(error), replies) from error
        return replies

    def _read(self, connection: Any, request: Request[Any]) -> Any:
        margin = self._settings.response_timeout
        timeout = read_timeout(request, margin)
        try:
            if timeout == margin:
                return connection.read_response()
            connection._sock.settimeout(timeout)
            reply = connection.read_response()
            connection._sock.settimeout(margin)
            return reply
        except redis.ResponseError as error:
            connection._sock.settimeout(margin)
            return reply_error(error)

    def pause(self, seconds: float, stop: Any) -> None:
        if stop is None:
            time.sleep(seconds)
        else:
            stop.wait(seconds)

    def close(self) -> None:
        with self._lock:
            pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.connections.disconnect()

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._pools = {}


class AsyncNetworkTransport:
    """Sockets, for asyncio. Connections belong to the loop they were made in; in another loop new ones are made."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pools: dict[Endpoint, _AsyncPool] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.clock = time.monotonic

    def _pool(self, endpoint: Endpoint) -> _AsyncPool:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._pools = {}
        pool = self._pools.get(endpoint)
        if pool is None:
            pool = self._pools[endpoint] = self._new_pool(endpoint)
        return pool

    def _new_pool(self, endpoint: Endpoint) -> _AsyncPool:
        kind: type[aioredis.Connection | aioredis.UnixDomainSocketConnection] = aioredis.Connection
        if endpoint.path:
            kind = aioredis.UnixDomainSocketConnection
        elif self._settings.tls:
            kind = aioredis.SSLConnection
        arguments = connection_arguments(kind, endpoint, self._settings)
        arguments["parser_class"] = ASYNC_PARSERS[self._settings.protocol]
        pool: aioredis.ConnectionPool = aioredis.ConnectionPool(connection_class=kind, **arguments)
        return _AsyncPool(pool, asyncio.Semaphore(self._settings.max_connections))

    async def exchange(self, endpoint: Endpoint, batch: Sequence[Request[Any]]) -> list[Any]:
        pool = self._pool(endpoint)
        async with pool.limit:
            try:
                connection = await pool.connections.get_connection()
            except redis.ResponseError as error:
                return [reply_error(error)] * len(batch)
            except CONNECTION_ERRORS as error:
                raise NotSentError(reason(error)) from error
            try:
                return await self._talk(connection, batch)
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            finally:
                connection.socket_timeout = self._settings.connect_timeout  # of the next handshake
                await pool.connections.release(connection)

    async def _talk(self, connection: Any, batch: Sequence[Request[Any]]) -> list[Any]:
        connection.socket_timeout = self._settings.response_timeout
        replies: list[Any] = []
        try:
            await connection.send_packed_command(
                connection.pack_commands([request.args for request in batch]), check_health=False
            )
            for request in batch:
                replies.append(await self._read(connection, request))
        except UNUSABLE as error:
            raise BrokenError(reason(error), replies) from error
        return replies

    async def _read(self, connection: Any, request: Request[Any]) -> Any:
        # Set on the connection: with an argument, redis-py returns None at the end of time, which is a reply as well.
        connection.socket_timeout = read_timeout(request, self._settings.response_timeout)
        try:
            return await connection.read_response()
        except redis.ResponseError as error:
            return reply_error(error)

    async def pause(self, seconds: float, stop: Any) -> None:
        if stop is None:
            await asyncio.sleep(seconds)
        else:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), seconds)

    async def close(self) -> None:
        pools, self._pools = self._pools, {}
        if self._loop is asyncio.get_running_loop():
            for pool in pools.values():
                await pool.connections.disconnect()
