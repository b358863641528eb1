"""What every benchmark shares: timing, independent certificates, our side of each comparison, and reports.

Certificates are recomputed here in NumPy float64 from the returned coefficients alone, with nothing of the
library: coefficients of ours and of peers are judged by the same few lines.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _extras import require_extras
from scipy import sparse

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
TOL = 1e-6  # relative to the objective at W = 0 with the best intercepts
BLOCK_BYTES = 64 << 20


# --- problems and answers -----------------------------------------------------------------------------------


class Tasks(NamedTuple):
    """A design in the flat sample space: stacked rows (task t = slice of offsets), or one matrix shared by all."""

    X: Any
    y: np.ndarray  # flat float64, task after task; unobserved labels have weight 0
    offsets: np.ndarray
    shared: bool = False
    observed: np.ndarray | None = None  # flat booleans, or None: all observed

    @property
    def n_tasks(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_bar(self) -> float:
        n = self.y.size if self.observed is None else int(self.observed.sum())
        return n / self.n_tasks


class Rows(NamedTuple):
    """Coefficients of one value of the path: the non-zero rows of W, and the intercepts."""

    features: np.ndarray
    values: np.ndarray  # (len(features), n_tasks)
    intercept: np.ndarray | None = None


@dataclass
class Run:
    """One timed run of one program: its answer at every value, and what it cost."""

    program: str
    seconds: float
    answers: list[Rows]
    setting: str = ""
    duals: list[np.ndarray] | None = None  # flat dual points of its own, where the program returns them
    passes: float | None = None
    reported_gaps: np.ndarray | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def stacked_tasks(X: Any, y: np.ndarray, task: np.ndarray) -> Tasks:
    """Rows already sorted by task."""
    counts = np.bincount(task)
    return Tasks(X, np.asarray(y, dtype=float), np.concatenate([[0], np.cumsum(counts)]))


def shared_tasks(X: Any, Y: np.ndarray) -> Tasks:
    """One matrix, Y (n, T) or (n,); NaN in Y is a label that was not observed."""
    Y = np.asarray(Y, dtype=float).reshape(len(Y), -1)
    observed = ~np.isnan(Y)
    flat = np.where(observed, Y, 0.0).ravel(order="F")
    offsets = Y.shape[0] * np.arange(Y.shape[1] + 1)
    return Tasks(X, flat, offsets, True, None if observed.all() else observed.ravel(order="F"))


def rows_of(W: np.ndarray, intercept: np.ndarray | None = None) -> Rows:
    """Non-zero rows of a dense (d, T) array."""
    features = np.flatnonzero(np.any(W != 0, axis=1))
    return Rows(features, np.array(W[features], dtype=float), intercept)


# --- certificates -------------------------------------------------------------------------------------------


def _dense(X: Any, features: Any) -> np.ndarray:
    block = X[:, features]
    return np.asarray(block.todense() if sparse.issparse(block) else block, dtype=np.float64)


def _centre(tasks: Tasks, flat: np.ndarray) -> np.ndarray:
    """Subtract from each task the mean over its observed rows; unobserved rows become 0."""
    out = np.zeros_like(flat)
    for t in range(tasks.n_tasks):
        rows = slice(tasks.offsets[t], tasks.offsets[t + 1])
        seen = slice(None) if tasks.observed is None else tasks.observed[rows]
        out[rows][seen] = flat[rows][seen] - flat[rows][seen].mean(axis=0)
    return out


def _masked(tasks: Tasks, flat: np.ndarray) -> np.ndarray:
    if tasks.observed is None:
        return flat
    return flat * (tasks.observed if flat.ndim == 1 else tasks.observed[:, None])


def dual_norms(tasks: Tasks, R: np.ndarray) -> np.ndarray:
    """max_j ||(<x_jt, r_t>)_t|| for each column r of R (N, K): one stream through X, whatever K."""
    n_values = R.shape[1]
    n_features = tasks.X.shape[1]
    T = tasks.n_tasks
    widest = tasks.X.shape[0] + n_values * (T if tasks.shared else 2)
    step = max(1, BLOCK_BYTES // (8 * widest))
    best = np.zeros(n_values)
    if tasks.shared:
        # columns (value, task), so that one product serves all tasks and values
        wide = R.reshape(T, -1, n_values).transpose(1, 2, 0).reshape(-1, n_values * T)
    for first in range(0, n_features, step):
        block = _dense(tasks.X, slice(first, min(n_features, first + step)))
        if tasks.shared:
            squares = np.square(block.T @ wide).reshape(-1, n_values, T).sum(axis=2)
        else:
            squares = np.zeros((block.shape[1], n_values))
            for t in range(T):
                rows = slice(tasks.offsets[t], tasks.offsets[t + 1])
                squares += np.square(block[rows].T @ R[rows])
        np.maximum(best, squares.max(axis=0), out=best)
    return np.sqrt(best)


def predictions(tasks: Tasks, answers: Sequence[Rows]) -> np.ndarray:
    """X W + b for every value, flat in the sample space: (N, K)."""
    Z = np.zeros((tasks.y.size, len(answers)))
    used = np.unique(np.concatenate([a.features for a in answers] + [np.empty(0, dtype=np.int64)])).astype(
        int
    )
    step = max(1, BLOCK_BYTES // (8 * tasks.X.shape[0]))
    for first in range(0, used.size, step):
        features = used[first : first + step]
        block = _dense(tasks.X, features)
        for k, answer in enumerate(answers):
            here = np.isin(answer.features, features)
            columns, values = block[:, np.searchsorted(features, answer.features[here])], answer.values[here]
            if tasks.shared:
                Z[:, k] += (columns @ values).ravel(order="F")
                continue
            for t in range(tasks.n_tasks):
                rows = slice(tasks.offsets[t], tasks.offsets[t + 1])
                Z[rows, k] += columns[rows] @ values[:, t]
    for k, answer in enumerate(answers):
        if answer.intercept is not None:
            Z[:, k] += np.repeat(answer.intercept, np.diff(tasks.offsets))
    return Z


def lambda_max(tasks: Tasks, fit_intercept: bool = False, loss: str = "squared") -> float:
    """The smallest strength (sum units) whose solution is zero."""
    if loss == "logistic":
        b = _best_intercepts(tasks, np.zeros((tasks.y.size, 1)), fit_intercept)
        r = _logistic_residual(tasks.y[:, None], b)
    else:
        r = (_centre(tasks, tasks.y) if fit_intercept else _masked(tasks, tasks.y))[:, None]
    return float(dual_norms(tasks, r)[0])


def null_objective(tasks: Tasks, fit_intercept: bool = False, loss: str = "squared") -> float:
    """Objective at W = 0 with the best intercepts (sum units)."""
    if loss == "logistic":
        b = _best_intercepts(tasks, np.zeros((tasks.y.size, 1)), fit_intercept)
        return float(np.logaddexp(0.0, -tasks.y * b[:, 0]).sum())
    y = _centre(tasks, tasks.y) if fit_intercept else _masked(tasks, tasks.y)
    return float(y @ y / 2)


def relative_gaps(
    tasks: Tasks,
    answers: Sequence[Rows],
    lams: Sequence[float] | np.ndarray,
    *,
    fit_intercept: bool = False,
    loss: str = "squared",
    duals: Sequence[np.ndarray] | None = None,
) -> np.ndarray:
    """Duality gap of every answer / objective at W = 0, from the coefficients alone.

    The dual point is the residual, scaled to be feasible over all features. Where a program hands out dual points
    of its own (`duals`), the better of the two counts: a certificate is a certificate.
    """
    lams = np.asarray(lams, dtype=float)
    Z = predictions(tasks, answers)
    penalty = np.array([np.linalg.norm(a.values, axis=1).sum() for a in answers])
    y = tasks.y[:, None]
    if loss == "logistic":
        primal = np.logaddexp(0.0, -y * Z).sum(axis=0) + lams * penalty
        if fit_intercept:
            # a dual point must sum to zero in each task: take it at the intercepts that are exactly right for W
            Z = Z + _best_intercepts(tasks, Z, True)
        R = _logistic_residual(y, Z)
        scale = np.minimum(1.0, lams / np.maximum(dual_norms(tasks, R), 1e-300))
        p = np.clip(scale * y * R, 0.0, 1.0)
        dual = -(_xlogx(p) + _xlogx(1.0 - p)).sum(axis=0)
        return (primal - dual) / null_objective(tasks, fit_intercept, loss)
    residual = _masked(tasks, y - Z)
    primal = 0.5 * np.square(residual).sum(axis=0) + lams * penalty
    dual = _squared_dual(tasks, residual, lams, fit_intercept)
    if duals is not None:
        dual = np.maximum(dual, _squared_dual(tasks, np.stack(duals, axis=1), lams, fit_intercept))
    return (primal - dual) / null_objective(tasks, fit_intercept)


def _squared_dual(tasks: Tasks, R: np.ndarray, lams: np.ndarray, fit_intercept: bool) -> np.ndarray:
    """Best dual value on the ray through each column of R."""
    R = _centre(tasks, R) if fit_intercept else _masked(tasks, R)
    along, size = tasks.y @ R, np.maximum(np.square(R).sum(axis=0), 1e-300)
    scale = np.minimum(along / size, lams / np.maximum(dual_norms(tasks, R), 1e-300))
    return scale * along - 0.5 * scale**2 * size


def _xlogx(p: np.ndarray) -> np.ndarray:
    return np.where(p > 0, p * np.log(np.maximum(p, 1e-300)), 0.0)


def _logistic_residual(y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return y * np.exp(-np.logaddexp(0.0, y * Z))


def _best_intercepts(tasks: Tasks, Z: np.ndarray, fit_intercept: bool) -> np.ndarray:
    """Shift of each task that makes its residuals sum to zero (bracketed Newton); flat, one column per value."""
    out = np.zeros_like(Z)
    if not fit_intercept:
        return out
    for t in range(tasks.n_tasks):
        rows = slice(tasks.offsets[t], tasks.offsets[t + 1])
        y = tasks.y[rows][:, None]
        low = np.full(Z.shape[1], -1.0) - np.abs(Z[rows]).max(axis=0) - 50.0
        high = -low
        b = np.zeros(Z.shape[1])
        for _ in range(200):
            r = _logistic_residual(y, Z[rows] + b)
            slope = r.sum(axis=0)
            low, high = np.where(slope > 0, b, low), np.where(slope < 0, b, high)
            p = np.abs(r)
            step = b + slope / np.maximum((p * (1 - p)).sum(axis=0), 1e-300)
            new = np.where((step > low) & (step < high), step, 0.5 * (low + high))
            done = np.abs(new - b) <= 1e-15 * (1.0 + np.abs(b))
            b = np.where(slope == 0, b, new)
            if np.all(done | (slope == 0)):
                break
        out[rows] = b
    return out


def gap_summary(gaps: np.ndarray) -> dict[str, Any]:
    """Worst gap, and how many values miss the tolerance."""
    return {
        "worst": float(np.max(gaps)),
        "over": int(np.sum(gaps > TOL * (1 + 1e-9))),
        "values": int(gaps.size),
    }


def gap_cell(summary: dict[str, Any] | None) -> str:
    if summary is None:
        return "-"
    over = f" ({summary['over']} of {summary['values']} over)" if summary["over"] else ""
    return f"{summary['worst']:.1e}{over}"


# --- timing -------------------------------------------------------------------------------------------------


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Wall seconds and result, with the garbage collector out of the way."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        result = function()
        return time.perf_counter() - start, result
    finally:
        if enabled:
            gc.enable()


_REST = 0.1  # seconds


def alternate(sides: dict[str, tuple[int, Callable[[], Run]]]) -> dict[str, list[Run]]:
    """Run the sides in turn, each as often as its count says: a busy minute then hurts all of them.

    Each begins with a rest: threads of a BLAS that has just been used wait busily for some 30 ms, at the expense of
    whoever comes next. Only the last run of a side keeps its answers; the answers of a path are large, its seconds are
    not.
    """
    runs: dict[str, list[Run]] = {name: [] for name in sides}
    for repeat in range(max(count for count, _ in sides.values())):
        for name, (count, run) in sides.items():
            if repeat < count:
                for earlier in runs[name]:
                    earlier.answers, earlier.duals = [], None
                time.sleep(_REST)
                runs[name].append(run())
    return runs


def median_seconds(runs: Iterable[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


# --- our side -----------------------------------------------------------------------------------------------


def library() -> Any | None:
    """The library, or None with a word on standard error: the peers' side of a script can run without it."""
    try:
        import tasksieve

        tasksieve.MultiTaskLasso  # noqa: B018 (names are loaded on first use)
    except (ImportError, AttributeError) as error:
        say(f"tasksieve is not usable ({error}); only the peers are measured")
        return None
    return tasksieve


