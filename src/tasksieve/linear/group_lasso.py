"""Multi-task group Lasso: groups of features are selected for all tasks together."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..fitted.parameters import keep_parameters
from ..penalties import L21, Groups, RowPenalty, SparseGroup
from .base import PathEstimator, TaskLinearModel, TaskRegression
from .cross_validation import PathEstimatorCV


class _OnGroups(TaskRegression, TaskLinearModel):
    """What both estimators say of their penalty."""

    _loss = "squared"

    feature_groups: Any
    inside: Literal["rows", "entries"] | None
    mix: float
    group_weights: Any

    @property
    def _norm(self) -> RowPenalty:
        """The penalty, without data; a feature that has no group is one by itself."""
        if self.feature_groups is not None:
            return Groups(self.feature_groups, self.inside, mix=self.mix, weights=self.group_weights)
        if self.group_weights not in ("sqrt", None):
            raise ValueError("group_weights need feature_groups; weights of single features are feature_weights.")
        Groups([0], self.inside, mix=self.mix).check(1)
        return SparseGroup(self.mix, 1.0 - self.mix) if self.inside == "entries" else L21()

    def _penalty(self) -> dict[str, Any]:
        return {"penalty": self._norm}

    @property
    def selected_groups_(self) -> np.ndarray:
        """Labels of the groups that are not zero; the selected features where there are no groups."""
        selected = np.flatnonzero(self._learned().coef.any(axis=0))
        names = self._norm.names_of(selected)
        return selected if names is None else names


class MultiTaskGroupLasso(_OnGroups, PathEstimator):
    r"""Linear regression of several tasks that selects whole groups of features, for all tasks together.

    .. math::

        \min_{W, b}\ \frac{1}{2 \bar n} \sum_t v_t \sum_i s_i (y_i - x_i \cdot w_t - b_t)^2
        + \alpha \sum_G u_G \lVert W_G \rVert_F

    with :math:`W_G` the rows of W that belong to the features of group G (genes, sets of SNPs, the columns of one
    category), :math:`\bar n` the total sample weight of the observed labels / the number of tasks, and v, s the weights
    of tasks and samples. With ``inside="rows"`` the norm of a group is :math:`(1 - m) \lVert W_G \rVert_F
    + m \sum_{j \in G} \lVert W_j \rVert_2`, with ``inside="entries"``
    :math:`(1 - m) \lVert W_G \rVert_F + m \lVert W_G \rVert_1`, m = ``mix``.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, > 0.
    feature_groups : array of shape (d,) or mapping, optional
        The group of each feature, any labels; or ``{"name": [features], ...}``. Each feature is in exactly one group;
        by default every feature is a group.
    inside : {None, "rows", "entries"}, default=None
        Features of a chosen group are all in; or some of them; or some, each for some tasks.
    mix : float, default=0.5
        Share of the norm inside, 0 < ``mix`` < 1; with ``inside`` only.
    group_weights : "sqrt", None, array or mapping, default="sqrt"
        :math:`u_G`: the root of the group's size; 1; or numbers > 0, by label or in the order of the sorted labels.
    fit_intercept : bool, default=True
        One intercept per task, not penalised.
    positive : bool, default=False
        Only coefficients >= 0.
    standardize : bool, default=False
        Penalise the coefficients of columns scaled to unit standard deviation within each task. ``coef_`` is in the
        units of X all the same.
    feature_weights : array of shape (d,), optional
        Equal within each group, whose weight they multiply; 0: a group that is never penalised.
    task_weights : array of shape (T,), dict or "balanced", optional
        :math:`v_t > 0`: in the order of ``tasks_``, or by label (1 for those not named), or :math:`\bar n / n_t`.
    tol : float, default=1e-6
        Stop when the dual gap is at most ``tol`` times the objective at W = 0 with the best intercepts.
    max_iter : int, default=10000
        Iterations after which to give up, with a `sklearn.exceptions.ConvergenceWarning`.
    screening : {"auto", "dpc", "gap", None}, default="auto"
        Safe rule that discards groups before and while solving; None: no screening.
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
    selected_groups_ : ndarray
        Labels of the groups that are not zero. `get_support` tells features.
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
    MultiTaskGroupLassoCV : alpha by cross-validation.
    MultiTaskRegressor : the same penalty (`tasksieve.penalties.Groups`) with other losses and a ridge.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((90, 9)), np.repeat([0, 1, 2], 30)
    >>> y = X[:, 0] - X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(90)
    >>> groups = ["a", "a", "a", "b", "b", "c", "c", "c", "c"]
    >>> model = ts.MultiTaskGroupLasso(alpha=0.3, feature_groups=groups).fit(X, y, task=task)
    >>> model.selected_groups_.tolist(), model.get_support(indices=True)
    (['a'], array([0, 1, 2]))
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        feature_groups: Any = None,
        inside: Literal["rows", "entries"] | None = None,
        mix: float = 0.5,
        group_weights: Any = "sqrt",
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


class MultiTaskGroupLassoCV(_OnGroups, PathEstimatorCV):
    r"""`MultiTaskGroupLasso` with ``alpha`` chosen by cross-validation along its path.

    .. math:: \alpha^\star = \arg\min_\alpha \frac1F \sum_f \frac1T \sum_t
        \ell\bigl(y_t^{(f)}, X_t^{(f)} w_t^{(-f)}(\alpha) + b_t^{(-f)}(\alpha)\bigr)

    over folds f, each predicted by a model of the other folds; :math:`\ell` is the mean squared error. Folds are row
    weights: X is neither copied nor cut.

    Parameters
    ----------
    alphas : array or int, optional
        Values to compare; an integer is another way to give ``n_alphas``.
    feature_groups, inside, mix, group_weights
        As in `MultiTaskGroupLasso`.
    n_alphas : int, default=100
        Number of values, geometrically from ``alpha_max`` to ``eps`` times that.
    eps : float, default=1e-2
    cv : int, splitter or iterable of (train, test) row indices, default=5
        An integer: that many folds, shuffled within each task; ``groups`` of `fit`, which are groups of rows, stay
        whole. Splitters that take groups get those, or else the tasks. Rows are counted in the order given (lists:
        stacked).
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
        As in `MultiTaskGroupLasso`.
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
        The path on all rows.
    n_scored_ : int
        Values that were solved: past an early stop ``cv_scores_`` are NaN, and there ``path_`` ends.
    passes_ : float
        Readings of X by folds and path together, in equivalents. Where they are dear (a file, a `Storage`) folds walk
        in step and share them.
    coef_, selected_groups_, intercept_, tasks_, objective_, dual_gap_, n_iter_, status_, choice_
        As in `MultiTaskGroupLasso`, of the model with ``alpha_`` on all rows.
    n_features_in_, feature_names_in_
        As in every model.

    See Also
    --------
    MultiTaskGroupLasso : for one value of alpha.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((60, 8)), np.repeat(["a", "b"], 30)
    >>> y = (X[:, 0] + X[:, 1]) * np.where(task == "a", 2.0, -1.0) + 0.5 * rng.standard_normal(60)
    >>> groups = [0, 0, 1, 1, 2, 2, 3, 3]
    >>> model = ts.MultiTaskGroupLassoCV(feature_groups=groups, cv=3, selection_rule="1se").fit(X, y, task=task)
    >>> model.selected_groups_
    array([0])
    """

    _estimator = MultiTaskGroupLasso

    def __init__(
        self,
        alphas: Any = None,
        *,
        feature_groups: Any = None,
        inside: Literal["rows", "entries"] | None = None,
        mix: float = 0.5,
        group_weights: Any = "sqrt",
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
