"""A header and arrays as bytes, in one way only: equal content has equal bytes, so that a digest of it means something.

A first line that names the format, the length of the header, the header as JSON with sorted keys, then the arrays one
after the other, little-endian. Nothing in it is executed when it is read, no length in it is believed beyond the bytes
that are there, and bytes that are not what `pack` would write are refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from .errors import FederatedError

Array = np.ndarray[Any, Any]

MAGIC = b"tasksieve-message 1\n"
_TYPES = ("<f8", "<i8", "<u8", "<u4", "<i2", "|u1")
_LONGEST_HEADER = 1 << 24


def pack(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """One piece of bytes.

    - `header`: What JSON can say, without infinite numbers; the key ``arrays`` is taken.
    - `arrays`: Of 64-bit floats and integers, unsigned 64-, 32- and 8-bit and signed 16-bit integers.
    """
    stored = {name: _stored(name, array) for name, array in arrays.items()}
    kinds = [[name, array.dtype.str, list(array.shape)] for name, array in stored.items()]
    words = json.dumps({**header, "arrays": kinds}, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    return b"".join([MAGIC, len(words).to_bytes(8, "little"), words, *(array.tobytes() for array in stored.values())])


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays; bytes that are no whole message are refused by the rule ``format``."""
    try:
        header, arrays = _unpacked(data)
        again = pack(header, arrays)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise FederatedError("format", f"this is no whole message ({error})") from None
    if again != data:
        raise FederatedError("format", "this message is not written as messages are")
    return header, arrays


def digest(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """SHA-256 of the packed bytes."""
    return hashlib.sha256(pack(header, arrays)).digest()


def _stored(name: str, array: Array) -> Array:
    little = np.ascontiguousarray(array)
    little = little.astype(little.dtype.newbyteorder("<"), copy=False).reshape(np.shape(array))
    if little.dtype.str not in _TYPES:
        raise ValueError(f"array {name} has numbers of type {little.dtype.str}, which messages do not carry")
    return little


def _unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    start = len(MAGIC) + 8
    if not data.startswith(MAGIC) or len(data) < start:
        raise ValueError("it does not begin as one")
    size = int.from_bytes(data[len(MAGIC) : start], "little")
    if size > min(_LONGEST_HEADER, len(data) - start):
        raise ValueError("it ends within its header")
    header = json.loads(data[start : start + size].decode())
    kinds, at = header.pop("arrays"), start + size
    arrays = {}
    for name, kind, shape in kinds:
        if kind not in _TYPES or name in arrays or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"its array {name} is not described as one")
        count = 1
        for n in shape:
            count *= n
        length = count * np.dtype(kind).itemsize
        if length > len(data) - at:
            raise ValueError(f"it ends within its array {name}")
        arrays[name] = np.frombuffer(data, kind, count, at).reshape(shape)
        at += length
    if at != len(data):
        raise ValueError("something follows its end")
    return header, arrays
