"""Finished pieces of a run that is not finished: what a resumed run need not compute again."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..atomic import write_bytes
from ..tables.npz import read_arrays
from ..tables.table import TableError
from .folder import PIECES, RunFolder

HEADER = b"tasksieve piece 1\n"
NAME = re.compile(r"[a-z0-9-]{1,100}")


class Pieces:
    """Scores of finished folds, one small file each (the `FoldStore` of a cross-validation).

    Parameters
    ----------
    folder : RunFolder
    key : str
        What the pieces depend on (data, options, versions), as a digest: pieces of another key are not used.
    tell : callable
        Told in words what was found and kept.
    """

    def __init__(self, folder: RunFolder, key: str, tell: Callable[[str], None]) -> None:
        self.folder = folder
        self.key = key.encode()
        self.tell = tell

    def _file(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise ValueError(f"not the name of a piece: {name!r}")
        return self.folder / PIECES / f"{name}.piece"

    def recall(self, name: str) -> tuple[np.ndarray, int] | None:
        """Scores and number of open values, or None where there is no such piece, or a spoilt one."""
        file = self._file(name)
        if not file.is_file():
            return None
        content = file.read_bytes()
        lines = content[len(HEADER) :].split(b"\n", 2)
        if (
            not content.startswith(HEADER)
            or len(lines) < 3
            or hashlib.sha256(lines[2]).hexdigest().encode() != lines[1]
        ):
            self.tell(f"{name}: the file kept of it is spoilt; computed again")
            return None
        if lines[0] != self.key:
            self.tell(f"{name}: kept by another version or number of threads; computed again")
            return None
        try:
            arrays = read_arrays(io.BytesIO(lines[2]), stored=True)
            scores, n_open = arrays["scores"], int(arrays["open"])
        except (TableError, KeyError, TypeError, ValueError):
            self.tell(f"{name}: the file kept of it is spoilt; computed again")
            return None
        self.tell(f"{name}: taken from the interrupted run")
        return scores, n_open

    def keep(self, name: str, scores: np.ndarray, n_open: int) -> None:
        buffer = io.BytesIO()
        np.savez(buffer, scores=scores, open=np.array(n_open))
        payload = buffer.getvalue()
        digest = hashlib.sha256(payload).hexdigest().encode()
        file = self._file(name)
        file.parent.mkdir(exist_ok=True)
        write_bytes(file, HEADER + self.key + b"\n" + digest + b"\n" + payload)
        self.tell(f"{name}: finished")
