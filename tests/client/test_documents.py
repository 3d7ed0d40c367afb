"""The tutorial, the recipes, the examples and the reference: all is run, and shown output is what comes out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from disqueue.client import Client
from disqueue.testing import MemoryBroker, Server, free_port

from . import reference

ROOT = Path(__file__).parents[2]
# Child processes run elsewhere, with the package that is under test here.
PYTHON_PATH = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)
BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def environment(directory: Path) -> dict[str, str]:
    """In which `disqueue` and `python` are those of this test, and Python finds this source."""
    commands = directory / "bin"
    commands.mkdir()
    for name, arguments in (("python", ""), ("disqueue", "-m disqueue")):
        command = commands / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        command.chmod(0o755)
    paths = {"PATH": f"{commands}:{os.environ['PATH']}", "PYTHONPATH": PYTHON_PATH}
    return os.environ | paths


def session_of(text: str, directory: Path) -> tuple[str, list[tuple[str, str]]]:
    """Write the files of a document; return a script of its commands, and each command with the output that is shown."""
    script, shown = ["set -e", 'trap "kill 0" EXIT'], []
    for kind, name, body in BLOCK.findall(text):
        if kind == "python" and name:
            script.append(f"cat > {name} <<'END-OF-FILE'\n{body}END-OF-FILE")
        elif kind == "console":
            for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE):
                script += [f"echo '#{len(shown)}'", command]
                shown.append((command, output))
    return "\n".join(script), shown


def pattern_of(output: str) -> str:
    """A regular expression for shown output; … stands for anything."""
    return ".*".join(re.escape(part) for part in output.split("…"))


def test_the_tutorial(tmp_path: Path) -> None:
    text = (ROOT / "docs/tutorial.md").read_text().replace("7711", str(free_port()))
    script, shown = session_of(text, tmp_path)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=100,
        start_new_session=True,
    )
    outputs = re.split(r"^#\d+\n", done.stdout, flags=re.MULTILINE)[1:]
    assert len(outputs) == len(shown) > 10, done.stdout + done.stderr
    for (command, wanted), output in zip(shown, outputs, strict=True):
        assert re.fullmatch(pattern_of(wanted), output, re.DOTALL), f"{command}\n{output}\n{done.stderr}"


RECIPES = [body for kind, _, body in BLOCK.findall((ROOT / "docs/recipes.md").read_text()) if kind == "python"]


@pytest.mark.parametrize("number", range(len(RECIPES)))
def test_recipes(number: int) -> None:
    broker = MemoryBroker(virtual_time=True)
    exec(compile(RECIPES[number], f"recipe {number}", "exec"), {"broker": broker, "client": broker.client()})


def run_example(server: Server, *arguments: str) -> str:
    variables = os.environ | {"DISQUEUE_URL": server.url, "PYTHONPATH": PYTHON_PATH}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT / "examples", env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_examples(disqueue_server: Server, disqueue_client: Client) -> None:
    assert run_example(disqueue_server, "producer.py") == "10 orders\ncareful: True\nreminder: active\n"
    assert run_example(disqueue_server, "consumer.py") == "given back: order 3 fails at first\n11 orders done\n"
    assert run_example(disqueue_server, "async_pipeline.py") == "20 pages, 20 links\n"


@pytest.mark.parametrize(
    ("handler", "queue", "wanted"), [("tasks:shout", "shouts", "HELLO\n"), ("tasks:whisper", "whispers", "hello\n")]
)
def test_example_handlers(disqueue_server: Server, disqueue_client: Client, handler: str, queue: str, wanted: str) -> None:
    disqueue_client.add(queue, b"Hello")
    assert run_example(disqueue_server, "-m", "disqueue", "worker", handler, "--queue", queue, "--idle-timeout", "0.5") == wanted


def test_the_reference_is_up_to_date() -> None:
    assert (ROOT / "docs/client.md").read_text() == reference.page(), "run: python -m tests.client.reference"
