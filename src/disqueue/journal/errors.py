"""What is told when a journal cannot be used."""

from __future__ import annotations


class JournalError(Exception):
    """The journal cannot be used as it is.

    `problem` says what is wrong, with `file` and `offset` (-1: not one place); `stake` says what would be lost by going on
    regardless; `remedy` names the command to use.
    """

    def __init__(self, problem: str, *, file: str = "", offset: int = -1, stake: str = "", remedy: str = "") -> None:
        self.problem = problem
        self.file = file
        self.offset = offset
        self.stake = stake
        self.remedy = remedy
        place = f"{file}, offset {offset}: " if file and offset >= 0 else f"{file}: " if file else ""
        parts = [place + problem, stake, remedy]
        super().__init__(" ".join(part.rstrip(".") + "." for part in parts if part))


class LaterFormatError(JournalError):
    """A later release wrote the journal: nothing is damaged, and nothing can be repaired here."""
