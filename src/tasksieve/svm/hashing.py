"""Strings as sparse rows: hashed weighted-degree features, and FASTA files."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._kernels import kernels
from ..design import thread_count
from ..fitted.shown import Shown
from ..tasks import refuse_masked_or_complex
from .problem import StringSource

BLOCK_ROWS = 1 << 14
LONGEST = 1 << 16


class WeightedDegreeHasher(Shown, TransformerMixin, BaseEstimator):
    r"""Sparse features of strings of one length: which k-mer stands where, for k = 1, ..., degree.

    .. math::

        \langle \phi(s), \phi(t) \rangle = \frac1Z \sum_{k=1}^{K} \beta_k \sum_{p=1}^{l-k+1}
        \bigl[s_{p..p+k-1} = t_{p..p+k-1}\bigr], \qquad \beta_k = \frac{2 (K - k + 1)}{K (K + 1)},

    the weighted-degree kernel (Sonnenburg et al. 2007; Sonnenburg & Franc 2010), scaled so that
    :math:`\lVert \phi(s) \rVert = 1`. Short k-mers have a column each; longer ones share the other columns by
    hashing, and features that collide in one column add up.

    Parameters
    ----------
    degree : int, default=8
        K, the longest k-mer.
    n_features : int, default=2**22
        Columns.
    alphabet : str, default="ACGT"
        The letters; upper and lower case are the same. A k-mer with any other letter (N, say) has no feature.

    Attributes
    ----------
    length_ : int
        Length of the strings, learned by `fit`.
    n_direct_ : int
        Degrees up to this one have a column for every k-mer and position.

    Notes
    -----
    `transform` reads any iterable of strings block by block; only its result is held in memory. To train without
    holding even that, pass the hasher to `GraphSVC` and the strings to its ``fit``.

    Examples
    --------
    >>> from tasksieve import WeightedDegreeHasher
    >>> hasher = WeightedDegreeHasher(degree=3, n_features=2**12)
    >>> X = hasher.fit_transform(["ACGTACGT", "ACGTTCGT", "acgtnnnn"])
    >>> X.shape, X.dtype
    ((3, 4096), dtype('float64'))
    >>> (X @ X.T).toarray().round(3)
    array([[1.   , 0.773, 0.455],
           [0.773, 1.   , 0.455],
           [0.455, 0.455, 0.455]])
    """

    def __init__(self, degree: int = 8, *, n_features: int = 2**22, alphabet: str = "ACGT") -> None:
        self.degree = degree
        self.n_features = n_features
        self.alphabet = alphabet

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the length of the strings.

        Parameters
        ----------
        X : iterable of str or bytes, array of such, or uint8 array of shape (n, length)
        y : ignored

        Returns
        -------
        self
        """
        if isinstance(X, Iterator):
            raise ValueError(
                "fit cannot read an iterator, which could be read only once: pass a list or an array."
            )
        self._set_length(
            read_strings(X[:1] if hasattr(X, "__getitem__") else list(islice(iter(X), 1))).shape[1]
        )
        return self

    def transform(self, X: Any) -> scipy.sparse.csr_matrix:
        """Hash strings.

        Parameters
        ----------
        X : iterable of str or bytes, array of such, or uint8 array of shape (n, length)

        Returns
        -------
        csr_matrix of shape (n, n_features), float64
        """
        check_is_fitted(self, "length_")
        blocks = [self._hash(text) for text in _blocks(X)]
        if not blocks:
            return scipy.sparse.csr_matrix((0, self.n_features))
        return scipy.sparse.vstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]

    def source(self, X: Any) -> StringSource:
        """The strings with what hashes them, for solvers that compute features on the fly."""
        check_is_fitted(self, "length_")
        text = read_strings(X, self.length_)
        return StringSource(
            text, self._letters, self._bits, self.n_direct_, self._offset, self._weight, int(self.n_features)
        )

    def _hash(self, text: np.ndarray) -> scipy.sparse.csr_matrix:
        source = self.source(text)
        rows, threads = source.rows(), thread_count()
        counts = np.empty(len(text), dtype=np.int64)
        kernels.count_hashed(rows, threads, counts)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        indices, values = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1])
        kernels.hash_rows(rows, threads, indptr, indices, values)
        matrix = scipy.sparse.csr_matrix((values, indices, indptr), shape=(len(text), int(self.n_features)))
        matrix.sum_duplicates()
        return matrix

    def _set_length(self, length: int) -> None:
        if not isinstance(self.alphabet, str) or not 2 <= len(set(self.alphabet.upper())) <= 128:
            raise ValueError(
                f"alphabet must be a string of 2 to 128 different letters, got {self.alphabet!r}."
            )
        if not self.alphabet.isascii():
            raise ValueError("alphabet must be ASCII: strings are read as bytes.")
        letters = sorted(set(self.alphabet.upper()))
        bits = max(1, int(np.ceil(np.log2(len(letters)))))
        if not isinstance(self.degree, int | np.integer) or not 1 <= self.degree <= 64 // bits:
            raise ValueError(
                f"degree must be an integer from 1 to {64 // bits} (a k-mer of {len(letters)} letters takes "
                f"{bits} of 64 bits per letter); got {self.degree!r}."
            )
        if not isinstance(self.n_features, int | np.integer) or not 1 <= self.n_features < 2**31:
            raise ValueError(f"n_features must be an integer from 1 to 2**31 - 1, got {self.n_features!r}.")
        if not 1 <= length <= LONGEST:
            raise ValueError(f"Strings must have 1 to {LONGEST} letters, these have {length}.")
        degree = int(self.degree)
        offset, direct = np.zeros(degree + 1, dtype=np.int64), 0
        for k in range(1, degree + 1):
            end = int(offset[k - 1]) + (length << (bits * k)) if bits * k < 32 else 2**62
            if direct < k - 1 or end > (self.n_features if k == degree else self.n_features // 2):
                offset[k] = offset[k - 1]
                continue
            offset[k], direct = end, k
        codes = np.full(256, 255, dtype=np.uint8)
        for code, letter in enumerate(letters):
            codes[[ord(letter), ord(letter.lower())]] = code
        each = np.arange(1, degree + 1)
        squares = 2.0 * (degree - each + 1) / (degree * (degree + 1))
        total = float(np.sum(squares * np.maximum(length - each + 1, 0)))
        self.length_, self.n_direct_ = int(length), direct
        self._letters, self._bits, self._offset = codes, bits, offset
        self._weight = np.sqrt(squares / total).astype(np.float32)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.no_validation = True
        return tags


def _blocks(X: Any) -> Iterator[np.ndarray]:
    """Strings as uint8 arrays of a few thousand rows each."""
    if isinstance(X, str | bytes):
        raise ValueError("X is one string: pass a list of strings.")
    if hasattr(X, "__getitem__") and hasattr(X, "__len__"):
        for start in range(0, len(X), BLOCK_ROWS):
            yield read_strings(X[start : start + BLOCK_ROWS])
        return
    items = iter(X)
    while block := list(islice(items, BLOCK_ROWS)):
        yield read_strings(block)


def read_strings(X: Any, length: int | None = None) -> np.ndarray:
    """Strings of one length as a uint8 array of shape (n, length); arrays of bytes are viewed, not copied."""
    refuse_masked_or_complex(X, "X")
    if isinstance(X, np.ndarray) and X.dtype == np.uint8 and X.ndim == 2:
        text = np.ascontiguousarray(X)
    else:
        array = np.asarray(X)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1 or array.dtype.kind not in "SUOT" or not len(array):
            raise ValueError(
                "Expected strings: a non-empty list or 1-D array of str or bytes of one length, or a uint8 array of "
                f"shape (n, length); got an array of shape {array.shape} and dtype {array.dtype}."
            )
        if array.dtype.kind == "S":
            lengths: Any = np.char.str_len(array)
        else:
            lengths = np.array([len(item) for item in array])
        if lengths.min() != lengths.max():
            row = int(np.argmax(lengths != lengths[0]))
            raise ValueError(
                f"All strings must have one length: row 1 has {lengths[0]} letters, row {row + 1} has {lengths[row]}."
            )
        if lengths[0] == 0:
            raise ValueError("The strings are empty.")
        if array.dtype.kind != "S":
            try:
                array = np.array(
                    [
                        item if isinstance(item, bytes) else str(item).encode("ascii")
                        for item in array.tolist()
                    ]
                )
            except UnicodeEncodeError as error:
                raise ValueError("Strings must be ASCII.") from error
        array = np.ascontiguousarray(array)
        text = array.view(np.uint8).reshape(len(array), array.dtype.itemsize)[:, : int(lengths[0])]
        text = np.ascontiguousarray(text)
    if length is not None and text.shape[1] != length:
        raise ValueError(f"The strings have {text.shape[1]} letters, the hasher was fitted to {length}.")
    return text


def read_fasta(path: Any) -> tuple[list[str], np.ndarray]:
    """Read a FASTA file, plain or gzipped.

    Parameters
    ----------
    path : str or Path
        gzip is recognised by its first two bytes, not by the name.

    Returns
    -------
    names : list of str
        The lines behind ``>``.
    sequences : ndarray of bytes (n,)
        All of one length: what `WeightedDegreeHasher` and `GraphSVC` with a hasher read.
    """
    names: list[str] = []
    parts: list[list[bytes]] = []
    with Path(path).open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if zipped else Path(path).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            line = line.strip()
            if line.startswith(b">"):
                names.append(line[1:].decode("utf-8", "replace").strip())
                parts.append([])
            elif line and not line.startswith(b";"):
                if not names:
                    raise ValueError(f"{path}, line {number}: a FASTA file starts with a line '>name'.")
                parts[-1].append(line)
    if not names:
        raise ValueError(f"{path} has no sequences: no line starts with '>'.")
    sequences = [b"".join(part) for part in parts]
    for name, sequence in zip(names, sequences, strict=True):
        if len(sequence) != len(sequences[0]):
            raise ValueError(
                f"{path}: {name!r} has {len(sequence)} letters, {names[0]!r} has "
                f"{len(sequences[0])}. Cut the sequences "
                "to windows of one length."
            )
    if not sequences[0]:
        raise ValueError(f"{path}: {names[0]!r} has no letters.")
    return names, np.array(sequences)
