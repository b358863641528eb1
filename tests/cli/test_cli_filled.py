"""``--missing task-mean`` and ``indicator``: what is filled, remembered, predicted and proved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

import tasksieve as ts
from tasksieve import verify
from tasksieve.runs import RunFolder, load_model
from tasksieve.tasks.task_means import HoledRows

QUICK = ("--no-report", "--no-standardize", "--alpha", 0.05, "--tol", 1e-10)


def table_with_holes(path: Path, n: int = 90) -> pd.DataFrame:
    """Tasks of different levels; values of a are missing in each, and one word."""
    rng = np.random.default_rng(5)
    site = np.repeat(["Bonn", "Kiel", "Ulm"], n // 3)
    level = np.repeat([0.0, 5.0, -5.0], n // 3)
    frame = pd.DataFrame({"site": site, "a": level + rng.standard_normal(n), "b": rng.standard_normal(n)})
    frame["ward"] = np.array(["x", "y", "z"])[rng.integers(0, 3, n)]
    frame["y"] = frame.a - level + 0.5 * frame.b + 0.1 * rng.standard_normal(n)
    frame.loc[[0, 4, 31, 35, 62, 68], "a"] = np.nan
    frame.loc[7, "ward"] = None
    frame.to_csv(path, index=False)
    return frame


def test_task_means_are_those_of_fill_missing(cli: CommandLine, tmp_path: Path) -> None:
    frame = table_with_holes(tmp_path / "t.csv")
    fit = ("fit", tmp_path / "t.csv", "-y", "y", "-t", "site", "-x", "a", "-x", "b", *QUICK)
    cli(*fit, "--missing", "task-mean", "--out", tmp_path / "run")
    X = ts.FillMissing().fit(frame[["a", "b"]], task=frame.site).transform(frame[["a", "b"]], task=frame.site)
    model = ts.MultiTaskLasso(0.05, tol=1e-10).fit(X, frame.y, task=frame.site)
    saved = load_model(RunFolder(tmp_path / "run"))
    np.testing.assert_allclose(saved.estimator.coef_, model.coef_, atol=1e-8)
    assert saved.fill is not None
    assert saved.fill.shape == (3, 2)
    np.testing.assert_allclose(saved.fill[:, 0], frame.groupby("site").a.mean(), rtol=1e-14)
    assert "filled with the column's mean in the task" in (tmp_path / "run" / "log.txt").read_text()
    found = cli("predict", tmp_path / "run", tmp_path / "t.csv", "--missing", "task-mean", "--out", "-").out
    predicted = [float(line.split(",")[-1]) for line in found.splitlines()[1:]]
    np.testing.assert_allclose(predicted, model.predict(X, task=frame.site), atol=1e-7)
    refused = cli("predict", tmp_path / "run", tmp_path / "t.csv", code=1).err
    assert "--missing task-mean fills them as the fit did" in refused
    refused = cli("predict", tmp_path / "run", tmp_path / "t.csv", "--missing", "mean", code=1).err
    assert "the model was fitted with --missing task-mean" in refused
    refused = cli("predict", tmp_path / "run", tmp_path / "t.csv", "--missing", "task-mean", "--all-tasks", code=1).err
    assert "--all-tasks" in refused
    cli("evaluate", tmp_path / "run", tmp_path / "t.csv", "--missing", "task-mean")
    header = verify.read_certificate(tmp_path / "run" / "certificate.npz").header
    assert header["table"]["columns"][0]["fill"] == saved.fill[:, 0].tolist()
    cli("verify", tmp_path / "run")


def test_indicators_are_features_of_the_column(cli: CommandLine, tmp_path: Path) -> None:
    frame = table_with_holes(tmp_path / "t.csv")
    fit = ("fit", tmp_path / "t.csv", "-y", "y", "-t", "site", "-m", "group-lasso", *QUICK[:2], "--alpha", 0.01)
    cli(*fit, "--feature-groups", "column", "--missing", "indicator", "--out", tmp_path / "run")
    saved = load_model(RunFolder(tmp_path / "run"))
    assert saved.feature_names == ["a", "b", "ward=x", "ward=y", "ward=z", "missing(a)", "missing(ward)"]
    assert saved.encoding.sources == ["a", "b", "ward", "ward", "ward", "a", "ward"]
    assert "mean in the task, with an indicator" in (tmp_path / "run" / "log.txt").read_text()
    cli("verify", tmp_path / "run")
    header = verify.read_certificate(tmp_path / "run" / "certificate.npz").header
    assert header["table"]["columns"][-1] == {"source": "ward", "missing": True}
    cli("predict", tmp_path / "run", tmp_path / "t.csv", "--missing", "indicator", "--out", tmp_path / "p.csv")
    row = frame.loc[[0]].assign(missing=1.0)
    X = [[frame[frame.site == "Bonn"].a.mean(), row.b[0], *(float(row.ward[0] == word) for word in "xyz"), 1.0, 0.0]]
    expected = saved.estimator.predict(np.array(X), task=["Bonn"])
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv").prediction[0], expected[0], rtol=1e-9)
    frame.assign(b=np.nan).to_csv(tmp_path / "new.csv", index=False)
    refused = cli("predict", tmp_path / "run", tmp_path / "new.csv", "--missing", "indicator", code=1).err
    assert "column 'b' is missing, and had no missing value in the fit" in refused


def test_a_task_without_any_value_is_named(cli: CommandLine, tmp_path: Path) -> None:
    frame = table_with_holes(tmp_path / "t.csv")
    frame.loc[frame.site == "Ulm", "a"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "-y", "y", "-t", "site", *QUICK, "--out", tmp_path / "run")
    refused = cli(*fit, "--missing", "task-mean", code=1).err
    assert "column 'a' has no value at all in task Ulm" in refused
    refused = cli(*fit, code=1).err
    assert all(f"--missing {how}" in refused for how in ("drop", "mean", "task-mean", "indicator"))


def test_fills_of_tasks_that_are_not_numbers_are_unreadable(cli: CommandLine, tmp_path: Path) -> None:
    table_with_holes(tmp_path / "t.csv")
    cli("fit", tmp_path / "t.csv", "-y", "y", "-t", "site", *QUICK, "--missing", "task-mean", "--out", tmp_path / "run")
    certificate = verify.read_certificate(tmp_path / "run" / "certificate.npz")
    for wrong in ([1.0], [1.0, "x", 2.0], [1.0, float("nan"), 2.0]):
        certificate.header["table"]["columns"][0]["fill"] = wrong
        with pytest.raises(verify.Unreadable, match="fill"):
            verify._check_table(certificate.header)


@pytest.mark.parametrize("missing", ["task-mean", "indicator"])
def test_findings_fill_from_the_rows_that_they_learn_from(
    cli: CommandLine, tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Halves and outer folds are completed with means of their own; a model of all rows with means of all."""
    frame = table_with_holes(tmp_path / "t.csv")
    inside: list[int] = []
    plain = HoledRows.filled

    def spy(self: HoledRows, mask: np.ndarray | None = None) -> np.ndarray:
        inside.append(90 if mask is None else int(mask.sum()))
        assert np.isnan(self.values[:, 0]).sum() == 6
        return plain(self, mask)

    monkeypatch.setattr(HoledRows, "filled", spy)
    words = (tmp_path / "t.csv", "-y", "y", "-t", "site", "--missing", missing, "--no-report")
    cli("stability", *words, "--pairs", 2, "--permutations", 5, "--assumption", "none", "--out", tmp_path / "s")
    assert inside == [90, 45, 45, 45, 45]
    names = pd.read_csv(tmp_path / "s" / "stability.csv").feature.tolist()
    assert ("missing(a)" in names) == (missing == "indicator")
    inside.clear()
    cli("compare", *words, "--alphas", 4, "--cv", 3, "--outer-folds", 3, "--out", tmp_path / "compare")
    assert set(inside) == {60, 90}  # two thirds of the rows learn
    assert pd.read_csv(tmp_path / "compare" / "comparison.csv").task.tolist()[:3] == sorted(set(frame.site))
