"""Real processes that are killed, stopped and cut off while clients work: no confirmed job is lost, nothing stays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"
SHORT = (
    "--duration",
    "6",
    "--on",
    "1.5",
    "--off",
    "1.5",
    "--calm",
    "1",
    "--quiet",
    "3",
    "--rate",
    "40",
    "--node-timeout",
    "2000",
    "--json",
)


def run(*words: str) -> dict[str, Any]:
    """Run the script for a short while; its verdict."""
    done = subprocess.run([sys.executable, str(SCRIPT), *SHORT, *words], capture_output=True, text=True, timeout=180, check=False)
    assert done.stdout, done.stderr
    verdict: dict[str, Any] = json.loads(done.stdout)
    assert verdict["valid"], verdict
    assert verdict["confirmed"] > 0
    assert verdict["delivered"] >= verdict["confirmed"]
    assert not any(verdict["registered_jobs"])
    return verdict


def nemeses() -> str:
    """All that this machine can do."""
    refused = subprocess.run(
        [sys.executable, str(SCRIPT), "--nemesis", "partition", "--check"], capture_output=True, timeout=60, check=False
    ).returncode
    return "kill,stop" if refused else "kill,partition,stop"


def test_nothing_confirmed_is_lost_in_memory() -> None:
    run("--nodes", "5", "--nemesis", nemeses(), "--replicate", "3")


def test_nothing_confirmed_is_lost_when_all_nodes_die_at_once_with_a_journal() -> None:
    run("--nodes", "3", "--nemesis", "kill-all", "--replicate", "2", "--appendfsync", "always")


def test_nothing_is_lost_while_nodes_change_their_release_one_by_one() -> None:
    plain = f"env DISQUEUE_PURE=1 {sys.executable} -m disqueue server"
    run("--nodes", "3", "--nemesis", "upgrade", "--other", plain, "--replicate", "2", "--duration", "9", "--on", "0.2")
