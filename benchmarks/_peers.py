"""The other programs, each set up to solve exactly our problem on exactly our grid, as fast as it can.

Where a program's own stopping rule is not a duality gap, `at_equal_gap` walks down a ladder of its tolerances and
keeps the loosest one whose gaps, recomputed by us, all reach 1e-6: no program is timed at more precision than needed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import venv
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from _common import ROOT, TOL, Rows, Run, Tasks, cores, gap_summary, relative_gaps, rows_of, say, timed
from scipy import sparse

# celer and scikit-learn stop at tol * ||Y||^2 (sum units), we at tol * 1/2 ||Y||^2: this is their equal setting
EQUAL_TOL = TOL / 2
ADELIE, PTLASSO = "adelie==1.1.52", "ptlasso==0.8.0"
ADELIE_TOLS = (1e-16, 1e-17)  # its default, 1e-7, misses the gap by a factor of 1,000; 1e-15 misses it too
ADELIE_SHARED_TOLS = (1e-12, 1e-13, 1e-14, 1e-15, 1e-16)
SKGLM_TOLS = (1e-5, 3e-6, 1e-6, 3e-7, 1e-7, 3e-8)  # times alpha_max


class Reached(NamedTuple):
    """Where a walk down a ladder of tolerances ended, and where it began: at a program's default."""

    tol: float
    run: Run
    summary: dict[str, Any]
    first: Run
    first_summary: dict[str, Any]
    cut: bool  # by the limit on its seconds


