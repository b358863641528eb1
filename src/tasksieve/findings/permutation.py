"""Does anything matter? The largest correlation that chance alone would have given, by permuted labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..docstrings import described_by
from ..fitted.arguments import check_number
from ..fitted.fold_assignment import read_seed
from ..fitted.progress import reporter
from ..linear.path_solver import alpha_of
from ..messages import value_error
from ..tasks import TaskData, read_groups, some_of
from ..tasks.named import takes_named_tasks
from .canonical import Canonical, canonical
from .described_data import FINDING
from .path_model import path_model
from .permuted_levels import PermutedLevels

Array = np.ndarray[Any, Any]

_LEVEL = 0.05  # a p-value up to this is called a finding
_TIE = 1e-10  # levels that differ by less are equal but for rounding


@dataclass(frozen=True, repr=False)
class PermutationTest:
    """What `permutation_test` has found.

    Attributes
    ----------
    statistic : float
        alpha_max of the model on the labels as they are.
    null : array of shape (n_permutations,)
        alpha_max for permuted labels.
    pvalue : float
        ``(1 + number of null >= statistic) / (1 + n_permutations)``.
    approximate : bool
        Whether residuals were permuted in place of labels, because of features that are never penalised.
    moved : str
        What changed places, in words.
    """

    statistic: float
    null: Array = field(repr=False)
    pvalue: float
    approximate: bool
    moved: str

    @property
    def n_permutations(self) -> int:
        return len(self.null)

    def __repr__(self) -> str:
        numbers = f"pvalue={self.pvalue:.4g}, statistic={self.statistic:.6g}"
        return f"PermutationTest({numbers}, {len(self.null)} permutations{', approximate' if self.approximate else ''})"

    def summary(self) -> str:
        """The finding in plain words."""
        if self.pvalue <= _LEVEL:
            verdict = "Something matters: at least one feature is related to y in at least one task."
            rest = "The test does not say which feature it is."
        else:
            verdict = "Nothing found: chance alone gives relations as strong as the strongest one here."
            rest = "Whatever is selected may be noise."
        reached = _count_reached(self.null, self.statistic) or "none"
        how = " (approximate: covariates were taken off first)" if self.approximate else ""
        return (
            f"{verdict} In {reached} of {len(self.null):,} permutations of {self.moved} the strongest relation of a "
            f"feature with them (alpha_max) was at least as strong as in the data, {self.statistic:.4g}: "
            f"p = {self.pvalue:.2g}{how}. {rest}"
        )


def _count_reached(null: Array, statistic: float) -> int:
    """Permutations with an alpha_max of at least that of the data."""
    return int(np.count_nonzero(null >= statistic * (1.0 - _TIE)))


@takes_named_tasks
@described_by(FINDING)
def permutation_test(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    task: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    groups: Any = None,
    n_permutations: int = 1000,
    random_state: Any = 0,
) -> PermutationTest:
    """Test whether any feature matters in any task.

    The statistic is alpha_max, the strength from which on the solution is empty: the strongest relation of a feature
    with y over all tasks, as the model's loss and penalty measure it,

        alpha_max = min { alpha : W = 0 minimises loss(W) + alpha Omega(W) }.

    Labels are permuted within tasks, which leaves everything as it is but their relation to X, and alpha_max is
    computed for each permutation, without solving anything. If labels are exchangeable within tasks, where nothing
    matters, the p-value is exact: it is at most a with probability at most a.

    Parameters
    ----------
    model : estimator with `alpha_max`
        Any linear model of the package; of a ``...CV`` model the one that it repeats.
    groups : array of shape (n,), or list of such, optional
        Families, patients: labels of a whole group move together to a group with as many rows in each task, in
        random order. So groups have to be exchangeable, and rows within a group.
    n_permutations : int, default=1000

    Returns
    -------
    PermutationTest
        ``statistic``, ``null``, ``pvalue``, ``summary()``.

    Notes
    -----
    Weights and offsets belong to their labels and move with them; rows of weight 0 are absent and stay. Of survival
    labels entry, time and event move together, within strata.

    One matrix shared by all tasks: rows of Y are permuted, so that relations between the tasks stay as they are; labels
    that are missing move along.

    With features that are never penalised (``feature_weights`` of 0) the residuals of the model on these features alone
    are permuted, freed of the features again and brought to their length; the test is then approximate.

    Small p-values say that something matters, not which feature: see `StabilitySelection` for that.

    References
    ----------
    Phipson and Smyth (2010), "Permutation p-values should never be zero"; Freedman and Lane (1983), "A nonstochastic
    interpretation of reported significance levels".

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(
    ...     effects=[2.0, 2.0, 2.0], noise=1.0, n_rows=20, n_features=100, random_state=1
    ... )
    >>> ts.permutation_test(ts.MultiTaskLasso(), X, y, task=task, n_permutations=99).pvalue
    0.01
    >>> ts.permutation_test(ts.MultiTaskLasso(), X, y - 2.0 * X[:, 0], task=task, n_permutations=99).pvalue
    0.44
    """
    model = path_model(model, "permutation_test")
    check_number(n_permutations, "n_permutations", low=1, closed=True, integer=True)
    seed = read_seed(random_state)
    model._check_parameters()
    data = model._read_with(X, y, task, sample_weight, offset)
    named = None if groups is None else read_groups(groups, data)
    problem = model._problem(data)
    covariates = len(problem.design.unpenalised) > 0
    draw = _permutations(data, named, seed)
    statistic = model._alpha_max(problem, data)
    report = reporter("permutation_test", "permutation", model.verbose)
    levels = PermutedLevels(data, problem, model.n_jobs)(draw, int(n_permutations), report)
    factor = model._norm_share() * model._unit(data)
    null = np.array([alpha_of(problem.units.outward(level), factor) for level in levels.tolist()])
    pvalue = (1 + _count_reached(null, statistic)) / (1 + int(n_permutations))
    moved = "rows of Y" if data.shared else "the labels within tasks"
    moved += " and strata" if data.strata is not None else ""
    if named is not None:
        moved += ", whole groups together"
    if covariates:
        moved = moved.replace("labels", "residuals").replace("rows of Y", "rows of residuals")
    return PermutationTest(statistic, null, pvalue, covariates, moved)


def _permutations(data: TaskData, named: tuple[Array, Array] | None, seed: int) -> Callable[[int], Array]:
    """``draw(k)``: the next k permutations of the rows, (k, rows), as the row whose label comes to a row."""
    own = canonical(data)
    if named is not None:
        if data.strata is not None:
            raise value_error(
                "{groups} cannot be permuted within strata: leave the groups out, or make a group a stratum."
            )
        shufflers = _by_groups(data, own, named, seed)
    else:
        parts = [(k, *part) for k, rows in enumerate(own.rows) for part in _strata(data, rows)]
        moving = [(k, number, rows) for k, number, rows in parts if len(rows) > 1]
        shufflers = [partial(_shuffle_rows, rows, own.stream(seed, k, more=number)) for k, number, rows in moving]
    if not shufflers:
        why = "every task has one row only. Give tasks with two observed rows or more."
        if named is not None:
            why = "no two groups have as many rows in each task. Use groups of the same sizes."
        raise ValueError(f"{'y' if named is None else 'groups'}: nothing can be permuted, {why}")

    def draw(count: int) -> Array:
        sources = np.tile(np.arange(data.n_rows), (count, 1))
        for shuffle in shufflers:
            shuffle(sources)
        return sources

    return draw


def _strata(data: TaskData, rows: Array) -> list[tuple[tuple[int, ...], Array]]:
    """Rows that may change places: all, or those of each stratum (in every task of a shared matrix)."""
    if data.strata is None:
        return [((), rows)]
    of_row = data.y["stratum"].reshape(data.n_tasks if data.shared else 1, -1).T[rows]
    kinds, position = np.unique(of_row, axis=0, return_inverse=True)
    return [(tuple(kind), rows[position.ravel() == k]) for k, kind in enumerate(kinds.tolist())]


def _shuffle_rows(rows: Array, stream: np.random.Generator, sources: Array) -> None:
    """Of a task, or of a shared matrix."""
    sources[:, rows] = stream.permuted(np.tile(rows, (len(sources), 1)), axis=1)


def _by_groups(
    data: TaskData, own: Canonical, named: tuple[Array, Array], seed: int
) -> list[Callable[[Array], None]]:
    """A shuffler for groups with as many rows in each task."""
    names, of_row = named
    if data.order is not None:
        of_row = of_row[data.order]
    tasks = sorted(range(len(own.rows)), key=lambda k: own.seeds[k])
    members: dict[int, dict[int, list[int]]] = {}
    for k in tasks:
        for row in own.rows[k].tolist():
            members.setdefault(int(of_row[row]), {}).setdefault(k, []).append(row)
    kinds: dict[tuple[tuple[int, int], ...], list[dict[int, list[int]]]] = {}
    for rows in members.values():  # in the order of their first rows, which is canonical
        kinds.setdefault(tuple((k, len(part)) for k, part in rows.items()), []).append(rows)
    if max(len(part) for part in own.rows) > 1 and len(members) == 1:
        some = some_of(names.tolist())
        raise value_error("{groups}: all rows belong to {some}; it takes two groups to permute them.", some=some)
    found: list[Callable[[Array], None]] = []
    for kind, alike in kinds.items():
        if len(alike) > 1:
            parts, counts = tuple(k for k, _ in kind), tuple(count for _, count in kind)
            # one stream for the groups and one for their rows: so that permutations may be drawn in any portions
            streams = [own.stream(seed, *parts, more=(*counts, which)) for which in range(1 + len(parts))]
            blocks = [np.array([rows[k] for rows in alike]) for k in parts]
            found.append(partial(_shuffle_groups, blocks, streams))
    return found


def _shuffle_groups(blocks: list[Array], streams: list[np.random.Generator], sources: Array) -> None:
    """Of groups with as many rows in each task, a block (groups x rows) for each: the groups change places, and so do
    rows within them."""
    order = streams[0].permuted(np.tile(np.arange(len(blocks[0])), (len(sources), 1)), axis=1)
    for block, stream in zip(blocks, streams[1:], strict=True):
        sources[:, block] = stream.permuted(block[order], axis=2)
