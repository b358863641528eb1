"""Quality on rows that a model has not seen: in the summary, in the run folder, first in the report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, classification_csv, regression_csv

import tasksieve as ts
from tasksieve.report.content import ReportContent
from tasksieve.report.page import render
from tasksieve.runs import RunFolder, load_model


def test_out_of_fold_rows_carry_ids(cli: CommandLine, reports: list[ReportContent], tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "t.csv")
    data = pd.read_csv(table)
    data.insert(0, "name", [f"p{i}" for i in range(len(data))])
    data.loc[4, "a"] = np.nan
    data.to_csv(table, index=False)
    words = ("-y", "y", "-t", "region", "--id", "name", "-x", "[a-f]", "--missing", "drop")
    result = cli("fit", table, *words, "--alphas", 8, "--cv", 3, "--full-path", "-o", tmp_path / "run")
    used = data.drop(index=4)
    model = ts.MultiTaskLassoCV(n_alphas=8, cv=3, standardize=True).fit(
        used[list("abcdef")].to_numpy(), used.y.to_numpy(), task=used.region.to_numpy(str)
    )
    rows = pd.read_csv(tmp_path / "run" / "out_of_fold.csv")
    assert rows.columns.tolist() == ["row", "name", "task", "observed", "fold", "prediction"]
    assert rows.name.tolist() == used.name.tolist()
    assert rows.row.tolist() == [i + 1 for i in used.index]
    np.testing.assert_array_equal(rows.prediction, model.cv_predictions_)
    np.testing.assert_array_equal(rows.fold, model.cv_fold_)
    quality = pd.read_csv(tmp_path / "run" / "cv_quality.csv")
    pd.testing.assert_frame_equal(quality, model.cv_quality_.to_frame(), check_dtype=False)
    # and the first number shown is that of rows held out
    content = reports[-1]
    assert [part.unseen for part in content.quality] == [False, True, True]
    assert content.headline is content.quality[1]
    np.testing.assert_array_equal(content.headline.values, model.cv_quality_.values[:, 0])
    assert "optimistic: alpha was tuned on these rows" in content.headline.note
    assert f"R² out of fold: {model.cv_quality_.overall[0]:.3g} ±" in content.answered
    assert f"R² on rows held out: {model.cv_quality_.overall[0]:.3g} ±" in result.out
    for told in (content.answered, result.out):
        assert "optimistic: alpha was tuned on these rows" in told
        assert f"; null model {model.cv_quality_.null_overall[0]:.3g}, beyond it" in told
    page = render(content)
    assert "R² out of fold" in page
    assert "not how well it predicts" in page
    # the model that is loaded knows it, too
    again = load_model(RunFolder(tmp_path / "run")).estimator
    np.testing.assert_array_equal(again.cv_quality_.values, model.cv_quality_.values)


def test_classes_and_several_targets(cli: CommandLine, reports: list[ReportContent], tmp_path: Path) -> None:
    table = classification_csv(tmp_path / "t.csv")
    words = ("-t", "site", "-m", "logistic", "--alphas", 6, "--cv", 3)
    cli("fit", table, "-y", "state", *words, "-o", tmp_path / "run")
    rows, data = pd.read_csv(tmp_path / "run" / "out_of_fold.csv"), pd.read_csv(table)
    assert rows.observed.tolist() == data.state.tolist()
    chances = rows[["probability of sick", "probability of well"]]
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    unseen = ["Accuracy out of fold", "AUC out of fold", "Logistic loss out of fold"]
    assert [part.measure for part in reports[-1].quality if part.unseen] == unseen
    quality = pd.read_csv(tmp_path / "run" / "cv_quality.csv").set_index(["task", "measure"]).value
    met = (chances["probability of well"] > 0.5) == (data.state == "well")
    assert quality["1", "accuracy"] == pytest.approx(met[data.site == 1].mean())
    cli("fit", table, "-y", "a", "-y", "b", "-x", "c", "-x", "d", "--alphas", 4, "--cv", 3, "-o", tmp_path / "two")
    columns = pd.read_csv(tmp_path / "two" / "out_of_fold.csv").columns.tolist()
    assert columns == ["row", *(f"{title} ({name})" for name in "ab" for title in ("observed", "fold", "prediction"))]
    assert pd.read_csv(tmp_path / "two" / "cv_quality.csv").task.unique().tolist() == ["a", "b", "all tasks"]


def test_one_alpha_has_no_unseen_rows(cli: CommandLine, reports: list[ReportContent], tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "t.csv")
    result = cli("fit", table, "-y", "y", "-t", "region", "--alpha", 0.1, "-o", tmp_path / "run")
    assert "held out" not in result.out
    assert not (tmp_path / "run" / "cv_quality.csv").exists()
    headline = reports[-1].headline
    assert headline is not None
    assert not headline.unseen
    assert headline.measure == "R² on the training rows"
    # the file keeps the name that its column had in version 0.2
    assert pd.read_csv(tmp_path / "run" / "quality.csv").columns[2] == "R² on the rows learnt from"
