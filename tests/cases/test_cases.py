"""Every transcript of `transcripts/`, played on a broker in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..conformance.transcript import Transcript, play, read_transcripts
from .broker_session import BrokerSession

DIRECTORY = Path(__file__).parent / "transcripts"
TRANSCRIPTS = [transcript for path in sorted(DIRECTORY.glob("*.txt")) for transcript in read_transcripts(path)]


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=str)
def test_case(transcript: Transcript) -> None:
    session = BrokerSession()
    play(transcript, session)
    session.check_integrity()
