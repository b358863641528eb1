"""The quality of a model on held-out rows as plain JSON, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..fitted.quality import HeldOutQuality
from ..tables.saved import label_from, plain_label
from ..tasks import label_array
from .arrays import finite_numbers, numbers_from

# Arrays and their dimensions: 2, tasks and measures; 1, measures.
TABLES = {"values": 2, "errors": 2, "overall": 1, "overall_errors": 1}
# Runs of version 0.2 know no null model, and not how its folds were counted.
NULL_TABLES = {
    "null_values": 2, "null_errors": 2, "increment_errors": 2,
    "null_overall": 1, "null_overall_errors": 1, "overall_increment_errors": 1,
}  # fmt: skip
COUNTS = ("n_rows", "n_units")
# Of classes, and of survival; earlier runs do not count pairs.
SOME_COUNTS = ("one_class_folds", "pairs", "fold_pairs")
PLAIN: dict[str, type] = {
    "unit": str, "folds": str, "n_all_units": int, "n_tried": int, "widening": float, "tuned": str,
    "null_covariates": int,
}  # fmt: skip
UNSAID = {"tuned": "alpha", "null_covariates": 0}  # in version 0.2


def plain_quality(quality: HeldOutQuality) -> dict[str, Any]:
    """What `quality_from` reads; numbers that are not known are null."""
    known = {name: value for name, value in vars(quality).items() if value is not None}
    return {
        "tasks": [plain_label(label) for label in quality.tasks.tolist()],
        "measures": list(quality.measures),
        **{name: finite_numbers(known[name]) for name in (*TABLES, *NULL_TABLES) if name in known},
        **{name: known[name].tolist() for name in (*COUNTS, *SOME_COUNTS) if name in known},
        **{name: known[name] for name in PLAIN},
    }


def quality_from(content: Any) -> HeldOutQuality:
    """The quality of `plain_quality`; a ValueError where it is not what it claims to be."""
    try:
        content = {**UNSAID, **content}
        tasks = [label_from(label) for label in content["tasks"]]
        measures = tuple(content["measures"])
        words = [*measures, *(content[name] for name, kind in PLAIN.items() if kind is str)]
        whole = all(isinstance(word, str) for word in words)
        shapes = {2: (len(tasks), len(measures)), 1: (len(measures),)}
        null = {name: n for name, n in NULL_TABLES.items() if name in content}
        found: dict[str, Any] = {
            name: numbers_from(content[name]).reshape(shapes[n]) for name, n in {**TABLES, **null}.items()
        }
        found |= {name: kind(content[name]) for name, kind in PLAIN.items()}
        counts: dict[str, Any] = {
            name: np.array([int(number) for number in content[name]], dtype=np.int64)
            for name in (*COUNTS, *SOME_COUNTS)
            if name in content or name in COUNTS
        }
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("quality on held-out rows") from error
    fits = all(len(numbers) == len(tasks) for numbers in counts.values())
    if not whole or not fits or len(null) not in (0, len(NULL_TABLES)):
        raise ValueError("quality on held-out rows")
    return HeldOutQuality(label_array(tasks), measures, **found, **counts)
