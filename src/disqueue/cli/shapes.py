"""What the parts of well-known replies are called, so that they can be shown by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from disqueue.cli.reply import MapReply, Reply

Shaper = Callable[[Reply], Reply]


def _pairs(reply: Reply) -> Reply:
    """A flat array of names and values as a map."""
    if not isinstance(reply, list) or len(reply) % 2:
        return reply
    return MapReply(tuple(zip(reply[::2], reply[1::2], strict=True)))


def _job(reply: Reply) -> Reply:
    """[queue, id, body] and, with counters, name-value pairs after that."""
    if not isinstance(reply, list) or len(reply) < 3:
        return reply
    job = _named((b"queue", b"id", b"body"), reply)
    counters = _pairs(list(reply[3:]))
    return MapReply((*job.pairs, *counters.pairs)) if isinstance(counters, MapReply) else reply


def _named(names: tuple[bytes, ...], values: list[Reply]) -> MapReply:
    return MapReply(tuple(zip(names, values, strict=False)))


def _each(shape: Shaper) -> Shaper:
    return lambda reply: [shape(item) for item in reply] if isinstance(reply, list) else reply


def _show_or_id(reply: Reply) -> Reply:
    return _pairs(reply) if isinstance(reply, list) else reply


def _scan(name: bytes) -> Shaper:
    def shape(reply: Reply) -> Reply:
        if not isinstance(reply, list) or len(reply) != 2:
            return reply
        return MapReply(((b"cursor", reply[0]), (name, _each(_show_or_id)(reply[1]))))

    return shape


def _jobs_of_scan(reply: Reply) -> Reply:
    return [reply[0], _each(_show_or_id)(reply[1])] if isinstance(reply, list) and len(reply) == 2 else reply


def _hello(reply: Reply) -> Reply:
    if not isinstance(reply, list) or len(reply) < 2:
        return reply
    names = (b"id", b"host", b"port", b"priority")
    nodes: list[Reply] = [_named(names, node) if isinstance(node, list) else node for node in reply[2:]]
    return MapReply(((b"version", reply[0]), (b"id", reply[1]), (b"nodes", nodes)))


def _sections(reply: Reply) -> Reply:
    """The text of INFO: a map of sections; lines before the first section stand at the top."""
    if not isinstance(reply, bytes):
        return reply
    top: list[tuple[Reply, Reply]] = []
    sections: dict[bytes, list[tuple[Reply, Reply]]] = {}
    current = top
    for line in reply.splitlines():
        name, colon, value = line.partition(b":")
        if line.startswith(b"#"):
            current = sections.setdefault(line[1:].strip().lower(), [])
        elif colon:
            current.append((name, _number_or_text(value)))
    return MapReply((*top, *((name, MapReply(tuple(fields))) for name, fields in sections.items())))


def _number_or_text(value: bytes) -> Reply:
    return int(value) if value.isdigit() and (value == b"0" or not value.startswith(b"0")) else value


# Shown by name on a terminal too; there the order of Disque's own client is kept for all others.
_TERMINAL_SHAPES: dict[bytes, Shaper] = {
    b"SHOW": _pairs,
    b"QSTAT": _pairs,
    b"CONFIG GET": _pairs,
    b"JSCAN": lambda reply: [reply[0], _each(_show_or_id)(reply[1])] if isinstance(reply, list) and len(reply) == 2 else reply,
}
_JSON_SHAPES: dict[bytes, Shaper] = {
    b"SHOW": _pairs,
    b"QSTAT": _pairs,
    b"CONFIG GET": _pairs,
    b"GETJOB": _each(_job),
    b"QPEEK": _each(_job),
    b"JSCAN": _scan(b"jobs"),
    b"QSCAN": _scan(b"queues"),
    b"HELLO": _hello,
    b"INFO": _sections,
    b"CLUSTER INFO": _sections,
}

# Text for people: shown as it is in every style but JSON and CSV.
_PLAIN_TEXT = (b"INFO", b"CLUSTER NODES", b"CLUSTER INFO", b"CLIENT LIST", b"CLIENT INFO", b"LATENCY GRAPH", b"LATENCY DOCTOR")


def _lookup(words: Sequence[bytes], table: dict[bytes, Shaper]) -> Shaper | None:
    upper = [word.upper() for word in words[:2]]
    return table.get(b" ".join(upper)) or table.get(upper[0]) if upper else None


def shape_for_terminal(words: Sequence[bytes], reply: Reply) -> Reply:
    shape = _lookup(words, _TERMINAL_SHAPES)
    return shape(reply) if shape else reply


def shape_for_json(words: Sequence[bytes], reply: Reply) -> Reply:
    shape = _lookup(words, _JSON_SHAPES)
    return shape(reply) if shape else reply


def is_plain_text(words: Sequence[bytes]) -> bool:
    upper = [word.upper() for word in words[:2]]
    return bool(upper) and (upper[0] in _PLAIN_TEXT or b" ".join(upper) in _PLAIN_TEXT)
