"""All options as text, from their table."""

from __future__ import annotations

import textwrap

from disqueue.config.directives import DIRECTIVES, GROUPS, SPECIAL


def options_text() -> str:
    """Return every option with its default, what is allowed and what it does, by group."""
    lines: list[str] = []
    for group in GROUPS:
        lines.append(f"{group}:" if group != "ignored" else "accepted without effect:")
        for directive in DIRECTIVES:
            if directive.group == group:
                lines.append(f"  --{directive.name} (default {directive.default_text or 'none'})")
                text = f"{directive.help} Allowed: {directive.kind.allowed}."
                lines.extend(textwrap.wrap(text, 100, initial_indent=" " * 6, subsequent_indent=" " * 6))
        lines.append("")
    lines.append("in a file only:")
    for name, text in SPECIAL.items():
        lines.append(f"  {name}")
        lines.extend(textwrap.wrap(text, 100, initial_indent=" " * 6, subsequent_indent=" " * 6))
    return "\n".join(lines) + "\n"
