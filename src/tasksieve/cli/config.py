"""What is asked: options given, over those of ``--config``, over the defaults; checked before anything is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, get_args

from ..design import thread_count
from ..runs import MODELS, ModelKind, RunError, RunFolder
from ..runs.folder import CONFIG, read_json
from ..tables.ids import Ids
from .defaults import (
    CONFIG_FORMAT,
    DEFAULTS,
    PARAMETER_DEFAULTS,
    STRENGTH,
    add_default,
    add_folds,
    explicit,
    without_defaults,
)
from .exit_codes import UsageError
from .files import check_files, task_column
from .folders import refuse_other_options
from .folds import check_folds
from .members import check_members
from .options import BY_KEY, COMPARED, OPTIONS, flag, read_alpha, read_alphas, read_numbers, refuse
from .outcomes import meant_model, target_names
from .sources import source_kind
from .trust import check_trust, left_out, trust_defaults, without_findings

# Options that name a file, or a word for what would be in it.
NAMED_FILES = ("graph", "task_graph", "feature_groups")
# The smallest number that means anything.
LEAST = {
    "cv": 2, "threads": 1, "max_categories": 1, "pairs": 1, "permutations": 0, "outer_folds": 3, "per_half": 1,
}  # fmt: skip


def decide_config(
    command: str, asked: dict[str, Any], config_file: str | None, resumed: RunFolder | None
) -> dict[str, Any]:
    """Options given, over those of ``--config``, over the defaults; a resumed run must have been asked the same."""
    base: dict[str, Any] = {"by_default": []}
    if config_file is not None:
        base = read_config(Path(config_file))
        base = without_defaults(base, asked, command)
    old = None
    if resumed is not None:
        old = read_config(resumed / CONFIG)
        base = without_findings(old, asked)
    config = {**base, **asked, "command": command, "config_format": CONFIG_FORMAT}
    if (model := meant_model(asked)) is not None:
        add_default(config, "model", model)
    if "loss" in asked or "penalty" in asked:
        add_default(config, "model", "any")
    for key, value in DEFAULTS.items():
        add_default(config, key, value)
    config.setdefault("threads", thread_count())
    config.setdefault("ids", "names")
    if isinstance(config.get("table"), str):  # of a configuration that was written by hand
        config["table"] = os.path.abspath(config["table"])
    names = target_names(config, MODELS[config["model"]])
    if names is not None:
        add_default(config, "target", names)
    source_kind(config).decide(config)
    if "table" not in config:
        raise UsageError("name the table to read")
    if old is not None:
        given = [*asked, "command"]  # an older version may have written less than it meant
        free = {"table", *left_out(asked)}
        refuse_other_options({key: old.get(key) for key in given}, {key: config[key] for key in given}, free)
    return config


def read_config(file: Path) -> dict[str, Any]:
    """A configuration from a file, checked as if it had been typed."""
    config = read_json(file)
    kinds = {option.key: option.kind for option in OPTIONS if option.role != "run"}
    kinds |= {"table": str, "command": str, "config_format": int, "by_default": list[str], "ids": Ids}
    for key in COMPARED:  # a number where one version took one value only
        if key in config and _is_of(config[key], float):
            config[key] = repr(config[key])
    for key, value in config.items():
        if key not in kinds:
            raise RunError(f"{file}: unknown option {key!r}")
        good = _is_of(value, kinds[key]) or (key == "table" and _is_of(value, list[str]) and bool(value))
        if not good or (key == "by_default" and not set(value) <= set(config) & set(BY_KEY)):
            raise RunError(f"{file}: {key!r} cannot be {str(value)[:60]!r}")
    return explicit(config, MODELS[config.get("model", DEFAULTS["model"])], str(file))


def _is_of(value: Any, kind: Any) -> bool:
    if kind == list[str]:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    return isinstance(value, kind) if kind in (bool, str) else value in get_args(kind)


def check_config(config: dict[str, Any]) -> ModelKind:
    """Refuse options that the model does not have, and options that do not go together."""
    kind, command, given = MODELS[config["model"]], config["command"], [key for key in config if key in BY_KEY]
    model, known = f"--model {kind.name}", kind.parameters()
    if not config.get("target"):
        raise UsageError("--target: name the column to predict")
    check_members(config, "penalty")
    if command != "fit" and not kind.has_path:
        raise UsageError(f"{model} has no path; use fit with --{kind.strength}")
    check_files(config)
    if not kind.tasks and task_column(config):
        raise UsageError(f"--task: {model} has no tasks; its rows of coefficients are the classes")
    if not kind.tasks and len(config["target"]) > 1:
        raise UsageError(f"--target: {model} takes one target")
    refuse((key for key in given if command not in BY_KEY[key].commands), f"is not for tasksieve {command}")
    add_folds(config, kind)
    for key, value in trust_defaults(config).items():
        add_default(config, key, value)
    if not kind.has_path:
        refuse((key for key in STRENGTH if key in config), f"{model} has no path; give --{kind.strength}")
    for key in STRENGTH:
        if key in config and "alpha" in config:
            raise UsageError(f"--alpha gives one value; {flag(key)} is for choosing among several")
    refuse((key for key in NAMED_FILES if key in config and key not in known), f"{model} has no such option")
    if "feature_groups" in known and "feature_groups" not in config:
        raise UsageError("--feature-groups: name a file with the columns feature and group, or 'column'")
    if "offset" in config and kind.strength != "alpha":
        raise UsageError(f"--offset: {model} knows none")
    for key, least in LEAST.items():
        if config.get(key, least) < least:
            raise UsageError(f"{flag(key)}: at least {least}, got {config[key]}")
    for key, value in PARAMETER_DEFAULTS.items():
        if BY_KEY[key].name in known:
            add_default(config, key, value)
    params = [option for option in OPTIONS if option.role == "param"]
    flags = ", ".join(sorted(option.long for option in params if option.name in known))
    unknown = (option.key for option in params if option.key in config and option.name not in known)
    refuse(unknown, f"{model} has no such option; it has {flags}")
    check_folds(config)
    check_trust(config, kind)
    read_alphas(config.get("alphas"))
    estimator_parameters(config)
    return kind


def estimator_parameters(config: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator as the configuration has them."""
    params: dict[str, Any] = {}
    for key, value in config.items():
        if key not in BY_KEY or BY_KEY[key].role != "param":
            continue
        if key in COMPARED:
            numbers = read_numbers(value, flag(key))
            if len(numbers) > 1 and "cv" not in config:
                if not MODELS[config["model"]].has_path:
                    raise UsageError(f"{flag(key)}: one number with --model {config['model']}, a run for each value")
                raise UsageError(f"{flag(key)}: several values are for --cv to choose from")
            value = numbers if len(numbers) > 1 else numbers[0]
        elif key == "alpha":
            value = read_alpha(value, config["model"])
        elif key == "screening" and value == "none":
            value = None
        params[BY_KEY[key].name] = value
    return params


def read_grid(config: dict[str, Any]) -> dict[str, Any]:
    """Values of alpha as `path` and the cross-validation take them."""
    n_alphas, alphas = read_alphas(config.get("alphas"))
    grid: dict[str, Any] = {"alphas": alphas} if alphas else {"n_alphas": n_alphas} if n_alphas else {}
    if "eps" in config:
        grid["eps"] = config["eps"]
    return grid
