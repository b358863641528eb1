"""X moved to a device once, for many fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ..design.device.machine import in_words, read_device, room_on, the_torch
from ..design.device.matrix import DeviceMatrix, OnDevice, StreamedMatrix
from ..messages import either, value_error
from .matrix import read_matrix, read_task_list
from .source import is_task_list, kind_of

Array = np.ndarray[Any, Any]

_MOVED_BYTES = 64 << 20  # of X at a time
_ALIGNED = 16  # entries at which columns begin, as in a `DeviceStorage`


def on_device(X: Any, device: Any = "cuda", *, max_bytes: float | None = None) -> Any:
    """Move X to a device once: every estimator takes what this gives as X, and does not move it again.

    Parameters
    ----------
    X : matrix of shape (n, d), or list of matrices
        NumPy arrays, memory maps, data frames (without their names) and tensors. float64, float32, int8 and uint8 stay
        what they are, bool becomes uint8, other numbers float64. X itself is not changed.
    device : str or torch.device, default="cuda"
        "cuda", "cuda:1"; "cpu" runs the same code on the processor.
    max_bytes : float, optional
        Room that X may take there; by default what is free, less a reserve for what fits keep. An array that needs more
        stays where it is, and streams through the device in blocks of columns at every pass.

    Returns
    -------
    matrix on the device, or a list of such
        With ``shape``, ``dtype`` and ``device``.

    Notes
    -----
    On the device features lie one after the other. Rows out of task order are put into order there by every fit, in a
    copy: sort them beforehand where X takes more than half of the memory.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X = ts.on_device(np.eye(4, dtype=np.int8), "cpu")  # doctest: +SKIP
    >>> X.shape, X.dtype  # doctest: +SKIP
    ((4, 4), dtype('int8'))
    """
    there = read_device(device)
    if max_bytes is not None and not max_bytes > 0:
        raise ValueError(f"max_bytes must be a positive number of bytes; got {max_bytes!r}.")
    listed = is_task_list(X)
    matrices = read_task_list(X, _read) if listed else [_read(X, "X")]
    room = room_on(there) if max_bytes is None else float(max_bytes)
    moving = [matrix for matrix in matrices if _home(matrix) != there]
    if sum(matrix.nbytes for matrix in moving) > room:
        for matrix in moving:
            if isinstance(matrix, DeviceMatrix):
                raise MemoryError(
                    f"X needs {in_words(matrix.nbytes)} on {there}, where there is room for {in_words(room)}. Free "
                    "memory there, or pass X as a NumPy array or a memory map: such ones stream through the device."
                )
        moved: list[Any] = [StreamedMatrix(_array(matrix), there, room) for matrix in matrices]
    else:
        moved = [matrix if _home(matrix) == there else _moved(matrix, there) for matrix in matrices]
    return moved if listed else moved[0]


def placed(X: Any, model: Any) -> Any:
    """X where a model needs it: on its ``device``, or as it is."""
    device = getattr(model, "device", None)
    return X if device is None else on_device(X, device)


def _read(X: Any, name: str) -> Any:
    """A matrix as it is to be moved; NaN will show in the norms of its columns."""
    if scipy.sparse.issparse(X):
        raise value_error(
            "{matrix} is sparse, and a device holds dense columns: {how}leave {device} out, so that it is kept "
            "sparse on the processor.",
            matrix=name,
            how=either(f"pass {name}.toarray() if that fits, or "),
        )
    kind = kind_of(X)
    if kind.by_columns and kind.location != "device":
        raise ValueError(
            f"{name} is a storage of your own, which says itself where its products are made: leave device out."
        )
    matrix = read_matrix(X, name, search=False)
    if scipy.sparse.issparse(matrix):  # a data frame of sparse columns
        raise ValueError(f"{name} has sparse columns, and a device holds dense ones: pass {name}.to_numpy().")
    return matrix


def _home(matrix: Any) -> Any:
    return matrix.device if isinstance(matrix, OnDevice) else None


def _array(matrix: Any) -> Array:
    return getattr(matrix, "array", matrix)


def _moved(matrix: Any, device: Any) -> DeviceMatrix:
    torch = the_torch("on_device")
    n_rows, n_features = matrix.shape
    tensor = matrix.tensor if isinstance(matrix, DeviceMatrix) else None
    array = None if tensor is not None else _array(matrix)
    dtype = tensor.dtype if tensor is not None else getattr(torch, np.dtype(matrix.dtype).name)
    try:
        out = torch.zeros((n_features, -(-n_rows // _ALIGNED) * _ALIGNED), dtype=dtype, device=device)
        step = max(1, _MOVED_BYTES // max(1, n_features * dtype.itemsize))
        for low in range(0, n_rows, step):
            rows = slice(low, low + step)
            # a copy of the block: torch warns of arrays that must not be written to
            block = tensor[rows] if tensor is not None else torch.from_numpy(np.array(array[rows]))  # type: ignore[index]
            out[:, low : low + len(block)] = block.to(device).T
    except torch.OutOfMemoryError as error:
        raise MemoryError(
            f"X needs {in_words(matrix.nbytes)} on {device}, and there is not so much: free memory there, or give "
            "max_bytes, so that X streams through."
        ) from error
    return DeviceMatrix(out[:, :n_rows].T, out)
