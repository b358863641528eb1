"""The programs of the audit: how each is installed and called, and the problem that its documentation says it solves.

Objectives are means over rows plus `alpha` times the sum of absolute coefficients ("l11"), or of the lengths of their
rows over outputs or classes ("l21"). Where a program counts otherwise, `Convention` says how its strength becomes that
alpha. A convention is believed only after the program's tightest answer has graded as optimal (`cells.SAME`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from environments import REQUIREMENTS

SHARES = (0.1, 0.01)  # of the smallest strength whose solution is zero: fixed before anything was run


@dataclass(frozen=True)
class Convention:
    """The problem that a program solves for one loss.

    - `words`: its strength, rows, columns -> program and parameters as `tasksieve.grade` takes them (`problem`,
      `parameters`); None: the options of `grade` itself, for what its conversions do not cover.
    - `penalty`: "l11" or "l21".
    - `fit_intercept`: whether it has an intercept that is not penalised.
    - `ties`: of Cox's loss.
    - `own_path`: strengths are the points nearest to `SHARES` on its own path, in place of alphas that we name.
    - `scale`: our alpha / its own, from (rows, outputs or classes): the conversion once more, to check that of `grade`.
    """

    words: Callable[[float, int, int], tuple[str, dict[str, Any]]] | None = None
    penalty: str = "l11"
    fit_intercept: bool = True
    ties: str = "breslow"
    own_path: bool = False
    scale: Callable[[int, int], float] | None = None
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
    exact_zeros: bool = True  # False: by design its coefficients only come near zero
    budget: float = 1.0  # processor seconds, after which no further tolerance is tried
    limit: float = 90.0  # seconds until it is stopped

    def __post_init__(self) -> None:
        if self.worker.endswith(".py"):
            REQUIREMENTS[self.environment or self.name] = self.requirements

    def default_of(self, loss: str) -> float:
        return self.defaults.get(loss, self.default)


def said(
    program: str, strength: str, **parameters: Any
) -> Callable[[float, int, int], tuple[str, dict[str, Any]]]:
    """The words of a program whose strength is a multiplier."""
    return lambda theirs, n, d: (program, {strength: theirs, **parameters})


def inverse(program: str, **parameters: Any) -> Callable[[float, int, int], tuple[str, dict[str, Any]]]:
    """Those of a program whose C is 1 / (n alpha)."""
    return lambda theirs, n, d: (program, {"C": 1.0 / (n * theirs), **parameters})


def unbiased(n: int, outputs: int) -> float:
    """Columns are measured by standard deviations that divide by n - 1."""
    return math.sqrt(n / (n - 1.0))


FAMILIES = {
    "squared": "gaussian", "logistic": "binomial", "poisson": "poisson", "multinomial": "multinomial", "cox": "cox",
    "grouped": "mgaussian",
}  # fmt: skip
NETS = {
    "squared": "GaussNet", "logistic": "LogNet", "poisson": "FishNet", "multinomial": "MultiClassNet", "cox": "CoxNet",
    "grouped": "MultiGaussNet",
}  # fmt: skip
SKEIN = {
    "squared": "ElasticNetPathRegressor", "logistic": "LogisticLassoPathRegressor",
    "poisson": "PoissonLassoPathRegressor", "multinomial": "MultinomialLassoPathClassifier",
    "cox": "CoxGroupLassoPathRegressor", "grouped": "MultiTaskLassoPathRegressor",
}  # fmt: skip
ADELIE = {
    "squared": "gaussian", "logistic": "binomial", "poisson": "poisson", "multinomial": "multinomial", "cox": "cox",
    "grouped": "multigaussian",
}  # fmt: skip


def on_path(
    loss: str, words: Any, ties: str = "breslow", rows: tuple[str, ...] = ("grouped",), **more: Any
) -> Convention:
    """One loss of a program that goes down a path of its own."""
    return Convention(words, "l21" if loss in rows else "l11", loss != "cox", ties, own_path=True, **more)


def adelie_words(loss: str) -> Callable[[float, int, int], tuple[str, dict[str, Any]]]:
    return lambda theirs, n, d: ("adelie", {"glm": ADELIE[loss], "lmda": theirs})


def skein_words(loss: str) -> Callable[[float, int, int], tuple[str, dict[str, Any]]]:
    def words(theirs: float, n: int, d: int) -> tuple[str, dict[str, Any]]:
        more: dict[str, Any] = {"squared": {"alpha": 1.0}, "cox": {"groups": list(range(d))}}.get(loss, {})
        return "skein-glm", {"estimator": SKEIN[loss], "lambdas": theirs, **more}

    return words


BOTH_ROWS = ("grouped", "multinomial")
PROGRAMS = {
    one.name: one
    for one in (
        Program(
            "glmnet", (), "glmnet.R",
            {loss: on_path(loss, said("glmnet", "lambda", family=family)) for loss, family in FAMILIES.items()},
            "thresh", 1e-7, range(-4, -16, -1), "largest change of the objective in a pass / null deviance",
            recommended={"squared": 1e-20},
            recommended_where="the vignette of glmnet 4.1-6 sets thresh = 1e-20 where it compares with other programs, "
            "and says that many applications do not need it",
        ),
        Program(
            "glmstar", ("glmstar", "pandas"), "glmstar_worker.py",
            {loss: on_path(loss, said("glmstar", "lambda_values", estimator=name)) for loss, name in NETS.items()},
            "thresh", 1e-7, range(-4, -16, -1), "largest change of the objective in a pass / null deviance",
        ),
        Program(
            "adelie", ("adelie==1.1.52", "numpy<2"), "adelie_worker.py",
            {
                loss: on_path(
                    loss, adelie_words(loss), "efron", BOTH_ROWS,
                    scale=(lambda n, q: q * math.sqrt(q)) if loss in BOTH_ROWS else None,
                )
                for loss in ADELIE
            },
            "tol", 1e-7, range(-4, -16, -1), "largest change of the objective in a pass / null deviance",
        ),
        Program(
            "skein-glm", ("skein-glm",), "skein_worker.py",
            {
                loss: on_path(
                    loss, skein_words(loss), "breslow", BOTH_ROWS, scale=(lambda n, q: q) if loss in BOTH_ROWS else None
                )
                for loss in SKEIN
            },
            "tol", 1e-6, range(-3, -13, -1), "change from step to step",
        ),
        Program(
            "scikit-learn", ("scikit-learn",), "sklearn_worker.py",
            {
                "squared": Convention(said("sklearn", "alpha", estimator="Lasso")),
                "logistic": Convention(inverse("sklearn", estimator="LogisticRegression", l1_ratio=1.0, solver="saga")),
                "multinomial": Convention(
                    inverse("sklearn", estimator="LogisticRegression", l1_ratio=1.0, solver="saga")
                ),
                "grouped": Convention(said("sklearn", "alpha", estimator="MultiTaskLasso"), "l21"),
            },
            "tol", 1e-4, range(-1, -12, -1),
            "Lasso: duality gap / |y|^2; saga: largest change of a coefficient / largest coefficient", budget=4.0,
        ),
        Program(
            "LIBLINEAR", ("scikit-learn",), "liblinear_worker.py",
            {
                "logistic": Convention(
                    inverse("sklearn", estimator="LogisticRegression", l1_ratio=1.0, solver="liblinear"),
                    fit_intercept=False, constant_penalised=True,
                )
            },
            "tol", 1e-4, range(-1, -12, -1), "violation of the optimality conditions / that at zero",
            environment="scikit-learn",
        ),
        Program(
            "celer", ("celer", "scikit-learn<1.7"), "celer_worker.py",
            {
                "squared": Convention(said("celer", "alpha", estimator="Lasso")),
                "logistic": Convention(inverse("celer", estimator="LogisticRegression"), fit_intercept=False),
                "grouped": Convention(said("celer", "alpha", estimator="MultiTaskLasso"), "l21"),
            },
            "tol", 1e-4, range(-1, -14, -1), "duality gap / objective at zero",
        ),
        Program(
            "skglm", ("skglm",), "skglm_worker.py",
            {
                "squared": Convention(said("skglm", "alpha", estimator="Lasso")),
                "logistic": Convention(said("skglm", "alpha", estimator="SparseLogisticRegression")),
                "poisson": Convention(),
                "grouped": Convention(said("skglm", "alpha", estimator="MultiTaskLasso"), "l21"),
                "cox": Convention(
                    said("skglm", "alpha", estimator="CoxEstimator", l1_ratio=1.0), fit_intercept=False, ties="efron"
                ),
            },
            "tol", 1e-4, range(-1, -12, -1), "violation of the optimality conditions, in the units of y", limit=300.0,
        ),
        Program(
            "scikit-survival", ("scikit-survival",), "sksurv_worker.py",
            {"cox": on_path("cox", said("scikit-survival", "alphas", l1_ratio=1.0))},
            "tol", 1e-7, range(-3, -15, -1), "largest update of a coefficient",
        ),
        Program(
            "lifelines", ("lifelines",), "lifelines_worker.py",
            {
                "cox": Convention(
                    said("lifelines", "penalizer", l1_ratio=1.0), fit_intercept=False, ties="efron", scale=unbiased
                )
            },
            "precision", 1e-7, range(-4, -13, -2), "length of a Newton step; |x| is smoothed", exact_zeros=False,
        ),
        Program(
            "statsmodels", ("statsmodels",), "statsmodels_worker.py",
            {
                "squared": Convention(), "logistic": Convention(), "poisson": Convention(),
                "cox": Convention(fit_intercept=False),
            },
            "cnvrg_tol, acc", 1e-10, range(-3, -15, -1),
            "OLS, PHReg: largest change of a coefficient; Logit, Poisson: accuracy of SLSQP", defaults={"cox": 1e-7},
        ),
        Program(
            "glum", ("glum",), "glum_worker.py",
            {"squared": Convention(), "logistic": Convention(), "poisson": Convention()},
            "gradient_tol", 1e-4, range(-1, -12, -1), "sum of the violations of the optimality conditions",
        ),
        Program(
            "pyspark", ("pyspark", "numpy"), "pyspark_worker.py",
            {
                # up to 4,096 columns its solver is "normal", whose deviations divide by n
                "squared": Convention(),
                "logistic": Convention(
                    said("pyspark", "regParam", estimator="LogisticRegression", elasticNetParam=1.0), scale=unbiased
                ),
                "multinomial": Convention(
                    said("pyspark", "regParam", estimator="LogisticRegression", elasticNetParam=1.0), scale=unbiased
                ),
            },
            "tol", 1e-6, range(-4, -13, -2), "change of the objective from step to step", budget=4.0, limit=600.0,
        ),
    )
}  # fmt: skip

#: programs that were looked at, and why they are not here
NOT_RUN = {
    "pyglmnet": "installs without a NumPy that it could run with",
    "statsmodels, multinomial": "MNLogit has a class of reference: a penalty on other differences, another problem",
    "pyspark, Poisson": "GeneralizedLinearRegression has a ridge only",
    "celer, skglm, glum, LIBLINEAR: multinomial": "they have no multinomial loss with this penalty",
}
