"""What a pair of points proves: the numbers that a certificate claims.

They are found by the verifier itself, in floating point with every rounding counted, so that no claim is made that it
could not prove. Another processor adds in another order: claims are widened by twice the width of what was found here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import verify
from ..messages import Message, value_error
from ..user_warnings import warn
from .certificate import Certificate
from .need import Proved
from .reduced import ReducedProblems

Array = np.ndarray[Any, Any]

_WIDER = 1.0 + 2.0**-20  # claims, beside rounding
_INSIDE = 1.0 + 2.0**-30  # how clearly a feature must be zero
_LOST = 1e-4  # of a gap, by rounding of products
_LARGEST_SUPPORT = 1000  # open features up to which eigenvalues are computed
_MUCH_WIDER = 10.0  # than the fit's gap: reported
_INWARD = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # of a dual point


@dataclass
class ClaimedSolution:
    """One value: strengths, coefficients, and a dual point as the format lists it.

    - `rows`: array of shape (len(features), Q)
    - `goal`: The gap that the fit has claimed; infinite if it has not.
    - `thresholds`: Between ordered classes, task after task, where there are any.
    - `beside`: The place of another answer to the same problem, whose dual point is taken where it proves more.
    """

    alpha: float
    ridge: float
    features: Array
    rows: Array
    intercept: Array
    dual: Array
    goal: float = np.inf
    thresholds: Array | None = None
    beside: int | None = None


def certify(
    header: dict[str, Any],
    arrays: dict[str, Array],
    tasks: list[verify.Task],
    answers: Sequence[ClaimedSolution],
    better: Callable[[int], Iterator[Array]] | None = None,
    need: tuple[int, ReducedProblems, Callable[[Array], Array]] | None = None,
) -> Certificate:
    """The certificate of some answers.

    - `header`, `arrays`: The problem; digests, rows and claims are filled in here.
    - `tasks`: The data, as the format lists them.
    - `better`: Further dual points for a value whose gap is above its goal, best last.
    - `need`: The value of which it is proved what it needs, its problem without features, and what turns a dual point
      of the solver into one of the format.
    """
    shared = header["shared"]
    header = {
        **header,
        "format": "tasksieve-certificate",
        "version": verify.VERSION,
        "rows": [len(part.y) for part in tasks],
        "offset": tasks[0].offset is not None,
        "digests": {
            "matrices": verify.matrix_digests(tasks, shared),
            "labels": [part.digest() for part in tasks],
        },
    }
    whole = {**tidy(arrays), **listed_points(answers)}
    stated = verify.Certificate(json.loads(json.dumps(header)), dict(whole))
    try:
        finder = _found(stated, tasks, answers, better)
    except verify.Undecided as error:
        raise ValueError(f"there is no certificate: {error}.") from None
    bad = [k for k in range(len(answers)) if not np.isfinite(finder.gaps[k])]
    if bad:
        raise value_error(
            "{alpha=:g}: there is no certificate: {why}.", alpha=answers[bad[0]].alpha, why=_why_none(finder, bad[0])
        )
    for k, answer in enumerate(answers):
        _say_what_is_lost(finder, k, answer)
    some = any(map(len, finder.sure))
    if some or any(len(part) < header["n_features"] for part in finder.open):
        _list(whole, "open", finder.open)
    if some:
        _list(whole, "sure", finder.sure)
    if need is not None:
        k, reduced, listed = need
        usual, deviations = not finder.dropped[k], finder.problem.deviations
        proved = Proved(stated, tasks, k, finder.tops[k], finder.widths[k], usual, deviations)
        with np.errstate(all="ignore"):
            whole |= proved.arrays(reduced, lambda residual: inside_domain(finder.problem, listed(residual)))
    return Certificate(header, whole)


def _found(
    stated: verify.Certificate,
    tasks: list[verify.Task],
    answers: Sequence[ClaimedSolution],
    better: Callable[[int], Iterator[Array]] | None,
) -> _Finder:
    """Prove what can be proved of each answer, with the dual point that proves the most of those that are tried."""
    finder = _Finder(verify.Problem(stated, tasks, verify.Floating(quick=True)))
    with np.errstate(all="ignore"):
        finder.find(range(len(answers)))
        if better is not None:
            for k, answer in enumerate(answers):
                if not np.isfinite(finder.gaps[k]):
                    _move_inward(finder, k, answer.goal)
                _approach(finder, k, answer.goal, better)
                _move_inward(finder, k, answer.goal)
        duals = finder.problem.cert.arrays["dual"]
        finder.improve({k: duals[a.beside].copy() for k, a in enumerate(answers) if a.beside is not None})
        # 0 is a dual point of every loss: little is proved by it, and that is true
        finder.improve({k: np.zeros_like(duals[k]) for k in range(len(answers)) if not np.isfinite(finder.gaps[k])})
    return finder


def _why_none(finder: _Finder, k: int) -> str:
    """Name what leaves the range of double precision, so that nothing is proved of a value."""
    problem, names = finder.problem, finder.problem.cert.tasks
    with np.errstate(all="ignore"):
        features, rows = problem.coefficients(k)
        losses = problem.primal_losses(k)
        for t in np.flatnonzero(~np.isfinite(losses.hi)).tolist():
            return f"the loss of task {names[t]!r} at these coefficients is not finite in double precision"
        penalty = finder.penalty.value(features, problem.arith.numbers(rows))
        if not np.isfinite(penalty.hi):
            largest = np.abs(rows).max()
            return f"the penalty of coefficients of {largest:.3g} is not finite in double precision"
        if not finder._strength(k) > 0:
            return "alpha times the number of rows is too small for double precision"
        point = problem.project(k)
        parts = problem.dual_losses(point, problem.arith.one(1.0))
        for t in np.flatnonzero(~np.isfinite(parts.lo)).tolist():
            why = f": {point.dropped[0]}" if point.dropped else ""
            return f"the dual value of task {names[t]!r} is not finite in double precision{why}"
    return "products of X and the dual point leave the range of double precision: bring X to ordinary sizes"


def _is_much_wider(finder: _Finder, k: int, goal: float) -> bool:
    """Whether much less is proved than the fit did, beyond what rounding explains."""
    size = 1e-9 * abs(float(finder.problem.cert.arrays["objective"][k]))
    if not np.isfinite(finder.gaps[k]):
        return True
    return bool(np.isfinite(goal) and finder.gaps[k] > _MUCH_WIDER * goal + finder.widths[k] + size)


def _say_what_is_lost(finder: _Finder, k: int, answer: ClaimedSolution) -> None:
    """Warn of a certificate that proves much less than the fit did."""
    if not _is_much_wider(finder, k, answer.goal):
        return
    scaled = f"the dual point had to be scaled by {finder.scales[k]:.6g}"
    why = finder.dropped[k] or [scaled if finder.scales[k] < 1.0 else "its dual point is less good than the solver's"]
    warn(
        Message(
            "{alpha=:g}: the certificate proves a gap of {proved:.3g} only, the fit's is {goal:.3g}: {why}. It is "
            "true; a smaller {tol} may give one that proves more.",
            alpha=answer.alpha,
            proved=finder.gaps[k],
            goal=answer.goal,
            why="; ".join(why),
        ),
        UserWarning,
    )


def _approach(finder: _Finder, k: int, goal: float, better: Callable[[int], Iterator[Array]]) -> None:
    """Other dual points for a value whose gap is above its goal, as long as they help."""
    duals = better(k)
    while finder.gaps[k] > 1.001 * goal + 2.0 * finder.widths[k]:
        before, dual = finder.gaps[k], next(duals, None)
        if dual is None:
            return
        finder.improve({k: dual})
        if not finder.gaps[k] < 0.8 * before:
            return


def _move_inward(finder: _Finder, k: int, goal: float) -> None:
    """Dual points a little nearer to one inside, where one at the edge of the loss's domain proves little or nothing:
    the parts of Cox's likelihood, for example, are found only if none of them is about as small as rounding."""
    dual, losses = finder.problem.cert.arrays["dual"][k].copy(), finder.problem.losses
    widths = [len(finder.problem.outputs_of[loss.rows.tasks[0]]) for loss in losses]
    inner = np.concatenate([np.tile(loss.inner(), width) for loss, width in zip(losses, widths, strict=True)])
    for share in _INWARD:
        if not _is_much_wider(finder, k, goal):
            return
        finder.improve({k: (1.0 - share) * dual + share * inner})


