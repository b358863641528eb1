"""LIBLINEAR by scikit-learn: LogisticRegression(solver="liblinear"), whose intercept is penalised."""

from common import Answer, Job, serve
from sklearn.linear_model import LogisticRegression


def fit(job: Job) -> list[Answer]:
    answers = []
    for alpha in job.alphas:
        C = 1.0 / (len(job.y) * alpha)
        model = LogisticRegression(l1_ratio=1.0, solver="liblinear", C=C, random_state=0, **job.options())
        model.fit(job.X, job.y)
        answers.append(Answer(model.coef_, model.intercept_, alpha))
    return answers


serve(fit, "scikit-learn", "numpy")
