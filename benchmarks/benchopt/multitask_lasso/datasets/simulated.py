from benchopt import BaseDataset

from tasksieve.datasets import make_shared_regression


class Dataset(BaseDataset):
    name = "simulated"
    parameters = {"n_rows, n_features, n_tasks": [(100, 300, 10)]}

    def get_data(self):
        X, Y, _, _ = make_shared_regression(self.n_rows, self.n_features, self.n_tasks, 10, 3.0, 0.0, 0)
        return {"X": X, "Y": Y}
