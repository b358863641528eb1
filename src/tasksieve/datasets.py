"""Problems to try, test and measure with: generators of the literature's synthetic designs, and loaders.

Every generator returns a :class:`TaskDataset`, which unpacks as ``X, y, task, support``: rows stacked and
sorted by task, the matrix in Fortran order (one feature's rows of all tasks contiguous: the library's own
layout), and the sorted indices of the features that truly matter.

References
----------
J. Wang and J. Ye, Safe screening for multi-task feature learning with multiple data matrices, ICML 2015.
P. Gong, J. Zhou, W. Fan and J. Ye, Efficient multi-task feature learning with calibration, KDD 2014.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

__all__ = [
    "TaskDataset",
    "data_folder",
    "load_digits_tasks",
    "make_calibration_synthetic",
    "make_genotypes",
    "make_shared_regression",
    "make_task_classification",
    "make_wang_synthetic",
    "one_vs_rest_tasks",
]

# Columns are made a block at a time, so that no temporary is larger than about this many numbers.
BLOCK_ENTRIES = 1 << 21


class TaskDataset(NamedTuple):
    """A multi-task problem: stacked rows, targets, task labels, true features.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        Stacked data, rows sorted by task.
    y : array of shape (n_rows,), or (n_rows, n_outputs) for one shared matrix
        Targets; +1 and -1 for classification.
    task : integer array of shape (n_rows,), or None for one shared matrix
        Task of each row.
    support : integer array
        Sorted indices of the features used to make y; empty for real data.
    """

    X: Any
    y: np.ndarray
    task: np.ndarray | None
    support: np.ndarray


def make_wang_synthetic(
    kind: int = 1,
    n_tasks: int = 50,
    n_rows: int = 50,
    n_features: int = 10_000,
    random_state: int | np.random.Generator | None = None,
) -> TaskDataset:
    r"""Synthetic 1 and 2 of Wang & Ye (2015), section 5.1.

    .. math::  y_t = X_t w_t^* + 0.01\,\epsilon, \qquad \epsilon \sim N(0, I)

    The rows of X_t are standard Gaussian, independent over tasks, with correlation 0 (kind 1) or
    :math:`0.5^{|i-j|}` (kind 2) between features i and j. One tenth of the features, the same in every task,
    have standard Gaussian coefficients; the others have none.

    Parameters
    ----------
    kind : {1, 2}
        Synthetic 1 (independent features) or Synthetic 2 (correlated features).
    n_tasks, n_rows, n_features : int
        Tasks, rows of each task, features.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    TaskDataset
        ``X`` of shape (n_tasks * n_rows, n_features), Fortran order.
    """
    if kind not in (1, 2):
        raise ValueError(f"kind={kind!r}: Synthetic 1 and Synthetic 2 exist; give 1 or 2")
    rng = np.random.default_rng(random_state)
    n_true = max(1, n_features // 10)
    support = np.sort(rng.choice(n_features, n_true, replace=False))
    coefficients = rng.standard_normal((n_true, n_tasks))
    X = _gaussian_design(rng, n_tasks * n_rows, n_features, 0.0 if kind == 1 else 0.5)
    task = np.repeat(np.arange(n_tasks), n_rows)
    y = _predict_by_task(X, support, coefficients, n_rows)
    y += 0.01 * rng.standard_normal(y.size)
    return TaskDataset(X, y, task, support)


def make_calibration_synthetic(
    n_tasks: int = 10,
    n_rows: int = 100,
    n_features: int = 200,
    zero_rows: float = 0.95,
    random_state: int | np.random.Generator | None = None,
) -> TaskDataset:
    r"""The synthetic data of Gong et al. (2014), section 4.1: tasks of falling noise.

    .. math::  y_t = X_t w_t^* + 2 \sqrt 2 \cdot 2^{-(t-1)/4}\,\epsilon, \qquad \epsilon \sim N(0, I)

    The rows of X_t are Gaussian, independent over tasks, with correlation 0.5 between all features, and every column of
    X_t is scaled to length 1. The coefficients of the features that matter, the same in every task, are uniform in
    (-10, 10).

    Parameters
    ----------
    n_tasks, n_rows, n_features : int
        Tasks, rows of each task, features.
    zero_rows : float
        Share of the features that do not matter.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    TaskDataset
        ``X`` of shape (n_tasks * n_rows, n_features), Fortran order.
    """
    rng = np.random.default_rng(random_state)
    n_true = n_features - round(zero_rows * n_features)
    support = np.sort(rng.choice(n_features, n_true, replace=False))
    coefficients = rng.uniform(-10.0, 10.0, (n_true, n_tasks))
    X = _gaussian_design(rng, n_tasks * n_rows, n_features, 0.0)
    X += rng.standard_normal((n_tasks * n_rows, 1))  # the common half of the variance
    for start in range(0, n_tasks * n_rows, n_rows):
        X[start : start + n_rows] /= np.linalg.norm(X[start : start + n_rows], axis=0)
    task = np.repeat(np.arange(n_tasks), n_rows)
    y = _predict_by_task(X, support, coefficients, n_rows)
    y += 2.0 * np.sqrt(2.0) * 2.0 ** (-task / 4.0) * rng.standard_normal(y.size)
    return TaskDataset(X, y, task, support)


def make_shared_regression(
    n_rows: int = 300,
    n_features: int = 20_000,
    n_outputs: int = 50,
    n_true: int = 20,
    snr: float = 3.0,
    correlation: float = 0.0,
    random_state: int | np.random.Generator | None = None,
) -> TaskDataset:
    r"""One design shared by all outputs: :math:`Y = X W^* + E`, :math:`\|X W^*\|_F = \mathrm{snr}\,\|E\|_F`.

    Columns of X are standard Gaussian with correlation ``correlation ** |i - j|``; ``n_true`` rows of W* are
    standard Gaussian, the others zero.

    Parameters
    ----------
    n_rows, n_features, n_outputs : int
        Shape of the problem.
    n_true : int
        Features with a non-zero row.
    snr : float
        Ratio of the norms of signal and noise.
    correlation : float
        Correlation of neighbouring features, in [0, 1).
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    TaskDataset
        ``X`` (n_rows, n_features) and ``y`` (n_rows, n_outputs), both in Fortran order; ``task`` None.
    """
    rng = np.random.default_rng(random_state)
    support = np.sort(rng.choice(n_features, n_true, replace=False))
    coefficients = rng.standard_normal((n_true, n_outputs))
    X = _gaussian_design(rng, n_rows, n_features, correlation)
    signal = X[:, support] @ coefficients
    noise = rng.standard_normal(signal.shape)
    noise *= np.linalg.norm(signal) / (snr * np.linalg.norm(noise))
    return TaskDataset(X, np.asfortranarray(signal + noise), None, support)


def make_task_classification(
    n_tasks: int = 20,
    n_rows: int = 100,
    n_features: int = 5_000,
    n_true: int = 10,
    random_state: int | np.random.Generator | None = None,
) -> TaskDataset:
    r"""Logistic tasks, each with its own matrix and intercept.

    .. math::  P(y = 1) = 1 / (1 + e^{-(x \cdot w_t + b_t)})

    Entries of X and the ``n_true`` non-zero rows of W are standard Gaussian, the intercepts have standard
    deviation one half. Each task holds both classes.

    Parameters
    ----------
    n_tasks, n_rows, n_features : int
        Tasks, rows of each task, features.
    n_true : int
        Features with non-zero coefficients, the same in every task.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    TaskDataset
        ``y`` is +1 or -1.
    """
    rng = np.random.default_rng(random_state)
    support = np.sort(rng.choice(n_features, n_true, replace=False))
    coefficients = rng.standard_normal((n_true, n_tasks))
    intercept = 0.5 * rng.standard_normal(n_tasks)
    X = _gaussian_design(rng, n_tasks * n_rows, n_features, 0.0)
    task = np.repeat(np.arange(n_tasks), n_rows)
    score = _predict_by_task(X, support, coefficients, n_rows) + intercept[task]
    y = np.where(rng.random(score.size) < 1.0 / (1.0 + np.exp(-score)), 1.0, -1.0)
    for t in range(n_tasks):
        rows = y[t * n_rows : (t + 1) * n_rows]
        if n_rows > 1 and abs(rows.sum()) == n_rows:
            rows[np.argmin(rows * score[t * n_rows : (t + 1) * n_rows])] *= -1.0
    return TaskDataset(X, y, task, support)


def make_genotypes(
    n_tasks: int = 20,
    n_rows: int = 50,
    n_features: int = 504_095,
    n_true: int = 20,
    heritability: float = 0.5,
    n_founders: int = 120,
    random_state: int | np.random.Generator | None = None,
) -> TaskDataset:
    r"""Genotypes 0, 1, 2 (copies of the minor allele) of unrelated people, and one trait per task.

    The default shape is that of the ADNI study in Wang & Ye (2015): 20 tasks of 50 people, 504,095 markers.

    *Allele frequencies* have the density 1/f between 0.05 and 0.5, as common variants have under neutral
    drift. *Correlation between neighbours*: the genome is cut at recombination hotspots into blocks of 20
    markers on average. Inside a block founder haplotypes come from a thresholded Gaussian autoregression; a
    person's two haplotypes copy one founder each through a block, and keep it beyond a hotspot with
    probability 0.7. So correlation is high and uneven within blocks and fades over the next ones.

    *Traits*: with g the genotypes standardised over all people, the same ``n_true`` causal markers in every
    task, Gaussian effects, and noise that leaves the given heritability,

    .. math::  y_t = m_t + \sum_j g_j w_{jt} + \epsilon .

    Parameters
    ----------
    n_tasks, n_rows, n_features : int
        Tasks, people of each task (nobody is in two tasks), markers.
    n_true : int
        Causal markers.
    heritability : float
        Share of a trait's variance explained by the causal markers, in (0, 1].
    n_founders : int
        Founder haplotypes.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    TaskDataset
        ``X`` is int8 in Fortran order. Nothing else of its size is allocated on the way.
    """
    rng = np.random.default_rng(random_state)
    n_people = n_tasks * n_rows
    support = np.sort(rng.choice(n_features, min(n_true, n_features), replace=False))
    effects = rng.standard_normal((support.size, n_tasks))
    by_feature = np.empty((n_features, n_people), dtype=np.int8)
    copied = rng.integers(n_founders, size=(2, n_people))
    start = 0
    while start < n_features:
        stop = min(n_features, start + int(rng.geometric(1 / 20)))
        founders = _founder_block(rng, stop - start, n_founders)
        np.take(founders, copied[0], axis=1, out=by_feature[start:stop])
        by_feature[start:stop] += founders[:, copied[1]]
        moves = rng.random(copied.shape) < 0.3
        copied[moves] = rng.integers(n_founders, size=int(moves.sum()))
        start = stop
    X = by_feature.T
    task = np.repeat(np.arange(n_tasks), n_rows)
    causal = by_feature[support].T.astype(np.float64)
    causal -= causal.mean(axis=0)
    spread = causal.std(axis=0)
    causal /= np.where(spread > 0, spread, 1.0)
    y = np.empty(n_people)
    for t in range(n_tasks):
        rows = slice(t * n_rows, (t + 1) * n_rows)
        signal = causal[rows] @ effects[:, t]
        noise = rng.standard_normal(n_rows) * np.sqrt(effects[:, t] @ effects[:, t])
        y[rows] = (
            np.sqrt(heritability) * signal
            + np.sqrt(1.0 - heritability) * noise
            + 10.0 * rng.standard_normal()
        )
    return TaskDataset(X, y, task, support)


def one_vs_rest_tasks(
    X: Any,
    labels: np.ndarray,
    n_each: int = 50,
    random_state: int | np.random.Generator | None = None,
) -> TaskDataset:
    """One task per class, each on rows of its own: ``n_each`` rows of it (+1) against ``n_each`` others (-1).

    So Wang & Ye (2015) make tasks of TDT2 (50 + 50 documents of 30 categories) and of the Animal data.

    Parameters
    ----------
    X : array or scipy sparse matrix of shape (n, n_features)
        All rows.
    labels : array of shape (n,)
        Their classes.
    n_each : int
        Positive and negative rows of each task; a class with fewer rows gives all it has.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    TaskDataset
        A dense ``X`` becomes Fortran ordered, a sparse one CSC; ``support`` is empty.
    """
    rng = np.random.default_rng(random_state)
    labels = np.asarray(labels)
    rows, y, task = [], [], []
    for t, label in enumerate(np.unique(labels)):
        for sign, candidates in (
            (1.0, np.flatnonzero(labels == label)),
            (-1.0, np.flatnonzero(labels != label)),
        ):
            chosen = rng.choice(candidates, min(n_each, candidates.size), replace=False)
            rows.append(chosen)
            y.append(np.full(chosen.size, sign))
            task.append(np.full(chosen.size, t))
    order = np.concatenate(rows)
    stacked = X.tocsr()[order].tocsc() if sparse.issparse(X) else np.asfortranarray(np.asarray(X)[order])
    return TaskDataset(stacked, np.concatenate(y), np.concatenate(task), np.empty(0, dtype=np.int64))


def load_digits_tasks(n_each: int = 50, random_state: int | np.random.Generator | None = 0) -> TaskDataset:
    """Ten one-vs-rest tasks on scikit-learn's embedded 8 x 8 digits, each on rows of its own.

    Parameters
    ----------
    n_each : int
        Images of the digit and of other digits in each task.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    TaskDataset
        ``X`` of shape (20 * n_each, 64): pixels 0 to 16; ``y`` +1 or -1; ``task`` is the digit.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    return one_vs_rest_tasks(digits.data, digits.target, n_each, random_state)


