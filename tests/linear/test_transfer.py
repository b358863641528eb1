"""New tasks from old coefficients: the problems that are solved, their certificates, and when old tasks are left."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Lasso

import tasksieve as ts

Array = np.ndarray[Any, Any]
PATH: dict[str, Any] = {"n_alphas": 15, "eps": 0.05, "cv": 3}
SHORT: dict[str, Any] = {"n_alphas": 3, "eps": 0.3, "cv": 2}  # where only what is refused matters


def tasks(seed: int = 0, n: int = 40, d: int = 25, T: int = 4) -> tuple[Array, Array, Array, Array]:
    """Rows of T tasks with nearly the same coefficients, and these."""
    random = np.random.default_rng(seed)
    task = np.repeat(np.arange(T), n)
    X = random.standard_normal((n * T, d))
    coef = np.zeros((T, d))
    coef[:, :4] = np.array([1.0, -1.0, 0.8, 0.6]) + 0.05 * random.standard_normal((T, 4))
    y = np.einsum("ij,ij->i", X, coef[task]) + 0.5 * random.standard_normal(n * T)
    return X, y, task, coef


def test_weights_of_the_one_old_task_that_is_alike() -> None:
    """Old tasks of which each has features of its own: those of the others are of no use to a new one."""
    random = np.random.default_rng(4)
    task, coef = np.repeat(np.arange(4), 40), np.zeros((4, 40))
    for t in range(4):
        coef[t, 5 * t : 5 * t + 5] = random.choice([-1.0, 1.0], 5) * random.uniform(0.5, 1.0, 5)
    X = random.standard_normal((160, 40))
    y = np.einsum("ij,ij->i", X, coef[task]) + 0.5 * random.standard_normal(160)
    model = ts.MultiTaskLassoCV(**PATH).fit(X, y, task=np.array(["a", "b", "c", "d"])[task])
    rows = random.standard_normal((20, 40))
    found = model.fit_new_task(rows, rows @ (1.5 * coef[2]) + 0.5 * random.standard_normal(20), name="new")
    assert found.how != "alone"
    (own,) = (one for one in found.tried if (one["how"], one["strength"]) == ("weights", "c"))
    (alone,) = (one for one in found.tried if one["how"] == "alone")
    assert own["loss"] < 0.7 * alone["loss"]
    away = {one["how"]: np.sum((one["coef"] - 1.5 * coef[2]) ** 2) for one in (own, alone)}
    assert away["weights"] < 0.7 * away["alone"]
    sizes = np.abs(model.coef_[2])
    asked = model.fit_new_task(rows, rows @ coef[2], name="new", how="weights")
    assert ("weights", "c") in [(one["how"], one["strength"]) for one in asked.tried]
    if asked.strength == "c":
        np.testing.assert_allclose(asked.model.feature_weights, 1.0 / (1.0 + 3.0 * sizes / sizes.max()), rtol=1e-12)


@pytest.fixture(scope="module")
def old() -> Any:
    X, y, task, _ = tasks()
    return ts.MultiTaskLassoCV(**PATH).fit(X, y, task=task)


def new_rows(sign: float = 1.0, n: int = 24, seed: int = 7) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 25))
    return X, sign * X[:, :4] @ [1.0, -1.0, 0.8, 0.6] + 0.5 * random.standard_normal(n)


def objective(X: Array, y: Array, w: Array, b: float, centre: Array, weights: Array, alpha: float) -> float:
    """As it is written in the docstring."""
    return float(np.sum((y - X @ w - b) ** 2) / (2 * len(y)) + alpha * np.sum(weights * np.abs(w - centre)))


@pytest.mark.parametrize("how", ["weights", "offset", "distance"])
def test_each_way_is_the_problem_of_the_docstring(old: Any, how: Any) -> None:
    X, y = new_rows()
    found = old.fit_new_task(X, y, name="new", how=how)
    assert found.how == how
    mean, sizes = old.coef_.mean(axis=0), np.linalg.norm(old.coef_, axis=0)
    weights, centre = np.ones(25), np.zeros(25)
    if how == "weights":
        names = list(old.tasks_)  # of the old task that is most alike, or of all
        own = np.abs(old.coef_[names.index(found.strength)]) if found.strength in names else sizes
        weights = 1 / (1 + (3.0 if own is not sizes else found.strength) * own / own.max())
    elif how == "offset":
        a = found.strength
        weights, centre = np.where(sizes > 0, 1.0, 1 / a), (1 - a) * mean
    else:
        centre = mean if found.strength == "mean" else old.coef_[list(old.tasks_).index(found.strength)]
    np.testing.assert_allclose(found.centre, centre, rtol=1e-12)
    alpha, w, b = found.model.alpha_, found.coef_[0], float(found.intercept_[0])
    value = objective(X, y, w, b, centre, weights, alpha)
    assert value == pytest.approx(found.model.objective_, rel=1e-9)
    # scikit-learn's Lasso of the same problem, columns divided by the weights
    inner = Lasso(alpha, tol=1e-12, max_iter=100_000).fit(X / weights, y - X @ centre)
    best = inner.coef_ / weights + centre
    shift = float(np.mean(y - X @ best))
    assert value <= objective(X, y, best, shift, centre, weights, alpha) * (1 + 1e-5)
    np.testing.assert_allclose(found.predict(X), X @ w + b, rtol=1e-9)
    proof = found.certificate(X, y)
    assert proof.verify(X, y, offset=found.offset(X)).proved


def test_related_tasks_help_and_opposite_ones_are_left(old: Any) -> None:
    X, y = new_rows(n=20)
    helped = old.fit_new_task(X, y, name="new")
    assert helped.how != "alone"
    assert helped.gain > 0.1
    assert not helped.fell_back
    assert "the old tasks help" in str(helped)
    far, truth = new_rows(n=500, seed=8)
    alone = old.fit_new_task(X, y, name="new", how="alone")
    assert alone.how == "alone"
    assert helped.score(far, truth) > alone.score(far, truth)
    X, y = new_rows(-1.0)
    X = X[:, ::-1].copy()  # features of its own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left = old.fit_new_task(X, y, name="new")
    assert left.how == "alone"
    assert np.array_equal(left.coef_, old.fit_new_task(X, y, name="new", how="alone").coef_)
    with pytest.warns(
        UserWarning, match=r"the old tasks do harm.*more loss than alone.*how='auto' would not"
    ):
        forced = old.fit_new_task(X, y, name="new", how="distance")
    assert forced.gain < 0.0


def test_a_promise_that_nested_rows_do_not_confirm_falls_back(old: Any) -> None:
    random = np.random.default_rng(3)
    told = 0
    for k in range(3):  # nothing to find: some way is always the best by chance
        X, y = random.standard_normal((18, 25)), random.standard_normal(18)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = old.fit_new_task(X, y, name=f"new {k}")
        assert found.how == "alone"
        best = min(found.tried, key=lambda one: one["loss"])
        assert found.fell_back == (best["how"] != "alone")
        words = [str(one.message) for one in said if "was fitted alone" in str(one.message)]
        assert len(words) == found.fell_back
        told += len(words)
    assert told


@pytest.mark.slow
def test_classes_weights_offsets_and_frames(old: Any) -> None:
    X, y, task, _ = tasks()
    classes = np.where(y > 0, "yes", "no")
    model = ts.MultiTaskLogisticRegressionCV(**PATH, class_weight="balanced").fit(X, classes, task=task)
    rows, truth = new_rows(n=30)
    labels = np.where(truth > 0, "yes", "no")
    found = model.fit_new_task(rows, labels, name="new", how="offset")
    assert set(found.predict(rows)) <= {"yes", "no"}
    assert found.predict_proba(rows).shape == (30, 2)
    assert found.score(rows, labels) > 0.8
    with pytest.raises(ValueError, match="two classes of the old tasks"):
        model.fit_new_task(rows, np.where(truth > 0, "a", "b"), name="new")
    weights = np.arange(24) % 3.0
    rows, truth = new_rows()
    left_out = np.where(weights > 0, truth, np.nan)  # rows of weight 0 and rows without a label are the same
    one = old.fit_new_task(rows, truth, name="new", how="distance", sample_weight=weights)
    some = np.where(weights > 0, weights, 1.0)
    other = old.fit_new_task(rows, left_out, name="new", how="distance", sample_weight=some)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-7)
    offset = np.linspace(-3, 3, 24)
    shifted = old.fit_new_task(rows, truth + offset, name="new", how="distance", offset=offset)
    plain = old.fit_new_task(rows, truth, name="new", how="distance")
    np.testing.assert_allclose(shifted.coef_, plain.coef_, atol=1e-6)
    np.testing.assert_allclose(shifted.predict(rows, offset=offset), plain.predict(rows) + offset, atol=1e-5)
    counts = ts.MultiTaskPoissonCV(**PATH).fit(X, np.floor(np.exp(0.3 * y)), task=task)
    assert (
        counts.fit_new_task(rows, np.floor(np.exp(0.3 * truth)), name="new", how="offset").predict(rows).min()
        > 0
    )


def test_covariates_stay_free_and_signs_stay(old: Any) -> None:
    X, y, task, _ = tasks()
    free = np.ones(25)
    free[10] = 0.0
    model = ts.MultiTaskLassoCV(**PATH, feature_weights=free, standardize=True).fit(X, y, task=task)
    rows, truth = new_rows()
    for how in ("weights", "offset"):
        assert model.fit_new_task(rows, truth, name="new", how=how).coef_[0, 10] != 0.0
    positive = ts.MultiTaskLassoCV(**PATH, positive=True).fit(X, y, task=task)
    assert positive.fit_new_task(rows, truth, name="new").coef_.min() >= 0.0
    with pytest.raises(ts.ParameterError, match="use 'weights'"):
        positive.fit_new_task(rows, truth, name="new", how="distance")


def test_refusals(old: Any) -> None:
    X, y = new_rows()
    with pytest.raises(ts.ParameterError, match="how"):
        old.fit_new_task(X, y, name="new", how="magic")
    with pytest.raises(ts.ParameterError, match="one of the old tasks"):
        old.fit_new_task(X, y, name=2)
    with pytest.raises(ValueError, match="expecting 25 features"):
        old.fit_new_task(X[:, :20], y, name="new")
    with pytest.raises(ValueError, match="matrix of one task"):
        old.fit_new_task([X], [y], name="new")
    with pytest.raises(TypeError, match="name"):
        old.fit_new_task(X, y)
    rows, labels, task, _ = tasks()
    owl = ts.MultiTaskOWLCV(**SHORT).fit(rows, labels, task=task)
    with pytest.raises(ValueError, match="no feature weights"):
        owl.fit_new_task(X, y, name="new")
    three = ts.MultiTaskLogisticRegressionCV(**SHORT).fit(rows, np.digitize(labels, [-1, 1]), task=task)
    with pytest.raises(ValueError, match="two classes"):
        three.fit_new_task(X, np.digitize(y, [-1, 1]), name="new")
    empty = ts.MultiTaskLassoCV(alphas=[1e6], cv=3).fit(rows, labels, task=task)
    found = empty.fit_new_task(X, y, name="new")
    assert found.how == "alone"
    assert "nothing that could be used" in found.reason


def test_few_rows_few_groups_and_names(old: Any) -> None:
    X, y = new_rows()
    with pytest.raises(
        ValueError, match=r"needs 4 rows with labels at least, and there are 3.*unknown_task='mean'"
    ):
        old.fit_new_task(X[:3], y[:3], name="new")
    with pytest.raises(ValueError, match="and there are 1:"):
        old.fit_new_task(X, np.where(np.arange(24) < 1, y, np.nan), name="new")
    assert old.fit_new_task(X[:4], y[:4], name="new").predict(X).shape == (24,)
    groups = np.arange(24) // 12
    with pytest.raises(ValueError, match=r"groups has 2 label\(s\).*3 are needed"):
        old.fit_new_task(X, y, name="new", groups=groups)
    three = old.fit_new_task(X, y, name="new", groups=np.arange(24) // 8)
    assert three.how != "alone"
    with pytest.raises(ValueError, match=r"of shape \(n,\)"):
        old.fit_new_task(X, np.column_stack([y, y]), name="new")
    for name in (None, ["new"]):
        with pytest.raises(ts.ParameterError, match="must be a label"):
            old.fit_new_task(X, y, name=name)


@pytest.mark.slow
def test_classes_that_are_missing_or_rare() -> None:
    X, y, task, _ = tasks(T=2)
    model = ts.MultiTaskLogisticRegressionCV(**PATH).fit(X, np.where(y > 0, "yes", "no"), task=task)
    rows, truth = new_rows()
    with pytest.raises(ValueError, match="one class only"):
        model.fit_new_task(rows, np.repeat("yes", 24), name="new")
    rare = np.where(truth > np.sort(truth)[-2], "yes", "no")  # one row: in most folds there is one class only
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.fit_new_task(rows, rare, name="new")
    assert np.isfinite(found.coef_).all()
    assert found.predict_proba(rows).shape == (24, 2)


def test_frames_must_have_the_features_of_the_model() -> None:
    pd = pytest.importorskip("pandas")
    X, y, task, _ = tasks(T=2)
    names = [f"f{j}" for j in range(25)]
    model = ts.MultiTaskLassoCV(**PATH).fit(pd.DataFrame(X, columns=names), y, task=task)
    rows, truth = new_rows()
    frame = pd.DataFrame(rows, columns=names)
    for wrong in (frame[names[::-1]], frame.rename(columns={"f0": "g"})):
        with pytest.raises(ValueError, match="feature names"):
            model.fit_new_task(wrong, truth, name="new")
    assert model.fit_new_task(frame, truth, name="new").predict(frame).shape == (24,)


def test_the_nested_comparison_is_repeated_until_it_is_clear(
    old: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One standard error decides after three repeats; more than two, or no gain, decide at once."""
    X, y = new_rows(n=16)
    steps = np.tile([0.0, 2.0], 8)  # what is spared: mean 1, standard error 1/4

    def told(means: list[float], **given: Any) -> tuple[Any, int]:
        asked: list[int] = []

        def losses(self: Any, n_folds: int, repeat: int) -> Array:
            asked.append(repeat)
            best = 10.0 - (steps - 1.0 + means[len(asked) - 1])
            return np.array([np.full(16, 10.0), best])

        monkeypatch.setattr("tasksieve.linear.transfer._Search._losses", losses)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return old.fit_new_task(X, y, name="new", **given), len(asked)

    for means, repeats, helps in (
        ([0.6], 1, True), ([-0.1], 1, False), ([0.4, 0.7], 2, True), ([0.4, 0.4, 0.4], 3, True),
        ([0.1, 0.2, 0.2], 3, False), ([0.3, -0.4], 2, False),
    ):  # fmt: skip
        found, asked = told(means)
        assert (asked, found.how != "alone") == (repeats, helps)
        assert found.gain == pytest.approx(np.mean(means[:repeats]) / 10.0)
        assert found.gain_error == pytest.approx(0.025)
    halves = np.where(np.arange(16) % 2, 0, np.arange(16) // 2 + 1)  # those that spare 2 are one group
    found, asked = told([0.1, 0.2, 0.2], groups=halves)
    assert asked == 3
    assert found.gain_error == pytest.approx(np.hypot(8.0, np.sqrt(8.0)) / 160.0)


def test_unknown_tasks_are_refused_or_predicted_by_the_mean(old: Any) -> None:
    X, _ = new_rows()
    with pytest.raises(ValueError, match="unknown"):
        old.predict(X[:2], task=[0, 9])
    with pytest.warns(UserWarning, match=r"1 row\(s\) of 1 task\(s\).*\(9\).*mean of the 4 tasks"):
        found = old.predict(X[:2], task=[0, 9], unknown_task="mean")
    every = old.predict(X[:2])
    np.testing.assert_allclose(found, [every[0, 0], every[1].mean()], rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(
            old.predict(X[:2], task=[0, 1], unknown_task="mean"), old.predict(X[:2], task=[0, 1])
        )
    with pytest.raises(ts.ParameterError, match="unknown_task"):
        old.predict(X[:2], task=[0, 9], unknown_task="median")
    rows, labels, task, _ = tasks()
    names = np.array(["a", "b", "c", "d"])[task]
    two = ts.MultiTaskLogisticRegression(alpha=0.05).fit(rows, labels > 0, task=names)
    with pytest.warns(UserWarning, match="'z'"):
        chances = two.predict_proba(X[:3], task=["a", "z", "b"], unknown_task="mean")
    z = two.decision_function(X[1:2]).mean()
    assert chances[1, 1] == pytest.approx(1 / (1 + np.exp(-z)))
    three = ts.MultiTaskLogisticRegression(alpha=0.05).fit(rows, np.digitize(labels, [-1, 1]), task=names)
    with pytest.raises(ValueError, match="have no mean"):
        three.predict(X[:1], task=["z"], unknown_task="mean")


def test_pretraining_is_two_steps() -> None:
    X, y, task, _ = tasks(T=3)
    model = ts.Pretraining(ts.MultiTaskLassoCV(**PATH), shares=[0.5]).fit(X, y, task=task)
    beta = model.first_.coef_[0]
    centred = y - np.array([y[task == t].mean() for t in range(3)])[task]
    pooled = Lasso(model.first_.alpha_, tol=1e-12).fit(X, centred)
    np.testing.assert_allclose(beta, pooled.coef_, atol=2e-3)
    fold = np.concatenate(np.split(np.asarray(ts.MultiTaskLassoCV(**PATH).fit(X, y, task=task).cv_fold_), 3))
    known = np.empty(len(y))
    for f in (1, 2, 3):
        own = Lasso(model.first_.alpha_, tol=1e-12).fit(X[fold != f], centred[fold != f])
        known[fold == f] = X[fold == f] @ own.coef_
    weights = np.where(beta != 0, 1.0, 2.0)
    for t in range(3):
        rows = task == t
        inner = Lasso(model.models_[t].alpha_, tol=1e-12).fit(X[rows] / weights, y[rows] - 0.5 * known[rows])
        np.testing.assert_allclose(model.coef_[t], inner.coef_ / weights + 0.5 * beta, atol=1e-2)
        assert model.models_[t].dual_gap_ <= 1e-6 * model.models_[t].null_objective_


@pytest.mark.slow
def test_pretraining_in_other_forms_and_in_compare() -> None:
    X, y, task, _ = tasks(T=3, n=30)
    model = ts.Pretraining(ts.MultiTaskLassoCV(**PATH)).fit(X, y, task=task)
    listed = ts.Pretraining(ts.MultiTaskLassoCV(**PATH)).fit(np.split(X, 3), np.split(y, 3))
    np.testing.assert_allclose(model.coef_, listed.coef_, rtol=1e-9)
    assert model.cv_scores_.shape == (5, 3)
    assert model.score(X, y, task=task) > 0.8
    assert len(model.get_support(indices=True)) >= 4
    found = ts.compare(ts.Pretraining(ts.MultiTaskLassoCV(**PATH)), X, y, task=task, cv=3)
    assert found.models == ("shared", "pretrained", "own", "pooled", "mean")
    assert found.quality["pretrained"].overall[0] > 0.8
    assert "models of tasks that start from one for all rows" in found.summary()
    two = ts.Pretraining(ts.MultiTaskLogisticRegressionCV(**PATH)).fit(X, y > 0, task=task)
    assert two.predict_proba(X, task=task).shape == (90, 2)
    assert two.score(X, y > 0, task=task) > 0.8
    assert not hasattr(model, "predict_proba")
    alone = ts.Pretraining(ts.MultiTaskLassoCV(**PATH), shares=[1.0]).fit(X, y, task=task)
    own = ts.MultiTaskLassoCV(**{**PATH, "cv": 3}).fit(X[:30], y[:30])
    np.testing.assert_allclose(alone.coef_[0], own.coef_[0], atol=1e-6)
    for wrong in (ts.Pretraining(ts.MultiTaskLasso()), ts.Pretraining(ts.MultiTaskLassoCV(), shares=[0.0])):
        with pytest.raises(ts.ParameterError):
            wrong.fit(X, y, task=task)
    with pytest.raises(ValueError, match="there is one"):
        ts.Pretraining(ts.MultiTaskLassoCV(**PATH)).fit(X, y)
