"""The other programs, each set up to solve exactly our problem on exactly our grid, as fast as it can.

Where a program's own stopping rule is not a duality gap, `at_equal_gap` walks down a ladder of its tolerances and
keeps the loosest one whose gaps, recomputed by us, all reach 1e-6: no program is timed at more precision than needed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from _common import ROOT, TOL, Rows, Run, Tasks, cores, gap_summary, relative_gaps, rows_of, say, timed
from scipy import sparse

# celer and scikit-learn stop at tol * ||Y||^2 (sum units), we at tol * 1/2 ||Y||^2: this is their equal setting
EQUAL_TOL = TOL / 2
ADELIE = "adelie==1.1.52"
ADELIE_TOLS = (1e-16, 1e-17)  # its default, 1e-7, misses the gap by a factor of 1,000; 1e-15 misses it too
ADELIE_SHARED_TOLS = (1e-12, 1e-13, 1e-14, 1e-15, 1e-16)
SKGLM_TOLS = (1e-5, 3e-6, 1e-6, 3e-7, 1e-7, 3e-8)  # times alpha_max


def at_equal_gap(
    run: Callable[[float], Run], ladder: Sequence[float], tasks: Tasks, lams: np.ndarray
) -> tuple[float, Run, dict[str, Any]]:
    """The loosest tolerance of the ladder that reaches the gap at every value; the tightest, if none does."""
    for tol in ladder:
        result = run(tol)
        summary = gap_summary(relative_gaps(tasks, result.answers, lams, duals=result.duals))
        reached = f"worst gap {summary['worst']:.1e}, {summary['over']} over"
        say(f"  {result.program} at {tol:g}: {result.seconds:.2f} s, {reached}")
        if not summary["over"]:
            break
    return tol, result, summary


def blas_threads(run: Callable[[], Run]) -> int | None:
    """1 or None (all): whichever makes a short run faster. Two spinning threads can cost a loaded machine a lot."""
    from threadpoolctl import threadpool_limits

    if cores() == 1:
        return None
    run()
    every = min(run().seconds for _ in range(2))
    with threadpool_limits(1):
        one = min(run().seconds for _ in range(2))
    return 1 if one < every else None


def limited(threads: int | None, run: Callable[[], Run]) -> Run:
    """`run` with that many BLAS threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        result = run()
    result.extra["blas_threads"] = threads or cores()
    return result


def sklearn_path(
    X: np.ndarray, Y: np.ndarray, alphas: np.ndarray, tol: float = EQUAL_TOL, precompute: bool = False
) -> Run:
    """scikit-learn's own path function: what MultiTaskLassoCV and LassoCV call; `precompute`: by the Gram matrix."""
    from sklearn.linear_model import lasso_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a value that does not converge is seen in its gap
        seconds, (_, coefs, _) = timed(
            lambda: lasso_path(
                X,
                Y,
                alphas=alphas,
                tol=tol,
                max_iter=1_000_000,
                precompute=precompute,
                copy_X=False,
                check_input=False,
            )
        )
    answers = [rows_of(coefs[..., k].T.reshape(X.shape[1], -1)) for k in range(len(alphas))]
    return Run("scikit-learn", seconds, answers, f"tol {tol:g}")


def celer_path(X: np.ndarray, Y: np.ndarray, alphas: np.ndarray, tol: float = EQUAL_TOL) -> Run:
    """celer: its path function for one output, its solver value by value for several.

    `celer.homotopy.mtl_path` does the same loop but keeps a dense (d, T, K) array and copies it at the end;
    without that it is only faster.
    """
    n, d = X.shape
    if Y.ndim == 1:
        from celer.homotopy import celer_path as path

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds, (_, coefs, _, thetas) = timed(
                lambda: path(
                    X, Y, "lasso", alphas=alphas, tol=tol, max_iter=200, prune=True, return_thetas=True
                )
            )
        return Run(
            "celer",
            seconds,
            [rows_of(coefs[:, [k]]) for k in range(len(alphas))],
            f"tol {tol:g}",
            list(thetas),
        )
    from celer.multitask_fast import celer_mtl

    T = Y.shape[1]

    def loop() -> tuple[list[Rows], list[np.ndarray]]:
        answers, duals = [], []
        norms = np.linalg.norm(X, axis=0)
        W, R, theta = np.zeros((d, T)), Y.copy(order="F"), np.zeros((n, T), order="F")
        for alpha in alphas:
            start = max(np.count_nonzero(W[:, 0]), 10)
            W, theta, *_ = celer_mtl(
                X, Y, alpha, W, R, theta, norms, p0=start, tol=tol, prune=True, max_iter=200, max_epochs=50_000,
                verbose=0, use_accel=True,
            )  # fmt: skip
            W, theta = np.array(W), np.array(theta, order="F")
            answers.append(rows_of(W))
            duals.append(theta.ravel(order="F"))
        return answers, duals

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, (answers, duals) = timed(loop)
    return Run("celer", seconds, answers, f"tol {tol:g}", duals)


