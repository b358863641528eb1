"""Twenty small problems, and the work that each takes: readings of X, calls of kernels by name, bytes, iterations.

``python tests/counted_work.py`` counts again and says what changed. ``--write`` puts the counts into
counted_work.json, which `tests/path/test_counted_work.py` compares with: fewer are written without further ado, more
only with ``--because TEXT``, a piece of the line in CHANGELOG.md that says why. Counts depend on nothing but the
order of a few roundings: neither on the number of threads nor on how fast the machine is.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from helpers import named_rows
from plink_files import write_plink

import tasksieve as ts
from tasksieve._kernels import kernels

FILE = Path(__file__).with_name("counted_work.json")
CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
ROOM = 0.05  # rounding of another processor or BLAS may change a decision here and there
FEW = 1  # a single call more is no trend, however few they were
# Kernels that read a matrix at some of its columns: the arguments that are the matrix, the one that lists the columns
# (None: all), and how many there are, by the last argument of the matrix.
AT_COLUMNS: dict[str, tuple[int, int, Callable[[np.ndarray], int]]] = {
    "segment_products": (1, 1, lambda x: x.shape[1]),
    "shared_products": (1, 1, lambda x: x.shape[1]),
    "sparse_products": (3, 3, lambda indptr: len(indptr) - 1),
    "genotype_products": (1, 4, len),
    "genotype_shared_products": (1, 4, len),
    "genotype_columns": (1, 4, len),
    "genotype_counts": (1, 2, len),
    "genotype_row_holes": (1, 2, len),
}
# Called once for the process, or to look at it.
NO_WORK = frozenset({"use_blas", "allow_wide_registers", "wide_registers", "standing_threads"})
# Of tensors: to look at one; and those that wait for numbers, which are counted by name.
NO_OPERATION = frozenset({"__get__", "__len__", "dim", "numel", "size", "stride", "element_size", "is_contiguous"})
WAITS = frozenset({"tolist", "item", "cpu", "numpy", "nonzero", "__bool__", "__float__", "__int__", "__index__"})

Counts = dict[str, Any]


# --- counting ---------------------------------------------------------------------------------------------------------


def bytes_of(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    return sum(map(bytes_of, value)) if isinstance(value, list | tuple) else 0


def bytes_given(name: str, given: tuple[Any, ...], options: dict[str, Any]) -> int:
    """Of all arrays that a kernel was given; of a matrix read at some columns only theirs."""
    total = bytes_of(given) + bytes_of(list(options.values()))
    if name in AT_COLUMNS:
        parts, at, width = AT_COLUMNS[name]
        columns = given[at]
        if columns is not None:
            whole = bytes_of(given[:parts])
            total -= whole - whole * len(columns) // max(width(given[parts - 1]), 1)
    return total


@contextmanager
def counted_kernels() -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Calls and bytes of each kernel from here on; methods of its classes as Class.method."""
    calls: Counter[str] = Counter()
    read: Counter[str] = Counter()
    places = [(kernels, name, name) for name in dir(kernels) if not name.startswith("_") and name not in NO_WORK]
    classes = [(owner, name) for _, name, _ in places if isinstance(owner := getattr(kernels, name), type)]
    places = [place for place in places if not isinstance(getattr(*place[:2]), type)]
    places += [(owner, m, f"{name}.{m}") for owner, name in classes for m in vars(owner) if not m.startswith("_")]

    def counting(label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any, **options: Any) -> Any:
            calls[label] += 1
            read[label] += bytes_given(label, given, options)
            return function(*given, **options)

        return called

    before = [(owner, name, vars(owner)[name]) for owner, name, _ in places]
    try:
        for owner, name, label in places:
            if callable(getattr(owner, name)):
                setattr(owner, name, counting(label, getattr(owner, name)))
        yield calls, read
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


