"""One site's tasks: answers to questions, sums over its tasks, from rows that stay where they are.

An answer is a function of data and question alone: local problems are solved anew each time, from the same start, so
that the same question has the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..design import Design, PackedColumns, Part, one_blas_thread
from ..design.storage.computed import ComputedStorage
from ..linear.balance import Balance
from ..linear.held_out import Judge, Solved, held_out_sizes
from ..linear.mixed import MixedJudge
from ..losses import DataLoss, Evaluation, Loss, Mixed, as_loss
from ..messages import ParameterError
from ..path.certificate import stored_solution
from ..tasks import TaskData, lay_out
from .answer import GRID, HELD_OUT, Answer, answer_of_sizes
from .errors import FederatedError
from .local_solve import LocalPoint, local_hessian, soft, solve_local
from .part import Archive, Half, SitePoint, SiteProof
from .question import Question
from .units import NORM_POWER, Units

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 22  # entries of X that moments are taken of at a time
_KEPT = 1 << 27  # numbers of features x tasks that are kept of problems answered before
_REFUSED = "of a site must have a second derivative (squared, logistic, Huber, quantile, Poisson, gamma, Cox, ordinal)"


@dataclass
class _Solved:
    """The local problems of all tasks at one question.

    - `columns` (list of arrays of shape (n_t, a)): Those asked about, in the geometry of the design.
    """

    columns: list[Array]
    points: list[LocalPoint]

    @property
    def residual(self) -> Array:
        return np.concatenate([point.at.residual for point in self.points])

    @property
    def rows(self) -> Array:
        """Coefficients of the scaled columns, (a, tasks)."""
        return np.stack([point.w for point in self.points], axis=1)


class _NoEvents(DataLoss):
    """Of tasks whose rows all end without an event: nothing of them counts."""

    differentiable = True

    def __init__(self, design: Design) -> None:
        super().__init__(design)
        self.has_intercept = np.zeros(design.n_tasks, dtype=bool)
        self.null = self.evaluate(np.zeros(design.n_samples))

    def evaluate(self, z: Array, start: Array | None = None) -> Evaluation:
        none = np.zeros(self.design.n_samples)
        return Evaluation(0.0, none, np.zeros((self.design.n_nuisance, self.design.n_tasks)), none)

    def settled(self, at: Evaluation) -> Evaluation:
        return at

    def terms(self, at: Evaluation, scale: float) -> float:
        return 0.0


class RowProblem:
    """The tasks of a site under given weights of the rows: all of them, those of a fold, a half.

    - `weights` (flat array): Sample weights of the rows that are learned from, 0 for others.
    - `judge`: How rows that are held out are scored.
    - `mixed`: Whether other sites have other losses: nothing is then sent that the squared loss alone has.
    """

    def __init__(
        self, data: TaskData, loss: Loss, weights: Array, judge: Judge, *,
        fit_intercept: bool, scales: Any, unpenalised: Array, mixed: bool,
    ) -> None:  # fmt: skip
        self.data, self.loss, self.train, self.judge, self.mixed = data, loss, weights, judge, mixed
        by_task = np.repeat(data.with_weights(weights).task_weights, np.diff(data.offsets))
        layout = lay_out(data, loss.row_weights(weights, by_task))
        storage, pooled = layout.storage, not isinstance(scales, str)
        self.scales: Array | None = scales if pooled else None
        if pooled:
            storage = ComputedStorage(storage, compute=lambda raw, j: raw.take(j) / scales[j])
        self.design: Design = layout.design(
            storage, fit_intercept=fit_intercept, unpenalised=unpenalised, standardize=not pooled and scales == "task"
        )
        self.design.shard.measure()  # now: the first reading of all columns adds up in another order than later ones
        if not self.design.finite:
            data.refuse_not_finite()
            raise FederatedError("data", "X has entries whose squares overflow: divide its columns by a common factor")
        self._y = layout.y
        self.whole = self._on(self.design) if self._counts(slice(None)) else _NoEvents(self.design)
        if not _has_second_derivative(self.whole):
            raise ParameterError("loss", _REFUSED, type(loss).__name__)

    def _on(self, design: Design, rows: Any = slice(None)) -> DataLoss:
        known = () if self.data.known is None else (self.data.known[rows],)
        return self.loss.on(design, self._y[rows], *known)

    @cached_property
    def losses(self) -> list[DataLoss]:
        """That of each task alone."""
        if self.design.n_tasks == 1:
            return [self.whole]
        return [self._of_task(t) for t in range(self.design.n_tasks)]

    def _counts(self, rows: Any) -> bool:
        """Whether anything of rows counts: of survival, an event."""
        return self._y.dtype.names is None or bool(np.any(self.train[rows][self._y["event"][rows]] > 0.0))

    def _of_task(self, t: int) -> DataLoss:
        rows, design = self._span(t), Part(self.design, np.array([t]))
        return self._on(design, rows) if self._counts(rows) else _NoEvents(design)

    def _span(self, t: int) -> slice:
        return slice(int(self.design.offsets[t]), int(self.design.offsets[t + 1]))

    def _penalised(self, products: Array, features: Array | None) -> Array:
        """Products of columns, 0 for those that are not penalised."""
        free = self.design.unpenalised
        if len(free):
            products[free if features is None else np.isin(features, free)] = 0.0
        return products

    def solve(self, question: Question) -> _Solved:
        """The minimisers at the point of a question."""
        features, design = question.features, self.design
        if np.isin(features, design.unpenalised).any():
            raise FederatedError("question", "features that are not penalised have no place in a question")
        packed = design.take(features).columns
        shared = design.uniform and design.n_tasks > 1
        columns = [packed if shared else np.asfortranarray(packed[self._span(t)]) for t in range(design.n_tasks)]
        points = [
            solve_local(loss, x, question.s, question.l1) for loss, x in zip(self.losses, columns, strict=True)
        ]
        return _Solved(columns, points)

    def answer(self, question: Question) -> Answer:
        """Sums at a point."""
        found, l1, a = self.solve(question), question.l1, len(question.features)
        sums, squared = np.zeros(4), self.whole.squared and not self.mixed
        dual, z = np.zeros(len(GRID)) if question.dual else None, np.zeros(a)
        hessian = np.zeros((a, a)) if question.hessian else None
        for loss, x, point in zip(self.losses, found.columns, found.points, strict=True):
            at, r = point.at, point.at.residual
            value = at.value + l1 * float(np.abs(point.w).sum())
            labels = float(r @ loss.target) if squared else loss.constant
            sums += [value + 0.5 * float(question.s @ point.c**2), value, labels, float(r @ r)]
            if dual is not None:
                product = float(r @ point.image)
                dual += [at.value + k * product - loss.terms(at, k) for k in GRID.tolist()]
            z += point.c**2
            if hessian is not None:
                hessian += local_hessian(loss, x, question.s, point, l1)
        levels = self._penalised(self.design.correlate(found.residual, question.levels), question.levels)
        levels = soft(levels, l1)
        held_out = self.held_out(question, found) if question.held_out else np.zeros(HELD_OUT)
        phi, value, yr, rr = sums.tolist()
        squares = np.einsum("jt,jt->j", levels, levels)
        return Answer(phi, value, yr, rr, dual, z, hessian, squares, held_out)

    def norms(self) -> Answer:
        """Of all columns."""
        return Answer(norms=np.sum(self._penalised(self.design.norms() ** NORM_POWER, None), axis=1))

    def stored(self, question: Question, found: _Solved) -> Solved:
        """The coefficients in the units of the data, with those of unpenalised features and intercepts."""
        live = np.flatnonzero(question.s > 0.0)
        features, rows = question.features[live], np.ascontiguousarray(found.rows[live])
        nuisance = self.whole.evaluate(np.concatenate([point.image for point in found.points])).nuisance
        columns = PackedColumns(self.design)
        numbers = stored_solution(self.whole, columns, columns.positions(features), features, rows, nuisance)
        features = np.concatenate([features, self.design.unpenalised])
        order, rows = np.argsort(features), np.vstack([numbers.rows, numbers.free])
        if self.scales is not None:
            rows = rows / self.scales[features][:, None]
        return Solved(features[order], rows[order], numbers.intercept, numbers.thresholds)

    @cached_property
    def proof(self) -> SiteProof:
        """The problem in the words of the certificate's format."""
        scales: Any = self.scales
        if scales is None:
            scales = "task" if self.design.standardize else "no"
        return SiteProof(
            self.data, self.loss, self.train,
            fit_intercept=self.design.fit_intercept, scales=scales, unpenalised=self.design.unpenalised,
        )  # fmt: skip

    def strict(self, question: Question) -> tuple[SitePoint, Half]:
        """What is stored at a point, and its strict bounds."""
        found = self.solve(question)
        settled = [loss.settled(point.at) for loss, point in zip(self.losses, found.points, strict=True)]
        residual = np.concatenate([at.residual for at in settled])
        point = self.proof.point(self.stored(question, found), residual, self.design.samples.root)
        return point, self.proof.half(question, point)

    def held_out(self, question: Question, found: _Solved) -> Array:
        """Scores of the tasks' rows left out, as cross-validation of estimators has them, added up; the same of the
        model without features; how many tasks have a score; and the weight of the rows learned from, by which
        estimators divide (the constant that they add is `Answer.yr`)."""
        data, train = self.data, self.train
        test, weight = np.where(train > 0.0, 0.0, data.weights), float(train.sum())
        if not test.any():
            return np.array([0.0, 0.0, 0.0, weight])
        nothing = Question(problem=question.problem)
        points = [self.stored(question, found), self.stored(nothing, self.solve(nothing))]
        scores = self.judge.by_task(data, train, test, points)
        scores = scores[~np.isnan(scores).any(axis=1)]
        return np.array([*scores.sum(axis=0), len(scores), weight])


