"""Transcripts: what clients send and what they are answered, as text (README.md beside this file has the notation)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from .patterns import Bindings, mismatch, unescape
from .replies import Reply

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
_UNITS_MS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
FIRST_CLIENT = "A"


class Session(Protocol):
    """What a transcript is played on: clients by their letter, on a real server or on a broker in this process."""

    def send(self, client: str, request: list[bytes]) -> None: ...
    def send_raw(self, client: str, data: bytes) -> None: ...
    def receive(self, client: str) -> Reply: ...
    def receive_close(self, client: str) -> None: ...
    def disconnect(self, client: str) -> None: ...
    def wait_blocked(self, count: int) -> None: ...
    def advance(self, milliseconds: int) -> None: ...
    def pass_unnoticed(self, milliseconds: int) -> None: ...
    def move_wall_clock(self, milliseconds: int) -> None: ...


@dataclass(frozen=True)
class Step:
    """One line: `action` is send, raw, expect, closed, disconnect, blocked, after, late or clock."""

    line: int
    action: str
    client: str
    text: str


@dataclass
class Transcript:
    """One titled section of a file; `differs` names the entry of the table of differences, if it has one."""

    file: str
    title: str
    differs: str | None = None
    steps: list[Step] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.file}: {self.title}"

    @property
    def changes_configuration(self) -> bool:
        return any("CONFIG SET" in step.text for step in self.steps)


def read_transcripts(path: Path) -> Iterator[Transcript]:
    """The sections of one file, in order."""
    current: Transcript | None = None
    client = FIRST_CLIENT
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("== "):
            if current:
                yield current
            title, _, tag = line[3:].partition(" [differs: ")
            current = Transcript(path.stem, title.strip(), tag.rstrip("] ") or None)
            continue
        assert current, f"{path}:{number}: a line before the first title"
        step = _parse_step(number, line, client)
        client = step.client
        current.steps.append(step)
    if current:
        yield current


def _parse_step(number: int, line: str, previous: str) -> Step:
    if line[0].isspace():
        return Step(number, "expect", previous, line.strip())
    client = FIRST_CLIENT
    other = re.match(r"([A-Z])([:<>]) ", line)
    if other:
        client, line = other[1], line[3:]
        if other[2] == "<":
            return Step(number, "closed" if line == "closed" else "expect", client, line)
    action, _, rest = line.partition(" ")
    if action in ("after", "late", "clock", "blocked", "raw", "closed", "disconnect"):
        return Step(number, action, client, rest.strip())
    return Step(number, "send", client, line)


def words(text: str, bindings: Bindings) -> list[bytes]:
    """The words of a command line: quotes with escapes, `{name}` for what a reply has bound."""

    def word(token: str) -> bytes:
        if token.startswith('"') and token.endswith('"') and len(token) > 1:
            return unescape(token[1:-1])
        return re.sub(rb"\{([a-z_0-9]+)\}", lambda match: bindings[match[1].decode()], token.encode())

    return [word(token) for token in _WORD.findall(text)]


def duration_ms(text: str) -> int:
    """`1.5s`, `250ms`, `2d` in milliseconds."""
    number, unit = re.fullmatch(r"(-?[\d.]+)(ms|s|min|h|d)", text).groups()  # type: ignore[union-attr]
    return round(float(number) * _UNITS_MS[unit])


def play(transcript: Transcript, session: Session) -> None:
    """Play the steps; an AssertionError says which line did not get what it wants."""
    bindings: Bindings = {}
    for step in transcript.steps:
        where = f"{transcript.file}.txt:{step.line} ({transcript.title})"
        if step.action == "expect":
            try:
                reply = session.receive(step.client)
            except (ValueError, OSError) as error:
                raise AssertionError(f"{where}: wanted {step.text}, got {error!r}") from error
            why = mismatch(step.text, reply, bindings)
            assert why is None, f"{where}\n{why}"
        else:
            _do(step, session, bindings)


def _do(step: Step, session: Session, bindings: Bindings) -> None:
    if step.action == "send":
        session.send(step.client, words(step.text, bindings))
    elif step.action == "raw":
        session.send_raw(step.client, b"".join(words(step.text, bindings)))
    elif step.action == "closed":
        session.receive_close(step.client)
    elif step.action == "disconnect":
        session.disconnect(step.text)
    elif step.action == "blocked":
        session.wait_blocked(int(step.text))
    elif step.action == "after":
        session.advance(duration_ms(step.text))
    elif step.action == "late":
        session.pass_unnoticed(duration_ms(step.text))
    elif step.action == "clock":
        session.move_wall_clock(duration_ms(step.text))
