"""What models without a feature lack at least, in words: claims of need of the certificate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .content import ReportContent
from .words import few, quantity

_NAMED = 5  # of near copies


def need_data(content: ReportContent, features: np.ndarray) -> list[dict[str, Any] | None] | None:
    """Say of each of some features how much worse models without it are: delta, a few words, and a sentence."""
    if not content.needs:
        return None
    explained = explained_by(content)
    found: dict[int, dict[str, Any]] = {}
    # claims about the feature alone come before those about it and its copies
    for members, delta in sorted(content.needs, key=lambda claim: len(claim[0])):
        for j in members.tolist():
            others = [str(content.features[other]) for other in members if other != j]
            worth = f"+{at_least(delta)}" if explained is None else f"+{at_least(100.0 * delta / explained)} %"
            kind = f"one of {len(members)}" if others else "yes"
            which = f"without this one, {few(others, _NAMED)}" if others else "without it"
            share = "" if explained is None else f", {at_least(100.0 * delta / explained)} % of what the model explains"
            note = f"Every model {which} is worse: its objective is higher by at least {at_least(delta)}{share}"
            known = found.setdefault(j, {"delta": float(delta), "words": "", "note": ""})
            known["words"] += f"{', ' * bool(known['words'])}{kind} ({worth})"
            known["note"] += f"{'. ' * bool(known['note'])}{note}"
    return [found.get(int(j)) for j in features]


def explained_by(content: ReportContent) -> float | None:
    """What the model takes off the objective of the empty model."""
    objective, null = (content.certificate.get(name) for name in ("objective", "null_objective"))
    if objective is None or null is None or not null > objective:
        return None
    return float(null - objective)


def at_least(value: float) -> str:
    """Three digits, no more than the number."""
    if not value > 0.0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    down = math.floor(value / step) * step
    return quantity(down if down <= value else down - step)
