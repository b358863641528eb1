"""glmnet's problems: its tightest answers are optimal in our words, for every family and option."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_cases import Rows, have_r, same

import tasksieve as ts

ROWS = Rows()
LAMBDAS = [0.3, 0.1, 0.03]

#: family, R's arguments, the same in parameters, what grade is given beside
CASES: list[tuple[str, str, dict[str, Any], str]] = [
    ("gaussian", "", {}, ""),
    ("gaussian", "alpha = 0.4", {"alpha": 0.4}, ""),
    (
        "gaussian",
        "alpha = 0.4, standardize = FALSE, weights = w",
        {"alpha": 0.4, "standardize": False},
        "weights",
    ),
    ("gaussian", "alpha = 0.4, weights = w, offset = o", {"alpha": 0.4}, "weights offset"),
    ("gaussian", "alpha = 0.4, intercept = FALSE", {"alpha": 0.4, "intercept": False}, ""),
    ("gaussian", "intercept = FALSE", {"intercept": False}, ""),
    ("gaussian", "penalty.factor = v", {"penalty.factor": "v"}, ""),
    ("gaussian", "penalty.factor = v, alpha = 0.4", {"penalty.factor": "v", "alpha": 0.4}, ""),
    ("gaussian", "penalty.factor = v0, exclude = 3", {"penalty.factor": "v0", "exclude": [3]}, ""),
    ("gaussian", "lower.limits = 0", {"lower.limits": 0.0}, ""),
    ("mgaussian", "alpha = 0.4", {"alpha": 0.4}, ""),
    ("mgaussian", "standardize = FALSE", {"standardize": False}, ""),
    ("binomial", "alpha = 0.4", {"alpha": 0.4}, ""),
    ("binomial", "weights = w, offset = o", {}, "weights offset"),
    ("binomial", "intercept = FALSE, alpha = 0.4", {"intercept": False, "alpha": 0.4}, ""),
    ("binomial", "penalty.factor = v, alpha = 0.4", {"penalty.factor": "v", "alpha": 0.4}, ""),
    ("multinomial", "alpha = 0.4", {"alpha": 0.4}, ""),
    ("multinomial", 'type.multinomial = "grouped"', {"type.multinomial": "grouped"}, ""),
    (
        "multinomial",
        'type.multinomial = "grouped", alpha = 0.4, standardize = FALSE',
        {"type.multinomial": "grouped", "alpha": 0.4, "standardize": False},
        "",
    ),
    ("poisson", "alpha = 0.4", {"alpha": 0.4}, ""),
    ("poisson", "weights = w, offset = o", {}, "weights offset"),
    ("cox", "alpha = 0.4", {"alpha": 0.4}, ""),
    ("cox", "standardize = FALSE, weights = w", {"standardize": False}, "weights"),
    ("cox", "penalty.factor = v, offset = o", {"penalty.factor": "v"}, "offset"),
]

SCRIPT = """
suppressMessages(library(glmnet))
where <- commandArgs(TRUE)[1]
numbers <- function(name) as.matrix(read.csv(file.path(where, name), header = FALSE))
X <- numbers("X.csv"); all <- numbers("y.csv"); dimnames(X) <- NULL
w <- all[, 1]; o <- all[, 2]; v <- numbers("v.csv")[, 1]; v0 <- v; v0[1] <- 0
labels <- list(gaussian = all[, 3], mgaussian = all[, 3:4], binomial = all[, 5], multinomial = factor(all[, 6]),
               poisson = all[, 6], cox = survival::Surv(all[, 7], all[, 8]))
lambda <- c(0.3, 0.1, 0.03)
glmnet.control(fdev = 0, devmax = 1)
fit <- function(name, ...) suppressWarnings(
  glmnet(X, labels[[name]], family = name, lambda = lambda, thresh = 1e-18, maxit = 1e7, ...))
