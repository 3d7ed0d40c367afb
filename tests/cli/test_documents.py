"""README and docs/cli.md: what they show runs as typed, and their links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from disqueue.cli.nodes import LocalNode, server_environment
from tests.cli.conftest import ROOT, Run

DOCUMENTS = ("README.md", "docs/cli.md")
JOB_ID = re.compile(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)


def examples(document: str) -> list[tuple[str, str]]:
    """Commands after `$ `, each with the output that is shown below it."""
    pairs = [entry.partition("\n") for block in blocks(document, "console") for entry in block.split("$ ") if entry]
    return [(command, output) for command, _, output in pairs]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links(document: str) -> None:
    folder = (ROOT / document).parent
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / document).read_text())
    assert links
    assert [link for link in links if not (folder / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_console_examples(document: str, nodes: Callable[[int], list[LocalNode]], disqueue: Run) -> None:
    (node,) = nodes(1)
    url = f"disque://127.0.0.1:{node.port}"
    job_id = ""
    for command, shown in examples(document):
        text = JOB_ID.sub(lambda _: job_id, command)  # noqa: B023
        source, _, line = text.rpartition(" | ")
        words = shlex.split(line)
        assert Path(words[0]).name == "disqueue"
        stdin = subprocess.run(source, shell=True, capture_output=True, check=True, timeout=60).stdout if source else b""
        done = disqueue(*words[1:], stdin=stdin, DISQUEUE_URL=url)
        out = done.stdout.decode()
        assert JOB_ID.sub("ID", out) == JOB_ID.sub("ID", shown).removesuffix("\n") + "\n", command
        if found := JOB_ID.search(out):
            job_id = found.group()


def test_the_python_example(nodes: Callable[[int], list[LocalNode]]) -> None:
    (node,) = nodes(1)
    (code,) = blocks("README.md", "python")
    environment = {**server_environment(), "DISQUEUE_URL": f"disque://127.0.0.1:{node.port}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert (done.stdout, done.stderr) == ("b'to: ann'\n", "")