def walk_down(
    run: Callable[[float], Run],
    ladder: Sequence[float],
    judge: Callable[[Run], np.ndarray],
    limit: float = np.inf,
) -> Reached:
    """The loosest tolerance of the ladder that reaches the gap at every value; the tightest, if none does, or the last
    before the runs took more than `limit` seconds together."""
    spent, first = 0.0, None
    if "--quick" in sys.argv:  # does the script work at all?
        ladder = list(dict.fromkeys([ladder[0], ladder[len(ladder) // 2]]))
    for tol in ladder:
        result = run(tol)
        summary = gap_summary(judge(result))
        reached = f"worst gap {summary['worst']:.1e}, {summary['over']} over"
        say(f"  {result.program} at {tol:g}: {result.seconds:.3g} s, {reached}")
        first = first or (result, summary)
        spent += result.seconds
        if not summary["over"] or spent > limit:
            break
    return Reached(tol, result, summary, *first, bool(summary["over"]) and spent > limit)


def at_equal_gap(
    run: Callable[[float], Run], ladder: Sequence[float], tasks: Tasks, lams: np.ndarray
) -> tuple[float, Run, dict[str, Any]]:
    """The same for the squared loss and rows: tolerance, run, and a summary of its gaps."""
    return walk_down(run, ladder, lambda r: relative_gaps(tasks, r.answers, lams, duals=r.duals))[:3]


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


def task_blocks(tasks: Tasks) -> Any:
    """The block-diagonal matrix of all tasks: column t d + j is feature j of task t."""
    parts = [tasks.X[tasks.offsets[t] : tasks.offsets[t + 1]] for t in range(tasks.n_tasks)]
    return sparse.block_diag(parts, format="csc")


def by_task(run: Run, n_tasks: int) -> Run:
    """Answers of one output on `task_blocks` as answers of the tasks."""
    for k, answer in enumerate(run.answers):
        d = run.extra["n_features"] // n_tasks
        dense = np.zeros(d * n_tasks)
        dense[answer.features] = answer.values[:, 0]
        run.answers[k] = rows_of(dense.reshape(n_tasks, d).T)
    return run


# --- glmnet and its relatives: every family by one name ---------------------------------------------------------------
# Families: gaussian, mgaussian (several outputs, rows of W by their lengths), binomial, multinomial (the same rows),
# poisson, cox (y: two columns, times and events). All minimise loss / n + lambda * penalty, columns as they are.

GLMNET_THRESH = (1e-7, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16)  # its default first
SKEIN_TOLS = (1e-6, 1e-7, 1e-8, 1e-9, 1e-10)  # the first with all its defaults

_GLMNET = """
suppressMessages({library(glmnet); library(Matrix)})
given <- commandArgs(TRUE)
where <- given[1]; family <- given[2]; n <- as.integer(given[3]); d <- as.integer(given[4]); q <- as.integer(given[5])
file_of <- function(name) file.path(where, name)
numbers <- function(name) readBin(file_of(name), "double", file.size(file_of(name)) / 8)
whole <- function(name) readBin(file_of(name), "integer", file.size(file_of(name)) / 4)
X <- if (file.exists(file_of("indptr")))
  new("dgCMatrix", i = whole("indices"), p = whole("indptr"), x = numbers("X"), Dim = c(n, d)) else
  matrix(numbers("X"), n, d)
Y <- matrix(numbers("y"), n, q)
y <- switch(family, mgaussian = Y, cox = survival::Surv(Y[, 1], Y[, 2]), multinomial = factor(Y[, 1]), Y[, 1])
options <- list(quote(X), quote(y), family = family, lambda = numbers("lambda"), standardize = FALSE, maxit = 1e8)
if (family != "cox") options$intercept <- given[6] == "1"
if (family == "multinomial") options$type.multinomial <- "grouped"
glmnet.control(fdev = 0, devmax = 1)  # the whole grid
asked <- file("stdin", "r")
cat("ready", as.character(packageVersion("glmnet")), "\\n")
while (length(line <- readLines(asked, 1)) > 0) {
  options$thresh <- as.numeric(line)
  spent <- system.time(fit <- suppressWarnings(do.call("glmnet", options)))[["elapsed"]]
  beta <- if (is.list(fit$beta)) fit$beta else list(fit$beta)
  writeBin(unlist(lapply(beta, function(part) as.vector(as.matrix(part)))), file_of("coef"))
  if (family != "cox") writeBin(as.vector(t(rbind(fit$a0))), file_of("intercepts"))
  cat("done", spent, ncol(beta[[1]]), length(beta), "\\n")
}
"""


def path_run(
    program: str, seconds: float, coefs: np.ndarray, intercepts: Any, count: int, setting: str, **extra: Any
) -> Run:
    """Coefficients (values, d, outputs) as a run; where it ended early, the last value stands for the others."""
    if len(coefs) < count:
        say(f"  {program} stopped {count - len(coefs)} values early: the last one stands for them")
    last = [min(k, len(coefs) - 1) for k in range(count)]
    answers = [rows_of(coefs[k], None if intercepts is None else np.atleast_1d(intercepts[k])) for k in last]
    return Run(program, seconds, answers, setting, extra={"n_features": coefs.shape[1], **extra})


class Glmnet:
    """glmnet in an R process of its own that is given the data once; only the call itself is timed, by R."""

    def __init__(self, family: str, X: Any, y: np.ndarray, alphas: np.ndarray, intercept: bool) -> None:
        self.intercept, self.alphas, self.shape = intercept and family != "cox", alphas, X.shape
        self.folder = tempfile.TemporaryDirectory(prefix="tasksieve-glmnet-")
        where = Path(self.folder.name)
        if sparse.issparse(X):
            X.indices.astype(np.int32).tofile(where / "indices")
            X.indptr.astype(np.int32).tofile(where / "indptr")
        numbers = X.data if sparse.issparse(X) else X.ravel(order="F")
        for name, values in {"X": numbers, "y": np.asarray(y).ravel(order="F"), "lambda": alphas}.items():
            np.asarray(values, dtype=np.float64).tofile(where / name)
        (where / "path.R").write_text(_GLMNET)
        outputs = 1 if y.ndim == 1 else y.shape[1]
        words = ["Rscript", where / "path.R", where, family, *X.shape, outputs, int(self.intercept)]
        self.process = subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self._answer("ready")[0]

    def __enter__(self) -> Glmnet:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def _answer(self, word: str) -> list[str]:
        found = (self.process.stdout.readline() if self.process.stdout else "").split()
        if found[:1] != [word]:
            raise RuntimeError("R has ended: is the package glmnet installed there?")
        return found[1:]

    def path(self, thresh: float) -> Run:
        if self.process.stdin is None:
            raise RuntimeError("R has ended")
        self.process.stdin.write(f"{thresh!r}\n")
        self.process.stdin.flush()
        seconds, count, outputs = self._answer("done")
        where = Path(self.folder.name)
        values, q = int(count), int(outputs)
        coefs = np.fromfile(where / "coef").reshape(q, values, self.shape[1]).transpose(1, 2, 0)
        intercepts = np.fromfile(where / "intercepts").reshape(q, values).T if self.intercept else None
        return path_run(
            "glmnet",
            float(seconds),
            coefs,
            intercepts,
            len(self.alphas),
            f"thresh {thresh:g}",
            version=self.version,
        )


def have_glmnet() -> bool:
    """Whether there is R with that package."""
    if shutil.which("Rscript") is None:
        return False
    command = ["Rscript", "-e", 'quit(status = !requireNamespace("glmnet", quietly = TRUE))']
    return not subprocess.run(command, capture_output=True, check=False).returncode


def glmstar_path(
    family: str, X: Any, y: np.ndarray, alphas: np.ndarray, intercept: bool, thresh: float
) -> Run:
    """glmstar (imported as glmnet): glmnet's compiled code under Python."""
    import glmnet
    import pandas as pd
    from glmnet.paths.fastnet import FastNetControl

    names = {
        "gaussian": "GaussNet", "mgaussian": "MultiGaussNet", "binomial": "LogNet", "multinomial": "MultiClassNet",
        "poisson": "FishNet", "cox": "CoxNet",
    }  # fmt: skip
    control = FastNetControl(fdev=0.0, devmax=1.0, thresh=thresh, maxit=10**8)
    options: dict[str, Any] = {"grouped": True} if family == "multinomial" else {}
    if family == "cox":
        from glmnet.cox import CoxFamily

        y = pd.DataFrame({"time": y[:, 0], "event": y[:, 1].astype(int)})
        options["family"] = CoxFamily(event_id="time", status_id="event")
    else:
        options["fit_intercept"] = intercept
    model = getattr(glmnet, names[family])(
        lambda_values=np.array(alphas), standardize=False, control=control, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = timed(lambda: model.fit(X, y))
    coefs = np.asarray(model.coefs_)
    coefs = coefs[:, :, None] if coefs.ndim == 2 else coefs
    intercepts = np.asarray(model.intercepts_) if intercept and family != "cox" else None
    return path_run("glmstar", seconds, coefs, intercepts, len(alphas), f"thresh {thresh:g}")


def skein_path(family: str, X: Any, y: np.ndarray, alphas: np.ndarray, intercept: bool, tol: float) -> Run:
    """skein-glm. For several outputs and classes it divides the loss by their number, too; a Lasso for Cox's model it
    has as a group Lasso with groups of one feature."""
    import skein_glm

    limits = {} if tol >= SKEIN_TOLS[0] else {"max_iter": 10_000}  # its default is 100
    if not family.endswith("gaussian") and limits:
        limits |= {"max_outer": 200, "outer_tol": tol}
    shares = y.shape[1] if family == "mgaussian" else int(y.max()) + 1 if family == "multinomial" else 1
    options: dict[str, Any] = {"lambdas": alphas / shares, "tol": tol, **limits}
    if family == "cox":
        model = skein_glm.CoxGroupLassoPathRegressor(np.arange(X.shape[1]), **options)
    elif family == "gaussian":
        model = skein_glm.ElasticNetPathRegressor(1.0, fit_intercept=intercept, **options)
    else:
        names = {
            "mgaussian": "MultiTaskLassoPathRegressor", "binomial": "LogisticLassoPathRegressor",
            "poisson": "PoissonLassoPathRegressor", "multinomial": "MultinomialLassoPathClassifier",
        }  # fmt: skip
        model = getattr(skein_glm, names[family])(fit_intercept=intercept, **options)
    given = (y[:, 0], y[:, 1]) if family == "cox" else (y,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = timed(lambda: model.fit(X, *given))
    if not np.allclose(model.lambdas_, options["lambdas"], rtol=1e-14):
        raise RuntimeError("skein-glm has changed the strengths")
    coefs = model.coefs_[:, :, None] if model.coefs_.ndim == 2 else model.coefs_.transpose(0, 2, 1)
    intercepts = model.intercepts_ if intercept and family != "cox" else None
    return path_run("skein-glm", seconds, coefs, intercepts, len(alphas), f"tol {tol:g}")


def skein_group_path(tasks: Tasks, lams: np.ndarray, tol: float) -> Run:
    """skein-glm's group Lasso on `task_blocks`: group j holds feature j of every task."""
    import skein_glm

    d, T = tasks.X.shape[1], tasks.n_tasks
    limits = {} if tol >= SKEIN_TOLS[0] else {"max_iter": 10_000}
    options = {
        "lambdas": lams / len(tasks.X),
        "weights": np.ones(d),
        "tol": tol,
        "fit_intercept": False,
        **limits,
    }
    model = skein_glm.GroupLassoPathRegressor(np.tile(np.arange(d), T), **options)
    wide = task_blocks(tasks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = timed(lambda: model.fit(wide, tasks.y))
    answers = [rows_of(np.asarray(c).reshape(T, d).T) for c in model.coefs_]
    return Run("skein-glm", seconds, answers, f"tol {tol:g}")


def separate_lassos(tasks: Tasks, lams: np.ndarray, tol: float) -> Run:
    """scikit-learn's path for each task alone."""
    parts = []
    for t in range(tasks.n_tasks):
        rows = slice(tasks.offsets[t], tasks.offsets[t + 1])
        n = rows.stop - rows.start
        parts.append(sklearn_path(np.asfortranarray(tasks.X[rows]), tasks.y[rows], lams / n, tol))
    d = tasks.X.shape[1]
    answers = []
    for k in range(len(lams)):
        dense = np.zeros((d, tasks.n_tasks))
        for t, part in enumerate(parts):
            dense[part.answers[k].features, t] = part.answers[k].values[:, 0]
        answers.append(rows_of(dense))
    return Run("scikit-learn", sum(part.seconds for part in parts), answers, f"tol {tol:g}")


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
    command = [str(ADELIE_PYTHON), "-c", "import adelie, ptlasso"]
    return not subprocess.run(command, capture_output=True, check=False).returncode


def adelie_python() -> Path:
    """Python of .venv-adelie, made on first use."""
    home, python = ADELIE_HOME, ADELIE_PYTHON
    if not adelie_ready():
        say(f"making {home.name} with {ADELIE} (it needs numpy < 2)")
        venv.EnvBuilder(with_pip=True, clear=True).create(home)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", ADELIE, PTLASSO], check=True)
    return python


def ptlasso_fit(
    X: np.ndarray,
    y: np.ndarray,
    groups: np.ndarray,
    new: np.ndarray,
    new_groups: np.ndarray,
    alpha: float | None,
    threads: int,
) -> tuple[float, np.ndarray, int]:
    """ptlasso in adelie's environment: seconds of its fit, predictions for new rows, features in use in some group.
    Without an alpha it chooses one by cross-validation."""
    data = {"X": X, "y": y, "groups": groups, "new": new, "new_groups": new_groups, "family": "gaussian"}
    found = ptlasso_fits([data], alpha, threads)[0]
    return float(found["seconds"]), found["pretrain"], int(found["features"])


def ptlasso_fits(
    data: Sequence[dict[str, Any]], alpha: float | None, threads: int
) -> list[dict[str, np.ndarray]]:
    """The same for several data sets in one process: of each `seconds` and `processor` seconds, `features` in use,
    the `alpha`, and predictions for new rows of the three models it fits: `pretrain`, `individual`, `overall`."""
    with tempfile.TemporaryDirectory(prefix="tasksieve-ptlasso-") as folder:
        where = Path(folder)
        for k, one in enumerate(data):
            np.savez(where / f"data-{k}.npz", **one)
        worker = Path(__file__).with_name("_ptlasso_worker.py")
        words = [adelie_python(), worker, folder, "cv" if alpha is None else alpha, threads]
        subprocess.run([str(word) for word in words], check=True)
        return [dict(np.load(where / f"answer-{k}.npz")) for k in range(len(data))]
