"""The online models: regression and classification of several tasks, one row at a time."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import expit

from ..fitted.arguments import warn_column
from ..fitted.parameters import keep_parameters
from ..fitted.predicting import TaskClassification, TaskRegression, gives_probabilities
from ..fitted.predictions import available_if
from ..messages import either, value_error
from .base import OnlineLinearModel, locked
from .certify import CertifyMixin
from .classes import ClassRegister, read_label
from .rows import RowBatch
from .stream import StreamMixin

INFINITY = float("inf")


class OnlineMultiTaskRegressor(TaskRegression, CertifyMixin, StreamMixin, OnlineLinearModel):
    r"""Sparse linear regression for several tasks, learned one row at a time by dual averaging.

    .. math::

        W \leftarrow \arg\min_W\ \langle \bar G_t, W \rangle
        + \alpha \sum_j \bigl( r_j \lVert W_j \rVert_1 + \lVert W_j \rVert_2 \bigr)
        + \frac{\lambda_2}{2} \lVert W \rVert_F^2 + \frac{\gamma}{2 \sqrt t} \lVert W \rVert_F^2

    with :math:`\bar G_t` the mean of the gradients of :math:`\frac12 (x \cdot w_q + b_q - y)^2` seen so far, a column
    per task, and row j of W the coefficients of feature j in all tasks [1]_. The weights are a closed form of the
    gradient sums, so features that a sparse row does not hold cost nothing. In the long run W minimises the sum over
    tasks of the mean loss, plus the penalty: the batch problem with ``task_weights="balanced"``.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, >= 0.
    penalty : {"l21", "l11", "l1+l21"}, default="l21"
        "l21" (aMTFS): a feature is in for all tasks or out for all; :math:`r_j = 0`. "l11" (iMTFS): only
        :math:`\alpha \lVert W \rVert_1`, every task selects for itself. "l1+l21" (MTFTS): features, and tasks within
        them.
    l1 : float or array of shape (d,), default=0.01
        :math:`r_j` of "l1+l21"; the other penalties do not use it.
    loss : {"squared"}, default="squared"
    gamma : float or "auto", default="auto"
        Damping: the step of row t is :math:`\sqrt t / \gamma`. "auto": follows the sizes of the rows so far and
        never falls (see Notes). A number > 0 (or 0 with a ridge): fixed; it should be about the squared norm of a
        row (times the square root of the number of tasks unless rows come in rounds), and too small a value makes
        the first steps explode.
    l2 : float, default=0.0
        Ridge :math:`\lambda_2`.
    enhanced : float, default=0.0
        :math:`\rho` of the enhanced method: the threshold is :math:`\alpha + \gamma \rho / \sqrt t`, so that early
        iterates are sparser. The limit is the same.
    missing : {"per-task", "importance", "rounds"}, default="per-task"
        What a step is where tasks come in any proportion. "per-task": every row is a step, and the gradients of each
        task are averaged over its own rows. "importance": gradients are divided by the task's share of the rows so far.
        "rounds": the paper's; rows are collected until a task comes again, all gradients of the round are taken at its
        start, and a task that is absent counts as a zero gradient.
    fit_intercept : bool, default=True
        One intercept per task, neither penalised nor shrunk by the ridge.
    average : bool or "auto", default="auto"
        Whether to keep the average of all iterates, at a cost of O(d T) per step. "auto": for dense rows of at most
        1,000 features.
    max_iter : int, default=20
        Passes over the data in `fit`.
    shuffle : bool, default=True
        Whether `fit` takes the rows of every pass in a new random order.
    random_state : int, RandomState or None
        For that order.
    warm_start : bool, default=False
        Whether `fit` continues from what was learned before.
    task_feature : hashable, optional
        Name under which the rows of `learn_one` carry their task, for pipelines that pass rows only.
    hash_features : int, optional
        `learn_one` hashes feature names into so many features; by default each new name is a new feature.
    verbose : int, default=0
        Report progress on stderr, about once a second.

    Attributes
    ----------
    coef_ : ndarray of shape (T, d)
        The last iterate: sparse. Computed at access.
    intercept_ : ndarray of shape (T,)
    averaged_coef_, averaged_intercept_ : ndarray
        Averages of all iterates, where kept.
    tasks_ : ndarray of shape (T,)
        Task labels in the order of ``coef_``: first seen first.
    t_ : int
        Steps made.
    gamma_ : float
        The damping after the rows so far.
    progressive_loss_ : float
        Mean loss of the rows so far, each predicted before it was learned; more in `progress`.
    n_rows_seen_ : int
    n_features_in_ : int
    n_iter_ : int
        Passes made by `fit`.
    feature_index_ : dict
        Feature names met by `learn_one`, and their places in ``coef_``.

    See Also
    --------
    OnlineMultiTaskClassifier : for two classes.
    MultiTaskLasso, MultiTaskSparseGroupLasso : the batch models it converges to.

    Notes
    -----
    With ``gamma="auto"``, :math:`\gamma_t = \frac L2 m_t^2`. L is the largest curvature of the loss (1; logistic:
    1/4), and :math:`m_t = \sum_i u_i \lVert x_i \rVert / (t + 30)` over the rows so far, where :math:`u_i = (t s_i
    / t_q)^{1/4}` accounts for the larger steps of tasks that come seldom (:math:`s_i`: the row's weight,
    :math:`t_q`: the weight of its task's rows so far; with ``missing="rounds"`` :math:`u_i = s_i^{1/4}`). A row
    counts at most four times the mean of those before it, rows of zeros not at all, and :math:`\gamma_t` never
    falls. Intercepts have the squared mean of the :math:`u_i` for their :math:`\gamma`. A gradient is shortened
    where its step would move the row's own prediction beyond its target (by the curvature L), as the first rows of
    a task, and rows much larger than the others, would do; steps fall like :math:`1/\sqrt t`, so that such rows
    become rare. All this is a function of the rows, not of how they are cut into chunks. How the rule was found,
    and what it is worth: "Choosing gamma" in the page on online learning, and ``benchmarks/online_gamma.py``.

    A row that no step can be made from (its squares overflow; with the squared loss, a prediction :math:`2^{52}` times
    larger than any target) is refused with a ValueError, and the model is as it was before that row.

    Threads may share a model: a lock inside lets one at a time learn or look at the memory. A reader sees the
    state after a row (`learn_one`), a chunk (`partial_fit`, `fit_stream`) or a whole `fit`, never half an update, and
    waits for it if need be. Each call of `predict`, `score`, `certify`, `save`, ``copy`` or ``pickle`` answers from one
    such state, and predicting does not hold learning up: the coefficients are taken under the lock, the products
    computed without it. Two attributes read one after the other may be of two states; ``copy.copy(model)`` is a model
    of its own that stays as it is. The lock is not part of copies, pickles and saved files.

    References
    ----------
    .. [1] H. Yang, I. King, M. R. Lyu, "Online Learning for Multi-Task Feature Selection", CIKM 2010.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((3000, 8)), rng.choice(["a", "b"], 3000)
    >>> y = X[:, 0] * np.where(task == "a", 2.0, -1.0) + 0.1 * rng.standard_normal(3000)
    >>> model = ts.OnlineMultiTaskRegressor(alpha=0.3)
    >>> for rows in np.split(np.arange(3000), 6):
    ...     model = model.partial_fit(X[rows], y[rows], task=task[rows])
    >>> model.get_support(indices=True)
    array([0])
    >>> model.score(X, y, task=task) > 0.9
    True
    """

    _losses: ClassVar[tuple[str, ...]] = ("squared",)

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        penalty: Literal["l21", "l11", "l1+l21"] = "l21",
        l1: Any = 0.01,
        loss: Literal["squared"] = "squared",
        gamma: float | Literal["auto"] = "auto",
        l2: float = 0.0,
        enhanced: float = 0.0,
        missing: Literal["per-task", "importance", "rounds"] = "per-task",
        fit_intercept: bool = True,
        average: bool | Literal["auto"] = "auto",
        max_iter: int = 20,
        shuffle: bool = True,
        random_state: Any = None,
        warm_start: bool = False,
        task_feature: Any = None,
        hash_features: int | None = None,
        verbose: int = 0,
    ) -> None:
        keep_parameters(self, locals())

    def partial_fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> Self:
        """Learn from some more rows, in the order given; how rows are cut into calls changes nothing.

        Parameters
        ----------
        X, y, task, sample_weight
            As in `fit`. Tasks that were never seen before join.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, task, sample_weight)

    def learn_one(self, x: Any, y: float, task: Any = None, w: float = 1.0) -> None:
        """Learn from one row.

        Parameters
        ----------
        x : dict of name to value, or 1-D array
            Names that were never seen before are new features.
        y : float
            NaN: not observed, nothing is learned.
        task : hashable, optional
            The row's task; none: there is only one.
        w : float, default=1.0
            Weight of the row's loss; 0 leaves it out.
        """
        value = float(y)
        if value == INFINITY or value == -INFINITY:
            raise ValueError("y is infinite.")
        if not 0 <= w < INFINITY:
            raise ValueError(f"w must be finite and >= 0, got {w!r}.")
        with self._guard:
            row, label = (x, task) if self.task_feature is None else self._task_and_row(x, task)[::-1]
            code = self._known_code(label)
            if code is None:
                self._check_one(row)
                with self._all_or_nothing():
                    row, code = self._place_one(x, task)
                    if w > 0 and value == value:
                        self._learn_one(row, value, code, w)
            elif w > 0 and value == value:
                self._learn_one(row, value, code, w)

    def predict_one(self, x: Any, task: Any = None) -> float:
        """Predict one row.

        Parameters
        ----------
        x : dict of name to value, or 1-D array
            Names never seen before are left out.
        task : hashable, optional

        Returns
        -------
        float
            0 for a task of which nothing has been learned.
        """
        with self._guard:
            return self._score_one(x, task)

    # what river requires of an estimator in a pipeline
    _supervised = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # at the default alpha, made for scaled features
        tags.non_deterministic = self.shuffle and self.random_state is None
        return tags


