"""Paths of the L1,1 penalty on degenerate problems: coefficients penalised one by one, each task by its active set.

    python -m tests.fuzz.entries --cases 1000 --seed 1

Columns are equal, opposite, constant, zero or nearly dependent, entries whole numbers that tie, rows too few,
tasks of one row. Of every value the objective and the gap are found again in fractions, from the stored numbers alone:
with p the residual less its mean, N the mean of the tasks' weights and any c >= 0 with

    c |x_jt'(s p)/N - rho W_jt| <= alpha u_j    (of `positive` without the bars),

no model is better than ``D(c) = (c sum s p y - c^2/2 sum s p^2)/N - c^2 rho/2 |W|^2``; c is the best one. The path's
certificate is put to `verify.py`. Neither shares a line with the solver.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest does: what all tests share lies there
os.environ.setdefault("TASKSIEVE_NUM_THREADS", "1")

import tasksieve as ts
from tasksieve import verify as verifier
from tasksieve.path import gram

from .library import Endless, guarded

Array = np.ndarray[Any, Any]

TROUBLES = (
    "equal", "opposite", "nearly equal", "constant", "zero", "whole", "wide", "one row", "no labels", "far", "scales",
    "weights", "feature weights", "ridge", "positive", "no intercept", "correlated",
)  # fmt: skip


@dataclass
class Problem:
    """One call of `path`: tasks as lists, or with one matrix for all."""

    seed: int
    number: int
    troubles: list[str]
    shared: bool
    x: list[Array]
    y: list[Array]
    s: list[Array] | None
    params: dict[str, Any]
    alphas: Array

    def __str__(self) -> str:
        shapes = " ".join(f"{len(x)}x{x.shape[1]}" for x in self.x)
        words = f"{'shared ' * self.shared}{shapes}, {len(self.alphas)} values, tol {self.params['tol']:g}"
        return f"{', '.join(self.troubles) or 'plain'}: {words}\n    {self.call}"

    @property
    def call(self) -> str:
        return f"python -m tests.fuzz.entries --seed {self.seed} --case {self.number}"

    def arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {"X": self.x, "y": self.y}
        if self.shared:
            found = {"X": self.x[0], "y": np.stack(self.y, axis=1)}
        if self.s is not None:
            found["sample_weight"] = np.stack(self.s, axis=1) if self.shared else self.s
        return found


def make_problem(seed: int, number: int) -> Problem:
    """The problem of a number, the same every time."""
    rng = np.random.default_rng([seed, number])
    troubles = [one for one in TROUBLES if rng.random() < 0.2]
    tasks, d = int(rng.choice([1, 2, 3, 5])), int(rng.choice([1, 4, 9, 20, 40]))
    shared = tasks > 1 and rng.random() < 0.1
    rows = [int(rng.integers(2, max(3, d // 2 + 1) if "wide" in troubles else d + 12)) for _ in range(tasks)]
    if "one row" in troubles:
        rows[-1] = 1
    x = [_columns(rng, n, d, troubles) for n in rows]
    if shared:
        x = [x[0]] * tasks
    truth = rng.standard_normal((tasks, d)) * (rng.random(d) < 0.3)
    y = [block @ w + 0.3 * rng.standard_normal(len(block)) for block, w in zip(x, truth, strict=True)]
    if "whole" in troubles:
        y = [np.round(part) for part in y]
    if "far" in troubles:
        y = [part + 1e3 for part in y]
    if "no labels" in troubles:
        y[0] = np.zeros(len(y[0]))
    s = None
    if "weights" in troubles:
        s = [10.0 ** rng.uniform(-2, 2, len(part)) * (np.arange(len(part)) % 5 != 3) for part in y]
    params: dict[str, Any] = {
        "fit_intercept": "no intercept" not in troubles, "positive": "positive" in troubles,
        "ridge": float(rng.choice([1e-6, 0.01, 1.0])) if "ridge" in troubles else 0.0,
        "tol": float(rng.choice([1e-4, 1e-6, 1e-8, 1e-10])),
    }  # fmt: skip
    if "feature weights" in troubles:
        params["feature_weights"] = rng.choice([0.5, 1.0, 2.0, 3.0], d)
    found = Problem(seed, number, troubles, shared, x, y, s, params, np.ones(1))
    values = int(rng.choice([1, 3, 6, 12]))
    found.alphas = _alpha_max(found) * np.geomspace(rng.choice([1.0, 0.9, 0.1]), 10.0 ** -rng.uniform(1, 4), values)
    return found


def _columns(rng: np.random.Generator, n: int, d: int, troubles: list[str]) -> Array:
    x = rng.standard_normal((n, d))
    if "whole" in troubles:
        x = rng.integers(-1, 2, (n, d)).astype(np.float64)
    if "correlated" in troubles:
        for j in range(1, d):
            x[:, j] = 0.99 * x[:, j - 1] + 0.14 * x[:, j]
    if "scales" in troubles:
        x *= 10.0 ** rng.uniform(-3, 3, d)
    if "far" in troubles:
        x += np.where(rng.random(d) < 0.3, 1e3, 0.0)
    some = lambda: np.flatnonzero(rng.random(d) < 0.3)  # noqa: E731
    if "constant" in troubles:
        x[:, some()] = 3.0
    if "zero" in troubles:
        x[:, some()] = 0.0
    for trouble, sign in (("equal", 1.0), ("opposite", -1.0), ("nearly equal", 1.0)):
        if trouble in troubles:
            for j in some().tolist():
                own = x[:, rng.integers(d)]
                noise = 10.0 ** -rng.uniform(3, 9) * rng.standard_normal(n) if trouble == "nearly equal" else 0.0
                x[:, j] = sign * own + noise
    return x


def _alpha_max(problem: Problem) -> float:
    u, top = problem.params.get("feature_weights", np.ones(problem.x[0].shape[1])), 0.0
    for x, y, s in zip(problem.x, problem.y, _weights(problem), strict=True):
        away = y - np.average(y, weights=s) if problem.params["fit_intercept"] else y
        correlation = x.T @ (s * away)
        top = max(top, float(np.max((correlation if problem.params["positive"] else np.abs(correlation)) / u)))
    alpha = top / float(_unit(problem))
    return alpha if alpha > 1e-9 else 1.0


def _weights(problem: Problem) -> list[Array]:
    return [np.ones(len(y)) for y in problem.y] if problem.s is None else problem.s


def _unit(problem: Problem) -> Fraction:
    """N."""
    return sum((Fraction(w) for s in _weights(problem) for w in s.tolist()), Fraction(0)) / len(problem.x)


# --- the judge -------------------------------------------------------------------------------------------------------


def _fractions(values: Any) -> Array:
    found = np.empty(np.shape(values), dtype=object)
    found.reshape(-1)[:] = [Fraction(v) for v in np.ravel(values).tolist()]
    return found


def _product(matrix: Array, vector: Array) -> Array:
    """Of whole numbers, and of fractions, which are brought to one denominator."""
    below = lcm(*(q.denominator for q in vector))
    whole = np.array([int(q * below) for q in vector], dtype=object)
    return np.array([Fraction(int(v), below) for v in matrix.dot(whole)], dtype=object)


class Judge:
    """The objective of stored numbers, and what no model can be better than, in fractions."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.unit = problem, _unit(problem)
        self.tasks = []
        for x, y, s in zip(problem.x, problem.y, _weights(problem), strict=True):
            power = max(q.denominator for q in _fractions(x).ravel())
            whole = np.array([int(q * power) for q in _fractions(x).ravel()], dtype=object).reshape(x.shape)
            self.tasks.append((whole, power, _fractions(y), _fractions(s)))
        d = problem.x[0].shape[1]
        self.weights = _fractions(problem.params.get("feature_weights", np.ones(d)))
        self.ridge = Fraction(problem.params["ridge"])
        self.null, _ = self.bounds(1.0, np.zeros((len(problem.x), d)), None)

    def bounds(self, alpha: float, coef: Array, intercept: Array | None, others: Any = ()) -> tuple[Fraction, Fraction]:
        """The objective of coefficients (tasks, features), the best intercepts where none are given, and the best dual
        value of its residuals and of `others`, further vectors p of all tasks."""
        w = _fractions(coef)
        residuals = []
        for t, (x, power, y, _) in enumerate(self.tasks):
            r = y - _product(x, w[t] / power)
            residuals.append(r if intercept is None else r - Fraction(float(intercept[t])))
        if intercept is None:
            residuals = self.centred(residuals)
        losses = [(s * r * r).sum() for r, (_, _, _, s) in zip(residuals, self.tasks, strict=True)]
        size = (w * w).sum()
        primal = sum(losses, Fraction(0)) / (2 * self.unit) + self.ridge * size / 2
        primal += Fraction(alpha) * (self.weights * np.abs(w)).sum()
        duals = [self.dual(alpha, w, self.centred(p)) for p in (residuals, *others)]
        return primal, max(duals)

    def centred(self, vectors: list[Array]) -> list[Array]:
        """Orthogonal to constants, where there are intercepts; 0 where nothing weighs."""
        found = []
        for p, (_, _, _, s) in zip(vectors, self.tasks, strict=True):
            mass = s.sum() if self.problem.params["fit_intercept"] else Fraction(0)
            found.append(p - (s * p).sum() / mass if mass else p)
        return found

    def dual(self, alpha: float, w: Array, vectors: list[Array]) -> Fraction:
        along, square, polar = Fraction(0), self.ridge * (w * w).sum(), Fraction(0)
        for t, (p, (x, power, y, s)) in enumerate(zip(vectors, self.tasks, strict=True)):
            v = s * p
            along += (v * y).sum() / self.unit
            square += (v * p).sum() / self.unit
            m = _product(x.T, v / power) / self.unit - self.ridge * w[t]
            m = m * (m > 0) if self.problem.params["positive"] else np.abs(m)
            polar = max(polar, (m / self.weights).max() / Fraction(alpha))
        c = max(along / square, Fraction(0)) if square else Fraction(0)
        c = min(c, 1 / polar) if polar else c
        return c * along - c * c * square / 2


