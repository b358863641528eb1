"""Runs adelie in its own environment: `python _adelie_worker.py FOLDER`.

FOLDER holds X.npy, y.npy, offsets.npy and job.json; answer.npz and answer.json are written there. This file
imports nothing but NumPy, SciPy and adelie, because adelie needs an older NumPy than the rest of the project.

adelie minimises  1/(2N) ||y - X b||^2 + lambda sum_g ||b_g||  with N = all rows of all tasks, so its lambda is ours in
sum units / N, and every group's penalty factor is 1 (its default is the square root of the group's size).
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import adelie
import numpy as np
from scipy import sparse


def stacked_design(X: Any, offsets: Any, n_threads: int) -> Any:
    """One matrix per task as one sparse matrix: column l T + t holds task t's rows of feature l.

    The stacked matrix in Fortran order holds exactly these numbers in exactly this order: `data` is a view of it.
    """
    n, d = X.shape
    T = len(offsets) - 1
    data = X.ravel(order="F")
    assert np.shares_memory(data, X)
    indices = np.empty(n * d, dtype=np.int32)
    indices.reshape(d, n)[:] = np.arange(n, dtype=np.int32)
    indptr = np.empty(d * T + 1, dtype=np.int32)
    indptr[:-1].reshape(d, T)[:] = n * np.arange(d, dtype=np.int64)[:, None] + offsets[:-1]
    indptr[-1] = n * d
    matrix = sparse.csc_matrix((data, indices, indptr), shape=(n, d * T), copy=False)
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return adelie.matrix.sparse(matrix, method="naive", n_threads=n_threads)


def main(position: str) -> None:
    folder = Path(position)
    job = json.loads((folder / "job.json").read_text())
    X = np.load(folder / "X.npy")
    y = np.load(folder / "y.npy")
    offsets = np.load(folder / "offsets.npy")
    T, d, threads = len(offsets) - 1, X.shape[1], job["threads"]
    if job["shared"]:
        design = X
        glm = adelie.glm.multigaussian(np.ascontiguousarray(y.reshape(T, -1).T))
        groups = np.arange(d)
    else:
        design = stacked_design(X, offsets, threads)
        glm = adelie.glm.gaussian(y)
        groups = T * np.arange(d)
    start = time.perf_counter()
    state = adelie.grpnet(
        design,
        glm,
        groups=groups,
        penalty=np.ones(d),
        alpha=1,
        lmda_path=np.array(job["lams"]) / y.size,
        tol=job["tol"],
        max_iters=10**9,
        n_threads=threads,
        intercept=False,
        early_exit=False,
        progress_bar=False,
    )
    seconds = time.perf_counter() - start
    betas = sparse.csr_matrix(state.betas)
    assert betas.shape == (len(job["lams"]), d * T), (betas.shape, d, T)
    np.savez(folder / "answer.npz", data=betas.data, indices=betas.indices, indptr=betas.indptr)
    answer = {"seconds": seconds, "adelie": adelie.__version__, "numpy": np.__version__}
    (folder / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
