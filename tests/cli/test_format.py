"""Replies as a person, a script, a table program and a JSON reader get them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue.cli.format import CSV, JSON, RAW, TERMINAL, format_reply, quote
from disqueue.cli.reply import ErrorReply, MapReply, Reply, Status
from disqueue.config.words import split_words

_JOBS: Reply = [[b"q", b"D-1", b"body", b"nacks", 1, b"additional-deliveries", 0], [b"q", b"D-2", b"\xff", b"nacks", 0]]
_QSTAT: Reply = [b"name", b"q", b"len", 3, b"import-from", [b"n1", b"n2"], b"pause", b"none"]


def text(style: str, command: str, reply: Reply) -> str:
    return format_reply(style, command.encode().split(), reply).decode()


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (Status(b"OK"), "OK"),
        (b'a "b"\n\x00\xc3\xa9\xff\\', '"a \\"b\\"\\n\\x00é\\xff\\\\"'),
        (7, "(integer) 7"),
        (None, "(nil)"),
        (True, "(true)"),
        (1.5, "(double) 1.5"),
        ([], "(empty array)"),
        (MapReply(()), "(empty map)"),
        ([[b"q", 1], b"x"], '1) 1) "q"\n   2) (integer) 1\n2) "x"'),
        ([1] * 10, "\n".join(f"{n:>2}) (integer) 1" for n in range(1, 11))),
        (MapReply(((b"a", 1), (b"long", [1, 2]))), "a    (integer) 1\nlong 1) (integer) 1\n     2) (integer) 2"),
        ([ErrorReply("ERR x")], "1) (error) ERR x"),
    ],
)
def test_terminal(reply: Reply, shown: str) -> None:
    assert text(TERMINAL, "X", reply) == shown + "\n"


def test_known_replies_are_shown_by_name_on_a_terminal() -> None:
    shown = 'name        "q"\nlen         (integer) 3\nimport-from 1) "n1"\n            2) "n2"\npause       "none"\n'
    assert text(TERMINAL, "qstat q", _QSTAT) == shown
    assert text(TERMINAL, "config get x", [b"x", b"1"]) == 'x "1"\n'
    assert text(TERMINAL, "jscan reply all", [b"0", [[b"id", b"D-1"]]]) == '1) "0"\n2) 1) id "D-1"\n'


def test_texts_for_people_are_not_quoted() -> None:
    assert text(TERMINAL, "info server", b"# Server\r\nport:1\r\n\r\n") == "# Server\r\nport:1\n"
    assert text(TERMINAL, "cluster nodes", b"a b\nc d\n") == "a b\nc d\n"
    assert text(TERMINAL, "cluster myid", b"abc") == '"abc"\n'


def test_raw_joins_values() -> None:
    assert text(RAW, "X", [[b"a", 1], None, b"b"]) == "a\n1\n\nb\n"
    assert format_reply(RAW, [b"X"], [b"a", b"b"], b", ") == b"a, b\n"
    assert format_reply(RAW, [b"X"], b"\x00\xff") == b"\x00\xff\n"
    assert text(RAW, "X", MapReply(((b"a", True),))) == "a\ntrue\n"


def test_csv_quotes_strings() -> None:
    assert text(CSV, "X", [b'a "b", c', 1, None, [b"d"]]) == '"a ""b"", c",1,NIL,"d"\n'
    assert text(CSV, "X", ErrorReply("ERR x")) == 'ERROR,"ERR x"\n'


def test_json_names_the_parts() -> None:
    first, second = json.loads(text(JSON, "GETJOB WITHCOUNTERS FROM q", _JOBS))
    assert first == {"queue": "q", "id": "D-1", "body": "body", "nacks": 1, "additional-deliveries": 0}
    assert second["body"] == {"base64": "/w=="}
    assert json.loads(text(JSON, "QSTAT q", _QSTAT))["import-from"] == ["n1", "n2"]
    assert json.loads(text(JSON, "QSCAN", [b"0", [b"q"]])) == {"cursor": "0", "queues": ["q"]}
    assert json.loads(text(JSON, "JSCAN", [b"0", [Status(b"D-1")]])) == {"cursor": "0", "jobs": ["D-1"]}
    hello = json.loads(text(JSON, "HELLO", [1, b"id", [b"id", b"", b"7711", b"1"]]))
    assert hello["nodes"] == [{"id": "id", "host": "", "port": "7711", "priority": "1"}]
    info = json.loads(text(JSON, "INFO", b"# Jobs\r\nregistered_jobs:7\r\n\r\n# Server\r\nrun_id:0012\r\n"))
    assert info == {"jobs": {"registered_jobs": 7}, "server": {"run_id": "0012"}}
    assert json.loads(text(JSON, "X", ErrorReply("ERR x"))) == {"error": "ERR x"}


@pytest.mark.parametrize("command", ["SHOW", "QSTAT", "GETJOB", "QPEEK", "JSCAN", "QSCAN", "HELLO", "INFO", "CONFIG GET x"])
@pytest.mark.parametrize("reply", [None, 1, b"x", [], [1], [[1]], [b"a", b"b", b"c"], MapReply(((b"a", 1),))])
def test_unexpected_shapes_are_shown_as_they_are(command: str, reply: Reply) -> None:
    for style in (TERMINAL, JSON, RAW, CSV):
        assert text(style, command, reply).endswith("\n")


@given(st.binary())
def test_what_is_shown_can_be_typed(body: bytes) -> None:
    (word,) = split_words(quote(body))
    assert word.encode("utf-8", "surrogateescape") == body
