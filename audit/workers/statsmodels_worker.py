"""statsmodels: fit_regularized of OLS, Logit, Poisson and PHReg, with a constant that is not penalised."""

import numpy as np
import statsmodels.api as sm
from common import Answer, Job, serve


def fit(job: Job) -> list[Answer]:
    n, d = job.X.shape
    answers = []
    for alpha in job.alphas:
        if job.loss == "cox":
            model = sm.PHReg(job.y[:, 0], job.X, status=job.y[:, 1])
            options = job.options("cnvrg_tol", ("maxiter",))
            found = model.fit_regularized(alpha=alpha, L1_wt=1.0, **options)
            answers.append(Answer(found.params, 0.0, alpha))
            continue
        exog = sm.add_constant(job.X, has_constant="add")
        each = np.r_[0.0, np.full(d, alpha)]
        if job.loss == "squared":
            options = job.options("cnvrg_tol", ("maxiter",))
            found = sm.OLS(job.y, exog).fit_regularized(alpha=each, L1_wt=1.0, **options)
        else:
            options = job.options("acc", ("maxiter",))
            options = options | ({"maxiter": 10_000} if "maxiter" in options else {})
            model = (sm.Logit if job.loss == "logistic" else sm.Poisson)(job.y, exog)
            found = model.fit_regularized(alpha=n * each, disp=0, **options)  # its alpha is in units of sums
        params = np.asarray(found.params)
        answers.append(Answer(params[1:], params[0], alpha))
    return answers


serve(fit, "statsmodels", "numpy", "scipy")
