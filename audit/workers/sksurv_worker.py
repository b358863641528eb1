"""scikit-survival: CoxnetSurvivalAnalysis with l1_ratio=1, its own path of 100 values."""

import numpy as np
from common import Answer, Job, nearest, serve
from sksurv.linear_model import CoxnetSurvivalAnalysis
from sksurv.util import Surv


def fit(job: Job) -> list[Answer]:
    y = Surv.from_arrays(job.y[:, 1].astype(bool), job.y[:, 0])
    model = CoxnetSurvivalAnalysis(l1_ratio=1.0, **job.options()).fit(job.X, y)
    grid = np.asarray(model.alphas_)
    return [Answer(model.coef_[:, k], 0.0, grid[k]) for k in nearest(job, grid)]


serve(fit, "scikit-survival", "numpy", "scikit-learn")