def data_folder() -> Path:
    """Folder of the real data sets: the environment variable TASKSIEVE_DATA, or ``../shared/datasets``.

    The default is taken relative to the checkout of the project that holds the current directory, or that
    this module was loaded from.

    Returns
    -------
    pathlib.Path
        An existing folder.

    Raises
    ------
    FileNotFoundError
        Names the variable to set.
    """
    named = os.environ.get("TASKSIEVE_DATA")
    if named is not None:
        folder = Path(named).expanduser()
        if folder.is_dir():
            return folder
        raise FileNotFoundError(
            f"TASKSIEVE_DATA={named!r} is not a folder; set it to the folder of the .npz data sets"
        )
    tried = []
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for root in (start, *start.parents):
            if (root / "pyproject.toml").is_file():
                folder = root.parent / "shared" / "datasets"
                if folder.is_dir():
                    return folder
                tried.append(str(folder))
                break
    raise FileNotFoundError(
        "the real data sets were not found"
        + (f" in {' or '.join(dict.fromkeys(tried))}" if tried else "")
        + "; set the environment variable TASKSIEVE_DATA to the folder that holds them"
    )


def _gaussian_design(
    rng: np.random.Generator, n_rows: int, n_features: int, correlation: float
) -> np.ndarray:
    """Standard Gaussian rows with correlation ``correlation ** |i - j|``, Fortran order, made in place."""
    by_feature = np.empty((n_features, n_rows))
    rng.standard_normal(out=by_feature)
    if correlation:
        fresh = np.sqrt(1.0 - correlation**2)
        for j in range(1, n_features):
            by_feature[j] *= fresh
            by_feature[j] += correlation * by_feature[j - 1]
    return by_feature.T


