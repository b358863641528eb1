"""Tensors: recognised, read, and returned in kind. torch is not imported for that: without it there are none."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse

from ..design.device.machine import refuse_single_precision, the_torch
from ..design.device.matrix import DeviceMatrix, OnDevice, StreamedMatrix
from .frames import is_frame, stack_frames
from .refusals import refuse_dimensions
from .source import Source, kind_of, register

Array = np.ndarray[Any, Any]

_CUDA = (2, 10, 13)  # of DLPack: CUDA, ROCm, memory that CUDA manages
_PLAIN = (np.ndarray, str, bytes, float, int, bool, type(None))


def is_tensor(value: Any) -> bool:
    """Whether it is a torch tensor, or an array of others that lies on a GPU (CuPy, JAX)."""
    if isinstance(value, _PLAIN):
        return False
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return True
    device = getattr(value, "__dlpack_device__", None)
    if device is None or not hasattr(value, "__dlpack__"):
        return False
    try:
        return int(device()[0]) in _CUDA
    except Exception:  # arrays that cannot say where they are, are not on a GPU that we could use
        return False


def as_tensor(value: Any) -> Any:
    """A torch tensor of the same numbers, in the same place."""
    torch = the_torch(f"X of type {type(value).__name__}, which lies on a GPU,")
    return value if isinstance(value, torch.Tensor) else torch.from_dlpack(value)


def read_tensor(X: Any, name: str = "X") -> DeviceMatrix:
    """A tensor as a matrix where it lies, a copy only if it must be: float64, float32, int8 and uint8 stay as they are,
    bool is read as uint8; others become float64."""
    tensor = as_tensor(X)
    import torch

    refuse_single_precision(tensor.device, name)
    if tensor.requires_grad:
        raise ValueError(
            f"{name} is a tensor that requires grad, and nothing here is differentiated: pass {name}.detach()."
        )
    if tensor.is_quantized:
        raise ValueError(f"{name} is a quantized tensor: pass {name}.dequantize(), or its numbers as int8.")
    if tensor.is_nested:
        raise ValueError(f"{name} is a nested tensor: pass a list of tensors, one per task ({name}.unbind()).")
    if tensor.layout != torch.strided:
        raise ValueError(
            f"{name} is a sparse tensor ({str(tensor.layout).removeprefix('torch.')}): pass {name}.to_dense(), or a "
            "scipy sparse matrix, which is kept sparse on the processor."
        )
    if tensor.is_complex():
        raise ValueError(f"Complex data not supported: {name} has dtype {tensor.dtype}.")
    if tensor.ndim != 2:
        refuse_dimensions(tensor.ndim, name, "tensor")
    if tensor.dtype == torch.bool:
        tensor = tensor.view(torch.uint8) if tensor.is_contiguous() else tensor.to(torch.uint8)
    elif tensor.dtype not in (torch.float64, torch.float32, torch.int8, torch.uint8):
        tensor = tensor.to(torch.float64)
    return DeviceMatrix(tensor.resolve_neg())


def refuse_mixed(X: list[Any]) -> None:
    """Raise a ValueError for a list of which only some are tensors, or that lie on different devices."""
    devices = [str(item.device) if isinstance(item, OnDevice) else "" for item in X]
    for t, device in enumerate(devices):
        if bool(device) != bool(devices[0]):
            one, other = ("a tensor", "no tensor") if device else ("no tensor", "one")
            raise ValueError(
                f"X[{t}] is {one}, X[0] is {other}: pass all matrices of a list as tensors, or all as arrays."
            )
        if device != devices[0]:
            raise ValueError(
                f"X[{t}] is on {device}, X[0] on {devices[0]}: all tensors of a list must be on one device. Move them: "
                f"[x.to({devices[0]!r}) for x in X]."
            )


def to_numpy(values: Any) -> Any:
    """Tensors, alone or in a list, as NumPy arrays; anything else as it is."""
    if isinstance(values, _PLAIN):
        return values
    if isinstance(values, list | tuple):
        if any(is_tensor(item) for item in values):
            return [to_numpy(item) for item in values]
        return values
    if not is_tensor(values):
        return values
    tensor = as_tensor(values).detach()
    import torch

    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.to(torch.float64)
    return np.asarray(tensor.cpu().resolve_neg().numpy())


@register
class DeviceSource(Source):
    """A tensor, or what `on_device` has made: a matrix whose products are made where it lies."""

    location = "device"
    by_columns = True

    def __init__(self, matrix: OnDevice, late: bool = True) -> None:
        super().__init__(matrix)
        self.searched_late, self.streams = late, isinstance(matrix, StreamedMatrix)

    @classmethod
    def accepts(cls, X: Any) -> bool:
        return isinstance(X, OnDevice) or is_tensor(X)

    @classmethod
    def read(cls, X: Any, name: str) -> DeviceSource:
        return cls(X) if isinstance(X, OnDevice) else cls(read_tensor(X, name), late=False)

    @classmethod
    def take_rows(cls, X: Any, rows: Array) -> OnDevice:
        matrix: OnDevice = cls.read(X, "X").matrix
        return matrix.rows(rows)

    @classmethod
    def to_host(cls, X: Any) -> Any:
        """A copy in a type that NumPy has."""
        if isinstance(X, OnDevice):
            return X.array if hasattr(X, "array") else to_numpy(getattr(X, "tensor"))  # noqa: B009
        return to_numpy(read_tensor(X).tensor if len(X.shape) == 2 else X)

    @classmethod
    def like(cls, X: Any, answer: Any) -> Any:
        """A tensor on the device of X; text stays NumPy's."""
        if not isinstance(answer, np.ndarray) or answer.dtype.kind not in "fiub":
            return answer
        import torch

        if isinstance(X, OnDevice | torch.Tensor):
            return torch.tensor(answer, device=X.device)
        found = torch.tensor(answer, device=as_tensor(X).device)
        space = getattr(X, "__array_namespace__", None)  # of CuPy, of JAX
        return found if space is None else space().from_dlpack(found)

    def first_not_finite(self) -> tuple[int, int, float] | None:
        found: tuple[int, int, float] | None = self.matrix.first_not_finite()
        return found


def to_host(X: Any) -> Any:
    """X itself; of a tensor, a copy in this process's memory."""
    return kind_of(X).to_host(X)


def like(X: Any, answer: Any) -> Any:
    """An answer about rows of X in the kind and on the device of X: a tensor for a tensor."""
    first = X[0] if isinstance(X, list | tuple) and len(X) else X
    if isinstance(answer, list):
        return [like(first, part) for part in answer]
    return kind_of(first).like(first, answer)


def stack_rows(parts: list[Any]) -> Any:
    """Matrices on top of each other, in the kind of the first one."""
    if kind_of(parts[0]).location == "device":
        import torch

        return DeviceMatrix(torch.cat([DeviceSource.read(part, "X").matrix.tensor for part in parts]))
    if len(parts) == 1:
        return parts[0]
    if any(map(scipy.sparse.issparse, parts)):
        return scipy.sparse.vstack(parts, format="csr")
    return stack_frames(parts) if is_frame(parts[0]) else np.concatenate(parts)
