"""Members of one's own: a penalty and a loss that the package does not have, through public names alone."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import tasksieve as ts
from tasksieve.design import DenseStorage, Design
from tasksieve.losses.hinge import Hinge
from tasksieve.path import Problem, solve_path
from tasksieve.penalties import L21, RowPenalty, Sorted, SparseGroup
from tasksieve.proof.prove import prove

EXAMPLES = Path(__file__).parents[2] / "examples"
OWN = {name: runpy.run_path(str(EXAMPLES / f"own_{name}.py")) for name in ("penalty", "loss", "storage", "members")}
LInf, Huber = OWN["penalty"]["LInf"], OWN["loss"]["Huber"]


@pytest.fixture
def data(rng):
    tasks, rows, d = 3, 20, 300
    x, task = rng.standard_normal((tasks * rows, d)), np.repeat(np.arange(tasks), rows)
    w = np.zeros((d, tasks))
    w[:5] = rng.standard_normal((5, tasks))
    y = np.einsum("ij,ji->i", x, w[:, task]) + 0.5 * rng.standard_normal(len(x))
    y[::11] += 15.0
    return x, y, task


def optimum(data, loss, penalty, alpha, positive=False, weights=None, ridge=0.0) -> float:
    """The optimal value of the public objective, by a cone solver."""
    x, y, task = data
    w, b = cp.Variable((x.shape[1], 3)), cp.Variable(3)
    s = np.ones(len(y)) if weights is None else weights
    total = 0
    for t in range(3):
        own = task == t
        residual = y[own] - x[own] @ w[:, t] - b[t]
        rows = cp.square(residual) / 2 if loss == "squared" else cp.huber(residual, loss.delta) / 2
        total = total + s[own] @ rows
    norm = cp.sum(cp.max(cp.abs(w), axis=1)) if penalty == "linf" else cp.sum(cp.norm(w, 2, axis=1))
    objective = total / (s.sum() / 3) + alpha * norm + ridge / 2 * cp.sum_squares(w)
    program = cp.Problem(cp.Minimize(objective), [w >= 0] if positive else [])
    program.solve(solver="CLARABEL")
    return float(program.value)


PAIRS = {
    "squared, linf": ("squared", "linf", {}),
    "squared, linf, positive": ("squared", "linf", {"positive": True}),
    "squared, linf, ridge": ("squared", "linf", {"ridge": 0.3}),
    "huber, l21": ("huber", "l21", {}),
    "huber, l21, weights": ("huber", "l21", {"weights": True}),
    "huber, linf": ("huber", "linf", {}),
    "huber, linf, ridge, positive": ("huber", "linf", {"ridge": 0.1, "positive": True}),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_certificates_of_own_members_are_true(data, rng, pair):
    """The gap bounds the distance to a cone solver's optimum, at every accuracy; the last is accurate."""
    x, y, task = data
    loss, penalty, options = pair
    loss = Huber(1.0) if loss == "huber" else loss
    weights = rng.uniform(0.3, 2.0, len(y)) if options.get("weights") else None
    parameters = {key: value for key, value in options.items() if key != "weights"}
    model = ts.MultiTaskRegressor(loss, LInf() if penalty == "linf" else penalty, **parameters)
    model.set_params(alpha=0.3 * model.alpha_max(x, y, task=task, sample_weight=weights))
    best = optimum(data, loss, penalty, model.alpha, weights=weights, **parameters)
    for tol in (1e-1, 1e-3, 1e-7):
        model.set_params(tol=tol).fit(x, y, task=task, sample_weight=weights)
        assert model.dual_gap_ <= tol * model.null_objective_
        assert model.objective_ - best <= model.dual_gap_ + 1e-7 * model.null_objective_
        assert model.objective_ - best >= -1e-7 * model.null_objective_
    assert 0 < model.get_support().sum() < 150


