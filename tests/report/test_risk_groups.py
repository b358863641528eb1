"""Thirds of predicted risk: Kaplan-Meier curves, what the model expects, and what a report shows of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import tasksieve as ts
from tasksieve.fitted.risk_groups import kaplan_meier, nice_marks, risk_groups
from tasksieve.report.survival import as_read, as_written, calibration_table, risk_table


@pytest.fixture(scope="module")
def cohorts():
    rng = np.random.default_rng(3)
    X, task = rng.standard_normal((180, 6)), np.repeat(["a", "b"], 90)
    dies = rng.exponential(size=180) / np.exp(X[:, 0] - 0.7 * X[:, 1])
    leaves = rng.exponential(size=180) * 2.0
    return X, ts.survival(np.minimum(dies, leaves), dies <= leaves), task


def test_kaplan_meier_by_hand():
    """Five rows, one of which enters late: 4/5, then 3 at risk of whom one goes."""
    y = ts.survival([1.0, 2.0, 2.0, 3.0, 4.0], [1, 1, 0, 0, 1], entry=[0.0, 0.0, 0.0, 0.0, 2.5])
    times, share = kaplan_meier(y, np.ones(5))
    assert times.tolist() == [1.0, 2.0, 4.0]
    assert share == pytest.approx([3 / 4, 3 / 4 * 2 / 3, 0.0])
    doubled = kaplan_meier(np.repeat(y, 2), np.ones(10))
    assert doubled[1] == pytest.approx(share)
    assert kaplan_meier(y, np.full(5, 2.0))[1] == pytest.approx(share)


def test_kaplan_meier_is_that_of_the_peer(cohorts):
    """Against scikit-survival, with censored rows at event times."""
    peer = pytest.importorskip("sksurv.nonparametric", reason="scikit-survival is not installed")
    _, y, _ = cohorts
    time = np.ceil(10.0 * y["time"])
    times, share = kaplan_meier(ts.survival(time, y["event"], entry=np.full(len(y), -1.0)), np.ones(len(y)))
    known, expected = peer.kaplan_meier_estimator(y["event"], time)
    assert share == pytest.approx(expected[np.searchsorted(known, times)])


def test_marks_are_round():
    assert nice_marks(10.0).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert nice_marks(0.0).tolist() == [0.0]


def test_groups_of_a_model(cohorts):
    X, y, task = cohorts
    found = risk_groups(ts.MultiTaskCox(alpha=0.02).fit(X, y, task=task), X, y, task=task)
    assert not found.held_out
    assert list(found.tasks) == ["a", "b"]
    for groups, name in zip(found.groups, "ab", strict=True):
        assert [group.n_rows for group in groups] == [30, 30, 30]
        assert sum(group.n_events for group in groups) == y["event"][task == name].sum()
        assert groups[0].observed[-1] > groups[2].observed[-1]  # low risk lives longer
        for group in groups:
            assert group.at_risk[0] == 30
            assert np.all(np.diff(group.at_risk) <= 0)
            assert np.all(np.diff(group.expected) <= 0)
            assert np.all(np.abs(group.expected - group.observed) < 0.35)


def naive_deviance(slope, time, event, scores):
    """Minus the logarithm of Breslow's partial likelihood, without ties, event by event."""
    return sum(
        np.log(np.sum(np.exp(slope * scores[time >= time[i]]))) - slope * scores[i] for i in np.flatnonzero(event)
    )


def test_calibration_by_brute_force(cohorts):
    """The slope of the scores out of fold, and observed and expected shares of a third at the median event time."""
    X, y, task = cohorts
    model = ts.MultiTaskCoxCV(n_alphas=8, cv=3).fit(X, y, task=task)
    found = risk_groups(model, X, y, task=task)
    assert found.middle == np.median(y["time"][y["event"]])
    for t, name in enumerate("ab"):
        own = task == name
        time, event, scores = y["time"][own], y["event"][own], model.cv_predictions_[own]
        best = minimize_scalar(naive_deviance, (0.5, 2.0), args=(time, event, scores), tol=1e-10)
        assert found.slopes[t] == pytest.approx(best.x, abs=1e-6)
        h = 1e-3
        values = [naive_deviance(best.x + k * h, time, event, scores) for k in (-1, 0, 1)]
        curvature = (values[0] - 2.0 * values[1] + values[2]) / h**2
        assert found.slope_errors[t] == pytest.approx(curvature**-0.5, rel=1e-4)

        high = scores > np.quantile(scores, 2.0 / 3.0)
        alive = 1.0
        for at in np.sort(time[high & event]):
            alive *= 1.0 - (1.0 / np.count_nonzero(time[high] >= at) if at <= found.middle else 0.0)
        row = next(row for row in risk_table(found).rows if row[0] == f"{name}, high risk")
        assert row[3] == f"{alive:.0%}"
        # curves of the table change at the group's own event times: the last one before the middle
        last = max(at for at in time[high & event] if at <= found.middle)
        curves = model.predict_survival_function(X[own][high], task=task[own][high], times=[last])
        assert row[4] == f"{curves.mean():.0%}"
    (table,) = calibration_table(found)
    assert [row[0] for row in table.rows] == ["a", "b"]
    assert table.rows[0][2].startswith(f"{found.slopes[0]:.3g} ± ")


def test_groups_out_of_fold(cohorts):
    X, y, task = cohorts
    model = ts.MultiTaskCoxCV(n_alphas=8, cv=3).fit(X, y, task=task)
    found = risk_groups(model, X, y, task=task)
    assert found.held_out
    assert risk_groups(ts.MultiTaskCox(alpha=99.0).fit(X, y, task=task), X, y, task=task) is None  # all scores are 0
    text = ts.report.render(ts.report.content_from_model(model, X, y, task=task))
    assert "Survival by thirds of predicted risk" in text
    assert "had not learned" in text
    assert "Hazard ratios" in text
    assert "partial" in text
    assert "½" not in text.split("Methods, for an article")[1].split("</section>")[0]


def test_a_file_of_them(cohorts):
    X, y, task = cohorts
    found = risk_groups(ts.MultiTaskCox(alpha=0.02).fit(X, y, task=task), X, y, task=task)
    again = as_read(json.loads(json.dumps(as_written(found))))
    assert again.tasks == found.tasks
    assert np.array_equal(again.marks, found.marks)
    assert risk_table(again) == risk_table(found)
    assert calibration_table(again) == calibration_table(found)
    assert np.array_equal(again.groups[1][2].expected, found.groups[1][2].expected)
