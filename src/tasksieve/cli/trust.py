"""``--stability``, ``--permutations``, ``--intervals``, ``--compare``: what is asked about findings."""

from __future__ import annotations

from typing import Any

from ..runs.registry import ModelKind
from .exit_codes import UsageError
from .options import refuse

STABILITY_OPTIONS = ("pairs", "pfer", "threshold", "per_half", "assumption", "small_tasks", "permutations")
INTERVAL_OPTIONS = ("level", "small_tasks", "interval_method", "interval_features")
COMPARE_OPTIONS = ("outer_folds", "level")
# asked of a fit -> what goes with it
BESIDE = {"stability": STABILITY_OPTIONS, "intervals": INTERVAL_OPTIONS, "compare": COMPARE_OPTIONS}
STABILITY_DEFAULTS: dict[str, Any] = {
    "pairs": 50,
    "assumption": "unimodal",
    "small_tasks": "error",
    "permutations": 1000,
    "seed": 0,
}
INTERVAL_DEFAULTS: dict[str, Any] = {
    "level": 0.9,
    "small_tasks": "error",
    "seed": 0,
    "interval_method": "split",
}
COMPARE_DEFAULTS: dict[str, Any] = {"outer_folds": 5, "level": 0.9, "seed": 0}
DEFAULTS = {"stability": STABILITY_DEFAULTS, "intervals": INTERVAL_DEFAULTS, "compare": COMPARE_DEFAULTS}
TRUST_DEFAULTS = {**STABILITY_DEFAULTS, **INTERVAL_DEFAULTS, **COMPARE_DEFAULTS}


def findings_asked(config: dict[str, Any]) -> list[str]:
    """What is asked about findings, by a command of its own or beside a fit."""
    return [name for name in BESIDE if config.get("command") == name or config.get(name)]


def asks_stability(config: dict[str, Any]) -> bool:
    return "stability" in findings_asked(config)


def asks_intervals(config: dict[str, Any]) -> bool:
    return "intervals" in findings_asked(config)


def asks_comparison(config: dict[str, Any]) -> bool:
    return "compare" in findings_asked(config)


def trust_defaults(config: dict[str, Any]) -> dict[str, Any]:
    """What is to be written down of what was not asked."""
    return {key: value for name in findings_asked(config) for key, value in DEFAULTS[name].items()}


def left_out(asked: dict[str, Any]) -> list[str]:
    """Findings that a command leaves out: by saying so, or as one that names its table and not them."""
    return [key for key in BESIDE if not asked.get(key, "table" not in asked)]


def without_findings(config: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """The configuration of a run that is resumed, less what is no longer asked for beside the fit."""
    left = [name for name in left_out(asked) if config.get(name)]
    kept = [name for name in BESIDE if config.get(name) and name not in left]
    gone = {key for name in left for key in (name, *BESIDE[name])} - {key for name in kept for key in BESIDE[name]}
    if left and not kept and "cv" not in config and "seed" in config.get("by_default", ()):
        gone.add("seed")  # of the halves alone
    by_default = [key for key in config.get("by_default", ()) if key not in gone]
    return {**{key: value for key, value in config.items() if key not in gone}, "by_default": by_default}


def check_trust(config: dict[str, Any], kind: ModelKind) -> None:
    """Refuse options about findings that nothing was asked about, and numbers that mean nothing."""
    asked = findings_asked(config)
    known = {key for name in asked for key in BESIDE[name]}
    for key in dict.fromkeys(key for keys in BESIDE.values() for key in keys):
        if key in config and key not in known:
            refuse([key], f"is for {' and '.join(f'--{name}' for name in BESIDE if key in BESIDE[name])}")
    for name in asked:
        if not kind.has_path:
            raise UsageError(f"--{name}: --model {kind.name} has no path of strengths")
        if config.get("offset") is not None and name != "intervals":
            raise UsageError(f"--{name}: is not for models with --offset")
    if "interval_features" in config and config.get("interval_method") != "debiased":
        refuse(["interval_features"], "is for --interval-method debiased")
    if not 0.5 < config.get("threshold", 0.75) <= 1.0:
        raise UsageError(f"--threshold: above 0.5, at most 1; got {config['threshold']:g}")
    if not config.get("pfer", 1.0) > 0.0:
        raise UsageError(f"--pfer: must be positive, got {config['pfer']:g}")
    if not 0.0 < config.get("level", 0.9) < 1.0:
        raise UsageError(f"--level: between 0 and 1, got {config['level']:g}")
    if config.get("compare") and "cv" not in config:
        raise UsageError("--compare: is for --cv, the cross-validation that chooses alpha")