def our_path(
    X: Any,
    y: np.ndarray,
    task: np.ndarray | None,
    alphas: np.ndarray,
    *,
    estimator: str = "MultiTaskLasso",
    fit_intercept: bool = False,
    threads: int | None = None,
    **options: Any,
) -> Run:
    """The certified path by the public interface; only `.path` itself is timed."""
    ts = library()
    if ts is None:
        raise RuntimeError("tasksieve is not installed")
    threads = cores() if threads is None else threads
    model = getattr(ts, estimator)(tol=TOL, fit_intercept=fit_intercept, n_jobs=threads, **options)
    given = {} if task is None else {"task": task}
    seconds, path = timed(lambda: model.path(X, y, alphas=np.asarray(alphas), **given))
    return Run(
        "tasksieve",
        seconds,
        path_answers(path, fit_intercept),
        setting=f"tol {TOL:g}, {threads} threads",
        passes=float(path.passes),
        reported_gaps=np.asarray(path.dual_gaps),
        extra={
            "seconds_per_value": np.asarray(path.seconds).tolist(),
            "n_selected": np.asarray(path.n_selected).tolist(),
            "iterations": int(np.sum(path.n_iter)),
            "rejection_ratios": np.asarray(path.rejection_ratios).tolist(),
        },
    )


