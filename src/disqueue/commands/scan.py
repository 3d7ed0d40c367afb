"""The options that JSCAN and QSCAN share, and their pages."""

from __future__ import annotations

from disqueue.commands.numbers import INVALID, parse_integer

MAX_CURSOR_DIGITS = 20
DEFAULT_COUNT = 100
STEPS_PER_COUNT = 10
"""A call looks at this many times COUNT entries at the most, so that a scan with rare matches does not stop the loop."""
MAX_STEPS = 100_000


class ScanOptions:
    """What a scan was asked for."""

    def __init__(self) -> None:
        self.cursor = 0
        self.count = DEFAULT_COUNT
        self.all_at_once = False
        self.values: dict[bytes, list[bytes]] = {}

    def steps(self) -> int:
        """Return how many entries one call may look at."""
        return min(max(self.count, 1) * STEPS_PER_COUNT, MAX_STEPS)


def parse_scan(args: list[bytes], with_value: frozenset[bytes]) -> ScanOptions | bytes:
    """Read the arguments of a scan after its name; return the options, or an error.

    `with_value`: the options that take a value besides COUNT. A word that is no option is the cursor.
    """
    options = ScanOptions()
    cursor_seen = False
    index = 0
    while index < len(args):
        word = args[index].upper()
        index += 1
        has_value = index < len(args)
        if word == b"BUSYLOOP":
            options.all_at_once = True
        elif word == b"COUNT" and has_value:
            options.count = parse_integer(args[index])
            if options.count == INVALID:
                return b"ERR value is not an integer or out of range"
            index += 1
        elif word in with_value and has_value:
            options.values.setdefault(word, []).append(args[index])
            index += 1
        elif cursor_seen:
            return b"ERR syntax error"
        else:
            cursor = _cursor(args[index - 1])
            if cursor is None:
                return b"ERR invalid cursor or option name"
            options.cursor = cursor
            cursor_seen = True
    if options.count < 0:
        options.all_at_once = True
    return options


def _cursor(text: bytes) -> int | None:
    if not text.isdigit() or len(text) > MAX_CURSOR_DIGITS:
        return None
    cursor = int(text)
    return cursor if cursor < 1 << 64 else None
