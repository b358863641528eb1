"""The quality of a model on held-out rows as plain JSON, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..fitted.quality import HeldOutQuality
from ..tables.saved import label_from, plain_label
from ..tasks import label_array

TABLES = ("values", "errors", "overall", "overall_errors")
COUNTS = ("n_rows", "n_units")
WORDS = ("unit", "folds")
NUMBERS = ("n_all_units", "n_tried")


def plain_quality(quality: HeldOutQuality) -> dict[str, Any]:
    """What `quality_from` reads; numbers that are not known are null."""
    return {
        "tasks": [plain_label(label) for label in quality.tasks.tolist()],
        "measures": list(quality.measures),
        **{name: [_or_none(number) for number in getattr(quality, name).ravel().tolist()] for name in TABLES},
        **{name: getattr(quality, name).tolist() for name in COUNTS},
        **{name: getattr(quality, name) for name in (*WORDS, *NUMBERS)},
        "widening": quality.widening,
    }


def _or_none(number: float) -> float | None:
    return number if np.isfinite(number) else None


def _table(numbers: list[Any]) -> np.ndarray:
    return np.array([np.nan if number is None else float(number) for number in numbers])


def quality_from(content: Any) -> HeldOutQuality:
    """The quality of `plain_quality`; a ValueError where it is not what it claims to be."""
    try:
        tasks = [label_from(label) for label in content["tasks"]]
        measures = tuple(content["measures"])
        shapes = {"values": (len(tasks), len(measures)), "overall": (len(measures),)}
        shapes |= {"errors": shapes["values"], "overall_errors": shapes["overall"]}
        found: dict[str, Any] = {name: _table(content[name]).reshape(shapes[name]) for name in TABLES}
        found |= {name: np.array([int(number) for number in content[name]], dtype=np.int64) for name in COUNTS}
        found |= {name: content[name] for name in WORDS}
        found |= {name: int(content[name]) for name in NUMBERS}
        found["widening"] = float(content["widening"])
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("quality on held-out rows") from error
    whole = all(isinstance(word, str) for word in (*measures, *(found[name] for name in WORDS)))
    if not whole or any(len(found[name]) != len(tasks) for name in COUNTS):
        raise ValueError("quality on held-out rows")
    return HeldOutQuality(label_array(tasks), measures, **found)
