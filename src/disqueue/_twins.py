"""Plain or compiled: which form of a module is taken, and both beside each other for differential tests."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

PACKAGE = "disqueue"
KERNEL = "disqueue.wire.resp"


class BuildInfo(NamedTuple):
    """How this installation runs: `form` is "compiled" or "plain", `reason` says why in one line."""

    form: str
    reason: str


class PlainFinder:
    """Finds the `.py` file of a module of ours, also where a compiled one lies beside it."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of the source file; None for what is not ours or has no source."""
        if path is None or not name.startswith(PACKAGE + "."):
            return None
        for folder in path:
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
            if spec is not None and spec.loader is not None:
                return spec
        return None


def switched_on(variable: str) -> bool:
    """Whether an environment variable asks for something; empty and 0 do not."""
    return os.environ.get(variable, "") not in ("", "0")


def plain_wanted() -> bool:
    """Whether plain modules are to be taken although compiled ones may be there."""
    return PlainFinder in sys.meta_path


def install_if_wanted() -> None:
    """Make DISQUEUE_PURE=1 effective. Called once, before any other module of ours is imported."""
    if switched_on("DISQUEUE_PURE") and not plain_wanted():
        sys.meta_path.insert(0, PlainFinder)


@contextmanager
def _only_plain() -> Iterator[None]:
    """A world in which none of our modules has been imported yet and all will be plain."""
    root = sys.modules[PACKAGE]
    ours = {name: module for name, module in sys.modules.items() if name.startswith(PACKAGE + ".") and name != __name__}
    attributes = dict(vars(root))
    already = plain_wanted()
    if not already:
        sys.meta_path.insert(0, PlainFinder)
    for name in ours:
        del sys.modules[name]
    try:
        yield
    finally:
        if not already:
            sys.meta_path.remove(PlainFinder)
        for name in [name for name in sys.modules if name.startswith(PACKAGE + ".") and name != __name__]:
            del sys.modules[name]
        sys.modules.update(ours)
        vars(root).clear()
        vars(root).update(attributes)


def load_plain(names: Sequence[str]) -> dict[str, ModuleType]:
    """The plain twins of `names`, and of all they import, beside whatever is already imported.

    The twins of one call belong together; the usual modules are untouched.
    """
    with _only_plain():
        return {name: importlib.import_module(name) for name in names}


def hot_modules() -> list[str]:
    """The names of the modules that `setup.py` compiles: those with a `.pxd` file beside them."""
    root = Path(__file__).parent
    sources = (path.with_suffix(".py") for path in root.rglob("*.pxd"))
    return sorted(".".join((PACKAGE, *path.relative_to(root).with_suffix("").parts)) for path in sources if path.exists())


def is_compiled(name: str) -> bool:
    """Whether an extension module lies beside the source of this module."""
    stem = Path(__file__).parent.joinpath(*name.split(".")[1:])
    return any(stem.with_name(stem.name + suffix).exists() for suffix in EXTENSION_SUFFIXES)


def build_info() -> BuildInfo:
    """Whether the hot modules run compiled, and why not."""
    if plain_wanted():
        return BuildInfo("plain", "DISQUEUE_PURE is set")
    missing = [name for name in hot_modules() if not is_compiled(name)]
    if not is_compiled(KERNEL):
        return BuildInfo("plain", "no compiled modules beside the sources; install with a C compiler to get them")
    if missing:
        return BuildInfo("compiled", f"except {', '.join(missing)}; install again to compile all")
    return BuildInfo("compiled", "all hot modules")
