"""Findings in run folders: what is written is read back, and what was spoilt is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.report.from_findings import sharing_finding, stability_finding
from tasksieve.runs import RunError, RunFolder
from tasksieve.runs.findings import (
    read_comparison,
    read_intervals,
    read_permutation,
    read_stability,
    write_comparison,
    write_permutation,
    write_stability,
)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((60, 12)), np.repeat(["a", "b"], 30)
    return X, X[:, 2] + rng.standard_normal(60), task


def folder_at(path: Path) -> RunFolder:
    path.mkdir()
    return RunFolder(path)


def test_a_permutation_test_comes_back(rows: tuple[Any, ...], tmp_path: Path) -> None:
    X, y, task = rows
    found = ts.permutation_test(ts.MultiTaskLasso(), X, y, task=task, n_permutations=30)
    folder = folder_at(tmp_path / "r")
    assert read_permutation(folder) is None
    write_permutation(folder, found)
    again = read_permutation(folder)
    assert again is not None
    assert (again.statistic, again.pvalue, again.moved) == (found.statistic, found.pvalue, found.moved)
    np.testing.assert_array_equal(again.null, found.null)


def test_stability_comes_back(rows: tuple[Any, ...], tmp_path: Path) -> None:
    X, y, task = rows
    weights = np.ones(12)
    weights[4] = 0.0  # never penalised: it is in every model and cannot be stable
    model = ts.MultiTaskLasso(feature_weights=weights)
    found = ts.StabilitySelection(model, n_pairs=5).fit(X, y, task=task)
    folder = folder_at(tmp_path / "r")
    names = [f"x{j}" for j in range(12)]
    write_stability(folder, stability_finding(found), names)
    again = read_stability(folder)
    assert again is not None
    finding, told = again
    assert told == names
    np.testing.assert_array_equal(finding.probabilities, found.selection_probabilities_)
    np.testing.assert_array_equal(finding.stable, found.get_support())
    assert (finding.q, finding.n_candidates, finding.bound) == (found.q_, 11, found.pfer_bound_)
    np.testing.assert_array_equal(
        finding.path, found.stability_path_.toarray()[:, finding.path_features]
    )
    assert np.isnan(finding.probabilities[4])


def test_a_comparison_comes_back(rows: tuple[Any, ...], tmp_path: Path) -> None:
    X, y, task = rows
    found = ts.compare(ts.MultiTaskLassoCV(n_alphas=5, cv=3), X, y, task=task, cv=3)
    folder = folder_at(tmp_path / "r")
    write_comparison(folder, sharing_finding(found))
    again = read_comparison(folder)
    assert again is not None
    assert list(again.tasks) == ["a", "b"]
    frame = found.to_frame()
    for name in ("loss_shared", "score_own", "difference", "low", "pvalue", "adjusted"):
        np.testing.assert_array_equal(again.numbers[name], frame[name])


def spoil_stability(change: Callable[[dict[str, Any]], None]) -> Callable[[RunFolder], None]:
    def spoil(folder: RunFolder) -> None:
        content = json.loads((folder / "stability.json").read_text())
        change(content)
        (folder / "stability.json").write_text(json.dumps(content))

    return spoil


def spoil_arrays(name: str, values: Any) -> Callable[[RunFolder], None]:
    def spoil(folder: RunFolder) -> None:
        arrays = dict(np.load(folder / "stability.npz"))
        arrays[name] = np.asarray(values)
        np.savez(folder / "stability.npz", **arrays)

    return spoil


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "spoil",
    [
        spoil_stability(lambda content: content.pop("q")),
        spoil_stability(lambda content: content.update(assumption="luck")),
        spoil_stability(lambda content: content.update(noun=3)),
        spoil_stability(lambda content: content.update(bounds=[1])),
        spoil_arrays("path_features", np.array([99])),
        spoil_arrays("probabilities", np.full(12, 2.0)),
        spoil_arrays("probabilities", np.zeros(3)),
        spoil_arrays("alphas", np.array([-1.0])),
        spoil_arrays("coef_indptr", np.array([0, 5])),
        lambda folder: (folder / "stability.npz").write_bytes(b"nonsense"),
    ],
)
def test_spoilt_stability_is_refused(
    rows: tuple[Any, ...], tmp_path: Path, spoil: Callable[[RunFolder], None]
) -> None:
    X, y, task = rows
    folder = folder_at(tmp_path / "r")
    found = ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=5).fit(X, y, task=task)
    write_stability(folder, stability_finding(found), [f"x{j}" for j in range(12)])
    spoil(folder)
    with pytest.raises(RunError, match=r"stability\.(json|npz) is not readable"):
        read_stability(folder)


@pytest.mark.parametrize(
    "content",
    [
        {"level": 0.9, "halves": "", "columns": {"feature": ["a"], "task": [], "estimate": [1.0]}},
        {"level": 0.9, "halves": "", "columns": {"feature": [], "task": []}},
        {"level": 0.9, "halves": "", "columns": [1]},
        {"halves": "", "columns": {}},
    ],
)
def test_spoilt_intervals_are_refused(tmp_path: Path, content: dict[str, Any]) -> None:
    folder = folder_at(tmp_path / "r")
    (folder / "intervals.json").write_text(json.dumps(content))
    with pytest.raises(RunError, match=r"intervals\.json is not readable"):
        read_intervals(folder)


@pytest.mark.parametrize(
    "content",
    [{}, {"statistic": 1, "pvalue": 2, "moved": "", "approximate": False, "null": [1]}, {"null": "abc"}],
)
def test_a_spoilt_permutation_test_is_refused(tmp_path: Path, content: dict[str, Any]) -> None:
    folder = folder_at(tmp_path / "r")
    (folder / "permutation.json").write_text(json.dumps(content))
    with pytest.raises(RunError, match=r"permutation\.json is not readable"):
        read_permutation(folder)


@pytest.mark.parametrize("content", [{}, {"columns": {"task": ["a"]}}, {"columns": {"task": ["a", "b"], "rows": [1]}}])
def test_a_spoilt_comparison_is_refused(tmp_path: Path, content: dict[str, Any]) -> None:
    folder = folder_at(tmp_path / "r")
    (folder / "comparison.json").write_text(json.dumps(content))
    with pytest.raises(RunError, match=r"comparison\.json is not readable"):
        read_comparison(folder)