def test_no_feature_is_left_infeasible(data):
    """With the bound of another norm features would stand above their thresholds unseen: their gauges, in full."""
    x, y, task = data
    path = ts.MultiTaskRegressor("squared", LInf(), tol=1e-6).path(x, y, task=task, n_alphas=15, eps=0.05)
    for k, alpha in enumerate(path.alphas[1:], start=1):
        coef, intercept = path.coef(k).toarray(), path.intercept(k)
        residual = y - np.einsum("ij,ij->i", x, coef[task]) - intercept[task]
        correlations = np.stack([x[task == t].T @ residual[task == t] for t in range(3)], axis=1)
        assert np.abs(correlations).sum(axis=1).max() <= 20 * alpha * (1.0 + 1e-2)


@pytest.mark.parametrize("loss", ["squared", pytest.param(Huber(1.0), marks=pytest.mark.slow)], ids=str)
def test_screening_along_a_path_changes_nothing_but_work(data, loss):
    x, y, task = data
    eps, tol = (0.1, 1e-8) if loss == "squared" else (0.4, 1e-6)
    found = [
        ts.MultiTaskRegressor(loss, LInf(), tol=tol, screening=rule).path(x, y, task=task, n_alphas=8, eps=eps)
        for rule in ("auto", "gap", None)
    ]
    for one in found[1:]:
        both = one.dual_gaps + found[0].dual_gaps
        assert np.all(np.abs(one.objectives - found[0].objectives) <= both)
    if loss == "squared":
        assert found[0].rejection_ratios[1:].mean() > 0.3


def test_huber_with_a_large_delta_is_squared(data):
    x, y, task = data
    one = ts.MultiTaskRegressor(Huber(1e6), alpha=1.0, tol=1e-10).fit(x, y, task=task)
    two = ts.MultiTaskLasso(alpha=1.0, tol=1e-10).fit(x, y, task=task)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-5)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-9)


def test_of_one_task_the_largest_entry_is_the_entry(data):
    x, y, _ = data
    one = ts.MultiTaskRegressor("squared", LInf(), alpha=1.0, tol=1e-10).fit(x, y)
    two = ts.MultiTaskLasso(alpha=1.0, tol=1e-10).fit(x, y)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-5)


def test_solvers_refuse_what_they_cannot_do(data):
    x, y, _ = data
    design = Design(DenseStorage(np.asfortranarray(x)), np.array([0, 20, 40, 60]))
    for loss, penalty, solver, reason in (
        ("squared", LInf(), "cd", "sparse group"),
        ("squared", LInf(), "newton", "group penalty"),
        (Huber(), None, "cd", "squared loss"),
        (Huber(), LInf(), "prox-newton", "sparse group"),
        ("squared", None, "prox-newton", "other losses"),
        ("squared", None, "spgd", "sorted norms of rows"),
    ):
        problem = Problem(design, y, loss=loss, penalty=penalty)
        with pytest.raises(ValueError, match=f"solver='{solver}' .*{reason}.*use 'auto'"):
            solve_path(problem, [1.0], solver=solver)
    with pytest.raises(ValueError, match="no solver for the hinge loss: its smoothness"):
        solve_path(Problem(design, np.sign(y), loss=Hinge(), penalty=LInf()), [1.0])


def test_a_loss_that_does_not_say_enough_is_refused(data):
    x, y, task = data

    class Half(ts.losses.RowLoss):
        def value(self, y, z):
            return np.square(y - z)

    with pytest.raises(ValueError, match="does not define `slope`"):
        ts.MultiTaskRegressor(Half()).fit(x, y, task=task)
    with pytest.raises(ValueError, match="'loss' parameter"):
        ts.MultiTaskRegressor("absolute").fit(x, y, task=task)
    with pytest.raises(ValueError, match="'penalty' parameter"):
        ts.MultiTaskRegressor(penalty="ridge").fit(x, y, task=task)


