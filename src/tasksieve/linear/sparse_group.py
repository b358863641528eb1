"""Multi-task sparse group Lasso: features are selected for all tasks together, and within them tasks."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..fitted.answers import Answer, available_if
from ..fitted.arguments import check_choice, check_l1
from ..fitted.parameters import keep_parameters
from ..penalties import SparseGroup
from ..proof.prove import Proof
from ..tasks import TaskData, like
from ..tasks.named import takes_named_tasks
from .base import (
    TaskClassification,
    TaskLinearModel,
    TaskRegression,
    check_number,
    warn_column,
    warn_one_class,
)
from .from_moments import ComparesMoments, FitsMoments


def _is_classifier(model: Any) -> bool:
    return bool(model.loss == "logistic")


class _EitherLoss(TaskLinearModel):
    """A model that is a regression or a classification, as its parameter ``loss`` says."""

    loss: Literal["squared", "logistic"]
    l1: Any
    group: float
    class_weight: Any
    fit_intercept: bool

    @property
    def _loss(self) -> Literal["squared", "logistic"]:  # type: ignore[override]
        return self.loss

    @property
    def _targets(self) -> Literal["values", "classes"]:  # type: ignore[override]
        return "classes" if self.loss == "logistic" else "values"

    def _penalty(self) -> dict[str, Any]:
        l1 = self.l1 if np.ndim(self.l1) == 0 else np.asarray(self.l1, dtype=np.float64)
        return {"penalty": SparseGroup(l1, float(self.group))}

    def _check_shape(self) -> None:
        check_choice(self.loss, "loss", ("squared", "logistic"))
        check_number(self.group, "group", low=0, closed=True)
        check_l1(self.l1)
        if self.class_weight is not None and self.loss != "logistic":
            raise ValueError("The 'class_weight' parameter is for loss='logistic'.")
        if self.group == 0 and not np.all(np.asarray(self.l1) > 0):
            raise ValueError(
                "With group=0 the 'l1' parameter must be positive: else features are not penalised."
            )

    def _read(self, X: Any, y: Any, task: Any, sample_weight: Any) -> TaskData:
        if self.loss == "logistic" and task is None:
            warn_column(y)
        data = super()._read(X, y, task, sample_weight)
        if np.ndim(self.l1) and len(self.l1) != data.n_features:
            raise ValueError(
                f"l1 has {len(self.l1)} entries, but X has {data.n_features} features: one per feature, or a number."
            )
        if self.loss == "logistic" and self.fit_intercept:
            warn_one_class(data)
        return data

    @takes_named_tasks
    def predict(self, X: Any, task: Any = None, *, offset: Any = None) -> Answer:
        """Predict numbers (squared loss) or the more probable class (logistic loss).

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices
            Rows to predict; in a list, item t belongs to ``tasks_[t]``.
        task : array of shape (n,), optional
            The task of each row, one of ``tasks_``.
        offset : float, or array or list in the form of the predictions, optional
            Needed if the model was fitted with one (0.0 for none); one per row serves for all tasks.

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            With ``task`` (n,), without (n, T), every task's prediction (but (n,) where the model was fitted to
            a 1-D y without task); a list for a list.
        """
        kind: Any = TaskClassification if self.loss == "logistic" else TaskRegression
        return kind.predict(self, X, task, offset=offset)

    @takes_named_tasks
    def score(self, X: Any, y: Any = None, task: Any = None, sample_weight: Any = None, *, offset: Any = None) -> float:
        """Mean over tasks of R² (squared loss) or of the accuracy (logistic loss).

        Parameters
        ----------
        X, y, task, sample_weight
            Rows in any form that `fit` takes.
        offset : float, or array or list in the form of y, optional
            As in `predict`.

        Returns
        -------
        float
        """
        kind: Any = TaskClassification if self.loss == "logistic" else TaskRegression
        return float(kind.score(self, X, y, task, sample_weight, offset=offset))

    @available_if(_is_classifier)
    @takes_named_tasks
    def decision_function(self, X: Any, task: Any = None, *, offset: Any = None) -> Answer:
        """Log-odds of the larger class, x . w_t + b_t (logistic loss).

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices
        task : array of shape (n,), optional
        offset : float, or array or list in the form of the scores, optional
            As in `predict`.

        Returns
        -------
        ndarray of shape (n,) or (n, T), or list of ndarray
            As `predict`.
        """
        return like(X, self._scores(X, task, offset=offset))

    @available_if(_is_classifier)
    @takes_named_tasks
    def predict_proba(self, X: Any, task: Any = None, *, offset: Any = None) -> Answer:
        """Probabilities of the classes (logistic loss).

        Parameters
        ----------
        X : matrix of shape (n, d), or list of matrices
        task : array of shape (n,), optional
        offset : float, or array or list in the form of the scores, optional
            As in `predict`.

        Returns
        -------
        ndarray of shape (n, 2) with ``task``, (n, T, 2) without; a list of (n_t, 2) for a list
            More than two classes: as in `MultiTaskClassifier`.
        """
        kind: Any = TaskClassification
        return kind.predict_proba(self, X, task, offset=offset)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags

        tags = super().__sklearn_tags__()
        if self.loss == "logistic":
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=True)
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
            tags.target_tags.multi_output = True
        return tags


class MultiTaskSparseGroupLasso(_EitherLoss, FitsMoments):
    r"""Linear model of several tasks that selects features for all of them, and within each feature its tasks.

    .. math::

        \min_{W, b}\ \frac{1}{2 \bar n} \sum_t v_t \sum_i s_i (y_i - x_i \cdot w_t - b_t)^2
        + \alpha \sum_j u_j \bigl( r_j \lVert W_j \rVert_1 + g \lVert W_j \rVert_2 \bigr)

    or the same with the logistic loss :math:`\frac{1}{\bar n} \sum_t v_t \sum_i s_i
    \log(1 + e^{-y_i (x_i \cdot w_t + b_t)})`; :math:`r_j` = ``l1``, g = ``group``, row j of W the coefficients of
    feature j in all tasks, :math:`\bar n` the total sample weight of the observed labels / the number of tasks, and u,
    v, s the weights of features, tasks and samples.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, > 0.
    l1 : float or array of shape (d,), default=0.01
        :math:`r_j`: what a single coefficient costs.
    group : float, default=1.0
        g: what a feature costs. 0 gives independent Lassos under one strength (iMTFS); ``l1=0`` is `MultiTaskLasso`.
    loss : {"squared", "logistic"}, default="squared"
        With more than two classes the logistic loss is the multinomial one, task by task, as in `MultiTaskClassifier`.
    class_weight : dict or "balanced", optional
        With the logistic loss: factors of the sample weights, by label (1 for those not named), or such that within
        each task every class counts alike.
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
    classes_ : ndarray of labels, or a list of such
        With the logistic loss.
    coef_ : ndarray of shape (T, d)
        Coefficients W', a row per task; more than two classes: as in `MultiTaskClassifier`.
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
    MultiTaskSparseGroupLassoCV : alpha by cross-validation.
    OnlineMultiTaskRegressor, OnlineMultiTaskClassifier : the same models, one row at a time.

    Notes
    -----
    The penalty is that of "MTFTS" [1]_. `zero_coefficients` gives the coefficients that are provably zero in every
    solution: whole rows, and single entries within rows.

    References
    ----------
    .. [1] H. Yang, I. King, M. R. Lyu, "Online Learning for Multi-Task Feature Selection", CIKM 2010.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((90, 8)), np.repeat(["a", "b", "c"], 30)
    >>> y = X[:, 0] * np.select([task == "a", task == "b"], [2.0, -1.0], 0.0) + 0.1 * rng.standard_normal(90)
    >>> model = ts.MultiTaskSparseGroupLasso(alpha=0.1, l1=1.0).fit(X, y, task=task)
    >>> np.argwhere(model.coef_).tolist()                    # feature 0, in tasks a and b only
    [[0, 0], [1, 0]]
    >>> int(model.zero_coefficients(X, y, task=task).sum())  # proved, out of 24
    22
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1: Any = 0.01,
        group: float = 1.0,
        loss: Literal["squared", "logistic"] = "squared",
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
        self._check_shape()

    def zero_coefficients(
        self, X: Any, y: Any, task: Any = None, sample_weight: Any = None, *, offset: Any = None
    ) -> np.ndarray:
        """Coefficients that are zero in every solution, proved by the safe row and entry tests at this model.

        Parameters
        ----------
        X, y, task, sample_weight, offset
            The data of the fit (or others: the proof is about the data given). One pass over X.

        Returns
        -------
        boolean ndarray of shape (T, d)
            True: certainly zero. A row test discards a feature for all tasks, an entry test for one. More than two
            classes: a row for each class of each task, task after task.
        """
        return self._prove(X, y, task, sample_weight, offset).zero_entries

    def _prove(self, X: Any, y: Any, task: Any, sample_weight: Any, offset: Any = None) -> Proof:
        if self.standardize:
            raise ValueError("zero_coefficients needs standardize=False; scale the columns yourself.")
        self._check_parameters()
        if self._needs_offset and offset is None:
            raise ValueError("the model was fitted with an offset: pass offset= (offset=0.0 for none).")
        data = self._read_with(X, y, task, sample_weight, offset)
        if data.tasks.tolist() != self.tasks_.tolist() or data.n_features != self.n_features_in_:
            raise ValueError("X and task must have the features and the tasks of the fitted model.")
        state = self._learned()
        return self._proof_of(data, state.rows, state.constants)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.loss == "logistic":
            # no standardised feature enters a task at alpha >= 1/2, so at the default nothing may be learned
            tags.classifier_tags.poor_score = self.alpha >= 0.5
        return tags


