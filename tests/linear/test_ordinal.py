"""MultiTaskOrdinal: labels of every kind, what it predicts, and all that is built on a fitted model."""

from __future__ import annotations

import pickle
import re
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from helpers import named_rows

import tasksieve as ts
from tasksieve.fitted.new_rows import quality_on
from tasksieve.fitted.restore import get_state, set_state

WORDS = ["none", "mild", "severe", "worst"]
TASKS, ROWS, D = 3, 50, 9


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    task = rng.permutation(np.repeat(np.arange(TASKS), ROWS))
    x = rng.standard_normal((TASKS * ROWS, D)) + 2.0
    z = x[:, 0] - x[:, 1] + rng.logistic(size=len(x))
    return x, np.digitize(z, [-1.5, 0.0, 1.5]), task


@pytest.fixture(scope="module")
def model(data):
    return ts.MultiTaskOrdinal(alpha=0.1).fit(**named_rows(*data))


def test_predictions_are_those_of_thresholds(data, model):
    x, _, task = data
    z = model.decision_function(x, task=task)
    np.testing.assert_allclose(z, np.sum(x * model.coef_[task], axis=1), rtol=1e-12)
    upto = 1.0 / (1.0 + np.exp(z[:, None] - model.thresholds_[task]))
    shares = np.diff(upto, axis=1, prepend=0.0, append=1.0)
    found = model.predict_proba(x, task=task)
    np.testing.assert_allclose(found, shares, atol=1e-13)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-13)
    assert np.array_equal(model.predict(x, task=task), model.classes_[np.argmax(shares, axis=1)])
    every = model.predict_proba(x)
    assert every.shape == (len(x), TASKS, 4)
    np.testing.assert_allclose(every[np.arange(len(x)), task], found, atol=1e-13)
    assert np.array_equal(model.predict(x)[np.arange(len(x)), task], model.predict(x, task=task))
    assert model.score(**named_rows(*data)) == pytest.approx(
        np.mean([np.mean((model.predict(x, task=task) == data[1])[task == t]) for t in range(TASKS)])
    )
    assert not model.intercept_.any()


def test_forms_of_the_data_agree(data, model):
    x, y, task = data
    parts = [np.flatnonzero(task == t) for t in range(TASKS)]
    listed = ts.MultiTaskOrdinal(alpha=0.1).fit([x[p] for p in parts], [y[p] for p in parts])
    named = ts.MultiTaskOrdinal(alpha=0.1).fit({t: (x[p], y[p]) for t, p in enumerate(parts)})
    for other in (listed, named):
        np.testing.assert_allclose(other.thresholds_, model.thresholds_, atol=1e-4)
    shares = listed.predict_proba([x[p] for p in parts])
    np.testing.assert_allclose(shares[1], model.predict_proba(x, task=task)[parts[1]], atol=1e-4)
    assert [len(part) for part in listed.predict([x[p] for p in parts])] == [ROWS] * TASKS
    single = ts.MultiTaskOrdinal(alpha=0.1).fit(x, y)
    assert single.predict(x).shape == (len(x),)
    assert single.predict_proba(x).shape == (len(x), 4)
    shared = ts.MultiTaskOrdinal(alpha=0.1).fit(x[:ROWS], np.stack([y[:ROWS], y[ROWS : 2 * ROWS]], axis=1))
    assert shared.predict(x[:7]).shape == (7, 2)


