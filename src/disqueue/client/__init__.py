"""The Python client: `Client` for threads, `AsyncClient` for asyncio."""

from disqueue.client.aio import AsyncClient
from disqueue.client.consume import AsyncConsumer, Consumer
from disqueue.client.endpoints import Endpoint, Settings
from disqueue.client.errors import (
    AuthenticationError,
    BadJobIdError,
    BatchError,
    ClientClosedError,
    CommandError,
    DisqueueError,
    JournalError,
    LoadingError,
    MalformedReplyError,
    NodeLeavingError,
    NoNodeError,
    NotReplicatedError,
    OutOfMemoryError,
    PermissionDeniedError,
    QueueFullError,
    QueuePausedError,
    ReplyError,
    TooLateError,
    UnknownJobError,
    UnknownOutcomeError,
    UnsupportedProtocolError,
)
from disqueue.client.jobs import AsyncJob, Job, ReceivedJob
from disqueue.client.serializers import MsgspecSerializer, Serializer
from disqueue.client.sync import Client
from disqueue.client.values import ClusterNode, Hello, JobInfo, NodeInfo, PeekedJob, QueueInfo

__all__ = [
    "AsyncClient",
    "AsyncConsumer",
    "AsyncJob",
    "AuthenticationError",
    "BadJobIdError",
    "BatchError",
    "Client",
    "ClientClosedError",
    "ClusterNode",
    "CommandError",
    "Consumer",
    "DisqueueError",
    "Endpoint",
    "Hello",
    "Job",
    "JobInfo",
    "JournalError",
    "LoadingError",
    "MalformedReplyError",
    "MsgspecSerializer",
    "NoNodeError",
    "NodeInfo",
    "NodeLeavingError",
    "NotReplicatedError",
    "OutOfMemoryError",
    "PeekedJob",
    "PermissionDeniedError",
    "QueueFullError",
    "QueueInfo",
    "QueuePausedError",
    "ReceivedJob",
    "ReplyError",
    "Serializer",
    "Settings",
    "TooLateError",
    "UnknownJobError",
    "UnknownOutcomeError",
    "UnsupportedProtocolError",
]
