"""Generators of synthetic problems: the papers' designs, and some of our own.

References
----------
J. Wang and J. Ye, Safe screening for multi-task feature learning with multiple data matrices, ICML 2015.
P. Gong, J. Zhou, W. Fan and J. Ye, Efficient multi-task feature learning with calibration, KDD 2014.
C. Widmer, M. Kloft, N. Görnitz and G. Rätsch, Efficient training of graph-regularized multitask SVMs, ECML 2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any, Literal

import numpy as np

from ..docstrings import described_by
from .container import TaskDataset

SHARED = """
n_tasks, n_rows, n_features : int
    Tasks, rows of each task, features.
random_state : int, Generator or None
    Seed.
"""

# Columns are made a block at a time, so that no temporary is larger than about this many numbers.
BLOCK_ENTRIES = 1 << 21


@described_by(SHARED)
def make_small_tasks(
    labels: Literal["values", "counts"] | Sequence[Any] = "values",
    *,
    effects: Sequence[float] = (2.0, -1.0),
    noise: float | Sequence[float] = 0.1,
    n_rows: int = 30,
    n_features: int = 8,
    random_state: int | np.random.Generator | None = 0,
) -> TaskDataset:
    r"""A few rows with a known answer, for examples and reports of bugs: of all features only the first matters.

    .. math::  z_i = \text{effect}_t\, x_{i0} + \text{noise}_t\, \epsilon_i, \qquad x_{ij}, \epsilon_i \sim N(0, 1)

    Parameters
    ----------
    labels : {"values", "counts"} or sequence of classes, default="values"
        y is z, or Poisson of rate :math:`e^z`, or one of the classes: equally many rows of each, in the order of z.
    effects : sequence of float
        One per task, at most 26; the tasks are named "a", "b" and so on.
    noise : float or sequence of float
        Of all tasks, or of each.

    Returns
    -------
    TaskDataset
        ``support`` is [0], or empty where no task has an effect.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, support = ts.datasets.make_small_tasks(["no", "yes"], n_rows=3)
    >>> X.shape, y.tolist(), task.tolist()
    ((6, 8), ['yes', 'no', 'no', 'no', 'yes', 'yes'], ['a', 'a', 'a', 'b', 'b', 'b'])
    """
    if isinstance(labels, str) and labels not in ("values", "counts"):
        raise ValueError(f"labels={labels!r} must be 'values', 'counts' or a sequence of classes.")
    if not 0 < len(effects) <= len(ascii_lowercase):
        raise ValueError(f"effects has {len(effects)} entries; there are 1 to {len(ascii_lowercase)} tasks.")
    rng = np.random.default_rng(random_state)
    task = np.repeat(list(ascii_lowercase[: len(effects)]), n_rows)
    X = np.asfortranarray(rng.standard_normal((task.size, n_features)))
    spread = np.broadcast_to(noise, len(effects))
    z = np.repeat(effects, n_rows) * X[:, 0] + np.repeat(spread, n_rows) * rng.standard_normal(task.size)
    if isinstance(labels, str):
        y = z if labels == "values" else rng.poisson(np.exp(z))
    else:
        rank = np.argsort(np.argsort(z))
        y = np.asarray(labels)[rank * len(labels) // task.size]
    return TaskDataset(X, y, task, np.arange(int(np.any(effects))))


@described_by(SHARED)
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

    Returns
    -------
    TaskDataset
        ``X`` of shape (n_tasks * n_rows, n_features), Fortran order.
    """
    if kind not in (1, 2):
        raise ValueError(f"kind={kind!r}: Synthetic 1 and Synthetic 2 exist; give 1 or 2")
    rng = np.random.default_rng(random_state)
    n_true = max(1, n_features // 10)
    support, coefficients = _true_rows(rng, n_features, n_true, n_tasks)
    X = _gaussian_design(rng, n_tasks * n_rows, n_features, 0.0 if kind == 1 else 0.5)
    task = np.repeat(np.arange(n_tasks), n_rows)
    y = _predict_by_task(X, support, coefficients, n_rows)
    y += 0.01 * rng.standard_normal(y.size)
    return TaskDataset(X, y, task, support)


@described_by(SHARED)
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

    Returns
    -------
    TaskDataset
        ``X`` (n_rows, n_features) and ``y`` (n_rows, n_outputs), both in Fortran order; ``task`` None.
    """
    rng = np.random.default_rng(random_state)
    support, coefficients = _true_rows(rng, n_features, n_true, n_outputs)
    X = _gaussian_design(rng, n_rows, n_features, correlation)
    signal = X[:, support] @ coefficients
    noise = rng.standard_normal(signal.shape)
    noise *= np.linalg.norm(signal) / (snr * np.linalg.norm(noise))
    return TaskDataset(X, np.asfortranarray(signal + noise), None, support)


@described_by(SHARED)
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
    n_true : int
        Features with non-zero coefficients, the same in every task.

    Returns
    -------
    TaskDataset
        ``y`` is +1 or -1.
    """
    rng = np.random.default_rng(random_state)
    support, coefficients = _true_rows(rng, n_features, n_true, n_tasks)
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


@described_by(SHARED)
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
        Tasks, people of each task (no person is in two tasks), markers.
    n_true : int
        Causal markers.
    heritability : float
        Share of a trait's variance explained by the causal markers, in (0, 1].
    n_founders : int
        Founder haplotypes.

    Returns
    -------
    TaskDataset
        ``X`` is int8 in Fortran order. Nothing else of its size is allocated on the way.
    """
    rng = np.random.default_rng(random_state)
    n_people = n_tasks * n_rows
    support, effects = _true_rows(rng, n_features, min(n_true, n_features), n_tasks)
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
        y[rows] = np.sqrt(heritability) * signal + np.sqrt(1.0 - heritability) * noise + 10.0 * rng.standard_normal()
    return TaskDataset(X, y, task, support)


@described_by(SHARED)
def make_gong_synthetic(
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
    zero_rows : float
        Share of the features that do not matter.

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


@described_by(SHARED)
def make_heterogeneous_tasks(
    n_tasks: int = 12,
    n_rows: tuple[int, int] = (30, 150),
    n_features: int = 500,
    n_true: int = 15,
    overlap: float = 0.7,
    noise: tuple[float, float] = (0.2, 3.0),
    random_state: int | np.random.Generator | None = None,
) -> TaskDataset:
    r"""Tasks that differ in everything: rows, noise, scale, level, and partly in the features that matter.

    .. math::  y_t = b_t + a_t\,(X_t w_t + \sigma_t \epsilon_t)

    Sizes and noise levels :math:`\sigma_t` (relative to the signal) are drawn log-uniformly from their ranges, scales
    :math:`a_t` from 0.1 to 10, levels :math:`b_t` from N(0, 25); each task uses its own random ``overlap`` of the
    ``n_true`` features, with Gaussian coefficients. Entries of X are standard Gaussian.

    Parameters
    ----------
    n_tasks : int
    n_rows : pair of int
        Smallest and largest task.
    n_features, n_true : int
        Features, and how many of them matter to any task.
    overlap : float
        Share of the ``n_true`` features that a task uses, in (0, 1]; 1: all tasks use the same.
    noise : pair of float
        Smallest and largest ratio of noise to signal.

    Returns
    -------
    TaskDataset
        ``support`` holds the features that matter to at least one task.
    """
    if not 0 < overlap <= 1:
        raise ValueError(f"overlap={overlap!r} must be a share in (0, 1].")
    rng = np.random.default_rng(random_state)

    def log_uniform(low: float, high: float) -> np.ndarray:
        return np.exp(rng.uniform(np.log(low), np.log(high), n_tasks))

    sizes = np.clip(np.rint(log_uniform(*n_rows)).astype(np.int64), *n_rows)
    candidates = rng.choice(n_features, n_true, replace=False)
    scales, levels, ratios = log_uniform(0.1, 10.0), 5.0 * rng.standard_normal(n_tasks), log_uniform(*noise)
    task = np.repeat(np.arange(n_tasks), sizes)
    X = _gaussian_design(rng, task.size, n_features, 0.0)
    y = np.empty(task.size)
    used = []
    for t in range(n_tasks):
        rows = np.flatnonzero(task == t)
        own = rng.choice(candidates, max(1, round(overlap * n_true)), replace=False)
        weights = rng.standard_normal(own.size)
        used.append(own)
        size = ratios[t] * np.linalg.norm(weights)
        z = X[np.ix_(rows, own)] @ weights + size * rng.standard_normal(rows.size)
        y[rows] = levels[t] + scales[t] * z
    return TaskDataset(X, y, task, np.unique(np.concatenate(used)))


@described_by(SHARED)
def make_gauss2d(
    n_rows: int = 100_000,
    n_tasks: int = 2,
    distance: float = 2.0,
    turn: float = 0.3,
    random_state: int | np.random.Generator | None = None,
) -> TaskDataset:
    r"""Gauss2D of Widmer et al. (2012): two isotropic Gaussians in the plane, balanced, in every task.

    The paper says no more. Here the centres of the classes are ``distance`` apart, and from task to task their axis
    turns by ``turn`` radians, so that tasks are related but not the same.

    Parameters
    ----------
    n_rows : int
        Rows of all tasks together; the paper's by default.
    n_tasks : int
    distance : float
        Between the centres, in standard deviations.
    turn : float
        Angle between neighbouring tasks.

    Returns
    -------
    TaskDataset
        ``y`` is +1 or -1; both features matter.
    """
    rng = np.random.default_rng(random_state)
    task = np.sort(np.arange(n_rows) % n_tasks)
    y = np.empty(n_rows)
    for t in range(n_tasks):
        rows = np.flatnonzero(task == t)
        y[rows] = rng.permutation(np.where(np.arange(rows.size) % 2 == 0, 1.0, -1.0))
    angle = turn * task
    centres = 0.5 * distance * y[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = np.asfortranarray(rng.standard_normal((n_rows, 2)) + centres)
    return TaskDataset(X, y, task, np.arange(2))


@described_by(SHARED)
def evolve_consensus(motif: int = 24, random_state: int | np.random.Generator | None = None) -> np.ndarray:
    """Consensus sequences of four organisms, for `make_dna_windows`.

    They evolve along the tree ``((worm,fly),(cress,rice))`` from one root: on every branch a quarter of the letters is
    drawn anew.

    Parameters
    ----------
    motif : int
        Letters of the consensus.

    Returns
    -------
    uint8 array of shape (4, motif)
        Letters 0 to 3 of each organism.
    """
    rng = np.random.default_rng(random_state)

    def child(parent: np.ndarray) -> np.ndarray:
        return np.where(rng.random(motif) < 0.25, rng.integers(4, size=motif), parent)

    root = rng.integers(4, size=motif)
    inner = [child(root), child(root)]
    leaves = [child(inner[0]), child(inner[0]), child(inner[1]), child(inner[1])]
    return np.stack(leaves).astype(np.uint8)


@described_by(SHARED)
def make_dna_windows(
    n_rows: int = 10_000,
    length: int = 141,
    motif: int = 24,
    positive: float = 0.2,
    consensus: np.ndarray | None = None,
    random_state: int | np.random.Generator | None = None,
) -> TaskDataset:
    """DNA windows of four related organisms, some around a signal: a stand-in for splice sites.

    Windows are random letters; in positives a consensus around the middle keeps its letters with a probability that is
    largest in its middle. The consensus evolves along the tree ``((worm,fly),(cress,rice))`` (`evolve_consensus`). The
    data of Widmer et al. (2012) themselves are not public.

    Parameters
    ----------
    n_rows : int
        Windows of all organisms together.
    length, motif : int
        Letters of a window and of the consensus.
    positive : float
        Share of windows with the signal.
    consensus : array of shape (4, motif), optional
        From `evolve_consensus`, so that several sets (to train, to test) share it; default: drawn first.

    Returns
    -------
    TaskDataset
        ``X`` is a 1-D array of strings (bytes), for `tasksieve.WeightedDegreeHasher`; ``y`` +1 or -1; ``task`` the
        leaf of the tree, 0 to 3; ``support`` the positions of the consensus.
    """
    if not 0 < motif <= length:
        raise ValueError(f"motif={motif!r} must be between 1 and length={length!r}.")
    rng = np.random.default_rng(random_state)
    if consensus is None:
        consensus = evolve_consensus(motif, rng)
    elif np.shape(consensus) != (4, motif):
        raise ValueError(f"consensus must have shape (4, {motif}), got {np.shape(consensus)}.")
    consensus = np.asarray(consensus, dtype=np.uint8)

    task = np.sort(rng.integers(4, size=n_rows))
    y = np.where(rng.random(n_rows) < positive, 1.0, -1.0)
    text = rng.integers(4, size=(n_rows, length), dtype=np.uint8)
    begin = (length - motif) // 2
    keep = 0.25 + 0.3 * np.exp(-(((np.arange(motif) - motif / 2) / 6.0) ** 2))
    step = max(1, BLOCK_ENTRIES // motif)
    for start in range(0, n_rows, step):
        block = slice(start, min(n_rows, start + step))
        planted = (y[block, None] > 0) & (rng.random((block.stop - start, motif)) < keep)
        part = text[block, begin : begin + motif]
        part[planted] = consensus[task[block]][planted]
        text[block] = np.frombuffer(b"ACGT", dtype=np.uint8)[text[block]]
    return TaskDataset(text.view(f"S{length}").ravel(), y, task, np.arange(begin, begin + motif))


def _true_rows(
    rng: np.random.Generator, n_features: int, n_true: int, n_tasks: int
) -> tuple[np.ndarray, np.ndarray]:
    """Features that matter to all tasks, sorted, and their Gaussian coefficients."""
    support = np.sort(rng.choice(n_features, n_true, replace=False))
    return support, rng.standard_normal((n_true, n_tasks))


def _gaussian_design(rng: np.random.Generator, n_rows: int, n_features: int, correlation: float) -> np.ndarray:
    """Standard Gaussian rows with correlation ``correlation ** |i - j|``, Fortran order, made in place."""
    by_feature = rng.standard_normal((n_features, n_rows))
    _correlate(by_feature, correlation)
    return by_feature.T


def _correlate(values: np.ndarray, memory: float) -> None:
    """Make independent rows an autoregression, in place."""
    for j in range(1, len(values) if memory else 0):
        values[j] *= np.sqrt(1.0 - memory**2)
        values[j] += memory * values[j - 1]


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
    latent = rng.standard_normal((n_markers, n_founders))
    _correlate(latent, memory)
    frequency = 0.05 * 10.0 ** rng.random(n_markers)
    carriers = np.clip(np.rint(frequency * n_founders).astype(np.int64), 1, max(1, n_founders // 2))
    threshold = np.take_along_axis(np.sort(latent, axis=1), carriers[:, None], axis=1)
    return (latent < threshold).astype(np.int8)
