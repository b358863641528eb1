"""tasksieve in benchopt's benchmark_lasso: min 1/2 ||y - X w||^2 + lmbd ||w||_1."""

import warnings

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from sklearn.exceptions import ConvergenceWarning

from tasksieve import MultiTaskLasso


class Solver(BaseSolver):
    name = "tasksieve"
    sampling_strategy = "tolerance"
    # the first sweep may be as good as the next tolerances ask: that is no reason to stop
    stopping_criterion = SufficientProgressCriterion(strategy="tolerance", patience=5)
    requirements = ["pip::tasksieve"]
    references = [
        "J. Wang and J. Ye, 'Safe screening for multi-task feature learning with multiple data matrices', ICML 2015"
    ]

    def set_objective(self, X, y, lmbd, fit_intercept=False):
        self.X, self.y = X, y
        # ours is the mean over the rows, theirs the sum
        self.model = MultiTaskLasso(alpha=lmbd / X.shape[0], fit_intercept=fit_intercept)

    @staticmethod
    def get_next(tol):
        return 1e-2 if tol > 1 else 0.1 * tol

    def warm_up(self):
        self.run(1.0)  # loads the kernels

    def run(self, tol):
        # relative to the objective at w = 0, so beyond 1 nothing is asked; below 1e-14 nothing can be given
        self.model.tol = float(np.clip(tol, 1e-14, 1.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(self.X, self.y)

    def get_result(self):
        beta = self.model.coef_.ravel()
        return {"beta": np.r_[beta, self.model.intercept_] if self.model.fit_intercept else beta}
