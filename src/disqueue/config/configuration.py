"""The values of all options, and who wants to know when one changes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from disqueue.config.directives import BY_NAME, DIRECTIVES, Directive, DirectiveError, find, parse, suggestion
from disqueue.config.kinds import Path, Value
from disqueue.config.sources import (
    ConfigError,
    Setting,
    describe,
    read_arguments,
    read_environment,
    read_file,
    renames,
)

Listener = Callable[[Value], None]
"""Called with the new value; raises ConfigError to refuse it."""


@dataclass
class Configuration:
    """Values by option name.

    `path` is the absolute path of the file that CONFIG REWRITE rewrites, or "". `remarks` are lines to log at the start.
    """

    values: dict[str, Value] = field(default_factory=lambda: {d.name: d.default for d in DIRECTIVES})
    path: str = ""
    renamed: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _listeners: dict[str, list[Listener]] = field(default_factory=dict)

    # -- reading -----------------------------------------------------------------------------------------------------

    def number(self, name: str) -> int:
        """Return the value of an option that is a number or a switch."""
        value = self.values[name]
        assert isinstance(value, int), name
        return value

    def text(self, name: str) -> str:
        """Return the value of an option that is a text."""
        value = self.values[name]
        assert isinstance(value, str), name
        return value

    def flag(self, name: str) -> bool:
        """Return the value of a switch."""
        value = self.values[name]
        assert isinstance(value, bool), name
        return value

    def get(self, patterns: Sequence[str]) -> list[tuple[str, str]]:
        """Return name and text of every option that matches one of the glob patterns, in any case."""
        tests = [glob(pattern.lower()) for pattern in patterns]
        return [(d.name, self.shown(d)) for d in DIRECTIVES if any(test.fullmatch(d.name) for test in tests)]

    def shown(self, directive: Directive) -> str:
        """Return the value as CONFIG GET gives it."""
        value = self.values[directive.name]
        return "(hidden)" if directive.hidden and value else directive.kind.show(value)

    # -- changing ----------------------------------------------------------------------------------------------------

    def listen(self, name: str, listener: Listener) -> None:
        """Call `listener` whenever the option changes, and once now."""
        self._listeners.setdefault(name, []).append(listener)
        listener(self.values[name])

    def change(self, name: str, value: Value) -> None:
        """Set a value and tell the listeners; when one refuses, all goes back. Raises ConfigError."""
        before = self.values[name]
        self.values[name] = value
        told: list[Listener] = []
        try:
            for listener in self._listeners.get(name, ()):
                told.append(listener)
                listener(value)
        except ConfigError:
            self.values[name] = before
            for listener in told[:-1]:
                listener(before)
            raise

    def set(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Change options as CONFIG SET does: all of them or none. Raises ConfigError with a text for the client."""
        parsed = [self._parse_change(name, text) for name, text in pairs]
        names = [directive.name for directive, _ in parsed]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"duplicate parameter '{name}'")
        before = [(directive, self.values[directive.name]) for directive, _ in parsed]
        done = 0
        try:
            for directive, value in parsed:
                self.change(directive.name, value)
                done += 1
        except ConfigError:
            for directive, value in before[:done]:
                self.change(directive.name, value)
            raise

    def _parse_change(self, name: str, text: str) -> tuple[Directive, Value]:
        directive = BY_NAME.get(name.lower())
        if directive is None:
            raise ConfigError(f"Unsupported CONFIG parameter: {name}{suggestion(name)}")
        if not directive.runtime:
            raise ConfigError(
                f"Unsupported CONFIG parameter: {name} is set in the configuration file or on the command line only"
            )
        try:
            value = directive.kind.parse([text])
        except ValueError:
            shown = "(hidden)" if directive.secret else text
            allowed = directive.kind.allowed
            raise ConfigError(f"Invalid argument '{shown}' for CONFIG SET '{name}': allowed is {allowed}") from None
        if isinstance(directive.kind, Path) and value:
            value = os.path.join(self.text("dir"), str(value))
        if directive.name == "dir":
            check_directory(str(value))
        return directive, value

    def apply(self, settings: Sequence[Setting]) -> None:
        """Take over settings of a source; later ones win. Raises ConfigError with the place of the fault."""
        for setting in settings:
            if setting.name in BY_NAME:
                directive = BY_NAME[setting.name]
                try:
                    self.values[directive.name] = parse(directive, setting.words)
                except DirectiveError as error:
                    raise describe(error, setting) from None
                if directive.ignored:
                    self.remarks.append(f"{setting.origin}: {directive.name} has no effect: {directive.help}")
        self.renamed.extend(renames(settings))

    def pin_paths(self) -> None:
        """Make `dir` and all paths absolute, so that a later change of directory moves no file. Raises ConfigError."""
        directory = os.path.abspath(self.text("dir") or ".")
        try:
            check_directory(directory)
        except ConfigError as error:
            raise ConfigError(f"dir {directory}: {error}") from None
        self.values["dir"] = directory
        for directive in DIRECTIVES:
            if isinstance(directive.kind, Path) and self.values[directive.name] and directive.name != "dir":
                self.values[directive.name] = os.path.join(directory, self.text(directive.name))


