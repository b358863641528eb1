"""One site's answers: sums over its tasks, against models of the product and against themselves."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.federated.answer import GRID, Answer
from tasksieve.federated.errors import FederatedError
from tasksieve.federated.local import LocalProblem
from tasksieve.federated.question import Question
from tasksieve.tasks import read_tasks

Array = np.ndarray[Any, Any]


def rows(name: str, sizes: tuple[int, ...] = (40, 30, 35), d: int = 12, seed: int = 0) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, d)) * rng.uniform(0.5, 2.0, d) + 0.5 for n in sizes]
    y = []
    for x in X:
        z = x[:, 0] - 0.5 * x[:, 1]
        if name == "logistic":
            y.append((rng.random(len(z)) < 1.0 / (1.0 + np.exp(-z))).astype(int))
        elif name == "poisson":
            y.append(rng.poisson(np.exp(0.4 * z)).astype(float))
        elif name == "gamma":
            y.append(rng.gamma(2.0, np.exp(0.4 * z)))
        elif name == "ordinal":
            y.append(np.digitize(z + rng.logistic(size=len(z)), [-0.5, 1.0]))
        elif name == "cox":
            death, end = rng.exponential(np.exp(-z)), rng.exponential(3.0, len(z))
            y.append(ts.survival(np.minimum(death, end), death <= end))
        else:
            y.append(z + rng.normal(size=len(z)))
    return X, y


def read(name: str, X: Any, y: Any) -> Any:
    return read_tasks(X, y, targets="classes" if name == "logistic" else "values")


def question(d: int, levels: Array | None = None, **more: Any) -> Question:
    s = np.linspace(0.0, 0.4, d // 2)
    return Question(features=np.arange(0, d, 2), s=s, levels=levels, **more)


def same(one: Answer, other: Answer) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(vars(one).values(), vars(other).values(), strict=True))


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_identities_of_an_answer(name: str) -> None:
    X, y = rows(name)
    answer, q = LocalProblem(read(name, X, y), name).answer(question(12)), question(12)
    assert answer.phi == pytest.approx(answer.loss + 0.5 * float(q.s @ answer.z), rel=1e-13)
    assert answer.dual[0] - 0.5 * float(q.s @ answer.z) == pytest.approx(answer.phi, rel=1e-11)
    assert np.allclose(answer.levels[q.features], answer.z, rtol=1e-9)
    slopes = np.diff(answer.dual[::-1]) / np.diff(GRID[::-1])
    assert np.all(np.diff(slopes[:20]) < 1e-6)  # concave where the grid is not finer than rounding
    if name == "squared":
        assert answer.yr - answer.rr == pytest.approx(float(q.s @ answer.z), rel=1e-10)


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_sites_with_some_tasks_each_add_up_to_one_with_all(name: str) -> None:
    X, y = rows(name)
    q = question(12, levels=np.array([1, 5, 6]))
    whole = LocalProblem(read(name, X, y), name, standardize="task").answer(q)
    parts = [LocalProblem(read(name, [a], [b]), name, standardize="task").answer(q) for a, b in zip(X, y, strict=True)]
    total = sum(parts)
    assert isinstance(total, Answer)
    for key in ("phi", "loss", "yr", "rr", "dual", "z", "hessian", "levels"):
        assert np.allclose(getattr(total, key), getattr(whole, key), rtol=1e-11, atol=1e-11), key


def test_the_same_question_has_the_same_bits() -> None:
    X, y = rows("logistic")
    data = read("logistic", X, y)
    half = np.where(np.arange(len(data.y)) % 2, data.weights, 0.0)
    site = LocalProblem(data, "logistic", problems={"half 0": half})
    asked = [Question(), question(12), question(12, problem="half 0", held_out=True), Question(kind="norms")]
    first = [site.answer(q) for q in asked]
    again = [site.answer(q) for q in reversed(asked)][::-1]
    fresh = [LocalProblem(data, "logistic", problems={"half 0": half}).answer(q) for q in asked]
    for one, two, three in zip(first, again, fresh, strict=True):
        assert same(one, two)
        assert same(one, three)


MODELS: dict[str, tuple[Any, float]] = {
    "squared": (ts.MultiTaskLasso, 0.4),
    "huber": (ts.MultiTaskHuber, 0.25),
    "quantile": (ts.MultiTaskQuantile, 0.12),
    "logistic": (ts.MultiTaskLogisticRegression, 0.12),
    "poisson": (ts.MultiTaskPoisson, 0.4),
    "gamma": (partial(ts.MultiTaskRegressor, loss="gamma"), 0.35),
    "cox": (ts.MultiTaskCox, 0.25),
    "ordinal": (ts.MultiTaskOrdinal, 0.15),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rich", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_at_the_pooled_optimum_a_site_has_the_coefficients_of_the_model(name: str, rich: bool) -> None:
    """At s_j = ||w_j||/lam of the pooled optimum every site finds its own columns of it; `rich`: with weights of rows
    and tasks, offsets, a covariate and columns standardised by task."""
    X, y = rows(name)
    kind, alpha = MODELS[name]
    rng, more, given = np.random.default_rng(1), {}, {}
    if rich:
        weights = np.ones(12)
        weights[5] = 0.0
        more = {"standardize": True, "feature_weights": weights, "task_weights": [1.0, 2.0, 0.5]}
        given = {"sample_weight": [rng.uniform(0.5, 2.0, len(x)) for x in X]}
        if name != "cox":
            given["offset"] = [0.3 * rng.normal(size=len(x)) for x in X]
    model = kind(alpha=alpha, tol=1e-11, **more).fit(X, y, **given)
    data = model._read_with(X, y, None, given.get("sample_weight"), given.get("offset"))
    lam, coef = alpha * data.n_bar, model.coef_.T.copy()
    site = LocalProblem(
        data, model._loss_of(data), standardize="task" if rich else "no", unpenalised=[5] if rich else None
    )
    scale = site.problem("all").design.scale
    sizes = np.linalg.norm(coef if scale is None else coef * scale, axis=1)
    if rich:
        sizes[5] = 0.0
    features = np.flatnonzero(sizes)
    q = Question(features=features, s=sizes[features] / lam)
    found, answer = site.coefficients(q), site.answer(q)
    assert 1 <= len(features) < 12
    assert np.array_equal(found.features, np.union1d(features, [5]) if rich else features)
    assert np.allclose(found.rows, coef[found.features], atol=2e-4)
    if name == "ordinal":
        assert np.allclose(found.thresholds.T, model.thresholds_, atol=2e-4)
    elif name != "cox":
        assert np.allclose(found.intercept, model.intercept_, atol=2e-4)
    constant = 0.0 if name == "squared" else answer.yr
    objective = answer.loss + lam * float(q.s @ np.sqrt(answer.z)) + constant
    assert objective / data.n_bar == pytest.approx(model.objective_, rel=1e-8)
    assert np.sqrt(answer.levels.max()) == pytest.approx(lam, rel=1e-3)  # the dual point touches its bounds
    assert answer.phi == pytest.approx(answer.dual[0] - 0.5 * float(q.s @ answer.z), rel=1e-10)
    # and it proves the objective: the gap of these sums is about that of the model
    k = min(1.0, lam / np.sqrt(answer.levels.max()))
    dual = float(np.interp(k, GRID[::-1], answer.dual[::-1]))
    assert abs(objective - constant - dual) <= 1e-4 * objective


def test_pooled_scales_are_a_division_of_the_columns() -> None:
    X, y = rows("squared")
    scales = np.linspace(0.5, 3.0, 12)
    q = question(12)
    divided = LocalProblem(read("squared", [x / scales for x in X], y), "squared")
    site = LocalProblem(read("squared", X, y), "squared", standardize=scales)
    one, two = site.answer(q), divided.answer(q)
    for key in ("phi", "dual", "z", "hessian", "levels"):
        assert np.allclose(getattr(one, key), getattr(two, key), rtol=1e-12), key
    ours, theirs = site.coefficients(q), divided.coefficients(q)
    assert np.allclose(ours.rows * scales[ours.features][:, None], theirs.rows, rtol=1e-10)
    assert np.allclose(ours.intercept, theirs.intercept)
    assert np.allclose(site.answer(Question(kind="norms")).norms, divided.answer(Question(kind="norms")).norms)


def test_norms_and_sizes() -> None:
    X, y = rows("squared")
    site = LocalProblem(read("squared", X, y), "squared", unpenalised=[3])
    norms = site.answer(Question(kind="norms")).norms
    free = [np.column_stack([np.ones(len(x)), x[:, 3]]) for x in X]
    left = [x - z @ np.linalg.lstsq(z, x, rcond=None)[0] for x, z in zip(X, free, strict=True)]
    expected = sum(np.linalg.norm(x, axis=0) ** 16 for x in left)
    assert norms[3] == 0.0
    keep = np.arange(12) != 3
    assert np.all(norms[keep] >= expected[keep])
    assert np.allclose(norms[keep], expected[keep], rtol=1e-9)
    assert site.answer(Question(kind="sizes")).sizes.sum() == 3
    assert site.answer(Question()).levels[3] == 0.0


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_held_out_rows_are_scored_by_the_model_of_the_others(name: str) -> None:
    X, y = rows(name)
    data = read(name, X, y)
    held = np.arange(len(data.y)) % 4 == 1
    site = LocalProblem(data, name, problems={"fold 0": np.where(held, 0.0, data.weights)})
    q = question(12, problem="fold 0", held_out=True)
    found, loss, n_tasks, weight = site.answer(q).held_out
    coef = site.coefficients(q)
    total = null = 0.0
    for t, (low, high) in enumerate(zip(data.offsets, data.offsets[1:], strict=False)):
        out = held[low:high]
        labels = data.y[low:high]
        z = X[t][:, coef.features] @ coef.rows[:, t] + coef.intercept[t]
        if name == "squared":
            mean = labels[~out].mean()
            total += np.mean((labels - z)[out] ** 2)
            null += np.mean((labels - mean)[out] ** 2)
        else:
            share = np.mean(labels[~out] > 0)
            level = np.log(share / (1.0 - share))
            total += np.mean(np.logaddexp(0.0, -labels * z)[out])
            null += np.mean(np.logaddexp(0.0, -labels * level)[out])
    assert n_tasks == data.n_tasks
    assert weight == np.sum(~held)
    assert found == pytest.approx(total, rel=1e-10)
    assert loss == pytest.approx(null, rel=1e-8)
    # all rows: nothing is held out, and the weight is what objectives are divided by, times the tasks
    everything = site.answer(question(12, held_out=True)).held_out
    assert everything.tolist() == [0.0, 0.0, 0.0, data.n_bar * data.n_tasks]


def partial_likelihood(y: Any, z: Array, rows: Array) -> float:
    """Of rows whose times differ."""
    total = 0.0
    for i in np.flatnonzero(rows & y["event"]):
        at_risk = rows & (y["time"] >= y["time"][i])
        total += z[i] - np.log(np.sum(np.exp(z[at_risk])))
    return total


@pytest.mark.parametrize("name", ["cox", "ordinal"])
def test_held_out_rows_of_losses_that_have_no_intercept(name: str) -> None:
    X, y = rows(name)
    model = MODELS[name][0](alpha=1.0)
    data = model._read_with(X, y, None, None, None)
    held = np.arange(len(data.y)) % 4 == 1
    train = np.where(held, 0.0, data.weights)
    site = LocalProblem(data, model._loss_of(data), problems={"fold 0": train})
    q = question(12, problem="fold 0", held_out=True)
    found, null, n_tasks, weight = site.answer(q).held_out
    coef, nothing = site.coefficients(q), site.coefficients(Question(problem="fold 0"))
    expected = np.zeros(2)
    for t, (low, high) in enumerate(zip(data.offsets, data.offsets[1:], strict=False)):
        out, labels, own = held[low:high], data.y[low:high], X[t]
        size = np.sum(out & labels["event"]) if name == "cox" else np.sum(out)
        for k, model_of in enumerate((coef, nothing)):
            z = own[:, model_of.features] @ model_of.rows[:, t]
            if name == "cox":
                whole = partial_likelihood(labels, z, np.ones(len(z), bool))
                expected[k] += 2.0 * (partial_likelihood(labels, z, ~out) - whole) / size
            else:
                edges = np.concatenate([[-np.inf], model_of.thresholds[:, t], [np.inf]])
                below = 1.0 / (1.0 + np.exp(z[:, None] - edges))
                chance = np.take_along_axis(np.diff(below, axis=1), labels.astype(int)[:, None], axis=1)[:, 0]
                expected[k] -= 2.0 * np.sum(np.log(chance[out])) / size
    assert n_tasks == data.n_tasks
    assert weight == np.sum(~held)
    assert [found, null] == pytest.approx(expected.tolist(), rel=1e-9)


def test_a_fold_without_an_event_says_nothing() -> None:
    """One task: were there others, the same sums would come of them alone."""
    X, y = rows("cox")
    labels = y[0].copy()
    labels["event"] = np.arange(len(labels)) < 3
    model = ts.MultiTaskCox(alpha=1.0)
    data = model._read_with([X[0]], [labels], None, None, None)
    events = data.y["event"]
    problems = {"fold 0": np.where(events, 0.0, 1.0), "fold 1": np.where(np.arange(len(events)) % 2, 0.0, 1.0)}
    site = LocalProblem(data, model._loss_of(data), problems=problems)
    answer = site.answer(question(12, problem="fold 0", held_out=True))
    assert (answer.phi, answer.loss, answer.rr) == (0.0, 0.0, 0.0)
    assert not answer.dual.any()
    assert not answer.levels.any()
    assert not answer.z.any()
    assert not site.coefficients(question(12, problem="fold 0")).rows.any()
    # what is held out has events, and is judged: no model knows anything about them
    score, null, n_tasks, weight = answer.held_out
    assert (n_tasks, weight) == (1.0, np.sum(~events))
    assert score == null > 0.0


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:task 1 .of tasks_. has no events")
def test_a_task_without_rows_in_a_fold_counts_nothing(name: str) -> None:
    X, y = rows(name)
    model = MODELS[name][0](alpha=1.0)
    data = model._read_with(X, y, None, None, None)
    train = data.weights.copy()
    train[data.offsets[1] : data.offsets[2]] = 0.0
    site = LocalProblem(data, model._loss_of(data), problems={"fold 0": train}, standardize="task")
    others = model._read_with([X[0], X[2]], [y[0], y[2]], None, None, None)
    fewer = LocalProblem(others, model._loss_of(others), standardize="task")
    one, two = site.answer(question(12, problem="fold 0")), fewer.answer(question(12))
    for key in ("phi", "loss", "dual", "z", "hessian", "levels"):
        assert np.allclose(getattr(one, key), getattr(two, key), rtol=1e-9, atol=1e-9), key


def test_halves_are_problems_of_their_own() -> None:
    """A half is the problem of its rows alone, whatever the others hold."""
    X, y = rows("squared")
    data = read("squared", X, y)
    inside = np.arange(len(data.y)) % 2 == 0
    site = LocalProblem(data, "squared", standardize="task", problems={"half 0": np.where(inside, 1.0, 0.0)})
    cut = [inside[low:high] for low, high in zip(data.offsets, data.offsets[1:], strict=False)]
    few = read("squared", [x[c] for x, c in zip(X, cut, strict=True)], [b[c] for b, c in zip(y, cut, strict=True)])
    alone = LocalProblem(few, "squared", standardize="task")
    one, two = site.answer(question(12, problem="half 0")), alone.answer(question(12))
    for key in ("phi", "loss", "yr", "rr", "dual", "z", "hessian", "levels"):
        assert np.allclose(getattr(one, key), getattr(two, key), rtol=1e-10, atol=1e-10), key


def test_one_matrix_shared_by_all_tasks() -> None:
    X, y = rows("squared", (40,))
    labels = np.column_stack([y[0], 2.0 * y[0] + X[0][:, 3], np.sin(y[0])])
    shared = LocalProblem(read_tasks(X[0], labels), "squared")
    several = LocalProblem(read_tasks(3 * X, list(labels.T)), "squared")
    one, two = shared.answer(question(12)), several.answer(question(12))
    for key in ("phi", "dual", "z", "hessian", "levels"):
        assert np.allclose(getattr(one, key), getattr(two, key), rtol=1e-10), key


def test_refusals() -> None:
    X, y = rows("squared")
    data = read("squared", X, y)
    with pytest.raises(ValueError, match="second derivative"):
        LocalProblem(data, "square-root").answer(Question())
    with pytest.raises(FederatedError, match="no problem 'fold 9'"):
        LocalProblem(data, "squared").answer(Question(problem="fold 9"))
    with pytest.raises(FederatedError, match="not penalised"):
        LocalProblem(data, "squared", unpenalised=[2]).answer(Question(features=np.array([2]), s=np.ones(1)))
    with pytest.raises(ValueError, match="12 positive numbers"):
        LocalProblem(data, "squared", standardize=np.zeros(12))
    with pytest.raises(ValueError, match="one for each row"):
        LocalProblem(data, "squared", problems={"half 0": np.ones(3)})
    with pytest.raises(FederatedError, match="features"):
        LocalProblem(data, "squared").answer(Question(features=np.array([12]), s=np.ones(1)))
