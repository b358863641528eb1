"""Genotypes as X: people are rows, variants are columns, and the calls stay at 2 bits where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .._kernels import kernels
from ..design import BesideStorage, DenseStorage, PlinkStorage, Storage, thread_count
from ..tasks import read_task
from .alleles import Matched
from .cohort import Cohort
from .rows import GenotypeRows
from .table import Table

Array = np.ndarray[Any, Any]

BLOCK_BYTES = 16 << 20  # packed calls handled at a time where a file is looked through
DECODED = 1 << 22  # calls decoded at a time for a prediction


class Genotypes(Storage):
    """What `tasksieve.read_plink`, `read_pgen` and `read_vcf_zarr` give; pass it as X to any batch estimator.

    A column counts the copies of a variant's effect allele: the first one of a .bim file, else ALT. A missing call is
    the mean of the called rows of its task in the data that a model is fitted to; also in `predict`,
    for any X.

    Attributes
    ----------
    shape : (people, features)
        Features are the covariates, if there are any, and then the variants.
    variants : data frame
        chr, pos, id, effect_allele, other_allele. Without pandas: a table of arrays, ``X.variants["pos"]``.
    samples : data frame
        fid, iid, father, mother, sex, phenotype, cohort: in the order of the rows.
    dropped : dict
        How many people and variants were left out, by reason.
    matched : dict
        With ``like=``, for each cohort how its variants were found: ``X.matched[name].counts()`` says how many are
        matched, counted by the other allele (swapped), on the other strand (flipped), ambiguous (A/T, C/G: taken to be
        on the same strand), found by their identifier, or missing.
    n_covariates : int
    feature_names : array of str
        Names of the covariates; identifier and effect allele of the variants, as in ``rs123_A``.
    feature_weights : array
        0 for covariates, which are not penalised, 1 for variants: for the estimators' parameter of that name.
    """

    dtype = np.dtype(np.int8)
    finite = True

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        variants: Table,
        cohort_of: Array,
        person: Array,
        *,
        covariates: Array | None = None,
        covariate_names: Sequence[str] = (),
        dropped: dict[str, int] | None = None,
        matched: dict[str, Matched] | None = None,
    ) -> None:
        self._cohorts, self._variants = list(cohorts), variants
        self._cohort_of, self._person = cohort_of, person  # of each row: its cohort, and its place there
        self.n_variants = len(variants)
        self.covariates = np.empty((len(person), 0)) if covariates is None else covariates
        self._covariate_names = list(covariate_names)
        self.n_covariates = self.covariates.shape[1]
        self.n_rows, self.n_features = len(person), self.n_covariates + self.n_variants
        self.dropped, self.matched = dict(dropped or {}), dict(matched or {})
        self._made: tuple[Any, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_made": None}

    def __repr__(self) -> str:
        beside = f", {self.n_covariates} covariates" if self.n_covariates else ""
        cohorts = f" in {len(self._cohorts)} cohorts" if len(self._cohorts) > 1 else ""
        return f"Genotypes of {self.n_rows:,} people{cohorts}, {self.n_variants:,} variants{beside}"

    # -- what they are ----------------------------------------------------------------------------------------------

    @property
    def n_cohorts(self) -> int:
        return len(self._cohorts)

    @property
    def variant_table(self) -> Table:
        return self._variants

    @cached_property
    def sample_table(self) -> Table:
        people = [cohort.people for cohort in self._cohorts]
        names = np.array([cohort.name for cohort in self._cohorts], dtype=object)
        columns = {name: self._by_row([own[name] for own in people]) for name in people[0].columns}
        return Table({**columns, "cohort": names[self._cohort_of]})

    def _by_row(self, values: Sequence[Array]) -> Array:
        """What is known of the people of each cohort, in the order of the rows."""
        starts = np.cumsum([0, *map(len, values)])
        return np.concatenate(values)[starts[self._cohort_of] + self._person]

    @property
    def variants(self) -> Any:
        return self._variants.to_frame()

    @property
    def samples(self) -> Any:
        return self.sample_table.to_frame()

    @cached_property
    def feature_names(self) -> Array:
        names = [f"{name}_{allele}" for name, allele in self._variants.pairs("id", "effect_allele")]
        return np.array([*self._covariate_names, *names], dtype=object)

    @property
    def feature_weights(self) -> Array:
        return np.repeat([0.0, 1.0], [self.n_covariates, self.n_variants])

    # -- others made of them ----------------------------------------------------------------------------------------

    def _with(self, **changes: Any) -> Genotypes:
        same: dict[str, Any] = {
            "cohorts": self._cohorts,
            "variants": self._variants,
            "cohort_of": self._cohort_of,
            "person": self._person,
            "covariates": self.covariates,
            "covariate_names": self._covariate_names,
            "dropped": self.dropped,
            "matched": self.matched,
        }
        return type(self)(**{**same, **changes})

    def with_people(self, rows: Array) -> Genotypes:
        """Some rows, by index or by flags, in any order.

        Parameters
        ----------
        rows : array of int or of bool

        Returns
        -------
        Genotypes
        """
        return self._with(
            cohort_of=self._cohort_of[rows], person=self._person[rows], covariates=self.covariates[rows]
        )

    def with_variants(self, chosen: Array, dropped: dict[str, int] | None = None) -> Genotypes:
        """Some variants, by index or by flags.

        Parameters
        ----------
        chosen : array of int or of bool
        dropped : dict, optional
            Why the others are left out: added to `dropped`.

        Returns
        -------
        Genotypes
        """
        return self._with(
            cohorts=[cohort.with_variants(chosen) for cohort in self._cohorts],
            variants=self._variants.take(chosen),
            dropped={**self.dropped, **(dropped or {})},
        )

    def among(self, places: Array, variants: Table) -> Genotypes:
        """These in some places of a longer list of variants, of which the others are missing for all people.

        Parameters
        ----------
        places : array of int
        variants : Table
            The longer list.

        Returns
        -------
        Genotypes
        """
        cohorts = [cohort.among(places, len(variants)) for cohort in self._cohorts]
        return self._with(cohorts=cohorts, variants=variants)

    def with_covariates(self, covariates: Any, names: Sequence[str] | None = None) -> Genotypes:
        """The same genotypes behind columns of ordinary numbers, which are the first features.

        Parameters
        ----------
        covariates : array of shape (people, q), or data frame
            In the order of `samples`, nothing missing.
        names : list of str, optional
            By default the columns of a frame, else covariate1, covariate2, ...

        Returns
        -------
        Genotypes
            Give its ``feature_weights`` to the estimator, and the covariates are not penalised.
        """
        values = np.asarray(covariates, dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or len(values) != self.n_rows:
            raise ValueError(
                f"covariates has shape {values.shape}, but there are {self.n_rows} people: give one row for each, in "
                "the order of samples."
            )
        own = getattr(covariates, "columns", None) if names is None else names
        own = [f"covariate{k + 1}" for k in range(values.shape[1])] if own is None else [str(name) for name in own]
        if len(own) != values.shape[1]:
            raise ValueError(f"names has {len(own)} entries, but there are {values.shape[1]} covariates.")
        if not np.isfinite(values).all():
            row, k = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
            raise ValueError(
                f"covariates: {own[k]!r} of person {row + 1} (person 1 is the first) is {values[row, k]}: leave such "
                "people out (with_people), or impute the value."
            )
        return self._with(
            covariates=np.column_stack([self.covariates, values]), covariate_names=[*self._covariate_names, *own]
        )

    def held(self, bits: int | None = None) -> tuple[Genotypes, Array]:
        """The same with all calls in use (or dosages of so many bits) in memory; and flags of variants that some file
        turns out not to give."""
        cohorts, person = list(self._cohorts), self._person.copy()
        useless = np.zeros(self.n_variants, dtype=bool)
        for k, cohort in enumerate(self._cohorts):
            here = self._cohort_of == k
            used = np.unique(self._person[here])
            used = used if len(used) else np.array([0])  # a cohort is never without people
            cohorts[k], not_given = cohort.held(used, bits)
            person[here] = np.searchsorted(used, self._person[here])
            useless |= not_given
        return self._with(cohorts=cohorts, person=person), useless

    # -- columns ----------------------------------------------------------------------------------------------------

    def in_task_order(self, row_order: Array | None, offsets: Array) -> Any:
        order = np.arange(self.n_rows) if row_order is None else row_order
        key = (order.tobytes(), np.asarray(offsets).tobytes())
        if self._made is None or self._made[0] != key:
            self._made = (key, self._make(order, np.asarray(offsets, dtype=np.int64)))
        return self._made[1]

    def _make(self, order: Array, offsets: Array) -> Any:
        threads = thread_count()
        parts: list[Any] = []
        if self.n_covariates:
            parts.append(DenseStorage(np.asfortranarray(self.covariates[order])))
        first = self._cohorts[0]
        if len(self._cohorts) == 1 and first.lies_as(self._person[order]):
            for k, file in enumerate(first.files):
                index = first.index[first.home == k]
                if len(index):
                    whole = np.array_equal(index, np.arange(len(file.calls)))
                    parts.append(PlinkStorage(file.calls, self.n_rows, offsets, None if whole else index, threads))
        else:
            packed = self._packed(np.arange(self.n_variants), order, threads)
            parts.append(PlinkStorage(packed, self.n_rows, offsets, None, threads))
        return parts[0] if len(parts) == 1 else BesideStorage(parts)

    def _packed(self, variants: Array, order: Array, threads: int) -> Array:
        out = np.zeros((len(variants), (len(order) + 3) // 4), dtype=np.uint8)
        for k, cohort in enumerate(self._cohorts):
            own = np.flatnonzero(self._cohort_of[order] == k)
            if len(own):
                first = 4 * (int(own[0]) // 4)
                chosen = order[first : own[-1] + 1]
                people = np.where(self._cohort_of[chosen] == k, self._person[chosen], -1)
                cohort.copy(variants, people, first, threads, out)
        return out

    def packed_blocks(self, order: Array | None = None, variants: Array | None = None) -> Iterator[tuple[Array, Array]]:
        """(variants, their packed calls), so many at a time.

        Parameters
        ----------
        order : array of int, optional
            Of the people; by default as they are.
        variants : array of int, optional
        """
        order, first = np.arange(self.n_rows) if order is None else order, self._cohorts[0]
        chosen = np.arange(self.n_variants) if variants is None else np.asarray(variants, dtype=np.int64)
        step = max(1, 4 * BLOCK_BYTES // max(len(order), 4))
        lies = len(self._cohorts) == 1 and len(first.files) == 1 and first.lies_as(self._person[order])
        lies = lies and len(chosen) > 0 and bool((np.diff(first.index[chosen]) == 1).all())
        for low in range(0, len(chosen), step):
            own = chosen[low : low + step]
            if lies:  # so much of the file, in one stretch
                yield own, first.files[0].calls[first.index[own[0]] : first.index[own[-1]] + 1]
            else:
                yield own, self._packed(own, order, thread_count())

    def counts(self, variants: Array | None = None, *, task: Any = None) -> Array:
        """Calls of two copies, of one copy, and missing ones.

        Parameters
        ----------
        variants : array of int, optional
            By default all.
        task : array of labels, one per person, optional
            By default all people are one.

        Returns
        -------
        int array of shape (variants, tasks, 3)
            Tasks in sorted order.
        """
        n_tasks = len(task_order(self.n_rows, task)[1]) - 1
        found = [counts for _, counts in self.count_blocks(task=task, variants=variants)]
        return np.concatenate([np.empty((0, n_tasks, 3), dtype=np.int32), *found])

    def count_blocks(self, *, task: Any = None, variants: Array | None = None) -> Iterator[tuple[Array, Array]]:
        """(variants, their `counts`), so many at a time."""
        order, offsets = task_order(self.n_rows, task)
        for own, packed in self.packed_blocks(order, variants):
            counts = np.empty((len(own), len(offsets) - 1, 3), dtype=np.int32)
            kernels.genotype_counts(packed.view(np.ndarray), self.n_rows, None, offsets, thread_count(), counts)
            yield own, counts

    def holes_by_person(self) -> Array:
        """Missing calls of each person."""
        return self._by_row([cohort.holes_by_person(thread_count()) for cohort in self._cohorts])

    def calls(self, variants: Array) -> Array:
        """Copies of the effect allele, NaN where a call is missing: (people, variants)."""
        variants = np.asarray(variants, dtype=np.int64)
        out = np.empty((self.n_rows, len(variants)), order="F")
        packed, threads = self._packed(variants, np.arange(self.n_rows), thread_count()), thread_count()
        missing, one_task = np.full((len(variants), 1), np.nan), np.array([0, self.n_rows])
        indices = np.arange(len(variants))
        kernels.genotype_columns(packed, self.n_rows, indices, missing, None, one_task, threads, out)
        return out

    def take(self, features: Array) -> Array:
        """Columns as float64; missing calls are means over all people."""
        features = np.asarray(features, dtype=np.int64)
        out = np.empty((self.n_rows, len(features)), order="F")
        free = features < self.n_covariates
        out[:, free] = self.covariates[:, features[free]]
        own = np.flatnonzero(~free)
        for some, calls in self._decoded(features[own] - self.n_covariates):
            out[:, own[some]] = np.where(np.isnan(calls), self._means(calls), calls)
        return out

    def _means(self, calls: Array) -> Array:
        """What stands for missing calls of each column: the mean over its calls; 0 where there is none."""
        called = ~np.isnan(calls)
        total, count = np.where(called, calls, 0.0).sum(axis=0), called.sum(axis=0)
        return np.divide(total, count, out=np.zeros(calls.shape[1]), where=count > 0)

    def _decoded(self, variants: Array) -> Iterator[tuple[slice, Array]]:
        """Which of the variants, and their `calls`, some at a time."""
        step = max(1, DECODED // max(self.n_rows, 1))
        for low in range(0, len(variants), step):
            some = slice(low, low + step)
            yield some, self.calls(variants[some])

    def fill_values(self, variants: Array, codes: Array) -> Array:
        """What stands for missing calls of some variants in each task: (variants, tasks), tasks in sorted order.

        Parameters
        ----------
        variants : array of int
        codes : array of int, one per person
        """
        counts = self.counts(variants, task=codes).astype(np.int64)
        copies = 2 * counts[:, :, 0] + counts[:, :, 1]
        called = np.unique(codes, return_counts=True)[1] - counts[:, :, 2]
        uncalled = called == 0
        copies = np.where(uncalled, copies.sum(axis=1, keepdims=True), copies)
        called = np.where(uncalled, called.sum(axis=1, keepdims=True), called)
        return np.where(called > 0, copies / np.maximum(called, 1), 0.0)

    def readable(self, codes: Array | None = None) -> GenotypeRows:
        """As a verifier reads them.

        Parameters
        ----------
        codes : array of int, one per person, optional
            The task of each, by whose means missing calls are filled; by default all people are one.
        """
        return GenotypeRows(self, codes)

    # -- predictions ------------------------------------------------------------------------------------------------

    def filled(self, fills: Any) -> Any:
        """The same with given means, task by task, for missing calls: what a model predicts from."""
        return _Filled(self, fills)

    def linear_scores(self, coef: Array, intercept: Array, codes: Array | None, fills: Any = None) -> Array:
        """See `tasksieve.tasks.linear_scores`; without `fills` missing calls are the means over all people here."""
        q, tasks = self.n_covariates, len(coef)
        every = self.covariates @ coef[:, :q].T + intercept
        support = q + np.flatnonzero(coef[:, q:].any(axis=0))
        for some, calls in self._decoded(support - q):
            own = support[some]
            weights = coef[:, own].T
            missing = np.isnan(calls)
            means = np.broadcast_to(self._means(calls)[:, None], (len(own), tasks))
            if fills is not None:
                known = fills.of(own)
                means = np.where(np.isnan(known), means, known)
            every += np.where(missing, 0.0, calls) @ weights
            if missing.any():
                every += missing @ (weights * means)
        return every if codes is None else every[np.arange(self.n_rows), codes]


class _Filled:
    """Genotypes whose missing calls are known means."""

    def __init__(self, genotypes: Genotypes, fills: Any) -> None:
        self._genotypes, self._fills, self.shape = genotypes, fills, genotypes.shape

    def linear_scores(self, coef: Array, intercept: Array, codes: Array | None) -> Array:
        return self._genotypes.linear_scores(coef, intercept, codes, self._fills)


def task_order(n_rows: int, task: Any) -> tuple[Array, Array]:
    """The order that sorts rows by task, and where each task starts then."""
    _, order, offsets = read_task(task, n_rows)
    return np.arange(n_rows) if order is None else order, offsets


