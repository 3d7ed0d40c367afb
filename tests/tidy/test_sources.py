"""Sizes and habits of the sources."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.tidy.sources import ROOT, SOURCES, modules, nodes_of, python_files, shown, text_files, text_of

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
HERE = Path(__file__)
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
# Paths of one machine have no place in a project that runs on all.
MACHINE_PATHS = re.compile(r"(?<![\w.])/(work|opt/(tools|venv|peers)|home/\w+|root)/")
SILENT_PACKAGES = ("core", "wire", "server")
CYTHON_FUNCTION = re.compile(r"^( *)(?:def|cpdef|cdef)\b.*\(")


def python_functions(path: Path) -> list[tuple[str, int, int]]:
    """Name, line and number of lines of every function."""
    return [
        (node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def cython_functions(path: Path) -> list[tuple[str, int, int]]:
    """The same for Cython, by indentation: a function ends where a line stands as far left as its head."""
    lines = text_of(path).splitlines()
    found = []
    for start, line in enumerate(lines):
        match = CYTHON_FUNCTION.match(line)
        if match is None:
            continue
        indent = len(match[1])
        end = start + 1
        while end < len(lines) and (
            not lines[end] or lines[end][0] in "#)" or len(lines[end]) - len(lines[end].lstrip()) > indent
        ):
            end += 1
        found.append((line.strip(), start + 1, end - start))
    return found


def test_files_are_short() -> None:
    long = [f"{shown(path)}: {count}" for path in python_files() if (count := len(text_of(path).splitlines())) > MAX_FILE_LINES]
    assert not long, "\n".join(long)


def test_functions_fit_on_a_screen() -> None:
    long = []
    for path in python_files():
        functions = python_functions(path) if path.suffix == ".py" else cython_functions(path)
        long += [f"{shown(path)}:{line} {name}: {lines} lines" for name, line, lines in functions if lines > MAX_FUNCTION_LINES]
    assert not long, "\n".join(long)


def test_nothing_is_left_for_later() -> None:
    wrong = [
        f"{shown(path)}:{number}"
        for path in text_files()
        if path != HERE
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_path_of_one_machine() -> None:
    wrong = [
        f"{shown(path)}:{number}: {line.strip()[:100]}"
        for path in text_files()
        if path != HERE
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if MACHINE_PATHS.search(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_broker_does_not_print() -> None:
    wrong = [
        f"{shown(path)}:{node.lineno}"
        for path in modules()
        if path.suffix == ".py" and path.relative_to(SOURCES).parts[0] in SILENT_PACKAGES
        for node in nodes_of(path)
        if isinstance(node, ast.Name) and node.id == "print"
    ]
    assert not wrong, "\n".join(wrong)


def test_every_declaration_file_has_its_module() -> None:
    lonely = [
        shown(path)
        for path in SOURCES.rglob("*.pxd")
        if not path.with_suffix(".py").exists() and not path.with_suffix(".pyx").exists()
    ]
    assert not lonely, "\n".join(lonely)


def test_every_kernel_has_a_plain_twin() -> None:
    wrong = [shown(path) for path in SOURCES.rglob("*.pyx") if not path.with_suffix(".py").exists()]
    assert not wrong, "\n".join(wrong)


def test_every_package_is_typed_and_importable() -> None:
    assert (SOURCES / "py.typed").exists()
    folders = {path.parent for path in modules()}
    assert not [shown(folder) for folder in folders if not (folder / "__init__.py").exists()]
    assert (ROOT / "CHANGELOG.md").exists()
