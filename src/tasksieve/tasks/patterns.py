"""Which columns tasks have: rows of a task with the same present columns are a task of their own, a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..messages import either, value_error
from ..row_names import label_word, row_name, row_numbers
from .labels import label_array, some_of

Array = np.ndarray[Any, Any]
Unseen = Literal["error", "nearest"]


@dataclass(frozen=True)
class Patterns:
    """Tasks that have some of the columns each.

    - `names` (array of shape (P,)): Labels of the tasks, sorted: those of the patterns.
    - `of` (array of shape (P,), or None): The task, as it was given, whose rows each has; None: there were none.
    - `present` (bool array of shape (P, d)): Which columns each has.
    """

    names: Array
    of: Array | None
    present: Array

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_features(self) -> int:
        return int(self.present.shape[1])

    @property
    def complete(self) -> bool:
        """Whether all of them have all columns."""
        return bool(self.present.all())

    @classmethod
    def of_tasks(cls, tasks: Array, n_features: int, single: bool = False) -> Patterns:
        """Of tasks that have all columns."""
        return cls(tasks, None if single else tasks, np.ones((len(tasks), n_features), dtype=bool))

    def subset(self, names: Sequence[Any]) -> Patterns:
        """Some of them, in that order."""
        place = {name: k for k, name in enumerate(self.names.tolist())}
        chosen = np.array([place[name] for name in names], dtype=np.int64)
        of = None if self.of is None else self.of[chosen]
        return Patterns(self.names[chosen], of, self.present[chosen])

    def words(self, k: int) -> str:
        """What one has: ``900 of 1,200 columns``."""
        return f"{int(self.present[k].sum()):,} of {self.n_features:,} columns"

    def family(self, k: int) -> Any:
        """The task, as it was given, of one."""
        return None if self.of is None else self.of[k : k + 1].tolist()[0]

    def families(self) -> tuple[Array, Array]:
        """The tasks as they were given, sorted ("all rows" where there were none), and the place of each pattern's."""
        if self.of is None:
            return np.array(["all rows"]), np.zeros(len(self), dtype=np.int64)
        tasks, places = np.unique(self.of, return_inverse=True)
        return tasks, places.ravel()

    def place(self, other: Patterns, unseen: Unseen, codes: Array, rows: Array, remedy: str) -> Array:
        """Where those of other rows are among these: the same columns of the same task or, `unseen` being "nearest",
        the largest part of its columns. What has no place is a ValueError that names rows.

        - `codes` (int array): Which pattern of the other each row has; those not met are not placed (-1).
        - `rows` (int array): What the rows are called, counted from 0.
        """
        found = np.full(len(other), -1)
        counts = np.bincount(codes, minlength=len(other))
        for k in np.flatnonzero(counts).tolist():
            family = other.family(k)
            if self.of is None and other.of is None:
                same = np.arange(len(self))
            else:
                same = np.array([m for m in range(len(self)) if self.family(m) == family], dtype=np.int64)
            if not len(same):
                self._refuse_task(family, int(rows[np.argmax(codes == k)]))
            equal = same[(self.present[same] == other.present[k]).all(axis=1)]
            if not len(equal) and unseen == "nearest":
                equal = largest_part(self.present, same, other.present[k])[:1]
            if not len(equal):
                self._refuse(other, k, rows[codes == k], same, unseen, remedy)
            found[k] = equal[0]
        return found

    def _refuse_task(self, family: Any, row: int) -> None:
        known = [] if self.of is None else list(dict.fromkeys(self.of.tolist()))
        if family is None or not known:
            words = "the rows have tasks, and the model has none" if family is not None else "the rows have no task"
            raise value_error("{task}: {words}: give them as for the fit.", words=words)
        raise value_error(
            "task {name!r} in {row} is unknown: the model was fitted on {known}.",
            name=family, row=row_name(row), known=some_of(known),
        )  # fmt: skip

    def _refuse(self, other: Patterns, k: int, which: Array, same: Array, unseen: Unseen, remedy: str) -> None:
        named, family = row_numbers(which.tolist()), other.family(k)
        where = "" if family is None else f" of task {family!r}"
        if unseen == "nearest":
            raise value_error(
                "rows {named}{where} have {have}, and no pattern that was fitted needs only these: there is no "
                "model for them. Leave them out, or fill in what is missing (row 1 is the first).",
                named=named, where=where, have=other.words(k),
            )  # fmt: skip
        raise value_error(
            "rows {named}{where} have {have} in a pattern that was not fitted ({n} of them were; row 1 is the "
            "first). {remedy}.",
            named=named, where=where, have=other.words(k), n=len(same), remedy=remedy,
        )  # fmt: skip

    def on_columns(self, places: Array, n_features: int) -> Patterns:
        """The same where column j is column ``places[j]`` of so many others, which they do not have."""
        present = np.zeros((len(self), n_features), dtype=bool)
        present[:, places] = self.present
        return replace(self, present=present)


