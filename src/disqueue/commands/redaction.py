"""Passwords in arguments, hidden from MONITOR and SLOWLOG."""

from __future__ import annotations

from disqueue.config.directives import BY_NAME

HIDDEN = b"(redacted)"


def redacted(name: bytes, args: list[bytes]) -> list[bytes]:
    """Return the arguments of the command `name` (lower case) without secrets; the same list where there are none."""
    if name == b"auth":
        return [args[0], *[HIDDEN] * (len(args) - 1)]
    if name == b"hello":
        return _redact_hello(args)
    if name == b"config" and len(args) > 3 and args[1].lower() == b"set":
        return _redact_config(args)
    return args


def _redact_hello(args: list[bytes]) -> list[bytes]:
    result = list(args)
    for place, word in enumerate(args):
        if place >= 2 and word.lower() == b"auth":
            for secret in range(place + 1, min(place + 3, len(args))):
                result[secret] = HIDDEN
            break
    return result


def _redact_config(args: list[bytes]) -> list[bytes]:
    result = list(args)
    for place in range(2, len(args) - 1, 2):
        directive = BY_NAME.get(args[place].decode("latin-1").lower())
        if directive is not None and directive.secret:
            result[place + 1] = HIDDEN
    return result
