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
from bare_environment import BareEnvironment

import tasksieve

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_versions_agree() -> None:
    assert PROJECT["version"] == tasksieve.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: *\"?([\w.]+)", citation, re.MULTILINE)[1] == tasksieve.__version__  # type: ignore[index]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released, development, _ = tasksieve.__version__.partition(".dev")
    newest = re.search(r"^## .*$", changelog, re.MULTILINE)
    assert newest is not None
    if development:  # the next version, by its first two numbers
        assert newest[0] == f"## [Unreleased] ({released.rpartition('.')[0]})"
    else:
        assert re.fullmatch(rf"## \[{re.escape(released)}\] - \d{{4}}-\d\d-\d\d", newest[0])


def _asked(*places: Path) -> list[str]:
    """What a new process without installed packages says of its version, and whether it had to read metadata."""
    code = "import sys, tasksieve as ts; print(ts.__version__, 'importlib.metadata' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
    command = [sys.executable, "-S", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split()


def test_the_version_is_that_of_the_sources_that_run(tmp_path: Path) -> None:
    """pyproject.toml beside the sources, whatever is installed; elsewhere the metadata, if there are any."""
    assert _asked(ROOT / "src") == [PROJECT["version"], "False"]
    package = tmp_path / "src" / "tasksieve"
    package.mkdir(parents=True)
    for name in ("__init__.py", "renamed.py"):
        shutil.copy(ROOT / "src" / "tasksieve" / name, package)
    installed = tmp_path / "installed" / "tasksieve-0.2.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: tasksieve\nVersion: 0.2.0\n")
    assert _asked(package.parent) == ["0+unknown", "True"]
    assert _asked(package.parent, installed.parent) == ["0.2.0", "True"]
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\nversion = "3.1"\n')
    assert _asked(package.parent, installed.parent) == ["0.2.0", "True"]
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "tasksieve"\nversion = "3.1"\n')
    assert _asked(package.parent, installed.parent) == ["3.1", "False"]


def test_importing_asks_for_no_version() -> None:
    code = "import sys, tasksieve; print({'tomllib', 'importlib.metadata'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"


def test_no_source_states_the_version() -> None:
    """pyproject.toml does, and what nobody can look it up for: the citation and R's own."""
    stated = re.compile(rf"(?<![\w.]){re.escape(PROJECT['version'])}(?![\w.])")
    made = ("docs/_build", "docs/gallery", "docs/api/generated", "benchmarks/results")
    files = [file for folder in ("src", "docs", "examples", "benchmarks", "audit", "r")
             for ending in ("py", "md", "html", "R") for file in (ROOT / folder).rglob(f"*.{ending}")]  # fmt: skip
    own = [file for file in files if not file.relative_to(ROOT).as_posix().startswith(made)]
    assert [str(file) for file in own if stated.search(file.read_text(encoding="utf-8"))
            and file.name != "tasksieve_for_r.py"] == []  # fmt: skip


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
    for name in ("cli", "files", "report", "plot", "stream", "river", "graph", "genotypes", "federated"):
        assert set(extras[name]) <= set(extras["test"]), name


def test_the_extras_that_are_tested_at_their_lowest_are_all_that_users_install() -> None:
    named = re.search(r"^TESTED = \((.*?)\)$", (ROOT / ".ci" / "lowest").read_text(encoding="utf-8"), re.MULTILINE)
    assert named is not None
    tools = {"test", "lint", "docs", "bench", "wheel", "peers"}
    assert {*re.findall(r'"(\w+)"', named[1]), "gpu"} == set(PROJECT["optional-dependencies"]) - tools


def test_all_that_is_bounded_below_is_bounded_the_same_everywhere() -> None:
    bounds: dict[str, set[str]] = {}
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for one in (one for named in lists for one in named):
        name, sign, version = one.partition(">=")
        if sign:
            bounds.setdefault(name, set()).add(version)
    assert {name: found for name, found in bounds.items() if len(found) > 1} == {}


def test_the_page_on_installation_names_the_pythons_and_extras() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    pythons = re.findall(r":: Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert [version for version in pythons if f"3.11 to {pythons[-1]}" not in page] == []
    tools = {"test", "lint", "docs", "bench", "wheel", "peers"}
    assert [name for name in PROJECT["optional-dependencies"] if name not in tools and f"`{name}`" not in page] == []


def test_kernels_speak_standard_cpp_but_for_one_file() -> None:
    """What GCC and Clang spell their own way is in portable.hpp, or behind a test for them."""
    folder = ROOT / "src" / "tasksieve" / "_kernels"
    words = re.compile(r"__builtin_|__int128|#pragma GCC|__restrict|\balloca\b|\basm\b|immintrin")
    found = {
        (file.name, word)
        for file in [*folder.glob("*.cpp"), *folder.glob("*.hpp")]
        if file.name != "portable.hpp"
        for word in words.findall(file.read_text(encoding="utf-8"))
    }
    # inside TASKSIEVE_WIDE, TASKSIEVE_SHUFFLES, TASKSIEVE_AVX2
    files = {("panel.cpp", "__builtin_"), ("byte_columns.cpp", "__builtin_"), ("genotype_products.cpp", "__builtin_")}
    assert found == {*files, ("genotype_products.cpp", "immintrin")}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the checkout, without what was built or measured in it."""
    left_out = shutil.ignore_patterns(
        ".git", ".venv*", "build", "dist", "__pycache__", "results", "_build", ".*_cache"
    )
    return Path(shutil.copytree(ROOT, tmp_path / "source", ignore=left_out))


def skip_without_build_tools(said: str) -> None:
    if re.search(r"connection|resolve|No matching distribution", said, re.IGNORECASE):
        pytest.skip("the build tools cannot be downloaded here")


@pytest.mark.slow
def test_the_wheel_installs_without_a_compiler(tmp_path: Path, source: Path) -> None:
    build = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path / "wheels"), str(source)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TASKSIEVE_NEED_KERNELS": "1"},
    )
    if build.returncode:
        skip_without_build_tools(build.stderr)
    assert build.returncode == 0, build.stderr
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    bare = BareEnvironment(tmp_path / "bare")
    bare.install("-q", "--only-binary=:all:", str(wheel))
    assert "tasksieve[cli]" in bare.run("tasksieve", "info", code=1)
    bare.install("-q", "--only-binary=:all:", f"{wheel}[cli,report]")
    assert "compiled" in bare.run("tasksieve", "info")
    assert "proved" in bare.trial("compiled")


@pytest.mark.slow
def test_without_a_compiler_the_twins_are_installed_and_say_so(tmp_path: Path, source: Path) -> None:
    bare = BareEnvironment(tmp_path / "bare")
    try:
        bare.install(f"{source}[cli,report]")
    except AssertionError as error:
        skip_without_build_tools(str(error))
        raise
    assert "proved" in (said := bare.trial("reference"))
    assert "RuntimeWarning" in said
    assert "C++17 compiler" in said
    bare.variables["TASKSIEVE_NEED_KERNELS"] = "1"
    refused = bare.run(
        "python", "-m", "pip", "install", "--no-deps", "--force-reinstall", str(source), code=1
    )
    assert "CMake configuration failed" in refused
