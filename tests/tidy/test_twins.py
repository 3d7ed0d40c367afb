"""Plain and compiled modules: which is taken, and both in one process."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES

import pytest

import disqueue
from disqueue import _twins
from disqueue._twins import build_info, hot_modules, load_plain
from tests.tidy.sources import modules, nodes_of, shown

WIRE = "disqueue.wire.resp"
SHOW = f"import disqueue, {WIRE} as wire; print(disqueue.build_info().form, wire.__file__.endswith('.py'))"


def run_python(code: str, pure: str) -> str:
    environment = {**os.environ, "DISQUEUE_PURE": pure}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_plain_twins_are_plain_and_leave_everything_as_it_was() -> None:
    usual = importlib.import_module(WIRE)
    before = {name: module for name, module in sys.modules.items() if name.startswith("disqueue")}
    plain = load_plain([WIRE])[WIRE]
    assert (plain.__file__ or "").endswith(".py")
    assert plain is not usual
    assert {name: module for name, module in sys.modules.items() if name.startswith("disqueue")} == before
    assert importlib.import_module(WIRE) is usual
    assert disqueue.wire.resp is usual


def test_plain_twins_of_one_call_belong_together() -> None:
    loaded = load_plain([WIRE, "disqueue.wire.resp_common"])
    assert loaded[WIRE].ProtocolError is loaded["disqueue.wire.resp_common"].ProtocolError


def test_a_failing_import_leaves_everything_as_it_was() -> None:
    before = dict(sys.modules)
    with pytest.raises(ModuleNotFoundError):
        load_plain([WIRE, "disqueue.no_such_module"])
    assert sys.modules == before


def test_the_environment_makes_every_module_plain() -> None:
    assert run_python(SHOW, "1") == "plain True"


def test_without_it_the_compiled_form_is_taken_where_it_was_built() -> None:
    compiled = "compiled False" if _twins.is_compiled(WIRE) else "plain True"
    for pure in ("", "0"):
        assert run_python(SHOW, pure) == compiled


def test_hot_modules_are_those_with_a_declaration_file() -> None:
    assert WIRE in hot_modules()
    assert all(importlib.util.find_spec(name) for name in hot_modules())


def test_all_hot_modules_are_compiled_or_none() -> None:
    forms = {_twins.is_compiled(name) for name in hot_modules()}
    assert len(forms) == 1, f"some hot modules are compiled and some are not; suffixes: {EXTENSION_SUFFIXES}"


def test_the_reason_says_how_to_change_it() -> None:
    info = build_info()
    assert info.form in ("plain", "compiled")
    assert "\n" not in info.reason
    assert info.reason


def test_fractions_are_made_with_a_float() -> None:
    """The compiled form divides two C integers as C does: 50 / 1000 would be 0 there."""
    found = [
        f"{shown(path)}:{node.lineno}"
        for path in modules()
        if path.suffix == ".py" and path.with_suffix(".pxd").exists()
        for node in nodes_of(path)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        if isinstance(node.right, ast.Constant) and isinstance(node.right.value, int)
    ]
    assert not found, found
