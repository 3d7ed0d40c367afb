"""What the commands about the server share in reading their arguments."""

from __future__ import annotations

from disqueue.commands.numbers import INVALID, parse_integer

I64_MAX = (1 << 63) - 1

NOT_AN_INTEGER = b"ERR value is not an integer or out of range"
SYNTAX_ERROR = b"ERR syntax error"


def integer_between(text: bytes, least: int = -I64_MAX, most: int = I64_MAX) -> int | None:
    """Return the integer in `text`, or None when it is none or out of bounds."""
    number = parse_integer(text)
    return number if number != INVALID and least <= number <= most else None
