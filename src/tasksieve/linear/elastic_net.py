"""Multi-task elastic net: the multi-task Lasso with a ridge."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from ..fitted.arguments import read_several
from ..fitted.parameters import keep_parameters
from .base import PathEstimator, TaskRegression, check_number
from .cross_validation import PathEstimatorCV
from .from_moments import ComparesMoments, FitsMoments


class MultiTaskElasticNet(TaskRegression, FitsMoments):
    r"""Multi-task Lasso with a ridge: correlated features are kept together rather than picked by chance.

    .. math::

        \min_{W, b}\ \frac{1}{2 \bar n} \sum_t v_t \sum_i s_i (y_i - x_i \cdot w_t - b_t)^2
        + \alpha \rho \sum_j u_j \lVert W_j \rVert_2 + \frac{\alpha (1 - \rho)}{2} \lVert W \rVert_F^2

    with :math:`\rho` = ``l1_ratio``, row j of W the coefficients of feature j in all tasks, :math:`\bar n` the total
    sample weight of the observed labels / the number of tasks, and u, v, s the weights of features, tasks and samples.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, > 0.
    l1_ratio : float, default=0.5
        Share of the L2,1 norm, 0 < ``l1_ratio`` <= 1; 1 is `MultiTaskLasso`. 0, a pure ridge, selects nothing and is
        refused.
    fit_intercept : bool, default=True
        One intercept per task, not penalised.
    positive : bool, default=False
        Only coefficients >= 0.
    standardize : bool, default=False
        Penalise the coefficients of columns scaled to unit standard deviation within each task. ``coef_`` is in the
        units of X all the same.
    feature_weights : array of shape (d,), optional
        :math:`u_j \ge 0`; 0 means never penalised (not by the ridge either).
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
    copy_X, selection, random_state
        For compatibility with scikit-learn; without effect. X is never modified, and the solver is deterministic.

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
    MultiTaskElasticNetCV : alpha and l1_ratio by cross-validation.

    Notes
    -----
    With one matrix shared by all tasks the objective, and so ``coef_`` and ``intercept_``, are those of
    `sklearn.linear_model.MultiTaskElasticNet`.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 8))
    >>> X[:, 1] = X[:, 0]                                    # twins
    >>> Y = np.outer(X[:, 0], [2.0, -1.0]) + 0.1 * rng.standard_normal((60, 2))
    >>> model = ts.MultiTaskElasticNet(alpha=0.2, l1_ratio=0.5).fit(X, Y)
    >>> model.get_support(indices=True)
    array([0, 1])
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
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
        copy_X: bool = True,
        selection: str = "cyclic",
        random_state: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def _penalty(self) -> dict[str, Any]:
        return {"ridge_ratio": (1.0 - self.l1_ratio) / self.l1_ratio}

    def _strength(self) -> float:
        return self.l1_ratio

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self.l1_ratio, "l1_ratio", low=0, closed=False, high=1)