def path_answers(path: Any, fit_intercept: bool) -> list[Rows]:
    """Non-zero rows of every value of a RegularizationPath."""
    answers = []
    for k in range(len(path.alphas)):
        coef = sparse.csc_matrix(path.coef(k))
        features = np.flatnonzero(np.diff(coef.indptr))
        values = coef[:, features].toarray().T
        answers.append(Rows(features, values, np.asarray(path.intercept(k)) if fit_intercept else None))
    return answers


def engine_problem(
    tasks: Tasks, *, fit_intercept: bool = False, loss: str = "squared", threads: int | None = None
) -> Any:
    """The engine's own Problem, for what the public interface does not offer (solver, scaled tolerances)."""
    from tasksieve.design import Design, as_storage
    from tasksieve.path.problem import Problem

    weights = np.ones(tasks.y.size) if tasks.observed is None else tasks.observed.astype(float)
    design = Design(
        as_storage(tasks.X),
        tasks.offsets,
        shared=tasks.shared,
        weights=weights,
        fit_intercept=fit_intercept,
        n_threads=cores() if threads is None else threads,
    )
    return Problem(design, tasks.y, loss=loss, unit=tasks.n_bar)


def point_answers(solution: Any, fit_intercept: bool) -> list[Rows]:
    """Rows of the engine's points."""
    return [
        Rows(np.asarray(p.features), np.asarray(p.rows), np.asarray(p.intercept) if fit_intercept else None)
        for p in solution.points
    ]


