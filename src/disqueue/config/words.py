r"""Splitting a line of a configuration file into words, and writing words back.

Words are separated by blanks. "…" knows \n \r \t \a \b \xHH and any other \c is c; '…' knows only \'. Bytes that are no UTF-8
live on as surrogates (`surrogateescape`), so that a password of any bytes survives.
"""

from __future__ import annotations

_BLANKS = " \t\r\n"
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b"}
_UNESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\a": "\\a", "\b": "\\b", '"': '\\"', "\\": "\\\\"}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


def split_words(line: str) -> list[str]:
    """Return the words of `line`. Raises ValueError when a quote is not closed or is followed by more text."""
    words: list[str] = []
    at = 0
    while True:
        while at < len(line) and line[at] in _BLANKS:
            at += 1
        if at == len(line):
            return words
        word, at = _read_word(line, at)
        words.append(word)


def _read_word(line: str, at: int) -> tuple[str, int]:
    pieces: list[str] = []
    while at < len(line) and line[at] not in _BLANKS:
        quote = line[at]
        if quote not in "\"'":
            pieces.append(quote)
            at += 1
            continue
        at = _read_quoted(line, at + 1, quote, pieces)
        if at < len(line) and line[at] not in _BLANKS:
            raise ValueError("a closing quote must be followed by a blank or the end of the line")
    # Bytes given one by one with \x may be one character of UTF-8 together.
    return "".join(pieces).encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"), at


def _read_quoted(line: str, at: int, quote: str, pieces: list[str]) -> int:
    """Collect what stands between quotes; return the position after the closing one."""
    while at < len(line):
        character = line[at]
        if character == quote:
            return at + 1
        if character == "\\" and quote == '"' and at + 1 < len(line):
            digits = line[at + 2 : at + 4]
            if line[at + 1] == "x" and len(digits) == 2 and _HEX_DIGITS.issuperset(digits):
                pieces.append(bytes.fromhex(digits).decode("utf-8", "surrogateescape"))
                at += 4
                continue
            pieces.append(_ESCAPES.get(line[at + 1], line[at + 1]))
            at += 2
            continue
        if line.startswith("\\'", at) and quote == "'":
            pieces.append("'")
            at += 2
            continue
        pieces.append(character)
        at += 1
    raise ValueError(f"a quote ({quote}) is not closed")


def quote_word(word: str) -> str:
    """Return `word` so that `split_words` reads it back; quoted only where that is needed."""
    plain = word and not any(c in _BLANKS or c in "\"'\\" or not c.isprintable() for c in word) and not word.startswith("#")
    if plain:
        return word
    pieces = []
    for character in word:
        if character in _UNESCAPES:
            pieces.append(_UNESCAPES[character])
        elif character.isprintable():
            pieces.append(character)
        else:
            pieces.extend(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
    return '"' + "".join(pieces) + '"'
