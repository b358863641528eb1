"""skglm: Lasso, MultiTaskLasso, SparseLogisticRegression, CoxEstimator, and Poisson by GeneralizedLinearEstimator."""

from common import Answer, Job, serve
from skglm import GeneralizedLinearEstimator, Lasso, MultiTaskLasso, SparseLogisticRegression
from skglm.datafits import Poisson
from skglm.estimators import CoxEstimator
from skglm.penalties import L1
from skglm.solvers import ProxNewton

LIMITS = ("max_iter", "max_epochs")


def fit(job: Job) -> list[Answer]:
    answers = []
    for alpha in job.alphas:
        if job.loss == "cox":
            model = CoxEstimator(alpha=alpha, l1_ratio=1.0, **job.options())
        elif job.loss == "logistic":
            model = SparseLogisticRegression(alpha=alpha, **job.options(limits=LIMITS))
        elif job.loss == "poisson":
            solver = ProxNewton(**job.options(limits=("max_iter", "max_pn_iter")))
            model = GeneralizedLinearEstimator(Poisson(), L1(alpha), solver)
        else:
            model = (Lasso if job.loss == "squared" else MultiTaskLasso)(
                alpha=alpha, **job.options(limits=LIMITS)
            )
        model.fit(job.X, job.y)
        answers.append(Answer(model.coef_, getattr(model, "intercept_", 0.0), alpha))
    return answers


serve(fit, "skglm", "numpy", "numba")
