"""Multi-task logistic regression: the same features for all tasks, two or more classes in each."""

from __future__ import annotations

from typing import Any, Literal

from ..fitted.parameters import keep_parameters
from .base import PathEstimator
from .classifier import AnyClassification
from .cross_validation import PathEstimatorCV


class MultiTaskLogisticRegression(AnyClassification, PathEstimator):
    r"""Classification for several tasks that selects features for all of them together.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t v_t \sum_i s_i \log\bigl(1 + \exp(-y_i (x_i \cdot w_t + b_t))\bigr)
        + \alpha \sum_j u_j \lVert W_j \rVert_2 + \frac{\text{ridge}}{2} \lVert W \rVert_F^2, \qquad y_i = \pm 1

    with row j of W the coefficients of feature j in all tasks, :math:`\bar n` the total sample weight of the observed
    labels / the number of tasks, and u, v, s the weights of features, tasks and samples. Each task has its own data
    matrix, or all share one. With more than two classes the loss is the multinomial one, task by task,

    .. math:: \log \sum_k e^{z_{ik}} - z_{i, y_i}, \qquad z_{ik} = x_i \cdot w_{tk} + b_{tk},

    and row j of W has the coefficients of feature j for all classes of all tasks.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, > 0. `alpha_max` gives the smallest value at which nothing is selected; with
        standardised features and one task it is below 0.5.
    ridge : float, default=0.0
        Strength of the ridge beside it, >= 0.
    class_weight : dict or "balanced", optional
        Factors of the sample weights, by label (1 for those not named), or such that within each task every class
        counts alike.
    fit_intercept : bool, default=True
        One intercept per task, or per class of each task, not penalised.
    positive : bool, default=False
        Only coefficients >= 0.
    standardize : bool, default=False
        Penalise the coefficients of columns scaled to unit standard deviation within each task. ``coef_`` is in the
        units of X all the same.
    feature_weights : array of shape (d,), optional
        :math:`u_j \ge 0`; 0 means never penalised (two classes only).
    task_weights : array of shape (T,), dict or "balanced", optional
        :math:`v_t > 0`: in the order of ``tasks_``, or by label (1 for those not named), or
        :math:`\bar n / n_t`, so that every task counts once.
    tol : float, default=1e-6
        Stop when the dual gap is at most ``tol`` times the objective at W = 0 with the best intercepts.
    max_iter : int, default=10000
        Iterations after which to give up, with a `sklearn.exceptions.ConvergenceWarning`.
    screening : {"auto", "midpoint", "gap", None}, default="auto"
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
    classes_ : ndarray of shape (2,) or (K,), or list of arrays
        The labels, sorted over all tasks; of two the larger is +1. Where tasks have different labels, a list in the
        order of ``tasks_``.
    coef_ : ndarray of shape (T, d), more than two classes (K, T, d)
        Coefficients, with two classes a row per task: log-odds of the larger class. Where tasks have different classes,
        and one more than two: a list of T arrays of shape (K_t, d).
    intercept_ : ndarray of shape (T,), or (K, T), or list of T arrays
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
    MultiTaskLogisticRegressionCV : alpha by cross-validation.
    MultiTaskClassifier : with other penalties, and other losses.

    Notes
    -----
    A task may lack one of the two classes. With an intercept, its loss then falls towards 0 as the intercept grows
    without end: a warning says so, and the intercept is kept finite. Where each task has two labels, and not all the
    same, these are its classes. Otherwise, if one task has rows of all classes, these are the classes of every task,
    and a task may lack some; if none has, each task has its own.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((80, 6)), np.repeat(["a", "b"], 40)
    >>> y = np.where(X[:, 0] + 0.3 * rng.standard_normal(80) > 0, "yes", "no")
    >>> model = ts.MultiTaskLogisticRegression(alpha=0.2).fit(X, y, task=task)
    >>> model.classes_
    array(['no', 'yes'], dtype='<U3')
    >>> model.get_support(indices=True)
    array([0])
    >>> model.predict_proba(X, task=task).shape, model.predict_proba(X).shape
    ((80, 2), (80, 2, 2))
    """

    loss, penalty = "logistic", "l21"

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        ridge: float = 0.0,
        class_weight: Any = None,
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