write <- function(k, f) {
  beta <- if (is.list(f$beta)) do.call(rbind, lapply(f$beta, as.matrix)) else as.matrix(f$beta)
  write.table(format(beta, digits = 17), file.path(where, paste0("beta", k)), row.names = FALSE, col.names = FALSE,
              quote = FALSE)
  a0 <- if (is.null(f$a0)) matrix(0, 1, 3) else rbind(f$a0)
  write.table(format(a0, digits = 17), file.path(where, paste0("a0", k)), row.names = FALSE, col.names = FALSE,
              quote = FALSE)
}
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Coefficients of all cases, from one R process."""
    if not have_r("glmnet"):
        pytest.skip("R with glmnet is not installed")
    where = tmp_path_factory.mktemp("glmnet")
    r = ROWS
    columns = [r.weights, r.offset, r.y, r.Y[:, 1], r.two, r.three, r.time, r.event]
    np.savetxt(where / "X.csv", r.X, delimiter=",", fmt="%.17g")
    np.savetxt(where / "y.csv", np.column_stack(columns), delimiter=",", fmt="%.17g")
    np.savetxt(where / "v.csv", r.factors, fmt="%.17g")
    calls = [f'write({k}, fit("{family}"{", " * bool(words)}{words}))' for k, (family, words, _, _) in enumerate(CASES)]
    (where / "fit.R").write_text(SCRIPT + "\n".join(calls))
    subprocess.run(["Rscript", str(where / "fit.R"), str(where)], check=True, capture_output=True)
    return where


@pytest.mark.slow
@pytest.mark.parametrize("k", range(len(CASES)), ids=[f"{case[0]} {json.dumps(case[2])}" for case in CASES])
def test_the_tightest_answer_is_optimal(answers: Path, k: int) -> None:
    grade_case(answers, k)


@pytest.mark.parametrize("k", [7, 18, 21])
def test_some_of_them(answers: Path, k: int) -> None:
    grade_case(answers, k)


def grade_case(answers: Path, k: int) -> None:
    family, _, parameters, more = CASES[k]
    known = {"v": ROWS.factors, "v0": np.r_[0.0, ROWS.factors[1:]]}
    given = {name: known.get(value, value) if isinstance(value, str) else value for name, value in parameters.items()}
    beta = np.loadtxt(answers / f"beta{k}", ndmin=2)  # (outputs d, K)
    a0 = np.loadtxt(answers / f"a0{k}", ndmin=2)
    outputs = len(beta) // ROWS.d
    coef = beta.T.reshape(len(LAMBDAS), outputs, ROWS.d) if outputs > 1 else beta.T
    intercept = a0.T if outputs > 1 else a0[0]
    y = {
        "gaussian": ROWS.y, "mgaussian": ROWS.Y, "binomial": ROWS.two, "multinomial": ROWS.three,
        "poisson": ROWS.three, "cox": ROWS.survival,
    }[family]  # fmt: skip
    found = ts.grade(
        coef,
        None if family == "cox" else intercept,
        ROWS.X,
        y,
        sample_weight=ROWS.weights if "weights" in more else None,
        offset=ROWS.offset if "offset" in more else None,
        problem="glmnet",
        parameters={"family": family, "lambda": LAMBDAS, **given},
    )
    same(found)
    assert found.verify()


def test_what_is_another_problem_is_refused() -> None:
    coef = np.zeros(ROWS.d)
    for parameters, words in (
        ({"lambda": 0.1, "upper.limits": 1.0}, "limits"),
        ({"lambda": 0.1, "relax": True}, "relax"),
        ({"lambda": 0.1, "alpha": 0.0}, "ridge alone"),
        ({"lambda": 0.1, "alpha": 0.5, "penalty.factor": np.r_[0.0, np.ones(11)]}, "beside a ridge"),
        ({"lambda": 0.1, "gamma": 3}, "'gamma', which is not known"),
        ({"family": "binomial", "lambda": 0.1}, "two classes"),
        ({"family": "gaussian"}, "'lambda'"),
        ({"lambda": -1.0}, "number > 0"),
        ({"lambda": [0.2, 0.1]}, "shape"),
    ):
        with pytest.raises(ValueError, match=words):
            ts.grade(coef, 0.0, ROWS.X, ROWS.y, problem="glmnet", parameters=parameters)
    one = np.r_[0.0, 0.0, 1.0, np.zeros(9)]
    with pytest.raises(ValueError, match="coef of feature 2 must be 0"):
        ts.grade(one, 0.0, ROWS.X, ROWS.y, problem="glmnet", parameters={"lambda": 0.1, "exclude": [3]})
