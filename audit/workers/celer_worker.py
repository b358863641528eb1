"""celer: Lasso, MultiTaskLasso, LogisticRegression (which has no intercept)."""

from celer import Lasso, LogisticRegression, MultiTaskLasso
from common import Answer, Job, serve

LIMITS = ("max_iter", "max_epochs")


def fit(job: Job) -> list[Answer]:
    answers = []
    for alpha in job.alphas:
        if job.loss == "logistic":
            model = LogisticRegression(C=1.0 / (len(job.y) * alpha), **job.options(limits=LIMITS))
        else:
            model = (Lasso if job.loss == "squared" else MultiTaskLasso)(
                alpha=alpha, **job.options(limits=LIMITS)
            )
        model.fit(job.X, job.y)
        intercept = 0.0 if job.loss == "logistic" else model.intercept_
        answers.append(Answer(model.coef_, intercept, alpha))
    return answers


serve(fit, "celer", "numpy", "scikit-learn")
