from benchopt import BaseDataset

from tasksieve.datasets import make_shared_regression


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"n_rows, n_features": [(100, 300)]}

    def get_data(self):
        X, Y, _, _ = make_shared_regression(self.n_rows, self.n_features, 1, 10, 3.0, 0.0, 0)
        return {"X": X, "y": Y[:, 0].copy()}
