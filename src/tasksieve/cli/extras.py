"""``tasksieve datasets``, ``tasksieve demo`` and ``tasksieve info``."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .. import datasets
from ..design import thread_count
from ..runs.registry import MODELS
from ..tables import write_arrays, write_table
from ..tables.write import WRITTEN
from ..versions import kernel_file, versions
from .exit_codes import OK, UsageError, say
from .options import Asked
from .progress import working

EXTRAS = {
    "cli": ("typer", "rich"),
    "files": ("pandas", "pyarrow"),
    "formats": ("openpyxl", "pyreadstat"),
    "report": ("jinja2",),
    "data": ("pooch",),
    "export": ("onnx",),
    "plot": ("matplotlib",),
    "river": ("river",),
    "graph": ("networkx",),
}


# --- datasets ----------------------------------------------------------------------------------------------------


def available() -> dict[str, Any]:
    """Generators and loaders of `tasksieve.datasets` by the name that is typed."""
    return {
        name.replace("_", "-"): getattr(datasets, name)
        for name in sorted(datasets.__all__)
        if name.startswith(("make_", "load_", "fetch_"))
    }


def run_datasets(asked: Asked) -> int:
    """List the data sets, or write one to a file."""
    known, name, out = available(), asked.name, asked.out
    if name is None:
        if out is not None or asked.settings:
            raise UsageError("--out, --set: name a data set")
        width = max(map(len, known))
        for key, function in known.items():
            print(f"{key:<{width}}  {(inspect.getdoc(function) or '').partition(chr(10))[0]}")
        print(
            "\ntasksieve datasets NAME --out FILE writes one (.csv, .parquet or .npz); --set n_tasks=5 changes it"
        )
        return OK
    function = known.get(name.replace("_", "-"))
    if function is None:
        raise UsageError(f"there is no data set {name!r}; tasksieve datasets lists them")
    if out is None:
        print(inspect.getdoc(function))
        return OK
    options = read_settings(function, asked.settings or [])
    with working(name, quiet=False):
        found = function(**options)
    X, y, task = found[0], found[1], found[2]
    task_names = getattr(found, "task_names", None)
    if task is not None and task_names:
        task = np.array(task_names)[task]
    write_dataset(Path(out), X, y, task, getattr(found, "feature_names", None))
    say(f"{out}: {X.shape[0]:,} rows" + (f", {X.shape[1]:,} features" if X.ndim == 2 else ""))
    return OK


def read_settings(function: Any, settings: list[str]) -> dict[str, Any]:
    """``--set name=value`` as keyword arguments; values are numbers, true, false, none, or words."""
    known = inspect.signature(function).parameters
    options: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in known:
            raise UsageError(f"--set: {setting!r} is not one of {', '.join(f'{key}=...' for key in known)}")
        options[name] = plain(text.strip())
    return options


def plain(text: str) -> Any:
    """A value as it was typed: a number, True, False and None in any writing (NULL), or a word."""
    words: dict[str, Any] = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def write_dataset(
    out: Path, X: Any, y: np.ndarray, task: np.ndarray | None, names: Sequence[str] | None = None
) -> None:
    """A data set as a table: columns task, y (or y0, y1, ...) and x0, x1, ... (or names), or strings in one column,
    ``text``; or as npz arrays."""
    if not out.parent.is_dir():
        raise UsageError(f"--out: there is no folder {out.parent}")
    ending = out.suffix.lower()
    if ending == ".npz":
        if X.ndim != 2:
            raise UsageError("--out: these rows are strings; write them as .csv or .parquet")
        arrays: dict[str, Any] = {"y": y}
        if task is not None:
            arrays["task"] = task
        if names is not None:
            arrays["feature_names"] = np.array(names, dtype=str)
        if scipy.sparse.issparse(X):
            csr = X.tocsr()
            arrays.update(
                X_data=csr.data, X_indices=csr.indices, X_indptr=csr.indptr, X_shape=np.array(csr.shape)
            )
        else:
            arrays["X"] = np.asarray(X)
        write_arrays(out, arrays)
        return
    if ending not in WRITTEN:
        raise UsageError(f"--out: a .csv, .parquet or .npz file; got {str(out)!r}")
    dense = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)
    columns: dict[str, np.ndarray] = {} if task is None else {"task": np.asarray(task)}
    targets = {"y": y} if y.ndim == 1 else {f"y{t}": y[:, t] for t in range(y.shape[1])}
    columns.update(targets)
    if dense.ndim == 1:
        columns["text"] = np.char.decode(dense, "ascii") if dense.dtype.kind == "S" else dense
    else:
        names = names or [f"x{j}" for j in range(dense.shape[1])]
        columns.update({f"{name}*" if name in columns else name: dense[:, j] for j, name in enumerate(names)})
    write_table(out, columns)


# --- demo --------------------------------------------------------------------------------------------------------


def run_demo(asked: Asked) -> int:
    """Real digits as tasks: written as a table, fitted as any table would be."""
    from .fit import run_fit

    folder = Path(asked.out)
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "digits.npz"
    if not table.exists() or asked.overwrite:
        X, y, task, _ = datasets.load_digits_tasks(n_each=80)
        write_dataset(table, X, y, task)
    if not asked.quiet:
        say(
            "Ten handwritten digits, each against the rest: ten tasks with images of their own.\n"
            f"$ tasksieve fit {table} --target y --task task --model logistic --alphas 40 --eps 0.005 "
            f"--rule 1se --out {folder / 'run'}"
        )
    model = {"model": "logistic", "alphas": "40", "eps": 0.005, "selection_rule": "1se"}
    data = {"table": [str(table)], "target": ["y"], "task": "task"}
    return run_fit(Asked(**{**vars(asked), **data, **model, "command": "fit", "out": str(folder / "run")}))


# --- info --------------------------------------------------------------------------------------------------------


def run_info(asked: Asked) -> int:
    """Versions, kernels, threads, models and extras."""
    for name, value in versions().items():
        print(f"{name:<14} {value}")
    print(f"{'kernel file':<14} {kernel_file()}")
    print(f"{'threads':<14} {thread_count()} (TASKSIEVE_NUM_THREADS, --threads)")
    print(f"{'executable':<14} {sys.executable}")
    print(f"{'data folder':<14} {os.environ.get('TASKSIEVE_DATA', '(TASKSIEVE_DATA is not set)')}")
    for name, packages in EXTRAS.items():
        found = []
        for package in packages:
            try:
                found.append(f"{package} {version(package)}")
            except PackageNotFoundError:
                found.append(f"{package} missing: pip install 'tasksieve[{name}]'")
        print(f"{'extra ' + name:<14} {', '.join(found)}")
    for name, kind in MODELS.items():
        print(f"{'model':<14} {name}: {kind.about}")
    return OK
