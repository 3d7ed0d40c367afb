"""Kinds of option values: how a value is read from words, shown by CONFIG GET and written to a file.

`parse` takes the words after the option's name and raises ValueError; what is allowed is said by `allowed`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from disqueue.config.words import quote_word

I64_MAX = (1 << 63) - 1

_UNITS = {"": 1, "b": 1, "k": 1000, "kb": 1 << 10, "m": 1000**2, "mb": 1 << 20, "g": 1000**3, "gb": 1 << 30}
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_SIZE = re.compile(r"([0-9]{1,19})([a-zA-Z]*)")


class OutputLimit(NamedTuple):
    """When a client that does not read is closed: above `hard_bytes`, or for `soft_seconds` above `soft_bytes`; 0: never."""

    hard_bytes: int
    soft_bytes: int
    soft_seconds: int


Value = bool | int | str | tuple[str, ...] | OutputLimit


class Kind(Protocol):
    """How the values of an option are read and written."""

    @property
    def allowed(self) -> str:
        """What may stand there, for an error text: "allowed is …"."""

    def parse(self, words: Sequence[str]) -> Value:
        """Read a value; ValueError when it is not allowed."""

    def show(self, value: Value) -> str:
        """The value as CONFIG GET gives it and CONFIG SET takes it."""

    def write(self, value: Value) -> str:
        """The value as words of a file."""


def only(words: Sequence[str]) -> str:
    """Return the one word there is."""
    if len(words) != 1:
        raise ValueError("it takes a value" if not words else f"{len(words)} values instead of one")
    return words[0]


@dataclass(frozen=True)
class Integer:
    """A whole number within bounds, both allowed."""

    least: int
    most: int = I64_MAX
    unit: str = ""

    @property
    def allowed(self) -> str:
        unit = f" ({self.unit})" if self.unit else ""
        if self.most == I64_MAX:
            return f"a whole number from {self.least}{unit}"
        return f"a whole number from {self.least} to {self.most}{unit}"

    def parse(self, words: Sequence[str]) -> int:
        word = only(words)
        if not _INTEGER.fullmatch(word) or not self.least <= int(word) <= self.most:
            raise ValueError("not such a number")
        return int(word)

    def show(self, value: Value) -> str:
        return str(value)

    write = show


@dataclass(frozen=True)
class Size:
    """A number of bytes with an optional unit."""

    least: int = 0
    most: int = I64_MAX

    @property
    def allowed(self) -> str:
        most = "" if self.most == I64_MAX else f" to {format_size(self.most)}"
        return f"a number of bytes from {format_size(self.least)}{most}, with an optional unit b, k, kb, m, mb, g or gb"

    def parse(self, words: Sequence[str]) -> int:
        match = _SIZE.fullmatch(only(words))
        if match is None or match[2].lower() not in _UNITS:
            raise ValueError("not such a size")
        size = int(match[1]) * _UNITS[match[2].lower()]
        if not self.least <= size <= self.most:
            raise ValueError("out of range")
        return size

    def show(self, value: Value) -> str:
        return str(value)

    def write(self, value: Value) -> str:
        assert isinstance(value, int)
        return format_size(value)


def format_size(size: int) -> str:
    """Return `size` with the largest unit that divides it."""
    for unit in ("gb", "mb", "kb"):
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)


@dataclass(frozen=True)
class YesNo:
    """A switch."""

    allowed: str = "yes or no"

    def parse(self, words: Sequence[str]) -> bool:
        word = only(words).lower()
        if word not in ("yes", "no"):
            raise ValueError("neither yes nor no")
        return word == "yes"

    def show(self, value: Value) -> str:
        return "yes" if value else "no"

    write = show


@dataclass(frozen=True)
class Choice:
    """One of some words."""

    words: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return "one of " + ", ".join(self.words)

    def parse(self, words: Sequence[str]) -> str:
        word = only(words).lower()
        if word not in self.words:
            raise ValueError("not one of them")
        return word

    def show(self, value: Value) -> str:
        return str(value)

    write = show


@dataclass(frozen=True)
class Text:
    """Any text up to a number of bytes; empty means unset."""

    most_bytes: int = 512

    @property
    def allowed(self) -> str:
        return f"a text of at most {self.most_bytes} bytes (quote it when it holds blanks)"

    def parse(self, words: Sequence[str]) -> str:
        word = only(words)
        if len(word.encode("utf-8", "surrogateescape")) > self.most_bytes:
            raise ValueError("too long")
        return word

    def show(self, value: Value) -> str:
        return str(value)

    def write(self, value: Value) -> str:
        return quote_word(str(value))


@dataclass(frozen=True)
class Words:
    """Any words, kept as one text."""

    allowed: str = "any words"

    def parse(self, words: Sequence[str]) -> str:
        return " ".join(words)

    def show(self, value: Value) -> str:
        return str(value)

    def write(self, value: Value) -> str:
        return str(value) or '""'


@dataclass(frozen=True)
class Path(Text):
    """A path of a file or directory, made absolute when the server starts; empty means unset."""

    most_bytes: int = 4096

    @property
    def allowed(self) -> str:
        return "a path, relative ones count from dir"

    def parse(self, words: Sequence[str]) -> str:
        word = super().parse(words)
        if "\0" in word:
            raise ValueError("a path can't hold a NUL")
        return word


@dataclass(frozen=True)
class FileName(Text):
    """The name of a file in `dir`."""

    most_bytes: int = 255

    @property
    def allowed(self) -> str:
        return "a file name without a path"

    def parse(self, words: Sequence[str]) -> str:
        word = super().parse(words)
        if word in ("", ".", "..") or any(c in word for c in "/\\\0"):
            raise ValueError("not a plain file name")
        return word


@dataclass(frozen=True)
class Octal:
    """Permission bits in octal."""

    most: int = 0o777
    allowed: str = "an octal number from 0 to 777"

    def parse(self, words: Sequence[str]) -> int:
        word = only(words)
        if not re.fullmatch("[0-7]{1,4}", word) or int(word, 8) > self.most:
            raise ValueError("not such a number")
        return int(word, 8)

    def show(self, value: Value) -> str:
        return f"{value:o}"

    write = show


@dataclass(frozen=True)
class KeepAlive(Integer):
    """Seconds between keep-alive probes; yes and no are taken for 300 and 0."""

    @property
    def allowed(self) -> str:
        return f"{super().allowed}, or yes (300) or no (0)"

    def parse(self, words: Sequence[str]) -> int:
        word = only(words).lower()
        if word in ("yes", "no"):
            return 300 if word == "yes" else 0
        return super().parse(words)


@dataclass(frozen=True)
class Addresses:
    """IP addresses or host names to listen on; none means all."""

    most: int = 16

    @property
    def allowed(self) -> str:
        return f"at most {self.most} addresses"

    def parse(self, words: Sequence[str]) -> tuple[str, ...]:
        names = tuple(name for word in words for name in word.split())
        if len(names) > self.most:
            raise ValueError("too many")
        return names

    def show(self, value: Value) -> str:
        assert isinstance(value, tuple)
        return " ".join(map(str, value))

    def write(self, value: Value) -> str:
        assert isinstance(value, tuple)
        return " ".join(map(str, value)) or '""'


@dataclass(frozen=True)
class OutputLimits:
    """`normal HARD SOFT SECONDS`: the one class of clients that there is."""

    allowed: str = "normal HARD SOFT SECONDS, for example normal 64mb 16mb 60 (0: no limit)"

    def parse(self, words: Sequence[str]) -> OutputLimit:
        parts = [part for word in words for part in word.split()]
        if len(parts) != 4 or parts[0].lower() != "normal":
            raise ValueError("not of that form")
        size = Size()
        return OutputLimit(size.parse(parts[1:2]), size.parse(parts[2:3]), Integer(0).parse(parts[3:4]))

    def show(self, value: Value) -> str:
        assert isinstance(value, OutputLimit)
        return "normal {} {} {}".format(*value)

    def write(self, value: Value) -> str:
        assert isinstance(value, OutputLimit)
        return f"normal {format_size(value.hard_bytes)} {format_size(value.soft_bytes)} {value.soft_seconds}"
