"""Small .sas7bdat files. No Python package offers to write them, but the C library inside pyreadstat can."""

from __future__ import annotations

import ctypes
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyreadstat._readstat_writer
import pytest

_STRING, _DOUBLE = 0, 5  # readstat_type_t
_FIRST_DAY = datetime.date(1960, 1, 1)
_Sink = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class ReadStat:
    """Functions of the C library by their names; those that give a readstat_error_t are checked."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(pyreadstat._readstat_writer.__file__)

    def pointer(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        function = getattr(self._library, f"readstat_{name}")
        function.restype = ctypes.c_void_p
        return ctypes.c_void_p(function(*arguments))

    def __call__(self, name: str, *arguments: Any) -> None:
        assert getattr(self._library, f"readstat_{name}")(*arguments) == 0, name


def write_sas(path: Path, columns: Sequence[tuple[str, Sequence[Any]]]) -> None:
    """Words, numbers and dates, any of which may be None; a test that needs it is skipped where that is impossible."""
    try:
        call = ReadStat()
        writer = call.pointer("writer_init")
    except (OSError, AttributeError):
        pytest.skip("the library inside pyreadstat does not show its functions here")
    found = bytearray()

    def sink(data: int, size: int, _: Any) -> int:
        found.extend(ctypes.string_at(data, size))
        return size

    kept = _Sink(sink)  # while the library may call it
    call("set_data_writer", writer, kept)
    variables, count = [], ctypes.c_long(len(columns[0][1]))
    for name, values in columns:
        words = [value.encode() for value in values if isinstance(value, str)]
        width = max([8, *map(len, words)])
        kind = _STRING if words else _DOUBLE
        variables.append(
            call.pointer("add_variable", writer, name.encode(), kind, ctypes.c_size_t(width if words else 8))
        )
        if any(isinstance(value, datetime.date) for value in values):
            call._library.readstat_variable_set_format(variables[-1], b"DATE9")
    call("begin_writing_sas7bdat", writer, None, count)
    for row in zip(*(values for _, values in columns), strict=True):
        call("begin_row", writer)
        for variable, value in zip(variables, row, strict=True):
            if value is None:
                call("insert_missing_value", writer, variable)
            elif isinstance(value, str):
                call("insert_string_value", writer, variable, value.encode())
            else:
                number = (value - _FIRST_DAY).days if isinstance(value, datetime.date) else value
                call("insert_double_value", writer, variable, ctypes.c_double(number))
        call("end_row", writer)
    call("end_writing", writer)
    call._library.readstat_writer_free(writer)
    path.write_bytes(found)