# --- proofs about any coefficients -----------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", ["squared", "square-root", "logistic", Huber(1.0)], ids=str)
@pytest.mark.parametrize("penalty", [L21(), SparseGroup(0.3, 1.0), Sorted(), LInf()], ids=lambda p: type(p).__name__)
def test_prove_knows_every_loss_and_penalty(data, rng, loss, penalty):
    """The objective of any coefficients from the definition, a gap that bounds their distance, safe zeros."""
    x, y, task = data
    y = np.sign(y) if loss == "logistic" else y
    design = Design(DenseStorage(np.asfortranarray(x)), np.array([0, 20, 40, 60]))
    problem = Problem(design, y, loss=loss, penalty=penalty)
    lam = 0.4 * problem.lambda_max()
    value = solve_path(problem, [lam], tol=1e-9).points[0]
    coef = np.zeros((3, x.shape[1]))
    coef[:, value.features] = value.rows.T
    for blur in (0.0, 1e-4, 0.1):
        blurred = coef * (1.0 + blur * rng.standard_normal(coef.shape))
        intercept = value.intercept + blur * rng.standard_normal(3)
        z = np.einsum("ij,ij->i", x, blurred[task]) + intercept[task]
        r = y - z
        if loss == "squared":
            total = 0.5 * r @ r
        elif loss == "square-root":
            total = sum(np.linalg.norm(r[task == t]) for t in range(3))
        elif loss == "logistic":
            total = np.logaddexp(0.0, -y * z).sum()
        else:
            total = np.where(np.abs(r) <= 1.0, r**2 / 2, np.abs(r) - 0.5).sum()
        total += problem.penalty.at(lam).value(blurred.T)
        proof = prove(problem, lam, blurred, intercept)
        assert proof.objective == pytest.approx(total, rel=1e-10)
        assert proof.objective - value.objective <= proof.dual_gap + 1e-9 * problem.loss.null.value
        assert not np.any(proof.zero_rows & (np.abs(coef).max(axis=0) > 1e-4 * np.abs(coef).max()))
        if blur == 0.0 and loss != "square-root":  # there the direction of the residual is a poor dual point
            assert proof.zero_rows.sum() > 100


