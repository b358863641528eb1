"""Does sharing help? Nested cross-validation of a shared model and its rivals, task by task."""

from __future__ import annotations

import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from joblib import effective_n_jobs

from ..design import thread_count
from ..docstrings import described_by
from ..fitted.arguments import check_level, check_number
from ..fitted.assess import Cells, HeldOutRows, assess, widening
from ..fitted.checkpoint import keeping, kept, unkept
from ..fitted.fold_assignment import read_seed
from ..fitted.folds import Folds
from ..fitted.progress import carried, reporter, unwatched
from ..fitted.survival_quality import SurvivalOutOfFold
from ..linear.pretraining import Pretraining
from ..linear.row_folds import facts_of, sketch
from ..messages import either, value_error
from ..svm.hashing import read_strings
from ..tasks import TaskData, placed, read_tasks, some_of
from ..tasks.named import refuse_patterns, takes_named_tasks
from ..tasks.task_column import column_of_tasks
from ..tasks.task_means import HoledRows
from .comparison import Comparison, Differences
from .contenders import SHARED, Contenders
from .cv_sibling import cv_sibling, inner_folds
from .described_data import FINDING
from .nested_folds import NestedFolds
from .time_left import TimeLeft

Array = np.ndarray[Any, Any]

LEAST_UNITS = 3  # of a task with a model of its own, chosen by folds within them


