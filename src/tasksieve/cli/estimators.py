"""The estimator that a configuration asks for."""

from __future__ import annotations

from typing import Any

from ..fitted.arguments import check_parameters
from ..runs import ModelKind
from .config import estimator_parameters, read_grid
from .data import Problem
from .exits import UsageError
from .feature_groups import read_feature_groups
from .folds import fold_parameters
from .genotypes import GenotypeProblem
from .graph_file import read_graph_file, read_task_graph


def make_estimator(config: dict[str, Any], kind: ModelKind, problem: Problem, classes: bool) -> Any:
    """The estimator that was asked for; an error, before any folder is touched, where it cannot be."""
    params, cv = estimator_parameters(config), bool(config.get("cv"))
    if config.get("graph") is not None:
        params.update(read_graph_file(config["graph"], problem.tasks))
    if config.get("task_graph") is not None:
        params["task_graph"] = read_task_graph(config["task_graph"], problem.tasks)
    if config.get("feature_groups") is not None:
        params["feature_groups"] = read_feature_groups(config["feature_groups"], problem.encoding)
    if isinstance(problem, GenotypeProblem) and problem.X.n_covariates:
        if "feature_weights" not in kind.parameters():
            raise UsageError(f"--covar: --model {kind.name} penalises all features; it has no covariates")
        params["feature_weights"] = problem.X.feature_weights
    if cv:
        known = kind.parameters(cv=True)
        params.update(read_grid(config))
        for key in params:
            if key not in known:
                raise UsageError(
                    f"--{key.replace('_', '-')}: --model {kind.name} has no such option with --cv"
                )
        params.update(fold_parameters(config))
    estimator = kind.estimator(classes, cv)(**params)
    check_parameters(estimator)
    return estimator
