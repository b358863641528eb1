"""The other side of the trial: scikit-learn, whose tolerance is relative to ||y||^2."""

import warnings

from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso


class Solver(BaseSolver):
    name = "sklearn"
    sampling_strategy = "tolerance"

    def set_objective(self, X, y, lmbd, fit_intercept=False):
        self.X, self.y = X, y
        self.model = Lasso(alpha=lmbd / X.shape[0], fit_intercept=fit_intercept, max_iter=1_000_000)

    def run(self, tol):
        self.model.tol = min(tol, 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_}