def _list(arrays: dict[str, Array], name: str, lists: list[Array]) -> None:
    arrays[f"{name}_start"] = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    arrays[name] = np.concatenate(lists).astype(np.int64)


def tidy(arrays: dict[str, Array]) -> dict[str, Array]:
    """Without weights that are all 1."""
    kept = {}
    for name, values in arrays.items():
        kind = np.int64 if values.dtype.kind in "iu" else np.float64
        if name != "feature_weights" or np.any(values != 1.0):
            kept[name] = np.ascontiguousarray(values, dtype=kind)
    return kept


def listed_points(answers: Sequence[ClaimedSolution]) -> dict[str, Array]:
    """Arrays of the format, without claims."""
    positions = [np.nonzero(answer.rows) for answer in answers]
    thresholds = [answer.thresholds for answer in answers if answer.thresholds is not None and len(answer.thresholds)]
    beside = {"thresholds": np.array(thresholds, dtype=np.float64)} if thresholds else {}
    return {
        **beside,
        "alpha": np.array([answer.alpha for answer in answers], dtype=np.float64),
        "ridge": np.array([answer.ridge for answer in answers], dtype=np.float64),
        "objective": np.zeros(len(answers)),
        "dual_value": np.zeros(len(answers)),
        "gap": np.zeros(len(answers)),
        "intercept": np.array([answer.intercept for answer in answers], dtype=np.float64),
        "start": np.cumsum([0, *(len(row) for row, _ in positions)]).astype(np.int64),
        "feature": np.concatenate(
            [np.asarray(a.features, dtype=np.int64)[row] for a, (row, _) in zip(answers, positions, strict=True)]
        ),
        "output": np.concatenate([column for _, column in positions]).astype(np.int64),
        "coef": np.concatenate([a.rows[own] for a, own in zip(answers, positions, strict=True)]).astype(np.float64),
        "dual": np.array([answer.dual for answer in answers], dtype=np.float64),
    }


