"""Data frames with pandas, which is needed only where one is asked for."""

from __future__ import annotations

from typing import Any


def require_pandas(owner: object) -> Any:
    """The module pandas, for the ``to_frame`` of an object; or an error that says what to install."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{type(owner).__name__}.to_frame needs pandas: pip install pandas") from error
    return pandas