@contextmanager
def counted_operations() -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Operations of torch and the bytes of the tensors they were given: what a GPU would be asked to do, and how often
    the host waits for numbers (``tolist``, ``item``, ``nonzero``)."""
    import torch
    from torch.overrides import TorchFunctionMode

    calls: Counter[str] = Counter()
    read: Counter[str] = Counter()

    class Counting(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func.__name__
            if name not in NO_OPERATION:
                calls[name if name in WAITS else "others"] += 1
                read[name] += sum(t.numel() * t.element_size() for t in args if isinstance(t, torch.Tensor))
            return func(*args, **(kwargs or {}))

    with Counting():
        yield calls, read


def count(name: str) -> Counts:
    """What a problem takes."""
    ready = PROBLEMS[name]()
    with counted_operations() if name in ON_DEVICE else counted_kernels() as (calls, read):
        path = ready()
    return {
        "passes": round(float(path.passes), 3),
        "iterations": int(np.sum(path.n_iter)),
        "calls": sum(calls.values()),
        "kilobytes": round(sum(read.values()) / 1000),
        "by name": dict(sorted(calls.items())),
    }


def risen(now: Counts, before: Counts) -> list[str]:
    """What is more than it was, with room for rounding. A kernel that was not called before counts in the sum only."""
    totals = [(what, now[what], before[what]) for what in ("passes", "iterations", "calls", "kilobytes")]
    named = [(f"calls of {name}", now["by name"].get(name, 0), old) for name, old in before["by name"].items()]
    few = dict.fromkeys((what for what, _, _ in named), FEW) | {"calls": FEW, "iterations": FEW}
    return [
        f"{what}: {value:g}, was {old:g}"
        for what, value, old in totals + named
        if value > max((1 + ROOM) * old, old + few.get(what, 0)) + 1e-9
    ]


# --- problems ---------------------------------------------------------------------------------------------------------


class Spent:
    """`passes` and iterations of a cross-validation, as a path has them."""

    def __init__(self, model: Any) -> None:
        self.passes, self.n_iter = model.passes_, model.path_.n_iter


Ready = Callable[[], Any]
Change = Callable[[np.ndarray], Any] | None


def own(d: int = 800, rows: int = 30, tasks: int = 5, seed: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matrix for each task, rows stacked."""
    rng = np.random.default_rng(seed)
    x, task = rng.standard_normal((tasks * rows, d)), np.repeat(np.arange(tasks), rows)
    w = np.zeros((d, tasks))
    w[:6] = rng.standard_normal((6, tasks))
    return x, np.einsum("ij,ji->i", x, w[:, task]) + 0.5 * rng.standard_normal(len(x)), task


def shared(n: int, d: int, outputs: int, seed: int = 9) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((n, d)), np.zeros((d, outputs))
    w[:6] = rng.standard_normal((6, outputs))
    y = x @ w + 0.5 * rng.standard_normal((n, outputs))
    return x, y if outputs > 1 else y[:, 0]


def on_own(model: Any, change: Change = None, **sizes: int) -> Ready:
    x, y, task = own(**sizes)
    y = y if change is None else change(y)
    return lambda: model.set_params(n_jobs=1).path(x, y, task=task, n_alphas=20, eps=0.1)


def on_shared(model: Any, n: int, d: int, outputs: int, change: Change = None) -> Ready:
    x, y = shared(n, d, outputs)
    y = y if change is None else change(y)
    return lambda: model.set_params(n_jobs=1).path(x, y, n_alphas=20, eps=0.1)


def folds(model: Any, *data: Any) -> Ready:
    rows = named_rows(*data)
    return lambda: Spent(model.set_params(n_jobs=1, n_alphas=15, eps=0.1, cv=3).fit(**rows))


def survival(_: np.ndarray) -> Any:
    rng = np.random.default_rng(3)
    return ts.survival(rng.exponential(size=150), rng.random(150) < 0.7)


def genotypes() -> Ready:
    rng = np.random.default_rng(4)
    counts = rng.binomial(2, rng.uniform(0.1, 0.5, 1500), (120, 1500)).astype(float)
    y = counts[:, :5] @ rng.standard_normal(5) + rng.standard_normal(120)
    counts[rng.random(counts.shape) < 0.01] = np.nan
    folder = tempfile.TemporaryDirectory()
    x = ts.read_plink(write_plink(Path(folder.name) / "cohort", counts))
    task = np.repeat(np.arange(4), 30)

    def path() -> Any:
        with folder:
            return ts.MultiTaskLasso(n_jobs=1).path(x, y, task=task, n_alphas=20, eps=0.1)

    return path


