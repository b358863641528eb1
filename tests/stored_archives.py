"""Archives of stored results: how they are written, the same bytes from the same files, and taken apart again."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

#: Holds a folder for each version whose results are stored.
STORED = Path(__file__).parent / "stored"


def pack_folder(folder: Path, file: Path) -> None:
    """Write an archive of a folder; a file that exists is never replaced."""
    with zipfile.ZipFile(file, "x", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != ".lock":
                name = zipfile.ZipInfo(path.relative_to(folder).as_posix())
                archive.writestr(name, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def pack_files(files: dict[str, bytes], file: Path) -> None:
    """The same of contents by name."""
    with zipfile.ZipFile(file, "x", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name], zipfile.ZIP_DEFLATED, 9)


def unpack(file: Path, folder: Path) -> dict[str, Any]:
    """Take an archive apart; what it says of itself."""
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    told: dict[str, Any] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return told


def write_data(data: dict[str, Any]) -> bytes:
    """Arguments of `verify` and `predict` as a file without pickles: arrays, lists and dicts of them, words."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}

    def told(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, dict):
            return {"dict": [[str(key), told(own)] for key, own in value.items()]}
        if isinstance(value, list | tuple):
            return {"list": [told(own) for own in value]}
        value = np.asarray(value)
        if value.dtype.kind == "O":
            return {"words": [own.item() if isinstance(own, np.generic) else own for own in value]}
        arrays[f"a{len(arrays)}.npy"] = value
        return {"array": f"a{len(arrays) - 1}.npy"}

    words = json.dumps(told(data))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("data.json"), words)
        for name, values in arrays.items():
            body = io.BytesIO()
            np.lib.format.write_array(body, values, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name), body.getvalue())
    return stream.getvalue()


def read_data(content: bytes) -> dict[str, Any]:
    """What `write_data` has written."""
    archive = zipfile.ZipFile(io.BytesIO(content))

    def value(told: Any) -> Any:
        if not isinstance(told, dict):
            return told
        ((kind, own),) = told.items()
        if kind == "dict":
            return {key: value(one) for key, one in own}
        if kind == "list":
            return [value(one) for one in own]
        if kind == "words":
            return np.array(own, dtype=object)
        return np.lib.format.read_array(io.BytesIO(archive.read(own)), allow_pickle=False)

    found: dict[str, Any] = value(json.loads(archive.read("data.json")))
    return found
