"""The test of proportional hazards, against R's cox.zph and against a likelihood with an effect of time."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from scipy.stats import chi2

import tasksieve as ts
from tasksieve.fitted.cox_moments import unpenalised_cox
from tasksieve.losses.partial_likelihood import PartialLikelihood
from tasksieve.outcomes import encode, read_outcome

REFERENCE = """
library(survival); d <- read.csv("rows.csv")
out <- function(name, fit) for (how in c("km", "identity", "log"))
  cat(name, how, format(cox.zph(fit, transform = how)$table[, 1], digits = 15), "\\n")
for (ties in c("efron", "breslow")) {
  out(paste0(ties, ".plain"), coxph(Surv(time, event) ~ a + b + c, d, ties = ties))
  out(paste0(ties, ".strata"), coxph(Surv(time, event) ~ a + b + c + strata(site), d, ties = ties))
  out(paste0(ties, ".entry"), coxph(Surv(entry, time, event) ~ a + b + c, d, ties = ties))
  out(paste0(ties, ".weights"), coxph(Surv(time, event) ~ a + b + c, d, ties = ties, weights = weight))
  out(paste0(ties, ".offset"), coxph(Surv(time, event) ~ a + b + c + offset(known), d, ties = ties))
}
"""


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    n = 120
    x = rng.standard_normal((n, 3))
    dies, leaves = 10.0 * rng.exponential(np.exp(-x[:, 0] + 0.5 * x[:, 1])), 20.0 * rng.exponential(size=n)
    time = np.ceil(np.minimum(dies, leaves))  # ties
    return {
        "x": x, "time": time, "event": dies <= leaves, "site": rng.integers(0, 2, n),
        "weight": rng.choice([0.5, 1, 2], n), "entry": np.maximum(time - 3.0 - np.arange(n) % 7, 0.0),
        "known": 0.2 * rng.standard_normal(n),
    }  # fmt: skip


def test_r_gives_these_numbers(rows, tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    names = ["time", "event", "site", "weight", "entry", "known"]
    table = np.column_stack([rows["x"], *(rows[name] for name in names)])
    header = ",".join(["a", "b", "c", *names])
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",", header=header, comments="", fmt="%.17g")
    (tmp_path / "reference.R").write_text(REFERENCE)
    run = subprocess.run(["Rscript", "reference.R"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    if run.returncode:
        pytest.skip(f"R has no survival: {run.stderr[-300:]}")
    lines = [line.split() for line in run.stdout.splitlines()]
    assert len(lines) == 30
    plain = ts.survival(rows["time"], rows["event"])  # a model says which features are tested, and how ties are taken
    models = {ties: ts.MultiTaskCox(alpha=0.01, ties=ties).fit(rows["x"], plain) for ties in ("efron", "breslow")}
    for name, transform, *numbers in lines:
        ties, kind = name.split(".")
        y = ts.survival(
            rows["time"],
            rows["event"],
            entry=rows["entry"] if kind == "entry" else None,
            strata=rows["site"] if kind == "strata" else None,
        )
        more = {"sample_weight": rows["weight"]} if kind == "weights" else {}
        more |= {"offset": rows["known"]} if kind == "offset" else {}
        found = ts.proportional_hazards_test(models[ties], rows["x"], y, transform=transform, **more)
        np.testing.assert_allclose(found["statistic"], [float(word) for word in numbers], rtol=1e-6, atol=1e-9)


def test_it_is_the_score_test_of_an_effect_of_time(rows):
    """Against derivatives, by differences, of a likelihood whose rows are split at the event times."""
    x, time, event = rows["x"][:40, :2], rows["time"][:40], rows["event"][:40]
    y = encode(read_outcome(ts.survival(time, event), "y"))[0]
    coef, _ = unpenalised_cox(x, y, np.ones(40))
    ends = np.unique(time[event])
    g = ends - np.average(ends, weights=[np.count_nonzero(event & (time == end)) for end in ends])
    pieces = [(i, k) for i in range(40) for k, end in enumerate(ends) if time[i] >= end]
    split = ts.survival(
        [ends[k] for _, k in pieces],
        [event[i] and time[i] == ends[k] for i, k in pieces],
        entry=[ends[k - 1] if k else 0.0 for _, k in pieces],
    )
    wide = np.array([[*x[i], *(g[k] * x[i])] for i, k in pieces])
    likelihood = PartialLikelihood(encode(read_outcome(split, "y"))[0], np.ones(len(pieces)))
    h, at = 1e-4, np.append(coef, [0.0, 0.0])

    def loss(step):
        return 0.5 * float(likelihood.deviance((wide @ (at + step))[:, None])[0])

    eye = h * np.eye(4)
    score = np.array([loss(e) - loss(-e) for e in eye]) / (2.0 * h)
    hessian = np.array([[loss(a + b) - loss(a - b) - loss(b - a) + loss(-a - b) for b in eye] for a in eye])
    hessian /= 4.0 * h * h
    np.testing.assert_allclose(score[:2], 0.0, atol=1e-6)
    inverse = np.linalg.inv(hessian)
    model = ts.MultiTaskCox(alpha=1e-4).fit(x, ts.survival(time, event))
    found = ts.proportional_hazards_test(model, x, ts.survival(time, event), transform="identity")
    assert found["statistic"][-1] == pytest.approx(score[2:] @ inverse[2:, 2:] @ score[2:], rel=1e-4)
    for j in range(2):
        own = np.ix_([0, 1, 2 + j], [0, 1, 2 + j])
        assert found["statistic"][j] == pytest.approx(score[2 + j] ** 2 * np.linalg.inv(hessian[own])[2, 2], rel=1e-4)
    np.testing.assert_allclose(found["pvalue"], chi2.sf(found["statistic"], [1, 1, 2]))


def test_tasks_and_refusals(rows):
    x, y = rows["x"], ts.survival(rows["time"], rows["event"])
    both = {"here": (x[:60], y[:60]), "there": (x[60:], y[60:])}
    model = ts.MultiTaskCox(alpha=0.02).fit(both)
    found = ts.proportional_hazards_test(model, both)
    assert found.columns == ["task", "feature", "statistic", "freedom", "pvalue"]
    alone = ts.MultiTaskCox(alpha=0.02).fit(x[60:], y[60:])
    there = ts.proportional_hazards_test(alone, x[60:], y[60:])["statistic"]
    np.testing.assert_allclose(found["statistic"][found["task"] == "there"], there, rtol=1e-8)
    assert found["feature"][found["task"] == "here"].tolist() == ["x0", "x1", "x2", "all features"]
    assert len(ts.proportional_hazards_test(ts.MultiTaskCox(alpha=9.0).fit(both), both)) == 0
    with pytest.raises(ValueError, match="has no hazards"):
        ts.proportional_hazards_test(ts.MultiTaskLasso().fit(x, rows["time"]), x, rows["time"])
    with pytest.raises(ts.ParameterError, match="transform"):
        ts.proportional_hazards_test(model, both, transform="rank")
    first = ts.survival(np.append(0.0, rows["time"][1:]), np.append(True, rows["event"][1:]))
    with pytest.raises(ValueError, match="event times above 0"):
        ts.proportional_hazards_test(ts.MultiTaskCox(alpha=0.02).fit(x, first), x, first, transform="log")
    same = np.column_stack([x[:, 0], x[:, 0]])
    with pytest.warns(UserWarning, match="no finite fit"):
        nothing = ts.proportional_hazards_test(ts.MultiTaskCox(alpha=0.02, ridge=0.1).fit(same, y), same, y)
    assert np.isnan(nothing["pvalue"]).all()