# --- fits ------------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    paths: int = 0
    values: int = 0
    on_gram: int = 0  # values that the Gram solver found
    short: int = 0  # values that say that they have not converged
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        found = f"{self.paths} paths, {self.values} values, {self.on_gram} of them on sums, {self.short} not converged"
        return f"{found}, {len(self.wrong)} wrong"


@contextmanager
def counted(tally: Tally) -> Iterator[None]:
    values = gram.GramWalk.values

    def counting(self: Any, *arguments: Any) -> Any:
        found = values(self, *arguments)
        tally.on_gram += len(found)
        return found

    gram.GramWalk.values = counting  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        gram.GramWalk.values = values  # type: ignore[method-assign]


def examine(problem: Problem, tally: Tally, exact: bool = False) -> None:
    """A path, its claims, its certificate."""

    def note(words: str) -> None:
        tally.wrong.append(f"{words}\n    {problem}")

    tally.paths += 1
    arguments = problem.arguments()
    model = ts.MultiTaskRegressor(penalty=ts.penalties.L11(), n_jobs=1, **problem.params)
    try:
        with guarded(60), counted(tally):
            path = model.path(**arguments, alphas=problem.alphas)
            raw = path.certificate(**arguments).to_bytes()
    except (Endless, ArithmeticError, ValueError, RuntimeError, AttributeError, TypeError, IndexError) as error:
        note(f"{type(error).__name__}: {error}")
        return
    judge, cert = Judge(problem), verifier.read_certificate(raw)
    tol, null = problem.params["tol"], judge.null
    for k, alpha in enumerate(path.alphas.tolist()):
        tally.values += 1
        coef, intercept = path.coef(k).toarray(), np.asarray(path.intercept(k))
        if problem.params["positive"] and (coef < 0.0).any():
            note(f"value {k}: a negative coefficient")
        stored, objective = Fraction(float(path.dual_gaps[k])), Fraction(float(path.objectives[k]))
        primal, dual = judge.bounds(alpha, coef, intercept, [_dual_of(problem, cert, k)])
        if abs(objective - primal) > Fraction(1e-12) * (primal + null):
            note(f"value {k}: objective {float(objective)!r}, in truth {float(primal)!r}")
        if primal - dual > stored * Fraction(1 + 1e-9):
            note(f"value {k}: gap {float(stored)!r}, in truth {float(primal - dual)!r}, null {float(null)!r}")
        if path.converged[k] and stored > Fraction(tol * (1 + 1e-9)) * null + Fraction(1e-30):  # labels that are all 0
            note(f"value {k}: said to have converged, gap {float(stored)!r}, null {float(null)!r}")
        tally.short += not path.converged[k]
    for in_fractions in (False, True) if exact else (False,):
        verdict = verifier.verify(cert, **arguments, exact=in_fractions)
        if not verdict:
            note(verdict.words)


def _dual_of(problem: Problem, cert: Any, k: int) -> list[Array]:
    """The vector that the certificate stores, task by task; 0 for rows that are not listed."""
    stored, found, start = cert.arrays["dual"][k], [], 0
    for y, s in zip(problem.y, _weights(problem), strict=True):
        listed = np.ones(len(y), dtype=bool) if problem.shared else s > 0.0
        p = np.zeros(len(y))
        p[listed] = stored[start : start + listed.sum()]
        start += listed.sum()
        found.append(_fractions(p))
    return found


def run(seed: int, numbers: Any, exact_every: int = 20) -> Tally:
    tally = Tally()
    for number in numbers:
        examine(make_problem(seed, number), tally, number % exact_every == 0)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.entries", description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="this case alone")
    options = parser.parse_args()
    numbers = range(options.start, options.start + options.cases) if options.case is None else [options.case]
    tally = Tally()
    for number in numbers:
        before = len(tally.wrong)
        examine(make_problem(options.seed, number), tally, number % 20 == 0)
        for words in tally.wrong[before:]:
            print(words, flush=True)
    print(tally)
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