# --- reports ------------------------------------------------------------------------------------------------


def markdown(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def seconds_cell(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.3f}" if seconds < 0.1 else f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"


def ratio_cell(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.0f}x"


class Report:
    """Tables and headlines of one script: printed as Markdown, kept as JSON for `run_all.py`.

    A headline is one promise: what was promised, the bar, what was measured, and whether the bar was met
    (None where it was not measured).
    """

    def __init__(self, name: str, arguments: argparse.Namespace) -> None:
        self.name = name
        self.quick = bool(arguments.quick)
        self.content: dict[str, Any] = {
            "script": name,
            "quick": self.quick,
            "command": " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
            "arguments": {k: v for k, v in vars(arguments).items() if not callable(v)},
            "cores": cores(),
            "date": time.strftime("%Y-%m-%d"),
            "versions": versions(),
            "tables": [],
            "headlines": [],
            "raw": [],
        }

    def keep(self, *, resume: bool, tables: bool) -> None:
        """Take over what an earlier run has left: all of it for tables, raw results of the same versions to resume."""
        file = self.file
        if not (resume or tables) or not file.exists():
            return
        content: dict[str, Any] = json.loads(file.read_text())
        if tables:
            self.content |= {key: content[key] for key in ("command", "date", "cores", "versions")}
        elif content["versions"] != versions():
            say("the results are of another version: nothing is kept")
            return
        self.content["raw"] = content["raw"]

    def table(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = ""
    ) -> None:
        self.content["tables"].append(
            {
                "title": title,
                "columns": list(columns),
                "rows": [[str(c) for c in row] for row in rows],
                "note": note,
            }
        )

    def headline(self, promise: str, bar: str, measured: str, met: bool | None, key: str = "") -> None:
        """`key` names the place of the measured figure in README.md."""
        self.content["headlines"].append(
            {"promise": promise, "bar": bar, "measured": measured, "met": met, "key": key}
        )

    def raw(self, **values: Any) -> None:
        self.content["raw"].append(values)
        self.save()  # a long script that is stopped still leaves what it measured

    @property
    def file(self) -> Path:
        return RESULTS / f"{self.name}{'.quick' if self.quick else ''}.json"

    def save(self) -> Path:
        RESULTS.mkdir(exist_ok=True)
        self.file.write_text(json.dumps(self.content, indent=1, default=_plain) + "\n")
        return self.file

    def finish(self) -> None:
        print()
        print(report_markdown(self.content))
        print(f"\nwritten to {os.path.relpath(self.save())}")


def report_markdown(content: dict[str, Any]) -> str:
    """The tables of one script as Markdown, with command, cores and versions: made from its JSON alone."""
    versions_used = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    parts = [f"`{content['command']}`, {content['cores']} cores, {content['date']}; {versions_used}."]
    for table in content["tables"]:
        parts.append(f"**{table['title']}**")
        parts.append(markdown(table["columns"], table["rows"]))
        if table["note"]:
            parts.append(table["note"])
    return "\n\n".join(parts)


def versions() -> dict[str, str]:
    """Versions of what was measured."""
    found = {"Python": platform.python_version()}
    for package in ("tasksieve", "numpy", "scikit-learn", "celer", "skglm", "skein-glm", "glmstar"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if "tasksieve" in found and (commit := _source_commit()):
        found["tasksieve"] += f" ({commit})"
    try:
        from tasksieve._kernels import compiled

        found["kernels"] = "compiled" if compiled else "NumPy reference (not for timing)"
    except ImportError:
        pass
    return found


def _source_commit() -> str:
    """The last commit that changed the library: a version number alone stands for months of work."""
    git = ["git", "-C", str(ROOT)]
    try:
        last = subprocess.run([*git, "log", "-1", "--format=%h", "--", "src"], capture_output=True, text=True)
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src"], capture_output=True)
    except OSError:  # no git here
        return ""
    return last.stdout.strip() + (" with changes" if changed.returncode == 1 else "")


class _Parser(argparse.ArgumentParser):
    """Arguments, and then whether all that the script needs is here: not after hours."""

    def parse_args(self, *args: Any, **options: Any) -> Any:
        found = super().parse_args(*args, **options)
        require_extras(Path(sys.argv[0]).resolve())
        return found


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser with what all scripts take."""
    parser = _Parser(
        description=(description or "").strip(), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does the script work at all?")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--threads", type=int, default=cores(), help="threads of both sides (default: all cores)"
    )
    return parser


def say(*words: Any) -> None:
    """Progress, on standard error."""
    print(*words, file=sys.stderr, flush=True)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(type(value))
