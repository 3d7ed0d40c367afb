"""For the tests of programs that use Disqueue: real servers, a pytest fixture, and a broker inside the process."""

from disqueue.testing.server import Cluster, Server, ServerFailedError, free_port

__all__ = ["Cluster", "Server", "ServerFailedError", "free_port"]