class MultiTaskSparseGroupLassoCV(_EitherLoss, ComparesMoments):
    r"""`MultiTaskSparseGroupLasso` with ``alpha`` chosen by cross-validation along its path.

    .. math:: \alpha^\star = \arg\min_\alpha \frac1F \sum_f \frac1T \sum_t
        \ell\bigl(y_t^{(f)}, X_t^{(f)} w_t^{(-f)}(\alpha) + b_t^{(-f)}(\alpha)\bigr)

    over folds f, each predicted by a model of the other folds; :math:`\ell` is the mean squared error, or the mean
    logistic loss. Folds are row weights: X is neither copied nor cut.

    Parameters
    ----------
    alphas : array or int, optional
        Values to compare; an integer is another way to give ``n_alphas``.
    l1, group, loss, class_weight
        As in `MultiTaskSparseGroupLasso`.
    n_alphas : int, default=100
        Number of values, geometrically from ``alpha_max`` to ``eps`` times that.
    eps : float, default=1e-2
    cv : int, splitter or iterable of (train, test) row indices, default=5
        An integer: that many folds, shuffled within each task (and class); ``groups`` of `fit` stay whole.
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
        As in `MultiTaskSparseGroupLasso`.
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
        Mean over tasks of the held-out loss.
    cv_folds_ : str
        How the folds were made, in words.
    cv_predictions_ : ndarray, or list of such for a list
        Out of fold at ``alpha_``, in the order of y: numbers, or probabilities as of ``predict_proba``; NaN for rows
        that were never held out, the mean for those held out twice.
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
        As in `MultiTaskSparseGroupLasso`, of the model with ``alpha_`` on all rows.
    n_features_in_, feature_names_in_
        As in `MultiTaskSparseGroupLasso`.

    See Also
    --------
    MultiTaskSparseGroupLasso : for one value of alpha.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((60, 8)), np.repeat(["a", "b"], 30)
    >>> y = X[:, 0] * np.where(task == "a", 2.0, -1.0) + 0.1 * rng.standard_normal(60)
    >>> model = ts.MultiTaskSparseGroupLassoCV(n_alphas=20, selection_rule="1se").fit(X, y, task=task)
    >>> model.get_support(indices=True)
    array([0])
    """

    _estimator = MultiTaskSparseGroupLasso

    def __init__(
        self,
        alphas: Any = None,
        *,
        l1: Any = 0.01,
        group: float = 1.0,
        loss: Literal["squared", "logistic"] = "squared",
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
