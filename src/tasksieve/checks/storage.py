"""The properties of a storage: products and columns are those of the matrix it holds."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ..design.storage import OwnStorage, ProductRequest
from ..docstrings import described_by
from .claims import FAILURE, SEED, claim, unchanged

Array = np.ndarray[Any, Any]

TOLERANCE = 1e-12


@described_by(SEED, raises=FAILURE)
def check_storage(
    make: Callable[[Array], Any] | Any, dense: Any = None, *, values: str = "numbers", seed: int = 0
) -> None:
    """Check that a storage answers as the matrix that it holds.

    Either a function that stores any matrix, or a storage with the matrix that it stands for, for columns
    that are computed. What is checked (with a function also for matrices with zero rows and columns, of one feature or
    one row):

    - S0: `n_rows`, `n_features` and `dtype`; neither the matrix nor arguments are changed; the same answer twice;
    - S1: `products`: of all columns and of some in any order, with squares, for one task and several, for stacked rows
      and for one matrix shared by all tasks, with one thread and two;
    - S2: `read` (where the storage has it): products of several vectors at once, of all columns and of some;
    - S3: `take`: columns in any order, float64, in Fortran order, that one may write to.

    Parameters
    ----------
    make : callable or storage
        ``make(x)`` gives the storage of a dense array. The storage may follow the public protocol (``products(vectors,
        features=None, squares=False)``) or the one of `tasksieve.design.Design`.
    dense : array of shape (n_rows, n_features), optional
        The same numbers as the storage that is given in place of `make`; they may differ by rounding.
    values : {"numbers", "counts"}, default="numbers"
        What the x of `make` holds: multiples of 1/8 between -4 and 4, which float32 holds exactly, or 0, 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> ts.checks.check_storage(ts.design.as_storage)
    >>> class Powers(ts.Storage):
    ...     n_rows, n_features = 20, 4
    ...     def take(self, features):
    ...         return np.linspace(0.0, 1.0, 20)[:, None] ** features
    >>> ts.checks.check_storage(Powers(), np.vander(np.linspace(0.0, 1.0, 20), 4, increasing=True))
    """
    if dense is not None:
        _check_one(make, np.array(dense, dtype=np.float64), np.random.default_rng(seed))
        return
    if not callable(make):
        raise ValueError("check_storage needs a function that stores a matrix, or a storage and its matrix (`dense`).")
    if values not in ("numbers", "counts"):
        raise ValueError(f"values must be 'numbers' or 'counts'; got {values!r}.")
    rng = np.random.default_rng(seed)
    for rows, features in ((23, 9), (40, 3), (7, 1), (1, 5)):
        if values == "counts":
            x = rng.integers(0, 3, (rows, features)).astype(np.float64)
        else:
            x = rng.integers(-32, 33, (rows, features)) / 8.0
            x[rng.random(x.shape) < 0.3] = 0.0
        if rows > 1:
            x[rng.integers(rows)] = 0.0
        x[:, features // 2] = 0.0 if features > 1 else x[:, 0]
        given = x.copy()
        with unchanged("S0", "make", x=given):
            _check_one(make(given), x, rng)


def _check_one(made: Any, x: Array, rng: np.random.Generator) -> None:
    """A storage against the matrix that it stands for."""
    if "offsets" in inspect.signature(made.products).parameters:
        _StorageCase(made, x, rng).check(shared=True)
        return
    # one of the public protocol, put into that of designs: as it is, and with its rows in another order
    order = rng.permutation(made.n_rows)
    _StorageCase(OwnStorage(made), x, rng).check(shared=True)
    _StorageCase(OwnStorage(made, order), x[order], rng).check(shared=False)


class _StorageCase:
    """One storage beside the matrix it should be."""

    def __init__(self, storage: Any, x: Array, rng: np.random.Generator) -> None:
        self.storage, self.x, self.rng = storage, x, rng

    def check(self, shared: bool) -> None:
        """All properties; rows of a shared matrix have no other order than their own."""
        self.facts()
        rows = len(self.x)
        cuts = np.unique(np.r_[0, self.rng.integers(0, rows + 1, 3), rows]).astype(np.int64)
        for offsets in (np.array([0, rows]), cuts):
            self.products(offsets, shared=False)
            self.read(offsets, shared=False)
        for tasks in (1, 3) if shared else ():
            self.products(rows * np.arange(tasks + 1), shared=True)
            self.read(rows * np.arange(tasks + 1), shared=True)
        self.take()

    def facts(self) -> None:
        found, dtype = (self.storage.n_rows, self.storage.n_features), self.storage.dtype
        words = "S0: `n_rows` and `n_features` must be those of the matrix."
        claim(found == self.x.shape, words, found=found, expected=self.x.shape)
        numbers = isinstance(dtype, np.dtype) and dtype.kind in "fiub"
        claim(numbers, "S0: `dtype` must be a NumPy dtype of numbers.", dtype=dtype)

    def columns(self) -> list[Array | None]:
        """All, a few in any order, one, none."""
        d = self.x.shape[1]
        order = self.rng.permutation(d)
        return [None, order[: max(1, d // 2)], order[:1], np.empty(0, dtype=np.int64)]

    def expected(self, vector: Array, offsets: Array, shared: bool, columns: Array | None, squares: bool) -> Array:
        x = self.x if columns is None else self.x[:, columns]
        x = x * x if squares else x
        parts = zip(offsets[:-1], offsets[1:], strict=True)
        return np.stack([(x if shared else x[a:b]).T @ vector[a:b] for a, b in parts], axis=1)

    def products(self, offsets: Array, shared: bool) -> None:
        vector = self.rng.standard_normal(int(offsets[-1]))
        words = "S1: `products` must be the sums of x_ij (squared, with `squares`) times the vector over a task's rows."
        for columns, squares, threads in product(self.columns(), (False, True), (1, 2)):
            request = (offsets, shared, columns, squares)
            with unchanged("S0", "products", vector=vector):
                found = self.storage.products(vector, *request, threads)
            where = dict(zip(("offsets", "shared", "columns", "squares"), request, strict=True), threads=threads)
            self.same(words, found, self.expected(vector, *request), **where)
            again = self.storage.products(vector, *request, threads)
            claim(np.array_equal(found, again), "S0: `products` must give the same answer twice.")

    def read(self, offsets: Array, shared: bool) -> None:
        """Two vectors and squares over all columns, one with other offsets, some columns: all at once."""
        if not hasattr(self.storage, "read"):
            return
        rows, total = len(self.x), int(offsets[-1])
        whole = np.array([0, rows])
        asked = [
            ProductRequest(self.rng.uniform(0.0, 2.0, total), offsets, shared, None, True),
            ProductRequest(self.rng.standard_normal(total), offsets, shared),
            ProductRequest(self.rng.standard_normal(rows), whole, False, None, True),
            ProductRequest(self.rng.standard_normal(total), offsets, shared),
            ProductRequest(self.rng.standard_normal(total), offsets, shared, self.columns()[1]),
        ]
        words = "S2: `read` must give the `products` of each vector, in the order of the request."
        for chosen in (asked, asked[:1], asked[1::2], asked[-1:]):
            with unchanged("S0", "read", **{f"vector_{k}": a.vector for k, a in enumerate(chosen)}):
                products, spent = self.storage.read(chosen, 2)
            claim(len(products) == len(chosen), words, found=len(products), expected=len(chosen))
            for a, found in zip(chosen, products, strict=True):
                expected = self.expected(a.vector, a.offsets, a.shared, a.columns, a.squares)
                self.same(words, found, expected, offsets=a.offsets, columns=a.columns, squares=a.squares)
            claim(0.0 <= spent <= len(chosen), "S2: `read` must return its cost in readings.", found=spent)

    def take(self) -> None:
        for columns in self.columns():
            features = np.arange(self.x.shape[1]) if columns is None else columns
            found = self.storage.take(features)
            self.same("S3: `take` must give the requested columns.", found, self.x[:, features], columns=features)
            plain, flags = found.dtype == np.float64 and found.flags.f_contiguous, str(found.flags).replace("\n", ",")
            claim(plain, "S3: `take` must give float64 in Fortran order.", dtype=found.dtype, flags=flags)
            if found.size:
                before = found.copy()
                found += 1.0  # a solver may write to what it was given
                words = "S3: what `take` gives must be a copy: writing to it changes the storage."
                claim(np.array_equal(self.storage.take(features), before), words)

    @staticmethod
    def same(words: str, found: Any, expected: Array, **where: Any) -> None:
        shape = np.shape(found)
        alike = isinstance(found, np.ndarray) and shape == expected.shape
        claim(alike, f"{words} The shape is wrong.", shape=shape, expected=expected.shape, **where)
        wrong = ~(np.abs(found - expected) <= TOLERANCE * (1.0 + np.abs(expected).max(initial=0.0)))
        if wrong.any():
            at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            position = tuple(int(i) for i in at)
            claim(False, words, position=position, found=found[at], expected=expected[at], **where)
