"""scikit-learn: Lasso, MultiTaskLasso, LogisticRegression(solver="saga")."""

from common import Answer, Job, serve
from sklearn.linear_model import Lasso, LogisticRegression, MultiTaskLasso


def fit(job: Job) -> list[Answer]:
    answers = []
    for alpha in job.alphas:
        if job.loss in ("logistic", "multinomial"):
            C = 1.0 / (len(job.y) * alpha)
            model = LogisticRegression(l1_ratio=1.0, solver="saga", C=C, random_state=0, **job.options())
        else:
            model = (Lasso if job.loss == "squared" else MultiTaskLasso)(alpha=alpha, **job.options())
        model.fit(job.X, job.y)
        answers.append(Answer(model.coef_, model.intercept_, alpha))
    return answers


serve(fit, "scikit-learn", "numpy")
