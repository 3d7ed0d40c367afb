"""For the tests of programs that use Disqueue: a broker inside the process, real servers, fixtures for pytest."""

from disqueue.testing.broker import MemoryBroker, WaitsForEverError
from disqueue.testing.server import Cluster, Server, ServerFailedError, free_port

__all__ = ["Cluster", "MemoryBroker", "Server", "ServerFailedError", "WaitsForEverError", "free_port"]
