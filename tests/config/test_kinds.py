"""Values of options: what is read is what is written, and what is not allowed is refused with a text that helps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue.config.directives import BY_NAME, DIRECTIVES, Directive, DirectiveError, find, parse
from disqueue.config.kinds import OutputLimit, Size, Value, format_size
from disqueue.config.words import split_words


@pytest.mark.parametrize("directive", DIRECTIVES, ids=lambda directive: directive.name)
def test_every_default_survives_file_and_config_set(directive: Directive) -> None:
    kind = directive.kind
    if directive.default != ".":
        assert directive.default == kind.parse(split_words(kind.write(directive.default)))
    assert directive.default == kind.parse([kind.show(directive.default)])
    assert directive.help.endswith((".", "ones (PEM)."))
    assert kind.allowed


@pytest.mark.parametrize(
    ("name", "words", "value"),
    [
        ("port", ["0"], 0),
        ("maxmemory", ["3mb"], 3 << 20),
        ("maxmemory", ["3M"], 3_000_000),
        ("maxmemory", ["0"], 0),
        ("tcp-keepalive", ["yes"], 300),
        ("tcp-keepalive", ["no"], 0),
        ("tcp-keepalive", ["60"], 60),
        ("unixsocketperm", ["770"], 0o770),
        ("bind", ["127.0.0.1", "::1"], ("127.0.0.1", "::1")),
        ("bind", ["127.0.0.1 ::1"], ("127.0.0.1", "::1")),
        ("slowlog-log-slower-than", ["-1"], -1),
        ("client-output-buffer-limit", ["normal", "1mb", "10kb", "60"], OutputLimit(1 << 20, 10 << 10, 60)),
        ("client-output-buffer-limit", ["normal 1mb 10kb 60"], OutputLimit(1 << 20, 10 << 10, 60)),
        ("loglevel", ["VERBOSE"], "verbose"),
        ("save", ["900", "1"], "900 1"),
        ("requirepass", [""], ""),
    ],
)
def test_values(name: str, words: list[str], value: Value) -> None:
    assert value == parse(BY_NAME[name], words)


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("port", ["65536"], "from 0 to 65535"),
        ("port", ["x"], "from 0 to 65535"),
        ("port", ["+1"], "from 0 to 65535"),
        ("port", [], "it takes a value"),
        ("port", ["1", "2"], "2 values instead of one"),
        ("maxmemory", ["3zb"], "k, kb, m, mb, g or gb"),
        ("maxmemory", ["-1"], "bytes"),
        ("appendonly", ["maybe"], "yes or no"),
        ("appendfsync", ["sometimes"], "everysec, always, no"),
        ("unixsocketperm", ["888"], "octal"),
        ("appendfilename", ["a/b"], "without a path"),
        ("bind", ["a"] * 17, "at most 16"),
        ("cluster-node-timeout", ["0"], "from 1 "),
        ("client-output-buffer-limit", ["slave", "0", "0", "0"], "normal HARD SOFT SECONDS"),
        ("requirepass", ["x" * 513], "at most 512 bytes"),
    ],
)
def test_what_is_not_allowed_is_said(name: str, words: list[str], said: str) -> None:
    with pytest.raises(DirectiveError, match=f"{name} .*{said}"):
        parse(BY_NAME[name], words)


def test_a_secret_is_not_repeated_in_an_error() -> None:
    with pytest.raises(DirectiveError) as caught:
        parse(BY_NAME["requirepass"], ["secret", "words"])
    assert "secret" not in str(caught.value)


def test_a_typing_error_gets_the_nearest_name() -> None:
    with pytest.raises(DirectiveError, match="there is no option 'maxmemroy'; did you mean 'maxmemory'"):
        find("maxmemroy")


@given(st.integers(0, (1 << 63) - 1))
def test_sizes_are_read_as_written(size: int) -> None:
    assert size == Size().parse([format_size(size)])
