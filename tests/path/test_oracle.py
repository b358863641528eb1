"""The engine against an independent interior-point solver (cvxpy with Clarabel) on small problems with every option.

For each problem three things are asserted, `scale` being the objective at W = 0:

* our coefficients, put into the objective as it is written, are as good as the oracle's to 1e-8 scale;
* our lower bound (objective minus duality gap) does not exceed what the oracle attained: the gap is no lie;
* the gap is as small as was asked for, 1e-10 scale.

The first would fail if we solved another problem or stopped too early, the second if the certificate were too good.
"""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest
from helpers import Case, dense_coefficients, objective, random_case, random_weights

import tasksieve.path.engine
from tasksieve.path.solve import solve_path

cp = pytest.importorskip("cvxpy")

N_PROBLEMS = 168
TOL = 1e-10

PENALTIES = {
    "l21": {},
    "l21+ridge": {"ridge_ratio": 0.7},
    "l11": {"l1": 1.0, "group": 0.0},
    "sparse group": {"l1": 0.5},
    "sparse group+ridge": {"l1": 0.3, "group": 0.8, "ridge_ratio": 0.4},
    "l11+ridge": {"l1": 1.0, "group": 0.0, "ridge_ratio": 0.2},
}
DEGENERATE = ("plain", "duplicate", "zero", "constant", "one-row", "constant y", "one task", "far from zero")
STRENGTHS = {"1.5": 1.5, "1": 1.0, "0.6": 0.6, "0.2": 0.2, "0.03": 0.03, "tiny": 1e-3}


