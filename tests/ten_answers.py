"""What is right in the answers to the ten tasks: numbers of NumPy, scikit-learn and cvxpy, without tasksieve.

Each function has the folder and the answers of the tools by their names, and raises where one is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
from assistant_cohorts import COHORTS, GENES, OWN, SHARED, read_matrix
from sklearn.linear_model import Lasso

Answers = dict[str, dict[str, Any]]
TASKS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "assistants" / "ten_tasks.json").read_text(encoding="utf-8")
)


def cohorts(folder: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    read = [read_matrix(folder / f"{name}.csv", "response") for name in COHORTS]
    return [X for X, _ in read], [others["response"].astype(float) for _, others in read]


def group_lasso(
    Xs: Sequence[np.ndarray], ys: Sequence[np.ndarray], alpha: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """min 1/(2 n) sum_t |y_t - X_t w_t - b_t|^2 + alpha sum_j |W_j|_2, with n the mean number of rows of a task."""
    n = np.mean([len(y) for y in ys])
    W, b = cvxpy.Variable((len(Xs), Xs[0].shape[1])), cvxpy.Variable(len(Xs))
    losses = sum(cvxpy.sum_squares(y - X @ W[t] - b[t]) for t, (X, y) in enumerate(zip(Xs, ys, strict=True)))
    problem = cvxpy.Problem(cvxpy.Minimize(losses / (2 * n) + alpha * cvxpy.sum(cvxpy.norm(W, 2, axis=0))))
    tight = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    problem.solve(solver=cvxpy.CLARABEL, **tight)
    return float(problem.value), np.asarray(W.value), np.asarray(b.value)


def used(W: np.ndarray) -> set[str]:
    """Genes that an interior point has not driven to zero."""
    norms = np.linalg.norm(W, axis=0)
    return {GENES[j] for j in np.flatnonzero(norms > 1e-5 * norms.max())}


def listed(answer: dict[str, Any]) -> set[str]:
    return {one["feature"] for one in answer["features"]}


def coefficients(answer: dict[str, Any], task: str) -> np.ndarray:
    found = {one["feature"]: one["coefficients"][task] for one in answer["features"]}
    return np.array([found.get(gene, 0.0) for gene in GENES])


def what_is_in_it(folder: Path, found: Answers) -> None:
    X, others = read_matrix(folder / "cohort_a.csv", "response")
    y = others["response"].astype(float)
    (table,) = found["looked"]["tables"].values()
    assert table["rows"] == len(y)
    assert len(table["columns"]) + table.get("more columns", 0) == X.shape[1] + 1
    low, high = table["columns"]["response"].removeprefix("numbers from ").split(" to ")
    assert np.allclose([float(low), float(high)], [y.min(), y.max()], rtol=1e-5)


def shared_genes(folder: Path, found: Answers) -> None:
    fitted, verified, again = found["fitted"], found["verified"], found["found_again"]
    Xs, ys = cohorts(folder)
    scaled = [X / X.std(axis=0) for X in Xs]
    optimum, W, _ = group_lasso(scaled, ys, fitted["alpha"])
    stated = fitted["certificate"]
    assert stated["converged"]
    assert -1e-8 <= stated["objective"] - optimum <= stated["dual_gap"] + 1e-8
    strong = {GENES[j] for j in np.flatnonzero(np.linalg.norm(W, axis=0) > 1e-3)}
    assert strong <= listed(fitted)
    assert fitted["n_selected"] == len(listed(fitted))
    for t, task in enumerate(fitted["tasks"]):
        assert np.allclose(coefficients(fitted, task), W[t] / Xs[t].std(axis=0), atol=2e-3)
    assert set(SHARED) <= listed(fitted)  # what the simulation has put there
    assert verified["proved"]
    assert set(SHARED) <= {name for need in verified["needs"] if need["proved"] for name in need["without"]}
    assert set(SHARED) == set(again["stable"]) - {OWN}
    # a permutation test of our own: no shuffled labels come near
    rng = np.random.default_rng(7)
    strength = largest_alpha(scaled, ys)
    shuffled = [largest_alpha(scaled, [rng.permutation(y) for y in ys]) for _ in range(99)]
    assert again["pvalue"] == (1 + sum(one >= strength for one in shuffled)) / 100 == 0.01


def largest_alpha(Xs: Sequence[np.ndarray], ys: Sequence[np.ndarray]) -> float:
    """The smallest alpha at which no gene is used."""
    n = np.mean([len(y) for y in ys])
    products = [(X - X.mean(axis=0)).T @ (y - y.mean()) / n for X, y in zip(Xs, ys, strict=True)]
    return float(np.linalg.norm(products, axis=0).max())


def best_possible(folder: Path, found: Answers) -> None:
    fitted, (value,) = found["fitted"], found["verified"]["values"]
    optimum, W, _ = group_lasso(*cohorts(folder), 0.15)
    assert fitted["certificate"]["objective"] - optimum <= fitted["certificate"]["dual_gap"] + 1e-8
    assert abs(fitted["certificate"]["objective"] - optimum) < 1e-6 * optimum
    assert listed(fitted) == used(W)
    assert found["verified"]["proved"]
    assert value["dual_value"] <= optimum + 1e-8 <= value["objective"] + 2e-8


def one_cohort(folder: Path, found: Answers) -> None:
    X, others = read_matrix(folder / "cohort_a.csv", "response")
    theirs = Lasso(alpha=0.1, tol=1e-12, max_iter=1_000_000).fit(X, others["response"].astype(float))
    (task,) = found["fitted"]["tasks"]
    assert np.allclose(coefficients(found["fitted"], task), theirs.coef_, atol=1e-5)
    assert found["fitted"]["n_selected"] == np.count_nonzero(theirs.coef_)


def how_good_is_this(folder: Path, found: Answers) -> None:
    graded = found["graded"]
    outcomes = [f"outcome_{t}" for t in range(3)]
    X, others = read_matrix(folder / "outcomes.csv", *outcomes)
    Y = np.column_stack([others[name].astype(float) for name in outcomes])
    text = np.genfromtxt(folder / "sklearn_coefficients.csv", delimiter=",", skip_header=1, dtype=str)
    W, b = text[:-1, 1:].astype(float).T, text[-1, 1:].astype(float)
    objective = np.sum((Y - X @ W.T - b) ** 2) / (2 * len(Y)) + 0.1 * np.linalg.norm(W, axis=0).sum()
    optimum, best, _ = group_lasso([X] * 3, list(Y.T), 0.1)
    assert np.isclose(graded["objective"], objective, rtol=1e-12)
    assert graded["dual_gap"] >= objective - optimum - 1e-9  # the truth, which the proof must not undercut
    assert np.isclose(graded["best_objective"], optimum, rtol=1e-6)
    assert np.isclose(graded["excess"], objective - optimum, atol=1e-6)
    assert set(graded["selected"]) == {GENES[j] for j in np.flatnonzero(W.any(axis=0))}
    right = used(best)
    assert set(graded["wrong_nonzero"]) <= set(graded["selected"]) - right
    assert set(graded["wrong_zero"]) <= right - set(graded["selected"])
    assert set(graded["selected_and_needed"]) <= right


def does_sharing_help(folder: Path, found: Answers) -> None:
    overall, tasks = found["compared"]["overall"], found["compared"]["tasks"]
    assert [one["rows"] for one in tasks] == list(COHORTS.values())
    assert np.isclose(overall["difference"], overall["loss_shared"] - overall["loss_own"])
    assert np.isclose(overall["loss_shared"], np.mean([one["loss_shared"] for one in tasks]))
    _, ys = cohorts(folder)
    for one, y in zip(tasks, ys, strict=True):  # the mean of four fifths of the rows predicts the others
        assert np.isclose(one["loss_mean"], np.var(y, ddof=1), rtol=0.1)
    Xs, _ = cohorts(folder)
    noise = [least_squares_error(X, y) for X, y in zip(Xs, ys, strict=True)]
    assert overall["loss_shared"] < 1.6 * np.mean(noise)  # little above what the true genes leave


def least_squares_error(X: np.ndarray, y: np.ndarray) -> float:
    """Mean squared error that the genes of the simulation leave."""
    true = np.column_stack([X[:, [GENES.index(gene) for gene in (*SHARED, OWN)]], np.ones(len(y))])
    rest = y - true @ np.linalg.lstsq(true, y, rcond=None)[0]
    return float(rest @ rest / (len(y) - true.shape[1]))


def is_there_anything(folder: Path, found: Answers) -> None:
    again = found["found_again"]
    assert again["stable"] == []
    X, others = read_matrix(folder / "noise.csv", "response")
    y = others["response"].astype(float)
    rng, scaled = np.random.default_rng(3), X / X.std(axis=0)
    strength = largest_alpha([scaled], [y])
    share = np.mean([largest_alpha([scaled], [rng.permutation(y)]) >= strength for _ in range(4000)])
    assert share > 0.05
    assert abs(again["pvalue"] - share) < 4 * np.sqrt(share * (1 - share) / 199) + 1 / 200


def who_is_sick(folder: Path, found: Answers) -> None:
    X, others = read_matrix(folder / "diagnosis.csv", "state")
    state = others["state"]
    signs = np.where(state == max(state), 1.0, -1.0)
    w, b = cvxpy.Variable(X.shape[1]), cvxpy.Variable()
    losses = cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(signs, X @ w + b)))
    cvxpy.Problem(cvxpy.Minimize(losses / len(state) + 0.05 * cvxpy.norm1(w))).solve(solver=cvxpy.CLARABEL)
    (task,) = found["fitted"]["tasks"]
    assert np.allclose(coefficients(found["fitted"], task), w.value, atol=1e-4)


def same_data(folder: Path, found: Answers) -> None:
    assert found["verified"]["proved"]
    assert not found["edited"]["proved"]
    tables = (folder / "cohort_a.csv", folder / "cohort_a_edited.csv")
    mine, edited = (read_matrix(table, "response")[1]["response"] for table in tables)
    assert np.flatnonzero(mine != edited).tolist() == [7]


def in_plain_words(folder: Path, found: Answers) -> None:
    fitted, explained = found["fitted"], found["explained"]
    Xs, ys = cohorts(folder)
    optimum, W, b = group_lasso(Xs, ys, 0.15)
    facts = {one["fact"]: one["value"] for one in explained["facts"]}
    assert facts["rows used"] == "180 of 180"
    assert facts["tasks"] == "3"
    assert facts["features selected"] == str(len(used(W)))
    (objective,) = re.findall(r"lower the objective \(([\d.]+)\)", explained["answered"])
    assert np.isclose(float(objective), optimum, rtol=1e-5)
    assert listed(explained) == used(W)
    assert "duality gap" in {one["term"] for one in explained["terms"]}
    shares = [1 - np.mean((y - X @ w - c) ** 2) / np.var(y) for X, y, w, c in zip(Xs, ys, W, b, strict=True)]
    (stated,) = (one["mean"] for one in fitted["quality"] if one["measure"].startswith("R²") and not one["unseen"])
    assert np.isclose(stated, np.mean(shares), atol=1e-4)


CHECKS: dict[str, Callable[[Path, Answers], None]] = {
    check.__name__: check
    for check in (
        what_is_in_it, shared_genes, best_possible, one_cohort, how_good_is_this, does_sharing_help,
        is_there_anything, who_is_sick, same_data, in_plain_words,
    )
}  # fmt: skip


def main() -> None:
    """Ask all ten, and say which answers are right: ``PYTHONPATH=tests python tests/ten_answers.py``."""
    import tempfile
    import traceback

    from assistant_client import assistant
    from assistant_cohorts import write_cohorts

    right = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_cohorts(folder)
        with assistant(folder) as helper:
            for task in TASKS:
                found = {}
                try:
                    for call in task["calls"]:
                        answer = helper.call(call["tool"], call["arguments"])
                        assert not answer.error, answer.error
                        found[call["as"]] = answer.content
                    CHECKS[task["task"]](folder, found)
                except Exception:
                    traceback.print_exc()
                    print(f"WRONG  {task['question']}")
                else:
                    right += 1
                    print(f"right  {task['question']}")
    print(f"{right} of {len(TASKS)} answers are right")


if __name__ == "__main__":
    main()
