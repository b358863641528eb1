"""Several imputations as tasks: the explicit problem, the problem of one table, and Rubin's rules."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

import tasksieve as ts


def holed(rows=60, features=6, seed=0, share=0.15):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features))
    X[:, 1] += 0.7 * X[:, 0]
    task = np.array(["north", "south"])[rng.integers(0, 2, rows)]
    y = X[:, 0] * np.where(task == "north", 2.0, 1.0) - X[:, 1] + 0.3 * rng.standard_normal(rows)
    X[rng.random(X.shape) < share] = np.nan
    return X, y, task


IMPUTER = IterativeImputer(sample_posterior=True, max_iter=3)


def test_the_answer_is_that_of_the_explicit_problem():
    cp = pytest.importorskip("cvxpy")
    X, y, task = holed()
    m, alpha = 3, 0.2
    model = ts.MultipleImputation(ts.MultiTaskLasso(alpha=alpha, tol=1e-10), IMPUTER, m=m).fit(X, y, task=task)
    n_bar = len(y) / 2.0
    W, b, losses = cp.Variable((m * 2, X.shape[1])), cp.Variable(m * 2), 0.0
    for a, table in enumerate(model.tables_):
        assert np.array_equal(table[~np.isnan(X)], X[~np.isnan(X)])
        for t, name in enumerate(["north", "south"]):
            own = task == name
            losses += cp.sum_squares(y[own] - table[own] @ W[2 * a + t] - b[2 * a + t]) / (2.0 * n_bar)
    problem = cp.Problem(cp.Minimize(losses / m + alpha / np.sqrt(m) * cp.sum(cp.norm(W, axis=0))))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    assert model.objective_ == pytest.approx(problem.value, abs=1e-8)
    assert -1e-9 <= model.objective_ - problem.value <= model.dual_gap_ + 1e-9
    np.testing.assert_allclose(model.imputed_coef_.reshape(-1, X.shape[1]), W.value, atol=1e-4)
    np.testing.assert_allclose(model.coef_, model.imputed_coef_.mean(axis=0))


@pytest.mark.parametrize(
    "model",
    [
        ts.MultiTaskLasso(alpha=0.1, tol=1e-11), ts.MultiTaskOWL(alpha=0.1, tol=1e-11),
        ts.MultiTaskGroupLasso(alpha=0.1, feature_groups=[0, 0, 1, 1, 2, 2], tol=1e-11),
        ts.MultiTaskRegressor(alpha=0.1, ridge=0.3, task_graph="chain", tol=1e-11),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_equal_imputations_are_the_single_fit(model):
    X, y, task = holed(share=0.0)
    one = clone(model).fit(X, y, task=task)
    several = ts.MultipleImputation(model).fit_completed([X] * 4, y, task=task)
    assert several.objective_ == pytest.approx(one.objective_, abs=1e-9)
    np.testing.assert_allclose(several.coef_, one.coef_, atol=1e-5)
    np.testing.assert_allclose(several.intercept_, one.intercept_, atol=1e-5)
    np.testing.assert_allclose(several.predict(X, task=task), one.predict(X, task=task), atol=1e-5)
    assert several.score(X, y, task=task) == pytest.approx(one.score(X, y, task=task), abs=1e-5)


def test_cross_validation_keeps_the_imputations_of_a_row_together():
    X, y, task = holed(share=0.0)
    grid = {"alphas": [0.5, 0.2, 0.05], "cv": 3, "tol": 1e-9, "fold_tol": 1e-9}
    groups = np.arange(len(y))
    one = ts.MultiTaskLassoCV(**grid).fit(X, y, task=task, groups=groups)
    several = ts.MultipleImputation(ts.MultiTaskLassoCV(**grid)).fit_completed([X] * 3, y, task=task)
    assert several.alpha_ == pytest.approx(one.alpha_)
    held = several.model_.cv_predictions_.reshape(3, len(y))
    np.testing.assert_allclose(held[1], held[0], atol=1e-6)  # copies of a row were never in training and test at once
    assert "groups" in several.model_.cv_folds_


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["classes", "counts", "shared", "list", "one", "ordered"])
def test_every_kind_and_form_of_labels(kind):
    X, y, task = holed()
    model, given = ts.MultiTaskLasso(alpha=0.1), (X, y, task)
    if kind == "classes":
        model, given = ts.MultiTaskLogisticRegression(alpha=0.01), (X, np.where(y > 0, "yes", "no"), task)
    elif kind == "counts":
        model, given = ts.MultiTaskPoisson(alpha=0.01), (X, np.floor(np.exp(0.5 * y)), task)
    elif kind == "ordered":
        model, given = ts.MultiTaskOrdinal(alpha=0.01), (X, np.digitize(y, [-1.0, 1.0]), task)
    elif kind == "shared":
        given = X, np.column_stack([y, 2.0 * y]), None
    elif kind == "list":
        given = [X[:30], X[30:]], [y[:30], y[30:]], None
    elif kind == "one":
        given = X, y, None
    found = ts.MultipleImputation(model, IMPUTER, m=2).fit(given[0], given[1], task=given[2])
    rows, labels, tasks = (X, np.concatenate(given[1]), np.repeat([0, 1], 30)) if kind == "list" else given
    if kind == "shared":
        assert found.predict(X).shape == (60, 2)
        assert found.score(X, given[1]) > 0.3
    else:
        assert found.predict(rows, task=tasks).shape == (60,)
        assert found.score(rows, labels, task=tasks) > 0.3
    if kind in ("classes", "ordered"):
        np.testing.assert_allclose(found.predict_proba(rows, task=tasks).sum(axis=-1), 1.0)


def test_rows_with_holes_are_predicted_by_the_mean_over_imputers():
    X, y, task = holed()
    model = ts.MultipleImputation(ts.MultiTaskLasso(alpha=0.1), KNNImputer(), m=1).fit(X, y, task=task)
    expected = np.empty(len(y))
    for t, name in enumerate(["north", "south"]):
        own = task == name
        filled = KNNImputer().fit(X[own]).transform(X[own])
        expected[own] = filled @ model.coef_[t] + model.intercept_[t]
    np.testing.assert_allclose(model.predict(X, task=task), expected, atol=1e-12)
    with pytest.warns(UserWarning, match="draws nothing at random"):
        ts.MultipleImputation(ts.MultiTaskLasso(alpha=0.1), KNNImputer(), m=2).fit(X, y, task=task)


def test_the_certificate_is_about_the_completed_tables():
    X, y, task = holed()
    model = ts.MultipleImputation(ts.MultiTaskLasso(alpha=0.1), IMPUTER, m=2).fit(X, y, task=task)
    stacked, labels, codes, _ = model._fitted_to
    assert model.certificate().verify(stacked, labels, task=codes).proved
    changed = stacked.copy()
    changed[0, 0] += 1.0
    assert not model.certificate().verify(changed, labels, task=codes).proved


def test_features_named_beforehand_are_pooled_by_rubins_rules():
    sm = pytest.importorskip("statsmodels.api")
    X, y, task = holed(rows=80)
    m = 4
    model = ts.MultipleImputation(ts.MultiTaskLasso(alpha=0.1), IMPUTER, m=m).fit(X, y, task=task)
    found = model.refit([0, 1], level=0.95)
    assert found.feature.tolist() == [0, 0, 1, 1]
    assert found.task.tolist() == ["north", "south"] * 2
    for k, (j, name) in enumerate(zip(found.feature, found.task, strict=True)):
        own = task == name
        fits = [sm.OLS(y[own], sm.add_constant(table[own][:, [0, 1]])).fit(cov_type="HC2") for table in model.tables_]
        q, u = np.array([fit.params[1 + j] for fit in fits]), np.array([fit.bse[1 + j] ** 2 for fit in fits])
        between = (1.0 + 1.0 / m) * q.var(ddof=1)
        total = u.mean() + between
        assert found.estimate[k] == pytest.approx(q.mean(), rel=1e-9)
        assert found.std_error[k] == pytest.approx(np.sqrt(total), rel=1e-9)
        assert found.missing_information[k] == pytest.approx(between / total, rel=1e-9)
        width = student.isf(0.025, found.df[k]) * np.sqrt(total)
        assert found.upper[k] - found.lower[k] == pytest.approx(2.0 * width, rel=1e-9)
        assert found.df[k] < min(own.sum() - 1, (m - 1) / (between / total) ** 2) + 1e-9
    after = model.refit()
    assert np.isnan(after.lower).all()
    assert "no intervals" in after.note
    assert np.isfinite(after.estimate).all()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ts.MultiTaskElasticNet(), "not made of norms of rows alone"),
        (ts.MultiTaskSparseGroupLasso(l1=0.5), "not made of norms of rows alone"),
        (ts.MultiTaskRegressor(penalty="linf"), "not made of norms of rows alone"),
        (ts.GraphSVR(), "GraphSVR has no penalty"),
    ],
)
def test_penalties_whose_alpha_would_change_its_meaning_are_refused(model, words):
    X, y, task = holed()
    with pytest.raises(ValueError, match=words):
        ts.MultipleImputation(model, IMPUTER, m=2).fit(X, y, task=task)


def test_what_cannot_be_imputed_is_refused_by_name():
    X, y, task = holed()
    X[task == "north", 2] = np.nan
    with pytest.raises(ValueError, match="Columns without a value in a task"):
        ts.MultipleImputation(ts.MultiTaskLasso(), IMPUTER, m=2).fit(X, y, task=task)
    with pytest.raises(ts.ParameterError, match="fit_completed"):
        ts.MultipleImputation(ts.MultiTaskLasso()).fit(X, y, task=task)
    with pytest.raises(ts.ParameterError, match="give it without task='site'"):
        ts.MultipleImputation(ts.MultiTaskLasso(task="site"), IMPUTER, m=2).fit(X, y)
    model = ts.MultipleImputation(ts.MultiTaskLasso()).fit_completed([np.nan_to_num(X)], y, task=task)
    with pytest.raises(ValueError, match="completed elsewhere"):
        model.predict(X, task=task)


def test_halves_are_imputed_from_their_own_rows_alone():
    X, y, task = holed(rows=80)

    seen = []

    class Remembering(KNNImputer):

        def fit(self, X, y=None):
            seen.append(X.copy())
            return super().fit(X, y)

    one = ts.MultipleImputation(ts.MultiTaskLasso(), Remembering())
    stable = ts.StabilitySelection(one, n_pairs=3, q=2, n_jobs=1).fit(X, y, task=task)
    assert stable.get_support(indices=True).tolist() == [0, 1]
    assert len(seen) == 2 * 3 * 2  # halves, tasks
    sizes = {name: int(np.count_nonzero(task == name)) for name in ("north", "south")}
    for k in range(0, len(seen), 4):  # of each pair: the rows of a task are in one half or the other
        for t, name in enumerate(("north", "south")):
            first, second = seen[k + t], seen[k + 2 + t]
            both = np.concatenate([first, second])
            assert len(both) == sizes[name]
            own = X[task == name]
            assert np.array_equal(np.sort(np.nan_to_num(both[:, 0])), np.sort(np.nan_to_num(own[:, 0])))
    whole = np.nan_to_num(X)
    complete = ts.StabilitySelection(ts.MultipleImputation(ts.MultiTaskLasso(), KNNImputer()), n_pairs=3, q=2)
    plain = ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=3, q=2).fit(whole, y, task=task)
    found = complete.fit(whole, y, task=task).selection_probabilities_
    np.testing.assert_array_equal(found, plain.selection_probabilities_)
