"""A storage of one's own: one compressed file per column, in a zip archive. Nothing of tasksieve is edited.

    python examples/own_storage.py
"""

import tempfile
import zipfile
from pathlib import Path

import numpy as np

import tasksieve as ts


class ZippedColumns(ts.Storage):
    """Columns in the members "0", "1", ... of a zip archive, each as raw float32 numbers."""

    dtype = np.dtype(np.float32)

    def __init__(self, path):
        self.path = path
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            self.n_features = len(names)
            self.n_rows = len(archive.read(names[0])) // self.dtype.itemsize

    def take(self, features):
        with zipfile.ZipFile(self.path) as archive:
            columns = [np.frombuffer(archive.read(str(j)), dtype=self.dtype) for j in features]
        return np.array(columns, dtype=np.float64).reshape(len(features), self.n_rows).T


def write(path, X):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for j, column in enumerate(X.T):
            archive.writestr(str(j), np.asarray(column, dtype=np.float32).tobytes())


def make(X):
    """What the check asks for: a storage that holds a given matrix."""
    path = Path(tempfile.mkdtemp()) / "columns.zip"
    write(path, X)
    return ZippedColumns(path)


if __name__ == "__main__":
    ts.checks.check_storage(make)  # names the property that fails, if one does

    rng = np.random.default_rng(0)
    X, task = rng.integers(0, 3, (90, 400)).astype(np.float32), rng.integers(0, 3, 90)
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(90)
    zipped = make(X)

    own = ts.MultiTaskLasso(alpha=0.1).fit(zipped, y, task=task)
    usual = ts.MultiTaskLasso(alpha=0.1).fit(X, y, task=task)
    print("features", own.get_support(indices=True), f"gap {own.dual_gap_:.1e}")
    print("largest difference to the same matrix in memory:", np.abs(own.coef_ - usual.coef_).max())
    print("predictions from the archive:", own.predict(zipped, task=task)[:3].round(3))
