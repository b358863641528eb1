"""What commands print with ``--json``."""

from __future__ import annotations

import json
import math
from typing import Any


def in_json(content: Any) -> str:
    """JSON for people and programs: one entry a line, and null for numbers that JSON does not have.

    Examples
    --------
    >>> print(in_json({"gap": math.inf, "name": "Göteborg"}))
    {
     "gap": null,
     "name": "Göteborg"
    }
    """
    return json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False)


def plain(content: Any) -> Any:
    """The same content, with None for NaN and infinities."""
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, dict):
        return {str(key): plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    return content
