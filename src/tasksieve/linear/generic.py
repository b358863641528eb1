"""Any loss with any penalty: the estimator through which members of your own enter."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..fitted.parameters import keep_parameters
from ..losses import Loss, as_loss
from ..penalties import L11, L21, Dirty, LInf, RowPenalty, Sorted, SparseGroup
from .base import PathEstimator, TaskLinearModel, check_number
from .cross_validation import PathEstimatorCV
from .linked import LinkedRegression

LOSSES = ("squared", "huber", "quantile", "poisson", "square-root")
PENALTIES: dict[str, type[RowPenalty]] = {
    "l21": L21,
    "l11": L11,
    "sparse_group": SparseGroup,
    "linf": LInf,
    "dirty": Dirty,
    "owl": Sorted,
}


class AnyMembers(TaskLinearModel):
    """A model whose loss and penalty are parameters."""

    loss: Any
    penalty: Any
    ridge: float
    task_graph: Any = None
    graph_strength: float = 1.0

    def _named_losses(self) -> tuple[str, ...]:
        return LOSSES

    @property
    def _loss(self) -> Loss:  # type: ignore[override]
        return as_loss(self.loss)

    def _penalty(self) -> dict[str, Any]:
        return {"penalty": self._norm, "fixed_ridge": float(self.ridge)}

    @property
    def _norm(self) -> RowPenalty:
        """The penalty, without data."""
        return PENALTIES[self.penalty]() if isinstance(self.penalty, str) else self.penalty

    @property
    def shared_coef_(self) -> Any:
        """The part of ``coef_`` that tasks share."""
        return self._part("shared")

    @property
    def specific_coef_(self) -> Any:
        """The part of ``coef_`` that is of single tasks."""
        return self._part("specific")

    @property
    def selected_groups_(self) -> np.ndarray:
        """Names of the groups of features that are not zero."""
        names = self._norm.names_of(np.flatnonzero(self._learned().rows.any(axis=0)))
        if names is None:
            raise AttributeError(
                f"{type(self).__name__} has selected_groups_ only with a penalty on groups of features "
                "(tasksieve.penalties.Groups)."
            )
        return names

    def _part(self, name: str) -> Any:
        """A part of the coefficients, where the penalty is a minimum over parts."""
        state = self._learned()
        rows = state.rows.T
        scale = np.repeat(self.scale_, state.class_counts, axis=0).T if self.standardize else np.ones_like(rows)
        parts = self._norm.split(np.ascontiguousarray(rows * scale))
        if parts is None or name not in parts:
            raise AttributeError(
                f"{type(self).__name__} has {name}_coef_ only with a penalty that splits coefficients into parts "
                "(penalty='dirty')."
            )
        return state.shaped(np.ascontiguousarray((parts[name] / scale).T))

    def _check_members(self) -> None:
        check_number(self.ridge, "ridge", low=0, closed=True)
        check_number(self.graph_strength, "graph_strength", low=0, closed=True)
        names = self._named_losses()
        if not isinstance(self.loss, Loss) and not (isinstance(self.loss, str) and self.loss in names):
            raise ValueError(
                f"The 'loss' parameter must be one of {', '.join(map(repr, names))} or a tasksieve.losses.Loss; "
                f"got {self.loss!r}."
            )
        if not isinstance(self.penalty, RowPenalty) and not (
            isinstance(self.penalty, str) and self.penalty in PENALTIES
        ):
            raise ValueError(
                f"The 'penalty' parameter must be one of {', '.join(map(repr, PENALTIES))} or a "
                f"tasksieve.penalties.RowPenalty; got {self.penalty!r}."
            )


class _AnyRegression(LinkedRegression, AnyMembers):
    """A regression whose loss and penalty are parameters."""

    _loss = AnyMembers._loss


class MultiTaskRegressor(_AnyRegression, PathEstimator):
    r"""Linear regression for several tasks with any loss and any penalty, yours included.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t v_t \sum_i s_i f(y_i, x_i \cdot w_t + b_t + o_i)
        + \alpha\, \Omega(W) + \frac{\text{ridge}}{2} \lVert W \rVert_F^2
        + \frac{\gamma}{2} \sum_j \sum_{s<t} A_{st} (W_{js} - W_{jt})^2

    with row j of W the coefficients of feature j in all tasks, :math:`\bar n` the total sample weight of the observed
    labels / the number of tasks, v, s the weights of tasks and samples, o the ``offset`` of `fit` (0 by default), and A
    the weights of a graph of tasks, :math:`\gamma` its strength (the square-root loss: :math:`1/\sqrt{\bar n}` and the
    norm of each task's residual, as in `CalibratedMultiTaskLasso`). Screening, paths, every storage, cross-validation
    and the certificate come with every pair.

    Parameters
    ----------
    loss : {"squared", "huber", "quantile", "poisson", "square-root"} or Loss, default="squared"
        f, or an object of `tasksieve.losses`: a `tasksieve.losses.RowLoss` of your own.
    penalty : {"l21", "l11", "sparse_group", "linf", "dirty", "owl"} or RowPenalty, default="l21"
        :math:`\Omega`, or an object of `tasksieve.penalties`: a `tasksieve.penalties.RowPenalty` of your own.
    alpha : float, default=1.0
        Strength of the penalty, > 0. `alpha_max` gives the smallest value at which nothing is selected.
    ridge : float, default=0.0
        Strength of the ridge beside it, >= 0.
    task_graph : "chain", array or sparse matrix of shape (T, T), or networkx graph, optional
        A: symmetric weights >= 0 of the edges between tasks, whose coefficients become similar. Rows are in the order
        of ``tasks_``; the nodes of a networkx graph are the labels of tasks, all of them and no others. "chain": each
        task beside the next in ``tasks_``, as for time points.
    graph_strength : float, default=1.0
        :math:`\gamma` >= 0. Like the ridge it does not grow with alpha; features that are never penalised are not
        coupled.
    fit_intercept : bool, default=True
        One intercept per task, not penalised.
    positive : bool, default=False
        Only coefficients >= 0.
    standardize : bool, default=False
        Penalise the coefficients of columns scaled to unit standard deviation within each task. ``coef_`` is in the
        units of X all the same.
    feature_weights : array of shape (d,), optional
        Weights of the features in the penalty; 0 means never penalised.
    task_weights : array of shape (T,), dict or "balanced", optional
        :math:`v_t > 0`: in the order of ``tasks_``, or by label (1 for those not named), or :math:`\bar n / n_t`.
    tol : float, default=1e-6
        Stop when the dual gap is at most ``tol`` times the objective at W = 0 with the best intercepts.
    max_iter : int, default=10000
        Iterations after which to give up, with a `sklearn.exceptions.ConvergenceWarning`.
    screening : {"auto", "dpc", "midpoint", "gap", None}, default="auto"
        Safe rule that discards features before and while solving; None: no screening. "dpc" is for the squared, Huber,
        quantile and hinge losses.
    warm_start : bool, default=False
        Start from the solution of the last `fit`.
    n_jobs : int, optional
        Threads of the kernels; by default all processors available (see ``TASKSIEVE_NUM_THREADS``).
    device : str or torch.device, optional
        Where X is worked on, "cuda" for example: it is moved there once a fit (`on_device` moves it once for many). By
        default X stays where it is, a tensor on its device.
    verbose : int, default=0
        Report progress on stderr, about once a second; with 2, a line for each value that tells what it has cost.

    Attributes
    ----------
    coef_ : ndarray of shape (T, d)
        Coefficients W', a row per task.
    shared_coef_, specific_coef_ : ndarray of shape (T, d)
        Parts of ``coef_``, of which it is the sum; with a penalty that has parts (`tasksieve.penalties.Dirty`).
    selected_groups_ : ndarray
        Labels of the groups that are not zero; with a penalty on groups (`tasksieve.penalties.Groups`).
    intercept_ : ndarray of shape (T,)
    tasks_ : ndarray of shape (T,)
        Task labels in the order of ``coef_``: sorted; 0..T-1 for lists and a shared matrix.
    objective_ : float
        The objective above at the fitted model.
    dual_gap_ : float
        Upper bound on ``objective_`` minus the optimum: always computed, always true.
    null_objective_ : float
        The objective at W = 0 with the best intercepts.
    scale_ : ndarray of shape (T, d)
        Standard deviations that define the objective; only with ``standardize=True``.
    n_iter_ : int
    status_ : Status
        How the solution ended: "converged", or why not.
    choice_ : Choice
        Which solver found it (``kind``: "rows", "sums", "sums-in-blocks", "device"), and why (``reason``).
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X is a data frame.

    See Also
    --------
    MultiTaskRegressorCV : alpha by cross-validation.
    tasksieve.checks.check_penalty, tasksieve.checks.check_loss : whether a member of your own is right.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((90, 8)), np.repeat(["a", "b", "c"], 30)
    >>> y = X[:, 0] * np.select([task == "a", task == "b"], [2.0, -1.0], 0.0) + 0.1 * rng.standard_normal(90)
    >>> penalty = ts.penalties.SparseGroup(l1=1.0, group=1.0)
    >>> model = ts.MultiTaskRegressor(penalty=penalty, alpha=0.1).fit(X, y, task=task)
    >>> np.argwhere(model.coef_).tolist()
    [[0, 0], [1, 0]]
    """

    def __init__(
        self,
        loss: str | Loss = "squared",
        penalty: str | RowPenalty = "l21",
        *,
        alpha: float = 1.0,
        ridge: float = 0.0,
        task_graph: Any = None,
        graph_strength: float = 1.0,
        fit_intercept: bool = True,
        positive: bool = False,
        standardize: bool = False,
        feature_weights: Any = None,
        task_weights: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        screening: str | None = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        device: Any = None,
        verbose: int = 0,
    ) -> None:
        keep_parameters(self, locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_members()


class MultiTaskRegressorCV(_AnyRegression, PathEstimatorCV):
    r"""`MultiTaskRegressor` with ``alpha`` chosen by cross-validation along its path.

    .. math:: \alpha^\star = \arg\min_\alpha \frac1F \sum_f \frac1T \sum_t
        \ell\bigl(y_t^{(f)}, X_t^{(f)} w_t^{(-f)}(\alpha) + b_t^{(-f)}(\alpha)\bigr)

    over folds f, each predicted by a model of the other folds; :math:`\ell` is the loss's own held-out score
    (`tasksieve.losses.Loss.deviance`). Folds are row weights: X is neither copied nor cut.

    Parameters
    ----------
    loss, penalty, ridge, task_graph, graph_strength
        As in `MultiTaskRegressor`.
    alphas : array or int, optional
        Values to compare; an integer is another way to give ``n_alphas``.
    n_alphas : int, default=100
        Number of values, geometrically from ``alpha_max`` to ``eps`` times that.
    eps : float, default=1e-2
    cv : int, splitter or iterable of (train, test) row indices, default=5
        An integer: that many folds, shuffled within each task; ``groups`` of `fit` stay whole.
        Splitters that take groups get those, or else the tasks. Rows are counted in the order given (lists: stacked).
    scoring : str or callable, optional
        Name of a scikit-learn scorer, or ``scorer(estimator, X, y)``, greater is better. It judges the held-out rows of
        each task, and tasks count alike, but for those where it is not defined. By default the loss.
    selection_rule : {"min", "1se"}, default="min"
        The smallest mean loss, or the largest alpha within one standard error of it.
    fold_tol : float, optional
        Relative gap that folds are solved to; by default the larger of ``tol`` and 1e-4. The final path keeps ``tol``.
    early_stopping : bool, default=False
        All folds stop at the same value, when their mean loss has stayed above its minimum for 15 values in a row.
        Values given in ``alphas`` are all solved.
    fit_intercept, positive, standardize, feature_weights, task_weights, tol, max_iter, screening
        As in `MultiTaskRegressor`.
    n_jobs : int, optional
        Folds solved side by side, in threads that share X; by default one at a time, with all processors.
    device : str or torch.device, optional
        Where X is worked on, "cuda" for example: it is moved there once a fit (`on_device` moves it once for many). By
        default X stays where it is, a tensor on its device.
    verbose : int, default=0
        Report progress on stderr, about once a second; with 2, a line for each value that tells what it has cost.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the shuffled folds; None is 0. The fold of a row depends on it, on its task's place in ``tasks_`` and on
        its place among that task's observed rows.

    Attributes
    ----------
    alpha_ : float
        The value chosen.
    alphas_ : ndarray of shape (K,)
    cv_scores_ : ndarray of shape (K, n_folds)
        Mean over tasks of the held-out score.
    cv_folds_ : str
        How the folds were made, in words.
    cv_predictions_ : ndarray, or list of such for a list
        Out of fold at ``alpha_``, in the order of y; NaN for rows that were never held out, the mean for those held out
        twice.
    cv_quality_ : HeldOutQuality
        How good these are, task by task and overall, with standard errors: R² or D², or accuracy and AUC, and the loss.
        ``alpha_`` was chosen by the same rows, and it says so.
    cv_task_scores_ : ndarray of shape (T, n_folds)
        What ``cv_scores_`` at ``alpha_`` are the mean of; NaN for tasks without held-out rows.
    path_ : RegularizationPath
        The path on all rows.
    n_scored_ : int
        Values that were solved: past an early stop ``cv_scores_`` are NaN, and there ``path_`` ends.
    passes_ : float
        Readings of X by folds and path together, in equivalents. Where they are dear (a file, a `Storage`) folds walk
        in step and share them.
    shared_coef_, specific_coef_, selected_groups_
        As in `MultiTaskRegressor`, with a penalty that has parts or groups.
    coef_, intercept_, tasks_, objective_, dual_gap_, null_objective_, n_iter_, status_, choice_
        As in `MultiTaskRegressor`, of the model with ``alpha_`` on all rows.
    n_features_in_, feature_names_in_
        As in every model.

    See Also
    --------
    MultiTaskRegressor : for one value of alpha.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((60, 8)), np.repeat(["a", "b"], 30)
    >>> y = X[:, 0] * np.where(task == "a", 2.0, -1.0) + 0.1 * rng.standard_normal(60)
    >>> model = ts.MultiTaskRegressorCV(penalty="l21", n_alphas=20, selection_rule="1se").fit(X, y, task=task)
    >>> model.get_support(indices=True)
    array([0])
    """

    _estimator = MultiTaskRegressor

    def __init__(
        self,
        loss: str | Loss = "squared",
        penalty: str | RowPenalty = "l21",
        *,
        alphas: Any = None,
        ridge: float = 0.0,
        task_graph: Any = None,
        graph_strength: float = 1.0,
        n_alphas: int = 100,
        eps: float = 1e-2,
        cv: Any = None,
        scoring: Any = None,
        selection_rule: Literal["min", "1se"] = "min",
        fold_tol: float | None = None,
        early_stopping: bool = False,
        fit_intercept: bool = True,
        positive: bool = False,
        standardize: bool = False,
        feature_weights: Any = None,
        task_weights: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        screening: str | None = "auto",
        n_jobs: int | None = None,
        device: Any = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        keep_parameters(self, locals())
