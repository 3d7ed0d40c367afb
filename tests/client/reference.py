"""Writes docs/client.md: the introduction in this file, and what the docstrings say. Run: python -m tests.client.reference."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

from disqueue import client, testing
from disqueue.client import errors
from disqueue.client.endpoints import Settings
from disqueue.testing import fixtures

PAGE = Path(__file__).parents[2] / "docs/client.md"

LINE_WIDTH = 110
ARGUMENT = re.compile(r"^`?([a-z_]+(?:, [a-z_]+)*)`?: (.*)$", re.MULTILINE)

INTRODUCTION = """# The Python client

`disqueue.Client` for threads, `disqueue.AsyncClient` for asyncio: the same methods, awaited. New here? Begin with the
[tutorial](tutorial.md); for how to do things see the [recipes](recipes.md). This page is made from the docstrings.

```python
from disqueue import Client

client = Client("disque://:password@node1:7711,node2:7711?retry_for=30", serializer="json")
job_id = client.add("emails", {"to": "ada@example.org"}, retry=30)

for job in client.consume("emails", prefetch=10, stop_on_signals=True):
    with job:
        send(job.data)
```

## Nodes

A client is given some nodes and learns of the others (HELLO). It stays with one; which one is drawn by lot, so that clients
spread. It moves

* when the node can't be reached, hangs longer than `response_timeout` beyond what the command may block, or breaks off: the
  others at once, this one again after a back-off that grows from 50 ms to 3 s,
* when the node says that it is leaving (`-LEAVING`), is loading, or the others say that it fails,
* an `add`: when the node has no memory (`-OOM`) or can't write its journal (`-MISCONF`),
* a consumer: when most of its last hundred or more jobs were made on another node, which is healthy. Its jobs then need not
  travel.

Acknowledgements and the like go to the node that delivered the job, while it is there; any other node passes them on.

A command is tried for `retry_for` seconds, then it raises `NoNodeError`, which names each node and what was wrong with it.
`consume` tries for ever.

## What is sent twice

A request whose reply never came may have been carried out. Everything that does no harm when done twice is sent again:
GETJOB (for the rest of its time), acknowledgements, WORKING, all that only reads. `add` is sent again only while it is
certain that it was not carried out: the node could not be reached, or refused. Otherwise it raises `UnknownOutcomeError`,
unless you said `duplicates_ok=True`. `execute` sends again with `resend=True`.

## Threads, forks, event loops

A `Client` may be shared by threads, and goes on in a child after a fork, with connections of its own; jobs in hand stay with
the parent. Each consumer is for one thread. Cancelling a task that waits in `get` closes its connection; a job that was on its
way then comes back after its lease. An `AsyncClient` makes its connections in the loop it is used in. At most
`max_connections` to a node are open; who needs one more waits.

## Durations

Seconds (int or float) or `timedelta`. The server counts `delay`, `retry` and `ttl` in whole seconds: they are rounded up.
"""


def signature(function: Any, name: str) -> str:
    """`name(arguments) -> result`, without self and module names."""
    target = inspect.unwrap(function)
    text = str(inspect.signature(target))
    text = re.sub(r"\(self(, )?", "(", text, count=1)
    text = name + text.replace("'", "").replace("collections.abc.", "").replace("datetime.", "")
    if len(text) <= LINE_WIDTH:
        return text
    opening, arguments, result = re.fullmatch(r"(\w+\()(.*)(\).*)", text).groups()  # type: ignore[union-attr]
    return "\n".join([opening, *(f"    {argument}," for argument in arguments.split(", ")), result])


def document(subject: Any) -> str:
    """A docstring as Markdown: lines that explain an argument become a list."""
    return ARGUMENT.sub(r"* `\1`: \2", inspect.getdoc(subject) or "")


def members(kind: type, skip: frozenset[str] = frozenset()) -> list[str]:
    """Public methods and properties, in the order of the source."""
    lines = []
    for name, member in vars(kind).items():
        if name.startswith("_") or name in skip or not inspect.getdoc(member):
            continue
        if isinstance(member, property):
            lines += [f"#### {name}", "", document(member), ""]
        elif inspect.isfunction(member):
            lines += [f"#### {name}", "", "```python", signature(member, name), "```", "", document(member), ""]
    return lines


def class_section(kind: type, title: str | None = None, skip: frozenset[str] = frozenset()) -> list[str]:
    """A class with its members."""
    return [f"### {title or kind.__name__}", "", document(kind), "", *members(kind, skip)]


def dataclass_section(kind: type) -> list[str]:
    """A class of values: its fields, and what the source says below them."""
    source = inspect.getsource(kind)
    lines = [f"### {kind.__name__}", "", document(kind), "", "| Field | Type | |", "|---|---|---|"]
    for entry in dataclasses.fields(kind):
        note = re.search(rf'^    {entry.name}: [^\n]*\n    """(.*?)"""', source, re.MULTILINE)
        annotation = str(entry.type).replace("|", "\\|")
        lines.append(f"| `{entry.name}` | `{annotation}` | {note.group(1) if note else ''} |")
    return [*lines, ""]


def error_section() -> list[str]:
    """All exceptions, with the prefix of the server's reply."""
    codes: dict[type, list[str]] = {}
    for code, kind in errors.BY_CODE.items():
        codes.setdefault(kind, []).append(f"`-{code}`")
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, errors.DisqueueError)]
    rows = []
    for kind in kinds:
        first = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
        rows.append(f"| `{kind.__name__}` | {', '.join(codes.get(kind, []))} | {first} |")
    return ["## Errors", "", "All are `disqueue.client.DisqueueError`s.", "", "| Class | Reply | |", "|---|---|---|", *rows, ""]


def fixture_section() -> list[str]:
    """The fixtures for pytest."""
    lines = ["### Fixtures", "", inspect.getdoc(fixtures) or "", "", "| Fixture | |", "|---|---|"]
    for name, value in vars(fixtures).items():
        if name.startswith(("disqueue_", "start_")):
            lines.append(f"| `{name}` | {(inspect.getdoc(value) or '').splitlines()[0]} |")
    return [*lines, ""]


def page() -> str:
    """The whole page."""
    internal = frozenset({"run", "make_jobs", "after_fork"})
    sections = [
        INTRODUCTION,
        "## Reference",
        "",
        *class_section(client.Client, skip=internal),
        *dataclass_section(Settings),
        *class_section(client.Consumer),
        *class_section(client.Job),
        "Of every received job: `id`, `queue`, `body` (bytes), `nacks`, `additional_deliveries`, and",
        "",
        *members(client.ReceivedJob),
        "## What commands return",
        "",
        *(
            line
            for kind in (client.JobInfo, client.QueueInfo, client.PeekedJob, client.Hello, client.NodeInfo, client.ClusterNode)
            for line in dataclass_section(kind)
        ),
        *error_section(),
        "## For tests",
        "",
        *class_section(testing.MemoryBroker, skip=frozenset({"execute", "execute_async"})),
        *class_section(testing.Server),
        *class_section(testing.Cluster),
        *fixture_section(),
        "## Programs written for pydisque",
        "",
        "`from disqueue.compat.pydisque import Client` has the names, arguments and results of the package pydisque.",
    ]
    return "\n".join(sections).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
