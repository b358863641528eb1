"""What TAB shows: the public names, and nothing else; what is typed, the names of the run."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from public_surface import PARTS

import tasksieve as ts


def test_tab_shows_public_names_only() -> None:
    """In a new process, after some names were loaded: nothing that loads a name adds another."""
    code = "import tasksieve as ts; ts.MultiTaskLasso; ts.datasets; print(*dir(ts))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in shown if name.startswith("_")] == ["__version__"]
    assert not {"annotations", "import_module", "warnings", "TYPE_CHECKING", "Any", "fitted"} & set(shown)
    assert {"MultiTaskLasso", "write_report", "datasets", "penalties"} <= set(shown)
    assert all(hasattr(ts, name) for name in shown)


@pytest.mark.parametrize("part", PARTS)
def test_tab_in_the_parts(part: str) -> None:
    module = import_module(f"tasksieve.{part}")
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in dir(module))


def test_type_checkers_know_every_public_name() -> None:
    tree = ast.parse(Path(ts.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    known = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    if None in known:  # from .linear import *
        known = known - {None} | set(ts.linear.__all__)
    known |= {ast.unparse(node.target) for node in block.body if isinstance(node, ast.AnnAssign)}
    assert known == set(dir(ts)) - {"__version__"}
    assert (Path(ts.__file__).parent / "py.typed").is_file()
