"""A stand-in for the objective of benchmark_multitask_lasso, to try the solver file."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    name = "Multi-task Lasso"
    min_benchopt_version = "1.5"
    parameters = {"reg": [0.1]}

    def set_data(self, X, Y):
        self.X, self.Y = X, Y
        self.lmbd = self.reg * np.linalg.norm(X.T @ Y, axis=1).max()

    def get_objective(self):
        return {"X": self.X, "Y": self.Y, "lmbd": self.lmbd}

    def get_one_result(self):
        return {"W": np.zeros((self.X.shape[1], self.Y.shape[1]))}

    def evaluate_result(self, W):
        residual = self.Y - self.X @ W
        return {"value": 0.5 * np.square(residual).sum() + self.lmbd * np.linalg.norm(W, axis=1).sum()}
