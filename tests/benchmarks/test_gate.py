"""The regression gate: what it lets pass, and that its work runs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

GATE = Path(__file__).parents[2] / "benchmarks" / "gate"


@pytest.fixture(scope="module")
def gate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gate_main", GATE / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_costs_more_than_the_limit_is_told(gate: ModuleType) -> None:
    told = gate.verdict({"pipelined": 2.6, "replicated": 2.4}, {"pipelined": 2.0, "replicated": 2.0}, 1.25)
    assert len(told) == 1
    assert told[0].startswith("pipelined: a job costs 2.600 rounds of the calibration, 2.000 are usual and 2.500 the limit")


def test_a_workload_without_a_limit_passes(gate: ModuleType) -> None:
    assert gate.verdict({"pipelined": 9.0}, {}, 1.25) == []


def test_a_cost_is_in_rounds_of_the_calibration_and_without_the_start(gate: ModuleType) -> None:
    a_job = {"calibration": 10.0, "pipelined": 20.0, "journaled": 30.0, "replicated": 50.0}
    measured = gate.measure(lambda name, jobs: 1000.0 + a_job[name] * jobs, 1, 1)
    assert measured == {
        "pipelined": 2.0,
        "journaled": 3.0,
        "replicated": 5.0,
    }


@pytest.mark.parametrize("workload", ["calibration", "pipelined", "journaled", "single", "replicated", "federated"])
def test_the_work_runs(workload: str) -> None:
    subprocess.run([sys.executable, str(GATE / "work.py"), workload, "100"], timeout=60, check=True)
