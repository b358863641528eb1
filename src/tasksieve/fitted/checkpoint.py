"""Finished folds that are kept, so that an interrupted cross-validation need not solve them again."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import joblib
import numpy as np

from ..atomic import write_bytes
from ..versions import versions
from .progress import holding

Arrays = dict[str, np.ndarray]

HEADER = b"tasksieve piece 2\n"
NAME = re.compile(r"[a-z0-9-]{1,100}")
ENDING = ".piece"
# Versions on which the numbers of a fold depend.
COMPUTING = ("tasksieve", "numpy", "scipy", "scikit-learn", "kernels")


@runtime_checkable
class FoldStore(Protocol):
    """Where finished folds are kept: two methods that several threads may call at the same time.

    A name (lower-case letters, digits, hyphens) ends in a digest of everything that the fold depends on, so a store
    never has to check whether what it holds is out of date.
    """

    def recall(self, name: str) -> Arrays | None:
        """What `keep` was given under this name; None if nothing, or if it is damaged."""

    def keep(self, name: str, arrays: Arrays) -> None:
        """A fold is finished: small arrays of numbers by name."""


_store: ContextVar[FoldStore | None] = ContextVar("tasksieve_store", default=None)


@contextmanager
def checkpoint(store: str | os.PathLike[str] | FoldStore) -> Iterator[FoldStore]:
    """Keep the finished folds of every cross-validation within a ``with`` block, and use those already kept.

    A fold is used again only if data, parameters, alphas, the rows of the fold, the number of threads and the
    versions of the libraries are the same as when it was kept: the result is, to the bit, that of a fit without
    interruption. Several fits may share a folder. To know the data by, X is read once more. With ``early_stopping`` all
    folds go together, and are kept when they end; without, one is finished before the next begins. The halves of the
    rows that a `StabilitySelection` has finished, and the models that `compare` has judged, are kept in the same way.

    Parameters
    ----------
    store : path or FoldStore
        A folder (made if it is not there; delete it when the fit is done), or an object with the methods ``recall``
        and ``keep`` of `FoldStore`.

    Yields
    ------
    FoldStore

    See Also
    --------
    watch : call a function with the progress of fits.

    Examples
    --------
    >>> import tempfile
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks()
    >>> labels = []
    >>> with tempfile.TemporaryDirectory() as folder, ts.watch(lambda progress: labels.append(progress.label)):
    ...     for _ in range(2):
    ...         with ts.checkpoint(folder):
    ...             model = ts.MultiTaskLassoCV(alphas=[1.0, 0.1], cv=2).fit(X, y, task=task)
    >>> sorted(label.partition(", ")[2] for label in labels)  # two values each; the folds are solved once
    ['all rows', 'all rows', 'all rows', 'all rows', 'fold 1', 'fold 1', 'fold 2', 'fold 2']
    """
    if isinstance(store, str | os.PathLike):
        store = FolderStore(store)
    elif not isinstance(store, FoldStore):
        raise TypeError(f"store must be a folder, or an object with methods recall and keep; got {store!r}.")
    with holding(_store, store):
        yield store


class FolderStore:
    """Finished folds in a folder, one small file each; a file is there as a whole or not at all."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def _file(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise ValueError(f"name: {name!r} is not the name of a fold (lower-case letters, digits, hyphens).")
        return self.folder / f"{name}{ENDING}"

    def recall(self, name: str) -> Arrays | None:
        """What `keep` was given under this name; None if nothing, or if the file is damaged."""
        file = self._file(name)
        if not file.is_file():
            return None
        digest, _, payload = file.read_bytes().removeprefix(HEADER).partition(b"\n")
        if hashlib.sha256(payload).hexdigest().encode() != digest:
            return None
        try:
            return {key: _unpack(**packed) for key, packed in json.loads(payload).items()}
        except (ValueError, TypeError, AttributeError, RecursionError):  # whole, but not written by `keep`
            return None

    def keep(self, name: str, arrays: Arrays) -> None:
        """Write a file, atomically."""
        file = self._file(name)
        payload = json.dumps({key: _pack(np.asarray(array)) for key, array in arrays.items()}).encode()
        self.folder.mkdir(parents=True, exist_ok=True)
        write_bytes(file, HEADER + hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)


def _pack(array: np.ndarray) -> dict[str, Any]:
    if array.dtype.kind not in "biuf":
        raise TypeError(f"arrays: a fold is kept as numbers; got {array.dtype}.")
    content = base64.b64encode(array.tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": array.shape, "content": content}


def _unpack(dtype: str, shape: list[int], content: str) -> np.ndarray:
    if not re.fullmatch(r"[<>|][biuf]\d", dtype):
        raise ValueError("type")
    return np.frombuffer(base64.b64decode(content, validate=True), dtype=dtype).reshape(shape).copy()


def unkept() -> AbstractContextManager[None]:
    """Folds within the block are not kept: what repeats them keeps the whole."""
    return holding(_store, None)


def keeping() -> bool:
    """Whether this call is within a `checkpoint` block."""
    return _store.get() is not None


def kept(name: str, facts: Any, compute: Callable[[], Arrays]) -> Arrays:
    """What ``compute()`` gives, or what the store of the `checkpoint` block around this call remembers of it. `facts`
    are all that the result depends on (but for the versions of the libraries)."""
    store = _store.get()
    if store is None:
        return compute()
    found = versions()
    try:
        digest = joblib.hash([facts, [found[key] for key in COMPUTING]], hash_name="sha1")
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"checkpoint: a parameter of the model cannot be pickled, so a fold cannot be recognised: {error}"
        ) from error
    name = f"{name}-{digest}"
    arrays = store.recall(name)
    if arrays is None:
        arrays = compute()
        store.keep(name, arrays)
    return arrays
