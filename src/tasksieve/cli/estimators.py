"""The estimator that a configuration asks for."""

from __future__ import annotations

from inspect import signature
from typing import Any

from ..fitted.arguments import check_parameters
from ..runs import ModelKind
from .config import estimator_parameters, read_grid
from .exit_codes import UsageError
from .feature_groups import read_feature_groups
from .folds import fold_parameters
from .graph_file import read_graph_file, read_task_graph
from .outcome_kinds import outcome_parameters
from .source import Source


def make_estimator(config: dict[str, Any], kind: ModelKind, source: Source) -> Any:
    """The estimator that was asked for; an error, before any folder is touched, where it cannot be."""
    params, cv, problem = estimator_parameters(config), bool(config.get("cv")), source.problem
    if config.get("graph") is not None:
        params.update(read_graph_file(config["graph"], problem.tasks))
    if config.get("task_graph") is not None:
        params["task_graph"] = read_task_graph(config["task_graph"], problem.tasks)
    if config.get("feature_groups") is not None:
        params["feature_groups"] = read_feature_groups(config["feature_groups"], problem.encoding)
    params.update(source.parameters())
    params.update(outcome_parameters(config, kind, problem))
    if cv:
        known = kind.parameters(cv=True)
        params.update(read_grid(config))
        for key in params:
            if key not in known:
                raise UsageError(
                    f"--{key.replace('_', '-')}: --model {kind.name} has no such option with --cv"
                )
        params.update(fold_parameters(config))
        if "keep_folds" in params and "keep_folds" not in signature(kind.estimator(problem.classes, True)).parameters:
            raise UsageError(f"--keep-folds: --model {kind.name} has no prediction intervals")
    estimator = kind.estimator(problem.classes, cv)(**params)
    check_parameters(estimator)
    return estimator
