"""A y that the empty model explains: the status, the gap and the words beside them do not contradict each other."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import CommandLine

import tasksieve as ts

RNG = np.random.default_rng(0)
X, TASK = RNG.standard_normal((60, 5)), np.repeat([0, 1], 30)
CONSTANT = {
    "a constant": np.full(60, 0.1),
    "a whole number": np.full(60, 3.0),
    "one for each task": np.where(TASK, 1.7, 0.3),
    "zero": np.zeros(60),
}
MODELS = [
    ts.MultiTaskLasso(alpha=0.1), ts.MultiTaskHuber(alpha=0.1), ts.MultiTaskQuantile(alpha=0.1),
    ts.MultiTaskPoisson(alpha=0.1), ts.CalibratedMultiTaskLasso(alpha=0.1),
    ts.MultiTaskOWL(alpha=0.1), ts.MultiTaskRegressor("gamma", alpha=0.1),
    ts.MultiTaskRegressor("tweedie", alpha=0.1), ts.MultiTaskRegressor("log_cosh", alpha=0.1),
]  # fmt: skip


@pytest.mark.parametrize("y", CONSTANT)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model)[:36])
def test_converged_and_nothing_is_left(model: Any, y: str) -> None:
    values = CONSTANT[y]
    if getattr(model, "loss", "") == "gamma" and y == "zero":
        values = values + 2.5
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*count nothing")
        model.fit(X, values, task=TASK)
        path = model.path(X, values, task=TASK, alphas=[0.2, 0.1])
    assert model.status_ == "converged"
    assert model.null_objective_ == path.null_objective == 0.0
    assert not model.coef_.any()
    assert model.dual_gap_ < 1e-11
    assert path.relative_gaps.max() < 1e-11
    assert "the empty model explains y" in model._repr_html_()


def test_a_y_that_nearly_is_constant_is_explained_by_features() -> None:
    """Differences in the last digits but six are no rounding."""
    y = 3.0 + 1e-9 * X[:, 0]
    model = ts.MultiTaskLasso(alpha=1e-11).fit(X, y)
    assert model.null_objective_ > 0.0
    assert model.get_support()[0]
    assert model.dual_gap_ <= 1e-6 * model.null_objective_


def test_what_the_command_line_says(cli: CommandLine, tmp_path: Path) -> None:
    table, run = tmp_path / "t.csv", tmp_path / "run"
    rows = [f"{row[0]:.6f},{row[1]:.6f},{'pq'[t]},{1.7 if t else 0.3}" for row, t in zip(X, TASK, strict=True)]
    table.write_text("\n".join(["a,b,site,y", *rows]) + "\n")
    said = cli("fit", table, "-y", "y", "-t", "site", "-m", "poisson", "--alphas", "4", "-o", run).out
    assert "above the optimum: the empty model explains y" in said
    assert "NOT CONVERGED" not in said
    found = json.loads((run / "certificate.json").read_text())
    assert (found["null_objective"], found["relative_gap"], found["converged"]) == (0.0, 0.0, True)
    assert "the empty model explains the outcome" in (run / "methods.txt").read_text()
    assert "the empty model explains the outcome" in (run / "report.html").read_text()
    assert "proved" in cli("verify", run, "--data", table).out
