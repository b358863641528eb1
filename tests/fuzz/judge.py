"""What must be true of every answer, and whether it is.

With P the objective of the stored numbers, P_low that of the best point known (own descent, tighter solve; both are
points, so the optimum is not higher) and null the objective of the empty model (best intercepts, best unpenalised
coefficients), all of them in forty digits:

- ``finite``: objective and gap are finite, the gap is not negative;
- ``objective``: abs(objective_ - P) <= 1e-13 (P + null), and without an intercept, where offsets are signal that cannot
  be taken off, `Plain.blur` more; classes: 1e-15 of the total weight more, what a log-sum-exp in float64 loses;
- ``gap``: P - P_low <= dual_gap_;
- ``bound``: objective_ - dual_gap_ <= P_low, up to 4 ulps of objective_, which is a rounded number;
- ``tol``: a model without a ConvergenceWarning has dual_gap_ <= tol null (1 + 1e-9);
- ``null``: P <= the objective of the empty model as it would be stored (a model that met tol: plus tol null; classes:
  plus 1e-9 of the loss at scores of 0, an infimum at infinity is not attained), unless it is an empty model itself;
- ``error``: no exception but, for cases that say so, a ValueError that names an argument;
- ``endless``: the call comes back.

``gap`` and ``bound`` allow for the judge's own rounding, 1e-35 of P + null, and for ranks that a formula defines, which
float64 does not hold exactly, for 4e-15 of P.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from exact_numbers import Wide, finite, wide
from mpmath import nstr

from . import library
from .cases import Case, make_case
from .descend import Descent
from .evaluate import REGRESSIONS, Plain
from .library import Endless, Stored

Array = np.ndarray[Any, Any]

ARGUMENT = re.compile(
    r"\b(X|y|alpha|sample_weight|feature_weights|task_weights|l1|group|l2|ridge|C|weights|tol)\b"
)
TIGHTER = 1e-3
NAMED_RANKS = 4e-15
ROUNDING = 1e-35


@dataclass
class Violation:
    case: Case
    check: str
    words: str

    def __str__(self) -> str:
        return f"{self.check}: {self.words}\n    {self.case}\n    {self.case.call}"


@dataclass
class Tally:
    """How many calls were judged, how many certificates, how many refusals, and what was wrong."""

    fits: int = 0
    certificates: int = 0
    refused: int = 0
    violations: list[Violation] = field(default_factory=list)

    def __str__(self) -> str:
        wrong = len({v.case.number for v in self.violations})
        return (
            f"{self.fits} fits, {self.certificates} certificates, {self.refused} refused, "
            f"{len(self.violations)} violations in {wrong} fits"
        )


class Judge:
    """One problem: its null, and the lowest objective known."""

    def __init__(self, plain: Plain) -> None:
        self.plain, self.descent = plain, Descent(plain)
        with np.errstate(all="ignore"):
            _, self.null, coef, intercept = self.descent.null()
            self.stored_null = plain.objective(coef, intercept)
            if plain.loss not in REGRESSIONS:  # the infimum need not be attained
                self.stored_null += 1e-9 * plain.loss_value([wide(np.zeros(len(y))) for y in plain.y])
        self.low = self.null if finite(self.null) else np.inf

    def look_at(self, coef: Array, intercept: Array, descend: bool = True) -> Any:
        """The objective of stored numbers; what lies below them is remembered."""
        with np.errstate(all="ignore"):
            value = self.plain.objective(coef, intercept)
            self.low = min(self.low, value)
            if descend and finite(value):
                self.low = min(self.low, self.descent.lowest(self.descent.start(coef, intercept))[1])
        return value

    def check(self, stored: Stored, tol: float) -> list[tuple[str, str]]:
        """Names and numbers of the claims that are false. Asks for `look_at` of all points beforehand."""
        objective, gap = Wide(stored.objective), Wide(stored.dual_gap)
        if not (math.isfinite(stored.objective) and math.isfinite(stored.dual_gap) and gap >= 0):
            return [("finite", f"objective {stored.objective!r}, dual gap {stored.dual_gap!r}")]
        with np.errstate(all="ignore"):
            value = self.plain.objective(stored.coef, stored.intercept)
        null, wrong = self.null, []
        own = ROUNDING * (value + null) + NAMED_RANKS * value * self.plain.named_ranks
        numbers = f"P {_digits(value)}, dual gap {_digits(gap)}, null {_digits(null)}"
        free_of_offsets = self.plain.fit_intercept and self.plain.coupling is None
        off = abs(objective - value)
        blur = 0 if free_of_offsets else self.plain.blur(stored.coef, stored.intercept)
        if self.plain.loss not in REGRESSIONS:
            blur += 1e-15 * self.plain.factor * sum((np.sum(s) for s in self.plain.s), 0)
        if not off <= 1e-13 * (value + null) + own + blur:
            wrong.append(("objective", f"objective {_digits(objective)} is off by {_digits(off)}: {numbers}"))
        truth = value - self.low
        if not truth <= gap + own:
            wrong.append(("gap", f"distance to the optimum >= {_digits(truth)}: {numbers}"))
        excess = objective - gap - self.low
        if not excess <= own + 4 * np.spacing(float(abs(objective))):
            wrong.append(("bound", f"objective - gap is above the optimum by {_digits(excess)}: {numbers}"))
        if stored.converged is None:
            return wrong
        if stored.converged and not gap <= tol * null * (1 + 1e-9):
            wrong.append(("tol", f"no warning, relative gap {_digits(gap / null)}, tol {tol:g}: {numbers}"))
        room = (1 + 1e-9) * self.stored_null + (tol * null if stored.converged else 0)
        if not value <= room and np.any(stored.coef[..., ~self.plain.free]):
            wrong.append(("null", f"worse than W = 0, {_digits(self.stored_null)}: {numbers}"))
        return wrong


def _digits(number: Any) -> str:
    """Also of numbers beyond float64."""
    return str(nstr(Wide(number), 4))


def examine(case: Case, tally: Tally) -> None:
    """Fit, compare, note what is false."""

    def note(check: str, words: str) -> None:
        tally.violations.append(Violation(case, check, words))

    tally.fits += 1
    with library.given(case) as arguments:
        try:
            if case.path:
                claims = library.path(case, arguments)
            else:
                claims = [library.fit(case, arguments)[1]]
        except Endless as error:
            note("endless", str(error))
            return
        except Exception as error:
            named = isinstance(error, ValueError) and ARGUMENT.search(str(error))
            if case.may_refuse and named:
                tally.refused += 1
            else:
                note("error", f"{type(error).__name__}: {error}")
            return
        for claim in claims:
            tally.certificates += 1
            for check, words in _judged(case, claim, arguments, tally):
                note(check, words)


def _judged(case: Case, claim: Stored, arguments: dict[str, Any], tally: Tally) -> Iterable[tuple[str, str]]:
    judge = Judge(case.plain(claim.alpha))
    wrong: list[tuple[str, str]] = []
    given = {"C" if case.name.startswith("graph") else "alpha": claim.alpha}
    tight = None
    try:
        tight = library.fit(case, arguments, tol=case.tol * TIGHTER, max_iter=4_000, **given)[1]
    except Endless as error:
        wrong.append(("endless", f"the tighter solve: {error}"))
    except Exception as error:
        if not case.may_refuse:
            wrong.append(("error", f"the tighter solve: {type(error).__name__}: {error}"))
    if np.all(np.isfinite(claim.coef)) and np.all(np.isfinite(claim.intercept)):
        judge.look_at(claim.coef, claim.intercept)
    else:
        return [*wrong, ("finite", "stored numbers are not finite")]
    if tight is not None and np.all(np.isfinite(tight.coef)) and np.all(np.isfinite(tight.intercept)):
        judge.look_at(tight.coef, tight.intercept)
    wrong += judge.check(claim, case.tol)
    if tight is not None:
        tally.certificates += 1
        wrong += [
            (check, "the tighter solve: " + words) for check, words in judge.check(tight, case.tol * TIGHTER)
        ]
    if case.number % 4 == 0 and not case.path and _can_prove(case):
        wrong += _proofs(case, claim, arguments, judge, tally)
    return wrong


def _can_prove(case: Case) -> bool:
    return not (case.name.startswith("graph") or case.params.get("standardize") or case.kind == "extreme")


def _proofs(
    case: Case, claim: Stored, arguments: dict[str, Any], judge: Judge, tally: Tally
) -> Iterable[tuple[str, str]]:
    """The numbers as stored, and with coefficients off by 1e-4 and intercepts by a few ulps."""
    rng = np.random.default_rng([case.seed, case.number, 2])
    coef = claim.coef * (1 + 1e-4 * rng.standard_normal(claim.coef.shape))
    intercept = claim.intercept + 3 * np.spacing(claim.intercept) * case.params["fit_intercept"]
    for words, w, b in (("stored", claim.coef, claim.intercept), ("perturbed", coef, intercept)):
        judge.look_at(w, b, descend=False)
        try:
            proof = library.prove(case, arguments, w, b)
        except Exception as error:
            yield "error", f"proof of {words} numbers: {type(error).__name__}: {error}"
            continue
        tally.certificates += 1
        for check, numbers in judge.check(proof, case.tol):
            yield check, f"proof of {words} numbers: {numbers}"


def run(seed: int, numbers: Iterable[int]) -> Tally:
    """Judge cases by their numbers."""
    tally = Tally()
    for number in numbers:
        examine(make_case(seed, number), tally)
    return tally
