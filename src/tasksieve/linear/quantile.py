"""Multi-task quantile regression: the same features for all tasks, any quantile of the labels."""

from __future__ import annotations

from typing import Any, Literal

from ..fitted.parameters import keep_parameters
from ..losses import Loss, Quantile
from ..tasks.named import takes_named_tasks
from .base import PathEstimator, check_number
from .cross_validation import PathEstimatorCV
from .linked import LinkedRegression


class _QuantileLoss(LinkedRegression):
    q: float
    smoothing: float

    @property
    def _loss(self) -> Loss:  # type: ignore[override]
        return Quantile(float(self.q), float(self.smoothing))

    @takes_named_tasks
    def score(self, X: Any, y: Any = None, task: Any = None, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Mean over tasks of D², the part of the pinball loss that is explained (not smoothed).

        Parameters
        ----------
        X, y, task, sample_weight
            Rows in any form that `fit` takes.
        offset : float, or array or list in the form of y, optional
            As in `predict`.

        Returns
        -------
        float
            1 is perfect; 0 is as good as each task's quantile. Labels that are NaN are left out, and so are tasks with
            fewer than two labels.
        """
        return self._task_score(X, y, task, sample_weight, offset)


class MultiTaskQuantile(_QuantileLoss, PathEstimator):
    r"""Quantile regression for several tasks that selects features for all of them together.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t v_t \sum_i s_i \rho(y_i - x_i \cdot w_t - b_t)
        + \alpha \sum_j u_j \lVert W_j \rVert_2, \qquad
        \rho(r) = \max_{q - 1 \le p \le q} p\, r - \frac{\mu}{2} p^2

    with row j of W the coefficients of feature j in all tasks, :math:`\bar n` the total sample weight of the observed
    labels / the number of tasks, and u, v, s the weights of features, tasks and samples. Each task has its own data
    matrix, or all share one. :math:`\rho` is the pinball loss
    :math:`\max(q r, (q - 1) r)` with its kink rounded over :math:`\mu` = ``smoothing``, and at most
    :math:`\mu \max(q, 1 - q)^2/2` below it.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, > 0. `alpha_max` gives the smallest value at which nothing is selected.
    q : float, default=0.5
        The quantile that is predicted, between 0 and 1.
    smoothing : float, default=0.1
        :math:`\mu > 0`, in the units of y: part of the objective that is certified. Smaller is nearer to the pinball
        loss, and slower.
    fit_intercept : bool, default=True
        One intercept per task, not penalised.
    positive : bool, default=False
        Only coefficients >= 0.
    standardize : bool, default=False
        Penalise the coefficients of columns scaled to unit standard deviation within each task. ``coef_`` is in the
        units of X all the same.
    feature_weights : array of shape (d,), optional
        :math:`u_j \ge 0`; 0 means never penalised.
    task_weights : array of shape (T,), dict or "balanced", optional
        :math:`v_t > 0`: in the order of ``tasks_``, or by label (1 for those not named), or
        :math:`\bar n / n_t`, so that every task counts once.
    tol : float, default=1e-6
        Stop when the dual gap is at most ``tol`` times the objective at W = 0 with the best intercepts.
    max_iter : int, default=10000
        Iterations after which to give up, with a `sklearn.exceptions.ConvergenceWarning`.
    screening : {"auto", "dpc", "midpoint", "gap", None}, default="auto"
        Rule that discards features before and while solving; None: no screening.
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
    intercept_ : ndarray of shape (T,)
    tasks_ : ndarray of shape (T,)
        Task labels in the order of ``coef_``: sorted; 0..T-1 for lists and a shared matrix.
    objective_ : float
        The objective above at the fitted model.
    dual_gap_ : float
        Upper bound on ``objective_`` minus the optimum: always computed, always true.
    null_objective_ : float
        The objective of the empty model; ``dual_gap_`` is at most ``tol`` times this, or there was a warning.
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
    MultiTaskQuantileCV : alpha by cross-validation.
    MultiTaskHuber : a robust centre.
    MultiTaskRegressor : with any penalty.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((90, 8)), np.repeat(["a", "b", "c"], 30)
    >>> y = X[:, 0] + (1.0 + 0.8 * (X[:, 1] > 0)) * rng.exponential(size=90)
    >>> model = ts.MultiTaskQuantile(alpha=0.05, q=0.9).fit(X, y, task=task)
    >>> bool(np.mean(y <= model.predict(X, task=task)) > 0.8)
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        q: float = 0.5,
        smoothing: float = 0.1,
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
        check_number(self.q, "q", low=0, closed=False, high=1.0)
        check_number(self.smoothing, "smoothing", low=0, closed=False)
        _ = self._loss  # refuses q = 1


class MultiTaskQuantileCV(_QuantileLoss, PathEstimatorCV):
    r"""`MultiTaskQuantile` with ``alpha`` chosen by cross-validation along its path.

    .. math:: \alpha^\star = \arg\min_\alpha \frac1F \sum_f \frac1T \sum_t
        \ell\bigl(y_t^{(f)}, X_t^{(f)} w_t^{(-f)}(\alpha) + b_t^{(-f)}(\alpha)\bigr)

    over folds f, each predicted by a model of the other folds; :math:`\ell` is the mean pinball loss, not smoothed.
    Folds are row weights: X is neither copied nor cut.

    Parameters
    ----------
    alphas : array or int, optional
        Values to compare; an integer is another way to give ``n_alphas``.
    q, smoothing
        As in `MultiTaskQuantile`.
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
        As in `MultiTaskQuantile`.
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
        Readings of X by folds and path together, in equivalents.
    coef_, intercept_, tasks_, objective_, dual_gap_, null_objective_, n_iter_, status_, choice_
        As in `MultiTaskQuantile`, of the model with ``alpha_`` on all rows.
    n_features_in_, feature_names_in_
        As in every model.

    See Also
    --------
    MultiTaskQuantile : for one value of alpha.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((90, 8)), np.repeat(["a", "b", "c"], 30)
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(90)
    >>> model = ts.MultiTaskQuantileCV(n_alphas=20, eps=0.05, selection_rule="1se").fit(X, y, task=task)
    >>> model.get_support(indices=True)
    array([0])
    """

    _estimator = MultiTaskQuantile

    def __init__(
        self,
        alphas: Any = None,
        *,
        q: float = 0.5,
        smoothing: float = 0.1,
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
