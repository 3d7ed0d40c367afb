"""Where settings come from: a file with its includes, environment variables, the command line.

Each source gives `Setting`s, later ones win; the order is file, environment, command line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from disqueue.config.directives import BY_NAME, SPECIAL, DirectiveError, suggestion
from disqueue.config.words import split_words

INCLUDE_DEPTH_MAX = 16
"""Files that include each other in a circle are the only ones to get here."""

FILE_BYTES_MAX = 16 << 20

ENVIRONMENT_PREFIX = "DISQUEUE_"
NOT_OPTIONS = frozenset(("PURE", "REQUIRE_COMPILED", "TEST_SERVER", "URL", "NODES", "AUTH", "IN_BACKGROUND"))
"""Variables with the prefix that are for the build, for clients, and for a server that starts again."""


class ConfigError(Exception):
    """The configuration can't be used; the text names option, place and what is allowed."""


@dataclass(frozen=True)
class Setting:
    """One option with its words, as written at `origin` ("/etc/disqueue.conf, line 3")."""

    name: str
    words: list[str]
    origin: str


def read_file(path: str, depth: int = 0) -> list[Setting]:
    """Read a configuration file; "-" is standard input. Raises ConfigError."""
    label = "standard input" if path == "-" else path
    if depth > INCLUDE_DEPTH_MAX:
        raise ConfigError(f"{label}: more than {INCLUDE_DEPTH_MAX} files include each other")
    settings: list[Setting] = []
    for number, line in enumerate(read_lines(path), 1):
        setting = parse_line(line, f"{label}, line {number}")
        if setting is None:
            continue
        if setting.name != "include":
            settings.append(setting)
            continue
        for name in setting.words:
            base = "" if path == "-" else os.path.dirname(path)
            try:
                settings.extend(read_file(os.path.join(base, name), depth + 1))
            except ConfigError as error:
                raise ConfigError(f"{error}\n  included by {setting.origin}") from None
    return settings


def read_lines(path: str) -> list[str]:
    """Return the lines of a file or of standard input, without their ends. Raises ConfigError."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"can't read the configuration file {path}: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{path}: a configuration file has at most {FILE_BYTES_MAX} bytes")
    lines = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").split("\n")
    return [line.rstrip("\r") for line in lines]


def parse_line(line: str, origin: str) -> Setting | None:
    """Return what a line sets; None for an empty line and a comment. Raises ConfigError."""
    stripped = line.strip()
    if not stripped or stripped.startswith("#"):
        return None
    try:
        words = split_words(stripped)
    except ValueError as error:
        raise ConfigError(f"{origin}: {error}: {stripped}") from None
    return Setting(_known(words[0], origin), words[1:], origin)


def _known(name: str, origin: str) -> str:
    lowered = name.lower()
    if lowered not in BY_NAME and lowered not in SPECIAL:
        raise ConfigError(f"{origin}: there is no option '{name}'{suggestion(name)}")
    return lowered


def read_environment(environment: Mapping[str, str]) -> tuple[list[Setting], list[str]]:
    """Return the settings of `DISQUEUE_*` variables, and a remark for each such name that is no option."""
    settings: list[Setting] = []
    remarks: list[str] = []
    for variable, text in sorted(environment.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable.removeprefix(ENVIRONMENT_PREFIX) in NOT_OPTIONS:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", "-")
        if name not in BY_NAME:
            remarks.append(f"environment variable {variable} is no option{suggestion(name)}")
            continue
        settings.append(Setting(name, [text], f"environment variable {variable}"))
    return settings, remarks


def read_arguments(arguments: Sequence[str]) -> tuple[str | None, list[Setting]]:
    """Split `[CONF | -] [--option value …]…` into the file's path, if given, and settings. Raises ConfigError."""
    rest = list(arguments)
    path = rest.pop(0) if rest and not rest[0].startswith("--") else None
    settings: list[Setting] = []
    for argument in rest:
        if argument.startswith("--"):
            name, given, value = argument[2:].partition("=")
            settings.append(Setting(_known(name, f"option {argument}"), [value] if given else [], f"option --{name.lower()}"))
        elif not settings:
            raise ConfigError(f"argument '{argument}': options start with --, and there is one configuration file")
        else:
            settings[-1].words.append(argument)
    for setting in settings:
        if setting.name == "include":
            raise ConfigError(f"{setting.origin}: give the file as the first argument instead")
    return path, settings


def renames(settings: Iterable[Setting]) -> list[tuple[str, str]]:
    """Return the (old, new) names of `rename-command`. Raises ConfigError."""
    pairs: list[tuple[str, str]] = []
    for setting in settings:
        if setting.name == "rename-command":
            if len(setting.words) != 2:
                raise ConfigError(f"{setting.origin}: rename-command takes the old and the new name")
            pairs.append((setting.words[0].lower(), setting.words[1].lower()))
    return pairs


def describe(error: DirectiveError, setting: Setting) -> ConfigError:
    """Return `error` with the place it comes from."""
    return ConfigError(f"{setting.origin}: {error}")
