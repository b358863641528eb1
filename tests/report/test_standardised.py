"""Features of a standardised fit are ranked per standard deviation, in reports from Python and from runs."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

import tasksieve as ts
from tasksieve.report.content import ReportContent
from tasksieve.report.packing import MAX_SCALES, pack
from tasksieve.report.page import render
from tasksieve.runs import RunFolder, load_model
from tasksieve.runs.content import run_content
from tasksieve.runs.inspected import inspect_run

UNITS = np.array([1000.0, 1.0, 1.0, 0.001, 1.0, 1.0])


def rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns in other units, of other spread in each task; the first and the fourth matter."""
    rng = np.random.default_rng(seed)
    task = np.repeat(["a", "b"], 60)
    X = rng.standard_normal((120, 6)) * np.where(task == "a", 1.0, 2.0)[:, None]
    y = 2.0 * X[:, 0] + X[:, 3] + rng.standard_normal(120)
    return X * UNITS, y, task


def unpacked(part: dict[str, str], shape: tuple[int, ...]) -> np.ndarray:
    scale = np.frombuffer(base64.b64decode(part["scale"]), "<f4")
    return np.frombuffer(base64.b64decode(part["values"]), "<i2").reshape(shape) * scale[:, None]


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_a_report_from_python_ranks_per_standard_deviation(classes: int) -> None:
    X, y, task = rows()
    labels = y if not classes else np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    model: Any = ts.MultiTaskLasso(alpha=0.3, standardize=True)
    model = ts.MultiTaskLogisticRegression(alpha=0.05, standardize=True) if classes else model
    model.fit(X, labels, task=task)
    content = ts.report.content_from_model(model, X, labels, task=task, n_alphas=4)
    packed = pack(content)
    coef = np.asarray(model.coef_).reshape(-1, 6)
    # by hand: deviations of the rows of each task; rows of coefficients are tasks, or classes of tasks
    deviations = np.array([X[task == name].std(axis=0) for name in "ab"])
    assert len(coef) == (6 if classes == 3 else 2)
    sizes = coef * np.tile(deviations, (len(coef) // 2, 1))
    strength = np.linalg.norm(sizes, axis=0)
    np.testing.assert_allclose(packed.strengths[: packed.data["nKept"]], np.sort(strength[strength > 0])[::-1])
    assert packed.order[:2].tolist() == [0, 3]
    # in the units of X the first feature would be the last
    assert np.argmax(np.linalg.norm(coef, axis=0)) == 3
    np.testing.assert_array_equal(packed.coefficients, coef.T[packed.order[: packed.data["nKept"]]])
    scales = unpacked(packed.data["columnScales"], (len(packed.order), len(coef)))
    np.testing.assert_allclose(scales, np.tile(deviations, (len(coef) // 2, 1)).T[packed.order], rtol=1e-4)
    page = render(content)
    assert "Strength per standard deviation" in page
    assert "ranks do not depend on units" in page


def test_without_standardising_strengths_are_in_units() -> None:
    X, y, task = rows()
    model = ts.MultiTaskLasso(alpha=0.3).fit(X / UNITS, y, task=task)
    content = ts.report.content_from_model(model, X / UNITS, y, task=task, n_alphas=3)
    assert content.column_scales is None
    assert pack(content).data["columnScales"] is None
    page = render(content)
    assert "so ranks compare features of similar scale" in page
    assert ">Strength</th>" in page


def test_many_numbers_become_one_for_each_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, task = rows()
    content = ts.report.content_from_model(ts.MultiTaskLasso(alpha=0.3, standardize=True).fit(X, y, task=task))
    assert content.coef.size < MAX_SCALES
    whole = pack(content)
    monkeypatch.setattr("tasksieve.report.packing.MAX_SCALES", 1)
    packed = pack(content)
    scales = unpacked(packed.data["columnScales"], (len(packed.order), 1))
    squares = np.square(unpacked(whole.data["columnScales"], (len(packed.order), 2)))
    np.testing.assert_allclose(scales[:, 0], np.sqrt(squares.mean(axis=1)), rtol=1e-4)


def test_a_run_ranks_as_the_report_from_python(cli: CommandLine, reports: list[ReportContent], tmp_path: Path) -> None:
    X, y, task = rows()
    names = [f"v{j}" for j in range(6)]
    pd.DataFrame(X, columns=names).assign(y=y, task=task).to_csv(tmp_path / "t.csv", index=False)
    run = tmp_path / "run"
    cli("fit", tmp_path / "t.csv", "-y", "y", "-t", "task", "--alphas", 5, "--cv", 3, "-o", run)
    model = ts.MultiTaskLasso(alpha=load_model(RunFolder(run)).estimator.alpha, standardize=True).fit(X, y, task=task)
    strength = np.linalg.norm(model.coef_ * model.scale_, axis=0)
    table = pd.read_csv(run / "features.csv")
    assert list(table) == ["feature", "strength_per_standard_deviation", "tasks_in_use"]
    assert table.feature[:2].tolist() == ["v0", "v3"]
    chosen = [names.index(name) for name in table.feature]
    np.testing.assert_allclose(table.strength_per_standard_deviation, strength[chosen], rtol=1e-4)
    packed = pack(reports[-1])
    np.testing.assert_allclose(packed.strengths[: len(table)], table.strength_per_standard_deviation, rtol=1e-12)
    assert [names[j] for j in packed.order[: len(table)]] == table.feature.tolist()
    # features that are in use elsewhere on the path have their deviations, too
    assert len(packed.order) > len(table)
    assert np.all(unpacked(packed.data["columnScales"], (len(packed.order), 2)) > 0.0)
    selected = inspect_run(RunFolder(run), None)["selected"]
    assert selected["per"] == "standard deviation"
    assert [one["feature"] for one in selected["strongest"]] == table.feature.tolist()

    # runs of version 0.2 have no deviations
    arrays = dict(np.load(run / "model.npz"))
    np.savez(run / "model.npz", **{name: own for name, own in arrays.items() if not name.startswith("scale_")})
    old = run_content(RunFolder(run))
    assert old.column_scales is None
    assert pack(old).order[0] == 3
    np.savez(run / "model.npz", **{**arrays, "scale_values": arrays["scale_values"][:, :1]})
    with pytest.raises(ts.runs.RunError, match="shape of the standard deviations"):
        load_model(RunFolder(run))
    cli("fit", tmp_path / "t.csv", "-y", "y", "-t", "task", "--alpha", 0.3, "--as-is", "-o", tmp_path / "as_is")
    assert list(pd.read_csv(tmp_path / "as_is" / "features.csv"))[1] == "strength_per_unit"
