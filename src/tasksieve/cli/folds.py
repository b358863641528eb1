"""``--cv``, ``--seed``, ``--no-shuffle``, ``--row-groups``, ``--full-path``, ``--fold-tol``, ``--keep-folds``."""

from __future__ import annotations

from typing import Any

from ..fitted.folds import ConsecutiveFolds, ShuffledFolds
from .exit_codes import UsageError
from .options import flag, refuse
from .trust import findings_asked

FOLD_OPTIONS = ("seed", "shuffle", "row_groups", "early_stopping", "fold_tol", "keep_folds")
KEPT: dict[str, Any] = {"tuned": True, "nested": "nested"}


def replaced_folds(asked: dict[str, Any]) -> set[str]:
    """Options of ``--config`` that those given here replace."""
    if "alpha" in asked and "cv" not in asked:  # one strength, nothing to choose
        return {"cv", *FOLD_OPTIONS} - asked.keys()
    if asked.get("shuffle") is False:
        return {"seed", "row_groups"} - asked.keys()
    if "seed" in asked or "row_groups" in asked:
        return {"shuffle"} - asked.keys()
    return set()


def check_folds(config: dict[str, Any]) -> None:
    """Refuse options of folds that do not go together."""
    if not 0 <= config.get("seed", 0) < 2**32:
        raise UsageError(f"--seed: a whole number from 0 to 2**32 - 1, got {config['seed']}")
    halves = bool(findings_asked(config))
    if "cv" not in config:
        unused = (key for key in FOLD_OPTIONS if key in config and not (halves and key in ("seed", "row_groups")))
        refuse(unused, "is for --cv, the cross-validation that chooses alpha")
    elif not config.get("shuffle", True):
        for key in ("seed", "row_groups"):
            if key in config and not (halves and key == "seed"):
                raise UsageError(f"{flag(key)} and --no-shuffle: one or the other")


def fold_parameters(config: dict[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator that make the folds of a configuration, and say how they are used."""
    used: tuple[str, ...] = ("selection_rule", "early_stopping", "fold_tol")
    found = {key: config[key] for key in used if key in config}
    if "keep_folds" in config:
        found["keep_folds"] = KEPT[config["keep_folds"]]
    if config["command"] == "compare":  # which makes the folds itself
        return {**found, "cv": config["cv"], "random_state": config["seed"]}
    if config["shuffle"]:
        return {**found, "cv": ShuffledFolds(config["cv"]), "random_state": config["seed"]}
    return {**found, "cv": ConsecutiveFolds(config["cv"])}