def _has_second_derivative(loss: DataLoss) -> bool:
    """Whether `local_solve` knows it: by row, or by a factor that the loss has."""
    by_norms = loss.residual_norms(loss.null) is not None
    return loss.has_slope and not loss.of_classes and not by_norms and (loss.squared or loss.curved)


class LocalProblem:
    r"""The tasks of one site.

    .. math:: \phi(s) = \sum_t \min_{w, b} F_t(X_t w + Z_t b) + \tfrac12 \sum_j w_j^2 / s_j + \ell_1 \sum_j |w_j|

    Parameters
    ----------
    data : TaskData
        Rows, labels, weights and offsets (`known`), as `tasksieve.tasks.read_tasks` reads them.
    loss : str or Loss
        One with a second derivative, the same for all tasks.
    fit_intercept : bool, default=True
    standardize : {"no", "task", "pooled"} or array of shape (d,), default="no"
        Columns are divided by nothing, by their standard deviation in each task, or by given numbers, those of all
        sites together. "pooled": by numbers that are not known yet, see `scaled`.
    unpenalised : array of int, optional
        Features that are never penalised: their coefficients are fitted at the site, and they have no part in answers.
    problems : mapping of str to array, optional
        Names and flat weights of the rows that are learned from, 0 for those held out. The problem "all" is there
        always.
    mixed : bool, default=False
        Whether other sites have other losses.

    Examples
    --------
    >>> import numpy as np
    >>> from tasksieve.federated.question import Question
    >>> from tasksieve.tasks import read_tasks
    >>> site = LocalProblem(read_tasks([np.eye(3)[:, :2]], [np.array([3.0, 1.0, -1.0])]), "squared")
    >>> site.answer(Question()).levels  # squared products of the columns with y less its mean
    array([4., 0.])
    """

    def __init__(
        self,
        data: TaskData,
        loss: str | Loss,
        *,
        fit_intercept: bool = True,
        standardize: Any = "no",
        unpenalised: Any = None,
        problems: Mapping[str, Array] | None = None,
        mixed: bool = False,
    ) -> None:
        if data.class_counts is not None:
            raise ParameterError("y", "of a site must be numbers, two classes, ordered classes or times of events")
        scales = standardize
        if not isinstance(standardize, str):
            scales = np.asarray(standardize, dtype=np.float64)
            if scales.shape != (data.n_features,) or not np.all((scales > 0.0) & np.isfinite(scales)):
                raise ParameterError("standardize", f"must hold {data.n_features} positive numbers")
        elif standardize not in ("no", "task", "pooled"):
            words = "must be 'no', 'task', 'pooled' or a number for each feature"
            raise ParameterError("standardize", words, standardize)
        self.data, self.loss = data, as_loss(loss)
        self._weights = {"all": data.weights, **(problems or {})}
        for name, weights in self._weights.items():
            if np.shape(weights) != data.weights.shape:
                raise ParameterError("problems", f"has {np.shape(weights)} weights of {name!r}, not one for each row")
        free = np.unique(np.asarray([] if unpenalised is None else unpenalised, dtype=np.int64))
        if len(free) and (free[0] < 0 or free[-1] >= data.n_features):
            raise ParameterError("unpenalised", f"must hold features from 0 to {data.n_features - 1}")
        self._options = {
            "fit_intercept": bool(fit_intercept), "scales": scales, "unpenalised": free, "mixed": mixed,
        }  # fmt: skip
        self._waits = isinstance(scales, str) and scales == "pooled"  # for scales
        self._known: dict[str, RowProblem] = {}
        self._scaled: LocalProblem | None = None

    def scaled(self, scales: Array) -> LocalProblem:
        """The same tasks with columns divided by given numbers; the last one used is kept."""
        known = self._scaled
        if known is None or not np.array_equal(known._options["scales"], scales):
            known = self._scaled = self._with(np.array(scales))
        return known

    def _with(self, standardize: Any) -> LocalProblem:
        options = {name: self._options[name] for name in ("fit_intercept", "unpenalised", "mixed")}
        return LocalProblem(self.data, self.loss, standardize=standardize, problems=self._weights, **options)

    @cached_property
    def _judge(self) -> Judge:
        """That of cross-validation: tasks count alike, whatever the number of their rows."""
        data, folds = self.data, [own for name, own in self._weights.items() if name.startswith("fold ")]
        tests = [np.where(train > 0.0, 0.0, data.weights) for train in folds]
        if self._options["mixed"]:
            ones = np.ones(data.n_tasks)
            held = [np.array([np.sum(test[part]) for part in data.per_task()]) for test in tests]
            sizes = np.mean(held, axis=0) if held else ones
            return MixedJudge(Mixed([self.loss] * data.n_tasks), Balance(ones, ones), sizes)
        return Judge(self.loss, None, held_out_sizes(data, self.loss, tests))

    @property
    def n_features(self) -> int:
        return int(self.data.n_features)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the problems."""
        return tuple(self._weights)

    def problem(self, name: str) -> RowProblem:
        """The tasks on the rows of a problem; the last ones used are kept."""
        found = self._known.pop(name, None)
        if found is None:
            if name not in self._weights:
                raise FederatedError("question", f"there is no problem {name!r} here")
            if self._waits:
                raise FederatedError("scales", "the scales of columns of all sites together are not known here yet")
            found = RowProblem(self.data, self.loss, self._weights[name], self._judge, **self._options)
        most = max(_KEPT // (2 * max(self.n_features, 1) * self.data.n_tasks), 1)
        while len(self._known) >= most:
            del self._known[next(iter(self._known))]
        self._known[name] = found
        return found

    def answer(self, question: Question) -> Answer:
        """Sums over the tasks: the same bits for the same question."""
        question.check(self.n_features)
        with one_blas_thread():
            if question.kind == "moments":
                return self.moments(question)
            if question.kind == "sizes" and self._waits:
                return self._raw_sizes(question)
            problem = self.problem(question.problem)
            if question.kind == "norms":
                return problem.norms()
            if question.kind == "sizes":
                return answer_of_sizes(problem.answer(Question(problem=question.problem)), problem.norms())
            if question.kind == "part":
                return problem.strict(question)[1].answer()
            return problem.answer(question)

    def moments(self, question: Question) -> Answer:
        """Sums of columns less given numbers, and of the squares of these differences, over the rows of all tasks."""
        data, features = self.data, question.features
        if np.isin(features, self._options["unpenalised"]).any():
            raise FederatedError("question", "features that are not penalised have no place in a question")
        weights = data.weights.reshape(data.n_tasks, -1).sum(axis=0) if data.shared else data.weights
        first, second = np.zeros(len(features)), np.zeros(len(features))
        step = max(_BLOCK // max(data.n_rows, 1), 1)
        for start in range(0, len(features), step):
            part = slice(start, start + step)
            less = np.asarray(data.take(features[part]), dtype=np.float64) - question.s[part]
            first[part], second[part] = weights @ less, weights @ np.square(less)
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            data.refuse_not_finite()
            raise FederatedError("data", "X has entries whose squares overflow: divide its columns by a common factor")
        return Answer(weight=float(weights.sum()), first=first, second=second)

    def _raw_sizes(self, question: Question) -> Answer:
        """The first exchange where pooled scales are to be found: how large columns are as they lie in the data, and
        how large numbers are with columns standardised here, which is near to what they will be."""
        here = np.setdiff1d(np.arange(self.n_features), self._options["unpenalised"])
        found = self.moments(Question(features=here, s=np.zeros(len(here)), kind="moments"))
        assert found.second is not None
        with np.errstate(over="ignore"):
            norms = Answer(norms=np.sqrt(found.second) ** NORM_POWER)
        null = self._with("task").answer(Question(problem=question.problem))
        return answer_of_sizes(null, norms)

    def half(self, question: Question) -> Half:
        """Strict bounds at a point: what a question of kind "part" is answered with."""
        return self.strict(question)[1]

    def strict(self, question: Question) -> tuple[SitePoint, Half]:
        """What the site stores at a point, with the dual point, and strict bounds of it."""
        question.check(self.n_features)
        with one_blas_thread():
            return self.problem(question.problem).strict(question)

    def part(
        self,
        site: str,
        salt: bytes,
        questions: Sequence[Question],
        units: Sequence[Units],
        *,
        names: Sequence[str] | None = None,
    ) -> Archive:
        """``certificate-part.npz``: what proves this site's answers to questions of kind "part". It stays here.

        - `site`: Its name.
        - `salt`: 32 random bytes that it keeps.
        - `questions`, `units`: As they were asked, of one problem.
        - `names`: Of the features.
        """
        points, halves = zip(*(self.strict(question) for question in questions), strict=True)
        proof = self.problem(questions[0].problem).proof
        return proof.part(site, salt, questions, units, points, halves, names=names)

    def coefficients(self, question: Question) -> Solved:
        """What the site keeps: features, their rows of coefficients (a, tasks) in the units of the data, unpenalised
        features among them, intercepts, and thresholds between ordered classes."""
        question.check(self.n_features)
        with one_blas_thread():
            problem = self.problem(question.problem)
            return problem.stored(question, problem.solve(question))
