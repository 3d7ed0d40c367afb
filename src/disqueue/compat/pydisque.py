"""The `Client` of the package pydisque, for programs that were written for it.

    from disqueue.compat.pydisque import Client

Names, arguments and results are pydisque's: bytes and tuples, errors of redis-py. What is better comes from the
client below: all nodes are used, connections are safe for threads and forks, a blocked GETJOB may take as long as it
asked for. As with pydisque, a command is sent again when a connection breaks, an add as well: it may be added twice.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import redis
from redis.connection import DefaultParser

from disqueue.client import replies
from disqueue.client.endpoints import Endpoint
from disqueue.client.errors import DisqueueError, ReplyError
from disqueue.client.sync import Client as DisqueueClient

logger = logging.getLogger(__name__)

Name: TypeAlias = str | bytes

DEFAULT_NODE = "localhost:7711"


class Job:
    """A job, as pydisque has it; nothing here returns one."""

    def __init__(self, id: Any, queue_name: Any, payload: Any) -> None:  # the argument's name is the interface
        self.id = id
        self.queue_name = queue_name
        self.payload = payload

    def __repr__(self) -> str:
        return f"<Job id:{self.id} queue_name:{self.queue_name}>"


class Node:
    """The node that a client is connected to."""

    def __init__(self, node_id: Any, host: str, port: int, connection: Any) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.connection = connection

    def __repr__(self) -> str:
        return f"<Node {self.host}:{self.port}>"


_redis_error: Any = DefaultParser.parse_error


def _raise_as_redis(error: DisqueueError) -> None:
    """pydisque lets redis-py's exceptions through, and programs catch these."""
    if isinstance(error, ReplyError):
        raise _redis_error(str(error)) from error
    raise redis.ConnectionError(str(error)) from error


