"""Patterns for replies, in the notation of the transcripts (see README.md beside this file)."""

from __future__ import annotations

import re

from .replies import Reply

Bindings = dict[str, bytes]

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_TOKEN = re.compile(r'[*%~>]\?|[*%~>]-1|[*%~>]~?\[|\]|\.\.\.|\$"(?:[^"\\]|\\.)*"|[$+:\-]/(?:[^/\\]|\\.)*/|[^\s\]]+')


def unescape(text: str) -> bytes:
    r"""The bytes of a quoted text: `\n \r \t \xHH`, any other escaped character is itself."""

    def value(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 3 else _ESCAPES.get(code, code)

    return re.sub(r"\\(x[0-9a-fA-F]{2}|.)", value, text, flags=re.DOTALL).encode("latin-1")


def mismatch(pattern: str, reply: Reply, bindings: Bindings) -> str | None:
    """None when the reply fits (new names are bound), else what does not fit."""
    if pattern[:1] in ("-", "+") and pattern[1:2] not in ("?", "/", "{"):
        return None if f"{pattern}" == f"{reply}" else f"wanted {pattern}\n   got {reply}"
    tokens = _TOKEN.findall(pattern)
    why, used = _match(tokens, 0, reply, bindings)
    if why is None and used != len(tokens):
        why = f"the pattern goes on after its end: {tokens[used:]}"
    return None if why is None else f"wanted {pattern}\n   got {reply}\n   {why}"


def _match(tokens: list[str], at: int, reply: Reply, bindings: Bindings) -> tuple[str | None, int]:
    token = tokens[at]
    if token[-1] == "[" and token[0] in "*%~>":
        if reply.kind != token[0] or reply.value is None:
            return f"{token[0]} wanted, got {reply}", len(tokens)
        if "~" in token[1:]:
            return _match_unordered(tokens, at + 1, reply.items, bindings)
        return _match_items(tokens, at + 1, reply.items, bindings)
    return (None if token == "?" else _match_scalar(token, reply, bindings)), at + 1


def _match_items(tokens: list[str], at: int, items: list[Reply], bindings: Bindings) -> tuple[str | None, int]:
    for position, item in enumerate(items):
        if tokens[at] == "...":
            return _match_rest(tokens, at + 1, items[position:], bindings)
        if tokens[at] == "]":
            return f"unexpected element {item}", at + 1
        why, at = _match(tokens, at, item, bindings)
        if why is not None:
            return why, at
    if tokens[at] == "...":
        at += 1
    return (None, at + 1) if tokens[at] == "]" else (f"{tokens[at]} is missing", at)


def _match_rest(tokens: list[str], at: int, items: list[Reply], bindings: Bindings) -> tuple[str | None, int]:
    """What follows `...`: it may begin at any element."""
    if tokens[at] == "]":
        return None, at + 1
    for start in range(len(items)):
        trial = dict(bindings)
        why, after = _match_items(tokens, at, items[start:], trial)
        if why is None:
            bindings.update(trial)
            return None, after
    return f"{' '.join(tokens[at:])} is nowhere", len(tokens)


def _match_unordered(tokens: list[str], at: int, items: list[Reply], bindings: Bindings) -> tuple[str | None, int]:
    left = list(items)
    while tokens[at] != "]":
        for item in left:
            trial = dict(bindings)
            why, after = _match(tokens, at, item, trial)
            if why is None:
                bindings.update(trial)
                left.remove(item)
                at = after
                break
        else:
            return f"{tokens[at]} is missing", len(tokens)
    return (f"unexpected element {left[0]}" if left else None), at + 1


def _match_scalar(token: str, reply: Reply, bindings: Bindings) -> str | None:
    kind, rest = token[0], token[1:]
    wrong = f"{token} wanted, got {reply}"
    if reply.kind != kind:
        return wrong
    if kind == "_":
        return None
    if rest == "-1" and kind in "$*":
        return None if reply.value is None else wrong
    if reply.value is None:
        return wrong
    if rest == "?":
        return None
    if kind == ":":
        return _match_number(rest, reply.number, bindings, wrong)
    text = reply.data
    if rest.startswith("/"):
        return None if re.fullmatch(rest[1:-1].replace("\\/", "/"), text.decode("latin-1"), re.DOTALL) else wrong
    if rest.startswith("{") and rest.endswith("}"):
        return _match_name(rest[1:-1], text, bindings, wrong)
    wanted = unescape(rest[1:-1]) if rest.startswith('"') else rest.encode()
    return None if text == wanted else wrong


def _match_number(text: str, number: int, bindings: Bindings, wrong: str) -> str | None:
    if text.startswith("{"):
        return _match_name(text[1:-1], b"%d" % number, bindings, wrong)
    low, _, high = text.partition("..")
    return None if int(low) <= number <= int(high or low) else wrong


def _match_name(name: str, text: bytes, bindings: Bindings, wrong: str) -> str | None:
    return None if bindings.setdefault(name, text) == text else f"{wrong}: {name} is {bindings[name]!r}"
