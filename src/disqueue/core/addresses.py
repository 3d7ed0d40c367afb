"""Checks of node ids and addresses that come from outside: what passes is fit for a log line and for nodes.conf."""

from __future__ import annotations

from disqueue.wire.records import MAX_ADDRESS_BYTES, NODE_ID_BYTES

_ADDRESS_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_%")
_HEX_DIGITS = frozenset(b"0123456789abcdef")


def is_node_id(value: bytes) -> bool:
    return len(value) == NODE_ID_BYTES and _HEX_DIGITS.issuperset(value)


def is_address(text: str) -> bool:
    """A literal address or a host name, by its characters."""
    return 0 < len(text) <= MAX_ADDRESS_BYTES and _ADDRESS_CHARS.issuperset(text)


def is_loopback(address: str) -> bool:
    return address.startswith("127.") or address in ("::1", "localhost")