def check_directory(path: str) -> None:
    """Raise ConfigError unless `path` is a directory that can be entered."""
    try:
        os.stat(os.path.join(path, "."))
    except OSError as error:
        raise ConfigError(f"Changing directory: {error.strerror}") from None


def load(arguments: Sequence[str], environment: Mapping[str, str]) -> Configuration:
    """Return the configuration of a server started with `arguments`. Raises ConfigError.

    Defaults are overridden by the file, the file by `DISQUEUE_*` variables, these by options of the command line.
    """
    configuration = Configuration()
    path, options = read_arguments(arguments)
    from_environment, configuration.remarks = read_environment(environment)
    if path is not None:
        configuration.apply(read_file(path))
        configuration.path = "" if path == "-" else os.path.abspath(path)
    configuration.apply(from_environment)
    configuration.apply(options)
    configuration.pin_paths()
    _check_together(configuration)
    return configuration


def _check_together(configuration: Configuration) -> None:
    """Refuse values that are fine alone but not together."""
    port, bus_port = configuration.number("port"), configuration.number("cluster-port")
    if bus_port == 0 and port > 55535:
        raise ConfigError(f"port {port}: other nodes use port + 10000, which is above 65535 then; set cluster-port")
    if bus_port and bus_port == port:
        raise ConfigError(f"cluster-port {bus_port}: clients use this port already")
    if port == 0 and not configuration.text("unixsocket"):
        raise ConfigError("port 0 and no unixsocket: nobody could reach the server; set one of them")
    if configuration.flag("tls-cluster"):
        missing = [name for name in ("tls-cert-file", "tls-key-file", "tls-ca-cert-file") if not configuration.text(name)]
        if missing:
            raise ConfigError(f"tls-cluster yes: {', '.join(missing)} must be set as well")


def glob(pattern: str) -> re.Pattern[str]:
    r"""Return the regular expression of a glob: * ? [a-z] [^a-z] and \ before a character that stands for itself."""
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            pieces.append(".*" if pieces[-1:] != [".*"] else "")
        elif character == "?":
            pieces.append(".")
        elif character == "\\" and at < len(pattern):
            pieces.append(re.escape(pattern[at]))
            at += 1
        elif character == "[" and (end := pattern.find("]", at)) > at + (pattern[at : at + 1] == "^"):
            negated = pattern[at] == "^"
            body = "".join("-" if c == "-" else re.escape(c) for c in pattern[at + negated : end])
            pieces.append(f"[{'^' if negated else ''}{body}]")
            at = end + 1
        else:
            pieces.append(re.escape(character))
    try:
        return re.compile("".join(pieces), re.DOTALL)
    except re.error:  # a range such as [z-a]: matches nothing
        return re.compile(r"(?!)")


__all__ = ["ConfigError", "Configuration", "Listener", "check_directory", "find", "glob", "load"]
