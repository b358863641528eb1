"""``--stability``, ``--permutations``, ``--compare`` and what goes with them: what is asked about findings."""

from __future__ import annotations

from typing import Any

from ..runs.registry import ModelKind
from .exit_codes import UsageError
from .options import refuse

STABILITY_OPTIONS = ("pairs", "pfer", "threshold", "per_half", "assumption", "small_tasks", "permutations")
COMPARE_OPTIONS = ("outer_folds", "level")
BESIDE = {"stability": STABILITY_OPTIONS, "compare": COMPARE_OPTIONS}  # asked of a fit -> what goes with it
STABILITY_DEFAULTS: dict[str, Any] = {
    "pairs": 50,
    "assumption": "unimodal",
    "small_tasks": "error",
    "permutations": 1000,
    "seed": 0,
}
COMPARE_DEFAULTS: dict[str, Any] = {"outer_folds": 5, "level": 0.9, "seed": 0}
TRUST_DEFAULTS = {**STABILITY_DEFAULTS, **COMPARE_DEFAULTS}


def asks_stability(config: dict[str, Any]) -> bool:
    return config.get("command") == "stability" or bool(config.get("stability"))


def asks_comparison(config: dict[str, Any]) -> bool:
    return config.get("command") == "compare" or bool(config.get("compare"))


def trust_defaults(config: dict[str, Any]) -> dict[str, Any]:
    """What is to be written down of what was not asked."""
    found = dict(STABILITY_DEFAULTS) if asks_stability(config) else {}
    return {**found, **(COMPARE_DEFAULTS if asks_comparison(config) else {})}


def left_out(asked: dict[str, Any]) -> list[str]:
    """Findings that a command leaves out: by saying so, or as one that names its table and not them."""
    return [key for key in BESIDE if not asked.get(key, "table" not in asked)]


def without_findings(config: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """The configuration of a run that is resumed, less what is no longer asked for beside the fit."""
    gone = {key: None for name in left_out(asked) if config.get(name) for key in (name, *BESIDE[name])}
    by_default = [key for key in config.get("by_default", ()) if key not in gone]
    return {**{key: value for key, value in config.items() if key not in gone}, "by_default": by_default}


def check_trust(config: dict[str, Any], kind: ModelKind) -> None:
    """Refuse options about findings that nothing was asked about, and numbers that mean nothing."""
    for asked, keys, flag in (
        (asks_stability(config), STABILITY_OPTIONS, "--stability"),
        (asks_comparison(config), COMPARE_OPTIONS, "--compare"),
    ):
        if not asked:
            refuse((key for key in keys if key in config), f"is for {flag}")
            continue
        if not kind.has_path:
            raise UsageError(f"{flag}: --model {kind.name} has no path of strengths")
        if config.get("offset") is not None:
            raise UsageError(f"{flag}: is not for models with --offset")
    if not 0.5 < config.get("threshold", 0.75) <= 1.0:
        raise UsageError(f"--threshold: above 0.5, at most 1; got {config['threshold']:g}")
    if not config.get("pfer", 1.0) > 0.0:
        raise UsageError(f"--pfer: must be positive, got {config['pfer']:g}")
    if not 0.0 < config.get("level", 0.9) < 1.0:
        raise UsageError(f"--level: between 0 and 1, got {config['level']:g}")
    if config.get("compare") and "cv" not in config:
        raise UsageError("--compare: is for --cv, the cross-validation that chooses alpha")
