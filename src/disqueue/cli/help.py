"""Help on the server's commands, from the command table."""

from __future__ import annotations

import difflib
import functools
from typing import NamedTuple


class CommandHelp(NamedTuple):
    """One command as help, completion and hints show it: `syntax` is what follows the name."""

    name: str
    syntax: str
    summary: str
    group: str


_INTRODUCTION = """\
help <command>     what a command does and takes
help @<group>      the commands of a group: {groups}
connect HOST PORT  talk to another server
<number> <command> run a command that many times
clear              clear the screen
exit, quit         leave (so does Ctrl-D); Ctrl-C stops a command that waits\
"""


@functools.cache
def command_table() -> dict[str, CommandHelp]:
    """All commands by upper-case name."""
    # The catalogue imports the whole broker: only when help is wanted.
    from disqueue.commands.catalogue import COMMANDS  # noqa: PLC0415

    entries = (
        CommandHelp(_text(command.name).upper(), _text(command.syntax), _text(command.summary), _text(command.group))
        for command in COMMANDS.values()
    )
    return {entry.name: entry for entry in sorted(entries)}


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def groups() -> list[str]:
    return sorted({entry.group for entry in command_table().values()})


def help_text(topic: str) -> str:
    """Help on nothing, a command or an @group; says what there is when the topic is unknown."""
    if not topic:
        return _INTRODUCTION.format(groups=" ".join(f"@{group}" for group in groups()))
    if topic.startswith("@"):
        return _group_text(topic[1:].lower())
    entry = command_table().get(topic.upper())
    if entry is None:
        return f"no command '{topic}'; 'help' shows where to look"
    return f"{usage_of(topic)}\n  {entry.summary}\n  group: @{entry.group}"


def usage_of(name: str) -> str:
    """A command with all that it takes; an empty string if there is none of that name."""
    entry = command_table().get(name.upper())
    return f"{entry.name} {entry.syntax}".rstrip() if entry else ""


def nearest_command(name: str) -> str:
    """The command that a misspelt name is most like, or an empty string."""
    return next(iter(difflib.get_close_matches(name.upper(), command_table(), 1)), "")


def _group_text(group: str) -> str:
    entries = [entry for entry in command_table().values() if entry.group == group]
    if not entries:
        return f"no group '@{group}'; there are " + " ".join(f"@{name}" for name in groups())
    width = max(len(entry.name) for entry in entries)
    return "\n".join(f"{entry.name:<{width}}  {entry.summary}" for entry in entries)


def matching_commands(prefix: str) -> list[CommandHelp]:
    """Commands that start with what was typed, in any case."""
    return [entry for name, entry in command_table().items() if name.startswith(prefix.upper())]


def syntax_hint(line: str) -> str:
    """What may follow a typed line: the command's syntax without the words that are there already.

    Only leading plain words are dropped one by one; from the first optional part on, the syntax is kept whole.
    """
    words = line.split()
    entry = command_table().get(words[0].upper()) if words else None
    if entry is None:
        return ""
    typed = len(words) - 1 - (0 if line[-1:].isspace() else 1)
    parts = entry.syntax.split()
    while typed > 0 and parts and not parts[0].startswith("["):
        parts.pop(0)
        typed -= 1
    return " ".join(parts)
