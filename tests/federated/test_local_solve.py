"""The local problem of one task: its value against a conic solver, its derivatives against differences."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from outcome_cases import WORDS, Outcome

from tasksieve.design import DenseStorage, Design
from tasksieve.federated.local_solve import local_hessian, soft, solve_local
from tasksieve.losses import Cox, DataLoss, Huber, Loss, Quantile, as_loss
from tasksieve.outcomes import SURVIVAL

Array = np.ndarray[Any, Any]

NAMES = ("squared", "huber", "quantile", "logistic", "poisson", "gamma", "cox efron", "ordinal")
LOSSES: dict[str, Loss] = {"huber": Huber(delta=0.8), "quantile": Quantile(q=0.7, smoothing=0.3), "cox efron": Cox()}
CLASSES = [0, 1, 2]


class Example:
    """Random rows with weights and offsets, an intercept and an unpenalised last column."""

    def __init__(self, name: str, n: int, d: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.name, self.x = name, rng.normal(size=(n, d)) + 0.3
        self.weight, self.offset = rng.uniform(0.5, 2.0, n), 0.2 * rng.normal(size=n)
        self.weight[3] = 0.0
        z = self.x[:, 0] - 0.7 * self.x[:, 1] + 0.4 * self.x[:, -1]
        self.y = _labels(name, z, rng)
        self.s = rng.uniform(0.05, 1.0, d - 1)
        self.s[::4] = 0.0

    def loss(self) -> tuple[DataLoss, Array]:
        """The loss on data, and the columns that are penalised."""
        n, d = self.x.shape
        storage = DenseStorage(np.asfortranarray(self.x))
        design = Design(storage, np.array([0, n]), weights=self.weight, unpenalised=np.array([d - 1]), n_threads=1)
        y = self.y
        if self.name == "logistic":
            y = 2.0 * y - 1.0
        elif self.name.startswith("cox"):
            y = np.zeros(n, dtype=SURVIVAL)
            y["time"], y["event"], y["entry"] = self.y[:, 0], self.y[:, 1] == 1.0, -np.inf
        loss = LOSSES.get(self.name) or as_loss(self.name)
        return loss.on(design, y, self.offset), design.take(np.arange(d - 1)).columns

    def oracle(self, l1: float) -> float:
        """phi by a conic solver, the loss written a second time."""
        n = len(self.x)
        live = np.flatnonzero(self.s > 0.0)
        w, free, b = cp.Variable(len(live)), cp.Variable(), cp.Variable()
        thresholds = cp.Variable(len(CLASSES) - 1)
        b = 0.0 if self.name in ("ordinal", "cox efron") else b
        z = self.x[:, live] @ w + self.x[:, -1] * free + b + self.offset
        if self.name == "huber":
            loss = cp.sum(cp.multiply(self.weight, cp.huber(self.y - z, 0.8))) / 2
        elif self.name == "quantile":
            q, mu, p = 0.7, 0.3, cp.Variable(n)  # the Moreau envelope of the pinball loss
            far = self.y - z - p
            pinball = cp.maximum(q * p, (q - 1.0) * p)
            loss = cp.sum(cp.multiply(self.weight, pinball + cp.square(far) / (2.0 * mu)))
        else:
            words = WORDS[self.name]
            classes = CLASSES if self.name == "ordinal" else None
            outcome = Outcome(self.name, words, self.x, self.y, self.weight, self.offset, classes)
            loss = outcome.expression(z, thresholds)
        total = loss + cp.sum(cp.multiply(1.0 / self.s[live], cp.square(w))) / 2 + l1 * cp.norm1(w)
        problem = cp.Problem(cp.Minimize(total))
        return float(problem.solve(solver=cp.CLARABEL))


def _labels(name: str, z: Array, rng: np.random.Generator) -> Array:
    n = len(z)
    if name == "logistic":
        return (rng.random(n) < 1.0 / (1.0 + np.exp(-z))).astype(float)
    if name == "poisson":
        return rng.poisson(np.exp(0.5 * z)).astype(float)
    if name == "gamma":
        return rng.gamma(2.0, np.exp(0.5 * z))
    if name == "ordinal":
        return np.digitize(z + rng.logistic(size=n), [-0.5, 1.0]).astype(float)
    if name == "cox efron":
        death, end = rng.exponential(np.exp(-z)), rng.exponential(2.0, n)
        time = np.round(np.minimum(death, end), 1) + 0.1
        return np.column_stack([time, death <= end, np.full(n, -np.inf), np.zeros(n)])
    return z + rng.standard_t(3, size=n)


def phi(loss: DataLoss, x: Array, s: Array, l1: float) -> tuple[float, Array]:
    """The value, and c."""
    point = solve_local(loss, x, s, l1)
    return point.at.value + 0.5 * float(s @ point.c**2) + l1 * float(np.abs(point.w).sum()), point.c


@pytest.mark.sampled(2)
@pytest.mark.parametrize("l1", [0.0, 0.6])
@pytest.mark.parametrize("name", NAMES)
def test_the_value_is_the_least(name: str, l1: float) -> None:
    example = Example(name, 24, 9, seed=5)
    loss, x = example.loss()
    found, least = phi(loss, x, example.s, l1)[0], example.oracle(l1)
    assert found + loss.constant == pytest.approx(least, rel=1e-6, abs=1e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("shape", [(30, 10), (16, 30)])
@pytest.mark.parametrize("l1", [0.0, 0.4])
@pytest.mark.parametrize("name", NAMES)
def test_first_and_second_derivatives(name: str, l1: float, shape: tuple[int, int]) -> None:
    example = Example(name, *shape, seed=2)
    (loss, x), s = example.loss(), example.s
    point = solve_local(loss, x, s, l1)
    # coefficients are s c: what the primal point says of c is what the dual point says
    assert np.allclose(point.c, soft(x.T @ point.at.residual, l1), rtol=0.0, atol=1e-9)
    assert np.array_equal(point.w[s == 0.0], np.zeros(np.count_nonzero(s == 0.0)))
    hessian, h = local_hessian(loss, x, s, point, l1), 1e-5
    for j in np.flatnonzero(s > 0.0)[:2]:
        away = np.zeros_like(s)
        away[j] = h
        (above, c_above), (below, c_below) = phi(loss, x, s + away, l1), phi(loss, x, s - away, l1)
        assert (above - below) / (2.0 * h) == pytest.approx(-0.5 * point.c[j] ** 2, rel=1e-5, abs=1e-6)
        seen = -(c_above**2 - c_below**2) / (4.0 * h)
        assert np.allclose(hessian[j], seen, rtol=1e-4, atol=1e-4 * np.abs(hessian).max())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_large_s_is_solved_as_well(name: str) -> None:
    """Little ridge is left: the value and the dual value still meet."""
    example = Example(name, 40, 8, seed=3)
    loss, x = example.loss()
    s = np.full(7, 1e4)
    point = solve_local(loss, x, s)
    dual = point.at.value + float(point.at.residual @ point.image) - loss.terms(point.at, 1.0)
    primal = point.at.value + 0.5 * float(s @ point.c**2)
    assert primal - (dual - 0.5 * float(s @ (x.T @ point.at.residual) ** 2)) <= 1e-9 * max(loss.null.value, 1.0)


def test_nothing_asked_is_the_null_model() -> None:
    loss, x = Example("logistic", 20, 5, seed=1).loss()
    point = solve_local(loss, x[:, :0], np.empty(0))
    assert point.at.value == loss.null.value
    assert np.array_equal(point.at.residual, loss.null.residual)
