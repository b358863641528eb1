"""What the tests of devices need: torch where it is installed, X in every form, and proof that it was left alone."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

HAVE_TORCH = importlib.util.find_spec("torch") is not None
#: the same tests on the processor and, by `make test-gpu`, on a GPU
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
KEPT = ["float64", "float32", "int8", "uint8"]
CONVERTED = ["int64", "float16", "bool"]


def tensor(x: Any, dtype: str = "float64", device: str = "cpu") -> Any:
    import torch

    return torch.tensor(np.asarray(x), dtype=getattr(torch, dtype), device=device)


@contextmanager
def untouched(*tensors: Any) -> Iterator[None]:
    """The bytes of all tensors are the same afterwards."""
    before = [t.cpu().clone().contiguous().numpy().tobytes() for t in tensors]
    strides = [t.stride() for t in tensors]
    yield
    assert [t.cpu().clone().contiguous().numpy().tobytes() for t in tensors] == before
    assert [t.stride() for t in tensors] == strides


def forms(x: Any, dtype: str, device: str) -> dict[str, Any]:
    """The same matrix as tensors that lie in different ways."""
    import torch

    plain = tensor(x, dtype, device)
    wide = torch.zeros((2 * len(x), 2 * x.shape[1]), dtype=plain.dtype, device=device)
    wide[::2, ::2] = plain
    return {
        "rows together": plain,
        "columns together": plain.T.contiguous().T,
        "strided": wide[::2, ::2],
        "a transposed view": plain.T.clone().T,
    }
