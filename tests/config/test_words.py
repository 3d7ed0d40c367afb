"""Words of a line: quotes, and the way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue.config.words import quote_word, split_words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("port 7711", ["port", "7711"]),
        ("  a\t b\r", ["a", "b"]),
        (r'a "b c" ""', ["a", "b c", ""]),
        (r'"\n\r\t\a\b\x41\q\\"', ["\n\r\t\a\bAq\\"]),
        (r"'a\'b' '\n'", ["a'b", r"\n"]),
        (r'"\xff"', [b"\xff".decode("utf-8", "surrogateescape")]),
        ("", []),
    ],
)
def test_words(line: str, words: list[str]) -> None:
    assert words == split_words(line)


@pytest.mark.parametrize("line", ['a "b', "a 'b", '"a"b', "'a'b"])
def test_bad_quotes_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match="quote"):
        split_words(line)


@given(st.lists(st.binary()))
def test_what_is_quoted_is_read_back(words: list[bytes]) -> None:
    texts = [word.decode("utf-8", "surrogateescape") for word in words]
    assert texts == split_words(" ".join(quote_word(text) for text in texts))