class MultiTaskLogisticRegressionCV(AnyClassification, PathEstimatorCV):
    r"""`MultiTaskLogisticRegression` with ``alpha`` chosen by cross-validation along its path.

    .. math:: \alpha^\star = \arg\min_\alpha \frac1F \sum_f \frac1T \sum_t \frac{1}{n_t^{(f)}} \sum_i
        \log\bigl(1 + \exp(-y_i (x_i \cdot w_t^{(-f)}(\alpha) + b_t^{(-f)}(\alpha)))\bigr)

    over folds f, each predicted by a model of the other folds (more than two classes: the mean of -log p(class)). Folds
    are row weights: X is neither copied nor cut.

    Parameters
    ----------
    alphas : array or int, optional
        Values to compare; an integer is another way to give ``n_alphas``.
    n_alphas : int, default=100
        Number of values, geometrically from ``alpha_max`` to ``eps`` times that.
    eps : float, default=1e-2
    cv : int, splitter or iterable of (train, test) row indices, default=5
        An integer: that many folds, shuffled within each task and class; ``groups`` of `fit` stay whole.
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
    ridge, class_weight, fit_intercept, positive, standardize, feature_weights, task_weights, tol, max_iter, screening
        As in `MultiTaskLogisticRegression`. Class weights count in the held-out loss, too.
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
        Mean over tasks of the held-out logistic loss.
    cv_folds_ : str
        How the folds were made, in words.
    cv_predictions_ : ndarray, or list of such for a list
        Out of fold at ``alpha_``, in the order of y: probabilities as of ``predict_proba``, decision values where the
        loss has none; NaN for rows that were never held out, the mean for those held out twice.
    cv_quality_ : HeldOutQuality
        How good these are, task by task and overall, with standard errors: R² or D², or accuracy and AUC, and the loss.
        ``alpha_`` was chosen by the same rows, and it says so.
    cv_task_scores_ : ndarray of shape (T, n_folds)
        What ``cv_scores_`` at ``alpha_`` are the mean of; NaN for tasks without held-out rows.
    path_ : RegularizationPath
        The path on all rows.
    path_scores_ : ndarray of shape (`n_scored_`, n_folds)
        ``cv_scores_`` along ``path_``; what they measure says ``cv_measure``.
    n_scored_ : int
        Values that were solved: past an early stop ``cv_scores_`` are NaN, and there ``path_`` ends.
    passes_ : float
        Readings of X by folds and path together, in equivalents. Where they are dear (a file, a `Storage`) folds walk
        in step and share them.
    classes_, coef_, intercept_, tasks_, objective_, dual_gap_, n_iter_, status_, choice_
        As in `MultiTaskLogisticRegression`, of the model with ``alpha_`` on all rows.
    n_features_in_, feature_names_in_
        As in `MultiTaskLogisticRegression`.

    See Also
    --------
    MultiTaskLogisticRegression : for one value of alpha.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((80, 6)), np.repeat(["a", "b"], 40)
    >>> y = np.where(X[:, 0] + 0.3 * rng.standard_normal(80) > 0, "yes", "no")
    >>> model = ts.MultiTaskLogisticRegressionCV(n_alphas=10, eps=0.1).fit(X, y, task=task)
    >>> model.score(X, y, task=task) > 0.85
    True
    """

    _estimator = MultiTaskLogisticRegression

    loss, penalty = "logistic", "l21"

    def __init__(
        self,
        alphas: Any = None,
        *,
        n_alphas: int = 100,
        eps: float = 1e-2,
        cv: Any = None,
        scoring: Any = None,
        selection_rule: Literal["min", "1se"] = "min",
        fold_tol: float | None = None,
        early_stopping: bool = False,
        ridge: float = 0.0,
        class_weight: Any = None,
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
