"""Columns on a device, verb by verb, are those of the matrix they were made of; X is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_helpers import DEVICES, KEPT, forms, tensor, untouched

import tasksieve as ts
from tasksieve.design import DenseStorage, as_storage
from tasksieve.design.device.matrix import DeviceMatrix, StreamedMatrix
from tasksieve.design.storage import ProductRequest

WAYS = ["rows together", "columns together", "strided", "a transposed view"]


def counts(dtype: str) -> str:
    return "counts" if dtype in ("int8", "uint8") else "numbers"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", KEPT)
@pytest.mark.parametrize("way", WAYS)
def test_a_storage_on_a_device_answers_as_the_matrix(dtype: str, way: str, device: str) -> None:
    def make(x: Any) -> Any:
        own = forms(x, dtype, device)[way]
        with untouched(own):
            found = as_storage(DeviceMatrix(own))
        assert found.dtype == np.dtype(dtype)
        return found

    ts.checks.check_storage(make, values=counts(dtype))


@pytest.mark.parametrize("device", DEVICES)
def test_stacked_and_sorted(device: str) -> None:
    def make(x: Any) -> Any:
        parts = [tensor(x[: len(x) // 2], device=device), tensor(x[len(x) // 2 :], device=device)]
        return as_storage([DeviceMatrix(part) for part in parts])

    def sort(x: Any) -> Any:
        order = np.random.default_rng(0).permutation(len(x))
        return as_storage(DeviceMatrix(tensor(x[order], device=device)), np.argsort(order))

    ts.checks.check_storage(make)
    ts.checks.check_storage(sort)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", KEPT)
def test_as_a_storage_of_the_users_own(dtype: str, device: str) -> None:
    ts.checks.check_storage(lambda x: DeviceMatrix(tensor(x, dtype, device)), values=counts(dtype))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", KEPT)
@pytest.mark.parametrize("order", ["C", "F"])
def test_streamed_columns(dtype: str, order: Any, device: str) -> None:
    from tasksieve.design.device.streamed import StreamedStorage

    widths = []

    def make(x: Any) -> Any:
        import torch

        array = np.array(x, dtype=dtype, order=order)
        array.flags.writeable = False
        found = as_storage(StreamedMatrix(array, torch.device(device), 24.0 * 2 * len(x)))
        assert isinstance(found, StreamedStorage)
        widths.append(found._width)
        return found

    ts.checks.check_storage(make, values=counts(dtype))
    assert set(widths) == {1, 2}  # several blocks, an odd one at the end


@pytest.mark.parametrize("device", DEVICES)
def test_streamed_columns_stacked_and_sorted(device: str) -> None:
    import torch

    def make(x: Any) -> Any:
        order = np.random.default_rng(0).permutation(len(x))
        parts = [x[order][: len(x) // 3], x[order][len(x) // 3 :]]
        return as_storage([StreamedMatrix(p, torch.device(device), 1e5) for p in parts], np.argsort(order))

    ts.checks.check_storage(make)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", KEPT)
def test_the_same_products_as_the_dense_storage(dtype: str, device: str, rng: np.random.Generator) -> None:
    """Beside the battery: random numbers that fill the type, tasks without rows, many vectors at once."""
    low, high = (-128, 128) if dtype == "int8" else (0, 256)
    x = rng.integers(low, high, (57, 33)) if counts(dtype) == "counts" else rng.standard_normal((57, 33))
    x = x.astype(dtype)
    given = tensor(x, dtype, device)
    dense, found = DenseStorage(np.asfortranarray(x)), as_storage(DeviceMatrix(given))
    offsets = np.array([0, 1, 20, 20, 56, 57])
    columns = rng.permutation(33)[:7]
    asked = [
        ProductRequest(rng.standard_normal(57), offsets),
        ProductRequest(rng.uniform(0, 2, 57), offsets, squares=True),
        ProductRequest(rng.standard_normal(57 * 3), 57 * np.arange(4), True),
        ProductRequest(rng.standard_normal(57), offsets, columns=columns),
    ]
    with untouched(given):
        ours, theirs = found.read(asked, 1), dense.read(asked, 1)
    for a, b in zip(ours.products, theirs.products, strict=True):
        assert a.shape == b.shape
        assert np.max(np.abs(a - b)) <= 1e-12 * np.max(np.abs(b))
    assert np.array_equal(found.take(columns), dense.take(columns))


def test_columns_that_lie_well_are_not_copied(rng: np.random.Generator) -> None:
    moved = ts.on_device(rng.standard_normal((13, 5)), "cpu")
    found = as_storage(moved)
    assert found.x.data_ptr() == moved.tensor.data_ptr()
    ts.checks.check_storage(lambda x: as_storage(ts.on_device(x, "cpu")))


def test_a_column_too_long_for_the_room() -> None:
    import torch

    with pytest.raises(MemoryError, match=r"single column of 100 rows needs 2.4 kB on cpu, and 50 bytes are allowed"):
        as_storage(StreamedMatrix(np.zeros((100, 3)), torch.device("cpu"), 50.0))
