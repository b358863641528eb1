"""The rows of a site: a table as the plan wants it, and which of its rows each problem learns from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..fitted.folds import FoldRules, ShuffledFolds, make_folds
from ..linear import MultiTaskClassifier, MultiTaskCox, MultiTaskOrdinal, MultiTaskRegressor
from ..tables import SurvivalColumns, TableError, prepare, read_table
from ..tasks import TaskData
from .errors import FederatedError
from .local import LocalProblem
from .plan import Plan

#: what can be said of a site's table: how its file is read, and the columns of its rows
READING = ("format", "separator", "encoding", "decimal", "sheet")
COLUMNS = ("target", "time", "event", "entry", "strata", "task", "weights", "offset")
SETTINGS = ("table", *COLUMNS, "categories", "missing", *READING)


def make_estimator(plan: Plan, alpha: float = 1.0, categories: Any = None, column_scale: Any = None) -> Any:
    """The estimator whose objective is that of the plan. With pooled standardisation, `column_scale`, its penalty is (a
    ridge beside it is not: estimators do not weight that)."""
    # by their names, which files of a model can hold
    penalty = f"sparse_group:l1={plan.l1_ratio!r},group=1.0" if plan.l1_ratio else "l21"
    weights = plan.weights if plan.covariates or plan.feature_weights else None
    if column_scale is not None:  # alpha u_j ||scale_j w_j||
        weights = plan.weights * column_scale
    common: dict[str, Any] = {
        "alpha": alpha, "penalty": penalty, "ridge": plan.ridge, "standardize": plan.standardize == "task",
        "feature_weights": weights, "tol": plan.tol,
    }  # fmt: skip
    if plan.loss == "cox":
        return MultiTaskCox(**common, **plan.loss_options)
    if plan.loss == "ordinal":
        return MultiTaskOrdinal(**common, categories=categories)
    options = ",".join(f"{name}={value}" for name, value in plan.loss_options.items())
    kind = MultiTaskClassifier if plan.make_loss().of_classes() else MultiTaskRegressor
    return kind(f"{plan.loss}:{options}" if options else plan.loss, fit_intercept=plan.fit_intercept, **common)


@dataclass(frozen=True)
class SiteRows:
    """Rows of a site, read for a plan.

    - `X`, `y`, `task`, `sample_weight`, `offset`: Arguments of `fit`.
    - `notes`: What was left out.
    """

    plan: Plan
    X: Any
    y: Any
    task: np.ndarray
    sample_weight: Any = None
    offset: Any = None
    categories: Any = None
    notes: tuple[str, ...] = ()

    def data(self) -> TaskData:
        """As the estimator of the plan reads them."""
        model = make_estimator(self.plan, categories=self.categories)
        data: TaskData = model._read_with(self.X, self.y, self.task, self.sample_weight, self.offset)
        if data.class_counts is not None:
            raise FederatedError("classes", f"the loss {self.plan.loss} is of two classes, and here are more")
        return data

    def problems(self, data: TaskData) -> dict[str, np.ndarray]:
        """Weights of the rows that each problem of the plan learns from, as samples lie in `data`."""
        plan, found = self.plan, {"all": data.weights}
        if plan.cv:
            rules = FoldRules(random_state=plan.random_state)
            folds = make_folds(ShuffledFolds(plan.cv), self.y, data, None, rules)
            found |= {f"fold {k}": train for k, (train, _) in enumerate(folds.weights)}
        for pair in range(plan.n_pairs):  # two folds are two halves, within tasks and classes
            seed = int(np.random.SeedSequence([plan.random_state, pair]).generate_state(1)[0])
            halves = make_folds(ShuffledFolds(2), self.y, data, None, FoldRules(random_state=seed))
            found |= {f"half {2 * pair + k}": train for k, (train, _) in enumerate(halves.weights)}
        return found

    def local(self) -> LocalProblem:
        """What answers questions."""
        data, plan = self.data(), self.plan
        return LocalProblem(
            data,
            make_estimator(plan, categories=self.categories)._loss_of(data),
            fit_intercept=plan.fit_intercept or plan.loss in ("cox", "ordinal"),
            standardize=plan.standardize,
            unpenalised=np.flatnonzero(plan.weights == 0.0),
            problems=self.problems(data),
            mixed=plan.mixed,
        )


def rows_of_tasks(data: TaskData, problems: Mapping[str, np.ndarray]) -> dict[str, list[int]]:
    """Problem -> rows of each task that it learns from: what the rules of a site are about."""
    return {
        name: [int(np.count_nonzero(weights[part] > 0.0)) for part in data.per_task()]
        for name, weights in problems.items()
    }


def read_rows(plan: Plan, name: str, settings: Mapping[str, Any], folder: Path) -> SiteRows:
    """Read the table of a site: the columns of the plan, in its order.

    - `name`: Of the site; its task is called so where there is no column of tasks.
    - `settings`: The table [data] of a site.toml.
    - `folder`: That the path of the table starts from.
    """
    own = {key: settings[key] for key in READING if key in settings}
    table = read_table(folder / settings["table"], **own)
    columns = {key: settings[key] for key in ("task", "weights", "offset") if key in settings}
    survival, target = None, settings.get("target")
    if plan.loss == "cox":
        if "time" not in settings or "event" not in settings:
            raise FederatedError("data", "the plan has the loss cox here: this site must name columns time and event")
        event, _, value = settings["event"].partition("==")
        beside = settings.get("entry"), settings.get("strata"), value or None
        survival, target = {"outcome": SurvivalColumns(settings["time"], event, *beside)}, "outcome"
    elif target is None:
        raise FederatedError("data", f"the plan has the loss {plan.loss} here: this site must name its target column")
    classes = plan.make_loss().of_classes()
    absent = [column for column in plan.columns if column not in table.columns]
    if absent:
        few = ", ".join(map(repr, absent[:5])) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
        raise FederatedError("features", f"the table of this site has no column {few}")
    problem = prepare(
        table,
        target=[target],
        survival=survival,
        missing=settings.get("missing", "error"),
        classes=classes,
        features=plan.columns,
        keep=plan.columns,
        **columns,
    )
    order = {column: j for j, column in enumerate(problem.encoding.feature_names)}
    words = [column for column in plan.columns if column not in order]
    if words or len(order) > len(plan.columns):
        first = words[0] if words else next(column for column in order if column not in plan.columns)
        raise FederatedError(
            "features",
            f"column {first!r} is not one column of numbers here; all sites must have the same columns: words must be "
            "columns of 0 and 1 in the table",
        )
    places = np.array([order[column] for column in plan.columns])
    X = problem.X if np.array_equal(places, np.arange(len(places))) else problem.X[:, places]
    task = np.full(X.shape[0], name) if problem.task is None else problem.task
    n_tasks, agreed = len(np.unique(task)), plan.n_tasks.get(name, 1)
    if n_tasks != agreed:
        raise FederatedError("tasks", f"the plan says {agreed} tasks at this site, and its table has {n_tasks}")
    given = (X, problem.y, task, problem.sample_weight, problem.offset, settings.get("categories"))
    return SiteRows(plan, *given, notes=tuple(problem.notes))


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse a table [data] that says something unknown."""
    unknown = [key for key in settings if key not in SETTINGS]
    if unknown:
        raise TableError(f"[data] has no {unknown[0]!r}; it may have {', '.join(SETTINGS)}")
    if "table" not in settings:
        raise TableError("table in [data] is missing: the file with the rows of this site")
    if settings.get("missing", "error") not in ("error", "drop"):
        raise TableError("missing in [data] must be error or drop: what other sites fill in would not be the same")
