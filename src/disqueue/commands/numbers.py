"""Numbers in arguments: strict decimal, at most 64 bits."""

from __future__ import annotations

INVALID = -(1 << 63)
"""What `parse_integer` returns for anything that is no number; not a number that a command accepts."""
MAX_DIGITS = 18
"""More digits than that are refused or, where a number means a time, stand for «for ever»."""


def parse_integer(text: bytes) -> int:
    """Return the integer in `text`, or `INVALID`.

    An optional minus sign and digits; no plus sign, blanks or leading zeros, as a number is written on the wire.
    """
    length = len(text)
    index = 0
    negative = False
    if length > 0 and text[0] == 45:
        negative = True
        index = 1
    if index == length or length - index > MAX_DIGITS:
        return INVALID
    if text[index] == 48 and (length - index > 1 or negative):
        return INVALID
    value = 0
    while index < length:
        digit = text[index] - 48
        if digit < 0 or digit > 9:
            return INVALID
        value = value * 10 + digit
        index += 1
    return -value if negative else value
