"""Complementary halves of the rows: pairs of 0/1 weights, drawn within tasks.

What is drawn is a *unit*: a row; all rows of a group; the row of a matrix that tasks share. Units are halved within
strata: those with rows in the same tasks, and of the same classes where targets are classes. What is left of strata
with an odd number of units goes to the halves by turns, in random order, beginning with a random half.

The halves are a function of the seed and of the data as a set of rows in a set of tasks: not of the order of the rows,
the names of tasks and groups, or the form in which the data came. For that, rows are distinguished by their content
(labels, and as many columns as it takes), and each task draws from a stream of its own, seeded by its rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ..fitted.arguments import check_choice
from ..fitted.fold_assignment import read_seed
from ..messages import setting, value_error
from ..outcomes import columns
from ..tasks import TaskData, read_groups, some_of
from .ranks import content_names, content_ranks

Array = np.ndarray[Any, Any]
SmallTasks = Literal["error", "drop"]

_NOWHERE = -1  # the unit of samples that are in neither half
_ATTEMPTS = 1000  # at drawing halves in which every task has rows


@dataclass(frozen=True)
class Halves:
    """Pairs of complementary halves; the halves of pair b are 2b and 2b + 1."""

    first: Array  # (n_pairs, n_units): whether a unit is in the first half of a pair; otherwise it is in the second
    unit: Array  # of each entry of the flat sample space; -1: in neither half
    dropped: list[Any] = field(default_factory=list)  # labels of tasks too small to be halved
    words: str = ""  # how they were drawn

    def __len__(self) -> int:
        """Halves."""
        return 2 * len(self.first)

    def weights(self, half: int, weights: Array) -> Array:
        """Sample weights of a half: those given, and 0 outside."""
        pair, second = divmod(half, 2)
        inside = (self.first[pair] != bool(second))[self.unit] & (self.unit != _NOWHERE)
        return np.where(inside, weights, 0.0)


def draw_halves(
    data: TaskData, n_pairs: int, random_state: Any = 0, *, groups: Any = None, small_tasks: SmallTasks = "error"
) -> Halves:
    """Draw pairs of complementary halves, each task in both; rows of one group are in the same half, in all tasks."""
    check_choice(small_tasks, "small_tasks", ("error", "drop"))
    seed = read_seed(random_state)
    named = None if groups is None else read_groups(groups, data)
    unit = data.flatten_rows(np.arange(data.n_rows) if named is None else named[1])
    samples = np.flatnonzero(data.weights > 0.0)
    units = np.unique(np.stack([data.task_of_sample[samples], unit[samples]]), axis=1)  # of each task
    small = np.flatnonzero(np.bincount(units[0], minlength=data.n_tasks) < 2)
    dropped = data.tasks[small].tolist()
    if dropped and small_tasks == "error":
        own = samples[data.task_of_sample[samples] == small[0]]
        _refuse_small(dropped, len(own), None if named is None else named[0][unit[own[:1]]])
    samples = samples[~np.isin(data.task_of_sample[samples], small)]
    if not len(samples):
        raise ValueError("No task has two rows (or groups of rows), so that there is nothing to halve.")
    own, code = np.unique(unit[samples], return_inverse=True)
    drawn = _Units(data, samples, code.astype(np.int64), len(own))
    first = np.zeros((n_pairs, len(own)), dtype=bool)
    for stream, strata, tasks in drawn.blocks(seed):
        for b in range(n_pairs):
            _halve(first[b], stream, strata, drawn, tasks, "rows" if named is None else "groups")
    of_sample = np.full(len(data.y), _NOWHERE)
    of_sample[samples] = code
    kind = "rows" if named is None else "whole groups of rows"
    within = "tasks" if data.classes is None else "classes of tasks"
    within += ", stratified by event" if data.balanced_by == "event" else ""
    pairs = "1 pair" if n_pairs == 1 else f"{n_pairs} pairs"
    words = f"{pairs} of complementary halves of {kind}, within {within}, seed {seed}"
    return Halves(first, of_sample, dropped, words)


def _halve(
    first: Array, stream: np.random.RandomState, strata: Sequence[Array], drawn: _Units, tasks: Array, kind: str
) -> None:
    """Draw the units of the first half, until every task has units in both."""
    for _ in range(_ATTEMPTS):
        rest = []
        for units in strata:
            mixed = stream.permutation(units)
            middle = len(units) // 2
            first[mixed[:middle]], first[mixed[middle:]] = True, False
            rest += mixed[2 * middle :].tolist()
        mixed = stream.permutation(rest).astype(np.int64)
        first[mixed[stream.randint(2) :: 2]] = True
        if len(tasks) == 1:  # at least two units, and so at least one in each half
            return
        inside = drawn.units_of_tasks[tasks] @ first.astype(np.int64)
        alone = np.flatnonzero((inside == 0) | (inside == drawn.units_a_task[tasks]))
        if not len(alone):
            return
    t = tasks[alone[0]]
    otherwise = "use smaller groups" if kind == "groups" else "stack the rows (task=) so that tasks are halved alone"
    raise ValueError(
        f"{kind}: no draw put {kind} of every task into both halves; task {drawn.names[t]!r} has "
        f"{drawn.units_a_task[t]}, which belong to other tasks as well. Leave the task out, or {otherwise}."
    )


class _Units:
    """Units in an order that depends only on the content of their rows; `unit` is that of each sample, from 0."""

    def __init__(self, data: TaskData, samples: Array, unit: Array, n_units: int) -> None:
        self.names = data.tasks.tolist()
        task = data.task_of_sample[samples]
        ranks = _ranks(data, samples, task)
        self._digests = _task_digests(data, samples, task, ranks)
        present = sorted(self._digests, key=self._digests.__getitem__)
        position = np.full(data.n_tasks, -1)  # of a task in an order of its own
        position[present] = np.arange(len(present))
        self.units_of_tasks = csr_array(
            (np.ones(len(unit), dtype=np.int64), (task, unit)), shape=(data.n_tasks, n_units)
        )
        self.units_of_tasks.data[:] = 1  # a unit may have several rows in a task
        self.units_a_task = np.diff(self.units_of_tasks.indptr)
        codes = data.balance_codes
        classes = np.zeros(len(samples), dtype=np.int64) if codes is None else codes[samples]
        kinds = np.stack([position[task], classes], axis=1).astype(np.int64)
        alone = n_units == len(samples)
        self._strata = _strata_of_rows(unit, ranks, kinds) if alone else _strata_of_units(unit, ranks, kinds)
        self._task_of_unit = np.empty(n_units, dtype=np.int64)
        self._task_of_unit[unit] = task  # any of them: they are in one block

    def blocks(self, seed: int) -> Iterator[tuple[np.random.RandomState, list[Array], Array]]:
        """Tasks that units tie together: their stream of random numbers, their strata of units, and which they are."""
        shared = (self.units_of_tasks @ self.units_of_tasks.T).tocsr()
        narrow = (shared.data, shared.indices.astype(np.int32), shared.indptr.astype(np.int32))
        # with wide indices SciPy 1.11 prints an error and gives an answer all the same
        _, of_task = connected_components(csr_array(narrow, shape=shared.shape), directed=False)
        strata: dict[int, list[Array]] = {}
        for units in self._strata:
            strata.setdefault(int(of_task[self._task_of_unit[units[0]]]), []).append(units)
        for block, own_strata in strata.items():
            tasks = np.flatnonzero((of_task == block) & (self.units_a_task > 0))
            own = hashlib.sha256(b"".join(sorted(self._digests[int(t)] for t in tasks))).digest()
            words = np.frombuffer(own, dtype=">u4").astype(np.int64).tolist()
            # RandomState: its numbers are the same in every version of NumPy
            yield np.random.RandomState([seed, *words]), own_strata, tasks


def _strata_of_rows(unit: Array, ranks: Array, kinds: Array) -> list[Array]:
    """Units of one row each, stratum by stratum, in an order of their own."""
    order = np.lexsort((ranks, kinds[:, 1], kinds[:, 0]))
    changes = np.flatnonzero(np.any(kinds[order][1:] != kinds[order][:-1], axis=1)) + 1
    return np.split(unit[order], changes)


def _strata_of_units(unit: Array, ranks: Array, kinds: Array) -> list[Array]:
    """The same for units of several rows: those with rows of the same kinds are a stratum."""
    order = np.lexsort((ranks, kinds[:, 1], kinds[:, 0], unit))
    # big-endian, so that bytes are ordered as numbers are
    content = np.column_stack([kinds, ranks])[order].astype(">i8")
    cuts = np.flatnonzero(np.diff(unit[order], prepend=-1)).tolist()
    strata: dict[bytes, list[tuple[bytes, int]]] = {}
    for u, own in enumerate(np.split(content, cuts[1:])):
        strata.setdefault(np.unique(own[:, :2], axis=0).tobytes(), []).append((own.tobytes(), u))
    return [np.array([u for _, u in sorted(strata[key])]) for key in sorted(strata)]


def _ranks(data: TaskData, samples: Array, task: Array) -> Array:
    """The place of each sample in its task, sorted by label, weight, offset and columns; equal ones have the same."""
    rows = samples % data.n_rows if data.shared else samples
    keys = [data.weights[samples], *(own + 0.0 for own in columns(data.y[samples])), task]
    if data.known is not None and len(data.known) == len(data.y):
        keys.insert(0, data.known[samples])
    ranks = content_ranks(data, rows, keys)
    return ranks - np.searchsorted(task, np.arange(data.n_tasks))[task]


def _task_digests(data: TaskData, samples: Array, task: Array, ranks: Array) -> dict[int, bytes]:
    """A name of each task by its content: a hash of its labels in order, and of as many columns as distinguish it from
    all others; tasks that are the same in all of them are numbered."""
    order = np.lexsort((ranks, task))
    samples, task = samples[order], task[order]
    spans = {int(t): slice(*np.searchsorted(task, [t, t + 1])) for t in np.unique(task)}
    rows = samples % data.n_rows if data.shared else samples
    tasks = sorted(spans, key=lambda t: data.weights[samples[spans[t]]].tobytes())
    labels = [b"".join((own + 0.0).tobytes() for own in columns(data.y[samples[spans[t]]])) for t in tasks]
    return dict(zip(tasks, content_names(data, labels, [rows[spans[t]] for t in tasks]), strict=True))


def _refuse_small(names: list[Any], n_rows: int, group: Array | None) -> None:
    """The first of the tasks has so many rows; with groups all are of one."""
    if group is None or n_rows < 2:
        what = "one row that counts (n_samples=1" if n_rows else "no row that counts (n_samples=0"
        said = f"Task {names[0]!r} has {what}, observed and of positive weight), and cannot be halved"
    else:
        only = group.tolist()[0]
        said = f"groups: all rows of task {names[0]!r} are of one group ({only!r}), and cannot be halved"
    others = f"; so it is with {len(names) - 1} more ({some_of(names[1:])})" if names[1:] else ""
    raise value_error(
        "{said}{others}. Give it more rows, leave it out, or leave out all such tasks with {drop}.",
        said=said,
        others=others,
        drop=setting("small_tasks", "'drop'"),
    )
