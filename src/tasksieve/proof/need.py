r"""Which features are needed, proved: every model without them is worse than these coefficients by some delta.

Weak duality, for the problem without features S: with any dual point whose constraints hold for all *other* features,

.. math:: P(W') \ge D_S \quad \text{for every } W' \text{ with } W'_S = 0,
          \qquad \delta = D_S - P(W) .

Where delta is positive, one of S is in every solution. Points come from `reduced.py`. Most prove so much that rounding
plays no part: what is claimed of these is less by far more than rounding can take. What others prove is found by the
verifier, all rounding counted, many of them in one pass over the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import verify
from .reduced import ReducedProblems

Array = np.ndarray[Any, Any]

MOST_NUMBERS = 5_000_000  # of all dual points of claims: 40 MB
_ROUNDS = 3  # of readings, each with the features that were outside the dual ball in the last one
_ENTERING = 50  # of those in one round
_NARROWER = 1.0 - 2.0**-20  # claims, beside rounding
_ROUNDING = 1e-8  # of the objective: what products in twice the precision may bring
_FAR_MORE = 1e-9  # of the objective: what is taken off bounds in double precision, of which a twentieth at most
_TWENTIETH = 0.05


@dataclass
class Candidate:
    """Features of which one may be needed, and those with which the problem without them is solved."""

    features: Array
    working: Array
    dual: Array | None = None


@dataclass
class Proved:
    """What the coefficients of a value, whose objective is at most `top`, are found to need.

    - `spare`: What rounding may add to the bounds elsewhere.
    - `usual`: Whether the dual point of the coefficients counted in all tasks.
    - `deviations`: Standard deviations of columns, where they are known.
    """

    stated: verify.Certificate
    tasks: list[verify.Task]
    value: int
    top: float
    spare: float
    usual: bool
    deviations: verify.Box | None = None

    def arrays(self, reduced: ReducedProblems, listed: Callable[[Array], Array]) -> dict[str, Array]:
        """Arrays of the format with all claims of need that are found; none where there is nothing to claim.

        - `listed`: A dual point of the solver as the format has it; or several, one a row.
        """
        most = MOST_NUMBERS // max(self.stated.arrays["dual"].shape[1], 1)
        asked = [Candidate(unit, reduced.working) for unit in reduced.units()[:most]]
        together: dict[tuple[int, ...], Candidate] = {}
        for one in asked:  # near copies can replace a feature: it is tested with them, too
            features = reduced.copies(one.features)
            if len(features) > len(one.features):
                together.setdefault(tuple(features.tolist()), Candidate(features, reduced.working))
        claims, rest = self._bounded([*asked, *together.values()][:most], reduced, listed)
        claims += self._prove(rest, reduced, listed)
        claims.sort(key=lambda claim: (len(claim[0]), claim[0].tolist()))
        if not claims:
            return {}
        return {
            "need_value": np.full(len(claims), self.value, dtype=np.int64),
            "need_start": np.cumsum([0, *(len(features) for features, _, _ in claims)]).astype(np.int64),
            "need": np.concatenate([features for features, _, _ in claims]).astype(np.int64),
            "need_delta": np.array([delta for _, delta, _ in claims]),
            "need_dual": np.array([dual for _, _, dual in claims]),
        }

    def _bounded(
        self, asked: list[Candidate], reduced: ReducedProblems, listed: Callable[[Array], Array]
    ) -> tuple[list[tuple[Array, float, Array]], list[Candidate]]:
        """Claims that need no intervals, and the candidates for which there is none."""
        less = _FAR_MORE * abs(self.top) + 8.0 * self.spare
        # something in the data that double precision does not see
        if not self.usual or not abs(reduced.objective - self.top) <= less:
            return [], asked
        claims, rest = list[tuple[Array, float, Array]](), list[Candidate]()
        for one, bound in zip(asked, reduced.bounds([one.features for one in asked]), strict=True):
            if bound is None or not 2.0 * less <= _TWENTIETH * bound.delta:
                rest.append(one)
            else:  # once for the objective of the coefficients, once for the bound
                claims.append((one.features, bound.delta - 2.0 * less, bound.residual))
        if claims:
            duals = listed(np.array([residual for _, _, residual in claims]))
            claims = [(*claim[:2], dual) for claim, dual in zip(claims, duals, strict=True)]
        return claims, rest

    def _prove(
        self, asked: list[Candidate], reduced: ReducedProblems, listed: Callable[[Array], Array]
    ) -> list[tuple[Array, float, Array]]:
        """Features, delta and dual point of each claim that holds."""
        claims = []
        for _ in range(_ROUNDS):
            solved = []
            for one in asked:
                residual = reduced.residual(one.features, one.working)
                if residual is not None:
                    one.dual = listed(residual)
                    solved.append(one)
            asked = []
            for one, (delta, outside) in zip(solved, self._deltas(solved), strict=True):
                assert one.dual is not None
                entering = np.setdiff1d(outside, np.concatenate([one.features, one.working]))
                if delta > 0.0:
                    claims.append((one.features, delta, one.dual))
                elif len(entering):
                    asked.append(Candidate(one.features, np.union1d(one.working, reduced.whole(entering))))
            if not asked:
                break
        return claims

    def _read(self, checker: Any, i: int, point: Any, reading: Any, features: Array) -> Any:
        """The dual value of a point; with products in twice the precision only where rounding decides."""
        dual = checker.without(i, point, reading, features)
        near = self.top - _ROUNDING * abs(self.top) <= dual.lo < self.top
        return checker.without(i, point, reading, features, np.float64(self.top)) if near else dual

    def _deltas(self, solved: list[Candidate]) -> list[tuple[float, Array]]:
        """What each candidate's point proves, and the features that stand outside the dual ball most."""
        if not solved:
            return []
        count, duals = len(solved), np.array([one.dual for one in solved])
        reduced = verify.reduced_problems(self.stated, np.full(count, self.value), duals)
        problem = verify.Problem(reduced, self.tasks, verify.Floating(quick=True))
        problem.deviations = self.deviations
        checker = verify.Checker(problem)
        found = []
        for i, point, reading in verify.read_values(checker, range(count), False, lambda words: None):
            levels = np.zeros(0) if reading.levels is None else np.array(reading.levels)
            try:
                dual = self._read(checker, i, point, reading, solved[i].features)
                width = 2.0 * (dual.hi - dual.lo) + self.spare
                delta = float((dual.lo - self.top) * _NARROWER - width)
            except verify.Undecided:
                delta = -np.inf
            worst = np.argsort(-levels, kind="stable")[:_ENTERING]
            outside = checker.penalty.features[worst[levels[worst] > 1.0]]
            found.append((delta if np.isfinite(delta) else -np.inf, outside))
        return found