def recipe(seed: int) -> dict[str, object]:
    """The options of a problem: the main ones in turn, so that all combinations are met, the others at random."""
    rng = np.random.default_rng(1000 + seed)
    loss = "logistic" if seed % 3 == 2 else "squared"
    kind = list(PENALTIES)[seed // 3 % len(PENALTIES)]
    positive = bool(seed // 18 % 4 == 3)
    solvers = ["auto", "apgd"]
    if loss == "logistic":
        solvers.append("prox-newton")
    else:
        solvers.append("cd")
        if kind.startswith("l21") and not positive:
            solvers += ["newton", "newton"]
    degenerate = str(rng.choice(DEGENERATE, p=[0.3] + [0.1] * 7))
    if loss == "logistic" and degenerate in ("one-row", "constant y"):
        degenerate = "duplicate"
    return {
        "seed": seed,
        "loss": loss,
        "penalty": kind,
        "positive": positive,
        "solver": str(rng.choice(solvers)),
        "intercept": bool(rng.random() < 0.6),
        "weights": str(
            rng.choice(["none", "weights", "missing", "whole task missing"], p=[0.4, 0.2, 0.3, 0.1])
        ),
        "feature weights": str(rng.choice(["none", "some", "zero"], p=[0.4, 0.35, 0.25])),
        "shared": bool(rng.random() < 0.4),
        "standardize": bool(rng.random() < 0.25),
        "degenerate": degenerate,
        "strength": str(rng.choice(list(STRENGTHS), p=[0.05, 0.05, 0.25, 0.3, 0.25, 0.1])),
        "working sets": bool(rng.random() < 0.5),
        "cold": bool(rng.random() < 0.4),
    }


RECIPES = [recipe(seed) for seed in range(N_PROBLEMS)]


def build(recipe: dict[str, object]) -> Case:
    rng = np.random.default_rng(int(recipe["seed"]))  # type: ignore[call-overload]
    degenerate = recipe["degenerate"]
    options = dict(PENALTIES[str(recipe["penalty"])])
    shared = bool(recipe["shared"]) and degenerate != "one-row"
    tasks = 1 if degenerate == "one task" else int(rng.integers(2, 5))
    features = int(rng.integers(4, 12))
    case = random_case(
        rng,
        tasks=tasks,
        rows=14 if recipe["loss"] == "logistic" else 8,
        features=features,
        shared=shared,
        noise=0.5,
        loss=recipe["loss"],
        fit_intercept=recipe["intercept"],
        standardize=recipe["standardize"],
        positive=recipe["positive"],
        **options,
    )
    if degenerate == "duplicate":
        case.matrix[:, 1] = case.matrix[:, 0]
        case.matrix[:, 2] = -case.matrix[:, 0]
    elif degenerate == "zero":
        case.matrix[:, 1] = 0.0
        if not shared:
            case.matrix[case.rows[0], 2] = 0.0
    elif degenerate == "constant":
        case.matrix[:, 1] = 3.0
        if not shared:
            case.matrix[case.rows[0], 2] = -2.0
    elif degenerate == "far from zero":
        case.matrix[:, 0] += 100.0
    elif degenerate == "one-row":
        keep = np.concatenate([[0], np.arange(case.offsets[1], case.offsets[-1])])
        case = case.but(
            matrix=case.matrix[keep],
            y=case.y[keep],
            offsets=np.concatenate([[0], case.offsets[1:] - case.offsets[1] + 1]),
        )
    elif degenerate == "constant y":
        case = case.but(y=np.full_like(case.y, 2.5))
    if recipe["weights"] != "none":
        missing = 0.0 if recipe["weights"] == "weights" else 0.3
        lost = recipe["weights"] == "whole task missing" and tasks > 1
        case = case.but(weights=random_weights(rng, case, missing, lost))
    if recipe["feature weights"] != "none":
        u = rng.uniform(0.3, 2.0, features)
        free = np.empty(0, dtype=np.int64)
        if recipe["feature weights"] == "zero":
            free = np.array([3])
            u[free] = 0.0
        case = case.but(feature_weights=u, unpenalised=free)
    return case


def oracle(case: Case, lam: float) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (features, tasks) and intercepts from cvxpy."""
    d, tasks = case.n_features, case.n_tasks
    w, b = cp.Variable((d, tasks)), cp.Variable(tasks)
    terms = []
    for t, rows in enumerate(case.rows):
        live = np.flatnonzero(case.s[rows])
        if len(live) == 0:
            continue
        z = case.blocks[t][live] @ w[:, t] + (b[t] if case.fit_intercept else 0.0)
        s, y = case.s[rows][live], case.y[rows][live]
        if case.loss == "squared":
            terms.append(0.5 * cp.sum_squares(cp.multiply(np.sqrt(s), y - z)))
        else:
            terms.append(cp.sum(cp.multiply(s, cp.logistic(-cp.multiply(y, z)))))
    scaled = cp.multiply(case.scales(), w)
    u = case.penalty_weights
    penalised = np.flatnonzero(u)
    for j in penalised:
        if case.group:
            terms.append(lam * u[j] * case.group * cp.norm(scaled[j]))
        if case.l1:
            terms.append(lam * u[j] * case.l1 * cp.norm1(scaled[j]))
    if case.ridge_ratio and len(penalised):
        terms.append(0.5 * lam * case.ridge_ratio * cp.sum_squares(scaled[penalised]))
    constraints = [w[penalised] >= 0] if case.positive and len(penalised) else []
    # tasks without labels leave coefficients free: the smallest will do
    problem = cp.Problem(cp.Minimize(sum(terms)), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # "may be inaccurate": the assertions below do not rely on its accuracy
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    coefficients = np.nan_to_num(w.value)
    if case.positive:
        coefficients[penalised] = np.maximum(coefficients[penalised], 0.0)
    return coefficients, np.nan_to_num(b.value) if case.fit_intercept else np.zeros(tasks)


def name_of(recipe: dict[str, object]) -> str:
    return "-".join(str(recipe[key]) for key in ("seed", "loss", "penalty", "solver")).replace(" ", "_")


MANY_STEPS = (60, 107)  # gradient steps by the ten thousand: in the slow run
CASES = [pytest.param(recipe, marks=pytest.mark.slow if recipe["seed"] in MANY_STEPS else ()) for recipe in RECIPES]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("recipe", CASES, ids=name_of)
def test_as_good_as_the_oracle(recipe, monkeypatch):
    if recipe["working sets"]:  # as if the problem were large: working sets, anchors, partial passes
        monkeypatch.setattr(tasksieve.path.engine, "_FEW_FEATURES", 0)
    case = build(recipe)
    problem = case.problem()
    lam_max = problem.lambda_max()
    lam = STRENGTHS[recipe["strength"]] * max(lam_max, 1e-3)
    lams = [lam] if recipe["cold"] else [1.2 * lam, lam]
    solution = solve_path(problem, lams, tol=TOL, solver=recipe["solver"], max_iter=100_000)
    point = solution.points[-1]
    scale = solution.null_objective
    w = dense_coefficients(case, point)
    ours = objective(case, lam, w, point.intercept)
    if case.positive:
        assert (w[case.penalty_weights > 0] >= 0).all()
    if lam >= lam_max:
        assert not w[case.penalty_weights > 0].any()

    assert point.converged
    assert point.dual_gap <= max(TOL, 1e-15) * scale + 1e-50  # of constant labels, too
    assert ours == pytest.approx(point.objective, abs=1e-10 * scale + 1e-14)
    best = objective(case, lam, *oracle(case, lam))
    assert ours <= best + 1e-8 * scale + 1e-14
    assert point.objective - point.dual_gap <= best + 1e-8 * scale + 1e-14


def test_the_problems_cover_every_option():
    assert len(RECIPES) >= 120
    for key, least in {
        "loss": 40, "penalty": 20, "positive": 30, "solver": 8, "intercept": 40, "weights": 8, "feature weights": 30,
        "shared": 40, "standardize": 25, "degenerate": 5, "strength": 5, "working sets": 40, "cold": 40,
    }.items():  # fmt: skip
        counts = Counter(recipe[key] for recipe in RECIPES)
        assert min(counts.values()) >= least, (key, counts)
    solvers = {recipe["solver"] for recipe in RECIPES}
    assert solvers == {"auto", "cd", "newton", "prox-newton", "apgd"}
    assert {recipe["penalty"] for recipe in RECIPES} == set(PENALTIES)
    assert {recipe["degenerate"] for recipe in RECIPES} == set(DEGENERATE)
    assert {recipe["strength"] for recipe in RECIPES} == set(STRENGTHS)