def inside_domain(problem: verify.Problem, dual: Array) -> Array:
    """A dual point whose entries lie in the domain of the loss's conjugate; or several, one a row.

    Solvers weigh rows by the roots of their weights: a residual at its bound, divided by such a root, may round to the
    next number beyond it, and the verifier would have to drop the whole task.
    """
    dual = np.asarray(dual, dtype=np.float64)
    found, start = np.empty_like(dual), 0
    for loss in problem.losses:
        n, width = len(loss.rows.y), len(problem.outputs_of[loss.rows.tasks[0]])
        part = slice(start, start + n * width)
        own, start = dual[..., part], part.stop
        p = own.reshape(*own.shape[:-1], width, n).swapaxes(-1, -2)
        found[..., part] = loss.nearest(p).swapaxes(-1, -2).reshape(own.shape)
    return found


class _Finder(verify.Checker):
    """A checker that writes down what it can prove where another compares it with a claim."""

    hasty = True

    def __init__(self, problem: verify.Problem) -> None:
        super().__init__(problem)
        n_values = problem.cert.n_values
        every = np.arange(problem.cert.n_features)
        self.gaps, self.widths = np.full(n_values, np.inf), np.zeros(n_values)
        self.open, self.sure = [every] * n_values, [every[:0]] * n_values
        self.scales, self.dropped = np.ones(n_values), [list[str]()] * n_values
        self.tops = np.full(n_values, np.inf)  # upper bounds of the objectives
        self._rounding = 8.0 * verify.gamma(max(len(y) for y in problem.y) + 64)
        self._spare = 2.0 * float(sum(loss.spare() for loss in problem.losses) / problem.unit.lo)

    def find(self, values: Sequence[int]) -> None:
        """Fill in the claims of some values, several in one pass over the data."""
        problem, duals = self.problem, self.problem.cert.arrays["dual"]
        for k in values:
            duals[k] = inside_domain(problem, duals[k])
        for k, point, reading in verify.read_values(self, values, True, lambda words: None):
            value = self.check(k, point, reading)
            self.scales[k], self.tops[k], self.dropped[k] = value.scale, value.objective, point.dropped

    def improve(self, others: dict[int, Array]) -> None:
        """Other dual points for some values, several in one pass, each kept if it proves more."""
        arrays = self.problem.cert.arrays
        claimed = [arrays[name] for name in ("dual", "objective", "dual_value", "gap")]
        found = (self.gaps, self.open, self.sure, self.scales, self.dropped)
        before = {k: ([np.copy(own[k]) for own in claimed], [own[k] for own in found]) for k in others}
        for k, dual in others.items():
            arrays["dual"][k] = dual
        if others:
            self.find(list(others))
        for k, (claims, findings) in before.items():
            if self.gaps[k] < findings[0]:
                continue
            for array, kept in zip(claimed, claims, strict=True):
                array[k] = kept
            for own, value in zip(found, findings, strict=True):
                own[k] = value  # type: ignore[index]

    def _falls_short(self, k: int, primal: verify.Box, dual: verify.Box) -> bool:
        """There is no claim yet: the more is proved, the better."""
        return True

    def _unsettled(self, k: int, primal: verify.Box, dual: verify.Box, reading: verify.Reading) -> bool:
        """Whether the products' rounding may be more than a little of the gap."""
        lost = self._lost(k, reading)
        return not lost * float(abs(primal.hi) + abs(dual.lo)) <= _LOST * float(primal.hi - dual.lo)

    def _lost(self, k: int, reading: verify.Reading) -> float:
        """What rounding may change a row of M by, relative to the strength."""
        if reading.levels is not None:
            return 2.0 * float(reading.lost)
        m, cert = reading.products, self.problem.cert
        return float((m.hi - m.lo)[self.penalty.features].max(initial=0.0)) / (cert["unit"] * cert.arrays["alpha"][k])

    def check(self, k: int, point: verify.Dual, reading: verify.Reading) -> verify.Value:
        self._at = point, reading
        return super().check(k, point, reading)

    def _steepness(self, k: int, dual: verify.Box, c: Any) -> float:
        """How much less a checker may prove, with a ridge, whose rounding leaves it a larger c: D is concave in c, and
        need not rise up to the largest."""
        point, reading = self._at
        if not self.problem.cert.arrays["ridge"][k] > 0.0 or not 0.0 < c < 1.0:
            return 0.0
        larger = min(c * (1.0 + 4.0 * self._lost(k, reading)) + 2.0**-50, 1.0)
        here, there = (self.problem.dual_losses(point, verify.Box(at)).total() for at in (c, np.float64(larger)))
        quadratic = (here.hi - dual.lo) / (c * c)
        return max(2.0 * float(dual.lo - (there.lo - larger * larger * quadratic)), 0.0)

    def _compare(self, k: int, primal: verify.Box, dual: verify.Box, c: Any, failures: list[str]) -> verify.Value:
        arrays = self.problem.cert.arrays
        width = (primal.hi - primal.lo) + (dual.hi - dual.lo)
        width = 2.0 * width + self._rounding * (abs(primal.hi) + abs(dual.lo)) + 2.0**-1000
        width += self._steepness(k, dual, c) + self._spare
        gap = max(float(primal.hi - dual.lo), 0.0) * _WIDER + width
        self.gaps[k] = gap if np.isfinite(gap) else np.inf
        if np.isfinite(gap):
            arrays["gap"][k], self.widths[k] = gap, width
            arrays["objective"][k] = 0.5 * (primal.lo + primal.hi)
            arrays["dual_value"][k] = dual.lo - width
        return super()._compare(k, primal, dual, c, failures)

    def _check_zeros(
        self, k: int, point: verify.Dual, reading: verify.Reading, c: Any, failures: list[str]
    ) -> None:
        problem, arrays = self.problem, self.problem.cert.arrays
        self.open[k] = np.arange(problem.cert.n_features)
        radius = self._radius(k, point, reading, c)
        if radius is None or reading.norms is None:
            return
        strength = problem.cert["unit"] * arrays["alpha"][k]
        moved = reading.norms[self.penalty.features] * (radius / strength) * _INSIDE
        zero = np.zeros(problem.cert.n_features, dtype=bool)
        wanted = np.full(len(self.penalty.features), not reading.linear)  # else products say what levels do
        wanted[self._rows(reading)] = True
        zero[self.penalty.features] = self._zero_rows(k, point, reading, c, moved, wanted, _INSIDE)
        self.open[k] = np.flatnonzero(~zero)

    def _check_sure(
        self, k: int, features: Array, rows: Array, scaled: verify.Box, positions: Array, failures: list[str]
    ) -> None:
        problem, arrays, loss = self.problem, self.problem.cert.arrays, self.problem.cert["loss"]
        proved = np.zeros(problem.cert.n_features, dtype=bool)
        twice = 2.0 * arrays["gap"][k] * _INSIDE
        if arrays["ridge"][k] > 0.0 and len(positions):
            proved[positions] = arrays["ridge"][k] * scaled.square().sum(1).lo > twice
        support = np.union1d(self.open[k], problem.free)
        if problem.squared and 0 < len(support) <= min(max(map(len, problem.y)), _LARGEST_SUPPORT):
            proved |= self._by_eigenvalues(features, rows, support, twice * problem.cert["unit"] * loss["mu"])
        self.sure[k] = np.flatnonzero(proved)

    def _by_eigenvalues(self, features: Array, rows: Array, support: Array, reach: float) -> Array:
        proved = np.zeros(self.problem.cert.n_features, dtype=bool)
        if not np.isin(features, support).all():
            return proved
        for t in range(len(self.problem.tasks)):
            if proved[features].all():
                break
            absent = self.problem.cert.absent(t)  # zero in every solution
            own, here = support[~absent[support]], np.flatnonzero(~absent[features])
            bound = verify.least_eigenvalue(self.problem, t, own)
            if bound is None:
                continue
            kappa, d = bound
            at = np.searchsorted(own, features[here])
            for q in self.problem.outputs_of[t]:
                proved[features[here]] |= np.square(rows[here, q] / d[at]) * float(kappa.lo) > reach * _INSIDE
        return proved
