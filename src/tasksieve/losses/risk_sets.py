"""Who is at risk when: the sums over risk sets that Cox's partial likelihood is made of.

A *block* is one stratum of one task, a *group* the events at one time of a block. Row k is at risk in the groups from
its entry to its end. For group g, S_g adds the weights ``w_k = s_k exp(z_k)`` over the risk set and Q_g over the deaths
of g themselves; the others are ``O_g = S_g - Q_g``, which is summed by itself. With Efron's ties the l-th of m tied
deaths sees ``S_g - l/m Q_g``.

Two linear maps carry everything. `at_risk` takes a number a row to its sums over the others of each group, `exposure`
takes a number a group to its sums over the groups in which a row is one of the others. Without entry times risk sets
are nested, and both are cumulative sums over *slots*: a block of G groups has G + 1 of them, and a row in slot h is one
of the others in the first h groups. With entry times they are sums over the nodes of a binary tree. Nothing is
subtracted in either, so that all sums of positive numbers are accurate to a few roundings a term.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .base import gamma

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
        nested = not np.any(entry > first[block])
        self._tree = None if nested else _Tree(entry, stop, self.n_groups)
        self._slot = stop + block
        self._slot_ends = self._ends + np.arange(n_blocks + 1)
        self._slot_of_group = np.arange(self.n_groups) + self._group_block
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
    def nested(self) -> bool:
        return self._tree is None

    @property
    def n_blocks(self) -> int:
        return len(self.task_of_block)

    # -- the two maps -------------------------------------------------------------------------------------------------

    def at_risk(self, values: Array) -> Array:
        """By group: sums over the others."""
        if self._tree is not None:
            return self._tree.stab(values)
        slots = np.bincount(self._slot, values, self._slot_ends[-1])
        out = np.empty(self.n_groups)
        for low, high, start in zip(self._ends[:-1], self._ends[1:], self._slot_ends[:-1], strict=True):
            out[low:high] = np.cumsum(slots[start + high - low : start : -1])[::-1]
        return out

    def exposure(self, values: Array) -> Array:
        """By row: sums over the groups in which it is one of the others."""
        if self._tree is not None:
            return self._tree.sweep(values)
        return self._before(values)[self._slot]

    def _before(self, values: Array) -> Array:
        """By slot: the sum over the groups before it."""
        slots = np.zeros(self._slot_ends[-1])
        for low, high, start in zip(self._ends[:-1], self._ends[1:], self._slot_ends[:-1], strict=True):
            np.cumsum(values[low:high], out=slots[start + 1 : start + 1 + high - low])
        return slots

    def _by_group(self, values: Array) -> Array:
        """Sums over the deaths of each group."""
        return np.bincount(self.group, values[self.deaths], self.n_groups)

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
            return self._summed(z, logs - height, height, rounding)
        rounding = gamma(1.0) * (
            2.0 * self._terms * (far + np.log(self._terms) + 8.0) + 16.0 * (size + far) + 128.0
        )
        return self._in_logarithms(z, logs - height, height, rounding)

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

    def _summed(self, z: Array, logs: Array, height: Array, rounding: Array) -> RiskPoint:
        w = np.exp(logs)
        others, died = self.at_risk(w), self._by_group(w)
        totals = others + died
        hazard = self.events_at / totals
        own_hazard, tied, member = hazard, self.tied, self.member
        parts = (1.0 - self.fraction) + self.fraction * (others / totals)[tied][member]
        if len(tied):
            own_hazard = hazard.copy()
            each = (self.share / totals)[tied]
            hazard[tied] = each * np.bincount(member, 1.0 / parts, len(tied))
            own_hazard[tied] = each * np.bincount(member, (1.0 - self.fraction) / parts, len(tied))
        exposed = self.exposure(hazard)
        exposed[self.deaths] += own_hazard[self.group]
        mean = w * exposed
        value, size = self._value(z, height, np.log(totals), np.log(parts))
        earlier = np.empty(0)
        died_mean = left = log_odds = np.empty(0)
        if self.nested:
            before = self._before(hazard)[self._slot_of_group]
            earlier = before * totals
            if len(tied):
                q, o = died[tied], others[tied]
                died_mean = q * (before + own_hazard)[tied]
                left = o * (before + hazard)[tied]
                log_odds = np.log(q / np.where(o > 0.0, o, 1.0))
                log_odds[o == 0.0] = np.inf
        scaled = parts * totals[tied][member] if len(tied) else parts
        return RiskPoint(
            z,
            mean,
            np.log(mean),
            value,
            size,
            earlier,
            died_mean,
            left,
            log_odds,
            rounding,
            w,
            totals,
            scaled,
        )

    def _in_logarithms(self, z: Array, logs: Array, height: Array, rounding: Array) -> RiskPoint:
        """The same where weights lie too far apart for one scale."""
        others = self._log_at_risk(logs)
        died = np.full(self.n_groups, -np.inf)
        np.logaddexp.at(died, self.group, logs[self.deaths])
        totals = np.logaddexp(others, died)
        hazard = np.log(self.events_at) - totals
        own_hazard, tied, member = hazard, self.tied, self.member
        parts = (1.0 - self.fraction) + self.fraction * np.exp(others - totals)[tied][member]
        if len(tied):
            own_hazard = hazard.copy()
            each = np.log(self.share[tied]) - totals[tied]
            hazard[tied] = each + np.log(np.bincount(member, 1.0 / parts, len(tied)))
            own_hazard[tied] = each + np.log(np.bincount(member, (1.0 - self.fraction) / parts, len(tied)))
        exposed = self._log_exposure(hazard)
        exposed[self.deaths] = np.logaddexp(exposed[self.deaths], own_hazard[self.group])
        log_mean = logs + exposed
        value, size = self._value(z, height, totals, np.log(parts))
        earlier = np.empty(0)
        died_mean = left = log_odds = np.empty(0)
        if self.nested:
            before = self._log_before(hazard)[self._slot_of_group]
            earlier = np.exp(before + totals)
            if len(tied):
                died_mean = np.exp(died + np.logaddexp(before, own_hazard))[tied]
                left = np.exp(others + np.logaddexp(before, hazard))[tied]
                log_odds = (died - others)[tied]
        return RiskPoint(
            z,
            np.exp(log_mean),
            log_mean,
            value,
            size,
            earlier,
            died_mean,
            left,
            log_odds,
            rounding,
            None,
            None,
            None,
        )

    def _log_at_risk(self, logs: Array) -> Array:
        if self._tree is not None:
            return self._tree.log_stab(logs)
        slots = np.full(self._slot_ends[-1], -np.inf)
        np.logaddexp.at(slots, self._slot, logs)
        out = np.empty(self.n_groups)
        for low, high, start in zip(self._ends[:-1], self._ends[1:], self._slot_ends[:-1], strict=True):
            out[low:high] = np.logaddexp.accumulate(slots[start + high - low : start : -1])[::-1]
        return out

    def _log_exposure(self, logs: Array) -> Array:
        if self._tree is not None:
            return self._tree.log_sweep(logs)
        return self._log_before(logs)[self._slot]

    def _log_before(self, logs: Array) -> Array:
        slots = np.full(self._slot_ends[-1], -np.inf)
        for low, high, start in zip(self._ends[:-1], self._ends[1:], self._slot_ends[:-1], strict=True):
            slots[start + 1 : start + 1 + high - low] = np.logaddexp.accumulate(logs[low:high])
        return slots

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


class _Tree:
    """Sums over intervals of groups, and over the intervals that hold a group, by the nodes of a binary tree: each
    interval is a few whole nodes."""

    def __init__(self, low: Array, high: Array, count: int) -> None:
        self._count, self._levels = count, max(int(count - 1).bit_length(), 0)
        size = self._size = 1 << self._levels
        left, right, rows = low + size, high + size, np.arange(len(low))
        found_rows, found_nodes = [], []
        while np.any(left < right):
            for chosen, node in (((left & 1) == 1, left), ((right & 1) == 1, right - 1)):
                taken = chosen & (left < right)
                found_rows.append(rows[taken])
                found_nodes.append(node[taken])
                if node is left:
                    left = left + taken
                else:
                    right = right - taken
            left, right = left >> 1, right >> 1
        self._rows = np.concatenate(found_rows) if found_rows else np.empty(0, dtype=np.int64)
        self._nodes = np.concatenate(found_nodes) if found_nodes else np.empty(0, dtype=np.int64)
        self._n_rows = len(low)

    def stab(self, values: Array) -> Array:
        """By group: sums over the rows whose interval holds it."""
        nodes = np.bincount(self._nodes, values[self._rows], 2 * self._size)
        for level in range(1, self._levels + 1):
            own = slice(1 << level, 2 << level)
            nodes[own] += np.repeat(nodes[1 << (level - 1) : 1 << level], 2)
        return nodes[self._size : self._size + self._count]

    def sweep(self, values: Array) -> Array:
        """By row: sums over the groups of its interval."""
        nodes = np.zeros(2 * self._size)
        nodes[self._size : self._size + self._count] = values
        for level in range(self._levels - 1, -1, -1):
            below = nodes[2 << level : 4 << level]
            nodes[1 << level : 2 << level] = below[::2] + below[1::2]
        return np.bincount(self._rows, nodes[self._nodes], self._n_rows)

    def log_stab(self, logs: Array) -> Array:
        nodes = np.full(2 * self._size, -np.inf)
        np.logaddexp.at(nodes, self._nodes, logs[self._rows])
        for level in range(1, self._levels + 1):
            own = slice(1 << level, 2 << level)
            nodes[own] = np.logaddexp(nodes[own], np.repeat(nodes[1 << (level - 1) : 1 << level], 2))
        return nodes[self._size : self._size + self._count]

    def log_sweep(self, logs: Array) -> Array:
        nodes, out = np.full(2 * self._size, -np.inf), np.full(self._n_rows, -np.inf)
        nodes[self._size : self._size + self._count] = logs
        for level in range(self._levels - 1, -1, -1):
            below = nodes[2 << level : 4 << level]
            nodes[1 << level : 2 << level] = np.logaddexp(below[::2], below[1::2])
        np.logaddexp.at(out, self._rows, nodes[self._nodes])
        return out


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
