"""Run folders: everything about one fit, written so that no interruption can spoil it."""

from .folder import RunError, RunFolder
from .model_file import SavedModel, load_model, save_model
from .registry import MODELS, ModelKind

__all__ = ["MODELS", "ModelKind", "RunError", "RunFolder", "SavedModel", "load_model", "save_model"]
