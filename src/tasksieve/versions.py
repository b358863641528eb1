"""Versions of everything that can change an answer."""

from __future__ import annotations

import platform
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from ._kernels import compiled, kernels


def versions() -> dict[str, str]:
    """Versions of the library, of what it computes with, and of what it reads files with."""
    found = {"python": platform.python_version(), "system": platform.platform()}
    found["tasksieve"] = import_module(__name__.partition(".")[0]).__version__
    for name in ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow"):
        found[name] = _installed(name)
    found["kernels"] = "compiled" if compiled else "reference"
    return found


@cache  # a file of many lines is read for each; what is imported stays what it is
def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def kernel_file() -> str:
    """Where the compiled kernels lie; of the NumPy ones, their module."""
    return str(getattr(kernels, "__file__", "-"))
