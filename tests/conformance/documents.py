"""The parts of docs/ that are made from tables. `python -m tests.conformance.documents` writes them anew."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from disqueue.commands.catalogue import COMMANDS
from disqueue.commands.table import GROUPS as COMMAND_GROUPS
from disqueue.config.directives import DIRECTIVES, GROUPS, SPECIAL, Directive

from .differences import DIFFERENCES

DOCS = Path(__file__).parents[2] / "docs"

GROUP_TITLES = {
    "network": "Network",
    "limits": "Limits",
    "security": "Security",
    "memory": "Memory",
    "journal": "Journal",
    "cluster": "Cluster",
    "logging": "Log",
    "process": "Process",
    "watching": "Watching",
    "ignored": "Accepted without effect",
}


def differences() -> str:
    """The differences from Disque, grouped."""
    parts = []
    for group, entries in groupby(DIFFERENCES.values(), key=lambda entry: entry.group):
        rows = [f"| {cell(entry.disque)} | {cell(entry.ours)} | {cell(entry.why)} |" for entry in entries]
        parts.append(f"## {group}\n\n| Disque | Disqueue | Why |\n|---|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts)


def configuration() -> str:
    """Every option, grouped."""
    parts = []
    for group in GROUPS:
        rows = [directive_row(entry) for entry in DIRECTIVES if entry.group == group]
        head = "| Option | Default | Allowed | CONFIG SET | Meaning |\n|---|---|---|---|---|\n"
        parts.append(f"## {GROUP_TITLES[group]}\n\n{head}" + "\n".join(rows))
    rows = [f"| `{name}` | {cell(text)} |" for name, text in SPECIAL.items()]
    parts.append("## In files only, any number of times\n\n| Option | Meaning |\n|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts)


def directive_row(entry: Directive) -> str:
    """One option as a row of its table."""
    default = f"`{entry.default_text}`" if entry.default_text.strip('"') else "none"
    runtime = "yes" if entry.runtime else "no"
    return f"| `{entry.name}` | {default} | {cell(entry.kind.allowed)} | {runtime} | {cell(entry.help)} |"


def commands() -> str:
    """Every command with its syntax, grouped."""
    parts = []
    for group in COMMAND_GROUPS:
        entries = sorted((entry for entry in COMMANDS.values() if entry.group == group), key=lambda entry: entry.name)
        rows = []
        for entry in entries:
            line = f"{entry.name.decode().upper()} {entry.syntax}".strip()
            rows.append(f"| `{cell(line)}` | {cell(entry.summary)} | {' '.join(entry.flags)} |")
        parts.append(f"### {group.capitalize()}\n\n| Command | | Flags |\n|---|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts)


def cell(text: str) -> str:
    """A text that may stand in a table."""
    return text.replace("|", "\\|").replace("\n", " ")


TABLES = {"differences.md": differences, "configuration.md": configuration, "protocol.md": commands}
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->"


def renewed(name: str) -> str:
    """The text of a document with its tables made anew."""
    text = (DOCS / name).read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{TABLES[name]()}\n\n{END}{after}"


if __name__ == "__main__":
    for document in TABLES:
        (DOCS / document).write_text(renewed(document), encoding="utf-8")
