"""Too little memory is said as that, wherever it runs out: while libraries load, in a table, in a solver."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import CommandLine, regression_csv

from tasksieve.cli import exit_codes
from tasksieve.cli.errors import error_in_words
from tasksieve.cli.lacking import is_lack_of_memory


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


LACKING = [
    MemoryError(),
    MemoryError("std::bad_alloc"),
    np._core._exceptions._ArrayMemoryError((3000, 3000), np.dtype(float)),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    RuntimeError("can't start new thread"),
    RuntimeError("std::bad_alloc"),
    ImportError("libscipy_openblas.so: failed to map segment from shared object"),
    ValueError("C error: out of memory"),
    _caused(KeyError("x"), MemoryError()),
]


@pytest.mark.parametrize("error", LACKING, ids=repr)
def test_it_is_no_bug(error: Exception) -> None:
    words, code = error_in_words(error)
    assert words.startswith("not enough memory: ")
    assert "memory: ;" not in words
    assert code == exit_codes.USER_ERROR
    assert "bug" not in words


def test_other_errors_are_what_they_were() -> None:
    for error in (ValueError("no"), KeyError("memory"), RuntimeError("odd"), OSError(errno.ENOENT, "No such file")):
        assert not is_lack_of_memory(error)
    assert "This is a bug" in error_in_words(RuntimeError("odd"))[0]


def test_an_error_about_which_no_words_fit_into_memory(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(error: BaseException) -> tuple[str, int]:
        raise MemoryError

    monkeypatch.setattr("tasksieve.cli.errors.error_in_words", full)
    assert cli("fit", "nothing.csv", "-y", "y", "-o", "run", code=1).err == (
        "tasksieve: not enough memory: no more is given; fit and path take --chunk-rows 100000\n"
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits address space")
@pytest.mark.parametrize("megabytes", [220, 300, 380, 420, 460, 500, 540, 580])
def test_a_process_with_too_little(tmp_path: Path, megabytes: int) -> None:
    """One line and exit code 1; enough, and it is 0. (A BLAS without a buffer may wait for one for good.)"""
    table = regression_csv(tmp_path / "t.csv", n=3000, d=20)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    words = [sys.executable, "-m", "tasksieve", "fit", table, "-y", "y", "-t", "region", "--alphas", "3", "--no-report"]
    own = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "TASKSIEVE_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(
            [*words, "-o", tmp_path / "run", "-q"], capture_output=True, text=True, env=own, preexec_fn=limit,
            check=False, timeout=240,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip("BLAS waits for memory")
    if ended.returncode:
        assert ended.returncode == 1, ended.stderr
        assert "tasksieve: not enough memory" in ended.stderr
        assert "bug" not in ended.stderr
        assert "Traceback" not in ended.stderr
