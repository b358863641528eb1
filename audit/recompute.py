"""Ten cells once more by an interior-point solver: is its optimum between our bounds?

    python audit/recompute.py

cvxpy states each problem from the arrays alone, Clarabel solves it; nothing of the library. The cells are drawn with
the seed 0: two of each loss where there are two, smallest strength. An interior-point solver is itself exact to about
1e-8, and the bounds are widened by that.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from cells import CELLS, Cell, made_cells, write_whole
from datasets import prepare
from programs import PROGRAMS, Convention

FILE = CELLS / "clarabel.json"
COUNT, LARGEST = 10, 300 * 40
ACCURACY = 1e-8  # Clarabel's own tolerance for the gap, relative to the objective at zero
Array = np.ndarray[Any, Any]


def main() -> None:
    found = []
    for cell in chosen():
        content = json.loads(cell.file.read_text())
        one = content["strengths"][-1]
        data = prepare(cell.dataset, cell.loss)
        value = optimum(PROGRAMS[cell.program].losses[cell.loss], cell.loss, data.X, data.y, one["alpha"])
        default = one["default"]
        low = default["objective"] - default["excess_upper"] * default["null"]
        high = default["objective"] - default["excess_lower"] * default["null"]
        slack = ACCURACY * default["null"]
        row = {
            "cell": cell.key, "share": one["share"], "clarabel": value, "low": low, "high": high,
            "outside": max(0.0, low - value, value - high) / default["null"],
            "within": bool(low - slack <= value <= high + slack),
        }  # fmt: skip
        found.append(row)
        print(
            f"{cell.key}: Clarabel {value:.12g}, bounds {low:.12g} to {high:.12g}: {row['within']}",
            flush=True,
        )
    write_whole(FILE, json.dumps(found, indent=1) + "\n")


def chosen() -> list[Cell]:
    """Two of each loss, then others, up to ten; small enough for an interior-point solver."""
    rng = np.random.default_rng(0)
    cells = [cell for cell in made_cells() if _size(cell) <= LARGEST]
    cells = [cells[k] for k in rng.permutation(len(cells))]
    by_loss = {
        loss: [cell for cell in cells if cell.loss == loss] for loss in sorted({cell.loss for cell in cells})
    }
    first = [cell for own in by_loss.values() for cell in own[:2]]
    first += [cell for cell in cells if cell not in first]
    return first[: max(COUNT, sum(min(2, len(own)) for own in by_loss.values()))]


def _size(cell: Cell) -> int:
    content = json.loads(cell.file.read_text())
    return int(content["rows"] * content["columns"])


def optimum(convention: Convention, loss: str, X: Array, y: Array, alpha: float) -> float:
    """The smallest objective, as `judge.objective` counts it."""
    import cvxpy as cp

    n, d = X.shape
    if convention.constant_penalised:
        X, d = np.column_stack([X, np.ones(n)]), d + 1
    classes = np.unique(y) if loss == "multinomial" else None
    outputs = y.shape[1] if loss == "grouped" else len(classes) if classes is not None else 1
    W = cp.Variable((d, outputs))
    Z = X @ W
    if convention.fit_intercept and loss != "cox":
        Z = Z + np.ones((n, 1)) @ cp.Variable((1, outputs))
    if loss in ("squared", "grouped"):
        fit = cp.sum_squares(np.reshape(y, (n, -1)) - Z) / 2
    elif loss == "logistic":
        fit = cp.sum(cp.logistic(cp.multiply(1.0 - 2.0 * y, Z[:, 0])))
    elif loss == "poisson":
        fit = cp.sum(cp.exp(Z[:, 0])) - y @ Z[:, 0]
    elif loss == "multinomial":
        shown = (y[:, None] == classes).astype(float)
        fit = cp.sum(cp.log_sum_exp(Z, axis=1)) - cp.sum(cp.multiply(shown, Z))
    else:
        fit = _cox(cp, Z[:, 0], y[:, 0], y[:, 1] == 1.0, convention.ties == "efron")
    size = cp.sum(cp.abs(W)) if convention.penalty == "l11" else cp.sum(cp.norm(W, 2, axis=1))
    problem = cp.Problem(cp.Minimize(fit / n + alpha * size))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11, max_iter=500)
    return float(problem.value)


def _cox(cp: Any, z: Any, when: Array, event: Array, efron: bool) -> Any:
    terms = []
    for t in np.unique(when[event]):
        dead, risk = event & (when == t), when >= t
        count = int(dead.sum())
        for part in range(count):
            share = 1.0 - part / count if efron else 1.0
            weights = np.where(dead, share, 1.0)[risk]
            terms.append(cp.log_sum_exp(z[np.flatnonzero(risk)] + np.log(weights)))
    return sum(terms) - cp.sum(z[np.flatnonzero(event)])


if __name__ == "__main__":
    main()
