"""Imports go one way, and the pure packages reach nothing that is not deterministic."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.sources import SOURCES, modules, nodes_of, shown, text_of

# What each package may import beside itself; docs/architecture.md explains it.
MAY_IMPORT: dict[str, set[str]] = {
    "wire": set(),
    "core": {"wire"},
    "config": set(),
    "journal": {"wire", "core"},
    "commands": {"wire", "core", "config", "journal"},
    "server": {"wire", "core", "config", "journal", "commands"},
    "simulation": {"wire", "core", "config", "journal", "commands"},
    "client": set(),
    "compat": {"client"},
    "testing": {"wire", "core", "config", "journal", "commands", "server", "simulation", "client"},
    "cli": {"wire", "core", "config", "journal", "commands", "server", "simulation", "client", "compat", "testing"},
}
# Of the modules at the root only these may be imported from everywhere.
FOUNDATION = {"_twins", ""}
PURE_PACKAGES = ("core", "wire")
NOT_DETERMINISTIC = {
    "asyncio",
    "concurrent",
    "datetime",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
    "uvloop",
}
CYTHON_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+c?import|c?import\s+([\w.]+))", re.MULTILINE)


def imported(path: Path) -> Iterator[str]:
    """The absolute names of the modules that a file imports, at the top or inside of functions."""
    if path.suffix != ".py":
        for match in CYTHON_IMPORT.finditer(text_of(path)):
            yield match[1] or match[2]
        return
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{shown(path)}:{node.lineno}: relative import; write the absolute name"
            yield node.module or ""
            if node.module == "disqueue":
                yield from (f"disqueue.{alias.name}" for alias in node.names if (SOURCES / alias.name).is_dir())


def package_of(path: Path) -> str:
    parts = path.relative_to(SOURCES).parts
    return parts[0] if len(parts) > 1 else ""


def test_every_package_has_its_place() -> None:
    packages = {path.name for path in SOURCES.iterdir() if (path / "__init__.py").exists()}
    assert packages <= set(MAY_IMPORT), "a new package needs a row here and in docs/architecture.md"


def test_imports_go_one_way() -> None:
    wrong = []
    for path in [*modules(), *SOURCES.rglob("*.pxd")]:
        package = package_of(path)
        if not package:
            continue
        for name in imported(path):
            if name.split(".")[0] != "disqueue":
                continue
            target = [*name.split("."), ""][1]
            if target not in MAY_IMPORT[package] | {package} | FOUNDATION:
                wrong.append(f"{shown(path)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_pure_packages_import_nothing_that_is_not_deterministic() -> None:
    wrong = [
        f"{shown(path)} imports {name}"
        for package in PURE_PACKAGES
        for path in modules()
        if package_of(path) == package
        for name in imported(path)
        if name.split(".")[0] in NOT_DETERMINISTIC
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_needs_cython_to_run() -> None:
    wrong = [shown(path) for path in modules() if path.suffix == ".py" and "cython" in set(imported(path))]
    assert not wrong, f"C types belong into the .pxd file: {wrong}"
