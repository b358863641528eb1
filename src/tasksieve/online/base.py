"""What the online models share: reading rows, learning from them, showing what was learned."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from .._kernels import kernels
from ..docstrings import described_by
from ..fitted.arguments import check_choice, check_number, refuse_l1_length
from ..fitted.documented import DATA
from ..fitted.fold_assignment import random_numbers
from ..fitted.model import SelectingModel
from ..fitted.parameters import check_common
from ..fitted.progress import reporter, tells_callbacks
from ..fitted.state import LinearState
from ..messages import Message, ParameterError
from ..parameters import Parameter
from ..tasks import is_task_list, label_array, refuse_empty_tasks
from ..tasks.named import takes_named_tasks
from .memory import completed
from .parameters import ONLINE, ONLINE_DATA
from .progress import Progress
from .river import register
from .rows import BLOCK_ENTRIES, RowBatch, read_rows

PENALTIES = {"l21": 0, "l11": 1, "l1+l21": 2}
MISSING = {"per-task": 0, "importance": 1, "rounds": 2}
LOSSES = {"squared": 0, "logistic": 1, "hinge": 2}

# With average="auto", averages are kept for dense rows of at most so many features.
AUTO_AVERAGE = 1000
# Integer task labels below this are looked up in a table.
LARGEST_IN_TABLE = 1 << 20


# What learning changes besides the kernel's memory, where it is changed in place.
CHANGED = ("_labels", "_codes", "_table", "_vocabulary", "_classes")


class RefusedRow(ValueError):
    """A row of a batch that cannot be learned; those before it are."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(f"Row {row + 1} (row 1 is the first) {reason}")
        self.row, self.reason = row, reason


class Guard:
    """The lock of everything that learning changes. It is no parameter, so it is made at first use; afterwards the
    attribute of the same name is found first."""

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else model.__dict__.setdefault("_guard", threading.RLock())


Method = TypeVar("Method", bound=Callable[..., Any])


def locked(method: Method) -> Method:
    """A method that has the model's memory to itself: threads wait for each other, at the ends of rows or chunks."""

    @wraps(method)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._guard:
            return method(self, *args, **kwargs)

    return cast(Method, alone)


def remembered(method: Callable[[Any], Any]) -> Any:
    """A property read from the memory, under the lock, once a row was learned."""

    @wraps(method)
    def read(self: Any) -> Any:
        with self._guard:
            check_is_fitted(self)
            return method(self)

    return property(read)


def _shown(name: str, text: str) -> Any:
    """A property that shows weights of the model."""
    return property(lambda self: self._weights(name), doc=text)


