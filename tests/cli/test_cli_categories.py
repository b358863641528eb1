"""Columns of words on the command line: the features that are fitted, predicted, proved and read in chunks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine
from sklearn.linear_model import Lasso

from tasksieve.runs import RunFolder, load_model


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    n = 80
    frame = pd.DataFrame(rng.standard_normal((n, 3)), columns=["a", "b", "c"])
    frame.insert(0, "smoker", rng.choice(["no", "yes"], n, p=[0.7, 0.3]))
    frame.insert(1, "ward", rng.choice(["general", "heart", "surgery"], n))
    frame["y"] = frame.a + 2.0 * (frame.smoker == "yes") - (frame.ward == "heart") + 0.1 * rng.standard_normal(n)
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def lasso(table: Path, indicators: dict[str, np.ndarray], alpha: float) -> Lasso:
    frame = pd.read_csv(table)
    X = np.column_stack([*indicators.values(), frame[["a", "b", "c"]]])
    return Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(X, frame.y)


ALPHA = 0.02
GIVEN = ("-y", "y", "--alpha", ALPHA, "--as-is", "--tol", 1e-10, "--no-report")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("chunks", [0, 25])
@pytest.mark.parametrize(
    ("more", "smoker", "wards"),
    [
        ((), ["yes"], ["general", "heart", "surgery"]),
        (("--reference", "smoker=yes", "--reference", "ward=surgery"), ["no"], ["general", "heart"]),
        (("--reference", "none"), ["no", "yes"], ["general", "heart", "surgery"]),
    ],
)
def test_the_fit_is_that_of_the_indicators(cli: CommandLine, table: Path, chunks, more, smoker, wards) -> None:
    run, frame = table.parent / "run", pd.read_csv(table)
    assert (frame.smoker == "yes").sum() < (frame.smoker == "no").sum()
    told = cli("fit", table, *GIVEN, *more, "--chunk-rows", chunks, "-o", run)
    saved = load_model(RunFolder(run))
    indicators = {f"smoker={word}": (frame.smoker == word).to_numpy(float) for word in smoker}
    indicators |= {f"ward={word}": (frame.ward == word).to_numpy(float) for word in wards}
    assert saved.feature_names == [*indicators, "a", "b", "c"]
    theirs = lasso(table, indicators, ALPHA)
    if len(smoker) == 1:  # otherwise the coefficients are not unique
        np.testing.assert_allclose(saved.estimator.coef_[0], theirs.coef_, atol=1e-4)
    cli("predict", run, table, "-o", table.parent / "p.csv")
    X = np.column_stack([*indicators.values(), frame[["a", "b", "c"]]])
    np.testing.assert_allclose(pd.read_csv(table.parent / "p.csv").prediction, theirs.predict(X), atol=1e-4)
    notes = json.loads((run / "data.json").read_text())["notes"]
    if not more:
        assert "columns of two categories become one indicator, of the rarer: 'smoker=yes' (0: 'no')" in notes
        assert any("one indicator for each, no reference: ward (3)" in note for note in notes)
    assert all(note in told.err for note in notes)
    if not chunks:  # of rows that went by there is no certificate
        cli("verify", run, "--data", table)


def test_a_run_begun_before_is_fitted_as_it_was_begun(cli: CommandLine, table: Path) -> None:
    """The configuration of version 0.2 says nothing of references, and meant none."""
    run, again = table.parent / "run", table.parent / "again"
    cli("fit", table, *GIVEN, "--reference", "none", "-o", run)
    config = json.loads((run / "config.json").read_text())
    assert config.pop("reference") == ["none"]
    config["config_format"] = 2
    (table.parent / "old.json").write_text(json.dumps(config))
    cli("fit", "--config", table.parent / "old.json", "--no-report", "-o", again)
    assert load_model(RunFolder(again)).feature_names[:2] == ["smoker=no", "smoker=yes"]


def test_a_new_table_is_read_with_the_recipe_of_the_fit(cli: CommandLine, table: Path) -> None:
    """In the new rows the other category is the rarer one."""
    run, new = table.parent / "run", table.parent / "new.csv"
    cli("fit", table, *GIVEN, "-o", run)
    frame = pd.read_csv(table)
    pd.concat([frame[frame.smoker == "yes"], frame[frame.smoker == "no"][:3]]).to_csv(new, index=False)
    cli("predict", run, new, "-o", table.parent / "p.csv")
    cli("predict", run, table, "-o", table.parent / "all.csv")
    every = pd.read_csv(table.parent / "all.csv").prediction
    expected = [*every[frame.smoker == "yes"], *every[frame.smoker == "no"][:3]]
    np.testing.assert_allclose(pd.read_csv(table.parent / "p.csv").prediction, expected, rtol=1e-12)


def test_references_that_are_no_good(cli: CommandLine, table: Path) -> None:
    told = cli("fit", table, *GIVEN, "--reference", "ward=Heart", "-o", table.parent / "run", code=1)
    assert "column 'ward' of" in told.err
    assert "has no category 'Heart'; it has 'general', 'heart', 'surgery'" in told.err
