"""What is installed: metadata that agrees with itself, and a wheel that needs no compiler."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tasksieve

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_versions_agree() -> None:
    assert PROJECT["version"] == tasksieve.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: *\"?([\w.]+)", citation, re.MULTILINE)[1] == tasksieve.__version__  # type: ignore[index]


def test_the_command_exists() -> None:
    module, function = PROJECT["scripts"]["tasksieve"].split(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_extras_named_in_messages_exist() -> None:
    extras = set(PROJECT["optional-dependencies"])
    for file in (ROOT / "src").rglob("*.py"):
        for names in re.findall(r"tasksieve\[([\w,]+)\]", file.read_text(encoding="utf-8")):
            assert set(names.split(",")) <= extras, f"{file}: {names}"


def test_tests_have_what_the_extras_bring() -> None:
    extras = PROJECT["optional-dependencies"]
    for name in ("cli", "files", "report", "plot", "stream", "river", "graph", "genotypes"):
        assert set(extras[name]) <= set(extras["test"]), name


@pytest.mark.slow
def test_the_wheel_installs_without_a_compiler(tmp_path: Path) -> None:
    source, wheels, venv = tmp_path / "source", tmp_path / "wheels", tmp_path / "venv"
    left_out = shutil.ignore_patterns(
        ".git", ".venv*", "build", "dist", "__pycache__", "results", "_build", ".*_cache"
    )
    shutil.copytree(ROOT, source, ignore=left_out)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = subprocess.run(
        [*pip, "wheel", "-q", "--no-deps", "-w", str(wheels), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    if build.returncode and re.search(
        r"connection|resolve|No matching distribution", build.stderr, re.IGNORECASE
    ):
        pytest.skip("the build tools cannot be downloaded here")
    assert build.returncode == 0, build.stderr
    (wheel,) = wheels.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    kept = {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "HOME"))
    }
    bare = {**kept, "PATH": str(venv / "bin"), "CC": "/bin/false", "CXX": "/bin/false"}

    def run(*words: str, code: int = 0) -> str:
        ended = subprocess.run(
            [str(venv / "bin" / words[0]), *words[1:]], env=bare, capture_output=True, text=True, check=False
        )
        assert ended.returncode == code, ended.stderr
        return ended.stdout + ended.stderr

    run("python", "-m", "pip", "install", "-q", "--only-binary=:all:", str(wheel))
    assert (
        run(
            "python", "-c", "from tasksieve import _kernels, MultiTaskLasso; print(_kernels.compiled)"
        ).strip()
        == "True"
    )
    assert "tasksieve[cli]" in run("tasksieve", "info", code=1)
    run("python", "-m", "pip", "install", "-q", "--only-binary=:all:", f"{wheel}[cli,report]")
    assert "compiled" in run("tasksieve", "info")
    (tmp_path / "t.csv").write_text(
        "task,x,y\n" + "".join(f"{i % 2},{i / 2},{3 * i + i % 2}\n" for i in range(20))
    )
    table, out = str(tmp_path / "t.csv"), str(tmp_path / "run")
    run(
        "tasksieve",
        "fit",
        table,
        "--target",
        "y",
        "--task",
        "task",
        "--alpha",
        "0.1",
        "--no-report",
        "--out",
        out,
    )
    assert "x" in (tmp_path / "run" / "coefficients.csv").read_text()
