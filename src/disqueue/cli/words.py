"""Splitting a typed line into the words of a command."""

from __future__ import annotations

_BLANKS = " \t\r\n"
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "a": b"\a", "b": b"\b"}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


class QuotingError(ValueError):
    """The line's quotes do not match; the text says where."""


def split_words(line: str) -> list[bytes]:
    r"""Split `line` at blanks, honouring the protocol's quotes.

    "…" knows \n \r \t \a \b \xHH, and any other \c is c; '…' knows only \'. An empty pair of quotes is an empty word.
    Characters become UTF-8. Raises QuotingError when a quote is not closed or text follows it at once.
    """
    words: list[bytes] = []
    at = 0
    while True:
        while at < len(line) and line[at] in _BLANKS:
            at += 1
        if at == len(line):
            return words
        word, at = _read_word(line, at)
        words.append(word)


def _read_word(line: str, at: int) -> tuple[bytes, int]:
    word = bytearray()
    while at < len(line) and line[at] not in _BLANKS:
        if line[at] not in "\"'":
            word += line[at].encode("utf-8", "surrogateescape")
            at += 1
            continue
        opened = at
        at = _read_quoted(line, at, word)
        if at < len(line) and line[at] not in _BLANKS:
            raise QuotingError(
                f"a blank must follow the closing {line[opened]} at column {at}"
            )
    return bytes(word), at


def _read_quoted(line: str, opened: int, word: bytearray) -> int:
    """Append what stands between the quotes to `word`; returns the place after the closing quote."""
    quote = line[opened]
    at = opened + 1
    while at < len(line):
        character = line[at]
        if character == quote:
            return at + 1
        if (
            character == "\\"
            and at + 1 < len(line)
            and (quote == '"' or line[at + 1] == "'")
        ):
            piece, at = _read_escape(line, at + 1) if quote == '"' else (b"'", at + 2)
            word += piece
            continue
        word += character.encode("utf-8", "surrogateescape")
        at += 1
    raise QuotingError(f"the {quote} at column {opened + 1} is not closed")


def _read_escape(line: str, at: int) -> tuple[bytes, int]:
    character = line[at]
    digits = line[at + 1 : at + 3]
    if character == "x" and len(digits) == 2 and _HEX_DIGITS.issuperset(digits):
        return bytes([int(digits, 16)]), at + 3
    return _ESCAPES.get(character, character.encode("utf-8", "surrogateescape")), at + 1
