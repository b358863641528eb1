"""Arrays from untrusted .npz files: nothing is unpickled, no declared size is believed."""

from __future__ import annotations

import math
import os
import re
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from .table import TableError

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\- ]{0,199}")
MOST_ARRAYS = 10_000
BLOCK_BYTES = 1 << 24


def physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # a system that does not report it
        return 1 << 40


def read_arrays(file: str | os.PathLike[str] | IO[bytes], *, stored: bool = False) -> dict[str, np.ndarray]:
    """All arrays of an .npz file: booleans, integers, floats and strings, in native byte order.

    A `TableError` for everything that is not such a file. Arrays of objects (pickles) are refused by their header,
    before any of their bytes is read; a shape must fit the bytes that are there, and these must fit into memory.

    - `stored`: Refuse compressed members, as this library writes none: then no array is larger than the file itself.
    """
    name = str(file) if isinstance(file, str | os.PathLike) else "the npz data"
    if isinstance(file, str | os.PathLike) and not Path(file).is_file():
        raise TableError(f"{name} is not a file" if Path(file).exists() else f"there is no file {name}")
    try:
        with zipfile.ZipFile(file) as archive:
            return _read_members(archive, stored)
    except TableError as error:
        raise TableError(f"{name}: {error}") from None
    except PermissionError:
        raise
    except Exception as error:  # zipfile, zlib, numpy and the header's parser each have errors of their own
        raise TableError(f"{name} is not a readable npz file: {type(error).__name__}: {error}") from None


def _read_members(archive: zipfile.ZipFile, stored: bool) -> dict[str, np.ndarray]:
    members = archive.infolist()
    if len(members) > MOST_ARRAYS:
        raise TableError(f"{len(members)} arrays are more than {MOST_ARRAYS}")
    for member in members:
        if member.compress_type == zipfile.ZIP_STORED and member.file_size > member.compress_size:
            raise TableError(f"{member.filename[:100]!r} is said to be larger than it is")
    if sum(member.file_size for member in members) > physical_memory():
        raise TableError("the arrays are said to be larger than this machine's memory")
    arrays: dict[str, np.ndarray] = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        if name == member.filename or not NAME.fullmatch(name) or name in arrays:
            raise TableError(f"unexpected entry {member.filename[:100]!r}")
        if stored and member.compress_type != zipfile.ZIP_STORED:
            raise TableError(f"array {name!r} is compressed, which this kind of file never is")
        with archive.open(member) as content:
            arrays[name] = _read_member(name, content, member.file_size)
    return arrays


def _read_member(name: str, content: IO[bytes], size: int) -> np.ndarray:
    version = npy.read_magic(content)
    readers: dict[tuple[int, int], Any] = {
        (1, 0): npy.read_array_header_1_0,
        (2, 0): npy.read_array_header_2_0,
    }
    if version not in readers:
        raise TableError(f"array {name!r} has npy version {version}")
    shape, fortran_order, dtype = readers[version](content)
    if dtype.hasobject:
        raise TableError(
            f"array {name!r} holds Python objects (a pickle), which are never loaded: they could run code"
        )
    if dtype.kind not in "biufUS" or dtype.names is not None or dtype.subdtype is not None:
        raise TableError(f"array {name!r} has type {dtype}, which is not supported")
    count = math.prod(shape)
    if min(shape, default=0) < 0 or count * dtype.itemsize != size - content.tell():
        raise TableError(
            f"array {name!r} claims shape {shape}, which does not fit its {size - content.tell()} bytes"
        )
    buffer = np.empty(count * dtype.itemsize, dtype=np.uint8)
    filled = 0
    while filled < len(buffer):
        block = content.read(min(BLOCK_BYTES, len(buffer) - filled))
        if not block:
            raise TableError(f"array {name!r} ends early")
        buffer[filled : filled + len(block)] = np.frombuffer(block, dtype=np.uint8)
        filled += len(block)
    content.read(1)  # at the end the checksum is compared
    array = buffer.view(dtype) if dtype.itemsize else np.zeros(count, dtype=dtype)
    array = array.reshape(shape, order="F" if fortran_order else "C")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "U" and array.size:
        points = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
        if np.any((points > 0x10FFFF) | ((points >= 0xD800) & (points < 0xE000))):
            raise TableError(f"array {name!r} holds strings that are not Unicode")
    return array
