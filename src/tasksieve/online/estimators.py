"""The online models: regression and classification of several tasks, one row at a time."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from scipy.special import expit

from ..docstrings import described_by
from ..fitted.arguments import warn_column
from ..fitted.documented import documented
from ..fitted.parameters import keep_parameters
from ..fitted.predicting import TaskClassification, TaskRegression, gives_probabilities
from ..fitted.predictions import available_if
from ..messages import either, value_error
from ..parameters import Parameter
from .base import remembered
from .certify import Certifying
from .classes import ClassRegister, read_label
from .parameters import ONE_ROW, OnlineClassifierOptions, OnlineRegressorOptions, online_parameters
from .rows import RowBatch
from .single_rows import SingleRows
from .stream import Streaming


@documented
class OnlineMultiTaskRegressor(TaskRegression, Certifying, Streaming, SingleRows):
    r"""Sparse linear regression for several tasks, learned one row at a time by dual averaging.

    .. math::

        W \leftarrow \arg\min_W\ \langle \bar G_t, W \rangle
        + \alpha \sum_j \bigl( r_j \lVert W_j \rVert_1 + \lVert W_j \rVert_2 \bigr)
        + \frac{\lambda_2}{2} \lVert W \rVert_F^2 + \frac{\gamma}{2 \sqrt t} \lVert W \rVert_F^2

    with :math:`\bar G_t` the mean of the gradients of :math:`\frac12 (x \cdot w_q + b_q - y)^2` seen so far, a column
    per task, and row j of W the coefficients of feature j in all tasks [1]_. The weights are a closed form of the
    gradient sums, so features that a sparse row does not hold cost nothing. In the long run W minimises the sum over
    tasks of the mean loss, plus the penalty: the batch problem with ``task_weights="balanced"``.

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

    _parameters = online_parameters(
        loss=Parameter("loss", '{"squared"}', "squared", r":math:`\frac12 (z - y)^2` of the prediction z.")
    )

    def __init__(self, alpha: float = 1.0, **options: Unpack[OnlineRegressorOptions]) -> None:
        keep_parameters(self, locals())

    def partial_fit(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None) -> Self:
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

    @described_by(ONE_ROW)
    def learn_one(self, x: Any, y: float, *, task: Any = None, w: float = 1.0) -> None:
        """Learn from one row.

        Parameters
        ----------
        y : float
            NaN: not observed, nothing is learned.
        """
        value = float(y)
        if math.isinf(value):
            raise ValueError("y is infinite.")
        self._learn_row(x, None if math.isnan(value) else value, task, w)

    @described_by(ONE_ROW)
    def predict_one(self, x: Any, *, task: Any = None) -> float:
        """Predict one row.

        Returns
        -------
        float
            0 for a task of which nothing has been learned.
        """
        with self._guard:
            return self._score_one(x, task)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # at the default alpha, made for scaled features
        return tags


@documented
class OnlineMultiTaskClassifier(TaskClassification, Certifying, Streaming, SingleRows):
    r"""Sparse linear classification for several tasks, learned one row at a time by dual averaging.

    .. math::

        W \leftarrow \arg\min_W\ \langle \bar G_t, W \rangle
        + \alpha \sum_j \bigl( r_j \lVert W_j \rVert_1 + \lVert W_j \rVert_2 \bigr)
        + \frac{\lambda_2}{2} \lVert W \rVert_F^2 + \frac{\gamma}{2 \sqrt t} \lVert W \rVert_F^2

    with :math:`\bar G_t` the mean of the gradients of the loss seen so far, a column per task: as
    `OnlineMultiTaskRegressor`, for two classes per task (y = -1, +1; the larger label is +1).

    Attributes
    ----------
    classes_ : ndarray of two labels, or a list of such pairs, one per task
        The labels met so far.

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

    _parameters = online_parameters(
        loss=Parameter(
            "loss",
            '{"logistic", "hinge", "squared"}',
            "logistic",
            r":math:`\log(1 + e^{-yz})`, :math:`\max(0, 1 - yz)`, or :math:`\frac12 (z - y)^2`.",
        )
    )

    def __init__(self, alpha: float = 1.0, **options: Unpack[OnlineClassifierOptions]) -> None:
        keep_parameters(self, locals())

    def partial_fit(
        self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None, classes: Any = None
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

    def _read_rows(self, X: Any, y: Any, task: Any, sample_weight: Any) -> RowBatch:
        if task is None:
            warn_column(y)
        return super()._read_rows(X, y, task, sample_weight)

    def _take_in(self, X: Any, batch: RowBatch, classes: Any = None) -> None:
        super()._take_in(X, batch)
        if classes is not None:
            self._declare(classes)
        batch.y, flips = self._classes.encode(batch.codes, batch.y, batch.observed)
        for task in flips:
            self._learner.flip(task)

    def _brings_news(self, batch: RowBatch, classes: Any) -> bool:
        if super()._brings_news(batch, classes):
            return True
        known = {label for pair in self._classes.of_task for label in pair}
        if not known.issuperset(np.unique(batch.y[batch.observed]).tolist()):
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

    @described_by(ONE_ROW)
    def learn_one(self, x: Any, y: Any, *, task: Any = None, w: float = 1.0) -> None:
        """Learn from one row.

        Parameters
        ----------
        y : label
            None or NaN: not observed, nothing is learned.
        """
        self._learn_row(x, read_label(y), task, w)

    def _has_met(self, code: int, y: Any) -> bool:
        return y is None or self._classes.met(code, y)

    def _target(self, code: int, y: Any) -> float:
        for turned in self._classes.learn(code, y):
            self._learner.flip(turned)
        return self._classes.signs[code][y]

    @described_by(ONE_ROW)
    def predict_one(self, x: Any, *, task: Any = None) -> Any:
        """Predict the class of one row; None where no class is known yet.

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
    @described_by(ONE_ROW)
    def predict_proba_one(self, x: Any, *, task: Any = None) -> dict[Any, float]:
        """Probabilities of the classes of one row (loss="logistic").

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
        code = self._code_of(self._task_and_row(x, task)[0])
        return self._classes.of_task[code] if code is not None and code < len(self._classes.of_task) else []

    @remembered
    def classes_(self) -> Any:
        """The labels met so far: sorted, or a pair for each task."""
        return self._classes.classes(self._labels)

    def _known_classes(self) -> Any:
        known = self._classes.known()
        if isinstance(known, list):  # tasks without a labelled row have met none
            known += [None] * (len(self._labels) - len(known))
        return known

    _multiclass = False  # river asks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # at the default alpha nothing enters where features are scaled
        return tags
