"""Classification with any penalty: two classes per task with any loss of signs, more with the logistic one."""

from __future__ import annotations

from typing import Any, Literal

from ..fitted.parameters import keep_parameters
from ..losses import BY_NAME, Loss
from ..penalties import RowPenalty
from .base import PathEstimator, TaskClassification
from .cross_validation import PathEstimatorCV
from .generic import AnyMembers


class AnyClassification(TaskClassification, AnyMembers):
    """A classification whose loss and penalty are parameters."""

    _loss = AnyMembers._loss

    class_weight: Any

    def _named_losses(self) -> tuple[str, ...]:
        return tuple(name for name, kind in BY_NAME.items() if kind.labels == "signs")

    def _check_members(self) -> None:
        super()._check_members()
        if self._member.labels != "signs":
            raise ValueError(
                f"The 'loss' parameter is the {self._member.label}, whose labels are {self._member.labels}: a "
                "classifier needs a loss of signs, -1 and +1."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        known = isinstance(self.loss, Loss) or self.loss in self._named_losses()
        tags.classifier_tags.multi_class = known and self._member.with_classes() is not None
        # no standardised feature enters a task at alpha >= 1/2, so at the default nothing may be learned
        tags.classifier_tags.poor_score = getattr(self, "alpha", 0.0) >= 0.5
        return tags


class MultiTaskClassifier(AnyClassification, PathEstimator):
    r"""Linear classification for several tasks with any penalty, and any loss of two classes.

    .. math::

        \min_{W, b}\ \frac{1}{\bar n} \sum_t v_t \sum_i s_i f(y_i, x_i \cdot w_t + b_t)
        + \alpha\, \Omega(W) + \frac{\text{ridge}}{2} \lVert W \rVert_F^2, \qquad y_i = \pm 1

    with row j of W the coefficients of feature j in all tasks, :math:`\bar n` the total sample weight of the observed
    labels / the number of tasks, and v, s the weights of tasks and samples. With more than two classes the logistic
    loss is the multinomial one, task by task: a row of W then holds the coefficients of all classes of all tasks, and

    .. math:: f(y_i, z_i) = \log \sum_k e^{z_{ik}} - z_{i, y_i}, \qquad z_{ik} = x_i \cdot w_{tk} + b_{tk}.

    Screening, paths, every storage, cross-validation and the certificate come with every pair.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        f: the name of a loss of two classes, or an object of `tasksieve.losses` whose labels are signs, a
        `tasksieve.losses.RowLoss` of your own, say. More than two classes need "logistic".
    penalty : {"l21", "l11", "sparse_group", "owl"} or RowPenalty, default="l21"
        :math:`\Omega`, or an object of `tasksieve.penalties`: a `tasksieve.penalties.RowPenalty` of your own.
    alpha : float, default=1.0
        Strength of the penalty, > 0. `alpha_max` gives the smallest value at which nothing is selected.
    ridge : float, default=0.0
        Strength of the ridge beside it, >= 0.
    task_graph : "chain", array or sparse matrix of shape (T, T), or networkx graph, optional
        As in `MultiTaskRegressor`; more than two classes must be the same in all tasks.
    graph_strength : float, default=1.0
        How strongly neighbours agree, >= 0; it does not grow with alpha.
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
        Weights of the features in the penalty; 0 means never penalised (two classes only).
    task_weights : array of shape (T,), dict or "balanced", optional
        :math:`v_t > 0`: in the order of ``tasks_``, or by label (1 for those not named), or :math:`\bar n / n_t`.
    tol : float, default=1e-6
        Stop when the dual gap is at most ``tol`` times the objective at W = 0 with the best intercepts.
    max_iter : int, default=10000
        Iterations after which to give up, with a `sklearn.exceptions.ConvergenceWarning`.
    screening : {"auto", "gap", None}, default="auto"
        Safe rule that discards features before and while solving; None: no screening.
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
    classes_ : ndarray of shape (K,), or list of arrays
        The labels, sorted over all tasks; of two the larger is +1. Where tasks have different classes, a list in the
        order of ``tasks_``.
    coef_ : ndarray of shape (T, d), more than two classes (K, T, d)
        Coefficients; of two classes those of the larger. Where tasks have different classes, and one more than two: a
        list of T arrays of shape (K_t, d).
    intercept_ : ndarray of shape (T,), or (K, T), or list of T arrays
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
    MultiTaskClassifierCV : alpha by cross-validation.
    MultiTaskLogisticRegression : the logistic loss with the L2,1 norm.

    Notes
    -----
    Two classes in all tasks together, or two in each, are two classes. Otherwise, if one task has rows of all classes,
    these are the classes of every task; a task may lack some, whose probability is then next to 0 there (a warning says
    so where there are intercepts). If no task has them all, each task has its own.

    With two classes the multinomial loss at :math:`\sqrt2\,\alpha` is the logistic one at :math:`\alpha` (L2,1).

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((120, 6)), np.repeat(["a", "b"], 60)
    >>> y = np.array(["left", "mid", "right"])[np.digitize(X[:, 0] + 0.2 * rng.standard_normal(120), [-0.5, 0.5])]
    >>> model = ts.MultiTaskClassifier(penalty="l21", alpha=0.2).fit(X, y, task=task)
    >>> model.coef_.shape, model.get_support(indices=True)
    ((3, 2, 6), array([0]))
    >>> model.predict_proba(X, task=task).shape
    (120, 3)
    """

    def __init__(
        self,
        loss: str | Loss = "logistic",
        penalty: str | RowPenalty = "l21",
        *,
        alpha: float = 1.0,
        ridge: float = 0.0,
        task_graph: Any = None,
        graph_strength: float = 1.0,
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


class MultiTaskClassifierCV(AnyClassification, PathEstimatorCV):
    r"""`MultiTaskClassifier` with ``alpha`` chosen by cross-validation along its path.

    .. math:: \alpha^\star = \arg\min_\alpha \frac1F \sum_f \frac1T \sum_t
        \ell\bigl(y_t^{(f)}, X_t^{(f)} w_t^{(-f)}(\alpha) + b_t^{(-f)}(\alpha)\bigr)

    over folds f, each predicted by a model of the other folds; :math:`\ell` is the loss's own held-out score
    (`tasksieve.losses.Loss.deviance`), or that of ``scoring``. Folds are row weights: X is neither copied nor cut.

    Parameters
    ----------
    loss, penalty, ridge, task_graph, graph_strength, class_weight
        As in `MultiTaskClassifier`. Class weights count in the model's own held-out loss, and not in ``scoring``.
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
    fit_intercept, positive, standardize, feature_weights, task_weights, tol, max_iter, screening
        As in `MultiTaskClassifier`.
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
        Out of fold at ``alpha_``, in the order of y: probabilities as of ``predict_proba``, decision values where the
        loss has none; NaN for rows that were never held out, the mean for those held out twice.
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
    classes_, coef_, intercept_, tasks_, objective_, dual_gap_, null_objective_, n_iter_, status_, choice_
        As in `MultiTaskClassifier`, of the model with ``alpha_`` on all rows.

    See Also
    --------
    MultiTaskClassifier : for one value of alpha.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((120, 6)), np.repeat(["a", "b"], 60)
    >>> y = np.array(["left", "mid", "right"])[np.digitize(X[:, 0] + 0.2 * rng.standard_normal(120), [-0.5, 0.5])]
    >>> model = ts.MultiTaskClassifierCV(n_alphas=10, eps=0.1, cv=3).fit(X, y, task=task)
    >>> model.score(X, y, task=task) > 0.8
    True
    """

    _estimator = MultiTaskClassifier

    def __init__(
        self,
        loss: str | Loss = "logistic",
        penalty: str | RowPenalty = "l21",
        *,
        alphas: Any = None,
        ridge: float = 0.0,
        task_graph: Any = None,
        graph_strength: float = 1.0,
        class_weight: Any = None,
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
