"""An export as JSON: the description itself, by a schema (`schema.json`) that a page of the documentation explains."""

from __future__ import annotations

import json
import math
from typing import Any

from .description import Description, Feature, Input, Task

FORMAT, VERSION = "tasksieve linear model", 1


def json_text(found: Description) -> str:
    content = {
        "format": FORMAT,
        "version": VERSION,
        "model": found.model,
        "tasksieve": found.version,
        "task_column": found.task_column,
        "inputs": [_input(own) for own in found.inputs],
        "features": [_feature(own, found.inputs[own.input].name) for own in found.features],
        "tasks": [_task(own) for own in found.tasks],
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _input(own: Input) -> dict[str, Any]:
    if own.kind == "category":
        return {"name": own.name, "kind": own.kind, "categories": list(own.categories), "numeric": own.numeric}
    return {"name": own.name, "kind": own.kind, **({"way": own.way} if own.kind == "date" else {})}


def _feature(own: Feature, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": own.name, "input": name, "coding": own.coding}
    if own.of is not None:
        found["word" if own.coding == "equals" else "part"] = own.of
    if own.fill is not None:
        found["fill"] = list(own.fill) if isinstance(own.fill, tuple) else own.fill
    if (own.centre, own.scale) != (0.0, 1.0):
        found |= {"centre": own.centre, "scale": own.scale}
    return found


def _task(own: Task) -> dict[str, Any]:
    found: dict[str, Any] = {"name": own.name, "link": own.link}
    if own.classes is not None:
        found["classes"] = list(own.classes)
    if own.thresholds is not None:  # JSON has no infinities
        found["thresholds"] = [value if math.isfinite(value) else f"{value}" for value in own.thresholds]
    found["scores"] = [
        {
            "intercept": score.intercept,
            "offset": score.offset,
            "features": [j for j, _ in score.coefficients],
            "coefficients": [value for _, value in score.coefficients],
        }
        for score in own.scores
    ]
    return found