class OnlineLinearModel(SelectingModel):
    """Dual averaging: the state is the sum of the gradients, the weights are a closed form of it.

    Several threads may share a model. What learns (`fit` as a whole, each `partial_fit`, each `learn_one`) and
    what reads the memory takes a lock; answers from coefficients (`predict`, `score`, `certify`) are computed
    from one `LinearState` taken under the lock, while learning continues.
    """

    _losses: ClassVar[tuple[str, ...]]
    _parameters: ClassVar[dict[str, Parameter]]
    _attributes: ClassVar[str] = ONLINE
    _supervised = True  # what river requires of an estimator in a pipeline

    #: what `checks.check_estimator` leaves out, and why
    _skip_checks: ClassVar[dict[str, str]] = dict.fromkeys(
        ("forms", "row_order", "columns"), "rows are learned in the order in which they come"
    )

    alpha: float
    penalty: str
    l1: Any
    loss: Any
    gamma: Any
    l2: float
    enhanced: float
    missing: str
    fit_intercept: bool
    average: Any
    max_iter: int
    shuffle: bool
    random_state: Any
    warm_start: bool
    task_feature: Any
    hash_features: int | None
    verbose: int

    _learner: Any
    _labels: list[Any]
    _codes: dict[Any, int]
    _table: np.ndarray  # codes of task labels that are small integers
    _vocabulary: dict[Any, int]
    _cache: dict[str, Any]
    _averages: bool

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        register(cls)  # river recognises models by type
        return super().__new__(cls)

    _guard = Guard()

    # -- parameters -----------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_common(self)
        for name in ("alpha", "l2", "enhanced"):
            check_number(getattr(self, name), name, low=0, closed=True)
        if not self._automatic:
            check_number(self.gamma, "gamma", low=0, closed=True)
        elif self.gamma != "auto":
            raise ParameterError("gamma", "must be 'auto' or a number >= 0", self.gamma)
        if not self._automatic and self.gamma == 0 and self.l2 == 0:
            raise ParameterError("gamma", Message("must be > 0 unless there is a ridge ({l2} > 0)"))
        check_choice(self.penalty, "penalty", PENALTIES)
        check_choice(self.missing, "missing", MISSING)
        check_choice(self.loss, "loss", self._losses)
        check_choice(self.average, "average", (True, False, "auto"))
        if self.hash_features is not None:
            check_number(self.hash_features, "hash_features", low=1, closed=True, integer=True)

    @property
    def _automatic(self) -> bool:
        return isinstance(self.gamma, str)

    def _configure(self) -> None:
        scalar = np.ndim(self.l1) == 0
        self._learner.configure(
            PENALTIES[self.penalty],
            MISSING[self.missing],
            LOSSES[self.loss],
            float(self.alpha),
            np.nan if self._automatic else float(self.gamma),
            float(self.l2),
            float(self.enhanced),
            bool(self.fit_intercept),
            self._averages,
            float(self.l1) if scalar else np.nan,
        )

    def _set_l1(self) -> None:
        if np.ndim(self.l1) == 0 or self.penalty != "l1+l21":
            return
        refuse_l1_length(self.l1, self._learner.features)
        self._learner.set_l1(np.ascontiguousarray(self.l1, dtype=np.float64))

    @locked
    def set_params(self, **params: Any) -> Self:
        """Set parameters; a model that has begun to learn continues with the new ones.

        Parameters
        ----------
        **params : dict
            Names and values.

        Returns
        -------
        self
        """
        super().set_params(**params)
        if hasattr(self, "_learner") and params:
            self._check_parameters()
            if "missing" in params:
                self._learner.close_round()
            self._configure()
            self._set_l1()
            self._cache.clear()
        return self

    # -- beginning ------------------------------------------------------------------------------------------------

    def _begin(self, dense_features: int | None) -> None:
        """A model that has seen nothing; the number of features is given where rows are dense arrays."""
        self._check_parameters()
        if self.average == "auto":
            self._averages = dense_features is not None and dense_features <= AUTO_AVERAGE
        else:
            self._averages = bool(self.average)
        self._learner = kernels.DualAveraging()
        self._labels, self._codes, self._vocabulary, self._cache = [], {}, {}, {}
        self._table = np.empty(0, dtype=np.int64)
        self._single = False
        self.n_features_in_ = 0
        for name in ("feature_names_in_", "n_iter_"):
            self.__dict__.pop(name, None)
        self._configure()

    def _join(self, label: Any) -> int:
        code = self._codes.get(label)
        if code is None:
            code = self._codes[label] = len(self._labels)
            self._labels.append(label)
            if type(label) is int and 0 <= label < LARGEST_IN_TABLE:
                if label >= len(self._table):
                    longer = np.full(max(64, 2 * label), -1, dtype=np.int64)
                    longer[: len(self._table)] = self._table
                    self._table = longer
                self._table[label] = code
            self._learner.resize(self._learner.features, len(self._labels))
            self._cache.clear()
        return code

    def _set_width(self, X: Any, batch: RowBatch, first: bool) -> None:
        """Number and names of the features: from the first rows, and checked with all later ones."""
        if first:
            self._remember_features(X, batch.n_features)
            names = getattr(self, "feature_names_in_", None)
            self._vocabulary = {name: j for j, name in enumerate(names)} if names is not None else {}
        else:
            for item in X if is_task_list(X) else [X]:
                self._check_features(item)
            if batch.n_features != self.n_features_in_:
                raise ValueError(
                    f"X has {batch.n_features} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input."
                )
        self._learner.resize(self.n_features_in_, len(self._labels))

    # -- learning from matrices -------------------------------------------------------------------------------------

    def _read_rows(self, X: Any, y: Any, task: Any, sample_weight: Any) -> RowBatch:
        return read_rows(X, y, task, sample_weight, "values" if self._targets == "values" else "labels")

    def _take_in(self, X: Any, batch: RowBatch, classes: Any = None) -> None:
        """Features, tasks and classes of a batch become known; its labels become numbers."""
        first = not hasattr(self, "_learner")
        if first:
            self._begin(None if batch.sparse else batch.n_features)
            self._single = batch.form == "single"
        elif batch.form == "single" and not self._single:
            raise ValueError("The model has learned rows with task labels: pass task, the task of each row.")
        self._set_width(X, batch, first)
        self._configure()
        self._set_l1()
        self._single = self._single and batch.form == "single"
        codes = [self._join(label) for label in batch.tasks]
        batch.codes = np.array(codes, dtype=np.int64)[batch.codes]

    def _learn(self, batch: RowBatch, order: np.ndarray | None = None) -> None:
        self._cache.clear()
        done = 0
        for part, some in batch.blocks(order):
            y, codes = (np.ascontiguousarray(values[some]) for values in (batch.y, batch.codes))
            weights = None if batch.weights is None else np.ascontiguousarray(batch.weights[some])
            if batch.sparse:
                learned = self._learner.learn_sparse(part.data, part.indices, part.indptr, y, codes, weights)
            else:
                learned = self._learner.learn_dense(part, y, codes, weights)
            done += learned
            if learned < len(y):
                raise RefusedRow(done if order is None else int(order[done]), self._refusal())

    def _refusal(self) -> str:
        """Why a row was not learned; what to do depends on whether gamma was chosen automatically."""
        advice = (
            "The row itself must be the cause: look for a mistake in it, or for other units"
            if self._automatic
            else f"Either the row is absurd, or gamma={self.gamma:g} is too small for these rows and the model had "
            "begun to diverge: use gamma='auto', or raise gamma"
        )
        return (
            "was not learned: with it the iterates would grow without bound (beyond what 64-bit numbers can "
            f"resolve). The model is as it was before that row. {advice}."
        )

    def _learn_plain(self, X: Any, y: Any, task: Any) -> bool:
        """Learn a chunk that needs no reading: plain numbers, integer labels of tasks already known, as the kernel
        checks. False: the chunk is something else, and nothing was done."""
        if not hasattr(self, "_learner") or hasattr(self, "feature_names_in_"):
            return False
        rows: tuple[Any, ...]
        if type(X) is np.ndarray and X.dtype in (np.float32, np.float64) and X.size <= BLOCK_ENTRIES:
            learn, rows = self._learner.learn_plain_dense, (np.ascontiguousarray(X, dtype=np.float64),)
        elif isinstance(X, scipy.sparse.csr_matrix | scipy.sparse.csr_array):
            learn, rows = self._learner.learn_plain_sparse, (X.data, X.indices, X.indptr)
        else:
            return False
        entries = rows[0]
        for array, dtype in ((entries, np.float64), (y, np.float64), (task, np.int64)):
            if type(array) is not np.ndarray or array.dtype != dtype or not array.flags.c_contiguous:
                return False
        if y.ndim != 1 or task.shape != y.shape or X.shape != (len(y), self.n_features_in_):
            return False
        if len(y) == 0 or entries.size > BLOCK_ENTRIES:
            return False
        self._configure()
        self._set_l1()
        learned = learn(*rows, y, task, self._table)
        if learned < 0:
            return False
        self._single = False
        self._cache.clear()
        if learned < len(y):
            raise RefusedRow(learned, self._refusal())
        return True

    @locked
    def _partial_fit(self, X: Any, y: Any, task: Any, sample_weight: Any, classes: Any = None) -> Any:
        if self._targets == "values" and sample_weight is None and self._learn_plain(X, y, task):
            return self
        batch = self._read_rows(X, y, task, sample_weight)
        if not self._brings_news(batch, classes):
            self._take_in(X, batch)
            self._learn(batch)
            return self
        whole = replace(batch)
        try:
            with self._all_or_nothing():
                self._take_in(X, batch, classes)
                self._learn(batch)
        except RefusedRow as error:
            if error.row:  # tasks and classes that only come with the row or after it do not join
                first = whole.first(error.row)
                self._take_in(X, first, classes)
                self._learn(first)
            raise
        return self

    def _brings_news(self, batch: RowBatch, classes: Any) -> bool:
        """Whether a batch holds more than rows of known tasks (and classes): what an error must take back."""
        if not hasattr(self, "_learner") or classes is not None:
            return True
        return not all(label in self._codes for label in batch.tasks)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        before, guard = self.__getstate__(), self._guard
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self._guard = guard
            self.__setstate__(before)
            raise

    @locked
    @tells_callbacks
    @takes_named_tasks
    @described_by(ONLINE_DATA, DATA)
    def fit(self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Learn from ``max_iter`` passes over the rows, each in a new random order (if ``shuffle``).

        With ``missing="rounds"`` every pass is arranged in rounds of one row per task, as in the paper.

        Returns
        -------
        self
        """
        self._check_parameters()
        batch = self._read_rows(X, y, task, sample_weight)
        with self._all_or_nothing():
            self._fit(X, batch)
        return self

    def _fit(self, X: Any, batch: RowBatch) -> None:
        if not self.warm_start:
            self.__dict__.pop("_learner", None)
        self._take_in(X, batch)
        self._check_batch(batch)
        rng = random_numbers(self.random_state)
        kept = np.flatnonzero(batch.observed)  # rows without a label take no part in rounds
        report = reporter(type(self).__name__, "pass", self.verbose)
        for epoch in range(self.max_iter):
            order = rng.permutation(kept) if self.shuffle else kept
            if self.missing == "rounds":
                order = by_rounds(order, batch.codes)
            self._learn(batch, order)
            if report is not None:
                report(epoch + 1, self.max_iter)
        self.n_iter_ = self.max_iter

    def _check_batch(self, batch: RowBatch) -> None:
        counts = np.bincount(batch.codes[batch.observed], minlength=len(self._labels))
        refuse_empty_tasks(batch.tasks, counts[[self._codes[label] for label in batch.tasks]])

    # -- what was learned -------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learner")

    @locked
    def _learned(self) -> LinearState:
        check_is_fitted(self)
        return LinearState(
            self.coef_, self.intercept_, self.tasks_, self._known_classes(), self._single, type(self).__name__
        )

    def _known_classes(self) -> Any:
        """Classes as a `LinearState` has them."""
        return None

    @locked
    def _weights(self, name: str) -> np.ndarray:
        check_is_fitted(self)
        if name not in self._cache:
            self._cache |= self._averaged() if name.startswith("averaged") else self._last_iterate()
        return self._cache[name]

    def _last_iterate(self) -> dict[str, np.ndarray]:
        coef, intercept = np.empty((self._learner.tasks, self._learner.features)), np.empty(self._learner.tasks)
        self._learner.coefficients(coef)
        self._learner.intercepts(intercept)
        return {"coef_": coef, "intercept_": intercept}

    def _averaged(self) -> dict[str, np.ndarray]:
        if not self._averages:
            raise AttributeError(
                "averages are not kept: construct the model with average=True "
                f"('auto' keeps them for dense rows of at most {AUTO_AVERAGE} features)"
            )
        state = self._learner.state()
        features, tasks, steps = (int(n) for n in state["shape"][:3])
        count = max(1, steps + bool(len(state["round_task"])))
        total = state["total"].reshape(tasks, features)
        return {"averaged_coef_": total / count, "averaged_intercept_": state["offset_total"] / count}

    coef_: np.ndarray = _shown("coef_", "The last iterate, (T, d): sparse.")
    intercept_: np.ndarray = _shown("intercept_", "Intercepts of the last iterate, (T,).")
    averaged_coef_: np.ndarray = _shown(
        "averaged_coef_", "Average of all iterates, (T, d): what the convergence guarantee is about; not sparse."
    )
    averaged_intercept_: np.ndarray = _shown("averaged_intercept_", "Average of the intercepts of all iterates, (T,).")

    @remembered
    def tasks_(self) -> np.ndarray:
        """Task labels in the order of ``coef_``: first seen first."""
        return label_array(self._labels)

    @remembered
    def n_rows_seen_(self) -> int:
        """Rows learned so far (rows of weight 0 are not counted)."""
        return int(self._learner.rows)

    @remembered
    def t_(self) -> int:
        """Steps made so far: rows, or closed rounds."""
        return int(self._learner.steps)

    @remembered
    def gamma_(self) -> float:
        """The damping after the rows so far: ``gamma``, or what "auto" has come to (0 before a row with features)."""
        return float(self._learner.gamma) if self._automatic else float(self.gamma)

    @remembered
    def progressive_loss_(self) -> float:
        """Mean loss of the rows so far, each predicted before it was learned (weighted; NaN before any)."""
        return self.progress().loss

    @locked
    def progress(self) -> Progress:
        """How well rows were predicted before they were learned, overall, by task and along the stream.

        Returns
        -------
        Progress
        """
        check_is_fitted(self)
        return Progress.of(self._learner.state(), self.tasks_, self._targets == "classes")

    @remembered
    def feature_index_(self) -> dict[Any, int]:
        """Place in ``coef_`` of every feature name met by `learn_one` (or of the columns of a data frame)."""
        return dict(self._vocabulary)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.shuffle and self.random_state is None
        return tags

    # -- copies, pickles ----------------------------------------------------------------------------------------------

    @locked
    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in super().__getstate__().items() if name != "_guard"}
        if "_learner" in state:
            state["_learner"] = state["_learner"].state()
            state["_cache"] = {}
            state.update({name: state[name].copy() for name in CHANGED if name in state})
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_learner" in self.__dict__:
            kept = completed(self._learner)
            self._learner = kernels.DualAveraging()
            self._configure()
            self._learner.restore(kept)


def by_rounds(order: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Rearrange rows into rounds: the first row of every task, then the second of every task that has one, ..."""
    own = codes[order]
    by_task = np.argsort(own, kind="stable")
    counts = np.bincount(own)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    position = np.empty(len(order), dtype=np.int64)
    position[by_task] = np.arange(len(order)) - np.repeat(starts, counts)
    return order[np.lexsort((own, position))]
