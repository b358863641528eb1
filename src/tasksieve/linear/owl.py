"""Group OWL: rows of coefficients weighted by rank, so that correlated features come in together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from ..docstrings import described_by
from ..fitted.arguments import check_choice, warn_column
from ..fitted.documented import FITTED, documented
from ..fitted.measures import accuracy
from ..fitted.model import TaskLinearModel
from ..fitted.parameters import FoldOptions, KeptFoldOptions, SolverOptions, TaskOptions, keep_parameters
from ..fitted.predicting import TaskRegression
from ..fitted.predictions import Predictions
from ..losses import Loss, Multinomial
from ..messages import estimator_name, value_error
from ..parameters import CROSS_VALIDATED, PARAMETERS, Parameter, table
from ..penalties import Sorted
from ..row_names import row_name
from ..tasks import (
    TaskData,
    is_task_list,
    like,
    map_rows,
    placed,
    read_labels,
    read_tasks,
    refuse_masked_or_complex,
    to_numpy,
    with_class_weight,
)
from .base import PathEstimator
from .cross_validation import PathEstimatorCV

SOLVERS = ("auto", "apgd", "spgd")
SCREENING: tuple[str | None, ...] = ("auto", "cumulative", "bao", None)


#: of models whose penalty sorts the rows of W
RANKED = table(
    *(PARAMETERS[name] for name in ("weights", "oscar_ratio", "fdr")),
    Parameter(
        "solver", '{"auto", "apgd", "spgd"}', "auto",
        '"auto": accelerated proximal gradient on a working set, and Newton steps where it has found which norms are '
        'equal. "apgd" and "spgd" are the paper\'s Algorithms 1 '
        "(batch) and 2 (stochastic, variance-reduced: for very many rows, slow where rows are few and features many) "
        "on all features that screening leaves.",
    ),
)  # fmt: skip
# the same parameters as elsewhere, in other words
_RANKED_WORDS = table(
    Parameter(
        "alpha", "float", 1.0,
        "Strength of the penalty, > 0: it multiplies the weights. `alpha_max` gives the smallest value at which "
        "nothing is selected.",
    ),
    PARAMETERS["standardize"].with_sentence("Norms are tied in the scaled units."),
    replace(
        PARAMETERS["screening"],
        kind='{"auto", "cumulative", "bao", None}',
        text='Safe test that discards features before and while solving: "bao" is that of Bao et al. (2025, eq. 20), '
        '"cumulative" a stronger one from cumulative sums, which "auto" takes; None: no screening.',
    ),
)  # fmt: skip


class RankOptions(SolverOptions, total=False):
    """Options of all models here."""

    weights: Any
    oscar_ratio: float
    fdr: float
    solver: str


class OWLOptions(RankOptions, TaskOptions, total=False):
    """Several tasks, one strength."""

    warm_start: bool


class OWLCVOptions(RankOptions, KeptFoldOptions, TaskOptions, total=False):
    """Several tasks, the strength by cross-validation."""


class MultinomialOptions(RankOptions, total=False):
    """Classes, one strength."""

    warm_start: bool
    class_weight: Any


class MultinomialCVOptions(RankOptions, FoldOptions, total=False):
    """Classes, the strength by cross-validation."""

    class_weight: Any


class TiedRows(TaskLinearModel):
    """What a fitted Group OWL model knows beyond its coefficients."""

    clusters_: list[np.ndarray]

    def _set_solution(self, data: TaskData, point: Any) -> None:
        super()._set_solution(data, point)
        self.clusters_ = [np.array(group) for group in point.clusters]


class SortedEstimator(TiedRows, PathEstimator):
    """A model whose penalty sorts the rows of W."""

    _parameters = RANKED | PARAMETERS | _RANKED_WORDS
    _attributes = f"""
