"""Compiles the hot modules where Cython and a C compiler are there, and installs plain Python where not.

DISQUEUE_PURE=1 skips compiling. DISQUEUE_REQUIRE_COMPILED=1 makes it an error if it fails.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCES = Path("src")
CPUS = os.cpu_count() or 1
DIRECTIVES = {
    "language_level": 3,
    "initializedcheck": False,
    "cdivision": True,
    "infer_types": True,
    "embedsignature": False,
    # C types stand in the .pxd files alone; an annotation says `int` where the .pxd says `long long`.
    "annotation_typing": False,
}


def switched_on(variable: str) -> bool:
    """Whether an environment variable asks for something; empty and 0 do not."""
    return os.environ.get(variable, "") not in ("", "0")


def fall_back(error: BaseException) -> None:
    """Go on without compiled modules, in one line, unless they are required."""
    if switched_on("DISQUEUE_REQUIRE_COMPILED"):
        raise error
    reason = " ".join(str(error).split())[:300]
    print(f"disqueue: compiling failed, plain Python is installed instead ({type(error).__name__}: {reason})", file=sys.stderr)


def hot_modules() -> list[Extension]:
    """The hot modules: every .py or .pyx file that has a .pxd file beside it."""
    flags = ["-O3", "-g0"] if os.name == "posix" else []
    extensions = []
    for declaration in sorted(SOURCES.rglob("*.pxd")):
        sources = [path for path in (declaration.with_suffix(".pyx"), declaration.with_suffix(".py")) if path.exists()]
        if not sources:
            continue
        name = ".".join(declaration.relative_to(SOURCES).with_suffix("").parts)
        extensions.append(Extension(name, [sources[0].as_posix()], extra_compile_args=flags))
    return extensions


def translated() -> list[Extension]:
    """The hot modules as C, or nothing where that is not wanted or does not work."""
    if switched_on("DISQUEUE_PURE"):
        return []
    try:
        from Cython.Build import cythonize

        # Worker processes only where a fork does not run this file again.
        workers = CPUS if multiprocessing.get_start_method() == "fork" else 0
        return list(
            cythonize(hot_modules(), compiler_directives=DIRECTIVES, nthreads=workers, build_dir="build/cython", quiet=True)
        )
    except Exception as error:
        fall_back(error)
        return []


class BuildHotModules(build_ext):
    """Compiles in parallel; a compiler that is missing or fails means plain Python: all modules or none."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.parallel = CPUS

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            fall_back(error)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


setup(ext_modules=translated(), cmdclass={"build_ext": BuildHotModules})
