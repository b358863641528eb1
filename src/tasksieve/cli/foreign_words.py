"""``--problem`` and ``--parameter`` of ``tasksieve grade``: the words of another program, as they are typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .exit_codes import UsageError
from .extras import plain


def read_parameters(given: Sequence[str]) -> dict[str, Any]:
    """``name=value``: numbers, words, True and False in any writing (R's TRUE), several with commas between them."""
    found: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise UsageError(f"--parameter: {text!r} is not NAME=VALUE, lambda=0.1")
        if name.strip() in found:
            raise UsageError(f"--parameter: {name.strip()} is given twice; values of a path are lambda=0.3,0.1,0.03")
        parts = [plain(part.strip()) for part in value.split(",")]
        found[name.strip()] = parts if len(parts) > 1 else parts[0]
    return found
