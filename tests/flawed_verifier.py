"""The verifier with flaws put in on purpose: tests that would not find them prove nothing."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

from tasksieve import verify as verifier


def flawed(*changes: tuple[str, str]) -> Any:
    """The verifier with some words of its source replaced."""
    source = Path(verifier.__file__).read_text(encoding="utf-8")
    for old, new in changes:
        assert source.count(old) == 1, f"the verifier has {source.count(old)} times: {old}"
        source = source.replace(old, new)
    module = types.ModuleType("flawed_verifier")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(source, "flawed_verifier.py", "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module