def largest_part(present: Array, candidates: Array, columns: Array) -> Array:
    """Those of the candidates all of whose columns are among these, most columns first; of as many, the first."""
    inside = candidates[~(present[candidates] & ~columns).any(axis=1)]
    return inside[np.argsort(-present[inside].sum(axis=1), kind="stable")]


def find_patterns(masks: Array, families: Array) -> tuple[Array, Array, Array]:
    """The different rows of (task, present columns): their tasks, their masks packed into bits, and which of them each
    row has. In the order of tasks, most columns first, of as many the one that comes first in the data.

    - `masks` (uint8 array): Present columns of each row, packed into bits.
    - `families` (int array): The place of its task among the sorted tasks.
    """
    keys = np.hstack([families.astype(">i8").view(np.uint8).reshape(len(families), 8), masks])
    keys = np.ascontiguousarray(keys)
    flat = keys.view(np.dtype((np.void, keys.shape[1]))).ravel()
    _, first, codes = np.unique(flat, return_index=True, return_inverse=True)
    sizes = np.unpackbits(masks[first], axis=1).sum(axis=1, dtype=np.int64)
    order = np.lexsort((first, -sizes, families[first]))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return families[first[order]], masks[first[order]], place[codes.ravel()]


def merge_small(families: Array, present: Array, codes: Array, min_rows: int, called: Array) -> Array:
    """Which pattern stands for each, so that all that stand have so many rows: columns that a row has are dropped until
    its pattern is the largest that is left for its task. One after the other, the smallest first, is left out; what
    cannot be is a ValueError that names rows, as they are `called`, counted from 0."""
    stands = np.arange(len(families))
    counts = np.bincount(codes, minlength=len(families))
    for family in np.unique(families).tolist():
        own = np.flatnonzero(families == family)
        bits, sizes = present[own].astype(np.float32), present[own].sum(axis=1)
        inside = bits @ bits.T == sizes  # inside[p, q]: the columns of q are among those of p
        kept = np.ones(len(own), dtype=bool)
        while True:
            target = np.where(inside & kept, sizes, -1).argmax(axis=1)
            total = np.bincount(target, counts[own], minlength=len(own))
            small = np.flatnonzero(kept & (total < min_rows))
            if not len(small):
                break
            # one that all its rows can leave: each of them has the columns of another
            movable = [k for k in small if all((inside[p] & kept).sum() > 1 for p in np.flatnonzero(target == k))]
            if not movable:
                k = int(small[0])
                rows = called[np.isin(codes, own[target == k])]
                raise value_error(
                    "{asked}: a pattern of {columns:,} of {d:,} columns has {n} rows only (rows {named}; row 1 "
                    "is the first), and no other pattern of its task has a part of these columns. Lower it, leave "
                    "these rows out, or fill in what is missing.",
                    asked=either(f"min_rows={min_rows}", f"--pattern-rows {min_rows}"), columns=int(sizes[k]),
                    d=present.shape[1], n=len(rows), named=row_numbers(rows.tolist()),
                )  # fmt: skip
            kept[min(movable, key=lambda k: (total[k], -sizes[k], k))] = False
        stands[own] = own[target]
    return stands


def pattern_names(labels: Array | None, families: Array) -> Array:
    """A readable label for each pattern: ``A/1``, ``A/2`` of task A; the task's own where it has one pattern.

    - `labels` (array, or None): The sorted tasks, as they were given.
    - `families`: The place among them of the task of each pattern.
    """
    counts = np.bincount(families)
    if labels is None:
        width = len(str(len(families)))
        return np.zeros(1, dtype=np.int64) if len(families) == 1 else np.array(
            [f"pattern {k + 1:0{width}}" for k in range(len(families))]
        )
    if counts.max(initial=1) == 1:
        return labels[families]
    for always in (False, True):
        names, seen = [], np.zeros(len(counts), dtype=np.int64)
        for family in families.tolist():
            seen[family] += 1
            label, width = label_word(labels[family : family + 1].tolist()[0]), len(str(counts[family]))
            names.append(label if counts[family] == 1 and not always else f"{label}/{seen[family]:0{width}}")
        if len(set(names)) == len(names):
            break  # where a task is called as a pattern of another, all names say the pattern
    return label_array(names)
