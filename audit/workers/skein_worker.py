"""skein-glm: as shipped its own path of 100 values; Cox's Lasso is a group Lasso with groups of one feature there."""

import numpy as np
import skein_glm
from common import Answer, Job, nearest, serve

NAMES = {
    "squared": "ElasticNetPathRegressor", "grouped": "MultiTaskLassoPathRegressor",
    "logistic": "LogisticLassoPathRegressor", "multinomial": "MultinomialLassoPathClassifier",
    "poisson": "PoissonLassoPathRegressor", "cox": "CoxGroupLassoPathRegressor",
}  # fmt: skip


def fit(job: Job) -> list[Answer]:
    job.patience = 10_000
    options = job.options()
    if options and job.loss not in ("squared", "grouped"):
        options |= {"max_outer": job.steps, "outer_tol": job.tolerance}
    if options:  # of the path as shipped only what is judged: the rest would take most of the time
        options["lambdas"] = np.array(job.alphas)
    first = {"squared": (1.0,), "cox": (np.arange(job.X.shape[1]),)}.get(job.loss, ())
    model = getattr(skein_glm, NAMES[job.loss])(*first, **options)
    model.fit(job.X, *((job.y[:, 0], job.y[:, 1]) if job.loss == "cox" else (job.y,)))
    grid = np.asarray(model.lambdas_)
    answers = []
    for k in nearest(job, grid):
        intercept = 0.0 if job.loss == "cox" else model.intercepts_[k]
        answers.append(Answer(model.coefs_[k], intercept, grid[k]))
    return answers


serve(fit, "skein-glm", "numpy")
