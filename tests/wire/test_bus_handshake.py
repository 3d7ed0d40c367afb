"""The proof of the secret: who gets through, who does not, and what is never believed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue.wire.bus import HEADER_BYTES, BusError
from disqueue.wire.handshake import ACCEPTOR, DIALLER, INTENT_MEET, Denied, Handshake, Identity, Refused, printable, refusal_frame

ALICE = Identity(b"a" * 40, 11, "alice.example", 7711, 17711, 0, INTENT_MEET)
BOB = Identity(b"b" * 40, 22, "", 7712, 17712, 4)


@dataclass
class Pair:
    dialler: Handshake
    acceptor: Handshake


def pair(secret: bytes = b"secret", other: bytes | None = None, nonce: int = 0) -> Pair:
    dialler = Handshake(DIALLER, ALICE, secret, bytes([nonce]) * 32)
    return Pair(dialler, Handshake(ACCEPTOR, BOB, secret if other is None else other, bytes([nonce + 1]) * 32))


def body(frame: bytes) -> bytes:
    assert int.from_bytes(frame[:HEADER_BYTES], "big") == len(frame) - HEADER_BYTES
    return frame[HEADER_BYTES:]


def shake(both: Pair) -> list[bytes]:
    greeting = both.dialler.start()
    answer = both.acceptor.receive(body(greeting))
    proof = both.dialler.receive(body(answer))
    assert both.acceptor.receive(body(proof)) == b""
    last = both.acceptor.accept()
    assert both.dialler.receive(body(last)) == b""
    return [greeting, answer, proof, last]


@pytest.mark.parametrize("secret", [b"", b"s", b"long" * 100])
def test_both_learn_each_other(secret: bytes) -> None:
    both = pair(secret)
    frames = shake(both)
    assert both.dialler.peer == BOB
    assert both.acceptor.peer == ALICE
    assert both.dialler.done
    assert both.acceptor.done
    assert both.dialler.version == both.acceptor.version == 1
    assert not secret or all(secret not in frame or len(secret) == 1 for frame in frames)


@pytest.mark.parametrize(("one", "other"), [(b"a", b"b"), (b"", b"b"), (b"a", b"")])
def test_another_secret_is_noticed_by_the_acceptor_first(one: bytes, other: bytes) -> None:
    both = pair(one, other)
    proof = both.dialler.receive(body(both.acceptor.receive(body(both.dialler.start()))))
    with pytest.raises(BusError, match="another cluster-secret"):
        both.acceptor.receive(body(proof))
    assert both.acceptor.peer is None
    with pytest.raises(BusError):
        both.acceptor.accept()


def test_a_stranger_learns_nothing_of_the_acceptor() -> None:
    both = pair()
    answer = both.acceptor.receive(body(both.dialler.start()))
    assert BOB.node_id not in answer


def test_a_proof_does_not_fit_another_link() -> None:
    old = shake(pair())
    fresh = pair(nonce=50)
    fresh.acceptor.receive(body(old[0]))
    with pytest.raises(BusError, match="another cluster-secret"):
        fresh.acceptor.receive(body(old[2]))


def test_an_echo_of_the_own_proof_is_no_proof() -> None:
    both = pair()
    proof = both.dialler.receive(body(both.acceptor.receive(body(both.dialler.start()))))
    with pytest.raises(BusError):
        both.dialler.receive(body(proof))


def test_a_denial_is_proven_and_says_who_and_why() -> None:
    both = pair()
    both.acceptor.receive(body(both.dialler.receive(body(both.acceptor.receive(body(both.dialler.start()))))))
    denial = both.acceptor.deny("not a member")
    with pytest.raises(Denied, match="not a member") as caught:
        both.dialler.receive(body(denial))
    assert caught.value.identity == BOB
    forged = bytearray(denial)
    forged[forged.index(b"not a member")] ^= 1
    other = pair()
    other.dialler.receive(body(other.acceptor.receive(body(other.dialler.start()))))
    with pytest.raises(BusError, match="another cluster-secret"):
        other.dialler.receive(body(bytes(forged)))


def test_a_refusal_is_told_in_printable_text() -> None:
    with pytest.raises(Refused, match=r"refused the link: go \?\[31maway\?"):
        pair().dialler.receive(body(refusal_frame("go \x1b[31maway\n")))
    assert printable("a\nb\u2028") == "a?b?"


@pytest.mark.parametrize(
    ("one", "other", "spoken"),
    [((1, 2), (2, 3), 2), ((1, 1), (1, 5), 1), ((3, 4), (3, 4), 4), ((1, 1), (2, 3), None), ((5, 6), (1, 4), None)],
)
def test_neighbouring_versions_agree_and_others_are_refused(
    one: tuple[int, int], other: tuple[int, int], spoken: int | None
) -> None:
    dialler = Handshake(DIALLER, ALICE, b"", b"1" * 32, oldest=one[0], newest=one[1], features=("x", "y"))
    acceptor = Handshake(ACCEPTOR, BOB, b"", b"2" * 32, oldest=other[0], newest=other[1], features=("y", "z"))
    if spoken is None:
        with pytest.raises(BusError, match="bus versions"):
            acceptor.receive(body(dialler.start()))
        return
    shake(Pair(dialler, acceptor))
    assert dialler.version == acceptor.version == spoken
    assert dialler.features == acceptor.features == {"y"}


def test_messages_out_of_order() -> None:
    first = shake(pair())
    for index in (2, 3):
        with pytest.raises(BusError):
            pair().acceptor.receive(body(first[index]))
    both = pair()
    both.acceptor.receive(body(first[0]))
    with pytest.raises(BusError, match="second greeting"):
        both.acceptor.receive(body(first[0]))


@given(st.binary(max_size=200))
def test_random_bytes_are_an_error(data: bytes) -> None:
    with pytest.raises(BusError):
        pair().acceptor.receive(data)


@given(st.integers(0, 3), st.integers(0, 10_000), st.integers(1, 255))
def test_no_changed_byte_gets_through_unseen(message: int, position: int, change: int) -> None:
    """Whatever byte is changed on its way, no end believes anything that the other did not say."""
    both = pair()

    def carry(index: int, frame: bytes) -> bytes:
        payload = bytearray(body(frame))
        if index == message:
            payload[position % len(payload)] ^= change
        return bytes(payload)

    try:
        answer = both.acceptor.receive(carry(0, both.dialler.start()))
        proof = both.dialler.receive(carry(1, answer))
        both.acceptor.receive(carry(2, proof))
        both.dialler.receive(carry(3, both.acceptor.accept()))
    except BusError:
        pass
    assert both.acceptor.peer in (None, ALICE)
    assert both.dialler.peer in (None, BOB)
    assert message > 2 or both.acceptor.peer is None or both.dialler.peer == BOB
