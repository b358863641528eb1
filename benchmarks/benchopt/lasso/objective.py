"""A stand-in for the objective of benchmark_lasso, to try the solver file."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    name = "Lasso"
    min_benchopt_version = "1.5"
    parameters = {"reg": [0.1], "fit_intercept": [False]}

    def set_data(self, X, y):
        self.X, self.y = X, y
        target = y - y.mean() if self.fit_intercept else y
        self.lmbd = self.reg * np.abs(X.T @ target).max()

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd, "fit_intercept": self.fit_intercept}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1] + self.fit_intercept)}

    def evaluate_result(self, beta):
        weights, shift = (beta[:-1], beta[-1]) if self.fit_intercept else (beta, 0.0)
        residual = self.y - self.X @ weights - shift
        return {"value": 0.5 * residual @ residual + self.lmbd * np.abs(weights).sum()}
