"""`offset` of the linear models: against a cone solver and against its definition, in every form of the data."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, KFold
from sorted_norms import sorted_norm_expression

import tasksieve as ts
from tasksieve.penalties import oscar_weights

N, D = 25, 7


@pytest.fixture
def data(rng):
    """X, y, task, weights, offset; rows not sorted by task."""
    task = rng.permutation(np.repeat(["a", "b", "c"], N))
    x = rng.standard_normal((len(task), D))
    offset = 2.0 * rng.standard_normal(len(task)) + 3.0 * (task == "b")
    y = x[:, 0] * np.where(task == "a", 2.0, -1.0) + x[:, 1] + offset + 0.5 * rng.standard_normal(len(task)) + 1.0
    return x, y, task, rng.uniform(0.3, 2.0, len(task)), offset


def signs_of(y):
    return np.where(y > np.median(y), 1.0, -1.0)


def optimum(x, y, task, s, offset, alpha, loss) -> float:
    w, b = cp.Variable((D, 3)), cp.Variable(3)
    total = 0
    for t, name in enumerate("abc"):
        own = task == name
        z = x[own] @ w[:, t] + b[t] + offset[own]
        if loss == "square-root":
            total += cp.norm(cp.multiply(np.sqrt(s[own]), y[own] - z))
            continue
        total += s[own] @ (cp.square(y[own] - z) / 2 if loss == "squared" else cp.logistic(-cp.multiply(y[own], z)))
    unit = s.sum() / 3
    unit = np.sqrt(unit) if loss == "square-root" else unit
    program = cp.Problem(cp.Minimize(total / unit + alpha * cp.sum(cp.norm(w, 2, axis=1))))
    program.solve(solver="CLARABEL")
    return float(program.value)


MODELS = {
    "squared": lambda: ts.MultiTaskLasso(tol=1e-8),
    "logistic": lambda: ts.MultiTaskLogisticRegression(tol=1e-8),
    "square-root": lambda: ts.CalibratedMultiTaskLasso(tol=1e-8),
}


@pytest.mark.parametrize("loss", MODELS)
def test_as_good_as_a_cone_solver_with_a_true_gap(data, loss):
    x, y, task, s, offset = data
    y = signs_of(y) if loss == "logistic" else y
    model = MODELS[loss]()
    given = {"task": task, "sample_weight": s, "offset": offset}
    alpha = 0.3 * model.alpha_max(x, y, **given)
    best = optimum(x, y, task, s, offset, alpha, loss)
    for tol in (1e-2, 1e-8):
        model.set_params(alpha=alpha, tol=tol).fit(x, y, **given)
        assert model.dual_gap_ <= tol * model.null_objective_
        assert -1e-7 * model.null_objective_ <= model.objective_ - best
        assert model.objective_ - best <= model.dual_gap_ + 1e-7 * model.null_objective_
    assert not np.allclose(model.coef_, model.fit(x, y, task=task, sample_weight=s).coef_, atol=1e-3)


def test_multinomial_against_a_cone_solver(data, rng):
    x, y, _, s, _ = data
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    offset = rng.standard_normal((len(y), 3))
    model = ts.MultinomialOWL(tol=1e-7)
    alpha = 0.3 * model.alpha_max(x, labels, sample_weight=s, offset=offset)
    model.set_params(alpha=alpha).fit(x, labels, sample_weight=s, offset=offset)
    w, b = cp.Variable((D, 3)), cp.Variable(3)
    z = x @ w + np.ones((len(y), 1)) @ cp.reshape(b, (1, 3), order="C") + offset
    rows = cp.log_sum_exp(z, axis=1) - cp.sum(cp.multiply(np.eye(3)[labels], z), axis=1)
    value = s @ rows / s.sum() + alpha * sorted_norm_expression(w, oscar_weights(D))
    program = cp.Problem(cp.Minimize(value))
    program.solve(solver="CLARABEL")
    assert abs(model.objective_ - program.value) <= model.dual_gap_ + 1e-6
    assert model.dual_gap_ <= 1e-7 * model.null_objective_
    scores = x @ model.coef_.T + model.intercept_ + offset
    np.testing.assert_allclose(model.decision_function(x, offset=offset), scores, atol=1e-12)
    assert np.array_equal(model.predict(x, offset=offset), np.argmax(scores, axis=1))
    assert model.score(x, labels, offset=offset) == np.mean(np.argmax(scores, axis=1) == labels)
    np.testing.assert_allclose(model.predict_proba(x, offset=offset).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="was fitted with an offset"):
        model.predict(x)
    scored = ts.MultinomialOWLCV(n_alphas=3, cv=2).fit(x, labels, offset=offset)
    assert np.isfinite(scored.cv_scores_).all()


@pytest.mark.parametrize(
    "model",
    [ts.MultiTaskLasso(0.2), ts.MultiTaskElasticNet(0.2), ts.MultiTaskSparseGroupLasso(0.2), ts.MultiTaskOWL(0.2),
     ts.CalibratedMultiTaskLasso(0.2), ts.MultiTaskRegressor("squared", "l11", alpha=0.2)],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_of_differences_it_is_a_change_of_labels(data, model):
    x, y, task, s, offset = data
    model.set_params(tol=1e-9)
    one = sklearn.clone(model).fit(x, y, task=task, sample_weight=s, offset=offset)
    two = sklearn.clone(model).fit(x, y - offset, task=task, sample_weight=s)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-10)
    np.testing.assert_allclose(one.intercept_, two.intercept_, atol=1e-10)
    np.testing.assert_allclose(one.predict(x, task=task, offset=offset), two.predict(x, task=task) + offset)
    assert one.score(x, y, task=task, offset=offset) > two.score(x, y, task=task)
    first, second = (sklearn.clone(model).path(x, part, task=task, n_alphas=5, eps=0.1, **more)
                     for part, more in ((y, {"offset": offset}), (y - offset, {})))  # fmt: skip
    np.testing.assert_allclose(first.objectives, second.objectives, rtol=1e-9)
    there = second.predict(x, 3, task=task)
    np.testing.assert_allclose(first.predict(x, 3, task=task, offset=offset), there + offset, atol=1e-9)
    np.testing.assert_allclose(
        first.model(3).predict(x, task=task, offset=offset), second.model(3).predict(x, task=task) + offset, atol=1e-9
    )
    for predict in (lambda: first.predict(x, 3), lambda: first.model(3).predict(x), lambda: one.predict(x)):
        with pytest.raises(ValueError, match="was fitted with an offset: pass offset="):
            predict()


@pytest.mark.parametrize("kind", ["lasso", "logistic"])
def test_forms_of_the_data_are_one(data, kind):
    x, y, task, s, offset = data
    y = signs_of(y) if kind == "logistic" else y
    model = ts.MultiTaskLasso(0.1, tol=1e-9) if kind == "lasso" else ts.MultiTaskLogisticRegression(0.02)
    stacked = sklearn.clone(model).fit(x, y, task=task, sample_weight=s, offset=offset)
    parts = [[part[task == name] for name in "abc"] for part in (x, y, s, offset)]
    listed = sklearn.clone(model).fit(parts[0], parts[1], sample_weight=parts[2], offset=parts[3])
    np.testing.assert_allclose(listed.coef_, stacked.coef_, atol=1e-9)
    found = listed.predict(parts[0], offset=parts[3])
    whole = stacked.predict(x, task=task, offset=offset)
    for t, name in enumerate("abc"):
        assert np.array_equal(found[t], whole[task == name]) or np.allclose(found[t], whole[task == name])
    assert listed.score(parts[0], parts[1], offset=parts[3]) == pytest.approx(
        stacked.score(x, y, task=task, offset=offset)
    )


def test_shared_matrix_and_missing_labels(rng):
    x = rng.standard_normal((40, D))
    offset = rng.standard_normal((40, 2))
    y = np.stack([x[:, 0], -x[:, 0] + x[:, 1]], axis=1) + offset + 0.3 * rng.standard_normal((40, 2))
    y[::5, 0] = np.nan
    hidden = offset.copy()
    hidden[::5, 0] = np.nan  # where no label is, no offset is looked at
    one = ts.MultiTaskLasso(0.05, tol=1e-9).fit(x, y, offset=hidden)
    two = ts.MultiTaskLasso(0.05, tol=1e-9).fit(x, y - offset)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-10)
    np.testing.assert_allclose(one.predict(x, offset=offset), two.predict(x) + offset)
    np.testing.assert_allclose(one.predict(x, offset=0.0), two.predict(x))
    assert one.score(x, y, offset=hidden) > 0.8
    per_row = ts.MultiTaskLasso(0.05, tol=1e-9).fit(x, y, offset=offset[:, 0])
    wide = ts.MultiTaskLasso(0.05, tol=1e-9).fit(x, y, offset=np.repeat(offset[:, :1], 2, axis=1))
    assert np.array_equal(per_row.coef_, wide.coef_)
    np.testing.assert_allclose(per_row.predict(x, offset=offset[:, 0]), per_row.predict(x, offset=offset[:, [0, 0]]))


def test_a_constant_offset_moves_the_intercepts(data):
    x, y, task, _, _ = data
    logistic = ts.MultiTaskLogisticRegression(0.03, tol=1e-9)
    for model, labels in ((ts.MultiTaskLasso(0.2, tol=1e-9), y), (logistic, signs_of(y))):
        plain = sklearn.clone(model).fit(x, labels, task=task)
        moved = sklearn.clone(model).fit(x, labels, task=task, offset=2.5)
        np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-6)
        np.testing.assert_allclose(moved.intercept_, plain.intercept_ - 2.5, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_cross_validation_scores_with_it(data, loss):
    """Folds by hand: the held-out loss of a model on the other rows."""
    x, y, task, _, offset = data
    y = signs_of(y) if loss == "logistic" else y
    folds = list(KFold(3, shuffle=True, random_state=0).split(x))
    kind, single = (ts.MultiTaskLassoCV, ts.MultiTaskLasso) if loss == "squared" else (
        ts.MultiTaskLogisticRegressionCV, ts.MultiTaskLogisticRegression)  # fmt: skip
    alphas = [0.1, 0.02]
    for early in (False, True):
        model = kind(alphas=alphas, cv=folds, fold_tol=1e-9, tol=1e-9, early_stopping=early)
        model.fit(x, y, task=task, offset=offset)
        for f, (train, test) in enumerate(folds):
            for k, alpha in enumerate(alphas):
                own = single(alpha, tol=1e-9).fit(x[train], y[train], task=task[train], offset=offset[train])
                if loss == "squared":
                    rows = (y[test] - own.predict(x[test], task=task[test], offset=offset[test])) ** 2
                else:
                    z = own.decision_function(x[test], task=task[test], offset=offset[test])
                    rows = np.logaddexp(0.0, -y[test] * z)
                expected = np.mean([rows[task[test] == name].mean() for name in "abc"])
                assert model.cv_scores_[k, f] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="was fitted with an offset"):
        model.predict(x, task=task)
    again = single(model.alpha_, tol=1e-9).fit(x, y, task=task, offset=offset)
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-5)
    assert ts.MultiTaskLassoCV(alphas=alphas).fit(x, y, task=task).predict(x, task=task).shape == y.shape


def test_checkpoints_know_offsets_apart(data, tmp_path):
    x, y, task, _, offset = data
    scores = []
    for known in (offset, -offset):
        with ts.checkpoint(tmp_path):
            scores.append(ts.MultiTaskLassoCV(alphas=[0.1], cv=3).fit(x, y, task=task, offset=known).cv_scores_)
    assert not np.allclose(*scores)


def test_metadata_is_routed(data):
    x, y, task, _, offset = data
    with sklearn.config_context(enable_metadata_routing=True):
        model = ts.MultiTaskLasso(tol=1e-9).set_fit_request(task=True, offset=True)
        model.set_score_request(task=True, offset=True).set_predict_request(task=True, offset=True)
        search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=3).fit(x, y, task=task, offset=offset)
        assert search.best_params_ == {"alpha": 0.1}
        scorer = ts.task_scorer(sklearn.metrics.mean_squared_error, greater_is_better=False)
        scorer.set_score_request(task=True, offset=True)
        search = GridSearchCV(model, {"alpha": [0.1]}, cv=3, scoring=scorer).fit(x, y, task=task, offset=offset)
        assert -1.0 < search.best_score_ < 0.0


def test_proofs_and_sparse_group_know_it(data):
    x, y, task, s, offset = data
    for loss, labels in (("squared", y), ("logistic", signs_of(y))):
        model = ts.MultiTaskSparseGroupLasso(0.05, l1=0.5, loss=loss, tol=1e-9)
        model.fit(x, labels, task=task, sample_weight=s, offset=offset)
        zero = model.zero_coefficients(x, labels, task=task, sample_weight=s, offset=offset)
        assert not model.coef_[zero].any()
        assert zero.any()
        with pytest.raises(ValueError, match="offset"):
            model.zero_coefficients(x, labels, task=task)
        if loss == "logistic":
            z = model.decision_function(x, task=task, offset=offset)
            np.testing.assert_allclose(model.predict_proba(x, task=task, offset=offset)[:, 1], 1 / (1 + np.exp(-z)))
            assert np.array_equal(model.predict(x, task=task, offset=offset), np.where(z > 0, 1.0, -1.0))


@pytest.mark.parametrize("size", [1.0, 1e12])
def test_the_certificate_is_about_the_exact_difference(data, size):
    """Labels and offsets far from zero: their rounded difference would be other data."""
    x, y, task, _, offset = data
    y, offset = y + size, 0.1 * offset  # y - offset is no double
    model = ts.MultiTaskLasso(0.2, tol=1e-9 if size == 1.0 else 1e-6).fit(x, y, task=task, offset=offset)

    def exact(coef, intercept):
        total = Fraction(0)
        for i, name in enumerate(task):
            t = "abc".index(name)
            z = sum(Fraction(a) * Fraction(b) for a, b in zip(x[i].tolist(), coef[t].tolist(), strict=True))
            residual = Fraction(y[i]) - Fraction(offset[i]) - z - Fraction(float(intercept[t]))
            total += residual * residual / 2
        return float(total / N) + 0.2 * float(np.linalg.norm(coef, axis=0).sum())

    value = exact(model.coef_, model.intercept_)
    assert abs(value - model.objective_) <= model.dual_gap_ + 1e-14 * value
    assert model.dual_gap_ <= 1e-4 * model.null_objective_


def test_logistic_certificate_with_large_offsets_is_true(data, rng):
    x, y, task, _, _ = data
    signs, offset = signs_of(y), 100.0 * rng.standard_normal(len(y))
    model = ts.MultiTaskLogisticRegression(0.02, tol=1e-7).fit(x, signs, task=task, offset=offset)
    best = optimum(x, signs, task, np.ones(len(y)), offset, 0.02, "logistic")
    assert model.objective_ - best <= model.dual_gap_ + 1e-6 * model.null_objective_


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda o: o[:-1], "offset.shape == \\(74,\\), expected \\(75,\\)"),
        (lambda o: np.where(np.arange(75) == 7, np.nan, o), "offset is nan in row 8"),
        (lambda o: np.where(np.arange(75) == 7, np.inf, o), "offset is inf in row 8"),
        (lambda o: np.array(["x"] * 75), "offset must hold numbers"),
        (lambda o: np.nan, "offset is nan"),
        (lambda o: np.ma.array(o, mask=np.arange(75) == 3), "offset is masked in row 4"),
    ],
)
def test_what_is_no_offset_is_refused(data, change, words):
    x, y, task, _, offset = data
    with pytest.raises(ValueError, match=words):
        ts.MultiTaskLasso().fit(x, y, task=task, offset=change(offset))


def test_what_is_no_offset_is_refused_at_predict(data):
    x, y, task, _, offset = data
    model = ts.MultiTaskLasso(0.1).fit(x, y, task=task, offset=offset)
    nothing = np.full(75, np.nan)
    for wrong, words in ((offset[:-1], "expected \\(75,\\)"), (nothing, "not finite in row 1"), ("a", "numbers")):
        with pytest.raises(ValueError, match=words):
            model.predict(x, task=task, offset=wrong)
    with pytest.raises(ValueError, match="list of 3 1-D arrays"):
        model.predict([x, x, x], offset=[offset, offset])
    assert model.predict(x, offset=offset).shape == (75, 3)  # one per row, for every task
    assert model.fit(x, y, task=task).predict(x, task=task).shape == (75,)  # needed no longer


def test_models_that_take_none_say_so(data):
    x, y, task, _, offset = data
    for model in (ts.GraphSVR(), ts.OnlineMultiTaskRegressor()):
        with pytest.raises(TypeError, match="offset"):
            model.fit(x, y, task=task, offset=offset)
        with pytest.raises(TypeError, match="offset"):
            model.fit(x, y, task=task).predict(x, task=task, offset=offset)


def test_units_of_labels_are_those_of_offsets(data):
    x, y, task, _, offset = data
    one = ts.MultiTaskLasso(0.2, tol=1e-9).fit(x, y, task=task, offset=offset)
    large = 2.0**200
    two = ts.MultiTaskLasso(0.2 * large, tol=1e-9).fit(x, large * y, task=task, offset=large * offset)
    np.testing.assert_allclose(two.coef_ / large, one.coef_, rtol=1e-9)
    found = two.predict(x, task=task, offset=large * offset)
    np.testing.assert_allclose(found / large, one.predict(x, task=task, offset=offset))


def test_tall_data_too(data, monkeypatch):
    from tasksieve.path import policy

    x, y, task, s, offset = data
    monkeypatch.setattr(policy, "TALL_BYTES", 0)
    one = ts.MultiTaskLasso(0.2, tol=1e-9).fit(x, y, task=task, sample_weight=s, offset=offset)
    two = ts.MultiTaskLasso(0.2, tol=1e-9).fit(x, y - offset, task=task, sample_weight=s)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-6)
    scored = [
        ts.MultiTaskLassoCV(alphas=[0.2, 0.1], cv=3).fit(x, part, task=task, **more).cv_scores_
        for part, more in ((y, {"offset": offset}), (y - offset, {}))
    ]
    np.testing.assert_allclose(*scored, rtol=1e-3)


def test_lists_of_different_lengths():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((n, 4)) for n in (8, 12)]
    y = [rng.standard_normal(len(part)) for part in X]
    offset = [np.full(8, 0.5), np.full(12, -1.0)]
    found = ts.MultiTaskLasso(0.05).fit(X, y, offset=offset)
    plain = ts.MultiTaskLasso(0.05).fit(X, [y[0] - 0.5, y[1] + 1.0])
    np.testing.assert_allclose(found.coef_, plain.coef_, atol=1e-4)
    assert found.certificate(X, y, offset=offset).gaps[0] < 1e-4
