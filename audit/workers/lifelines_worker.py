"""lifelines: CoxPHFitter with l1_ratio=1."""

import pandas as pd
from common import Answer, Job, serve
from lifelines import CoxPHFitter


def fit(job: Job) -> list[Answer]:
    table = pd.DataFrame(job.X, columns=[f"x{j}" for j in range(job.X.shape[1])])
    table["time"], table["event"] = job.y[:, 0], job.y[:, 1]
    options = (
        {} if job.tolerance is None else {"precision": job.tolerance, "r_precision": job.tolerance * 1e-2}
    )
    if options:
        options["max_steps"] = 5000
    answers = []
    for alpha in job.alphas:
        model = CoxPHFitter(penalizer=alpha, l1_ratio=1.0)
        model.fit(table, "time", "event", fit_options=options or None)
        answers.append(Answer(model.params_.to_numpy(), 0.0, alpha))
    return answers


serve(fit, "lifelines", "numpy", "pandas")
