"""The JSON Schema of the header says what the writer writes and what the verifier takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve import verify

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "_static" / "certificate-schema.json").read_text())
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """The few words of JSON Schema that ours uses."""
    if "$ref" in schema:
        return fits(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    if "oneOf" in schema:
        return sum(fits(value, one) for one in schema["oneOf"]) == 1
    if "const" in schema:
        return bool(value == schema["const"])
    if "enum" in schema:
        return value in schema["enum"]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    number = isinstance(value, int | float) and not isinstance(value, bool)
    known = [number if kind in ("number", "integer") else isinstance(value, TYPES[kind]) for kind in kinds]
    if kinds and not any(known):
        return False
    if number and not (
        value >= schema.get("minimum", -np.inf)
        and schema.get("exclusiveMinimum", -np.inf) < value < schema.get("exclusiveMaximum", np.inf)
    ):
        return False
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        return False
    if isinstance(value, list):
        return len(value) >= schema.get("minItems", 0) and all(fits(one, schema.get("items", {})) for one in value)
    if isinstance(value, dict):
        parts = schema.get("properties", {})
        unknown = set(value) - set(parts) if schema.get("additionalProperties") is False else set()
        absent = set(schema.get("required", ())) - set(value)
        return not unknown and not absent and all(fits(one, parts.get(key, {})) for key, one in value.items())
    return True


def headers() -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((40, 4)), np.repeat([0, 1], 20)
    y, words = X[:, 0] + 0.1 * rng.standard_normal(40), np.where(X[:, 0] > 0, "yes", "no")
    models = {
        "lasso": (ts.MultiTaskLasso(0.1, task_weights="balanced"), y),
        "groups": (ts.MultiTaskGroupLasso(0.1, feature_groups=[0, 0, 1, 1]), y),
        "classes": (ts.MultiTaskClassifier(alpha=0.05, class_weight="balanced"), words),
        "machine": (ts.GraphSVC(C=0.1), words),
    }
    return {
        name: model.fit(X, labels, task=task).certificate(X, labels, task=task).header
        for name, (model, labels) in models.items()
    }


HEADERS = headers()


@pytest.mark.parametrize("name", HEADERS)
def test_headers_fit_the_schema(name: str) -> None:
    header = json.loads(json.dumps(HEADERS[name]))
    assert fits(header, SCHEMA)
    assert not fits({**header, "more": 1}, SCHEMA)
    assert not fits({**header, "unit": 0}, SCHEMA)
    assert not fits({key: value for key, value in header.items() if key != "loss"}, SCHEMA)


def test_the_schema_knows_what_the_verifier_knows() -> None:
    assert set(SCHEMA["properties"]) == set(verify._KEYS) | verify._OTHER_KEYS
    assert set(SCHEMA["required"]) == set(verify._KEYS)
    losses = [part["properties"]["name"] for part in SCHEMA["$defs"]["loss"]["oneOf"]]
    assert {name for own in losses for name in own.get("enum", [own.get("const")])} == set(verify.LOSSES)
    assert set(SCHEMA["properties"]["penalty"]["properties"]["name"]["enum"]) == set(verify._PENALTIES)