clusters_ : list of ndarray
    The groups found: indices of features whose row norms are tied, largest norm first; a feature alone is a group of
    one. Groups of a solution of finite precision: a smaller ``tol`` may merge or split a few.
{FITTED}"""
    _screening_rules: ClassVar[tuple[str | None, ...]] = SCREENING

    feature_weights = None  # ranks carry the weights here, not features
    weights: Any
    oscar_ratio: float
    fdr: float
    solver: str

    def _check_parameters(self) -> None:
        super()._check_parameters()
        refuse_masked_or_complex(self.weights, "weights", ("rank",))
        check_choice(self.solver, "solver", SOLVERS)

    def _penalty(self) -> dict[str, Any]:
        return {"penalty": Sorted(self.weights, oscar_ratio=self.oscar_ratio, fdr=self.fdr)}

    def _engine_options(self) -> dict[str, Any]:
        return {"screening": self.screening, "solver": self.solver}


class SortedCV(TiedRows, PathEstimatorCV):
    """Such a model with cross-validation."""

    _parameters = RANKED | CROSS_VALIDATED | _RANKED_WORDS


# --- regression ----------------------------------------------------------------------------------------


@documented
class MultiTaskOWL(TaskRegression, SortedEstimator):
    r"""Linear regression for several tasks that finds features, and groups of correlated features, for all of them.

    .. math::

        \min_{W, b}\ \frac{1}{2 \bar n} \sum_t v_t \sum_i s_i (y_i - x_i \cdot w_t - b_t)^2
        + \alpha \sum_k \omega_k \lVert W_{[k]} \rVert_2, \qquad
        \lVert W_{[1]} \rVert_2 \ge \lVert W_{[2]} \rVert_2 \ge \dots,\quad \omega_1 \ge \omega_2 \ge \dots \ge 0

    with rows sorted by norm, {terms} The larger a row, the larger its weight: correlated features are drawn to equal
    norms and enter together (`clusters_`), where `MultiTaskLasso` picks one of them by chance. With one task it is OWL,
    that is OSCAR or SLOPE.

    See Also
    --------
    MultinomialOWL : the same penalty for classification.

    References
    ----------
    R. Bao, Q. Lu, Y. Zhang: Safe screening rules for Group OWL models, 2025.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks()
    >>> X[:, 1] = X[:, 0] + 0.01 * X[:, 2]  # nearly twins
    >>> model = ts.MultiTaskOWL(alpha=0.5).fit(X, y, task=task)
    >>> model.clusters_
    [array([0, 1])]
    >>> ts.MultiTaskLasso(alpha=0.5).fit(X, y, task=task).get_support(indices=True)  # one of the two
    array([1])
    """

    def __init__(self, alpha: float = 1.0, **options: Unpack[OWLOptions]) -> None:
        keep_parameters(self, locals())


@documented
class MultiTaskOWLCV(TaskRegression, SortedCV):
    """`MultiTaskOWL` with ``alpha`` chosen by cross-validation along its path."""

    _estimator = MultiTaskOWL
    _held_out_words = "mean squared error"

    def __init__(self, alphas: Any = None, **options: Unpack[OWLCVOptions]) -> None:
        keep_parameters(self, locals())


# --- classification ------------------------------------------------------------------------------------


#: rows to predict, of one matrix
ROWS_OF_CLASSES = """
X : matrix of shape (n, d)
offset : array of shape (n, n_classes), or float, optional
    Needed if the model was fitted with one (0.0 for none), in the order of ``classes_``.