def skglm_path(X: np.ndarray, Y: np.ndarray, alphas: np.ndarray, alpha_max: float, tol: float) -> Run:
    """skglm's multi-task block coordinate descent; it stops on the violation of the optimality conditions."""
    from skglm.datafits import QuadraticMultiTask
    from skglm.penalties import L2_1
    from skglm.solvers import MultiTaskBCD
    from skglm.utils.jit_compilation import compiled_clone

    solver = MultiTaskBCD(
        max_iter=1000, max_epochs=50_000, tol=tol * alpha_max, fit_intercept=False, warm_start=True
    )

    def path(A: np.ndarray, B: np.ndarray, grid: np.ndarray) -> np.ndarray:
        datafit, penalty = compiled_clone(QuadraticMultiTask()), compiled_clone(L2_1(float(grid[0])))
        return solver.path(A, B, datafit, penalty, alphas=grid)[1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # compile first: a user pays for it once per process, not once per path
        path(np.asfortranarray(X[:, :20]), Y, alphas[0] * np.array([1.0, 1e-3]))
        seconds, coefs = timed(lambda: path(X, Y, alphas))
    answers = [rows_of(coefs[..., k].T) for k in range(len(alphas))]
    return Run("skglm", seconds, answers, f"tol {tol:g} alpha_max")


def skglm_lasso_path(X: np.ndarray, y: np.ndarray, alphas: np.ndarray, alpha_max: float, tol: float) -> Run:
    """skglm's coordinate descent for one output; it stops on the violation of the optimality conditions."""
    from skglm.datafits import Quadratic
    from skglm.penalties import L1
    from skglm.solvers import AndersonCD
    from skglm.utils.jit_compilation import compiled_clone

    solver = AndersonCD(
        max_iter=1000, max_epochs=50_000, tol=tol * alpha_max, fit_intercept=False, warm_start=True
    )

    def path(A: np.ndarray, b: np.ndarray, grid: np.ndarray) -> np.ndarray:
        datafit, penalty = compiled_clone(Quadratic()), compiled_clone(L1(float(grid[0])))
        datafit.initialize(A, b)
        return solver.path(A, b, datafit, penalty, alphas=grid)[1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path(np.asfortranarray(X[:, :20]), y, alphas[0] * np.array([1.0, 1e-3]))
        seconds, coefs = timed(lambda: path(X, y, alphas))
    answers = [rows_of(coefs[:, [k]]) for k in range(len(alphas))]
    return Run("skglm", seconds, answers, f"tol {tol:g} alpha_max")


def celer_group_path(tasks: Tasks, lams: np.ndarray, tol: float = EQUAL_TOL) -> Run:
    """celer's group Lasso on the block-diagonal matrix of all tasks: group j holds feature j of every task."""
    from celer.homotopy import celer_path as path

    T, d, n = tasks.n_tasks, tasks.X.shape[1], tasks.X.shape[0]
    blocks = [tasks.X[tasks.offsets[t] : tasks.offsets[t + 1]] for t in range(T)]
    by_task = sparse.block_diag(blocks, format="csc")
    wide = by_task[:, np.arange(d * T).reshape(T, d).T.ravel()]  # column j T + t: feature j of task t
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, (_, coefs, _, thetas) = timed(
            lambda: path(
                wide, tasks.y, "grouplasso", alphas=lams / n, tol=tol, max_iter=200, groups=T, weights=np.ones(d),
                prune=True, return_thetas=True,
            )
        )  # fmt: skip
    answers = [rows_of(coefs[:, k].reshape(d, T)) for k in range(len(lams))]
    return Run("celer", seconds, answers, f"tol {tol:g}", list(thetas))


class Adelie:
    """adelie in an environment of its own (it needs numpy < 2), one data set at a time, arrays passed by file."""

    def __init__(self, tasks: Tasks, threads: int) -> None:
        self.tasks, self.threads = tasks, threads
        self.python = adelie_python()
        self.folder = tempfile.TemporaryDirectory(prefix="tasksieve-adelie-")
        folder = Path(self.folder.name)
        np.save(folder / "X.npy", np.asfortranarray(tasks.X, dtype=np.float64))
        np.save(folder / "y.npy", tasks.y)
        np.save(folder / "offsets.npy", tasks.offsets.astype(np.int64))

    def __enter__(self) -> Adelie:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.folder.cleanup()

    def path(self, lams: np.ndarray, tol: float) -> Run:
        """Timed inside the worker: the solver's call alone, neither loading nor building the design."""
        folder = Path(self.folder.name)
        job = {
            "lams": list(map(float, lams)),
            "tol": tol,
            "threads": self.threads,
            "shared": self.tasks.shared,
        }
        (folder / "job.json").write_text(json.dumps(job))
        worker = Path(__file__).with_name("_adelie_worker.py")
        subprocess.run([str(self.python), str(worker), str(folder)], check=True)
        answer = json.loads((folder / "answer.json").read_text())
        parts = np.load(folder / "answer.npz")
        T, d = self.tasks.n_tasks, self.tasks.X.shape[1]
        betas = sparse.csr_matrix(
            (parts["data"], parts["indices"], parts["indptr"]), shape=(len(lams), d * T)
        )
        answers = []
        for k in range(len(lams)):
            row = betas[[k]]
            features = np.unique(row.indices // T)
            values = np.zeros((features.size, T))
            values[np.searchsorted(features, row.indices // T), row.indices % T] = row.data
            keep = np.any(values != 0, axis=1)
            answers.append(Rows(features[keep].astype(int), values[keep]))
        setting = f"tol {tol:g}, {self.threads} threads"
        return Run("adelie", answer["seconds"], answers, setting, extra={"version": answer["adelie"]})


ADELIE_HOME = ROOT / ".venv-adelie"
ADELIE_PYTHON = ADELIE_HOME / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def adelie_ready() -> bool:
    """Whether it is there already: where it has to be compiled, making it takes longer than a quick run may."""
    if not ADELIE_PYTHON.exists():
        return False
    command = [str(ADELIE_PYTHON), "-c", "import adelie"]
    return not subprocess.run(command, capture_output=True, check=False).returncode


def adelie_python() -> Path:
    """Python of .venv-adelie, made on first use."""
    home, python = ADELIE_HOME, ADELIE_PYTHON
    if not adelie_ready():
        say(f"making {home.name} with {ADELIE} (it needs numpy < 2)")
        venv.EnvBuilder(with_pip=True, clear=True).create(home)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", ADELIE], check=True)
    return python
