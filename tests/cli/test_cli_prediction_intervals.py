"""`tasksieve fit --keep-folds` and `predict --interval`: the bounds and sets of the models in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

import tasksieve as ts
from tasksieve.fitted.folds import ShuffledFolds
from tasksieve.tables import read_arrays, write_arrays

NAMES = [f"v{j}" for j in range(6)]


@pytest.fixture
def table(tmp_path: Path) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6))
    data = pd.DataFrame(X, columns=NAMES)
    data["site"] = rng.permutation(np.repeat(["a", "b", "c"], [60, 54, 6]))
    data["y"] = X[:, 3] - X[:, 4] + (data.site == "a") + rng.standard_normal(120)
    data["z"] = 2.0 * data.y + rng.standard_normal(120)
    data["well"] = np.where(data.y + rng.standard_normal(120) > 0, "yes", "no")
    data["exposure"] = rng.uniform(-1.0, 1.0, 120)
    data["calls"] = rng.poisson(np.exp(0.5 * X[:, 3] + data.exposure))
    data["months"] = rng.exponential(10.0, 120)
    data.to_csv(tmp_path / "table.csv", index=False)
    return data


FEATURES = [word for name in NAMES for word in ("-x", name)]
COMMON: dict[str, Any] = {"n_alphas": 5, "cv": ShuffledFolds(3), "random_state": 0, "standardize": True,
                          "early_stopping": True}  # fmt: skip
CASES = {
    "numbers": (("-y", "y", "-t", "site"), ts.MultiTaskLassoCV, True, ["y"], {"task": "site"}),
    "nested": (("-y", "y", "-t", "site"), ts.MultiTaskLassoCV, "nested", ["y"], {"task": "site"}),
    "several targets": (("-y", "y", "-y", "z"), ts.MultiTaskLassoCV, True, ["y", "z"], {}),
    "counts": (
        ("-y", "calls", "-t", "site", "-m", "poisson", "--offset", "exposure"), ts.MultiTaskPoissonCV, True, ["calls"],
        {"task": "site", "offset": "exposure"},
    ),
    "classes": (("-y", "well", "-m", "logistic"), ts.MultiTaskLogisticRegressionCV, True, ["well"], {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_columns_are_those_of_python(
    cli: CommandLine, table: pd.DataFrame, tmp_path: Path, name: str
) -> None:
    options, kind, keep, targets, roles = CASES[name]
    kept = "tuned" if keep is True else "nested"
    file, run, out_file = tmp_path / "table.csv", tmp_path / "run", tmp_path / "out.csv"
    cli(
        "fit",
        file,
        *options,
        *FEATURES,
        "--cv",
        3,
        "--alphas",
        5,
        "--keep-folds",
        kept,
        "-o",
        run,
        "--no-report",
    )
    y = table[targets].to_numpy() if len(targets) > 1 else table[targets[0]].to_numpy()
    beside = {key: table[column].to_numpy() for key, column in roles.items()}
    model = kind(keep_folds=keep, **COMMON).fit(table[NAMES], y, **beside)
    cli("predict", run, file, "--interval", 0.8, "--borrow", "-o", out_file)
    out = pd.read_csv(out_file)
    if name == "classes":
        sets = model.predict_set(table[NAMES], coverage=0.8, borrow=True)
        assert out["may be yes"].tolist() == np.where(sets[:, 1], "yes", "no").tolist()
        assert out["may be no"].tolist() == np.where(sets[:, 0], "yes", "no").tolist()
        assert {"yes", "no"} == set(out["may be yes"])
        return
    bounds = model.predict_interval(table[NAMES], coverage=0.8, borrow=True, **beside)
    for k, end in enumerate(("lower", "upper")):
        if len(targets) == 1:
            np.testing.assert_allclose(out[end], bounds[..., k], rtol=1e-9, atol=1e-12)
        else:
            for t, target in enumerate(targets):
                np.testing.assert_allclose(out[f"{end} ({target})"], bounds[:, t, k], rtol=1e-9)
    assert (out.filter(like="upper").to_numpy() > out.filter(like="lower").to_numpy()).all()


def test_refusals(cli: CommandLine, table: pd.DataFrame, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    fit = ("fit", file, "-y", "y", "-t", "site", *FEATURES, "--alphas", 4, "--no-report")
    plain, kept = tmp_path / "plain", tmp_path / "kept"
    cli(*fit, "--cv", 3, "-o", plain)
    assert "--keep-folds tuned does" in cli("predict", plain, file, "--interval", 0.9, code=1).err
    assert "--borrow: is for --interval" in cli("predict", plain, file, "--borrow", code=2).err
    said = cli(*fit[:-3], "--alpha", 0.1, "--keep-folds", "tuned", "-o", tmp_path / "none", code=2).err
    assert "--keep-folds: is for --cv" in said
    times = (
        "--time",
        "months",
        "--event",
        "calls==1",
        "-m",
        "cox",
        "--cv",
        3,
        *FEATURES,
        "--keep-folds",
        "tuned",
    )
    said = cli("fit", file, *times, "-o", tmp_path / "none", code=2).err
    assert "--keep-folds: --model cox has no prediction intervals" in said
    cli(*fit, "--cv", 3, "--keep-folds", "tuned", "-o", kept)
    assert "between 0 and 1" in cli("predict", kept, file, "--interval", 90, code=2).err
    alpha = json.loads((kept / "model.json").read_text())["params"]["alpha"]
    assert (
        "--alpha, --interval" in cli("predict", kept, file, "--interval", 0.9, "--alpha", alpha, code=2).err
    )
    alone = cli("predict", kept, file, "--interval", 0.9)  # six rows of site c
    assert "fewer held-out rows than the 9" in alone.err
    assert "inf" in alone.out


@pytest.mark.parametrize(
    ("name", "spoilt"),
    [
        ("features", lambda a: a + 100),
        ("ends", lambda a: a[::-1].copy()),
        ("held_fold", lambda a: a - 5),
        ("held_answers", lambda a: a * np.nan),
        ("weight_per_task", lambda a: a[1:]),
        ("form", lambda a: a + 50),
        ("intercept", lambda a: a[:, :1]),
    ],
)
def test_a_spoilt_file_is_an_error(table: pd.DataFrame, tmp_path: Path, name: str, spoilt: Any) -> None:
    from tasksieve.runs import RunError, RunFolder, SavedModel
    from tasksieve.runs.kept_folds import load_folds, write_folds

    model = ts.MultiTaskLassoCV(n_alphas=4, cv=3, keep_folds=True).fit(table[NAMES], table.y, task=table.site)
    folder = RunFolder(tmp_path)
    write_folds(folder, model)
    single = ts.MultiTaskLasso(model.alpha_).fit(table[NAMES], table.y, task=table.site)
    saved: Any = SavedModel(single, "lasso", None, None, ["y"], "site")  # type: ignore[arg-type]
    np.testing.assert_array_equal(
        load_folds(folder, saved).predict_interval(table[NAMES], task=table.site, coverage=0.5),
        model.predict_interval(table[NAMES], task=table.site, coverage=0.5),
    )
    arrays = read_arrays(tmp_path / "folds.npz", stored=True)
    write_arrays(tmp_path / "folds.npz", {**arrays, name: spoilt(arrays[name])})
    with pytest.raises(RunError, match=r"folds\.npz holds no usable model"):
        load_folds(folder, saved)