@takes_named_tasks
@described_by(FINDING)
def compare(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    task: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    cv: int = 5,
    level: float = 0.9,
    pooled: bool = True,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Comparison:
    r"""Does sharing help, task by task?

    Four ways to predict the rows of several tasks are compared by nested cross-validation: the shared model, the same
    kind of model for each task alone, one model for the rows of all tasks together, and the task's mean (or its
    frequencies of classes). For each of K outer folds each learns from the other folds only, its strength chosen by
    folds of these, and predicts the rows held out; of task t the figures are

    .. math:: L_t = \frac{\sum_i s_i \ell(y_i, \hat f^{(-f(i))}(x_i))}{\sum_i s_i}, \qquad
        \Delta_t = L_t^{\text{shared}} - L_t^{\text{own}}.

    Parameters
    ----------
    model : estimator
        A ``...CV`` model, or one that has such a sibling (`MultiTaskLasso`): then the sibling with the same parameters
        takes its place, and ``alpha`` is chosen. Its ``cv`` is the number of inner folds; they choose by its
        ``scoring``, if it has one. Of ``Pretraining(model)`` the shared model is ``model``, and models that start from
        one of all rows take part, too ("pretrained").
    groups : array of shape (n,), or list of such, optional
        Families, patients: rows of one group are held out together, outside and inside, and are one unit in intervals
        and tests. Without groups the unit is the row, and with one matrix shared by all tasks the row of all tasks.
    cv : int, default=5
        Outer folds, at least 3.
    level : float, default=0.9
        Of the intervals.
    pooled : bool, default=True
        Whether one model for the rows of all tasks takes part. It is left out where tasks have different classes.
    n_jobs : int, optional
        Fits side by side, in threads that share X; by default one at a time, with all processors.

    Returns
    -------
    Comparison
        ``summary()``, ``to_frame()``, ``plot()``; ``differences["own"]`` has the paired tests. After Ctrl-C it is about
        the folds that were finished, if these are two or more (``interrupted`` is True).

    Notes
    -----
    There are two tasks or more. What relates tasks (``task_graph``, ``graph``) or weighs them counts for the shared
    model only.

    Losses are the model's own; for classes minus the logarithm of the probability of the true class, or, without
    probabilities, the margin loss (of more than two classes: whether the class was missed); for survival the deviance
    of a fold for each of its events, one model for all rows having a baseline hazard for each task.

    Intervals and paired t tests take the variance between rows (or groups) times :math:`1 + K / (K - 1)`, the
    correction of Nadeau and Bengio for training sets that overlap. What they are about is the loss, on new rows, of the
    models that the folds have learned, from (K - 1) / K of the rows; a model of all rows is mostly a little better. In
    simulations (``benchmarks/compare_coverage.py``) intervals of 90 % covered it in 90 to 96 % of the tasks, plain ones
    in 74 to 88 %; for the mean over tasks 85 to 100 % and 68 to 95 %. P-values of tasks are adjusted by Holm's method.

    The nested estimate of Bates, Hastie and Tibshirani (three times the work) was tried in their place: it covered
    about as much, and found fewer of the true differences (29 % of the tasks instead of 49 %).

    References
    ----------
    Nadeau and Bengio (2003), "Inference for the generalization error"; Bates, Hastie and Tibshirani (2023),
    "Cross-validation: what does it estimate and how well does it do it?"; Holm (1979), "A simple sequentially rejective
    multiple test procedure".

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((120, 40)), np.repeat(["a", "b", "c", "d"], 30)
    >>> y = X[:, :4] @ [1.0, -1.0, 1.0, 1.0] + rng.standard_normal(120)
    >>> found = ts.compare(ts.MultiTaskLassoCV(n_alphas=20, eps=0.05, cv=3), X, y, task=task, cv=3)
    >>> found.differences["own"].overall < 0  # the same features matter in all tasks: sharing helps
    True
    >>> found.to_frame()["task"].tolist()
    ['a', 'b', 'c', 'd', 'all tasks']
    """
    options = {"cv": cv, "level": level, "random_state": random_state, "groups": groups}
    holed = X if isinstance(X, HoledRows) else None
    plan = plan_comparison(model, X, y, task, sample_weight=sample_weight, **options)
    verbose = plan.shared.verbose
    plan.shared.set_params(verbose=0, **({"n_jobs": 1} if effective_n_jobs(n_jobs) > 1 else {}))
    data = plan.data
    X = placed(X if holed is None else holed.filled(), plan.shared)  # once, for all fits
    contenders = Contenders(plan.shared, X, y, task, data, pooled and not isinstance(data.classes, list), plan.shares)
    report = reporter("compare", "fit", verbose)
    pieces = [(f, name) for f in range(cv) for name in contenders.names]
    left = TimeLeft([name for _, name in pieces], effective_n_jobs(n_jobs))
    known_by = plan.known_by() if keeping() else None
    filling = [] if holed is None else ["means of the fold"]
    results = list[dict[str, Array]]()

    def report_fit(f: int, name: str, more: str = "") -> None:
        if report is not None:
            report(len(results), len(pieces), f"fold {f + 1} of {cv}, {name}{more}", left.estimate())

    def work(f: int, name: str) -> dict[str, Array]:
        held = plan.outer == f
        weights, inner = np.where(held, 0.0, data.weights), plan.nest.assign(~held, plan.n_inner, 1, f)
        spent: float | None = None

        def report_task(count: int) -> None:
            left.go_on(name, count / data.n_tasks, time.monotonic() - began)
            report_fit(f, name, f", task {count} of {data.n_tasks}")

        def compute() -> dict[str, Array]:
            nonlocal spent
            own = contenders
            if holed is not None:  # means of the rows that are learned from
                learned = data.unflatten(weights > 0.0)
                filled = holed.filled(learned.any(axis=1) if data.shared else learned)
                own = contenders.on(placed(filled, plan.shared))
            with unwatched(), unkept():
                found = own.fit(name, weights, inner, report_task)
            spent = time.monotonic() - began
            return found if contenders.survival else {name: own[held] for name, own in found.items()}

        began = time.monotonic()
        arrays = kept(f"compare-{f + 1}-{name}", [known_by, contenders.names, weights, inner, *filling], compute)
        left.finish(name, spent)
        return arrays

    with closing(_each(work, pieces, n_jobs)) as found:
        try:
            for judged in found:
                results.append(judged)
                report_fit(*pieces[len(results) - 1])
        except KeyboardInterrupt:
            if len(results) < 2 * len(contenders.names):
                raise
    return _conclude(plan, contenders, results)


@dataclass(frozen=True)
class Plan:
    """What is compared, by which folds."""

    shared: Any
    data: TaskData  # the rows as they are distinguished and scored
    nest: NestedFolds
    outer: Array  # the outer fold of each sample
    n_folds: int
    n_inner: int
    level: float
    seed: int
    unit: str  # what is held out, rows or groups
    shares: Any = None  # of `Pretraining`, where it takes part

    @property
    def fold_words(self) -> str:
        """How the folds were made."""
        what = "rows" if self.unit == "rows" else "whole groups"
        return f"{self.n_folds} folds of {what} within tasks, {self.n_inner} inside each, seed {self.seed}"

    def known_by(self) -> str:
        """What all fits depend on, where those that are finished are kept."""
        threads = thread_count()
        return str(joblib.hash([*facts_of(self.shared, self.data, sketch(self.data, threads)), threads]))


def plan_comparison(
    model: Any,
    X: Any,
    y: Any,
    task: Any = None,
    *,
    cv: int,
    level: float,
    random_state: Any,
    sample_weight: Any = None,
    groups: Any = None,
) -> Plan:
    """What `compare` does with the same arguments, which it refuses here, before anything is fitted."""
    refuse_patterns(X, "compare")
    X = X.filled() if isinstance(X, HoledRows) else X
    check_number(cv, "cv", low=3, closed=True, integer=True)
    check_level(level)
    shares = None
    if isinstance(model, Pretraining):
        model._check_parameters()
        model, shares = model.estimator, model.shares
    shared = cv_sibling(model, "compare")
    if column_of_tasks(shared) is not None:
        shared.set_params(task=None)  # X comes without that column, and models of single tasks have none
    n_inner = inner_folds(shared, "compare")
    shared._check_parameters()
    if shared._targets == "mixed":
        raise value_error(
            "compare has one measure for all tasks, and unlike outcomes have none in common: fit the model to all "
            "tasks and to each alone, and compare the D² of {quality}.",
            quality=either("their cv_quality_", "held-out rows"),
        )
    if getattr(shared, "hasher", None) is not None:
        X = np.asarray(read_strings(X))  # letters, as numbers
    targets: Any = "many classes" if shared._targets == "classes" else shared._targets
    data = read_tasks(X, y, task, sample_weight, targets=targets)
    if data.n_tasks < 2:
        raise ValueError(
            "compare is about several tasks, and there is one: pass task, a list of matrices, or 2-D y."
        )
    seed = read_seed(random_state)
    nest = NestedFolds(data, groups, seed)
    outer = nest.assign(np.ones(len(data.y), dtype=bool), cv, 0)
    plan = Plan(shared, data, nest, outer, cv, n_inner, level, seed, "rows" if groups is None else "groups", shares)
    _refuse_small(plan)
    if data.y.dtype.names is not None:
        _refuse_few_events(plan)
    return plan


def _each(work: Any, pieces: list[tuple[int, str]], n_jobs: int | None) -> Generator[dict[str, Array], None, None]:
    """Results in the order of the pieces, as they come; pieces not begun are cancelled when the caller stops."""
    jobs = effective_n_jobs(n_jobs)
    if jobs == 1:
        yield from (work(*piece) for piece in pieces)
        return
    run = carried(work)
    pool = ThreadPoolExecutor(jobs)
    try:
        futures = [pool.submit(run, *piece) for piece in pieces]
        for future in futures:
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _refuse_small(plan: Plan) -> None:
    """Every task must be judged, and leave enough in every fold for a model of its own."""
    data, codes, names, found = plan.data, plan.data.class_codes, plan.data.tasks.tolist(), []
    for t, part in enumerate(data.per_task()):
        own = part.start + np.flatnonzero(data.weights[part] > 0.0)
        units, fold = plan.nest.unit[own], plan.outer[own]
        left = min(len(np.unique(units[fold != f])) for f in range(plan.n_folds))
        count = len(np.unique(units))
        if left < LEAST_UNITS or count < plan.n_folds or np.all(fold < 0):
            found.append((names[t], count))
            continue
        if codes is None:
            continue
        classes = np.unique(codes[own])
        if len(classes) < 2:
            raise ValueError(
                f"Task {names[t]!r} has rows of one class only: no model of its own could be learned. Leave it out."
            )
        for f in range(plan.n_folds):
            lost = np.setdiff1d(classes, codes[own[fold != f]])
            if len(lost):
                raise value_error(
                    "{groups}: all rows of class {name!r} of task {task!r} are in one fold, and could not be "
                    "learned without it. Use fewer folds, or leave the task out.",
                    name=data.classes_of(t).tolist()[lost[0]],
                    task=names[t],
                )
    if found:
        name, count = found[0]
        more = f" (and so have {len(found) - 1} more: {some_of([task for task, _ in found[1:]])})" if found[1:] else ""
        raise ValueError(
            f"Task {name!r} has {count} {plan.unit} that count{more}: too few for {plan.n_folds} outer folds, each of "
            f"which is to hold out one at least and to leave at least {LEAST_UNITS} to learn from and to choose by. "
            "Use fewer folds, or leave such tasks out."
        )


def _refuse_few_events(plan: Plan) -> None:
    """Every fold must leave events of every task for a model of its own, and for the folds that choose it."""
    data = plan.data
    for t, part in enumerate(data.per_task()):
        own = part.start + np.flatnonzero((data.weights[part] > 0.0) & data.y["event"][part])
        if min(np.count_nonzero(plan.outer[own] != f) for f in range(plan.n_folds)) < LEAST_UNITS:
            raise ValueError(
                f"Task {data.tasks.tolist()[t]!r} has {len(own)} event(s): too few for {plan.n_folds} outer folds, "
                f"each of which is to leave at least {LEAST_UNITS} to learn from and to choose by. Use fewer folds, or "
                "leave the task out."
            )


def _conclude_survival(plan: Plan, contenders: Contenders, results: list[dict[str, Array]]) -> Comparison:
    """The same of survival: the deviance of a fold is that of all rows less that of the rows learned from."""
    data, names = plan.data, contenders.names
    done, words = range(len(results) // len(names)), plan.fold_words
    held = [plan.outer == f for f in done]
    folds = Folds([(data.weights * ~own, data.weights * own) for own in held], words)
    rows = {name: SurvivalOutOfFold(data, plan.shared._loss) for name in names}
    for f in done:
        null = results[f * len(names) + names.index(SHARED)]["null_scores"]
        for name in names:
            both = np.column_stack([results[f * len(names) + names.index(name)]["scores"], null])
            if data.known is not None:
                both += data.known[:, None]
            parts = {t: (np.arange(part.start, part.stop), both[part]) for t, part in enumerate(data.per_task())}
            rows[name].add_fold(parts, *folds.weights[f])
    about: dict[str, Any] = {"units": plan.nest.unit, "weights": data.weights}
    groups = None if plan.unit == "rows" else plan.nest.unit
    quality = {
        name: own.quality(
            folds, groups=groups, loss=contenders.loss, rooted=False, null_covariates=contenders.n_covariates, **about
        )
        for name, own in rows.items()
    }
    chosen, cells = rows[SHARED].cells(folds, **about)
    freedom = np.maximum(np.append(cells.n_units, quality[SHARED].n_all_units) - 1.0, 1.0)
    differences = {}
    for name in names[1:]:
        part = rows[SHARED].beyond(rows[name], chosen)
        differences[name] = Differences.of(part.values, *cells.errors(part.changes), freedom)
    about_folds = plan.level, words, len(done), plan.n_folds
    return Comparison(
        data.tasks, names, quality, differences, contenders.loss, contenders.measure.name, *about_folds
    )


def _conclude(plan: Plan, contenders: Contenders, results: list[dict[str, Array]]) -> Comparison:
    if contenders.survival:
        return _conclude_survival(plan, contenders, results)
    data, nest, names, codes = plan.data, plan.nest, contenders.names, plan.data.class_codes
    done = range(len(results) // len(names))
    present = data.weights > 0.0
    factor = widening([(plan.outer == f) & present for f in done], [(plan.outer != f) & present for f in done])
    folds = plan.fold_words

    def held_out(name: str, prefix: str = "") -> HeldOutRows:
        rows = HeldOutRows(len(data.y), contenders.measure, codes)
        for f in done:
            found = results[f * len(names) + names.index(name)]
            rows.add(np.flatnonzero(plan.outer == f), found[f"{prefix}loss"], found[f"{prefix}judged"])
        return rows

    rows, null = {name: held_out(name) for name in names}, held_out(SHARED, "null_")
    quality = {
        name: assess(
            data,
            rows[name],
            weights=data.weights,
            loss=contenders.loss,
            units=nest.unit,
            factor=factor,
            unit=plan.unit,
            folds=folds,
            null=null,
            null_covariates=contenders.n_covariates,
        )
        for name in names
    }
    chosen = np.flatnonzero(present & (plan.outer >= 0) & (plan.outer < len(done)))
    cells = Cells(data.task_of_sample[chosen], data.weights[chosen], nest.unit[chosen], data.n_tasks, factor)
    freedom = np.maximum(np.append(cells.n_units, quality[SHARED].n_all_units) - 1.0, 1.0)
    losses = {name: own.means(chosen)[0] for name, own in rows.items()}
    differences = {}
    for name in names[1:]:
        part = cells.mean(losses[SHARED] - losses[name])
        differences[name] = Differences.of(part.values, *cells.errors(part.changes), freedom)
    return Comparison(
        data.tasks,
        names,
        quality,
        differences,
        contenders.loss,
        contenders.measure.name,
        plan.level,
        folds,
        len(done),
        plan.n_folds,
        data.classes is not None,
    )
