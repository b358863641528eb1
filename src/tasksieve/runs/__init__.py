"""Run folders: everything about one fit, written so that no interruption can spoil it.

Names are loaded when they are first used: the command line needs the names of the models to show its help, and no more.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .folder import RunError, RunFolder
    from .model_file import SavedModel, load_model, save_model
    from .registry import MODELS, ModelKind

_HOME = {
    **dict.fromkeys(("RunError", "RunFolder"), "folder"),
    **dict.fromkeys(("SavedModel", "load_model", "save_model"), "model_file"),
    **dict.fromkeys(("MODELS", "ModelKind"), "registry"),
}

__all__ = ["MODELS", "ModelKind", "RunError", "RunFolder", "SavedModel", "load_model", "save_model"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
