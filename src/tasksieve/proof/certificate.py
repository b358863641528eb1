"""A certificate as an object: what it claims, and the file that carries it."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from .. import verify
from ..atomic import write_atomically
from ..docstrings import described_by

Array = np.ndarray[Any, Any]

VALUE = """
value : int, default=0
    Of a path.
"""

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # the same certificate is the same bytes


class Certificate:
    r"""A proof that travels: coefficients, a dual point, and what the two prove on data named by their digests.

    .. math:: P(W', b') \ge \text{objective} - \text{gap} \qquad \text{for every } W', b'

    Made by the ``certificate`` method of a fitted model or of a path. `save` writes it as one file; a reader who has
    the data checks it with ``verify.py``, a single file that shares no code with the library, or with
    ``tasksieve verify``. The format is described in "The certificate file".

    Attributes
    ----------
    header : dict
        The problem, the data's digests, labels of tasks and classes.
    arrays : dict of ndarray
    objectives, dual_values, gaps : ndarrays of shape (K,)
        The claims: K values of a path, 1 for a model. Gaps are those that the verifier proves in floating point,
        widened by the rounding that another processor may add.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks()
    >>> model = ts.MultiTaskLasso(alpha=0.1).fit(X, y, task=task)
    >>> certificate = model.certificate(X, y, task=task)
    >>> certificate
    Certificate of 1 value, 2 tasks, 8 features
    >>> certificate.verify(X, y, task=task).proved, certificate.verify(X, y[::-1], task=task).proved
    (True, False)
    >>> np.flatnonzero(~certificate.proven_zero()), np.flatnonzero(certificate.proven_nonzero())
    (array([0]), array([0]))
    """

    def __init__(self, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.header, self.arrays = header, arrays

    @property
    def n_values(self) -> int:
        return len(self.arrays["alpha"])

    @property
    def objectives(self) -> Array:
        return self.arrays["objective"]

    @property
    def dual_values(self) -> Array:
        return self.arrays["dual_value"]

    @property
    def gaps(self) -> Array:
        return self.arrays["gap"]

    def __repr__(self) -> str:
        values, tasks, d = self.n_values, len(self.header["tasks"]), self.header["n_features"]
        return (
            f"Certificate of {values} value{'s' * (values != 1)}, {tasks} task{'s' * (tasks != 1)}, "
            f"{d} feature{'s' * (d != 1)}"
        )

    @described_by(VALUE)
    def proven_zero(self, value: int = 0) -> Array:
        """Which features are zero in every solution, of shape (d,)."""
        found = np.ones(self.header["n_features"], dtype=bool)
        found[self._listed("open", value)] = False
        return found

    @described_by(VALUE)
    def proven_nonzero(self, value: int = 0) -> Array:
        """Which features are not zero in any solution, of shape (d,)."""
        found = np.zeros(self.header["n_features"], dtype=bool)
        found[self._listed("sure", value)] = True
        for features, _ in self.needs(value):
            found[features] |= len(features) == 1
        return found

    @described_by(VALUE)
    def needs(self, value: int = 0) -> list[tuple[Array, float]]:
        r"""Which features are needed, and by how much.

        .. math:: P(W', b') \ge P(W, b) + \delta \qquad \text{for every } W', b' \text{ with } W'_S = 0

        Returns
        -------
        list of (features, delta)
            Of each claim the features S (one; or several near copies, or a group, of which one is needed), and delta in
            the units of the objective. Empty unless need was asked for (``certificate(..., need=True)``).
        """
        if "need" not in self.arrays:
            return []
        value, arrays = range(self.n_values)[value], self.arrays
        return [
            (arrays["need"][slice(*arrays["need_start"][i : i + 2])], float(arrays["need_delta"][i]))
            for i in np.flatnonzero(arrays["need_value"] == value)
        ]

    def _listed(self, name: str, value: int) -> Array:
        if name not in self.arrays:
            return np.arange(self.header["n_features"]) if name == "open" else np.arange(0)
        value = range(self.n_values)[value]
        return self.arrays[name][slice(*self.arrays[f"{name}_start"][value : value + 2])]

    def verify(
        self,
        X: Any,
        y: Any,
        *,
        task: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        value: int | None = None,
        exact: bool = False,
    ) -> verify.Verdict:
        """Have the verifier check it.

        Parameters
        ----------
        X, y, task, sample_weight, offset
            The data.
        value : int, optional
            One value of a path; by default all.
        exact : bool, default=False
            Rational arithmetic: no floating point is trusted. Slow.

        Returns
        -------
        Verdict
            True if proved; ``words`` says what, or what differs.
        """
        if hasattr(X, "patterns") and task is None:  # rows of by_pattern: found again by their columns
            of, X, codes = X.patterns.of, X.to_array(), X.codes
            task = None if of is None else of[codes]
        if hasattr(X, "readable"):  # genotypes: missing calls are means of tasks
            X = X.readable(None if task is None else np.unique(np.asarray(task), return_inverse=True)[1])
        return verify.verify(
            self.to_bytes(),
            X,
            y,
            task=task,
            sample_weight=spread(sample_weight, y),
            offset=spread(offset, y),
            value=value,
            exact=exact,
        )

    def to_bytes(self) -> bytes:
        """The file's content."""
        stream = io.BytesIO()
        self._write(stream)
        return stream.getvalue()

    def save(self, path: Any) -> None:
        """Write the file, by custom ``certificate.npz``.

        Parameters
        ----------
        path : str or Path
        """
        write_atomically(Path(path), self._write)

    def _write(self, file: IO[bytes]) -> None:
        write_archive(file, self.header, self.arrays)


def write_archive(file: IO[bytes], header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """A header and arrays of numbers as the format has them: the same content is the same bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        text = json.dumps(header, ensure_ascii=False, allow_nan=False, indent=1)
        archive.writestr(zipfile.ZipInfo("header.json", _FIRST_DAY), text.encode())
        for name, values in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", _FIRST_DAY)
            kind = "|u1" if values.dtype == np.uint8 else "<i8" if values.dtype.kind in "iu" else "<f8"
            content = np.ascontiguousarray(values, dtype=kind)
            with archive.open(member, "w", force_zip64=content.nbytes > 1 << 30) as stream:
                np.lib.format.write_array(stream, content, version=(1, 0), allow_pickle=False)


def spread(values: Any, y: Any) -> Any:
    """One number for all rows in the form of y."""
    if values is None or isinstance(values, list | tuple | dict) or np.ndim(values):
        return values
    if isinstance(y, dict):
        return {label: np.full(np.shape(part), float(values)) for label, part in y.items()}
    if isinstance(y, list | tuple) and len(y) and np.ndim(y[0]):
        return [np.full(np.shape(part), float(values)) for part in y]
    return np.full(np.shape(y), float(values))
