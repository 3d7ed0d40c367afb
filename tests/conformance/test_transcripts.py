"""Every transcript of `transcripts/`, played on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from .socket_session import SocketSession
from .transcript import Transcript, play, read_transcripts

DIRECTORY = Path(__file__).parent / "transcripts"
TRANSCRIPTS = [transcript for path in sorted(DIRECTORY.glob("*.txt")) for transcript in read_transcripts(path)]


def parameter(transcript: Transcript) -> object:
    """The parameter of one transcript, marked where it differs from the original."""
    marks = [pytest.mark.differs(transcript.differs)] if transcript.differs else []
    return pytest.param(transcript, id=str(transcript), marks=marks)


@pytest.mark.parametrize("transcript", [parameter(transcript) for transcript in TRANSCRIPTS])
def test_transcript(transcript: Transcript, session: SocketSession) -> None:
    observer = session.connection("observer")
    before = observer.call("CONFIG", "GET", "*").fields() if transcript.changes_configuration else {}
    try:
        play(transcript, session)
    finally:
        if before:
            restore(session, before)


def restore(session: SocketSession, before: dict[bytes, object]) -> None:
    """Set what a transcript has changed back to what it was."""
    observer = session.connection("observer")
    observer.call("AUTH", "secret")
    now = observer.call("CONFIG", "GET", "*").fields()
    for name, value in before.items():
        if now[name] != value:
            assert str(observer.call(b"CONFIG", b"SET", name, value.data)) == "+OK"  # type: ignore[attr-defined]