"""


class ManyClasses(ClassifierMixin):
    """Any number of classes, one matrix: multinomial loss, accuracy.

    One task of many classes: every storage and the whole engine serve.
    """

    _loss: ClassVar[Loss] = Multinomial()
    _targets: ClassVar[Literal["values", "classes", "survival"]] = "classes"

    #: what `checks.check_estimator` leaves out, and why
    _skip_checks: ClassVar[dict[str, str]] = {"tasks": "one matrix for all classes: there are no tasks"}

    classes_: np.ndarray
    class_weight: Any
    coef_: Any
    intercept_: Any
    tasks_: np.ndarray
    _single: bool

    def _read(self, X: Any, y: Any, task: Any, sample_weight: Any) -> TaskData:
        name = type(self).__name__
        if task is not None:
            raise value_error(
                "{model} has one matrix for all classes: drop {task}, or fit one model for each task.",
                model=estimator_name(self),
            )
        if is_task_list(X):
            raise ValueError(f"{name} takes one matrix X, not a list of matrices: stack them with np.vstack.")
        warn_column(y)
        rows = X.shape[0] if hasattr(X, "shape") else len(np.asarray(X))
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
            y = np.asanyarray(to_numpy(y))[:, 0]  # a mask stays
        labels = read_labels(rows, y, None, sample_weight, targets="labels", allow_empty=True)
        if labels.form != "single":
            raise ValueError(f"y has shape {np.shape(y)}: {name} needs one class label per row, a 1-D y.")
        seen = labels.weights > 0
        if not seen.any():
            raise ValueError("No row counts: every sample weight is zero, or every label is missing.")
        check_classification_targets(labels.y[seen])
        classes = np.unique(labels.y[seen])
        if len(classes) < 2:
            raise value_error(
                "{y} has one class only ({only!r}): {model} needs rows of at least two classes to learn from.",
                only=classes[0],
                model=estimator_name(self),
            )
        codes = np.zeros(rows)
        codes[seen] = np.searchsorted(classes, labels.y[seen])
        data = read_tasks(placed(X, self), codes, None, labels.weights)
        self._report_passes(data)
        counts = np.array([len(classes)])
        data = replace(data, classes=classes, class_counts=counts)
        return with_class_weight(data, self.class_weight)

    def _read_offset(self, offset: Any, data: TaskData) -> np.ndarray:
        """One number per row and class."""
        shape = (data.n_rows, len(data.classes))
        known = np.asarray(to_numpy(offset), dtype=np.float64)
        if known.ndim and known.shape != shape:
            raise ValueError(
                f"offset has shape {known.shape}: it needs a row for each row of X and a column per class, {shape}."
            )
        bad = np.argwhere(~np.isfinite(np.broadcast_to(known, shape)))
        if len(bad):
            where = f"{row_name(bad[0][0])}, class {data.classes.tolist()[bad[0][1]]!r}"
            raise value_error("{offset} is not finite in {where}: offsets must be finite numbers.", where=where)
        return np.broadcast_to(known, shape).T.ravel()

    def _path_rows(self, data: TaskData) -> dict[str, Any]:
        return {"tasks": data.classes}

    def _set_solution(self, data: TaskData, point: Any) -> None:
        super()._set_solution(data, point)
        # a row per class, and no tasks
        self.coef_, self.intercept_ = self.coef_[:, 0].copy(), self.intercept_[:, 0].copy()
        self.tasks_, self._single = data.classes, False

    @described_by(ROWS_OF_CLASSES)
    def decision_function(self, X: Any, *, offset: Any = None) -> Predictions:
        """Scores x . w_k + b_k of the classes, and the offset.

        Returns
        -------
        ndarray of shape (n, n_classes)
            With two classes (n,), the score of the second minus that of the first: its log-odds.
        """
        scores = self._scores(X, None, offset=offset)
        return like(X, scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores)

    @described_by(ROWS_OF_CLASSES)
    def predict_proba(self, X: Any, *, offset: Any = None) -> Predictions:
        """Probabilities of the classes.

        Returns
        -------
        ndarray of shape (n, n_classes)
            In the order of ``classes_``.
        """
        scores = self._scores(X, None, offset=offset)
        return like(X, map_rows(lambda rows, _: softmax(rows, axis=1), scores))

    @described_by(ROWS_OF_CLASSES)
    def predict(self, X: Any, *, offset: Any = None) -> Predictions:
        """Predict the most probable class.

        Returns
        -------
        ndarray of shape (n,)
        """
        scores = self._scores(X, None, offset=offset)
        return like(X, map_rows(lambda rows, _: self.classes_[np.argmax(rows, axis=1)], scores))

    @described_by(ROWS_OF_CLASSES)
    def score(self, X: Any, y: Any, *, sample_weight: Any = None, offset: Any = None) -> float:
        """Share of rows (by weight) whose class is predicted.

        Parameters
        ----------
        y : array of shape (n,)
            Labels; rows whose label is missing are left out.
        sample_weight : array of shape (n,), optional

        Returns
        -------
        float
        """
        predicted = to_numpy(self.predict(X, offset=offset))
        labels = read_labels(len(predicted), y, None, sample_weight, targets="labels", allow_empty=True)
        seen = labels.weights > 0
        if not seen.any():
            return float("nan")
        return accuracy(labels.y[seen], predicted[seen], labels.weights[seen])


@documented
class MultinomialOWL(ManyClasses, SortedEstimator):
    r"""Multinomial logistic regression that finds features, and groups of correlated features.

    .. math::

        \min_{W, b}\ \frac{1}{\sum_i s_i} \sum_i s_i \Bigl( \log \sum_k e^{z_{ik}} - z_{i, y_i} \Bigr)
        + \alpha \sum_r \omega_r \lVert W_{[r]} \rVert_2, \qquad z_{ik} = x_i \cdot w_k + b_k

    with row j of W the coefficients of feature j for all classes, rows sorted by norm,
    :math:`\omega_1 \ge \omega_2 \ge \dots \ge 0`, and s the weights of samples. A feature is in the model for all
    classes or for none, and correlated features are drawn to equal norms (`clusters_`).

    Parameters
    ----------
    fit_intercept : bool, default=True
        One intercept per class, not penalised; they sum to zero.
    class_weight : dict or "balanced", optional
        Factors of the sample weights, by label (1 for those not named), or such that every class counts alike.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coef_ : ndarray of shape (n_classes, d)
        Coefficients W', a row per class, also for two classes.
    intercept_ : ndarray of shape (n_classes,)
    tasks_ : ndarray of shape (n_classes,)
        The classes, once more: rows of ``coef_``.

    See Also
    --------
    MultiTaskOWL : the same penalty for regression.

    Notes
    -----
    X may be sparse and stays so. A row whose label is NaN or None counts as absent.

    References
    ----------
    R. Bao, Q. Lu, Y. Zhang: Safe screening rules for Group OWL models, 2025.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, _, _ = ts.datasets.make_small_tasks(["a", "b", "c"], effects=[1.0], n_rows=90)
    >>> model = ts.MultinomialOWL(alpha=0.1).fit(X, y)
    >>> model.classes_
    array(['a', 'b', 'c'], dtype='<U1')
    >>> model.get_support(indices=True)
    array([0])
    >>> model.predict_proba(X).shape
    (90, 3)
    """

    positive = False  # a common shift of all classes changes nothing: signs mean nothing here
    task_weights = None

    def __init__(self, alpha: float = 1.0, **options: Unpack[MultinomialOptions]) -> None:
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # few standardised features enter at alpha >= 1/2, so at the default nothing may be learned
        tags.classifier_tags.poor_score = self.alpha >= 0.5
        return tags


@documented
class MultinomialOWLCV(ManyClasses, SortedCV):
    """`MultinomialOWL` with ``alpha`` chosen by cross-validation along its path.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test) row indices, default=5
        An integer: that many folds, shuffled within each class; ``groups`` of `fit` stay whole. Splitters that take
        groups get those. Rows are counted in the order given.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the shuffled folds; None is 0. The fold of a row depends on it and on its place among the observed rows.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, _, _ = ts.datasets.make_small_tasks(["low", "middle", "high"], effects=[1.0], n_rows=90)
    >>> model = ts.MultinomialOWLCV(n_alphas=10, eps=0.05, cv=3).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _estimator = MultinomialOWL
    _held_out_words = "mean of -log p(class)"

    task_weights = None

    def __init__(self, alphas: Any = None, **options: Unpack[MultinomialCVOptions]) -> None:
        keep_parameters(self, locals())
