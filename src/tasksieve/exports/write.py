"""The formats of an export, by the ending of the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ..atomic import write_bytes
from ..messages import value_error
from .description import Description
from .json_file import json_text
from .onnx_file import onnx_bytes
from .python_file import python_text
from .score_files import SCORES
from .sql_file import sql_text

TABLE = "rows"
#: ending -> what is written, of a table for SQL
FORMATS: dict[str, Callable[[Description, str], bytes]] = {
    ".json": lambda found, _: json_text(found).encode(),
    ".py": lambda found, _: python_text(found).encode("ascii"),
    ".onnx": lambda found, _: onnx_bytes(found),
    ".sql": lambda found, table: sql_text(found, table).encode(),
}


def checked_format(file: str | os.PathLike[str], table: str | None = None) -> str:
    """The ending of a file that can be written; an error where it cannot."""
    path = Path(file)
    ending = next((own for own in SCORES if path.name.endswith(own)), path.suffix.lower())
    if ending not in (known := (*FORMATS, *SCORES)):
        raise value_error(
            "{file!r}: the ending says what is written, one of {endings}.", file=str(file), endings=", ".join(known)
        )
    if not path.parent.is_dir():
        raise value_error("{file!r}: there is no folder {folder}.", file=str(file), folder=str(path.parent))
    if table is not None and ending != ".sql":
        raise value_error("{table}: only SQL names a table.")
    return ending


def write_description(found: Description, file: str | os.PathLike[str], table: str | None = None) -> Path:
    """Write a description in the format of the file's ending."""
    path = Path(file)
    write_bytes(path, FORMATS[checked_format(file, table)](found, table or TABLE))
    return path
