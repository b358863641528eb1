"""adelie: its own path of 100 values."""

import adelie as ad
import numpy as np
from common import Answer, Job, nearest, serve


def fit(job: Job) -> list[Answer]:
    y = np.asarray(job.y, dtype=float)
    if job.loss == "cox":
        glm = ad.glm.cox(np.zeros(len(y)), y[:, 0].copy(), y[:, 1].copy())
    elif job.loss == "multinomial":
        glm = ad.glm.multinomial(np.eye(int(y.max()) + 1)[job.y])
    else:
        names = {
            "squared": "gaussian",
            "grouped": "multigaussian",
            "logistic": "binomial",
            "poisson": "poisson",
        }
        glm = getattr(ad.glm, names[job.loss])(np.ascontiguousarray(y))
    options = {"progress_bar": False}
    if job.tolerance is not None:
        # its whole path, so that the strengths of the first one are there again
        options |= {"tol": job.tolerance, "irls_tol": job.tolerance, "early_exit": False}
    state = ad.grpnet(np.asfortranarray(job.X), glm, **options)
    grid = np.asarray(state.lmdas)
    outputs = 1 if job.loss not in ("multinomial", "grouped") else glm.y.shape[1]
    answers = []
    for k in nearest(job, grid):
        coef = np.asarray(state.betas[k].todense()).reshape(-1, outputs).T
        intercept = 0.0 if job.loss == "cox" else state.intercepts[k]
        answers.append(Answer(coef, intercept, grid[k]))
    return answers


serve(fit, "adelie", "numpy")
