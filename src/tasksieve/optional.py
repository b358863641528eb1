"""Libraries that are needed only where something is asked for that uses them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any


def require(module: str, asker: str, install: str, error: type[Exception] = ImportError) -> Any:
    """An optional module, or an error that says what to install.

    - `asker`: With its verb: ``"reports need"``.
    """
    try:
        return import_module(module)
    except ImportError as missing:
        raise error(f"{asker} {module.partition('.')[0]}: pip install {install}") from missing


def data_frame(owner: object, columns: Mapping[str, Any], labels: Iterable[str] = ()) -> Any:
    """What the ``to_frame`` of an object returns; columns of `labels` keep them as the objects that they are."""
    pandas = require("pandas", f"{type(owner).__name__}.to_frame needs", "pandas")
    return pandas.DataFrame({**columns, **{name: pandas.Series(columns[name], dtype=object) for name in labels}})
