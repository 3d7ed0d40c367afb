"""What is known of one client command: the entry that feeds dispatch, COMMAND, help and docs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqueue.commands.broker import Broker
    from disqueue.core.client import Client

    Handler = Callable[[Broker, Client, list[bytes]], object]

FLAGS = ("write", "readonly", "denyoom", "admin", "loading", "noauth", "fast")
"""Every flag, in the order in which COMMAND lists them.

`write` changes jobs or queues, `readonly` does not; `denyoom` stores more and is refused when memory or the journal's disk is
used up; `admin` is for operators; `loading` is answered while the journal is read; `noauth` needs no password; `fast` never
walks through many jobs.
"""

GROUPS = ("connection", "jobs", "queues", "cluster", "server")


class Command:
    """One client command.

    `name` is lower case. `arity` counts the name; a negative one is the least number of arguments, 0 means any. `syntax` is what
    follows the name. The handler writes exactly one reply, now or when the node unblocks the client.
    """

    def __init__(
        self,
        name: bytes,
        arity: int,
        flags: tuple[str, ...],
        summary: str,
        group: str,
        syntax: str,
        handler: Handler,
    ) -> None:
        unknown = set(flags) - set(FLAGS)
        if unknown or group not in GROUPS or name != name.lower():
            raise ValueError(f"bad table entry {name!r}: {unknown or group}")
        self.name = name
        self.arity = arity
        self.flags = tuple(flag for flag in FLAGS if flag in flags)
        self.summary = summary
        self.group = group
        self.syntax = syntax
        self.handler = handler

    def __repr__(self) -> str:
        return f"Command({self.name.decode()})"
