"""Bodies: bytes by default; text, JSON and MessagePack when asked for."""

from __future__ import annotations

import json
from typing import Any, Protocol

import msgspec


class Serializer(Protocol):
    """Turns a value into a body and back."""

    def encode(self, value: Any) -> bytes:
        """The body for `value`; TypeError if it is not of a kind that this serializer takes."""

    def decode(self, body: bytes) -> Any:
        """The value of a body."""


class BytesSerializer:
    """Bodies are bytes, unchanged."""

    def encode(self, value: Any) -> bytes:
        if isinstance(value, bytes):
            return value
        if isinstance(value, (bytearray, memoryview)):
            return bytes(value)
        raise TypeError(
            f"a body must be bytes, not {type(value).__name__}; encode it, "
            "or give the client a serializer ('text', 'json', 'msgpack')"
        )

    def decode(self, body: bytes) -> bytes:
        return body


class TextSerializer:
    """Bodies are str, UTF-8 on the wire."""

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise TypeError(f"a body must be str with the text serializer, not {type(value).__name__}")
        return value.encode()

    def decode(self, body: bytes) -> str:
        return body.decode()


class JsonSerializer:
    """Bodies are JSON documents."""

    def encode(self, value: Any) -> bytes:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    def decode(self, body: bytes) -> Any:
        return json.loads(body)


class MsgspecSerializer:
    """Bodies are MessagePack or JSON, checked against a type (a Struct, a dataclass, `dict[str, int]`, …)."""

    def __init__(self, kind: Any = Any, *, json: bool = False) -> None:
        codec = msgspec.json if json else msgspec.msgpack
        self._encoder: Any = codec.Encoder()
        self._decoder: Any = codec.Decoder(kind)

    def encode(self, value: Any) -> bytes:
        encoded: bytes = self._encoder.encode(value)
        return encoded

    def decode(self, body: bytes) -> Any:
        return self._decoder.decode(body)


BY_NAME: dict[str, type[Serializer]] = {
    "bytes": BytesSerializer,
    "text": TextSerializer,
    "json": JsonSerializer,
    "msgpack": MsgspecSerializer,
}


def serializer_for(choice: Serializer | str | None) -> Serializer:
    """The serializer of that name, or the object itself; None means bytes."""
    if choice is None:
        return BytesSerializer()
    if isinstance(choice, str):
        if choice not in BY_NAME:
            raise ValueError(f"unknown serializer {choice!r}: use one of {', '.join(BY_NAME)}, or an object")
        return BY_NAME[choice]()
    return choice
