"""The start of a bus link: both ends prove that they know the cluster secret before anything is believed.

    dialler                              acceptor
    Greeting (versions, nonce)    ->
                                  <-     Greeting (versions, nonce)
    Proof (identity, HMAC)        ->     checks it, decides whether to have this node
                                  <-     Proof (identity, HMAC)       or Denial (identity, reason, HMAC), then closes
    records                       ->

Before the proofs, an end that gives up says why in a `Refusal`.

The HMAC-SHA256 is keyed with the secret and covers the sender's role, both greetings as they were sent, and the identity;
the acceptor's covers the dialler's identity as well. So a proof fits one link, one direction and one identity; the secret
itself never travels. Versions and features are covered too: nobody in the middle can talk two nodes down.

The dialler proves first: whoever knocks on a node's door without the secret learns nothing from it, not even who it is.
After the handshake a link is as trustworthy as its network; across one that is not, use TLS.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from disqueue.wire.bus import HEADER_BYTES, BusError
from disqueue.wire.records import (
    MAX_ADDRESS_BYTES,
    OLDEST_PROTOCOL_VERSION,
    PROTOCOL_VERSION,
    Address,
    NodeId,
    Uint16,
    Uint63,
)

MAX_HANDSHAKE_FRAME_BYTES = 4096
NONCE_BYTES = 32
MAC_BYTES = 32
MAX_REASON_CHARS = 300
MAX_IDENTITY_BYTES = 4 * MAX_ADDRESS_BYTES + 512
FEATURES: tuple[str, ...] = ()
"""Names of what this release can do beyond its protocol version. Both ends use what both name."""

INTENT_MEMBER = 0
"""The dialler has the acceptor in its table."""
INTENT_DISCOVERY = 1
"""The dialler heard of the acceptor from another member, its `introducer`."""
INTENT_MEET = 2
"""Somebody told the dialler to meet the acceptor."""

DIALLER = b"disqueue bus 1 dialler"
ACCEPTOR = b"disqueue bus 1 acceptor"

_MAGIC = b"Disqueue"
_Magic: TypeAlias = Annotated[bytes, Meta(min_length=len(_MAGIC), max_length=len(_MAGIC))]
_Nonce: TypeAlias = Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
_Mac: TypeAlias = Annotated[bytes, Meta(min_length=MAC_BYTES, max_length=MAC_BYTES)]
_Reason: TypeAlias = Annotated[str, Meta(max_length=MAX_REASON_CHARS)]
_Feature: TypeAlias = Annotated[str, Meta(max_length=64)]


class Identity(Struct, array_like=True, gc=False, frozen=True):
    """Who a node is. `address` is empty unless it is configured: the other end then takes what it sees on the link."""

    node_id: NodeId
    incarnation: Uint63
    address: Address
    port: Uint16
    bus_port: Uint16
    flags: Uint16
    intent: Annotated[int, Meta(ge=0, le=2)] = INTENT_MEMBER
    introducer: Annotated[bytes, Meta(max_length=40)] = b""


class Greeting(Struct, array_like=True, tag=1, gc=False):
    """The first message of both ends."""

    magic: _Magic
    oldest_version: Uint16
    version: Uint16
    nonce: _Nonce
    features: Annotated[list[_Feature], Meta(max_length=32)]


class Proof(Struct, array_like=True, tag=2, gc=False):
    """The second message. `identity` is an encoded `Identity`, covered by `mac` byte for byte."""

    identity: Annotated[bytes, Meta(max_length=MAX_IDENTITY_BYTES)]
    mac: _Mac


class Refusal(Struct, array_like=True, tag=3, gc=False):
    """Why an end closes the link. Unproven: fit for a log line, nothing is done on its word."""

    reason: _Reason


class Denial(Struct, array_like=True, tag=4, gc=False):
    """The acceptor is who it says and does not want the dialler; `mac` covers the reason too."""

    identity: Annotated[bytes, Meta(max_length=MAX_IDENTITY_BYTES)]
    reason: _Reason
    mac: _Mac


Message: TypeAlias = Greeting | Proof | Refusal | Denial

_encoder = msgspec.msgpack.Encoder()
_message_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)
_identity_decoder = msgspec.msgpack.Decoder(Identity)


def frame_message(message: Message) -> bytes:
    payload = _encoder.encode(message)
    return len(payload).to_bytes(HEADER_BYTES, "big") + payload


def refusal_frame(reason: str) -> bytes:
    return frame_message(Refusal(reason[:MAX_REASON_CHARS]))


class Refused(BusError):
    """The other end said that it does not want this link."""


class Denied(Refused):
    """The other end proved who it is and does not want this node."""

    def __init__(self, text: str, identity: Identity) -> None:
        super().__init__(text)
        self.identity = identity


class Handshake:
    """One end of a handshake, without its socket.

    `start()` and `receive(payload)` return bytes to send (maybe none). The dialler has `done` after the acceptor's
    proof. The acceptor has `peer` after the dialler's proof; its owner then sends what `accept()` or `deny(reason)`
    returns. `peer`, `version` and `features` are proven once they are set. All faults raise `BusError`.

    `oldest` and `newest` bound the protocol versions spoken; `nonce` is `NONCE_BYTES` fresh random bytes.
    """

    def __init__(
        self,
        role: bytes,
        identity: Identity,
        secret: bytes,
        nonce: bytes,
        *,
        features: tuple[str, ...] = FEATURES,
        oldest: int = OLDEST_PROTOCOL_VERSION,
        newest: int = PROTOCOL_VERSION,
    ) -> None:
        self._role = role
        self._identity = identity
        self._secret = secret
        self._oldest = oldest
        self._newest = newest
        self._own_features = features
        self._own_greeting = _encoder.encode(Greeting(_MAGIC, oldest, newest, nonce, list(features)))
        self._peer_greeting = b""
        self._own_proof_identity = b""
        self._peer_identity = b""
        self._version = 0
        self._features: frozenset[str] = frozenset()
        self.peer: Identity | None = None
        self.version = 0
        self.features: frozenset[str] = frozenset()
        self.done = False

    def start(self) -> bytes:
        """The greeting; the dialler sends it at once, the acceptor when it has the dialler's."""
        return len(self._own_greeting).to_bytes(HEADER_BYTES, "big") + self._own_greeting

    def receive(self, payload: bytes | bytearray | memoryview) -> bytes:
        """Take the next message of the other end; returns what to send back."""
        try:
            message = _message_decoder.decode(payload)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise BusError(f"malformed handshake: {error}") from None
        if isinstance(message, Refusal):
            raise Refused(f"the peer refused the link: {printable(message.reason)}")
        if isinstance(message, Greeting):
            return self._receive_greeting(message, bytes(payload))
        if isinstance(message, Denial):
            if self._role != DIALLER:
                raise BusError("denial out of order")
            identity = self._check(message.identity, message.mac, message.reason)
            raise Denied(f"the peer refused the link: {printable(message.reason)}", identity)
        self.peer = self._check(message.identity, message.mac)
        self._peer_identity = message.identity
        self.version = self._version
        self.features = self._features
        self.done = self._role == DIALLER
        return b""

    def accept(self) -> bytes:
        """The acceptor's last message: it has the dialler."""
        if self._role != ACCEPTOR or self.peer is None or self.done:
            raise BusError("nothing to accept")
        self.done = True
        return self._proof()

    def deny(self, reason: str) -> bytes:
        """The acceptor's last message: it does not have the dialler."""
        reason = reason[:MAX_REASON_CHARS]
        identity = _encoder.encode(self._identity)
        return frame_message(Denial(identity, reason, self._mac(self._role, identity, reason)))

    def _receive_greeting(self, greeting: Greeting, payload: bytes) -> bytes:
        if self._peer_greeting:
            raise BusError("second greeting")
        if greeting.magic != _MAGIC:
            raise BusError("the peer is not a Disqueue node")
        version = min(greeting.version, self._newest)
        if version < greeting.oldest_version or version < self._oldest:
            raise BusError(
                f"the peer speaks bus versions {greeting.oldest_version} to {greeting.version}, "
                f"this node {self._oldest} to {self._newest}: upgrade the older one first to a release between"
            )
        self._peer_greeting = payload
        self._version = version
        self._features = frozenset(greeting.features) & frozenset(self._own_features)
        return self._proof() if self._role == DIALLER else self.start()

    def _check(self, identity: bytes, mac: bytes, reason: str = "") -> Identity:
        """The identity in a message of the other end, once its code is right."""
        if not self._peer_greeting or self.peer is not None:
            raise BusError("proof out of order")
        other = ACCEPTOR if self._role == DIALLER else DIALLER
        if not hmac.compare_digest(mac, self._mac(other, identity, reason)):
            raise BusError("the peer has another cluster-secret than this node")
        try:
            return _identity_decoder.decode(identity)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise BusError(f"malformed identity: {error}") from None

    def _proof(self) -> bytes:
        identity = _encoder.encode(self._identity)
        self._own_proof_identity = identity
        return frame_message(Proof(identity, self._mac(self._role, identity)))

    def _mac(self, role: bytes, identity: bytes, reason: str = "") -> bytes:
        mine = self._role == DIALLER
        greetings = (self._own_greeting, self._peer_greeting) if mine else (self._peer_greeting, self._own_greeting)
        parts = [role, *greetings, identity, reason.encode()]
        if role == ACCEPTOR:
            parts.append(self._own_proof_identity if mine else self._peer_identity)
        digest = hmac.new(self._secret, digestmod=hashlib.sha256)
        for part in parts:  # lengths keep the borders between the parts
            digest.update(len(part).to_bytes(4, "big") + part)
        return digest.digest()


def printable(text: str) -> str:
    """`text` of a stranger, fit for one line of a log."""
    return "".join(char if char.isprintable() else "?" for char in text)
