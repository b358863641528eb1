"""Cox's proportional hazards for several tasks: one risk set per task and stratum, features selected together."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import numpy as np

from ..docstrings import described_by
from ..fitted.arguments import check_choice
from ..fitted.baseline_hazard import BaselineHazard
from ..fitted.documented import ROWS, documented
from ..fitted.parameters import BareSolverOptions, FeatureWeights, FoldOptions, TaskOptions, keep_parameters
from ..fitted.predicting import TaskSurvival
from ..losses import Cox, Loss
from ..penalties import RowPenalty
from ..tasks import TaskData, is_task_list, task_codes
from ..tasks.named import takes_named_tasks
from .base import PathEstimator
from .generic import AnyMembers, AnyMembersCV, GraphCVOptions, GraphOptions
from .held_out import path_scores

_CURVES = """
times : array of shape (K,), optional
    Where to evaluate. By default there is a step function for each row, as in scikit-survival.
strata : array of shape (n,), or list of such for a list, optional
    The stratum of each row; needed if the model was fitted with strata.
"""


class CoxOptions(GraphOptions, BareSolverOptions, TaskOptions, FeatureWeights, total=False):
    """Of `MultiTaskCox`, but for those that it names."""

    warm_start: bool


class CoxCVOptions(GraphCVOptions, FoldOptions, BareSolverOptions, TaskOptions, FeatureWeights, total=False):
    """Of `MultiTaskCoxCV`, but for those that it names."""


class CoxRegression(TaskSurvival, AnyMembers):
    """A survival model whose penalty is a parameter."""

    #: columns are centred, which changes nothing but the numbers that are worked with: a constant cancels
    fit_intercept: ClassVar[bool] = True  # type: ignore[misc]
    loss: ClassVar[str] = "cox"  # type: ignore[misc]
    ties: str

    baseline_hazard_: BaselineHazard

    @property
    def _loss(self) -> Loss:  # type: ignore[override]
        return Cox(self.ties)

    def _knows_loss(self) -> bool:
        return True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.ties, "ties", ("efron", "breslow"))

    def _set_solution(self, data: Any, point: Any) -> None:
        super()._set_solution(data, point)
        if isinstance(data, TaskData):
            self._set_baseline(data, point)
        else:  # the rows are gone, and with them who was at risk
            self.__dict__.pop("baseline_hazard_", None)

    def _set_baseline(self, data: TaskData, point: Any) -> None:
        """The baseline hazard of coefficients on the rows that they were fitted to."""
        chosen, found = path_scores(data, data.weights, [point])
        scores = np.zeros(len(data.y))
        for t, z in found.items():
            scores[data.offsets[t] + chosen[t]] = z[:, 0]
        self.baseline_hazard_ = BaselineHazard.of(data, scores, self.ties)

    @takes_named_tasks
    @described_by(ROWS + _CURVES)
    def predict_survival_function(
        self, X: Any, *, task: Any = None, times: Any = None, strata: Any = None, offset: Any = None
    ) -> Any:
        r"""Predict the probability to be without an event until t, :math:`S(t \mid x) = \exp(-H_0(t) e^{x \cdot w})`.

        Returns
        -------
        ndarray of shape (n,) of StepFunction, or with ``times`` of shape (n, K)
            A function f has event times ``f.x``, values ``f.y`` from these on, and is called with times: ``f(2.0)``.
            It is NaN beyond the last time at which a row of the task (and stratum) was observed. Without ``task``, and
            with several tasks, there is a second axis for them; a list for a list.
        """
        return self._curves(X, task, times, strata, offset, survival=True)

    @takes_named_tasks
    @described_by(ROWS + _CURVES)
    def predict_cumulative_hazard_function(
        self, X: Any, *, task: Any = None, times: Any = None, strata: Any = None, offset: Any = None
    ) -> Any:
        r"""Predict the cumulative hazard, :math:`H(t \mid x) = H_0(t) e^{x \cdot w}`.

        Returns
        -------
        ndarray of shape (n,) of StepFunction, or with ``times`` of shape (n, K)
            As `predict_survival_function`.
        """
        return self._curves(X, task, times, strata, offset, survival=False)

    def _curves(self, X: Any, task: Any, times: Any, strata: Any, offset: Any, survival: bool) -> Any:
        state = self._learned()
        hazard: BaselineHazard | None = getattr(self, "baseline_hazard_", None)
        if hazard is None:
            raise AttributeError(
                f"This {type(self).__name__} has no baseline hazard, which needs the rows of a fit: it is a value of a "
                "path. Fit a model with that alpha."
            )
        scores = self._scores(X, task, state, offset)
        if is_task_list(X):
            each = strata if isinstance(strata, list | tuple) else [strata] * len(scores)
            if len(each) != len(scores):
                raise ValueError(f"X is a list of {len(scores)} matrices, strata one of {len(each)}.")
            return [
                self._of_task(hazard, np.asarray(z), t, own, times, survival)
                for t, (z, own) in enumerate(zip(scores, each, strict=True))
            ]
        scores = np.asarray(scores)
        if scores.ndim == 2:
            columns = [self._of_task(hazard, z, t, strata, times, survival) for t, z in enumerate(scores.T)]
            return np.stack(columns, axis=1)
        if task is None:
            return self._of_task(hazard, scores, 0, strata, times, survival)
        codes = task_codes(task, state.tasks, len(scores))
        return hazard.curves(scores, codes, hazard.stratum_codes(strata, len(scores)), times, survival)

    @staticmethod
    def _of_task(hazard: BaselineHazard, scores: Any, t: int, strata: Any, times: Any, survival: bool) -> Any:
        stratum = hazard.stratum_codes(strata, len(scores))
        return hazard.curves(scores, np.full(len(scores), t), stratum, times, survival)


@documented
class MultiTaskCox(CoxRegression, PathEstimator):
    r"""Cox's proportional hazards for several tasks (cohorts, endpoints), features selected for all of them together.

    .. math::

        \min_W\ \frac{1}{\bar n} \sum_t v_t \sum_{i:\, \text{event}} s_i \Bigl(\log \sum_{k \in R(t_i)} s_k
        e^{x_k \cdot w_t + o_k} - x_i \cdot w_t - o_i\Bigr) + \alpha\, \Omega(W)
        + \frac{\text{ridge}}{2} \lVert W \rVert_F^2
        + \frac{\gamma}{2} \sum_j \sum_{s<t} A_{st} (W_{js} - W_{jt})^2

    with {terms} :math:`R(t_i)` are the rows of the task and stratum of row i that are under observation at its time,
    :math:`\text{entry}_k < t_i \le \text{time}_k`; o is the ``offset`` of `fit`, A holds the weights of a graph of
    tasks, and :math:`\gamma` is its strength. Events at the same time are treated by ``ties``. There is no intercept:
    the baseline hazard of each task and stratum stands for it, and may be any.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, > 0; with one task and the L2,1 (or L1,1) norm it is glmnet's lambda
        (``standardize = FALSE``).
    ties : {"efron", "breslow"}, default="efron"
        How events at the same time are treated: by Efron's approximation, or by Breslow's, which compares each of them
        with all rows at risk, the others among them.
    tol : float, default=1e-6
        Stop when the dual gap is at most ``tol`` times half the deviance of the empty model.
    screening : {"auto", "midpoint", "gap", None}, default="auto"
        Safe rule that discards features while solving; None: no screening.

    Attributes
    ----------
    coef_ : ndarray of shape (T, d)
        Coefficients W', a row per task: logarithms of hazard ratios.
    intercept_ : ndarray of shape (T,)
        Zeros.
    baseline_hazard_ : BaselineHazard
        Of each task and stratum, at x = 0: ``baseline_hazard_(task, stratum)`` is its cumulative hazard, a step
        function of time; ``to_frame()`` has all increments.
    null_objective_ : float
        Half the deviance of the empty model (over :math:`\bar n`): its objective above that of a saturated one.

    See Also
    --------
    survival : labels with entry times and strata.

    Notes
    -----
    y is `survival`'s array, scikit-survival's, or two columns (time, event). Several endpoints of one matrix are a list
    or a dict of such, cohorts ``{"name": (X, y)}``. A task without events leaves the loss, with a warning. Competing
    risks, and effects that change with time, are no part of the model (:doc:`/models/cox`).

    Weights of tasks multiply those of their rows, in the logarithms, too, which adds :math:`\frac{1}{\bar n} \sum_t
    v_t \log v_t \sum_{i:\, \text{event}} s_i` to the objective and nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X, risk, task, _ = ts.datasets.make_small_tasks(effects=[1.0, 1.0, -1.0])
    >>> time = np.exp(-risk)
    >>> y = ts.survival(np.minimum(time, 3.0), event=time < 3.0)
    >>> model = ts.MultiTaskCox(alpha=0.3).fit(X, y, task=task)
    >>> model.get_support(indices=True)
    array([0])
    >>> model.score(X, y, task=task) > 0.7
    True
    >>> model.predict_survival_function(X[:2], task=task[:2], times=[0.5, 1.0]).shape
    (2, 2)
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        ties: str = "efron",
        penalty: str | RowPenalty = "l21",
        **options: Unpack[CoxOptions],
    ) -> None:
        keep_parameters(self, locals())