def _predict_by_task(X: np.ndarray, support: np.ndarray, coefficients: np.ndarray, n_rows: int) -> np.ndarray:
    """X_t w_t for each task, the support's columns gathered in blocks."""
    n_total = X.shape[0]
    n_tasks = n_total // n_rows
    prediction = np.zeros((n_tasks, n_rows))
    step = max(1, BLOCK_ENTRIES // max(1, n_total))
    for first in range(0, support.size, step):
        columns = X[:, support[first : first + step]].reshape(n_tasks, n_rows, -1)
        prediction += np.einsum("tnj,jt->tn", columns, coefficients[first : first + step])
    return prediction.ravel()


def _founder_block(rng: np.random.Generator, n_markers: int, n_founders: int) -> np.ndarray:
    """Minor alleles (0 or 1) of the founders at neighbouring markers, shape (n_markers, n_founders).

    A latent Gaussian autoregression along the markers is cut, marker by marker, at the order statistic that
    gives the drawn frequency exactly, so that no marker is constant among the founders.
    """
    memory = rng.uniform(0.8, 0.99)
    fresh = np.sqrt(1.0 - memory**2)
    latent = rng.standard_normal((n_markers, n_founders))
    for j in range(1, n_markers):
        latent[j] *= fresh
        latent[j] += memory * latent[j - 1]
    frequency = 0.05 * 10.0 ** rng.random(n_markers)
    carriers = np.clip(np.rint(frequency * n_founders).astype(np.int64), 1, max(1, n_founders // 2))
    threshold = np.take_along_axis(np.sort(latent, axis=1), carriers[:, None], axis=1)
    return (latent < threshold).astype(np.int8)
