"""The notation of transcripts: a pattern fits what it says and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from .patterns import mismatch
from .replies import Reply, ReplyDecoder
from .transcript import Transcript, duration_ms, play, read_transcripts, words

FITS = [
    ("+OK", b"+OK\r\n"),
    ("-ERR a b", b"-ERR a b\r\n"),
    (":1..3", b":2\r\n"),
    ("$-1", b"$-1\r\n"),
    ("*-1", b"*-1\r\n"),
    ("_", b"_\r\n"),
    ("*[]", b"*0\r\n"),
    ("?", b"*1\r\n:1\r\n"),
    ('*[$a $"b c" :? *[+{id}] $-1]', b"*5\r\n$1\r\na\r\n$3\r\nb c\r\n:7\r\n*1\r\n+x\r\n$-1\r\n"),
    ("*[:1 ...]", b"*3\r\n:1\r\n:2\r\n:3\r\n"),
    ("*[... $b :2 ...]", b"*6\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n$1\r\nc\r\n:3\r\n"),
    ("*~[:1 :2]", b"*2\r\n:2\r\n:1\r\n"),
    ("%[$a :1]", b"%1\r\n$1\r\na\r\n:1\r\n"),
    ("$/a.*b/", b"$4\r\na\r\nb\r\n"),
]
DOES_NOT = [
    ("+OK", b"$2\r\nOK\r\n"),
    ("$OK", b"+OK\r\n"),
    ("-ERR a", b"-ERR a b\r\n"),
    (":1..3", b":4\r\n"),
    ("$-1", b"*-1\r\n"),
    ("*-1", b"$-1\r\n"),
    ("*-1", b"*0\r\n"),
    ("*[]", b"*-1\r\n"),
    ("$?", b"$-1\r\n"),
    ("*[:1]", b"*2\r\n:1\r\n:2\r\n"),
    ("*[:1 :2]", b"*1\r\n:1\r\n"),
    ("*[... $b :2]", b"*4\r\n$1\r\nb\r\n:2\r\n$1\r\nc\r\n:3\r\n"),
    ("*~[:1 :1]", b"*2\r\n:2\r\n:1\r\n"),
    ("*[+{id} +{id}]", b"*2\r\n+a\r\n+b\r\n"),
    ("%[$a :1]", b"*2\r\n$1\r\na\r\n:1\r\n"),
    ("$/a/", b"$2\r\nab\r\n"),
]


def decoded(data: bytes) -> Reply:
    """The reply, received byte by byte."""
    decoder = ReplyDecoder()
    for number in range(len(data)):
        assert decoder.next() is None
        decoder.feed(data[number : number + 1])
    reply = decoder.next()
    assert reply is not None
    return reply


@pytest.mark.parametrize(("pattern", "data"), FITS)
def test_fits(pattern: str, data: bytes) -> None:
    assert mismatch(pattern, decoded(data), {}) is None


@pytest.mark.parametrize(("pattern", "data"), DOES_NOT)
def test_does_not_fit(pattern: str, data: bytes) -> None:
    assert mismatch(pattern, decoded(data), {})


def test_names_are_kept() -> None:
    bindings = {}
    assert mismatch("*[+{id} :{n}]", decoded(b"*2\r\n+abc\r\n:7\r\n"), bindings) is None
    assert words('ACKJOB {id} "{id}" x{n}', bindings) == [b"ACKJOB", b"abc", b"{id}", b"x7"]


def test_words_and_durations() -> None:
    assert words(r'A "b \x00\n\"" ""', {}) == [b"A", b'b \x00\n"', b""]
    assert [duration_ms(text) for text in ("1.5s", "20ms", "-1d")] == [1500, 20, -86_400_000]


class Deaf:
    """A session that answers OK to everything."""

    def send(self, client: str, request: list[bytes]) -> None:
        self.sent = (client, request)

    def receive(self, client: str) -> Reply:
        return Reply("+", b"OK")


def test_a_transcript_that_is_not_met_fails_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("# remark\n== one\nA\n    +OK\n== two [differs: key]\nB: PING\n    +PONG\n")
    one, two = read_transcripts(path)
    assert (one.title, one.differs, two.differs) == ("one", None, "key")
    session = Deaf()
    play(one, session)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=r"some.txt:7 \(two\)\nwanted \+PONG"):
        play(two, session)  # type: ignore[arg-type]
    assert session.sent == ("B", [b"PING"])
    assert not Transcript("x", "y").changes_configuration