@documented
class MultiTaskCoxCV(CoxRegression, AnyMembersCV):
    r"""`MultiTaskCox` with ``alpha``, and ``graph_strength`` where several are given, by cross-validation.

    .. math::

        \arg\min_\alpha \frac1T \sum_t \frac{\sum_f D_t\bigl(w_t^{(-f)}(\alpha)\bigr) -
        D_t^{(-f)}\bigl(w_t^{(-f)}(\alpha)\bigr)}{\sum_f d_t^{(f)}}

    over folds f, which are balanced by event: the cross-validated partial likelihood. D is the deviance of all rows,
    :math:`D^{(-f)}` that of the rows that the model of a fold has learned from, and :math:`d^{(f)}` the weight of the
    events that it holds out (Verweij and van Houwelingen 1993; cv.glmnet with ``grouped = TRUE``). A fold's figure in
    ``cv_scores_`` is its difference over the mean number of events that folds hold out. ``scoring="concordance"``
    chooses by Harrell's concordance within folds and tasks, ``scoring="partial_likelihood"`` by the partial likelihood
    of the held-out rows alone (``grouped = FALSE``), which is refused for folds without events.

    Attributes
    ----------
    cv_quality_ : HeldOutQuality
        Concordance, formed within folds, tasks and strata, the part of the deviance explained (D²) and the deviance for
        each event, task by task and overall, with standard errors. ``alpha_`` was chosen by the same rows, and it says
        so.
    cv_predictions_ : ndarray, or list of such for a list
        Logarithms of hazards out of fold at ``alpha_``, in the order of y, each by the model of its fold; NaN for rows
        that were never held out.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X, risk, task, _ = ts.datasets.make_small_tasks(effects=[1.0, 1.0, -1.0])
    >>> y = ts.survival(np.exp(-risk), event=risk > -1.0)
    >>> model = ts.MultiTaskCoxCV(n_alphas=20, eps=0.05, cv=3).fit(X, y, task=task)
    >>> model.cv_scores_.shape, model.alpha_ in model.alphas_
    ((20, 3), True)
    >>> model.cv_quality_.measures
    ('concordance', 'D²', 'partial-likelihood deviance')
    """

    _estimator = MultiTaskCox
    _held_out_words = "partial-likelihood deviance for each event"

    def __init__(
        self,
        alphas: Any = None,
        *,
        ties: str = "efron",
        penalty: str | RowPenalty = "l21",
        **options: Unpack[CoxCVOptions],
    ) -> None:
        keep_parameters(self, locals())
