"""The models of the command line: a name to type, and the estimators behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal

import tasksieve

from ..members import LOSSES

# Parameters that are no business of a fit from a table.
HIDDEN = ("warm_start", "verbose", "copy_X", "selection", "random_state", "n_jobs", "hasher", "graph_tasks")


@dataclass(frozen=True)
class ModelKind:
    """A model that can be asked for by name.

    - `name`: What is typed.
    - `estimators` (names of classes in `tasksieve`): The one whose targets are numbers and the one whose targets are
      classes, where they differ.
    - `about`: One line of help.
    - `targets`: What it predicts; "loss": as its parameter ``loss`` says; "column": as the target column suggests;
      "survival": times to an event; "mixed": as the kind of each outcome says.
    - `tasks`: Whether rows may belong to tasks.
    - `strength` ({"alpha", "C"}): Its main parameter. Models with ``alpha`` have paths and cross-validation.
    """

    name: str
    estimators: tuple[str, ...]
    about: str
    targets: Literal["values", "classes", "loss", "column", "survival", "mixed"] = "values"
    tasks: bool = True
    strength: Literal["alpha", "C"] = "alpha"

    @property
    def what(self) -> str:
        """What it is, for readers of a report: the line of help without its options."""
        return re.sub(r" \(--[^)]*\)", "", self.about)

    @property
    def has_path(self) -> bool:
        return self.strength == "alpha"

    def wants_classes(self, loss: str | None, words: bool) -> bool:
        """Whether targets are class labels, given the parameter ``loss`` and whether the target holds words."""
        if self.targets == "loss":
            return _of_classes(loss)
        if self.targets == "column":
            return words if loss is None else _of_classes(loss)
        return self.targets == "classes"

    def estimator(self, classes: bool, cv: bool = False) -> Any:
        """The class to construct."""
        return getattr(tasksieve, self.estimators[-1 if classes else 0] + ("CV" if cv else ""))

    def parameters(self, cv: bool = False) -> list[str]:
        """Names of the parameters that can be set, of all its estimators."""
        every = {False, len(self.estimators) > 1}
        names = (name for own in every for name in signature(self.estimator(own, cv).__init__).parameters)
        return [name for name in dict.fromkeys(names) if name not in ("self", *HIDDEN)]


def _of_classes(loss: str | None) -> bool:
    """Whether the targets of a loss are classes; a name that is not known is refused later, by the model."""
    return loss is not None and loss in LOSSES and LOSSES[loss].of_classes()


MODELS = {
    kind.name: kind
    for kind in (
        ModelKind("lasso", ("MultiTaskLasso",), "the same features for all tasks, squared loss"),
        ModelKind("elastic-net", ("MultiTaskElasticNet",), "the same with a ridge penalty"),
        ModelKind("logistic", ("MultiTaskLogisticRegression",), "two or more classes per task, logistic loss",
                  targets="classes"),
        ModelKind("huber", ("MultiTaskHuber",), "numbers with outliers: squared up to --delta, linear beyond"),
        ModelKind("quantile", ("MultiTaskQuantile",), "a quantile (--q) instead of the mean"),
        ModelKind("poisson", ("MultiTaskPoisson",), "counts and rates (--offset)"),
        ModelKind("cox", ("MultiTaskCox",), "times to an event (--time, --event): proportional hazards",
                  targets="survival"),
        ModelKind("ordinal", ("MultiTaskOrdinal",), "ordered classes (--categories): proportional odds",
                  targets="classes"),
        ModelKind("mixed", ("MultiTaskMixed",), "outcomes of unlike kinds, a loss for each task (--outcome)",
                  targets="mixed"),
        ModelKind("group-lasso", ("MultiTaskGroupLasso",), "whole groups of features (--feature-groups)"),
        ModelKind("any", ("MultiTaskRegressor", "MultiTaskClassifier"), "any --loss with any --penalty, --ridge, "
                  "--task-graph", targets="column"),
        ModelKind("calibrated", ("CalibratedMultiTaskLasso",), "tasks with different noise, square-root loss"),
        ModelKind("owl", ("MultiTaskOWL",), "correlated features selected together, squared loss"),
        ModelKind("multinomial-owl", ("MultinomialOWL",), "several classes, correlated features selected together",
                  targets="classes", tasks=False),
        ModelKind("sparse-group", ("MultiTaskSparseGroupLasso",), "features, and within them tasks; squared or "
                  "logistic loss", targets="loss"),
        ModelKind("graph-svm", ("GraphSVR", "GraphSVC"), "support vector machines for tasks on a graph; numbers or "
                  "classes", targets="column", strength="C"),
    )
}  # fmt: skip