class MultiTaskElasticNetCV(TaskRegression, ComparesMoments):
    r"""`MultiTaskElasticNet` with ``alpha``, and ``l1_ratio`` where several are given, chosen by cross-validation.

    .. math:: (\alpha, \rho)^\star = \arg\min_{\alpha, \rho} \frac1F \sum_f \frac1T \sum_t
        \text{MSE}\bigl(y_t^{(f)}, X_t^{(f)} w_t^{(-f)}(\alpha, \rho) + b_t^{(-f)}(\alpha, \rho)\bigr)

    over folds f, each predicted by a model of the other folds. Folds are row weights: X is neither copied nor cut.

    Parameters
    ----------
    alphas : array or int, optional
        Values to compare; an integer is another way to give ``n_alphas``.
    n_alphas : int, default=100
        Number of values, geometrically from ``alpha_max`` (of each ``l1_ratio``) to ``eps`` times that.
    eps : float, default=1e-2
    l1_ratio : float or list of float, default=0.5
        Share of the L2,1 norm, or several to compare.
    cv : int, splitter or iterable of (train, test) row indices, default=5
        An integer: that many folds, shuffled within each task; ``groups`` of `fit` stay whole. Given one shared matrix,
        2-D Y and no groups: unshuffled folds of its rows, as in scikit-learn. Splitters that take groups get those, or
        else the tasks. Rows are counted in the order given (lists: stacked).
    scoring : str or callable, optional
        Name of a scikit-learn scorer, or ``scorer(estimator, X, y)``, greater is better. It judges the held-out rows of
        each task, and tasks count alike, but for those where it is not defined. By default the loss.
    selection_rule : {"min", "1se"}, default="min"
        The smallest mean loss, or, with the same ``l1_ratio``, the largest alpha within one standard error of it.
    fold_tol : float, optional
        Relative gap that folds are solved to; by default the larger of ``tol`` and 1e-4. The final path keeps ``tol``.
    early_stopping : bool, default=False
        All folds stop at the same value, when their mean loss has stayed above its minimum for 15 values in a row.
        Values given in ``alphas`` are all solved.
    fit_intercept, positive, standardize, feature_weights, task_weights, tol, max_iter, screening
        As in `MultiTaskElasticNet`.
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
    copy_X, selection
        For compatibility with scikit-learn; without effect.

    Attributes
    ----------
    alpha_ : float
        The value chosen.
    l1_ratio_ : float
        The ratio chosen.
    alphas_ : ndarray of shape (K,), or (n_l1_ratio, K) where ``l1_ratio`` is a list
    cv_scores_ : ndarray of shape (K, n_folds), or (n_l1_ratio, K, n_folds) where ``l1_ratio`` is a list
        Mean over tasks of the held-out mean squared error.
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
        The path with ``l1_ratio_`` on all rows.
    path_scores_ : ndarray of shape (`n_scored_`, n_folds)
        ``cv_scores_`` along ``path_``; what they measure says ``cv_measure``.
    n_scored_ : int
        Values that were solved: past an early stop ``cv_scores_`` are NaN, and there ``path_`` ends.
    passes_ : float
        Readings of X by folds and path together, in equivalents. Where they are dear (a file, a `Storage`) folds walk
        in step and share them.
    coef_, intercept_, tasks_, objective_, dual_gap_, n_iter_, status_, choice_, n_features_in_, feature_names_in_
        As in `MultiTaskElasticNet`, of the model with ``alpha_`` and ``l1_ratio_`` on all rows.

    See Also
    --------
    MultiTaskElasticNet : for one value of alpha.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 8))
    >>> Y = np.outer(X[:, 0], [2.0, -1.0]) + 0.1 * rng.standard_normal((60, 2))
    >>> model = ts.MultiTaskElasticNetCV(l1_ratio=[0.1, 0.9], n_alphas=20).fit(X, Y)
    >>> model.l1_ratio_
    0.9
    >>> model.cv_scores_.shape
    (2, 20, 5)
    """

    _estimator = MultiTaskElasticNet
    _folds_of_scikit_learn = True
    _skip_checks: ClassVar[dict[str, str]] = {
        **PathEstimatorCV._skip_checks,
        "columns": "one matrix with a column for each task has scikit-learn's folds",
    }

    def __init__(
        self,
        alphas: Any = None,
        *,
        n_alphas: int = 100,
        eps: float = 1e-2,
        l1_ratio: Any = 0.5,
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
        copy_X: bool = True,
        selection: str = "cyclic",
        random_state: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def _candidates(self) -> list[PathEstimator]:
        ratios = read_several(self.l1_ratio, "l1_ratio")
        return [self._model(l1_ratio=ratio) for ratio in ratios]

    def _set_scores(
        self, best: int, models: list[PathEstimator], grids: list[np.ndarray], scores: np.ndarray
    ) -> None:
        self.l1_ratio_ = float(models[best].get_params()["l1_ratio"])
        if isinstance(self.l1_ratio, Real):
            super()._set_scores(best, models, grids, scores)
        else:
            self.alphas_, self.cv_scores_ = np.array(grids), scores
