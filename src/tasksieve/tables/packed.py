"""Packed files of text: gzip, bzip2, xz, Zstandard, and zip archives of one file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zipfile
from pathlib import Path
from typing import IO, Any

from ..optional import require
from .table import TableError, few

PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
# What pandas unpacks itself, given the path.
BY_PANDAS = (".gz", ".bz2", ".xz")
# Files that systems put into archives beside those of the user.
_NOT_MEANT = "__MACOSX/"


def open_packed(path: str | os.PathLike[str]) -> IO[bytes]:
    """The content of a file, unpacked where its ending says that it is packed."""
    ending = Path(path).suffix.lower()
    if ending == ".zst":
        arrow = require("pyarrow", "files packed by Zstandard need", "'tasksieve[files]'", TableError)
        return io.BufferedReader(arrow.input_stream(os.fspath(path), compression="zstd"))
    if ending == ".zip":
        with zipfile.ZipFile(path) as archive:
            return archive.open(_member(archive, path))
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    found: IO[bytes] = openers.get(ending, open)(path, "rb")
    return found


def unpacked_name(path: str | os.PathLike[str]) -> str:
    """The name of a file without the ending of its packing; of an archive that says no more, that of the file in it."""
    name = os.path.basename(path)
    stem, ending = os.path.splitext(name)
    if ending.lower() not in PACKED:
        return name
    if ending.lower() == ".zip" and not os.path.splitext(stem)[1] and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return os.path.basename(_member(archive, path))
    return stem


def _member(archive: zipfile.ZipFile, path: str | os.PathLike[str]) -> str:
    names = [one for one in archive.namelist() if not one.endswith(("/", ".DS_Store")) and _NOT_MEANT not in one]
    if len(names) != 1:
        held = f"{len(names)} files ({few(names)})" if names else "no file"
        raise TableError(f"{path} holds {held}: one table is read from an archive; unpack it, and name what is in it")
    return names[0]
