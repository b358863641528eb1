"""Calibrated multi-task Lasso: a norm of the residual for each task, so that tasks may differ in noise."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
from scipy.optimize import brentq
from scipy.stats import gamma

from ..fitted.arguments import check_choice
from ..fitted.documented import documented
from ..fitted.parameters import PathCVOptions, PathOptions, keep_parameters
from ..fitted.predicting import TaskRegression
from ..losses import Loss, SquareRoot
from ..messages import ParameterError
from ..path.calibrated import PUBLISHED
from ..path.follow import PathSolution
from ..path.problem import Problem
from ..tasks import TaskData
from .base import PathEstimator
from .cross_validation import PathEstimatorCV
from .path_solver import PathSolver

_SOLVERS = ("auto", *PUBLISHED)
_SCREENING = ("auto", "gap", None)
_LEVEL = 0.05  # of the universal alpha: chance that pure noise selects anything


class _CalibratedRegression(TaskRegression):
    """What the model and its cross-validated sibling share: the loss and its units."""

    _loss: ClassVar[Loss] = SquareRoot()

    def _set_solution(self, data: TaskData, point: Any) -> None:
        super()._set_solution(data, point)
        totals = np.sqrt(data.weight_per_task)
        sizes = point.residual_norms / data.task_weights
        self.noise_ = np.divide(sizes, totals, out=np.zeros_like(sizes), where=totals > 0.0)


@documented
class CalibratedMultiTaskLasso(_CalibratedRegression, PathEstimator):
    r"""Multi-task Lasso that calibrates itself to tasks of different noise.

    .. math::

        \min_{W, b}\ \frac{1}{\sqrt{\bar n}} \sum_t v_t \bigl\lVert \sqrt{s} \circ (X_t w_t + b_t - y_t) \bigr\rVert_2
        + \alpha \sum_j u_j \lVert W_j \rVert_2 + \frac{l_2}{2} \lVert W \rVert_F^2

    with {terms} The loss of a task is the norm of its residual, not its square: a noisy task does not dominate a quiet
    one, and the right ``alpha`` does not depend on the noise of any task.

    Parameters
    ----------
    alpha : float or "universal", default=1.0
        Strength of the penalty, > 0. "universal": computed from the column norms alone, so that pure noise, of any
        size in each task, selects anything with probability at most 5 % (see Notes). `alpha_max` gives the
        smallest value at which nothing is selected.
    solver : {"auto", "d-pg", "d-fista", "p-spg", "p-sfista", "p-admm"}, default="auto"
        "auto": a Newton method in the row norms and the noise levels, on working sets (projected gradients on the dual
        where ``positive``). The others are the algorithms compared in [1]_, for study: on all features, and with
        ``history_``.
    feature_weights : array of shape (d,), optional
        :math:`u_j \ge 0`; 0 means never penalised (not by the ridge either).
    screening : {"auto", "gap", None}, default="auto"
        Safe rule that discards features along a path, before and while solving; None: no screening. "auto" is "gap",
        but nothing with the algorithms for study.

    Attributes
    ----------
    noise_ : ndarray of shape (T,)
        Estimated standard deviation of the noise in each task, :math:`\lVert \sqrt s \circ r_t \rVert / \sqrt{\sum s}`
        of its residual. Too small where many features are selected: no degrees of freedom are subtracted.
    alpha_ : float
        The ``alpha`` used.
    history_ : dict of ndarray
        Algorithms for study only, one entry an iteration: ``objective`` and ``dual`` (values of the iterates), ``gap``
        (of the best of both so far) and ``seconds``.

    See Also
    --------
    MultiTaskLasso : the squared loss.

    Notes
    -----
    With one task and ``l2=0`` this is the square-root Lasso of Belloni, Chernozhukov and Wang (2011).

    *The universal alpha.* Noise e_t alone selects nothing if ``alpha`` reaches
    :math:`\max_j \lVert (\langle x_{jt}, e_t \rangle / \lVert e_t \rVert)_t \rVert / (u_j \sqrt{\bar n})`. For
    Gaussian noise the directions :math:`e_t / \lVert e_t \rVert` are uniform on spheres for any variances, so its
    distribution is known: it is *pivotal*. The squared norm of feature j is a sum of
    :math:`\lVert x_{jt} \rVert^2 B_t` with independent
    :math:`B_t \sim \text{Beta}(1/2, (m_t - 1)/2)`, m_t the dimension of the sphere. We take the gamma
    distribution with the same mean and variance, and the alpha at which the probabilities of all features add up to 5 %
    (a union bound, so correlated features make it cautious).

    References
    ----------
    .. [1] P. Gong, J. Zhou, W. Fan, J. Ye, "Efficient Multi-Task Feature Learning with Calibration", KDD 2014.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(noise=[3.0, 0.1], n_rows=100)
    >>> model = ts.CalibratedMultiTaskLasso(alpha="universal").fit(X, y, task=task)
    >>> model.get_support(indices=True)
    array([0])
    >>> model.noise_.round(1)
    array([3.5, 0.1])
    """

    def __init__(
        self,
        alpha: float | Literal["universal"] = 1.0,
        *,
        l2: float = 0.0,
        solver: str = "auto",
        **options: Unpack[PathOptions],
    ) -> None:
        keep_parameters(self, locals())

    def universal_alpha(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None) -> float:
        """The alpha that ``alpha="universal"`` stands for: it depends on X and on which labels are observed, not on y.

        Parameters
        ----------
        X, y, task, sample_weight
            As in `fit`.

        Returns
        -------
        float
        """
        self._check_parameters()
        data = self._read(X, y, task, sample_weight)
        return self._universal(data, self._problem(data))

    def _universal(self, data: TaskData, problem: Problem) -> float:
        design, weights = problem.design, problem.penalty.weights
        # The sphere of a task: its rows, less what intercept and unpenalised features explain.
        given = design.weights
        present = np.ones(design.n_samples) if given is None else (given > 0.0).astype(float)
        lengths = design.task_sums(present) - sum(design.task_sums(b * b) for b in design.nuisance_basis)
        inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.5)
        # <x, u>^2 for u uniform on a sphere is ||x||^2 times a Beta(1/2, (m - 1)/2) variable
        squares = np.square(design.norms())
        mean = (squares * inverse).sum(axis=1)
        spread = np.where(lengths > 1.5, 2.0 * (lengths - 1.0) * inverse**2 / (lengths + 2.0), 0.0)
        variance = (np.square(squares) * spread).sum(axis=1)
        live = (weights > 0.0) & (mean > 0.0)
        if not live.any():
            return 1.0
        mean, weights = mean[live], weights[live]
        variance = np.maximum(variance[live], 1e-12 * mean**2)
        shape, scale = mean * mean / variance, variance / mean

        def excess(alpha: float) -> float:
            return float(np.sum(gamma.sf(np.square(alpha * weights), shape, scale=scale))) - _LEVEL

        high = float(np.max(np.sqrt(gamma.isf(_LEVEL / len(mean), shape, scale=scale)) / weights))
        low = float(np.min(np.sqrt(mean) / weights)) * 1e-3
        found = float(brentq(excess, min(low, 0.5 * high), high * (1.0 + 1e-9)))
        return problem.units.outward(found) / self._unit(data)

    def _check_alpha(self) -> None:
        if not isinstance(self.alpha, str):
            super()._check_alpha()
        elif self.alpha != "universal":
            raise ParameterError("alpha", "must be a number > 0 or 'universal'", self.alpha)

    def _chosen_alpha(self, data: TaskData, problem: Problem) -> float:
        if hasattr(self, "history_"):
            del self.history_
        self.alpha_ = self._universal(data, problem) if isinstance(self.alpha, str) else float(self.alpha)
        return self.alpha_

    def _set_fit(self, solver: PathSolver, solution: PathSolution) -> Self:
        history = solution.history
        if history is not None:
            unit = self._unit(solver.facts)
            self.history_ = {name: np.array(getattr(history, name)) / unit for name in ("objective", "dual", "gap")}
            self.history_["seconds"] = np.array(history.seconds)
        return super()._set_fit(solver, solution)

    def _penalty(self) -> dict[str, Any]:
        return {"fixed_ridge": self.l2}

    def _engine_options(self) -> dict[str, Any]:
        if self.solver == "auto":
            return {"screening": self.screening}
        # As published: all features at every iteration.
        screening = None if self.screening == "auto" else self.screening
        return {"solver": self.solver, "working_set": False, "screening": screening}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.solver, "solver", _SOLVERS)
        if self.screening not in _SCREENING:
            raise ParameterError(
                "screening",
                f"must be one of {', '.join(map(repr, _SCREENING))}: {self.screening!r} holds for the squared loss "
                "only",
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # with standardised features nothing enters a single task at alpha >= 1, for any y
        tags.regressor_tags.poor_score = not isinstance(self.alpha, str) and self.alpha >= 0.5
        return tags


@documented
class CalibratedMultiTaskLassoCV(_CalibratedRegression, PathEstimatorCV):
    """`CalibratedMultiTaskLasso` with ``alpha``, and ``l2`` where several are given, chosen by cross-validation.

    The score is the model's own loss, the root mean squared error of each task: with its square the noisiest task alone
    would choose ``alpha``.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks(noise=[3.0, 0.1], n_rows=100)
    >>> model = ts.CalibratedMultiTaskLassoCV(n_alphas=20, selection_rule="1se").fit(X, y, task=task)
    >>> model.get_support(indices=True)
    array([0])
    >>> model.cv_scores_.shape
    (20, 5)
    """

    _estimator = CalibratedMultiTaskLasso
    _compared = "l2"
    _held_out_words = "root mean squared error"

    def __init__(
        self, alphas: Any = None, *, l2: Any = 0.0, solver: str = "auto", **options: Unpack[PathCVOptions]
    ) -> None:
        keep_parameters(self, locals())