def sparse_columns() -> Ready:
    from scipy import sparse

    x, y, task = own()
    x[np.random.default_rng(5).random(x.shape) < 0.8] = 0.0
    given = sparse.csc_array(x)
    return lambda: ts.MultiTaskLasso(n_jobs=1).path(given, y, task=task, n_alphas=20, eps=0.1)


def on_device(model: Any, change: Change = None) -> Ready:
    import torch

    x, y, task = own(d=300, rows=20, tasks=4)
    y, given = y if change is None else change(y), torch.tensor(x)
    return lambda: model.path(given, y, task=task, n_alphas=10, eps=0.2)


def as_labels(y: np.ndarray) -> np.ndarray:
    return np.where(y > 0, 1.0, -1.0)


def as_classes(y: np.ndarray) -> np.ndarray:
    return np.argmax(y, axis=1)


def as_counts(y: np.ndarray) -> np.ndarray:
    return np.random.default_rng(6).poisson(np.exp(0.3 * y))


PROBLEMS: dict[str, Callable[[], Ready]] = {
    "lasso": lambda: on_own(ts.MultiTaskLasso()),
    "sparse group": lambda: on_own(ts.MultiTaskSparseGroupLasso()),
    "logistic": lambda: on_own(ts.MultiTaskLogisticRegression(), as_labels),
    "huber": lambda: on_own(ts.MultiTaskHuber()),
    "calibrated": lambda: on_own(ts.CalibratedMultiTaskLasso()),
    "poisson": lambda: on_own(ts.MultiTaskPoisson(), as_counts, d=200),
    "cox": lambda: on_own(ts.MultiTaskCox(), survival, d=200),
    "equal sizes": lambda: on_own(ts.MultiTaskRegressor(penalty="linf"), d=200),
    "group owl": lambda: on_own(ts.MultiTaskOWL(), d=200),
    "sparse columns": sparse_columns,
    "genotypes with missing calls": genotypes,
    "tall, a matrix per task": lambda: on_own(ts.MultiTaskLasso(), d=40, rows=300),
    "wide shared matrix": lambda: on_shared(ts.MultiTaskLasso(), 60, 1200, 6),
    "tall shared matrix": lambda: on_shared(ts.MultiTaskLasso(), 800, 60, 4),
    "one output": lambda: on_shared(ts.MultiTaskLasso(), 100, 1500, 1),
    "multinomial": lambda: on_shared(ts.MultiTaskLogisticRegression(), 90, 200, 3, as_classes),
    "folds of wide tasks": lambda: folds(ts.MultiTaskLassoCV(), *own(d=400)),
    "folds of a tall matrix": lambda: folds(ts.MultiTaskLassoCV(), *shared(600, 40, 3)),
    "device": lambda: on_device(ts.MultiTaskLasso()),
    "logistic on a device": lambda: on_device(ts.MultiTaskLogisticRegression(), as_labels),
}
#: these run on torch, for which operations are counted in place of kernels
ON_DEVICE = ("device", "logistic on a device")


def counted() -> dict[str, Counts]:
    """Of every problem, two of which need torch."""
    os.environ["TASKSIEVE_NUM_THREADS"] = "1"
    return {name: count(name) for name in PROBLEMS}


def written() -> dict[str, Any]:
    """What counted_work.json holds: the counts, and why some rose."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {"rose because": [], "counts": {}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the counts into counted_work.json")
    parser.add_argument("--because", metavar="TEXT", help="words of CHANGELOG.md that say why something rose")
    args = parser.parse_args()
    before, now, rose = written(), counted(), []
    for name, counts in now.items():
        old = before["counts"].get(name)
        changed = ["new"] if old is None else risen(counts, old)
        rose += changed if old is not None else []
        fell = [] if old is None else [line.replace("was", "is now", 1) for line in risen(old, counts)]
        print(f"{name}: " + ("; ".join([*changed, *(f"fewer, {line}" for line in fell)]) or "as it was"))
    if not args.write:
        return
    if rose:
        if not args.because:
            parser.error("some counts rose: say why in CHANGELOG.md, and give words of that line by --because")
        if args.because not in CHANGELOG.read_text(encoding="utf-8"):
            parser.error(f"{args.because!r} is not in CHANGELOG.md")
        before["rose because"].append(args.because)
    before["counts"] = now
    FILE.write_text(json.dumps(before, indent=1) + "\n", encoding="utf-8")
    print(FILE)


if __name__ == "__main__":
    main()
