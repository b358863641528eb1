"""What is proved about coefficients that any program has produced: one model, or the values of a path."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..proof.certificate import Certificate
from ..verify import Verdict

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Polished:
    r"""The solution that is reached from graded coefficients as a start.

    .. math:: P(W, b) - \min P \le \texttt{dual\_gap}

    Made by `Grade.polish`.

    Attributes
    ----------
    coef, intercept : ndarray
        In the form and the units of the graded ones. The intercept of a survival model is 0.
    dual_gap, relative_gap : float
        As the certificate proves them: the second of the objective at zero coefficients.
    certificate : Certificate
    processor_time : float
        Seconds that all threads of this process have computed, from the data to the solution, without the certificate.
    model : estimator
        The fitted model, in our words; of a problem of another program whose columns were scaled, it predicts for
        ``Grade.data["X"]``.
    """

    coef: Any
    intercept: Any
    dual_gap: float
    relative_gap: float
    certificate: Certificate
    processor_time: float
    model: Any


@dataclass(frozen=True)
class GradedCase:
    """What was graded: the model in our words, the data as the certificate has them, and how coefficients were given.

    - `given`: X, y, task, sample_weight, offset
    - `rows`: The coefficients inside, (K, d, Q).
    - `outward`: From coefficients and intercepts of the model to the form and units that were given.
    """

    model: Any
    given: tuple[Any, ...]
    alphas: Array
    rows: Array
    outward: Any
    null: float


@dataclass(frozen=True)
class Grade:
    r"""What is proved about given coefficients.

    .. math:: \texttt{excess\_bounds}_0 \le P(W, b) - \min P \le \texttt{excess\_bounds}_1 = \texttt{dual\_gap}

    Made by `grade`.

    Attributes
    ----------
    objective : float
        P at the coefficients.
    dual_gap : float
        They are at most so much above the optimum: a proof, however they were computed.
    relative_gap : float
        ``dual_gap`` / ``null_objective``.
    best_objective : float or None
        Of our own solution; None if ``solve=False``.
    excess : float or None
        How far our solution is below theirs: ``objective - best_objective``.
    proven_zero, proven_nonzero : bool ndarrays of shape (d,)
        Features that are zero in every solution, and in none, by whichever of the two pairs of points proves it.
    wrong_zero, wrong_nonzero : bool ndarrays of shape (d,)
        Their zeros that are not zero in any solution; their non-zeros that are zero in every solution.
    selected : bool ndarray of shape (d,)
        Their non-zeros.
    certificate : Certificate
        The proof, for others to check. Its value ``value`` is about the coefficients; the last half of its values are
        our own solutions.
    feature_names : ndarray of str or None
    null_objective : float
        The objective at zero coefficients with the best intercepts.
    value : int
        Which value of the certificate they are: 0 unless they are of a path.
    alpha : float
        The strength, in our words.
    note : str
        Of a problem of another program: what is not graded as it is.
    """

    objective: float
    dual_gap: float
    relative_gap: float
    best_objective: float | None
    excess: float | None
    proven_zero: Array
    proven_nonzero: Array
    wrong_zero: Array
    wrong_nonzero: Array
    selected: Array
    certificate: Certificate
    feature_names: Array | None = None
    null_objective: float = np.nan
    value: int = 0
    alpha: float = np.nan
    note: str = ""
    _case: GradedCase | None = field(default=None, repr=False, compare=False)

    @property
    def excess_bounds(self) -> tuple[float, float]:
        """How far they are above the optimum, at least and at most.

        Only the first may be called an error: it is what our solution saves, all rounding taken off, and 0 where
        nothing is proved (or with ``solve=False``). The second is ``dual_gap``.
        """
        if self.excess is None:
            return 0.0, self.dual_gap
        proof, ours = self.certificate, self.value + self.certificate.n_values // 2
        # dual value + gap is above an objective by its rounding and a millionth of the gap
        rounding = sum(
            max(float(proof.dual_values[k] + proof.gaps[k] - proof.objectives[k]), 0.0) for k in (self.value, ours)
        )
        return min(max(self.excess - rounding, 0.0), self.dual_gap), self.dual_gap

    @property
    def relative_excess(self) -> tuple[float, float]:
        """``excess_bounds`` over ``null_objective``."""
        low, high = self.excess_bounds
        unit = self.null_objective if self.null_objective > 0.0 else 1.0
        return low / unit, high / unit

    @property
    def data(self) -> dict[str, Any]:
        """X, y, task, sample_weight and offset as the certificate is about them: those given, unless the problem of
        another program scales columns, leaves some out, or penalises the intercept (as one more column)."""
        X, y, task, sample_weight, offset = self._known().given
        return {"X": X, "y": y, "task": task, "sample_weight": sample_weight, "offset": offset}

    def verify(self, *, exact: bool = False) -> Verdict:
        """Have the verifier check the certificate on `data`: that of the coefficients, and of our solution.

        Parameters
        ----------
        exact : bool, default=False
            Rational arithmetic: no floating point is trusted. Slow.

        Returns
        -------
        Verdict
        """
        return self.certificate.verify(**self.data, exact=exact)

    def polish(self, *, tol: float = 1e-9) -> Polished:
        """Solve the problem from the graded coefficients as a start.

        Parameters
        ----------
        tol : float, default=1e-9
            Of the solution, relative to the objective at zero coefficients.

        Returns
        -------
        Polished
        """
        case = self._known()
        k = self.value
        X, y, task, sample_weight, offset = case.given
        model = copy(case.model)
        model.tol, model.alpha = tol, float(case.alphas[k])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a gap that is larger than asked for: it is told
            start = time.process_time()
            data = model._read_with(X, y, task, sample_weight, offset)
            model._fit_from(X, data, case.rows[k].T)
            seconds = time.process_time() - start
            proof = model.certificate(X, y, task=task, sample_weight=sample_weight, offset=offset)
        gap = float(proof.gaps[0])
        coef, intercept = case.outward(model.coef_, model.intercept_)
        return Polished(coef, intercept, gap, gap / case.null if case.null > 0.0 else gap, proof, seconds, model)

    def summary(self) -> str:
        """The same in a few lines of words."""
        zero = ~self.selected
        lines = [
            f"objective {self.objective:.10g}, proved to be at most {self.dual_gap:.3g} above the optimum "
            f"({self.relative_gap:.2g} of the objective at zero)",
        ]
        if self.excess is not None:
            lines.append(f"our solution is lower by {self.excess:.3g}")
        right = int(np.sum(self.selected & self.proven_nonzero)), int(np.sum(zero & self.proven_zero))
        lines += [
            f"{int(self.selected.sum())} features are not zero: {right[0]} provably right, "
            f"{int(self.wrong_nonzero.sum())} provably wrong{self._named(self.wrong_nonzero)}",
            f"{int(zero.sum())} features are zero: {right[1]} provably right, "
            f"{int(self.wrong_zero.sum())} provably wrong{self._named(self.wrong_zero)}",
        ]
        lines.append("right and wrong are said of this problem's optimum, not of what matters")
        if self.note:
            lines.append(f"note: {self.note}")
        return "\n".join(lines)

    def _known(self) -> GradedCase:
        if self._case is None:
            raise ValueError("The data of this grade are not at hand.")
        return self._case

    def _named(self, which: Array) -> str:
        positions = np.flatnonzero(which)
        if not len(positions):
            return ""
        names = [str(j) if self.feature_names is None else str(self.feature_names[j]) for j in positions[:5]]
        return f" ({', '.join(names)}{', ...' if len(positions) > 5 else ''})"


@dataclass(frozen=True)
class GradePath:
    r"""What is proved about the values of a path: a sequence of `Grade`, and their numbers as arrays.

    .. math:: P_k(W_k, b_k) - \min P_k \le \texttt{dual\_gaps}_k

    Made by `grade` from several strengths. All values stand in one certificate, whose last half is our own path.

    Attributes
    ----------
    grades : list of Grade
        Also by ``path[k]``, in the order of the strengths that were given.
    certificate : Certificate
    """

    grades: list[Grade]
    certificate: Certificate

    def __len__(self) -> int:
        return len(self.grades)

    def __getitem__(self, k: int) -> Grade:
        return self.grades[k]

    def __iter__(self) -> Iterator[Grade]:
        return iter(self.grades)

    def _of_each(self, value: Callable[[Grade], Any]) -> Array:
        return np.array([value(found) for found in self.grades])

    @property
    def alphas(self) -> Array:
        """Strengths in our words, of shape (K,)."""
        return self._of_each(lambda found: found.alpha)

    @property
    def objectives(self) -> Array:
        return self._of_each(lambda found: found.objective)

    @property
    def dual_gaps(self) -> Array:
        return self._of_each(lambda found: found.dual_gap)

    @property
    def relative_gaps(self) -> Array:
        return self._of_each(lambda found: found.relative_gap)

    @property
    def excess_bounds(self) -> Array:
        """How far they are above the optimum, at least and at most, of shape (K, 2)."""
        return self._of_each(lambda found: found.excess_bounds)

    @property
    def relative_excess(self) -> Array:
        """The same over the objective at zero coefficients."""
        return self._of_each(lambda found: found.relative_excess)

    @property
    def n_selected(self) -> Array:
        return self._of_each(lambda found: int(found.selected.sum()))

    @property
    def n_wrong_zero(self) -> Array:
        """Features left out that are in every solution, of shape (K,)."""
        return self._of_each(lambda found: int(found.wrong_zero.sum()))

    @property
    def n_wrong_nonzero(self) -> Array:
        """Features in use that are in no solution, of shape (K,)."""
        return self._of_each(lambda found: int(found.wrong_nonzero.sum()))

    def verify(self, *, exact: bool = False) -> Verdict:
        """Have the verifier check the certificate, all values.

        Parameters
        ----------
        exact : bool, default=False
            Rational arithmetic: no floating point is trusted. Slow.

        Returns
        -------
        Verdict
        """
        return self.grades[0].verify(exact=exact)

    def summary(self) -> str:
        """A line for each value."""
        lines = ["alpha       gap (of the objective at zero)  excess at least  selected  wrong non-zeros  wrong zeros"]
        numbers = self.alphas, self.relative_gaps, self.relative_excess[:, 0]
        counts = self.n_selected, self.n_wrong_nonzero, self.n_wrong_zero
        for alpha, gap, excess, selected, extra, missing in zip(*numbers, *counts, strict=True):
            lines.append(f"{alpha:<10.4g}  {gap:<30.2g}  {excess:<15.2g}  {selected:<8}  {extra:<15}  {missing}")
        return "\n".join(lines + [f"note: {found.note}" for found in self.grades[:1] if found.note])