# --- shards ----------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("penalty", [L21(), SparseGroup(0.3, 1.0), Sorted(), LInf()], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_several_storages_give_the_answers_of_one(data, loss, penalty):
    """Features cut into three storages: the same path, to the bit but for what BLAS does with other shapes."""
    x, y, _ = data
    y = np.sign(y) if loss == "logistic" else y
    x = np.asfortranarray(x)
    paths = []
    for cuts in ([0, 300], [0, 50, 170, 300]):
        parts = [DenseStorage(x[:, a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
        design = Design(parts, np.array([0, 20, 40, 60]), unpenalised=None, standardize=True)
        problem = Problem(design, y, loss=loss, penalty=penalty)
        lams = problem.lambda_max() * np.geomspace(1.0, 0.1, 10)
        paths.append(solve_path(problem, lams, tol=1e-7))
    for one, two in zip(*(path.points for path in paths), strict=True):
        assert one.objective == pytest.approx(two.objective, rel=1e-12)
        np.testing.assert_array_equal(one.features, two.features)
        np.testing.assert_allclose(one.rows, two.rows, atol=1e-10)
        assert one.n_rejected == two.n_rejected
    assert paths[0].passes == pytest.approx(paths[1].passes, rel=0.2)


def test_unpenalised_features_in_any_storage(data):
    x, y, _ = data
    x = np.asfortranarray(x)
    weights = np.ones(300)
    weights[[3, 120, 299]] = 0.0
    values = []
    for cuts in ([0, 300], [0, 100, 300]):
        parts = [DenseStorage(x[:, a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
        design = Design(parts, np.array([0, 20, 40, 60]), unpenalised=np.flatnonzero(weights == 0))
        problem = Problem(design, y, feature_weights=weights)
        values.append(solve_path(problem, [0.3 * problem.lambda_max()], tol=1e-8).points[0])
    assert values[0].objective == pytest.approx(values[1].objective, rel=1e-12)
    np.testing.assert_array_equal(values[0].features, values[1].features)


# --- a storage of one's own ------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", ["sorted", "unsorted", "shared", "one task"])
def test_own_storage(rng, form):
    x = rng.integers(0, 3, (60, 80)).astype(np.float32)
    y = x[:, 0] - x[:, 1] + 0.3 * rng.standard_normal(60)
    task = {"sorted": np.repeat([0, 1, 2], 20), "unsorted": rng.integers(0, 3, 60)}.get(form)
    target = np.stack([y, -y], axis=1) if form == "shared" else y
    zipped = OWN["storage"]["make"](x)
    own = ts.MultiTaskLasso(alpha=0.1).fit(zipped, target, task=task)
    usual = ts.MultiTaskLasso(alpha=0.1).fit(x, target, task=task)
    np.testing.assert_allclose(own.coef_, usual.coef_, atol=1e-12)
    np.testing.assert_allclose(own.predict(zipped, task=task), usual.predict(x, task=task), atol=1e-12)
    assert own.score(zipped, target, task=task) == pytest.approx(usual.score(x, target, task=task))
    search = ts.MultiTaskLassoCV(n_alphas=5, eps=0.1, cv=3)
    again = ts.MultiTaskLassoCV(n_alphas=5, eps=0.1, cv=3).fit(x, target, task=task)
    np.testing.assert_allclose(search.fit(zipped, target, task=task).cv_scores_, again.cv_scores_, rtol=1e-5)


def test_bad_storages_get_clear_errors(rng):
    class Nothing(ts.Storage):
        n_rows, n_features = 10, 4

    class Sideways(Nothing):
        def take(self, features):
            return np.ones((len(features), 10))

    class Holes(Nothing):
        def take(self, features):
            block = rng.standard_normal((10, len(features)))
            block[3, features == 2] = np.nan
            return block

    y = rng.standard_normal(10)
    with pytest.raises(NotImplementedError, match="Nothing does not define `take`"):
        ts.MultiTaskLasso().fit(Nothing(), y)
    with pytest.raises(ValueError, match=r"NaN or infinity: row 4 .*\[:, 2\]"):
        ts.MultiTaskLasso().fit(Holes(), y)
    with pytest.raises(ValueError, match="list of storages"):
        ts.MultiTaskLasso().fit([Holes(), Holes()], [y, y])
    with pytest.raises(ValueError, match="rows x requested features"):
        ts.MultiTaskLasso(feature_weights=[0.0, 1.0, 1.0, 1.0]).fit(Sideways(), y)


# --- the examples of the documentation -------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OWN)
def test_examples_of_own_members_run(name, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["example"])
    runpy.run_path(str(EXAMPLES / f"own_{name}.py"), run_name="__main__")
    assert "features" in capsys.readouterr().out


@pytest.mark.parametrize("name", OWN)
def test_examples_use_public_names_only(name):
    text = (EXAMPLES / f"own_{name}.py").read_text(encoding="utf-8")
    assert "import tasksieve as ts" in text
    assert "from tasksieve" not in text
    assert "tasksieve._" not in text
    assert "ts._" not in text
    assert "._" not in text.replace("self._", "")


def test_members_show_their_parameters():
    assert repr(SparseGroup(0.5)) == "SparseGroup(l1=0.5, group=1.0)"
    assert repr(ts.MultiTaskRegressor(Huber(2.0))) == "MultiTaskRegressor(loss=Huber(delta=2.0))"
    assert isinstance(LInf(), RowPenalty)


def test_a_loss_of_ones_own_may_have_any_name(data):
    """Solvers know the package's own squared loss; another class of that name is not taken for it."""
    x, y, task = data
    kind = type("Squared", (Huber,), {})
    model = ts.MultiTaskRegressor(kind(1.0), alpha=0.3).fit(x, y, task=task)
    expected = ts.MultiTaskRegressor(Huber(1.0), alpha=0.3).fit(x, y, task=task)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
