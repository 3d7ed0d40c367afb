"""A compiled class has only the attributes that its .pxd file declares: those that its .py file sets must all be there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.tidy.sources import SOURCES, nodes_of, shown, text_of

CLASS = re.compile(r"^cdef class (\w+)(?:\((\w+)\))?:", re.MULTILINE)
ATTRIBUTE = re.compile(r"^    cdef (?:(?:public|readonly) )?[^(\n]*?(\w+(?:, *\w+)*)$", re.MULTILINE)


def declared_classes() -> dict[str, tuple[str, set[str]]]:
    """The base and the attributes of every class in a .pxd file."""
    found: dict[str, tuple[str, set[str]]] = {}
    for path in SOURCES.rglob("*.pxd"):
        text = text_of(path)
        starts = [*CLASS.finditer(text)]
        ends = [match.start() for match in starts[1:]] + [len(text)]
        for match, end in zip(starts, ends[: len(starts)], strict=True):
            body = text[match.end() : end]
            names = {name.strip() for attributes in ATTRIBUTE.findall(body) for name in attributes.split(",")}
            found[match[1]] = (match[2] or "", names)
    return found


def attributes_set(path: Path) -> dict[str, set[str]]:
    """What the methods of each class in a file assign to `self`."""
    found: dict[str, set[str]] = {}
    for node in nodes_of(path):
        if isinstance(node, ast.ClassDef):
            found[node.name] = {
                target.attr
                for target in ast.walk(node)
                if isinstance(target, ast.Attribute)
                and isinstance(target.ctx, ast.Store)
                and isinstance(target.value, ast.Name)
                and target.value.id == "self"
            }
    return found


def test_every_attribute_of_a_compiled_class_is_declared() -> None:
    declared = declared_classes()

    def known(name: str) -> set[str]:
        base, names = declared.get(name, ("", set()))
        return names | known(base) if base else names

    missing = []
    for pxd in SOURCES.rglob("*.pxd"):
        path = pxd.with_suffix(".py")
        if path.exists() and not pxd.with_suffix(".pyx").exists():
            for name, names in attributes_set(path).items():
                if name in declared and names - known(name):
                    missing.append(f"{shown(pxd)}: {name} lacks {sorted(names - known(name))}")
    assert not missing, "\n".join(missing)
