"""The data sets of the audit: where each comes from, and the same numbers for every program.

One rule for all, fixed before anything was run: at most 300 rows and 500 columns, drawn with the seed 0 where there are
more (rows by chance, in classes as they fall; columns by chance); columns that are constant, or equal to an earlier one
or its negative, are left out, because they make solutions ambiguous by design; the others are centred and divided by
their standard deviations (that divide by n), which glmnet and pyspark do themselves as shipped. Labels stay in
their own units. Nothing else is done to any of them.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
DATA = Path(
    os.environ.get("TASKSIEVE_AUDIT_DATA", HERE / "data")
)  # prepared arrays; not kept in version control
FOLDER = Path(os.environ.get("TASKSIEVE_DATA", HERE.parent.parent / "shared" / "datasets"))
ROWS, COLUMNS, SEED = 300, 500, 0
LOSSES = ("squared", "logistic", "poisson", "multinomial", "cox", "grouped")

Array = np.ndarray[Any, Any]
Raw = tuple[Array, dict[str, Array]]


@dataclass(frozen=True)
class DataSet:
    """A public data set.

    - `source`: who distributes the copy that is read, and the paper or the package to cite.
    - `losses`: those whose labels it has; "cox" has two columns, time and event.
    - `read`: its columns as they are, and labels by loss.
    - `copied`: whether its numbers may be copied freely; where not, certificates and coefficients are made again.
    """

    name: str
    source: str
    losses: tuple[str, ...]
    read: Callable[[], Raw]
    copied: bool = False


@dataclass(frozen=True)
class Prepared:
    """What every program is given."""

    X: Array
    y: Array
    digest: str
    notes: tuple[str, ...] = ()


def prepare(name: str, loss: str) -> Prepared:
    """Arrays of one data set for one loss, made once and then read from `DATA`."""
    file = DATA / f"{name}.{loss}.npz"
    if not file.exists():
        X, labels = DATASETS[name].read()
        for one, y in labels.items():
            _write(DATA / f"{name}.{one}.npz", *_same_for_all(np.asarray(X, dtype=float), np.asarray(y)))
    with np.load(file) as kept:
        X, y, notes = kept["X"], kept["y"], tuple(kept["notes"].tolist())
    digest = hashlib.sha256(X.tobytes(order="C") + np.ascontiguousarray(y).tobytes()).hexdigest()
    return Prepared(np.asfortranarray(X), y, digest, notes)


def _write(file: Path, X: Array, y: Array, notes: list[str]) -> None:
    file.parent.mkdir(exist_ok=True)
    part = file.with_name(file.name + ".part.npz")
    np.savez_compressed(part, X=X, y=y, notes=np.array(notes, dtype=str))
    os.replace(part, file)


def _same_for_all(X: Array, y: Array) -> tuple[Array, Array, list[str]]:
    """The rule at the top of this file."""
    rng, notes = np.random.default_rng(SEED), []
    known = np.isfinite(X).all(axis=1) & np.isfinite(y.reshape(len(y), -1)).all(axis=1)
    X, y = X[known], y[known]
    if len(X) > ROWS:
        notes.append(f"{ROWS} of {len(X)} rows")
        rows = np.sort(rng.choice(len(X), ROWS, replace=False))
        X, y = X[rows], y[rows]
    X = X[:, np.ptp(X, axis=0) > 0.0]
    if X.shape[1] > COLUMNS:
        notes.append(f"{COLUMNS} of {X.shape[1]} columns")
        X = X[:, np.sort(rng.choice(X.shape[1], COLUMNS, replace=False))]
    X = X - X.mean(axis=0)
    X = X / np.sqrt(np.mean(X * X, axis=0))
    products = np.abs(X.T @ X) / len(X)
    copies = (np.triu(products, 1) > 1.0 - 1e-9).any(axis=0)
    if copies.any():
        notes.append(f"{int(copies.sum())} copies of other columns left out")
        X = X[:, ~copies]
        products = products[np.ix_(~copies, ~copies)]
    if X.shape[1] > 1 and np.triu(products, 1).max() > 0.99:
        notes.append("has columns correlated above 0.99")
    if y.ndim == 2 and y.shape[1] == 2 and np.isin(y[:, 1], (0.0, 1.0)).all():
        deaths = y[y[:, 1] == 1.0, 0]
        if len(np.unique(deaths)) < len(deaths):
            notes.append("tied times of events")
    return X, y, notes


# --- where they come from ---------------------------------------------------------------------------------------------


def _archive(name: str) -> dict[str, Array]:
    file = FOLDER / f"{name}.npz"
    if not file.is_file():
        raise FileNotFoundError(
            f"{file} was not found: set TASKSIEVE_DATA to the folder of the real data sets"
        )
    with np.load(file, allow_pickle=False) as kept:
        return {key: kept[key] for key in kept.files}


def _dense(kept: dict[str, Array]) -> Array:
    from scipy import sparse

    if "indptr" not in kept:
        return kept["X"].astype(float)
    parts = (kept["data"].astype(float), kept["indices"].astype("int32"), kept["indptr"])
    return np.asarray(sparse.csr_matrix(parts, shape=tuple(kept["shape"])).toarray())


def _diabetes() -> Raw:
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import PolynomialFeatures

    X, y = load_diabetes(return_X_y=True)
    return PolynomialFeatures(2, include_bias=False).fit_transform(X), {"squared": y}


def _sklearn(name: str, loss: str) -> Callable[[], Raw]:
    def read() -> Raw:
        import sklearn.datasets

        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        return X, {loss: y}

    return read


def _usps() -> Raw:
    kept = _archive("usps")
    return kept["X"].astype(float), {"multinomial": kept["y"].astype(int)}


def _usps_pair() -> Raw:
    kept = _archive("usps")
    label = kept["y"].astype(int)
    rows = np.isin(label, (3, 8))
    return kept["X"][rows].astype(float), {"logistic": (label[rows] == 8).astype(int)}


def _protein() -> Raw:
    kept = _archive("protein")
    return _dense(kept), {"multinomial": kept["y"].astype(int)}


def _mice() -> Raw:
    kept = _archive("mice_eqtl")
    return kept["X"].astype(float), {"squared": kept["Y"][:, 0], "grouped": kept["Y"][:, :10]}


def _mouse() -> Raw:
    kept = _archive("mouse_hs")
    Y = kept["Y"].astype(float)
    complete = np.isfinite(Y).all(axis=0)
    return kept["X"].astype(float), {"squared": Y[:, complete][:, 0], "grouped": Y[:, complete]}


def _parkinsons() -> Raw:
    kept = _archive("parkinsons")
    Y = kept["Y"].astype(float)
    return kept["X"].astype(float), {"squared": Y[:, 1], "grouped": Y}


def _sarcos() -> Raw:
    kept = _archive("sarcos")
    Y = kept["Y"].astype(float)
    return kept["X"].astype(float), {"squared": Y[:, 0], "grouped": Y}


def _school() -> Raw:
    kept = _archive("school")
    return kept["X"].astype(float), {"squared": kept["y"].astype(float)}


def _medical() -> Raw:
    kept = _archive("medical")
    Y = kept["Y"].astype(int)
    return _dense(kept), {"logistic": Y[:, int(Y.sum(axis=0).argmax())]}


def _tdt2() -> Raw:
    kept = _archive("tdt2")
    label = kept["y"].astype(int)
    rows = np.flatnonzero(label < 2)
    rng = np.random.default_rng(SEED)
    rows = np.sort(rng.choice(rows, ROWS, replace=False))
    X = _dense(kept)[rows]
    often = np.argsort(-(X > 0).sum(axis=0), kind="stable")[:COLUMNS]  # a word without a use is no column
    return X[:, np.sort(often)], {"logistic": label[rows]}


def _statsmodels(name: str, label: str, loss: str, leave: tuple[str, ...] = ()) -> Callable[[], Raw]:
    def read() -> Raw:
        import statsmodels.api as sm

        table = getattr(sm.datasets, name).load_pandas().data
        y = table[label].to_numpy(dtype=float)
        if loss == "logistic":
            y = (y > 0).astype(int)
        if loss == "multinomial":
            y = np.unique(y, return_inverse=True)[1]
        return table.drop(columns=[label, *leave]).to_numpy(dtype=float), {loss: y}

    return read


def _from_r(name: str, loss: str) -> Callable[[], Raw]:
    """Of an R package, as `export.R` writes it: columns, then columns of labels, whose names begin with ..y."""

    def read() -> Raw:
        words = ["Rscript", str(HERE / "export.R"), name]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        head, *lines = text.strip().splitlines()
        names = head.split(",")
        table = np.array(
            [[float(cell) if cell != "NA" else np.nan for cell in line.split(",")] for line in lines]
        )
        labels = np.array([column.startswith("..y") for column in names])
        y = table[:, labels] if labels.sum() > 1 else table[:, labels].ravel()
        if loss in ("logistic", "multinomial"):
            y = np.unique(y, return_inverse=True)[1]
        return table[:, ~labels], {loss: y}

    return read


def _survival(name: str) -> Callable[[], Raw]:
    """Of scikit-survival, read in its own environment by `export_survival.py`."""

    def read() -> Raw:
        import tempfile

        from environments import python_of

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "data.npz"
            script = HERE / "export_survival.py"
            subprocess.run([str(python_of("scikit-survival")), str(script), name, str(file)], check=True)
            with np.load(file) as kept:
                return kept["X"], {"cox": kept["y"]}

    return read


_GLMNET = "R package glmnet 4.1-6 (its example data)"
_SURVIVAL = "R package survival 3.5-3"
_SKSURV = "scikit-survival 0.28"
_MASS = "R package MASS 7.3-58.2 (Venables and Ripley 2002)"

DATASETS = {
    one.name: one
    for one in (
        # least squares; several outputs
        DataSet("diabetes", "scikit-learn, with products of two (Efron et al. 2004)", ("squared",), _diabetes, True),
        DataSet("quick-start", _GLMNET, ("squared",), _from_r("QuickStartExample", "squared")),
        DataSet("school", "London schools (Goldstein 1991)", ("squared",), _school),
        DataSet("mice-eqtl", "R package spls (Lan et al. 2006)", ("squared", "grouped"), _mice),
        DataSet("mouse-hs", "R package BGLR (Valdar et al. 2006)", ("squared", "grouped"), _mouse),
        DataSet("parkinsons", "UCI (Tsanas et al. 2010), CC BY 4.0", ("squared",), _parkinsons, True),
        DataSet("sarcos", "robot arm (Vijayakumar and Schaal 2000)", ("grouped",), _sarcos),
        DataSet("several-outputs", _GLMNET, ("grouped",), _from_r("MultiGaussianExample", "grouped")),
        # two classes
        DataSet(
            "breast-cancer", "scikit-learn (Street et al. 1993)", ("logistic",), _sklearn("breast_cancer", "logistic"),
            True,
        ),
        DataSet("two-classes", _GLMNET, ("logistic",), _from_r("BinomialExample", "logistic")),
        DataSet("usps-3-8", "digits 3 and 8 (Le Cun et al. 1989)", ("logistic",), _usps_pair),
        DataSet("medical", "clinical text (Pestian et al. 2007)", ("logistic",), _medical),
        DataSet("tdt2", "news, two subjects (Cai, He and Han 2005)", ("logistic",), _tdt2),
        DataSet("birthwt", _MASS, ("logistic",), _from_r("birthwt", "logistic")),
        DataSet("pima", _MASS, ("logistic",), _from_r("Pima", "logistic")),
        # counts
        DataSet("counts", _GLMNET, ("poisson",), _from_r("PoissonExample", "poisson")),
        DataSet("quine", _MASS, ("poisson",), _from_r("quine", "poisson")),
        DataSet("epil", _MASS, ("poisson",), _from_r("epil", "poisson")),
        DataSet("randhie", "statsmodels (RAND)", ("poisson",), _statsmodels("randhie", "mdvis", "poisson")),
        # more than two classes
        DataSet("iris", "scikit-learn (Fisher 1936)", ("multinomial",), _sklearn("iris", "multinomial"), True),
        DataSet("wine", "scikit-learn (Forina)", ("multinomial",), _sklearn("wine", "multinomial"), True),
        DataSet("digits", "scikit-learn (Alpaydin, Kaynak)", ("multinomial",), _sklearn("digits", "multinomial"), True),
        DataSet("usps", "digits (Le Cun et al. 1989)", ("multinomial",), _usps),
        DataSet("protein", "LIBSVM (Wang 2002)", ("multinomial",), _protein),
        DataSet("three-classes", _GLMNET, ("multinomial",), _from_r("MultinomialExample", "multinomial")),
        DataSet(
            "anes96", "statsmodels (election study 1996)", ("multinomial",),
            _statsmodels("anes96", "PID", "multinomial"),
        ),
        # survival
        DataSet("cox-example", _GLMNET, ("cox",), _from_r("CoxExample", "cox")),
        DataSet("lung", _SURVIVAL, ("cox",), _from_r("lung", "cox")),
        DataSet("pbc", _SURVIVAL, ("cox",), _from_r("pbc", "cox")),
        DataSet("gbsg2", _SKSURV, ("cox",), _survival("gbsg2")),
        DataSet("whas500", _SKSURV, ("cox",), _survival("whas500")),
        DataSet("veterans-lung", _SKSURV, ("cox",), _survival("veterans_lung_cancer")),
        DataSet("breast-genes", _SKSURV + " (Desmedt et al. 2007)", ("cox",), _survival("breast_cancer")),
        DataSet("flchain", _SKSURV, ("cox",), _survival("flchain")),
    )
}  # fmt: skip
