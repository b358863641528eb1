"""The verifier shares no code with the library: it imports nothing of it, and a copy works by itself."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hand_certificates import Case

import tasksieve as ts
from tasksieve import verify as module

FILE = Path(module.__file__)
SQUARED = {"name": "clipped", "mu": 1.0, "low": None, "high": None, "labels": "numbers"}


def test_it_imports_the_standard_library_and_numpy_alone() -> None:
    names = set()
    for node in ast.walk(ast.parse(FILE.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add((node.module or "").partition(".")[0])
    assert names - set(sys.stdlib_module_names) == {"numpy"}


def test_what_deals_with_rounding_is_short() -> None:
    """Boxes and floating-point arithmetic: all that a reader must check for rounding, docstrings included."""
    names = {"gamma", "up", "down", "_add", "_multiply", "Box", "choose", "_fsum", "Floating", "_sum", "_centred"}
    names |= {"_middle", "two_product", "_dot2", "_total_up", "_square_up"}
    lengths = {"_plain_sum", "_slices", "_sliced", "_norms", "_added", "_Vectors", "_vectors", "_squares"}
    lengths |= {"_read_batch", "read_lengths", "_whole", "_aligned", "_root_up", "read_whole"}
    found = {}
    for node in ast.parse(FILE.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found[node.name] = (node.end_lineno or 0) - node.lineno + 1
    assert sum(found[name] for name in names) < 400
    assert sum(found[name] for name in lengths) < 300


@pytest.fixture(scope="module")
def case() -> Case:
    rng = np.random.default_rng(0)
    x = [rng.standard_normal((20, 12)) for _ in range(2)]
    y = [x[0][:, 0] - x[0][:, 1] + 0.1 * rng.standard_normal(20), x[1][:, 0] + 0.1 * rng.standard_normal(20)]
    model = ts.MultiTaskLasso(alpha=0.1).fit(x, y)
    return Case(x, y, model.coef_.T.copy(), model.intercept_, SQUARED, {"name": "rows"}, 0.1, unit=20.0)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(FILE, folder / "verify.py")
    command = [sys.executable, "-I", "verify.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_copy_proves_refuses_and_says_what_it_cannot_read(case: Case, tmp_path: Path) -> None:
    (tmp_path / "certificate.npz").write_bytes(case.save())
    x, y, task = np.vstack(case.x), np.concatenate(case.y), np.repeat([0, 1], 20)
    np.savez(tmp_path / "data.npz", X=x, y=y, task=task)
    found = run(tmp_path, "certificate.npz", "data.npz")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("proved: no model of this kind is better by more than ")
    for name, array in (("x", x), ("y", y), ("task", task)):
        np.save(tmp_path / f"{name}.npy", array)
    files = ["--matrix", "x.npy", "--y", "y.npy", "--task", "task.npy"]
    found = run(tmp_path, "certificate.npz", *files, "--exact")
    assert found.returncode == 0
    assert "exact" in found.stdout
    x[3, 4] = np.nextafter(x[3, 4], 9.0)
    np.save(tmp_path / "x.npy", x)
    found = run(tmp_path, "certificate.npz", *files)
    assert found.returncode == 1
    assert found.stdout == "not proved:\ntask 0: X is not the matrix of the certificate (its digest differs)\n"
    (tmp_path / "certificate.npz").write_bytes(case.save()[:-100])
    found = run(tmp_path, "certificate.npz", "data.npz")
    assert found.returncode == 2
    assert found.stderr.startswith("cannot be read: ")
