"""glmstar (imported as glmnet): its own path of 100 values."""

import glmnet
import numpy as np
import pandas as pd
from common import Answer, Job, nearest, serve
from glmnet.cox import CoxFamily
from glmnet.paths.fastnet import FastNetControl

NAMES = {
    "squared": "GaussNet", "grouped": "MultiGaussNet", "logistic": "LogNet", "multinomial": "MultiClassNet",
    "poisson": "FishNet", "cox": "CoxNet",
}  # fmt: skip


def fit(job: Job) -> list[Answer]:
    options = job.options("thresh", ("maxit",))
    whole = (
        {"fdev": 0.0, "devmax": 1.0} if options else {}
    )  # so that the strengths of the first path are there again
    control = FastNetControl(**options, **whole)
    y, options = job.y, {}
    if job.loss == "cox":
        y = pd.DataFrame({"time": job.y[:, 0], "event": job.y[:, 1].astype(int)})
        options["family"] = CoxFamily(event_id="time", status_id="event")
    model = getattr(glmnet, NAMES[job.loss])(control=control, **options)
    model.fit(np.asfortranarray(job.X), y)
    grid = np.asarray(model.lambda_values_)
    coefs = np.asarray(model.coefs_)
    answers = []
    for k in nearest(job, grid):
        intercept = 0.0 if job.loss == "cox" else np.asarray(model.intercepts_)[k]
        coef = coefs[k] if coefs[k].ndim == 1 else coefs[k].T
        answers.append(Answer(coef, intercept, grid[k]))
    return answers


serve(fit, "glmstar", "numpy")
