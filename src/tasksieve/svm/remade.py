"""Facts that a machine on a graph knows of its tasks and classes, made again from the data of its fit."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any


def known_of_rows(model: Any, rows: dict[str, Any]) -> dict[str, Any]:
    """Parts of the state that a fit of these rows (X, y, ...) would leave, whatever its solution."""
    reader = copy(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit has warned already
        data = reader._read_data(rows["X"], rows["y"], rows.get("task"), rows.get("sample_weight"))
    single = data.labels.form == "single" and len(data.tasks) == 1
    classes = reader.classes_ if model._targets == "classes" else None
    return {"tasks": data.tasks, "classes": classes, "single": single, "needs_offset": False}
