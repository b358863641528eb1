"""The other side of the trial: scikit-learn, whose tolerance is relative to ||Y||^2."""

import warnings

from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLasso


class Solver(BaseSolver):
    name = "sklearn"
    sampling_strategy = "tolerance"

    def set_objective(self, X, Y, lmbd):
        self.X, self.Y = X, Y
        self.model = MultiTaskLasso(alpha=lmbd / X.shape[0], fit_intercept=False, max_iter=1_000_000)

    def run(self, tol):
        self.model.tol = min(tol, 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(self.X, self.Y)

    def get_result(self):
        return {"W": self.model.coef_.T}