class Client:
    """A client of a list of nodes, `["localhost:7711", …]`. Call `connect()` before anything else."""

    def __init__(self, nodes: Iterable[str] | None = None) -> None:
        self.nodes: dict[str, Node | None] = dict.fromkeys([DEFAULT_NODE] if nodes is None else nodes)
        self.connected_node: Node | None = None
        self._client: DisqueueClient | None = None

    def connect(self) -> None:
        """Connect to one of the nodes. Raises redis.ConnectionError when none is there."""
        if self._client is not None:
            self._client.close()
        self.connected_node = None
        client = DisqueueClient(list(self.nodes), retry_for=0.0)
        try:
            hello = client.execute("HELLO", resend=True)
        except DisqueueError as error:
            client.close()
            _raise_as_redis(error)
        self._client = client
        endpoint = client.node or Endpoint()
        self.connected_node = Node(hello[1], endpoint.host, endpoint.port, self)
        self.nodes[f"{endpoint.host}:{endpoint.port}"] = self.connected_node
        logger.info("connected to node %s", self.connected_node)

    def get_connection(self) -> Client:
        """What commands are executed on. Raises redis.ConnectionError before `connect()`."""
        if self.connected_node is None:
            raise redis.ConnectionError("not connected")
        return self

    def execute_command(self, *args: Any, block: float | None = 0.0) -> Any:
        """Execute a command; the reply as it comes. `block`: seconds it may wait in the server, None for ever."""
        self.get_connection()
        if self._client is None:
            raise redis.ConnectionError("not connected")
        try:
            return self._client.execute(*args, resend=True, block=block)
        except DisqueueError as error:
            _raise_as_redis(error)

    def info(self) -> dict[str, int | float | str]:
        """INFO, as a dict."""
        return replies.colon_lines(self.execute_command("INFO"))

    def add_job(
        self,
        queue_name: Name,
        job: Any,
        timeout: int = 200,
        replicate: int | None = None,
        delay: int | None = None,
        retry: int | None = None,
        ttl: int | None = None,
        maxlen: int | None = None,
        asynchronous: bool | None = None,
    ) -> bytes:
        """Add a job; `timeout` in milliseconds, other times in seconds. Returns the id."""
        command: list[Any] = ["ADDJOB", queue_name, job, timeout]
        for word, value in (("REPLICATE", replicate), ("DELAY", delay)):
            if value:
                command += word, value
        if retry is not None:
            command += "RETRY", retry
        for word, value in (("TTL", ttl), ("MAXLEN", maxlen)):
            if value:
                command += word, value
        if asynchronous:
            command.append("ASYNC")
        job_id: bytes = self.execute_command(*command, block=timeout / 1000 if timeout else None)
        return job_id

    def get_job(
        self,
        queues: Sequence[Name],
        timeout: int | None = None,
        count: int | None = None,
        nohang: bool = False,
        withcounters: bool = False,
    ) -> list[tuple[Any, ...]]:
        """Wait for jobs, `timeout` milliseconds or for ever.

        Returns tuples (queue, id, body), with counters (queue, id, body, nacks, additional deliveries); maybe none.
        (pydisque's own documentation says id, queue; this is what it returns.)
        """
        if not queues:
            raise AssertionError
        command: list[Any] = ["GETJOB"]
        if nohang:
            command.append("NOHANG")
        if timeout:
            command += "TIMEOUT", timeout
        if count:
            command += "COUNT", count
        if withcounters:
            command.append("WITHCOUNTERS")
        block = 0.0 if nohang else timeout / 1000 if timeout else None
        jobs = self.execute_command(*command, "FROM", *queues, block=block) or []
        if withcounters:
            return [(job[0], job[1], job[2], job[4], job[6]) for job in jobs]
        return [tuple(job) for job in jobs]

    def ack_job(self, *job_ids: Name) -> None:
        """Done with these jobs."""
        self.execute_command("ACKJOB", *job_ids)

    def nack_job(self, *job_ids: Name) -> None:
        """These jobs failed: queue them again."""
        self.execute_command("NACK", *job_ids)

    def fast_ack(self, *job_ids: Name) -> None:
        """Done with these jobs, best effort."""
        self.execute_command("FASTACK", *job_ids)

    def working(self, job_id: Name) -> int:
        """Postpone the next delivery; returns for how many seconds."""
        seconds: int = self.execute_command("WORKING", job_id)
        return seconds

    def qlen(self, queue_name: Name) -> int:
        """The length of a queue."""
        length: int = self.execute_command("QLEN", queue_name)
        return length

    def qstat(self, queue_name: Name, return_dict: bool = False) -> Any:
        """QSTAT, as a flat list or as a dict."""
        reply = self.execute_command("QSTAT", queue_name)
        return dict(self._grouper(reply, 2)) if return_dict else reply

    def qpeek(self, queue_name: Name, count: int) -> Any:
        """Look at jobs, oldest first; newest first when `count` is negative."""
        return self.execute_command("QPEEK", queue_name, count)

    def enqueue(self, *job_ids: Name) -> int:
        """Queue these jobs if they are not."""
        queued: int = self.execute_command("ENQUEUE", *job_ids)
        return queued

    def dequeue(self, *job_ids: Name) -> int:
        """Take these jobs out of their queues."""
        dequeued: int = self.execute_command("DEQUEUE", *job_ids)
        return dequeued

    def del_job(self, *job_ids: Name) -> int:
        """Delete these jobs."""
        deleted: int = self.execute_command("DELJOB", *job_ids)
        return deleted

    def show(self, job_id: Name, return_dict: bool = False) -> Any:
        """SHOW, as a flat list or as a dict."""
        reply = self.execute_command("SHOW", job_id)
        return dict(self._grouper(reply, 2)) if return_dict else reply

    def pause(
        self,
        queue_name: Name,
        kw_in: bool | None = None,
        kw_out: bool | None = None,
        kw_all: bool | None = None,
        kw_none: bool | None = None,
        kw_state: bool | None = None,
        kw_bcast: bool | None = None,
    ) -> Any:
        """Pause a queue. Returns the state."""
        words = {"in": kw_in, "out": kw_out, "all": kw_all, "none": kw_none, "state": kw_state, "bcast": kw_bcast}
        return self.execute_command("PAUSE", queue_name, *(word for word, wanted in words.items() if wanted))

    def qscan(
        self,
        cursor: int = 0,
        count: int | None = None,
        busyloop: bool | None = None,
        minlen: int | None = None,
        maxlen: int | None = None,
        importrate: int | None = None,
    ) -> Any:
        """One page of queues: [cursor, names]."""
        command: list[Any] = ["QSCAN", cursor]
        if count:
            command += "COUNT", count
        if busyloop:
            command.append("BUSYLOOP")
        for word, value in (("MINLEN", minlen), ("MAXLEN", maxlen), ("IMPORTRATE", importrate)):
            if value:
                command += word, value
        return self.execute_command(*command)

    def jscan(
        self,
        cursor: int = 0,
        count: int | None = None,
        busyloop: bool | None = None,
        queue: Name | None = None,
        state: list[str] | None = None,
        reply: str | None = None,
    ) -> Any:
        """One page of jobs: [cursor, ids or SHOW replies]."""
        command: list[Any] = ["JSCAN", cursor]
        if count:
            command += "COUNT", count
        if busyloop:
            command.append("BUSYLOOP")
        if queue:
            command += "QUEUE", queue
        for name in state if isinstance(state, list) else ():
            command += "STATE", name
        if reply:
            command += "REPLY", reply
        return self.execute_command(*command)

    def hello(self) -> Any:
        """HELLO."""
        return self.execute_command("HELLO")

    @staticmethod
    def _grouper(iterable: Iterable[Any], n: int, fillvalue: Any = None) -> Any:
        items = [iter(iterable)] * n
        return itertools.zip_longest(*items, fillvalue=fillvalue)
