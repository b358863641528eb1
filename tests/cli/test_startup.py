"""What the command line loads before it has anything to compute with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("numpy", "scipy", "sklearn", "pandas", "pyarrow", "joblib", "jinja2", "torch")
ROOT = Path(__file__).parent.parent.parent


def loaded_by(*words: str, first: str = "pass") -> list[str]:
    """Heavy libraries that a command has loaded when it ends well; what runs `first` has loaded is seen, too."""
    code = (
        f"import sys\n{first}\n"
        "from tasksieve.cli import main\n"
        f"sys.argv = ['tasksieve', *{list(words)!r}]\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        f"print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    last = run.stdout.splitlines()[-1]
    assert last.startswith("loaded:")
    return last.split()[1:]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("words", [("--version",), ("--help",), ("fit", "--help"), ("predict", "--help")])
def test_words_about_the_command_line_load_no_numbers(words: tuple[str, ...]) -> None:
    assert loaded_by(*words) == []


def test_what_is_loaded_is_seen() -> None:
    assert loaded_by("--version", first="import numpy") == ["numpy"]


def test_the_package_itself_loads_no_numbers() -> None:
    code = f"import sys, tasksieve, tasksieve.runs; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_the_demo_leaves_a_command_that_works() -> None:
    """`make demo` installs what `tasksieve` needs beside the report."""
    rules = [line for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines() if line.startswith("demo:")]
    assert len(rules) == 1
    assert {"$(VENV)/.extra-cli", "$(VENV)/.extra-files"} <= set(rules[0].split())
