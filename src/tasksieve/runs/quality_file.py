"""The quality of a model on held-out rows as plain JSON, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..fitted.quality import HeldOutQuality
from ..tables.saved import label_from, plain_label
from ..tasks import label_array
from .arrays import finite_numbers, numbers_from

TABLES = ("values", "errors", "overall", "overall_errors")
COUNTS = ("n_rows", "n_units")
WORDS = ("unit", "folds")
NUMBERS = ("n_all_units", "n_tried")
# What runs of version 0.2 do not have: the null model, and how its folds were counted.
NULL_TABLES = {
    **dict.fromkeys(("null_values", "null_errors", "increment_errors"), "values"),
    **dict.fromkeys(("null_overall", "null_overall_errors", "overall_increment_errors"), "overall"),
}


def plain_quality(quality: HeldOutQuality) -> dict[str, Any]:
    """What `quality_from` reads; numbers that are not known are null."""
    return {
        "tasks": [plain_label(label) for label in quality.tasks.tolist()],
        "measures": list(quality.measures),
        **{name: finite_numbers(getattr(quality, name)) for name in TABLES},
        **{name: getattr(quality, name).tolist() for name in COUNTS},
        **{name: getattr(quality, name) for name in (*WORDS, *NUMBERS)},
        "widening": quality.widening,
        "tuned": quality.tuned,
        "null_covariates": quality.null_covariates,
        **{name: finite_numbers(getattr(quality, name)) for name in NULL_TABLES if getattr(quality, name) is not None},
        **({} if quality.one_class_folds is None else {"one_class_folds": quality.one_class_folds.tolist()}),
    }


def quality_from(content: Any) -> HeldOutQuality:
    """The quality of `plain_quality`; a ValueError where it is not what it claims to be."""
    try:
        tasks = [label_from(label) for label in content["tasks"]]
        measures = tuple(content["measures"])
        shapes = {"values": (len(tasks), len(measures)), "overall": (len(measures),)}
        shapes |= {"errors": shapes["values"], "overall_errors": shapes["overall"]}
        found: dict[str, Any] = {name: numbers_from(content[name]).reshape(shapes[name]) for name in TABLES}
        found |= {name: np.array([int(number) for number in content[name]], dtype=np.int64) for name in COUNTS}
        found |= {name: content[name] for name in WORDS}
        found |= {name: int(content[name]) for name in NUMBERS}
        found["widening"] = float(content["widening"])
        known = {name: shapes[like] for name, like in NULL_TABLES.items() if name in content}
        found |= {name: numbers_from(content[name]).reshape(shape) for name, shape in known.items()}
        found["tuned"] = content.get("tuned", "alpha")
        found["null_covariates"] = int(content.get("null_covariates", 0))
        if "one_class_folds" in content:
            found["one_class_folds"] = np.array([int(n) for n in content["one_class_folds"]], dtype=np.int64)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("quality on held-out rows") from error
    whole = all(isinstance(word, str) for word in (*measures, found["tuned"], *(found[name] for name in WORDS)))
    counts = [found[name] for name in (*COUNTS, "one_class_folds") if name in found]
    complete = sum(name in found for name in NULL_TABLES) in (0, len(NULL_TABLES))
    if not whole or not complete or any(len(numbers) != len(tasks) for numbers in counts):
        raise ValueError("quality on held-out rows")
    return HeldOutQuality(label_array(tasks), measures, **found)
