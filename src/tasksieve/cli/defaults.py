"""Defaults of options that were not given, written down with every run so that it is resumed as it was begun.

The defaults of the estimators are read from the estimators; here are those of the command line, and what the
configurations of older versions mean by saying nothing.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from ..runs import ModelKind, RunError
from ..tables.categories import NO_REFERENCE
from .folds import FOLD_OPTIONS, replaced_folds
from .options import BY_KEY, CHOOSING, COMPARED, read_alphas
from .sources import source_kind
from .table_source import TableSource
from .trust import TRUST_DEFAULTS

#: of ``config.json``: 1 is that of version 0.1, which did not write it, 2 that of version 0.2
CONFIG_FORMAT = 3
DEFAULTS: dict[str, Any] = {
    "model": "lasso",
    "missing": "error",
    "max_categories": 100,
    "keep": [],
    "date_parts": False,
    "reference": [],
}
# Of all models that have the parameter; the library's own default differs.
PARAMETER_DEFAULTS: dict[str, Any] = {"standardize": True}
# Of a strength that cross-validation chooses; the seed is that of shuffled folds.
FOLD_DEFAULTS: dict[str, Any] = {"cv": 5, "shuffle": True, "seed": 0, "early_stopping": True}
# Version 0.1 fitted columns in their units, learned from whatever looked like an id, held out consecutive rows, and
# solved all values in all folds. Version 0.2, too, made an indicator of every category.
UNSAID_2: dict[str, Any] = {"reference": [NO_REFERENCE]}
UNSAID: dict[int, dict[str, Any]] = {
    1: {"standardize": False, "keep": ["*"], "shuffle": False, "early_stopping": False, **UNSAID_2},
    2: UNSAID_2,
}
# What follows from the choice of a model or of a strength: asked anew where that choice is another.
STRENGTH = ("cv", "alphas", "eps", "selection_rule")
# What follows from the table, or from other options: decided anew for every run.
ANEW = ("chunk_rows", "target", "row_groups")


def explicit(config: dict[str, Any], kind: ModelKind, source: str) -> dict[str, Any]:
    """A configuration from a file, in today's format: with what an older version did without saying so."""
    written = config.get("config_format", 1)  # version 0.2 judged ids by their values alone, and did not say so
    if written > CONFIG_FORMAT:
        raise RunError(f"{source}: config_format {written}; this version reads up to {CONFIG_FORMAT}")
    config = {"by_default": [], "ids": "values", **config, "config_format": CONFIG_FORMAT}
    for key, value in UNSAID.get(written, {}).items():
        if key not in config and _matters(key, config, kind):
            add_default(config, key, value)
    if written == 1 and cross_validates(config, kind):
        add_default(config, "fold_tol", config.get("tol", 1e-6))
    return config


def _matters(key: str, config: dict[str, Any], kind: ModelKind) -> bool:
    if BY_KEY[key].role == "param":
        return BY_KEY[key].name in kind.parameters()
    if key == "reference":
        return source_kind(config) is TableSource
    return key not in FOLD_OPTIONS or cross_validates(config, kind)


def without_defaults(config: dict[str, Any], asked: dict[str, Any], command: str) -> dict[str, Any]:
    """A configuration of another run, less the defaults that do not fit what is asked here, and what that replaces."""
    other_question = command != config.get("command", command) or any(
        key in asked and asked[key] != config.get(key) for key in ("model", "loss", "alpha", "cv")
    )
    stale = {
        key
        for key in config.get("by_default", ())
        if key in asked
        or key in ANEW
        or (other_question and (BY_KEY[key].role == "param" or key in (*STRENGTH, *FOLD_OPTIONS)))
    }
    stale |= replaced_folds(asked)
    stale |= {key for key in config if key in BY_KEY and command not in BY_KEY[key].commands}
    kept = {key: value for key, value in config.items() if key not in stale}
    return {**kept, "by_default": [key for key in config.get("by_default", ()) if key not in stale]}


def add_default(config: dict[str, Any], key: str, value: Any) -> None:
    """Write down a value that was not asked for."""
    if key not in config:
        config[key] = value
        config["by_default"] = sorted({*config.get("by_default", ()), key})


def cross_validates(config: dict[str, Any], kind: ModelKind) -> bool:
    """Whether the strength is not given, but to be chosen."""
    return config.get("command", "fit") in CHOOSING and kind.has_path and "alpha" not in config


def add_folds(config: dict[str, Any], kind: ModelKind) -> None:
    """Write down how a strength is chosen that was not given."""
    if cross_validates(config, kind):
        for key, value in FOLD_DEFAULTS.items():
            if config.get("command", "fit") not in BY_KEY[key].commands:
                continue
            if key == "seed" and not config.get("shuffle", True):
                continue
            if key == "early_stopping" and read_alphas(config.get("alphas"))[1] is not None:
                continue  # values that were asked for are all solved
            add_default(config, key, value)


def add_parameters(config: dict[str, Any], estimator: Any) -> None:
    """Write down the estimator's own defaults: another version may have others."""
    params = estimator.get_params(deep=False)
    for option in BY_KEY.values():
        value = params.get(option.name)
        if option.role != "param" or option.key == "alpha" or config["command"] not in option.commands:
            continue
        if option.key in COMPARED and value is not None:
            value = ",".join(map(repr, value)) if isinstance(value, list | tuple) else repr(value)
        if isinstance(value, bool | int | float | str):
            add_default(config, option.key, value)
    if config["command"] == "stability":  # each half has its own values
        return
    if config["command"] == "path":
        grid = {name: parameter.default for name, parameter in signature(estimator.path).parameters.items()}
    else:
        grid = params if config.get("cv") else {}
    if "n_alphas" in grid and read_alphas(config.get("alphas"))[1] is None:
        add_default(config, "alphas", str(grid["n_alphas"]))
        add_default(config, "eps", grid["eps"])
    if config.get("cv"):
        add_default(config, "selection_rule", params["selection_rule"])


def said_by_default(config: dict[str, Any], key: str) -> bool:
    """Whether an option says no more than today's default does."""
    today = {**DEFAULTS, **PARAMETER_DEFAULTS, **FOLD_DEFAULTS, **TRUST_DEFAULTS}
    return key in config.get("by_default", ()) and config[key] == today.get(key, config[key])