class OnlineMultiTaskClassifier(TaskClassification, CertifyMixin, StreamMixin, OnlineLinearModel):
    r"""Sparse linear classification for several tasks, learned one row at a time by dual averaging.

    .. math::

        W \leftarrow \arg\min_W\ \langle \bar G_t, W \rangle
        + \alpha \sum_j \bigl( r_j \lVert W_j \rVert_1 + \lVert W_j \rVert_2 \bigr)
        + \frac{\lambda_2}{2} \lVert W \rVert_F^2 + \frac{\gamma}{2 \sqrt t} \lVert W \rVert_F^2

    with :math:`\bar G_t` the mean of the gradients of the loss seen so far, a column per task: as
    `OnlineMultiTaskRegressor`, for two classes per task (y = -1, +1; the larger label is +1).

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, >= 0.
    penalty, l1, gamma, l2, enhanced, missing, fit_intercept, average
        As in `OnlineMultiTaskRegressor`.
    max_iter, shuffle, random_state, warm_start, task_feature, hash_features, verbose
        As in `OnlineMultiTaskRegressor`.
    loss : {"logistic", "hinge", "squared"}, default="logistic"
        :math:`\log(1 + e^{-yz})`, :math:`\max(0, 1 - yz)`, or :math:`\frac12 (z - y)^2`.

    Attributes
    ----------
    classes_ : ndarray of two labels, or a list of such pairs, one per task
        The labels met so far.
    coef_, intercept_, averaged_coef_, averaged_intercept_, tasks_
        As in `OnlineMultiTaskRegressor`.
    t_, gamma_, progressive_loss_, n_rows_seen_, n_features_in_, n_iter_, feature_index_
        As in `OnlineMultiTaskRegressor`.

    See Also
    --------
    OnlineMultiTaskRegressor : for numbers.
    MultiTaskLogisticRegression, MultiTaskSparseGroupLasso : the batch models it converges to with the logistic loss.

    Notes
    -----
    Threads may share a model, as described for `OnlineMultiTaskRegressor`: readers see the state after a row, a chunk
    or a whole `fit`, never half an update.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((3000, 6)), rng.choice(["a", "b"], 3000)
    >>> y = np.where(X[:, 0] + 0.3 * rng.standard_normal(3000) > 0, "yes", "no")
    >>> model = ts.OnlineMultiTaskClassifier(alpha=0.1)
    >>> for rows in np.split(np.arange(3000), 6):
    ...     model = model.partial_fit(X[rows], y[rows], task=task[rows])
    >>> model.classes_
    array(['no', 'yes'], dtype='<U3')
    >>> model.get_support(indices=True)
    array([0])
    >>> model.predict_proba(X, task=task).shape
    (3000, 2)
    """

    _losses: ClassVar[tuple[str, ...]] = ("logistic", "hinge", "squared")

    _classes: ClassRegister

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        penalty: Literal["l21", "l11", "l1+l21"] = "l21",
        l1: Any = 0.01,
        loss: Literal["logistic", "hinge", "squared"] = "logistic",
        gamma: float | Literal["auto"] = "auto",
        l2: float = 0.0,
        enhanced: float = 0.0,
        missing: Literal["per-task", "importance", "rounds"] = "per-task",
        fit_intercept: bool = True,
        average: bool | Literal["auto"] = "auto",
        max_iter: int = 20,
        shuffle: bool = True,
        random_state: Any = None,
        warm_start: bool = False,
        task_feature: Any = None,
        hash_features: int | None = None,
        verbose: int = 0,
    ) -> None:
        keep_parameters(self, locals())

    def partial_fit(
        self, X: Any, y: Any, task: Any = None, sample_weight: Any = None, classes: Any = None
    ) -> Self:
        """Learn from some more rows, in the order given; how rows are cut into calls changes nothing.

        Parameters
        ----------
        X, y, task, sample_weight
            As in `fit`. Tasks and classes that were never seen before join.
        classes : array, optional
            Labels that will come, where they are known from the start. More than two: every task has its own pair.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, task, sample_weight, classes)

    def _begin(self, dense_features: int | None) -> None:
        super()._begin(dense_features)
        self._classes = ClassRegister()

    def _read_rows(self, X: Any, y: Any, task: Any, sample_weight: Any, known: bool = True) -> RowBatch:
        if task is None:
            warn_column(y)
        return super()._read_rows(X, y, task, sample_weight, known)

    def _take_in(self, X: Any, batch: RowBatch, classes: Any = None) -> None:
        super()._take_in(X, batch)
        if classes is not None:
            self._declare(classes)
        present = np.ones(len(batch.y), dtype=bool) if batch.weights is None else batch.weights > 0
        batch.y, flips = self._classes.encode(batch.codes, batch.y, present)
        for task in flips:
            self._learner.flip(task)

    def _brings_news(self, batch: RowBatch, classes: Any) -> bool:
        if super()._brings_news(batch, classes):
            return True
        known = {label for pair in self._classes.of_task for label in pair}
        shown = batch.y if batch.weights is None else batch.y[batch.weights > 0]
        if not known.issuperset(np.unique(shown).tolist()):
            return True
        return not self._classes.common or any(len(pair) < 2 for pair in self._classes.of_task)

    def _declare(self, classes: Any) -> None:
        labels = np.unique(np.asarray(classes)).tolist()
        if not self._classes.all:
            self._classes = ClassRegister(labels)
            return
        unknown = [label for label in self._classes.all if label not in labels]
        if unknown:
            raise ValueError(f"classes does not hold {unknown[0]!r}, a label that was learned before.")

    def _check_batch(self, batch: RowBatch) -> None:
        super()._check_batch(batch)
        if len(self._classes.all) == 1:
            raise value_error(
                "{y} has one class only ({only!r}): a classifier needs two classes.{later}",
                only=self._classes.all[0],
                later=either(" With partial_fit the second one may come later."),
            )
        self._classes.classes(self._labels)

    def learn_one(self, x: Any, y: Any, task: Any = None, w: float = 1.0) -> None:
        """Learn from one row.

        Parameters
        ----------
        x : dict of name to value, or 1-D array
            Names that were never seen before are new features.
        y : label
            None or NaN: not observed, nothing is learned.
        task : hashable, optional
            The row's task; none: there is only one.
        w : float, default=1.0
            Weight of the row's loss; 0 leaves it out.
        """
        if not 0 <= w < INFINITY:
            raise ValueError(f"w must be finite and >= 0, got {w!r}.")
        y = read_label(y)
        with self._guard:
            row, label = (x, task) if self.task_feature is None else self._task_and_row(x, task)[::-1]
            code = self._known_code(label)
            if code is None or (y is not None and not self._classes.met(code, y)):
                self._check_one(row)
                with self._all_or_nothing():
                    row, code = self._place_one(x, task)
                    if w > 0 and y is not None:
                        for turned in self._classes.learn(code, y):
                            self._learner.flip(turned)
                        self._learn_one(row, self._classes.signs[code][y], code, w)
            elif w > 0 and y is not None:
                self._learn_one(row, self._classes.signs[code][y], code, w)

    def predict_one(self, x: Any, task: Any = None) -> Any:
        """Predict the class of one row; None where no class is known yet.

        Parameters
        ----------
        x : dict of name to value, or 1-D array
        task : hashable, optional

        Returns
        -------
        label
        """
        with self._guard:
            pair = self._pair_one(x, task)
            if len(pair) < 2:
                return pair[0] if pair else None
            return pair[int(self._score_one(x, task) > 0.0)]

    @available_if(gives_probabilities)
    def predict_proba_one(self, x: Any, task: Any = None) -> dict[Any, float]:
        """Probabilities of the classes of one row (loss="logistic").

        Parameters
        ----------
        x : dict of name to value, or 1-D array
        task : hashable, optional

        Returns
        -------
        dict of label to probability
        """
        with self._guard:
            pair = self._pair_one(x, task)
            if len(pair) < 2:
                return dict.fromkeys(pair, 1.0)
            score = self._score_one(x, task)
        return {pair[0]: float(expit(-score)), pair[1]: float(expit(score))}

    def _pair_one(self, x: Any, task: Any) -> list[Any]:
        if not hasattr(self, "_classes"):
            return []
        if self._classes.common:
            return self._classes.all
        task, _ = self._task_and_row(x, task)
        code = self._codes.get(0 if task is None else task)
        return self._classes.of_task[code] if code is not None and code < len(self._classes.of_task) else []

    @property
    @locked
    def classes_(self) -> Any:
        """The labels met so far: sorted, or a pair for each task."""
        self._require_memory("classes_")
        return self._classes.classes(self._labels)

    def _known_classes(self) -> Any:
        known = self._classes.known()
        if isinstance(known, list):  # tasks without a labelled row have met none
            known += [None] * (len(self._labels) - len(known))
        return known

    _supervised = True
    _multiclass = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = (
            True  # at the default alpha nothing enters where features are scaled
        )
        tags.non_deterministic = self.shuffle and self.random_state is None
        return tags
