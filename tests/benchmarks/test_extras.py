"""Benchmarks without their packages say which extra brings them."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
SCRIPTS = sorted(file.name for file in BENCHMARKS.glob("[a-z]*.py"))

#: package of the extra bench -> a script that needs it
NEEDED = {
    "celer": "lasso.py",
    "skglm": "members.py",
    "sortedl1": "owl_path.py",
    "river": "online_speed.py",
    "vowpalwabbit": "online_speed.py",
    "matplotlib": "graph_figures.py",
    "pyarrow": "tall.py",
}

# Runs a script as `python benchmarks/SCRIPT --quick` would, in an installation without some packages.
WITHOUT = """
import runpy, sys
import importlib.util as util, importlib.abc as abc
blocked, script = sys.argv[1].split(","), sys.argv[2]

class Without(abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Without())
found = util.find_spec
util.find_spec = lambda name, *more: None if name in blocked else found(name, *more)
sys.argv = [script, "--quick"]
sys.path.insert(0, str(__import__("pathlib").Path(script).parent))
runpy.run_path(script, run_name="__main__")
"""


@pytest.fixture(scope="module")
def extras() -> Any:
    spec = importlib.util.spec_from_file_location("benchmark_extras", BENCHMARKS / "_extras.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.excepthook
    spec.loader.exec_module(module)
    sys.excepthook = before
    return module


def run_without(packages: str, script: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", WITHOUT, packages, str(BENCHMARKS / script)]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize("package", ["celer", "matplotlib"])
def test_a_missing_package_is_named_with_its_extra(package: str) -> None:
    missing = run_without(package, NEEDED[package])
    assert missing.returncode == 1
    assert missing.stderr == (
        f"{NEEDED[package]} needs {package} (extra bench of tasksieve), not installed here: "
        "pip install 'tasksieve[bench]'\n"
    )


@pytest.mark.parametrize("package", NEEDED)
def test_what_is_missing_is_found_before_anything_is_measured(
    package: str, extras: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None if name == package else name)
    assert extras.missing_of(BENCHMARKS / NEEDED[package]) == [package]


LATER = [("distributed.protocol", "cluster"), ("torch", "gpu"), ("cvxpy", "test")]


@pytest.mark.parametrize(("package", "extra"), LATER)
def test_what_is_met_later_ends_in_words(package: str, extra: str, extras: Any) -> None:
    with pytest.raises(SystemExit, match=rf"needs {package.split('.')[0]} .*pip install 'tasksieve\[{extra}\]'"):
        extras._hook(ModuleNotFoundError, ModuleNotFoundError("no", name=package), None)


def test_a_script_that_goes_on_without_is_left_alone() -> None:
    gone_on = run_without("torch", "gpu.py")
    assert gone_on.returncode == 0, gone_on.stderr
    assert "tasksieve[gpu]" in gone_on.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_foreign_import_has_an_extra(script: str, extras: Any) -> None:
    """Nothing is imported that no extra brings; scripts that do have the helper."""
    tree = ast.parse((BENCHMARKS / script).read_text(encoding="utf-8"))
    own = {file.stem for file in BENCHMARKS.glob("*.py")}
    core = {"numpy", "scipy", "sklearn", "tasksieve", "joblib", "threadpoolctl", *sys.stdlib_module_names}
    foreign = {name for name in extras.imports_of(tree) if name not in own | core}
    assert {name for name in foreign if extras.extra_of(name) is None} <= {"tests", ""}
    if foreign:
        imported = set(extras.imports_of(tree))
        assert imported & {"_common", "_extras", "_peers"}, f"{script}: import _extras first"
