"""glum: GeneralizedLinearRegressor with l1_ratio=1."""

from common import Answer, Job, serve
from glum import GeneralizedLinearRegressor

FAMILIES = {"squared": "normal", "logistic": "binomial", "poisson": "poisson"}


def fit(job: Job) -> list[Answer]:
    answers = []
    job.patience = 10_000
    for alpha in job.alphas:
        options = job.options("gradient_tol")
        model = GeneralizedLinearRegressor(alpha=alpha, l1_ratio=1.0, family=FAMILIES[job.loss], **options)
        model.fit(job.X, job.y)
        answers.append(Answer(model.coef_, model.intercept_, alpha))
    return answers


serve(fit, "glum", "numpy")
