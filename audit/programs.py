"""The programs of the audit: how each is installed and called, and the problem that its documentation says it solves.

Objectives are means over rows plus `alpha` times the sum of absolute coefficients ("l11"), or of the lengths of their
rows over outputs or classes ("l21"). Where a program counts otherwise, `Convention` says how its strength becomes that
alpha. A convention is believed only after the program's tightest answer has graded as optimal (`cells.SAME`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from environments import REQUIREMENTS

SHARES = (0.1, 0.01)  # of the smallest strength whose solution is zero: fixed before anything was run


@dataclass(frozen=True)
class Convention:
    """The problem that a program solves for one loss.

    - `penalty`: "l11" or "l21".
    - `fit_intercept`: whether it has an intercept that is not penalised.
    - `ties`: of Cox's loss.
    - `own_path`: whether strengths are the points nearest to `SHARES` on its own path, in place of alphas we name.
    - `scale`: our alpha / its own, for (rows, outputs or classes).
    """

    penalty: str = "l11"
    fit_intercept: bool = True
    ties: str = "breslow"
    own_path: bool = False
    scale: Any = None
    constant_penalised: bool = False

    def alpha(self, theirs: float, n: int, outputs: int) -> float:
        return theirs if self.scale is None else theirs * self.scale(n, outputs)


@dataclass(frozen=True)
class Program:
    """A program, its environment, and what it has.

    - `worker`: in `workers/`; ".py" runs in the virtual environment of that name, ".R" with Rscript.
    - `tolerance`: what its tolerance is called; `defaults`: it as shipped, by loss.
    - `recommended`: a tighter tolerance that its documentation recommends, and where it does.
    - `rungs`: exponents of the ladder of tolerances, loosest first.
    - `help`: a paragraph for its maintainers.
    """

    name: str
    requirements: tuple[str, ...]
    worker: str
    losses: dict[str, Convention]
    tolerance: str
    default: float
    rungs: range
    meaning: str
    defaults: dict[str, float] = field(default_factory=dict)
    recommended: dict[str, float] = field(default_factory=dict)
    recommended_where: str = ""
    environment: str = ""
    limit: float = 60.0

    def __post_init__(self) -> None:
        if self.worker.endswith(".py"):
            REQUIREMENTS[self.environment or self.name] = self.requirements

    def default_of(self, loss: str) -> float:
        return self.defaults.get(loss, self.default)


PATH = Convention(own_path=True)
ROWS = Convention("l21")
ROWS_PATH = Convention("l21", own_path=True)
NO_CONSTANT = Convention(fit_intercept=False)
GLMNET = {
    "squared": PATH, "logistic": PATH, "poisson": PATH, "multinomial": PATH,
    "cox": Convention(own_path=True, fit_intercept=False), "grouped": ROWS_PATH,
}  # fmt: skip

PROGRAMS = {
    one.name: one
    for one in (
        Program(
            "glmnet", (), "glmnet.R", GLMNET, "thresh", 1e-7, range(-4, -17, -1),
            "largest change of the objective in a pass, as a share of the null deviance",
        ),
        Program(
            "glmstar", ("glmstar", "pandas"), "glmstar_worker.py", GLMNET, "thresh", 1e-7, range(-4, -17, -1),
            "glmnet's",
        ),
        Program(
            "scikit-learn", ("scikit-learn",), "sklearn_worker.py",
            {"squared": Convention(), "logistic": Convention(), "multinomial": Convention(), "grouped": ROWS},
            "tol", 1e-4, range(-1, -13, -1),
            "Lasso: duality gap / |y|^2; saga: largest change of a coefficient / largest coefficient",
        ),
        Program(
            "LIBLINEAR", ("scikit-learn",), "liblinear_worker.py",
            {"logistic": Convention(fit_intercept=False, constant_penalised=True)},
            "tol", 1e-4, range(-1, -13, -1), "violation of the optimality conditions / that at zero",
            environment="scikit-learn",
        ),
        Program(
            "celer", ("celer",), "celer_worker.py",
            {"squared": Convention(), "logistic": NO_CONSTANT, "grouped": ROWS},
            "tol", 1e-4, range(-1, -15, -1), "duality gap, as a share of the objective at zero",
        ),
        Program(
            "skglm", ("skglm",), "skglm_worker.py",
            {
                "squared": Convention(), "logistic": Convention(), "poisson": Convention(), "grouped": ROWS,
                "cox": Convention(fit_intercept=False, ties="efron"),
            },
            "tol", 1e-4, range(-1, -13, -1), "violation of the optimality conditions, in the units of y",
        ),
        Program(
            "statsmodels", ("statsmodels",), "statsmodels_worker.py",
            {
                "squared": Convention(), "logistic": Convention(), "poisson": Convention(),
                "cox": Convention(fit_intercept=False),
            },
            "cnvrg_tol or acc", 1e-10, range(-2, -15, -1),
            "cnvrg_tol (OLS, PHReg): largest change of a coefficient; acc (Logit, Poisson): that of SLSQP",
            defaults={"squared": 1e-10, "cox": 1e-7},
        ),
    )
}  # fmt: skip
