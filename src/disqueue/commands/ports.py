"""What the commands need of the process around them, and a stand-in for brokers that are no process of their own."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Protocol

from disqueue._twins import build_info

if TYPE_CHECKING:
    from disqueue.core.client import Client


class Clock(Protocol):
    """Time for measuring and for people; the core has its own, set once a pass."""

    def elapsed_us(self) -> int:
        """Monotonic microseconds."""

    def wall_us(self) -> int:
        """Unix microseconds."""


@dataclass(frozen=True)
class PlatformFacts:
    """What INFO says of the machine and of this installation. The simulator has its own, so that seeds repeat anywhere."""

    system: str
    compiler: str
    python_version: str
    build_form: str


@cache
def this_platform() -> PlatformFacts:
    """Return the facts of where this process runs."""
    system = platform.uname()
    name = f"{system.system} {system.release} {system.machine}"
    return PlatformFacts(name, platform.python_compiler(), platform.python_version(), build_info().form)


@dataclass(frozen=True)
class ProcessFacts:
    """What INFO says of the process."""

    platform: PlatformFacts = field(default_factory=this_platform)
    process_id: int = 0
    executable: str = ""
    event_loop: str = "none"
    tcp_port: int = 0
    max_clients: int | None = None
    """How many clients the system allows; None: as many as `maxclients`."""
    resident_bytes: int = 0
    cpu_system_s: float = 0.0
    cpu_user_s: float = 0.0
    cpu_system_children_s: float = 0.0
    cpu_user_children_s: float = 0.0


@dataclass(frozen=True)
class ConnectionFacts:
    """What CLIENT LIST says of a connection."""

    descriptor: int = -1
    input_bytes: int = 0
    output_bytes: int = 0
    writable: bool = False


class ServerPort(Protocol):
    """The process and its connections."""

    def facts(self) -> ProcessFacts:
        """Return what INFO says of the process."""

    def clients(self) -> Iterable[Client]:
        """Return the connected clients."""

    def describe(self, client: Client) -> ConnectionFacts:
        """Return what CLIENT LIST says of a connection."""

    def close_client(self, client: Client) -> None:
        """Close a connection at the end of the pass; what was written for it is still sent."""

    def written(self, client: Client) -> None:
        """Something was written for a client outside of its own command."""

    def pause_clients(self, until_ms: int) -> None:
        """Execute no requests until then (monotonic); 0: go on."""

    def sleep(self, seconds: float) -> None:
        """Let the whole process stand still."""

    def shutdown(self, rewrite: bool) -> str:
        """Begin an orderly end; return why not, or ""."""

    def restart(self, delay_ms: int) -> str:
        """Begin an orderly end that is followed by a new start; return why not, or ""."""


@dataclass
class DetachedServer:
    """The stand-in: knows its clients, and cannot be shut down."""

    connected: list[Client] = field(default_factory=list)
    paused_until_ms: int = 0

    def facts(self) -> ProcessFacts:
        return ProcessFacts()

    def clients(self) -> Iterable[Client]:
        return self.connected

    def describe(self, client: Client) -> ConnectionFacts:
        return ConnectionFacts(output_bytes=client.reply.size)

    def close_client(self, client: Client) -> None:
        client.close_asap = True

    def written(self, client: Client) -> None:
        """Nothing: who owns the client looks at its writer."""

    def pause_clients(self, until_ms: int) -> None:
        self.paused_until_ms = until_ms

    def sleep(self, seconds: float) -> None:
        """Nothing: time is not ours."""

    def shutdown(self, rewrite: bool) -> str:
        return "this broker is no process of its own"

    def restart(self, delay_ms: int) -> str:
        return "this broker is no process of its own"
