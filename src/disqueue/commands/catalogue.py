"""All client commands, built from the table of each module."""

from __future__ import annotations

from importlib import import_module

from disqueue.commands.table import Command

MODULES = ("connection", "jobs", "queues", "cluster", "clients", "configuring", "introspection", "info", "observing", "operating")


def _collect() -> dict[bytes, Command]:
    commands: dict[bytes, Command] = {}
    for module in MODULES:
        for command in import_module(f"disqueue.commands.{module}").COMMANDS:
            if command.name in commands:
                raise ValueError(f"two entries for {command.name!r}")
            commands[command.name] = command
    return commands


COMMANDS: dict[bytes, Command] = _collect()
"""Every command by its lower-case name."""
