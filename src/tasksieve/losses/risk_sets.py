"""Who is at risk when: the sums over risk sets that Cox's partial likelihood is made of.

A *block* is one stratum of one task, a *group* the events at one time of a block. Row k is at risk in the groups from
its entry to its end. For group g, S_g adds the weights ``w_k = s_k exp(z_k)`` over the risk set and Q_g over the deaths
of g themselves; the others are ``O_g = S_g - Q_g``, which is summed by itself. With Efron's ties the l-th of m tied
deaths sees ``S_g - l/m Q_g``.

Two linear maps carry everything (`risk_sums`). `at_risk` takes a number a row to its sums over the others of each
group, `exposure` takes a number a group to its sums over the groups in which a row is one of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .base import gamma
from .risk_sums import LOGARITHMS, NUMBERS, Arithmetic, NestedSums, TreeSums

Array = np.ndarray[Any, Any]

_RANGE = 500.0  # of the logarithms of weights in a block: beyond it sums are taken in logarithms


@dataclass
class RiskPoint:
    """Risk sets at given scores.

    - `mean`, `log_mean`: By row, ``M_k``: expected events, so that ``e - M`` is minus the gradient.
    - `values`: By block, ``sum_g d_g log S_g - <e, z>`` less that of a saturated model.
    - `sizes`: By block, of what these were made of.
    - `earlier`: By group, ``b_g = Lambda_{g-1} S_g``: what expected events of its risk set have from earlier groups.
    - `died`, `left`, `log_odds`: By tied group: expected events of its deaths, of the others, and ``log(Q/O)``.
    - `rounding`: By block, how far the logarithms of all these may be off.
    - `heights`, `log_totals`, `log_parts`: By block, the largest logarithm of a weight; by group, how far that of S is
      above it; by member of a tied group, that of ``(S - l/m Q)/S``.
    - `weights`, `totals`, `parts`: By row, group and member of a tied group, in units of the block: w, S and
      ``S - l/m Q``; None where logarithms of weights lie too far apart for them.
    """

    scores: Array
    mean: Array
    log_mean: Array
    values: Array
    sizes: Array
    earlier: Array
    died: Array
    left: Array
    log_odds: Array
    rounding: Array
    heights: Array
    log_totals: Array
    log_parts: Array
    weights: Array | None
    totals: Array | None
    parts: Array | None


class RiskSets:
    """The blocks of some tasks, all with nested risk sets or all with entry times.

    Rows, groups and members of tied groups each come block after block; rows of a block by their last group, its deaths
    before the others.

    - `rows`: Where the rows are in a flat vector; `events`: their weight if they end with an event, else 0.
    - `entry`, `last`: The first and the last group in which a row is at risk, counted over all blocks.
    - `death`, `deaths`, `group`: Which rows end with an event, their positions, and the group of each of them.
    """

    def __init__(
        self,
        rows: Array,
        weights: Array,
        block: Array,
        entry: Array,
        last: Array,
        death: Array,
        tasks: Array,
        efron: bool,
    ) -> None:
        self.rows, self.death, self.block, self.entry, self.last = rows, death, block, entry, last
        self._weights, self._efron = weights, efron
        self.log_weights, self.events = np.log(weights), np.where(death, weights, 0.0)
        counts = np.bincount(last[death])
        self.n_groups, n_blocks = len(counts), len(tasks)
        first = np.full(n_blocks, self.n_groups)
        np.minimum.at(first, block, last)  # the first group of a block has deaths, which end there
        self._ends = np.append(first, self.n_groups)
        self._row_starts = np.searchsorted(block, np.arange(n_blocks))
        self.starts = np.append(self._row_starts, len(rows))
        self._group_block = np.repeat(np.arange(n_blocks), np.diff(self._ends))
        self.task_of_block = tasks
        self.task_of_row, self.task_of_group = tasks[block], tasks[self._group_block]
        self.deaths = np.flatnonzero(death)
        self.group = last[self.deaths]
        self.events_at = np.bincount(self.group, self.events[self.deaths], self.n_groups)
        before = np.append(0.0, np.cumsum(self.events_at))
        #: no expected event can be larger
        self.largest = before[last + 1] - before[entry]
        stop = np.where(death, last, last + 1)
        self.nested = not np.any(entry > first[block])
        self._sums: NestedSums | TreeSums = (
            NestedSums(stop, block, self._ends) if self.nested else TreeSums(entry, stop, self.n_groups)
        )
        # ties: l/m of each member of a tied group
        members = counts if efron else np.ones_like(counts)
        self.tied = np.flatnonzero(members > 1)
        self.tied_count = members[self.tied]
        self.share = self.events_at / members  # of one member
        self.member = np.repeat(np.arange(len(self.tied)), self.tied_count)
        starts = np.cumsum(self.tied_count) - self.tied_count
        self.fraction = (np.arange(len(self.member)) - starts[self.member]) / self.tied_count[self.member]
        self.log_rest = np.log1p(-self.fraction)
        self.untied = members == 1
        #: by row: 0, or which tied deaths it is one of
        self.tie = np.zeros(len(rows), dtype=np.int64)
        self.tie[self.deaths] = np.where(self.untied, 0, np.cumsum(~self.untied))[self.group]
        saturated = np.bincount(self._group_block, self.events_at * np.log(self.events_at), n_blocks)
        own = self.share[self.tied] * np.bincount(self.member, self.log_rest, len(self.tied))
        self.saturated = saturated + np.bincount(self._group_block[self.tied], own, n_blocks)
        self._terms = np.diff(np.append(self._row_starts, len(rows))) + np.diff(self._ends)

    @property
    def n_blocks(self) -> int:
        return len(self.task_of_block)

    def repeated(self, count: int, n_rows: int) -> RiskSets:
        """Many times, for as many columns of scores, one below the other; `n_rows` are the rows of a column."""

        def shifted(places: Array, by: int) -> Array:
            return (places + by * np.arange(count)[:, None]).ravel()

        weights, death, tasks = (np.tile(own, count) for own in (self._weights, self.death, self.task_of_block))
        return RiskSets(
            shifted(self.rows, n_rows),
            weights,
            shifted(self.block, self.n_blocks),
            shifted(self.entry, self.n_groups),
            shifted(self.last, self.n_groups),
            death,
            tasks,
            self._efron,
        )

    # -- the two maps -------------------------------------------------------------------------------------------------

    def at_risk(self, values: Array) -> Array:
        """By group: sums over the others."""
        return self._sums.at_risk(values, NUMBERS)

    def exposure(self, values: Array) -> Array:
        """By row: sums over the groups in which it is one of the others."""
        return self._sums.exposure(values, NUMBERS)

    def _by_group(self, values: Array, arithmetic: Arithmetic = NUMBERS) -> Array:
        """Sums over the deaths of each group."""
        return arithmetic.summed(self.group, values[self.deaths], self.n_groups)

    # -- a point ------------------------------------------------------------------------------------------------------

    def at(self, z: Array) -> RiskPoint:
        """The sums at scores z, one a row."""
        logs = self.log_weights + z
        top = np.maximum.reduceat(logs, self._row_starts)
        far = top - np.minimum.reduceat(logs, self._row_starts)
        size = np.maximum.reduceat(np.maximum(np.abs(logs), np.abs(self.log_weights)), self._row_starts)
        height = top[self.block]
        # of a logarithm of a weight, its distance from the top, the exponential; then of sums and a product
        rounding = gamma(1.0) * (3.0 * self._terms + 16.0 * (size + far) + 128.0)
        if np.all(far <= _RANGE):
            return self._point(z, np.exp(logs - height), top, rounding, NUMBERS)
        rounding = gamma(1.0) * (
            2.0 * self._terms * (far + np.log(self._terms) + 8.0) + 16.0 * (size + far) + 128.0
        )
        return self._point(z, logs - height, top, rounding, LOGARITHMS)

    def _value(self, z: Array, height: Array, log_totals: Array, log_parts: Array) -> tuple[Array, Array]:
        """By block: the value, and the size of its terms. `height` is what is missing in the logarithms."""
        deaths, blocks = self.deaths, self.block[self.deaths]
        own = self.events[deaths] * (z[deaths] - height[deaths])
        pulls = self.events_at * log_totals
        pairs = self.share[self.tied][self.member] * log_parts
        of_pairs = self._group_block[self.tied][self.member]
        value, size = -self.saturated, np.abs(self.saturated)
        for sign, terms, where in (
            (-1.0, own, blocks),
            (1.0, pulls, self._group_block),
            (1.0, pairs, of_pairs),
        ):
            value = value + sign * np.bincount(where, terms, self.n_blocks)
            size = size + np.bincount(where, np.abs(terms), self.n_blocks)
        return value, size + np.bincount(self._group_block, self.events_at, self.n_blocks)

    def _point(self, z: Array, w: Array, heights: Array, rounding: Array, by: Arithmetic) -> RiskPoint:
        """From weights in units of their block; in logarithms where they lie too far apart for one scale."""
        others, died = self._sums.at_risk(w, by), self._by_group(w, by)
        totals = by.add(others, died)
        hazard = by.divide(by.written(self.events_at), totals)
        own_hazard, tied, member = hazard, self.tied, self.member
        parts = (1.0 - self.fraction) + self.fraction * by.numbers(by.divide(others, totals))[tied][member]
        if len(tied):
            own_hazard = hazard.copy()
            each = by.divide(by.written(self.share), totals)[tied]
            for out, terms in ((hazard, 1.0 / parts), (own_hazard, (1.0 - self.fraction) / parts)):
                out[tied] = by.multiply(each, by.written(np.bincount(member, terms, len(tied))))
        exposed = self._sums.exposure(hazard, by)
        exposed[self.deaths] = by.add(exposed[self.deaths], own_hazard[self.group])
        mean = by.multiply(w, exposed)
        log_totals, log_parts = by.logarithms(totals), np.log(parts)
        value, size = self._value(z, heights[self.block], log_totals, log_parts)
        earlier = died_mean = left = log_odds = np.empty(0)
        if isinstance(self._sums, NestedSums):
            before = self._sums.before(hazard, by)
            earlier = by.numbers(by.multiply(before, totals))
            if len(tied):
                died_mean = by.numbers(by.multiply(died, by.add(before, own_hazard))[tied])
                left = by.numbers(by.multiply(others, by.add(before, hazard))[tied])
                with np.errstate(divide="ignore"):  # infinite where all at risk die
                    log_odds = by.logarithms(by.divide(died, others)[tied])
        kept = (w, totals, parts * totals[tied][member]) if by is NUMBERS else (None, None, None)
        return RiskPoint(
            z,
            by.numbers(mean),
            by.logarithms(mean),
            value,
            size,
            earlier,
            died_mean,
            left,
            log_odds,
            rounding,
            heights,
            log_totals,
            log_parts,
            *kept,
        )

    def mean_logs(self, at: RiskPoint) -> Array:
        """By group: the logarithm of S, and at ties the mean of those of ``S - l/m Q``."""
        logs = at.log_totals + at.heights[self._group_block]
        logs[self.tied] += np.bincount(self.member, at.log_parts, len(self.tied)) / self.tied_count
        return logs

    def saturated_logs(self) -> Array:
        """The same in a saturated model."""
        logs = np.log(self.events_at)
        logs[self.tied] += np.bincount(self.member, self.log_rest, len(self.tied)) / self.tied_count
        return logs

    def log_hazards(self, at: RiskPoint) -> Array:
        """By group: the logarithm of the increment of the baseline hazard."""
        logs = np.log(self.events_at) - at.log_totals - at.heights[self._group_block]
        logs[self.tied] += np.log(np.bincount(self.member, np.exp(-at.log_parts), len(self.tied)) / self.tied_count)
        return logs

    # -- second derivatives -------------------------------------------------------------------------------------------

    def means(self, at: RiskPoint, values: Array) -> tuple[Array, Array]:
        """Of a number a row in each risk set: by untied group (0 at tied ones), and by member of a tied group."""
        assert at.weights is not None and at.totals is not None and at.parts is not None
        weighted = at.weights * values
        others, died = self.at_risk(weighted), self._by_group(weighted)
        means = np.where(self.untied, (others + died) / at.totals, 0.0)
        if not len(self.tied):
            return means, np.empty(0)
        member = self.member
        return means, (others[self.tied][member] + (1.0 - self.fraction) * died[self.tied][member]) / at.parts

    def averaged(self, untied: Array, in_ties: Array) -> Array:
        """By group, from numbers as of `means`: at ties the mean over their members."""
        found = untied.copy()
        found[self.tied] = np.bincount(self.member, in_ties, len(self.tied)) / self.tied_count
        return found

    def hessian_times(self, at: RiskPoint, values: Array) -> Array:
        """The second derivative times a vector, by row."""
        assert at.weights is not None and at.totals is not None and at.parts is not None
        means, in_ties = self.means(at, values)
        pull = self.events_at * means / at.totals
        own = pull
        if len(self.tied):
            each = self.share[self.tied][self.member] * in_ties / at.parts
            own = pull.copy()
            pull[self.tied] = np.bincount(self.member, each, len(self.tied))
            own[self.tied] = np.bincount(self.member, each * (1.0 - self.fraction), len(self.tied))
        back = self.exposure(pull)
        back[self.deaths] += own[self.group]
        return np.asarray(at.mean * values - at.weights * back)

    def curvatures(self, at: RiskPoint) -> tuple[Array, Array]:
        """By row i, c of the second derivative ``-w_i w_k c`` in i and a later row k: if both are tied deaths of one
        time, or one row (there the mean is added), and if not."""
        assert at.totals is not None and at.parts is not None
        bent = self.events_at / np.square(at.totals)
        near, far = bent, bent
        if len(self.tied):
            near, far = bent.copy(), bent.copy()
            each, rest = self.share[self.tied][self.member] / np.square(at.parts), 1.0 - self.fraction
            for out, terms in ((bent, each), (far, each * rest), (near, each * rest * rest)):
                out[self.tied] = np.bincount(self.member, terms, len(self.tied))
        same = self.exposure(bent)
        other = same.copy()
        same[self.deaths] += near[self.group]
        other[self.deaths] += far[self.group]
        return same, other

    def hessians(self, at: RiskPoint) -> Iterator[tuple[slice, Array]]:
        """By block: its rows, and the second derivative as a matrix."""
        assert at.weights is not None and at.totals is not None and at.parts is not None
        stop = np.where(self.death, self.last, self.last + 1)
        for b, (low, high) in enumerate(pairwise(self.starts.tolist())):
            own, (first, after) = slice(low, high), self._ends[b : b + 2]
            groups = np.arange(first, after)[:, None]
            others = (self.entry[own] <= groups) & (groups < stop[own])
            dies = self.death[own] & (self.last[own] == groups)
            p = np.where(others | dies, at.weights[own], 0.0) / at.totals[first:after, None]
            share = np.where(self.untied, self.events_at, 0.0)[first:after]
            hessian = np.diag(at.mean[own]) - (p.T * share) @ p
            inside = np.flatnonzero((self.tied[self.member] >= first) & (self.tied[self.member] < after))
            if len(inside):
                at_group = self.tied[self.member[inside]] - first
                factors = np.where(dies[at_group], 1.0 - self.fraction[inside, None], others[at_group])
                p = factors * at.weights[own] / at.parts[inside, None]
                hessian -= (p.T * self.share[self.tied[self.member[inside]]]) @ p
            yield own, hessian

    def hessian_of(self, at: RiskPoint, columns: Array, n_tasks: int) -> tuple[Array, Array]:
        """By task: ``Z' H Z`` and the diagonal of ``Z' diag(M) Z`` for columns Z, (k, rows), with H the second
        derivative; without `weights`, H = diag(M), which lies above it."""
        count = len(columns)
        hessian = np.zeros((n_tasks, count, count))
        means = None if at.weights is None else [self.means(at, column) for column in columns]
        of_member = self.task_of_group[self.tied][self.member]
        sides = np.zeros((n_tasks, count))
        for a in range(count):
            for b in range(a + 1):
                found = np.bincount(self.task_of_row, at.mean * columns[a] * columns[b], n_tasks)
                if a == b:
                    sides[:, a] = found
                if means is not None:
                    found = found - np.bincount(
                        self.task_of_group, self.events_at * means[a][0] * means[b][0], n_tasks
                    )
                    both = self.share[self.tied][self.member] * means[a][1] * means[b][1]
                    found = found - np.bincount(of_member, both, n_tasks)
                hessian[:, a, b] = hessian[:, b, a] = found
        return hessian, sides


def risk_sets(y: Array, weights: Array, offsets: Array, efron: bool) -> list[RiskSets]:
    """Of flat labels (`outcomes.SURVIVAL`) and weights: the blocks of tasks with nested risk sets, and of those with
    entry times; either may be missing. Rows in no risk set belong to none, nor do blocks without events."""
    present = np.flatnonzero(weights > 0.0)
    task = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[present]
    own = y[present]
    strata, codes = np.unique(own["stratum"], return_inverse=True)
    key = task * len(strata) + codes
    # Times by rank, so that block and time are one whole number.
    times, rank = np.unique(np.concatenate([own["time"], own["entry"]]), return_inverse=True)
    stop, start = key * len(times) + rank[: len(own)], key * len(times) + rank[len(own) :]
    groups = np.unique(stop[own["event"]])
    last = np.searchsorted(groups, stop, "right") - 1
    entry = np.searchsorted(groups, start, "right")
    live = np.flatnonzero(last >= entry)
    made = []
    late = entry[live] > np.searchsorted(groups, key[live] * len(times))
    with_entries = np.isin(task[live], task[live][late])  # a task has blocks of one kind
    for chosen in (~with_entries, with_entries):
        rows = live[chosen]
        if not len(rows):
            continue
        blocks, block = np.unique(key[rows], return_inverse=True)
        order = np.lexsort((~own["event"][rows], last[rows], block))
        rows, block = rows[order], block[order]
        used = np.unique(last[rows][own["event"][rows]])
        made.append(
            RiskSets(
                present[rows],
                weights[present[rows]],
                block,
                np.searchsorted(used, entry[rows]),
                np.searchsorted(used, last[rows], "right") - 1,
                own["event"][rows],
                blocks // len(strata),
                efron,
            )
        )
    return made
