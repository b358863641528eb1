"""MultiTaskMixed: forms of data, units and weights, predictions in the units of each task, refusals in words."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import tasksieve as ts

TASKS = ("pressure", "diabetes", "visits", "pain")
LOSSES = {"pressure": "squared", "diabetes": "logistic", "visits": "poisson", "pain": "huber"}


def draw(rng, n=50, d=10, shared=False):
    """{task: (X, y)} of four kinds of outcome, with features 0 and 1 in all of them."""
    found, common = {}, rng.standard_normal((n, d))
    for task in TASKS:
        X = common if shared else rng.standard_normal((n, d))
        z = X[:, 0] - 0.7 * X[:, 1]
        y = {
            "pressure": 120.0 + 15.0 * z + rng.normal(0.0, 8.0, n),
            "diabetes": np.where(z + rng.logistic(0.0, 0.7, n) > 0.0, "yes", "no"),
            "visits": rng.poisson(np.exp(0.3 + 0.6 * z)),
            "pain": z + rng.standard_t(3, n),
        }[task]
        found[task] = X, y
    return found


def stacked(data):
    X = np.vstack([data[task][0] for task in TASKS])
    y = np.concatenate([np.asarray(data[task][1], dtype=object) for task in TASKS])
    return X, y, np.repeat(TASKS, [len(data[task][1]) for task in TASKS])


def same(first, second):
    order = [second.tasks_.tolist().index(task) for task in first.tasks_.tolist()]
    np.testing.assert_allclose(first.coef_, second.coef_[order], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(first.intercept_, second.intercept_[order], rtol=1e-12)
    np.testing.assert_allclose(first.loss_weights_, second.loss_weights_[order], rtol=1e-12)


def test_every_form_of_the_data_is_the_same_fit(rng):
    data = draw(rng)
    model = ts.MultiTaskMixed(LOSSES, alpha=0.2)
    by_name = ts.MultiTaskMixed(LOSSES, alpha=0.2).fit(data)
    assert by_name.tasks_.tolist() == sorted(TASKS)
    X, y, task = stacked(data)
    same(by_name, model.fit(X, y, task=task))
    shuffled = rng.permutation(len(y))
    rows = ts.MultiTaskMixed(LOSSES, alpha=0.2).fit(X[shuffled], y[shuffled].tolist(), task=task[shuffled])
    np.testing.assert_allclose(rows.coef_, by_name.coef_, atol=1e-4)
    listed = ts.MultiTaskMixed([LOSSES[task] for task in sorted(TASKS)], alpha=0.2)
    listed.fit([data[task][0] for task in sorted(TASKS)], [data[task][1] for task in sorted(TASKS)])
    np.testing.assert_allclose(listed.coef_, by_name.coef_, rtol=1e-12, atol=1e-14)
    assert listed.tasks_.tolist() == [0, 1, 2, 3]


def test_several_targets_of_one_matrix(rng):
    data = draw(rng, shared=True)
    X, targets = data["pain"][0], {task: data[task][1] for task in TASKS}
    by_name = ts.MultiTaskMixed(LOSSES, alpha=0.2).fit(X, targets)
    assert by_name.tasks_.tolist() == list(TASKS)
    frame = pd.DataFrame(targets)
    same(by_name, ts.MultiTaskMixed(LOSSES, alpha=0.2).fit(X, frame))
    ordered = [LOSSES[task] for task in TASKS]
    for y in (frame.to_numpy(dtype=object), list(targets.values())):
        model = ts.MultiTaskMixed(ordered, alpha=0.2).fit(X, y)
        np.testing.assert_array_equal(model.coef_, by_name.coef_)
        assert model.tasks_.tolist() == [0, 1, 2, 3]
        assert model.score(X, y) == by_name.score(X, frame)
    assert by_name.score(X, frame[list(reversed(TASKS))]) == by_name.score(X, frame)
    rows = ts.MultiTaskMixed(LOSSES, alpha=0.2).fit(data)
    np.testing.assert_allclose(by_name.coef_, rows.coef_[[rows.tasks_.tolist().index(t) for t in TASKS]], atol=1e-4)


def test_predictions_are_in_the_units_of_each_task(rng):
    data = draw(rng)
    model = ts.MultiTaskMixed(LOSSES, alpha=0.1).fit(data)
    found = model.predict({task: data[task][0] for task in TASKS})
    assert found["pressure"].dtype == np.float64
    assert 100.0 < found["pressure"].mean() < 140.0
    assert set(found["diabetes"]) == {"yes", "no"}
    assert np.mean(found["diabetes"] == data["diabetes"][1]) > 0.7
    assert (found["visits"] > 0.0).all()
    assert found["visits"].mean() == pytest.approx(data["visits"][1].mean(), rel=1e-6)
    X, _, task = stacked(data)
    rows = model.predict(X, task=task)
    assert rows.dtype == object
    for name in TASKS:
        np.testing.assert_array_equal(rows[task == name].astype(found[name].dtype), found[name])
    columns = model.predict(X)
    t = model.tasks_.tolist().index("visits")
    np.testing.assert_allclose(columns[task == "visits", t].astype(float), found["visits"])
    scores = model.decision_function(X, task=task)
    np.testing.assert_allclose(np.exp(scores[task == "visits"]), found["visits"])
    np.testing.assert_allclose(scores[task == "pressure"], found["pressure"])
    chances = model.predict_proba(X, task=task)
    assert [chance is not None for chance in chances] == [name == "diabetes" for name in model.tasks_]
    (chance,) = [chance for chance in chances if chance is not None]
    np.testing.assert_allclose(chance[:, 1], 1.0 / (1.0 + np.exp(-scores[task == "diabetes"])))
    listed = model.predict([data[name][0] for name in sorted(TASKS)])
    for name, part in zip(sorted(TASKS), listed, strict=True):
        if name == "diabetes":
            assert part.tolist() == found[name].tolist()
        else:
            np.testing.assert_allclose(part, found[name], rtol=1e-12)


def test_deviance_explained(rng):
    data = draw(rng)
    model = ts.MultiTaskMixed(LOSSES, alpha=0.1).fit(data)
    explained = dict(zip(model.tasks_.tolist(), model.deviance_explained(data), strict=True))
    assert model.score(data) == pytest.approx(np.mean(list(explained.values())))
    y, z = data["pressure"][1], model.predict({"pressure": data["pressure"][0]})["pressure"]
    assert explained["pressure"] == pytest.approx(1.0 - np.sum((y - z) ** 2) / np.sum((y - y.mean()) ** 2))
    y, mean = data["visits"][1], model.predict({"visits": data["visits"][0]})["visits"]

    def deviance(mean):
        return np.sum(2.0 * (np.where(y > 0, y * np.log(np.maximum(y, 1) / mean), 0.0) - y + mean))

    assert explained["visits"] == pytest.approx(1.0 - deviance(mean) / deviance(y.mean()))
    signs = np.where(data["diabetes"][1] == "yes", 1.0, -1.0)
    scores = model.decision_function({"diabetes": data["diabetes"][0]})["diabetes"]
    share = np.mean(signs > 0)
    null = -len(signs) * (share * np.log(share) + (1.0 - share) * np.log(1.0 - share))
    own = np.sum(np.logaddexp(0.0, -signs * scores))
    assert explained["diabetes"] == pytest.approx(1.0 - own / null)
    one = model.deviance_explained({"visits": data["visits"]})
    assert np.isfinite(one).tolist() == [name == "visits" for name in model.tasks_]


def test_units_decide_nothing(rng):
    data = draw(rng)
    model = ts.MultiTaskMixed(LOSSES, alpha=0.2).fit(data)
    other = {task: (X, 1000.0 * y - 7.0 if task in ("pressure", "pain") else y) for task, (X, y) in data.items()}
    scaled = ts.MultiTaskMixed(LOSSES, alpha=0.2).fit(other)
    factors = np.array([1000.0 if task in ("pressure", "pain") else 1.0 for task in model.tasks_])
    np.testing.assert_allclose(scaled.coef_, factors[:, None] * model.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(scaled.loss_weights_, model.loss_weights_, rtol=1e-9)
    np.testing.assert_allclose(scaled.target_scales_, factors * model.target_scales_)
    assert scaled.objective_ == pytest.approx(model.objective_, rel=1e-9)


def test_scales_and_weights_by_hand(rng):
    data = draw(rng)
    model = ts.MultiTaskMixed(LOSSES, alpha=0.2).fit(data)
    scales = dict(zip(model.tasks_.tolist(), model.target_scales_, strict=True))
    weights = dict(zip(model.tasks_.tolist(), model.loss_weights_, strict=True))
    assert scales["pressure"] == pytest.approx(np.std(data["pressure"][1]))
    assert scales["visits"] == 1.0
    assert weights["pressure"] == pytest.approx(1.0)
    share = np.mean(data["diabetes"][1] == "yes")
    assert weights["diabetes"] == pytest.approx(1.0 / np.sqrt(share * (1.0 - share)))
    counts = data["visits"][1]
    assert weights["visits"] == pytest.approx(1.0 / np.std(counts))
    chosen = ts.MultiTaskMixed(LOSSES, alpha=0.2, loss_weights={"visits": 3.0}, target_scales={"pain": 2.0}).fit(data)
    weights["visits"] = 3.0
    for task, weight, scale in zip(chosen.tasks_, chosen.loss_weights_, chosen.target_scales_, strict=True):
        assert scale == (2.0 if task == "pain" else scales[task])
        if task != "pain":
            assert weight == pytest.approx(weights[task])
    equal = ts.MultiTaskMixed(LOSSES, alpha=0.2, loss_weights=1, target_scales=1).fit(data)
    assert equal.loss_weights_.tolist() == equal.target_scales_.tolist() == [1.0] * 4
    doubled = ts.MultiTaskMixed(LOSSES, alpha=0.2, task_weights={"visits": 2.0}).fit(data)
    other = ts.MultiTaskMixed(LOSSES, alpha=0.2, loss_weights={"visits": 2.0 / np.std(counts)}).fit(data)
    np.testing.assert_allclose(doubled.coef_, other.coef_, atol=1e-5)


@pytest.mark.parametrize(
    ("loss", "single"),
    [
        ("squared", ts.MultiTaskRegressor("squared", alpha=0.2)),
        ("huber", ts.MultiTaskRegressor("huber", alpha=0.2)),
        ("poisson", ts.MultiTaskRegressor("poisson", alpha=0.2)),
        ("logistic", ts.MultiTaskClassifier("logistic", alpha=0.05)),
        ("smoothed_hinge", ts.MultiTaskClassifier("smoothed_hinge", alpha=0.05)),
    ],
)
def test_one_task_is_the_single_model_to_the_last_digit(rng, loss, single, monkeypatch):
    monkeypatch.setenv("TASKSIEVE_PATH_SOLVER", "rows")  # least squares would be solved by sums, a mixture is not
    data = draw(rng)
    task = {"squared": "pressure", "huber": "pain", "poisson": "visits"}.get(loss, "diabetes")
    X, y = data[task]
    single.fit(X, y)
    mixed = ts.MultiTaskMixed(loss, alpha=single.alpha, loss_weights=1, target_scales=1).fit(X, y)
    np.testing.assert_array_equal(mixed.coef_, single.coef_)
    np.testing.assert_array_equal(mixed.predict(X), single.predict(X))
    assert (mixed.objective_, mixed.null_objective_) == (single.objective_, single.null_objective_)
    assert mixed.dual_gap_ == single.dual_gap_
    assert mixed.alpha_max(X, y) == single.alpha_max(X, y)


def test_squared_tasks_are_the_lasso_of_standardised_responses(rng):
    X, task = rng.standard_normal((90, 12)), np.repeat(["a", "b", "c"], 30)
    y = (X[:, 0] + 0.5 * rng.standard_normal(90)) * np.repeat([1.0, 30.0, 0.01], 30) + np.repeat([0.0, 5.0, -1.0], 30)
    model = ts.MultiTaskMixed(alpha=0.2, tol=1e-10).fit(X, y, task=task)
    scales = np.array([y[task == name].std() for name in "abc"])
    standard = np.concatenate([(y[task == name] - y[task == name].mean()) / y[task == name].std() for name in "abc"])
    lasso = ts.MultiTaskLasso(alpha=0.2, tol=1e-10).fit(X, standard, task=task)
    np.testing.assert_allclose(model.coef_, scales[:, None] * lasso.coef_, rtol=1e-5, atol=1e-12)
    assert model.objective_ == pytest.approx(lasso.objective_, rel=1e-9)
    np.testing.assert_allclose(model.loss_weights_, 1.0, rtol=1e-12)
    assert model.score(X, y, task=task) == pytest.approx(lasso.score(X, standard, task=task), rel=1e-6)


def test_noise_enters_all_tasks_alike():
    """Shares of the tasks in the squared correlations at the null model, of pure noise: a quarter each."""
    rng, n, d = np.random.default_rng(11), 150, 2000
    data = {
        "pressure": (rng.standard_normal((n, d)), rng.normal(120.0, 10.0, n)),
        "diabetes": (rng.standard_normal((n, d)), rng.random(n) < 0.2),
        "visits": (rng.standard_normal((n, d)), rng.poisson(3.0, n)),
        "pain": (rng.standard_normal((n, d)), rng.standard_t(3, n)),
    }
    model = ts.MultiTaskMixed(LOSSES, standardize=True)
    read = model._read_with(*_named(data), None, None)
    problem = model._problem(read)
    squares = np.square(problem.design.correlate(problem.loss.null.residual)).sum(axis=0)
    np.testing.assert_allclose(squares / squares.sum(), 0.25, atol=0.02)


def _named(data):
    X = np.vstack([own for own, _ in data.values()])
    y = np.concatenate([np.asarray(own, dtype=object) for _, own in data.values()])
    return X, y, np.repeat(list(data), [len(own) for _, own in data.values()])


def test_missing_labels_weights_and_offsets(rng):
    data = draw(rng)
    X, y, task = stacked(data)
    y = y.copy()
    gone = rng.choice(len(y), 30, replace=False)
    kept = np.setdiff1d(np.arange(len(y)), gone)
    y[gone] = None
    y[gone[:10]] = np.nan
    weights, offset = rng.uniform(0.5, 2.0, len(y)), 0.2 * rng.standard_normal(len(y))
    model = ts.MultiTaskMixed(LOSSES, alpha=0.2, tol=1e-9)
    model.fit(X, y, task=task, sample_weight=weights, offset=offset)
    other = ts.MultiTaskMixed(LOSSES, alpha=0.2, tol=1e-9)
    other.fit(X[kept], y[kept], task=task[kept], sample_weight=weights[kept], offset=offset[kept])
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(model.loss_weights_, other.loss_weights_, rtol=1e-9)
    zero = np.where(np.isin(np.arange(len(y)), gone), 0.0, weights)
    again = ts.MultiTaskMixed(LOSSES, alpha=0.2, tol=1e-9)
    again.fit(*stacked(data)[:2], task=task, sample_weight=zero, offset=offset)
    np.testing.assert_allclose(again.coef_, other.coef_, rtol=1e-4, atol=1e-7)
    score = model.score(X, y, task=task, sample_weight=weights, offset=offset)
    rows = {"task": task[kept], "sample_weight": weights[kept], "offset": offset[kept]}
    assert score == pytest.approx(model.score(X[kept], y[kept], **rows))
    masked = np.ma.array(np.asarray(stacked(data)[1]), mask=np.isin(np.arange(len(y)), gone))
    hidden = ts.MultiTaskMixed(LOSSES, alpha=0.2, tol=1e-9).fit(
        X, masked, task=task, sample_weight=weights, offset=offset
    )
    np.testing.assert_allclose(hidden.coef_, model.coef_, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="fitted with an offset"):
        model.predict(X, task=task)


@pytest.mark.parametrize("penalty", ["l21", "l11", "dirty", "owl"])
@pytest.mark.parametrize("options", [{}, {"ridge": 0.1}, {"task_graph": "chain"}, {"standardize": True}])
def test_paths_are_certified(rng, penalty, options):
    data = draw(rng, n=25)
    path = ts.MultiTaskMixed(LOSSES, penalty, **options).path(data, n_alphas=5, eps=0.1)
    assert path.converged.all()
    assert (path.relative_gaps <= 1e-6).all()
    assert path.n_selected[0] == 0
    model = path.model(3)
    assert model.deviance_explained(data).shape == (4,)
    fitted = ts.MultiTaskMixed(LOSSES, penalty, alpha=model.alpha, **options).fit(data)
    assert fitted.objective_ == pytest.approx(model.objective_, abs=2e-6 * path.null_objective)


def test_covariates(rng):
    data = draw(rng)
    weights = np.ones(10)
    weights[[2, 3]] = 0.0
    model = ts.MultiTaskMixed(LOSSES, alpha=5.0, feature_weights=weights).fit(data)
    assert model.get_support(indices=True).tolist() == [2, 3]
    t = model.tasks_.tolist().index("pressure")
    X, y = data["pressure"]
    design = np.column_stack([np.ones(len(y)), X[:, 2:4]])
    np.testing.assert_allclose(model.coef_[t, 2:4], np.linalg.lstsq(design, y, rcond=None)[0][1:], rtol=1e-6)


def test_tasks_that_say_nothing(rng):
    data = draw(rng)
    data["visits"] = data["visits"][0], np.zeros(50)
    data["pressure"] = data["pressure"][0], np.full(50, 7.0)
    with pytest.warns(UserWarning, match="count nothing"):
        model = ts.MultiTaskMixed(LOSSES, alpha=0.2).fit(data)
    found = dict(zip(model.tasks_.tolist(), model.coef_, strict=True))
    assert not found["pressure"].any()
    assert not found["visits"].any()
    assert found["diabetes"].any()
    weights = dict(zip(model.tasks_.tolist(), model.loss_weights_, strict=True))
    assert weights["pressure"] == 1.0
    assert model.predict({"pressure": data["pressure"][0]})["pressure"][0] == 7.0


def test_errors_in_words(rng):
    data = draw(rng)

    def fit(losses=LOSSES, data=data, **options):
        ts.MultiTaskMixed(losses, **options).fit(data)

    with pytest.raises(ts.ParameterError, match="names the task 'weight', which is not in the data"):
        fit({**LOSSES, "weight": "squared"})
    with pytest.raises(ts.ParameterError, match="has no loss for the task 'visits'"):
        fit({task: loss for task, loss in LOSSES.items() if task != "visits"})
    with pytest.raises(ts.ParameterError, match=r"losses\['visits'\].* must be one of 'squared'"):
        fit({**LOSSES, "visits": "poison"})
    with pytest.raises(ts.ParameterError, match="has 2 losses, but there are 4 tasks"):
        fit(["squared", "squared"])
    with pytest.raises(ValueError, match="square-root loss estimates the noise"):
        fit({**LOSSES, "pain": "square-root"})
    with pytest.raises(ValueError, match="row of coefficients for each class"):
        fit({**LOSSES, "diabetes": ts.losses.Multinomial()})
    with pytest.raises(ValueError, match=r"must hold numbers: .*'(yes|no)'"):
        fit({**LOSSES, "diabetes": "squared"})
    with pytest.raises(ValueError, match=r"task 'pressure' has 50 classes.*Real numbers need a loss of numbers"):
        fit({**LOSSES, "pressure": "logistic"})
    negative = {**data, "visits": (data["visits"][0], data["visits"][1] - 1.0)}
    with pytest.raises(ValueError, match=r"counts of task 'visits' must not be negative; .* is -1"):
        fit(data=negative)
    with pytest.raises(ValueError, match="loss_weights names the task 'x'"):
        fit(loss_weights={"x": 1.0})
    with pytest.raises(ValueError, match="loss_weights has shape"):
        fit(loss_weights=[1.0, 2.0])
    with pytest.raises(ts.ParameterError, match="target_scales"):
        fit(target_scales={"pain": 0.0})
    with pytest.raises(ValueError, match=r"y\['pain'\] has 49 entries, but X has 50 rows"):
        X = data["pain"][0]
        ts.MultiTaskMixed().fit(X, {"pain": np.zeros(49)})
    model = ts.MultiTaskMixed(LOSSES, alpha=0.2).fit(data)
    with pytest.raises(ValueError, match="'maybe', which is none of the classes"):
        model.score({"diabetes": (data["diabetes"][0], np.array(["maybe"] * 50))})


def survival_data(rng, n=60, d=8):
    """{task: (X, y)} with times to an event beside others."""
    data = {task: own for task, own in draw(rng, n, d).items() if task != "pain"}
    X = rng.standard_normal((n, d))
    time, censored = rng.exponential(np.exp(-X[:, 0] + 0.7 * X[:, 1])), rng.exponential(2.0, n)
    data["death"] = X, ts.survival(np.minimum(time, censored).round(1) + 0.1, time <= censored)
    return data


SURVIVAL = {"pressure": "squared", "diabetes": "logistic", "visits": "poisson", "death": "cox"}


def test_times_to_an_event_beside_others(rng):
    data = survival_data(rng)
    model = ts.MultiTaskMixed(SURVIVAL, alpha=0.2).fit(data)
    X, y = data["death"]
    pair = {**data, "death": (X, (y["time"], y["event"]))}
    columns = {**data, "death": (X, np.column_stack([y["time"], y["event"]]))}
    for other in (pair, columns):
        np.testing.assert_array_equal(ts.MultiTaskMixed(SURVIVAL, alpha=0.2).fit(other).coef_, model.coef_)
        assert model.score(other) == model.score(data)
    t = model.tasks_.tolist().index("death")
    assert model.intercept_[t] == 0.0
    found = model.predict({"death": X})["death"]
    np.testing.assert_allclose(found, X @ model.coef_[t], rtol=1e-12)  # log hazards
    listed = ts.MultiTaskMixed([SURVIVAL[task] for task in model.tasks_], alpha=0.2)
    listed.fit([data[task][0] for task in model.tasks_], [data[task][1] for task in model.tasks_])
    np.testing.assert_array_equal(listed.coef_, model.coef_)
    null = ts.MultiTaskCox(alpha=10.0).fit(X, y)
    cox = ts.MultiTaskCox(alpha=0.1).fit(X, y)
    alone = ts.MultiTaskMixed("cox", alpha=0.1, loss_weights=1).fit(X, y)
    np.testing.assert_array_equal(alone.coef_, cox.coef_)
    assert (alone.dual_gap_, alone.objective_) == (cox.dual_gap_, cox.objective_)
    assert 0.0 < alone.score(X, y) < 1.0
    weighted = ts.MultiTaskMixed("cox", alpha=0.3, loss_weights=3.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(weighted.coef_, ts.MultiTaskCox(alpha=0.1, tol=1e-9).fit(X, y).coef_, atol=1e-5)
    assert weighted.objective_ == pytest.approx(3.0 * ts.MultiTaskCox(alpha=0.1, tol=1e-9).fit(X, y).objective_)
    residuals = null.objective_ - ts.MultiTaskMixed("cox", alpha=10.0, loss_weights=1).fit(X, y).objective_
    assert residuals == pytest.approx(0.0, abs=1e-9)
    missing = y.copy()
    missing["time"][:5] = np.nan
    fewer = ts.MultiTaskMixed(SURVIVAL, alpha=0.2).fit({**data, "death": (X, missing)})
    kept = ts.MultiTaskMixed(SURVIVAL, alpha=0.2, tol=1e-9).fit({**data, "death": (X[5:], y[5:])})
    np.testing.assert_allclose(fewer.coef_, kept.coef_, atol=2e-2)
    with pytest.raises(ValueError, match="death"):
        ts.MultiTaskMixed(SURVIVAL).fit({**data, "death": (X, y["time"])})


def test_cross_validation_adds_weighted_losses(rng):
    data = survival_data(rng)
    task = np.repeat(list(data), 60)
    model = ts.MultiTaskMixedCV(SURVIVAL, alphas=[0.4, 0.2], cv=3).fit(data)
    assert model.cv_folds_ == "3 folds, shuffled within tasks, stratified by class and event, seed 0"
    frame = model.cv_quality_.to_frame()
    assert list(model.cv_quality_.measures) == [
        "D²", "concordance", "partial-likelihood deviance", "accuracy", "AUC", "logistic loss", "squared error",
        "Poisson deviance",
    ]  # fmt: skip
    values = model.cv_quality_.values
    np.testing.assert_array_equal(np.isfinite(values[:, 0]), True)
    assert np.isfinite(values[:, 1]).tolist() == [name == "death" for name in model.tasks_]
    assert frame[frame["task"] == "all tasks"]["value"].iloc[0] == pytest.approx(values[:, 0].mean())
    predictions = model.cv_predictions_
    assert predictions.shape == (240,)
    own = model.cv_task_scores_
    t = model.tasks_.tolist().index("pressure")
    by_row = (predictions[task == "pressure"] - data["pressure"][1]) ** 2 / (2.0 * model.target_scales_[t] ** 2)
    assert own[t].mean() == pytest.approx(model.loss_weights_[t] * by_row.mean(), rel=1e-9)
    t = model.tasks_.tolist().index("visits")
    mean, y = predictions[task == "visits"], data["visits"][1]
    kl = np.where(y > 0, y * np.log(np.maximum(y, 1) / mean), 0.0) - y + mean
    assert own[t].mean() == pytest.approx(model.loss_weights_[t] * kl.mean(), rel=1e-6)
    assert model.cv_scores_[model.alphas_.tolist().index(model.alpha_)].mean() == pytest.approx(own.mean())
    with pytest.raises(ts.ParameterError, match="no score in common"):
        ts.MultiTaskMixedCV(SURVIVAL, scoring="r2").fit(data)
    alone = ts.MultiTaskMixedCV("squared", alphas=[0.2], cv=3, loss_weights=1, target_scales=1).fit(*data["pressure"])
    lasso = ts.MultiTaskRegressorCV(alphas=[0.2], cv=3).fit(*data["pressure"])
    np.testing.assert_allclose(2.0 * alone.cv_scores_, lasso.cv_scores_, rtol=1e-4)
    np.testing.assert_allclose(alone.cv_quality_.values[0, 0], lasso.cv_quality_.values[0, 0], rtol=1e-4)


def test_ordered_classes_beside_others(rng):
    data = draw(rng, 60)
    X = data["pain"][0]
    z = X[:, 0] - 0.7 * X[:, 1] + rng.logistic(size=60)
    words = np.array(["none", "mild", "severe"])[np.digitize(z, [-0.8, 0.8])]
    data["pain"] = X, words
    losses, order = {**LOSSES, "pain": "ordinal"}, {"pain": ["none", "mild", "severe"]}
    model = ts.MultiTaskMixed(losses, alpha=0.2, categories=order).fit(data)
    t = model.tasks_.tolist().index("pain")
    numbers = ts.MultiTaskMixed(losses, alpha=0.2).fit({**data, "pain": (X, np.digitize(z, [-0.8, 0.8]))})
    np.testing.assert_array_equal(numbers.coef_, model.coef_)
    assert model.thresholds_[t].shape == (2,)
    assert model.intercept_[t] == 0.0
    assert [own is None for own in model.thresholds_] == [name != "pain" for name in model.tasks_]
    chances = model.predict_proba({"pain": X, "visits": X})
    assert chances["visits"] is None
    upto = 1.0 / (1.0 + np.exp(X @ model.coef_[t] - model.thresholds_[t][0]))
    np.testing.assert_allclose(chances["pain"][:, 0], upto)
    assert model.predict({"pain": X})["pain"].tolist() == model.classes_[t][chances["pain"].argmax(axis=1)].tolist()
    shares = np.array([np.mean(words == word) for word in words])
    own = chances["pain"][np.arange(60), [order["pain"].index(word) for word in words]]
    expected = 1.0 - np.log(own).sum() / np.log(shares).sum()
    assert model.deviance_explained(data)[t] == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"are words .* whose order is not known"):
        ts.MultiTaskMixed(losses, alpha=0.2).fit(data)

    held = ts.MultiTaskMixedCV(losses, alphas=[0.2], cv=3, categories=order).fit(data)
    quality, codes = held.cv_quality_, np.array([order["pain"].index(word) for word in words])
    at = quality.measures.index("mean absolute error")
    assert [np.isfinite(own[at]) for own in quality.values] == [name == "pain" for name in model.tasks_]
    assert 0.0 < quality.values[t, at] < np.abs(codes - codes.mean()).mean()
    met = quality.values[t, quality.measures.index("accuracy")]
    assert 1.0 - met <= quality.values[t, at] <= 2.0 * (1.0 - met)  # a miss is off by one class or by two


def test_ordered_categoricals_keep_their_order(rng):
    """In every form of y, without `categories`."""
    pandas = pytest.importorskip("pandas")
    X, order = rng.standard_normal((60, 5)), ["none", "mild", "severe"]
    codes = np.digitize(X[:, 0] + 0.5 * rng.logistic(size=60), [-0.8, 0.8])
    pain = pandas.Categorical.from_codes(codes, order, ordered=True)
    pressure, losses = X[:, 0] + rng.normal(size=60), {"pressure": "squared", "pain": "ordinal"}
    wanted = ts.MultiTaskMixed(losses, alpha=0.2).fit(X, {"pressure": pressure, "pain": codes})
    targets = {"pressure": pressure, "pain": pain}
    for given in (targets, {**targets, "pain": pandas.Series(pain)}, pandas.DataFrame(targets)):
        model = ts.MultiTaskMixed(losses, alpha=0.2).fit(X, given)
        assert model.classes_[1].tolist() == order
        np.testing.assert_array_equal(model.coef_, wanted.coef_)
    listed = ts.MultiTaskMixed(["squared", "ordinal"], alpha=0.2).fit([X, X], [pressure, pain])
    np.testing.assert_array_equal(listed.coef_, wanted.coef_)
    tasks = {"pressure": (X, pressure), "pain": (X[:40], pain[:40])}
    named = ts.MultiTaskMixedCV(losses, alphas=[0.2], cv=3).fit(tasks)
    at = named.tasks_.tolist().index("pain")
    assert named.classes_[at].tolist() == order
    assert named.score(tasks) == pytest.approx(named.deviance_explained(tasks).mean())
    alone = ts.MultiTaskMixed("ordinal", alpha=0.2).fit(X, pain, task=np.repeat(["a", "b"], 30))
    assert [own.tolist() for own in alone.classes_] == [order, order]
    other = ts.MultiTaskMixed(losses, alpha=0.2, categories={"pain": order[::-1]}).fit(X, targets)
    assert other.classes_[1].tolist() == order[::-1]


def test_saved_and_loaded_to_the_bit(rng):
    data = survival_data(rng)
    model = ts.MultiTaskMixed(SURVIVAL, alpha=0.4).fit(data)
    again = pickle.loads(pickle.dumps(model))
    features = {task: X for task, (X, _) in data.items()}
    for task, answer in model.predict(features).items():
        assert np.asarray(again.predict(features)[task]).tobytes() == np.asarray(answer).tobytes()
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert again.loss_weights_.tobytes() == model.loss_weights_.tobytes()
    assert again.score(data) == model.score(data)
    assert again.certificate(data).to_bytes() == model.certificate(data).to_bytes()


def test_findings(rng):
    data = {task: own for task, own in survival_data(rng).items() if task != "visits"}
    losses = {task: loss for task, loss in SURVIVAL.items() if task != "visits"}
    model = ts.MultiTaskMixed(losses, alpha=0.4).fit(data)
    assert model.certificate(data).verify({task: X for task, (X, _) in data.items()}, _labels(data)).proved
    again = ts.refit(model, data)
    t = model.tasks_.tolist().index("pressure")
    X, y = data["pressure"]
    own = np.flatnonzero(model.coef_[t])
    fit = np.linalg.lstsq(np.column_stack([np.ones(len(y)), X[:, own]]), y, rcond=None)[0]
    np.testing.assert_allclose(again.coef_[t, own], fit[1:], rtol=1e-8)
    assert again.score(data) > model.score(data)
    assert ts.permutation_test(model, data, n_permutations=2).pvalue <= 1.0
    for refused, words in (
        (ts.compare, "unlike outcomes have none in common"),
        (ts.split_inference, "not of the weighted"),
    ):
        with pytest.raises(ValueError, match=words):
            refused(ts.MultiTaskMixedCV(losses) if refused is ts.compare else model, data)


def _labels(data):
    return {task: y for task, (_, y) in data.items()}


def test_it_is_cloned_and_pickled(rng):
    data = draw(rng)
    model = clone(ts.MultiTaskMixed(LOSSES, alpha=0.2)).fit(data)
    again = pickle.loads(pickle.dumps(model))
    assert again.score(data) == model.score(data)
    warm = ts.MultiTaskMixed(LOSSES, alpha=0.2, warm_start=True).fit(data)
    assert warm.fit(data).n_iter_ <= 2