def test_labels_and_their_order(data, model):
    x, y, task = data
    words = np.array(WORDS)[y]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = ts.MultiTaskOrdinal(alpha=0.1, categories=WORDS).fit(x, words, task=task)
    assert given.classes_.tolist() == WORDS
    np.testing.assert_array_equal(given.coef_, model.coef_)
    assert np.array_equal(given.predict(x, task=task), np.array(WORDS)[model.predict(x, task=task)])
    with pytest.warns(UserWarning, match="mild < none < severe < worst"):
        by_alphabet = ts.MultiTaskOrdinal(alpha=0.1).fit(x, words, task=task)
    assert by_alphabet.classes_.tolist() == sorted(WORDS)
    pandas = pytest.importorskip("pandas")
    ordered = pandas.Series(pandas.Categorical(words, WORDS, ordered=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = ts.MultiTaskOrdinal(alpha=0.1).fit(x, ordered, task=task)
        named = ts.MultiTaskOrdinal(alpha=0.1).fit({t: (x[task == t], ordered[task == t]) for t in range(TASKS)})
    for other in (known, named):
        assert other.classes_.tolist() == WORDS
    np.testing.assert_array_equal(known.coef_, model.coef_)


def test_enums_of_polars_have_an_order(data, model):
    polars = pytest.importorskip("polars")
    x, y, task = data
    labels = polars.Series(np.array(WORDS)[y].tolist()).cast(polars.Enum(WORDS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = ts.MultiTaskOrdinal(alpha=0.1).fit(x, labels, task=task)
    assert known.classes_.tolist() == WORDS
    np.testing.assert_array_equal(known.coef_, model.coef_)


def test_classes_of_ones_own(data):
    x, y, task = data
    y = np.where((task == 0) & (y == 3), 2, y)
    labels = np.where(task == 0, np.array(["low", "mid", "high", "-"])[y], np.array(WORDS)[y])
    categories = {0: ["low", "mid", "high"], 1: WORDS, 2: WORDS}
    model = ts.MultiTaskOrdinal(alpha=0.1, categories=categories).fit(x, labels, task=task)
    assert [len(own) for own in model.thresholds_] == [2, 3, 3]
    assert [own.tolist() for own in model.classes_] == list(categories.values())
    assert [part.shape for part in model.predict_proba(x)] == [(len(x), 3), (len(x), 4), (len(x), 4)]
    by_rows = model.predict_proba(x, task=task)
    assert [len(part) for part in by_rows] == [ROWS] * TASKS
    answers = model.predict(x, task=task)
    for t, part in enumerate(by_rows):
        assert np.array_equal(answers[task == t], model.classes_[t][np.argmax(part, axis=1)])
    assert np.array_equal(model.predict(x)[np.arange(len(x)), task], answers)
    common = ts.MultiTaskOrdinal(alpha=0.1).fit(x, y, task=task)
    np.testing.assert_array_equal(model.coef_, common.coef_)
    assert common.thresholds_[0, 2] == np.inf
    assert model.certificate(x, labels, task=task).verify(x, labels, task=task).proved
    chosen = ts.MultiTaskOrdinalCV(categories=categories, n_alphas=3, cv=2).fit(x, labels, task=task)
    assert [part.shape[1] for part in chosen.cv_predictions_] == [3, 4, 4]


def test_two_classes_are_logistic_regression(data):
    x, y, task = data
    ordinal = ts.MultiTaskOrdinal(alpha=0.05, tol=1e-10).fit(x, y > 1, task=task)
    logistic = ts.MultiTaskLogisticRegression(alpha=0.05, tol=1e-10).fit(x, y > 1, task=task)
    gaps = ordinal.dual_gap_ + logistic.dual_gap_
    assert abs(ordinal.objective_ - logistic.objective_) <= gaps
    assert ordinal.alpha_max(x, y > 1, task=task) == pytest.approx(logistic.alpha_max(x, y > 1, task=task), rel=1e-13)
    np.testing.assert_allclose(ordinal.thresholds_[:, 0], -logistic.intercept_, atol=1e-3)
    np.testing.assert_allclose(
        ordinal.predict_proba(x, task=task), logistic.predict_proba(x, task=task), atol=1e-4
    )


def test_refusals_and_warnings(data):
    x, y, task = data
    with pytest.raises(ValueError, match="one class only"):
        ts.MultiTaskOrdinal().fit(x, np.ones(len(y)), task=task)
    with pytest.raises(ValueError, match=r"'severe' in row .* is not among"):
        ts.MultiTaskOrdinal(categories=["none", "mild"]).fit(x, np.array(WORDS)[np.minimum(y, 2)], task=task)
    with pytest.raises(ts.ParameterError, match="categories"):
        ts.MultiTaskOrdinal(categories=["a", "a"]).fit(x, y, task=task)
    with pytest.raises(ts.ParameterError, match="without task 2"):
        ts.MultiTaskOrdinal(categories={0: [0, 1], 1: [0, 1]}).fit(x, y, task=task)
    with pytest.raises(ValueError, match="continuous"):
        ts.MultiTaskOrdinal().fit(x, x[:, 0], task=task)
    with pytest.raises(TypeError, match="fit_intercept"):
        ts.MultiTaskOrdinal(fit_intercept=False)
    with pytest.warns(UserWarning, match=r"rows of one class only \(1\)"):
        one = ts.MultiTaskOrdinal(alpha=0.1).fit(x, np.where(task == 1, 2, y), task=task)
    assert not one.coef_[1].any()
    assert np.all(one.predict(x, task=np.ones(len(x), dtype=int)) == 2)
    with pytest.raises(ValueError, match="not of the ordinal deviance"):
        ts.split_inference(one, x, y, task=task)
    with pytest.raises(ValueError, match="no thresholds"):
        ts.MultiTaskLasso().path(x, x[:, 0], task=task, n_alphas=2).thresholds(0)


def test_paths_states_and_pickles(data, model):
    x, y, task = data
    path = ts.MultiTaskOrdinal().path(x, y, task=task, n_alphas=6, eps=0.05)
    assert path.converged.all()
    again = path.model(4)
    np.testing.assert_array_equal(again.thresholds_, path.thresholds(4))
    direct = ts.MultiTaskOrdinal(alpha=path.alphas[4]).fit(x, y, task=task)
    np.testing.assert_allclose(again.predict_proba(x, task=task), direct.predict_proba(x, task=task), atol=1e-3)
    np.testing.assert_allclose(path.predict(x, 4, task=task), again.decision_function(x, task=task), atol=1e-12)
    for other in (
        pickle.loads(pickle.dumps(model)),
        set_state(ts.MultiTaskOrdinal(alpha=0.1), **get_state(model)),
    ):
        assert np.array_equal(other.predict_proba(x, task=task), model.predict_proba(x, task=task))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(path)).thresholds(2), path.thresholds(2))


def test_cross_validation(data, tmp_path):
    x, y, task = data
    options = {"n_alphas": 6, "eps": 0.05, "cv": 3}
    found = []
    for _ in range(2):
        with ts.checkpoint(tmp_path):
            found.append(ts.MultiTaskOrdinalCV(**options).fit(x, y, task=task))
    first, second = found
    assert np.array_equal(first.cv_predictions_, second.cv_predictions_)
    assert first.cv_predictions_.shape == (len(y), 4)
    np.testing.assert_allclose(first.cv_predictions_.sum(axis=1), 1.0, atol=1e-12)
    own = -2.0 * np.log(first.cv_predictions_[np.arange(len(y)), y])
    quality = first.cv_quality_
    deviance = quality.overall[quality.measures.index("ordinal deviance")]
    assert deviance == pytest.approx(np.mean([own[task == t].mean() for t in range(TASKS)]), rel=1e-10)
    met = np.argmax(first.cv_predictions_, axis=1) == y
    assert quality.overall[0] == pytest.approx(np.mean([met[task == t].mean() for t in range(TASKS)]))
    assert quality.overall[0] > quality.null_overall[0]
    off = np.abs(np.argmax(first.cv_predictions_, axis=1) - y)
    at = quality.measures.index("mean absolute error")
    np.testing.assert_allclose(quality.values[:, at], [off[task == t].mean() for t in range(TASKS)])
    spread = quality.widening * off[task == 0].std(ddof=1) / np.sqrt(np.count_nonzero(task == 0))
    assert quality.errors[0, at] == pytest.approx(spread)
    assert quality.overall[at] < quality.null_overall[at]
    new = quality_on(first, x, y, task=task)
    own = np.abs(first.predict(x, task=task) - y)
    at = new.measures.index("mean absolute error")
    np.testing.assert_allclose(new.values[:, at], [own[task == t].mean() for t in range(TASKS)])
    assert "stratified by class" in first.cv_folds_
    by_score = ts.MultiTaskOrdinalCV(scoring="neg_log_loss", **options).fit(x, y, task=task)
    np.testing.assert_allclose(-2.0 * by_score.cv_scores_, first.cv_scores_, rtol=1e-9)

    def steps(estimator, X, labels):
        return -float(np.mean(np.abs(estimator.predict(X) - labels)))

    assert np.isfinite(ts.MultiTaskOrdinalCV(scoring=steps, **options).fit(x, y, task=task).cv_scores_).all()


def test_findings(data, model):
    x, y, task = data
    refitted = ts.refit(model, x, y, task=task)
    assert np.array_equal(refitted.get_support(), model.get_support())
    assert refitted.score(x, y, task=task) > 0.4
    unpenalised = ts.MultiTaskOrdinal(alpha=1e-9, tol=1e-8).fit(x[:, model.get_support()], y, task=task)
    np.testing.assert_allclose(refitted.thresholds_, unpenalised.thresholds_, atol=1e-3)
    np.testing.assert_allclose(refitted.coef_[:, model.get_support()], unpenalised.coef_, atol=1e-3)
    stable = ts.StabilitySelection(model, n_pairs=3, random_state=0).fit(x, y, task=task)
    assert stable.get_support()[[0, 1]].all()
    assert ts.permutation_test(model, x, y, task=task, n_permutations=9, random_state=0).pvalue == 0.1
    compared = ts.compare(ts.MultiTaskOrdinalCV(n_alphas=3, cv=2), x, y, task=task, cv=3)
    assert "log loss" in repr(compared)
    graded = ts.grade(model.coef_, None, x, y, task=task, alpha=0.1, loss="ordinal", thresholds=model.thresholds_)
    assert 0.0 <= graded.excess <= graded.dual_gap
    worse = ts.grade(model.coef_, None, x, y, task=task, alpha=0.1, loss="ordinal", thresholds=model.thresholds_ + 0.3)
    assert worse.excess > 1e-3
    with pytest.raises(ValueError, match="thresholds must have the shape"):
        ts.grade(model.coef_, None, x, y, task=task, alpha=0.1, loss="ordinal")
    with pytest.raises(ValueError, match="for the ordinal loss"):
        ts.grade(model.coef_, None, x, y, task=task, alpha=0.1, thresholds=model.thresholds_)


def test_certificates(data):
    x, y, task = data
    absent = np.where((task == 0) & (y == 1), 2, np.where(task == 1, np.clip(y, 1, 2), y))
    weights = np.random.default_rng(0).uniform(0.2, 2.0, len(y))
    model = ts.MultiTaskOrdinal(alpha=0.05, ridge=0.1, class_weight="balanced", penalty="sparse_group", tol=1e-9)
    model.fit(x, absent, task=task, sample_weight=weights, offset=x[:, 3])
    certificate = model.certificate(x, absent, task=task, sample_weight=weights, offset=x[:, 3])
    assert certificate.verify(x, absent, task=task, sample_weight=weights, offset=x[:, 3]).proved
    assert certificate.gaps[0] <= 2e-9 * model.null_objective_
    certificate.arrays["thresholds"] = certificate.arrays["thresholds"] + 0.1
    assert not certificate.verify(x, absent, task=task, sample_weight=weights, offset=x[:, 3]).proved
    path = ts.MultiTaskOrdinal().path(x, y, task=task, n_alphas=3, eps=0.2)
    assert path.certificate(x, y, task=task).verify(x, y, task=task).proved


def test_screening_changes_nothing_but_work():
    rng = np.random.default_rng(3)
    tasks, rows, d = 2, 40, 600
    task = np.repeat(np.arange(tasks), rows)
    x = rng.standard_normal((tasks * rows, d))
    y = np.digitize(2.0 * x[:, 0] - x[:, 1] + rng.logistic(size=len(x)), [-1.0, 0.5])
    model = ts.MultiTaskOrdinal(tol=1e-8)
    with_rule, without = (
        model.set_params(screening=rule).path(x, y, task=task, n_alphas=15, eps=0.1) for rule in ("auto", None)
    )
    assert np.all(np.abs(with_rule.objectives - without.objectives) <= with_rule.dual_gaps + without.dual_gaps)
    for k in range(15):
        assert np.array_equal(with_rule.features(k), without.features(k))
    assert np.median(with_rule.rejection_ratios[1:]) > 0.1


AGE = [19, 33, 20, 21, 18, 21, 22, 17, 29, 26, 19, 19, 22, 30, 18]
AGE += [18, 15, 25, 20, 28, 32, 31, 36, 28, 25, 28, 17, 29, 26, 17]
WEIGHT = [182, 155, 105, 108, 107, 124, 118, 103, 123, 113, 95, 150, 95, 107, 100]
WEIGHT += [100, 98, 118, 120, 120, 121, 100, 202, 120, 120, 167, 122, 150, 168, 113]


def small_outcome():
    """Ages and weights of thirty mothers (Hosmer and Lemeshow's study), and grades of a made-up score."""
    x = np.array([AGE, WEIGHT], dtype=float).T
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    rng = np.random.default_rng(12)
    return x, np.digitize(x @ [0.8, -0.5] + rng.logistic(size=30), [-1.0, 0.3, 1.2])


def nearly_unpenalised(x, y):
    model = ts.MultiTaskOrdinal(alpha=1e-10, tol=1e-14, feature_weights=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, y)
        return ts.refit(model, x, y)


def test_against_statsmodels():
    miscmodels = pytest.importorskip("statsmodels.miscmodels.ordinal_model", reason="statsmodels is not installed")
    x, y = small_outcome()
    ours = nearly_unpenalised(x, y)
    theirs = miscmodels.OrderedModel(y, x, distr="logit")
    found = theirs.fit(method="bfgs", gtol=1e-7, maxiter=1000, disp=False)
    np.testing.assert_allclose(ours.coef_[0], found.params[:2], atol=1e-6)
    np.testing.assert_allclose(ours.thresholds_[0], theirs.transform_threshold_params(found.params)[1:-1], atol=1e-6)


def test_against_polr(tmp_path):
    """MASS::polr in R; where it is absent, its stored numbers."""
    x, y = small_outcome()
    ours = nearly_unpenalised(x, y)
    stored = POLR
    if shutil.which("Rscript") is not None:
        np.savetxt(tmp_path / "data.csv", np.column_stack([y, x]), delimiter=",", fmt="%.17g")
        script = (
            "d <- read.csv('data.csv', header = FALSE); f <- MASS::polr(factor(V1) ~ V2 + V3, d, "
            "control = list(reltol = 1e-16, maxit = 1000)); cat(sprintf('%.12g', c(coef(f), f$zeta, f$deviance)))"
        )
        run = subprocess.run(["Rscript", "-e", script], cwd=tmp_path, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            stored = [float(word) for word in run.stdout.split()]
    assert len(stored) == 6
    np.testing.assert_allclose(ours.coef_[0], stored[:2], atol=1e-6)
    np.testing.assert_allclose(ours.thresholds_[0], stored[2:5], atol=1e-6)
    shares = ours.predict_proba(x)[np.arange(len(y)), y]
    assert -2.0 * np.log(shares).sum() == pytest.approx(stored[5], abs=1e-9)


#: coefficients, thresholds and deviance of `small_outcome` by MASS::polr
POLR = [1.75388949004, 0.130180972509, -1.11286971039, 0.725014004184, 1.0091524334, 53.5051908238]


# --- offsets beyond all odds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["everywhere", "in one row"])
@pytest.mark.parametrize("size", [1e12, -1e100, 1e308])
def test_an_offset_that_rounding_swallows_is_refused_with_its_size(size, where):
    """Thresholds beside 1e12 move in steps of 1e-4: the search for the best ones did not end."""
    X = np.random.default_rng(0).standard_normal((60, 4))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    offset = np.where((where == "everywhere") | (np.arange(60) == 3), size, 0.0)
    words = rf"offset is as large as {re.escape(format(abs(size), '.3g'))}: .* Use numbers of at most 1e\+10"
    for model in (ts.MultiTaskOrdinal(alpha=0.05), ts.MultiTaskMixed("ordinal", alpha=0.05)):
        with pytest.raises(ValueError, match=words):
            model.fit(X, y, offset=offset)


def test_a_large_offset_of_all_rows_moves_the_thresholds():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = np.digitize(X[:, 0] + rng.standard_normal(60), [-0.5, 0.5])
    plain = ts.MultiTaskOrdinal(alpha=0.05).fit(X, y)
    moved = ts.MultiTaskOrdinal(alpha=0.05).fit(X, y, offset=np.full(60, 1e6))
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-3)
    np.testing.assert_allclose(moved.thresholds_ - 1e6, plain.thresholds_, atol=1e-3)
    row_absent = np.append(np.zeros(60), 1e12)  # of weight 0
    kept = ts.MultiTaskOrdinal(alpha=0.05).fit(
        np.vstack([X, X[:1]]), np.append(y, 0), offset=row_absent, sample_weight=np.append(np.ones(60), 0.0)
    )
    np.testing.assert_allclose(kept.coef_, plain.coef_, atol=1e-3)


@pytest.mark.filterwarnings("ignore")  # these data need not converge: what is claimed must be true
def test_classes_of_tiny_weight_beside_others_have_thresholds_and_a_certificate() -> None:
    """A class of 1e-16 of a task's weight: sums from one end would lose it, and its threshold would be infinite."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        X = rng.standard_normal((10, 5))
        z = X[:, 0] + 0.3 * rng.standard_normal(10)
        y, task = np.digitize(z, np.quantile(z, [1 / 3, 2 / 3])), np.repeat([0, 1], 5)
        rows = {"task": task, "sample_weight": np.where(rng.random(10) < 0.5, 1e-8, 1e8)}
        model = ts.MultiTaskOrdinal(alpha=0.01).fit(X, y, **rows)
        assert np.isfinite(model.dual_gap_)
        assert model.certificate(X, y, **rows).verify(X, y, **rows).proved
