"""How many files of the package an ordinary fit goes through: a reader of one path should not need the whole house."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.linear.fold_paths import FoldPaths

PACKAGE = str(Path(ts.__file__).parent)


class Entered:
    """Files whose functions are called, in all threads."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def __enter__(self) -> Entered:
        self._before = sys.getprofile()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: Any) -> None:
        sys.setprofile(self._before)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.files.add(frame.f_code.co_filename[len(PACKAGE) + 1 :])


def entered(run: Callable[[], Any]) -> set[str]:
    run()  # imports, and what is made once
    with Entered() as found:
        run()
    return found.files


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20))
    return X, X[:, :3] + rng.standard_normal((60, 3))


def test_a_fit(data: tuple[np.ndarray, np.ndarray]) -> None:
    files = entered(lambda: ts.MultiTaskLasso(alpha=0.1).fit(*data))
    assert len(files) <= 33, sorted(files)


def test_a_fit_on_rows(data: tuple[np.ndarray, np.ndarray]) -> None:
    """Tasks with rows of their own: the engine, with working sets and screening."""
    X, Y = data
    task = np.repeat([0, 1, 2], 20)
    files = entered(lambda: ts.MultiTaskLasso(alpha=0.1).fit(X, Y[:, 0], task=task))
    assert len(files) <= 51, sorted(files)


def test_a_cross_validation(data: tuple[np.ndarray, np.ndarray]) -> None:
    files = entered(lambda: ts.MultiTaskLassoCV(n_alphas=10).fit(*data))
    assert len(files) <= 64, sorted(files)


@pytest.mark.parametrize(("solver", "most"), [("sums", 30), ("rows", 47)])
def test_a_fold(data: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch, solver: str, most: int) -> None:
    """What solves and scores a fold, after the data were read and before a model is made of what is chosen."""
    monkeypatch.setenv("TASKSIEVE_PATH_SOLVER", solver)
    ts.MultiTaskLassoCV(n_alphas=10).fit(*data)
    files: set[str] = set()
    solve = FoldPaths._solve

    def noted(*given: Any) -> Any:
        before = sys.getprofile()
        with Entered() as found:
            result = solve(*given)
        sys.setprofile(before)
        files.update(found.files)
        return result

    monkeypatch.setattr(FoldPaths, "_solve", noted)
    ts.MultiTaskLassoCV(n_alphas=10).fit(*data)
    assert 0 < len(files) <= most, sorted(files)
