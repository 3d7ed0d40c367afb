"""The files of the project, for tests about the sources themselves."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "disqueue"
LEFT_OUT = {"build", "dist", "node_modules", "__pycache__"}
TEXT = {".py", ".pyx", ".pxi", ".pxd", ".md", ".toml", ".sh", ".txt", ".json", ".mjs", ".yml", ".yaml", ".cfg", ""}


@cache
def text_of(path: Path) -> str:
    """What stands in a file."""
    return path.read_text()


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """The syntax tree of a Python file, flat."""
    return list(ast.walk(ast.parse(text_of(path))))


@cache
def modules() -> list[Path]:
    """All Python and Cython modules of the package."""
    return sorted(path for suffix in ("py", "pyx") for path in SOURCES.rglob(f"*.{suffix}"))


@cache
def python_files() -> list[Path]:
    """All Python and Cython files: the package, the tests, the benchmarks and what builds them."""
    return [path for path in text_files() if path.suffix in (".py", ".pyx", ".pxi")]


@cache
def text_files() -> list[Path]:
    """All files that people write."""
    found: list[Path] = []
    folders = [ROOT]
    while folders:
        for path in folders.pop().iterdir():
            if path.is_dir():
                if path.name == ".ci" or not (path.name in LEFT_OUT or path.name.startswith(".") or path.suffix == ".egg-info"):
                    folders.append(path)
            elif path.suffix in TEXT and path.name != ".git" and b"\0" not in path.read_bytes()[:4096]:
                found.append(path)
    return sorted(found)


def shown(path: Path) -> str:
    """A path as a person writes it."""
    return path.relative_to(ROOT).as_posix()
