"""A whole problem as one file: a model's parameters and the data, so that a bug report is a file.

An .npz file without compression: `problem` is JSON as bytes, all else are plain arrays. It is read as an
untrusted file: no pickles, estimators and members from a fixed list, no array larger than the file itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .tasks import PatternedMatrix, by_pattern, to_host
from .versions import versions

Array = np.ndarray[Any, Any]

FORMAT = "tasksieve-problem"
VERSION = 1
_SPARSE = ("csr_matrix", "csc_matrix", "csr_array", "csc_array")
_DEEPEST = 20


# What a file may name: public classes of some parts of the package that have an attribute.
_KINDS = {
    "model": (("linear", "svm", "online"), "predict"),
    "estimator": (("linear", "svm", "online"), "get_params"),  # also what is a parameter of one
    "member": (("losses", "penalties"), "certificate_form"),
}


@cache
def _classes(kind: str) -> dict[str, Any]:
    parts, attribute = _KINDS[kind]
    modules = [import_module(f".{part}", __package__) for part in parts]
    found = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {name: known for name, known in found.items() if isinstance(known, type) and hasattr(known, attribute)}


def _is_known(kind: str, value: Any) -> bool:
    return _classes(kind).get(type(value).__name__) is type(value)


@dataclass
class SavedProblem:
    """A problem that `load_problem` has read.

    Attributes
    ----------
    model : estimator
        With its parameters, not fitted.
    X, y
        As they were given: the same type, the same bytes.
    arguments : dict
        Of ``fit`` beside X and y: task, sample_weight, offset, those that were given.
    versions : dict of str
        Of the libraries where the file was written.
    """

    model: Any
    X: Any
    y: Any
    arguments: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def fit(self) -> Any:
        """The model, fitted to the data.

        Returns
        -------
        estimator
        """
        return self.model.fit(self.X, self.y, **self.arguments)


def save_problem(
    path: Any, model: Any, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None, offset: Any = None
) -> None:
    """Write a whole problem, the model's parameters and the data, as one file: what a bug report needs.

    Parameters
    ----------
    path : str or Path
        By custom ``problem.npz``.
    model : estimator of tasksieve
        Fitted or not: its parameters are written, not what it has found.
    X, y, task, sample_weight, offset
        As `fit` takes them: arrays, memory maps, sparse matrices, pandas frames and series, lists of these; tensors are
        written as arrays.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> X = np.random.default_rng(0).standard_normal((30, 4))
    >>> file = Path(tempfile.mkdtemp()) / "problem.npz"
    >>> ts.save_problem(file, ts.MultiTaskLasso(alpha=0.1), X, X[:, 0])
    >>> found = ts.load_problem(file)
    >>> found.model, found.X.tobytes() == X.tobytes()
    (MultiTaskLasso(alpha=0.1), True)
    >>> found.fit().get_support(indices=True)
    array([0])
    """
    from .tables import write_arrays  # not loaded with the names of the package

    if not _is_known("model", model):
        raise ValueError(f"model: {type(model).__name__} is no estimator of tasksieve and could not be loaded again.")
    arrays: dict[str, Array] = {}
    pack = _Packer(arrays)
    # where it was computed is no part of a problem
    known = {name: value for name, value in model.get_params(deep=False).items() if name != "device"}
    given = {"task": task, "sample_weight": sample_weight, "offset": offset}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "model": type(model).__name__,
        "parameters": {name: pack(value, name) for name, value in sorted(known.items())},
        "X": pack(X, "X"),
        "y": pack(y, "y"),
        "arguments": {name: pack(value, name) for name, value in given.items() if value is not None},
        "versions": {str(name): str(value) for name, value in versions().items()},
    }
    raw = json.dumps(content, ensure_ascii=False).encode()
    write_arrays(Path(path), {"problem": np.frombuffer(raw, dtype=np.uint8), **arrays})


def load_problem(path: Any) -> SavedProblem:
    """Read a problem that `save_problem` has written. Nothing in the file is executed.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    SavedProblem

    Raises
    ------
    ValueError
        For everything that is not such a file.
    """
    from .tables import read_arrays

    arrays = read_arrays(path, stored=True)
    try:
        content = json.loads(arrays.pop("problem").astype(np.uint8).tobytes().decode("utf-8"))
        if content["format"] != FORMAT:
            raise ValueError("not a problem file")
        if content["version"] != VERSION:
            raise ValueError(f"format version {content['version']!r}; this library reads {VERSION}")
        if content["model"] not in _classes("model"):
            raise ValueError(f"unknown model {content['model']!r}")
        unpack = _Unpacker(arrays)
        parameters = {str(name): unpack(value) for name, value in content["parameters"].items()}
        model = _classes("model")[content["model"]](**parameters)
        unknown = set(content["arguments"]) - {"task", "sample_weight", "offset"}
        if unknown:
            raise ValueError(f"unknown argument {sorted(unknown)[0]!r}")
        return SavedProblem(
            model,
            unpack(content["X"]),
            unpack(content["y"]),
            {name: unpack(value) for name, value in content["arguments"].items()},
            {str(name): str(value) for name, value in content["versions"].items()},
        )
    except ImportError as error:
        raise ValueError(f"{path}: {error}") from None
    except Exception as error:  # the file may be anything, and so may be what our constructors raise
        raise ValueError(f"{path} is not a readable problem file: {type(error).__name__}: {str(error)[:300]}") from None


class _Packer:
    """Values as JSON and arrays."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self._arrays = arrays

    def __call__(self, value: Any, name: str) -> Any:
        value = value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufU" else value
        if value is None or isinstance(value, bool | int | float | str):
            return value
        value = to_host(value)
        if isinstance(value, PatternedMatrix):
            of = value.patterns.of
            columns = None if not hasattr(value, "feature_names") else [str(own) for own in value.feature_names]
            return {
                "patterned": self._array(value.to_array(), name),
                "task": self(None if of is None else of[value.codes], name),
                "columns": self(columns, name),
            }
        if isinstance(value, np.ma.MaskedArray):
            raise ValueError(f"{name}: masked arrays are not written; put NaN where the mask is.")
        if isinstance(value, np.ndarray):
            return self._array(np.asarray(value), name)
        if scipy.sparse.issparse(value):
            kind = type(value).__name__
            if kind not in _SPARSE:
                raise ValueError(f"{name}: a {kind} is not written; use X.tocsr().")
            parts = [self._array(part, name) for part in (value.data, value.indices, value.indptr)]
            return {"sparse": kind, "parts": parts, "shape": [int(n) for n in value.shape]}
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self(item, f"{name}[{k}]") for k, item in enumerate(value)]}
        if isinstance(value, dict):
            return {"dict": [[self(key, name), self(item, f"{name}[{key!r}]")] for key, item in value.items()]}
        for kind in ("member", "estimator"):
            if _is_known(kind, value):
                own = value.parameters() if kind == "member" else value.get_params(deep=False)
                parameters = {key: self(item, f"{name}.{key}") for key, item in own.items()}
                return {kind: type(value).__name__, "parameters": parameters}
        return self._frame(value, name)

    def _frame(self, value: Any, name: str) -> Any:
        kind = type(value).__module__.partition(".")[0], type(value).__name__
        if kind == ("pandas", "Series"):
            return {"series": self._array(value.to_numpy(), name), "name": self(value.name, name)}
        if kind == ("pandas", "DataFrame"):
            columns = [[self(label, name), self._array(value[label].to_numpy(), name)] for label in value.columns]
            return {"frame": columns}
        raise ValueError(
            f"{name}: a {type(value).__name__} cannot be written to a problem file; arrays, sparse matrices, pandas "
            "frames, numbers, words and members of tasksieve can."
        )

    def _array(self, value: Array, name: str) -> Any:
        if value.dtype.names is not None:
            return {"records": [[own, self._array(value[own], name)] for own in value.dtype.names]}
        if value.dtype.kind not in "biufUS":
            return {"objects": [self(item, name) for item in value.ravel().tolist()], "shape": list(value.shape)}
        key = f"array_{len(self._arrays)}"
        self._arrays[key] = value
        return {"array": key}


class _Unpacker:
    def __init__(self, arrays: dict[str, Array]) -> None:
        self._arrays = arrays

    def __call__(self, value: Any, depth: int = 0) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if depth > _DEEPEST or not isinstance(value, dict):
            raise ValueError("values are nested in a way that is never written")
        kind = next(iter(value), "")
        if kind == "array":
            return self._arrays[value["array"]]
        if kind in ("list", "tuple"):
            items = [self(item, depth + 1) for item in value[kind]]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return {self(key, depth + 1): self(item, depth + 1) for key, item in value["dict"]}
        if kind in ("member", "estimator"):
            parameters = {str(name): self(item, depth + 1) for name, item in value["parameters"].items()}
            return _classes(kind)[value[kind]](**parameters)
        if kind == "objects":
            found = np.empty(len(value["objects"]), dtype=object)
            found[:] = [self(item, depth + 1) for item in value["objects"]]
            return found.reshape([int(n) for n in value["shape"]])
        if kind == "records":
            return self._records(value, depth)
        if kind == "sparse":
            return self._sparse(value)
        if kind in ("series", "frame"):
            return self._frame(kind, value, depth)
        if kind == "patterned":
            return self._patterned(value, depth)
        raise ValueError(f"unknown kind of value {kind!r}")

    def _records(self, value: Any, depth: int) -> Any:
        """A structured array, of survival labels."""
        fields = {str(name): np.asarray(self(own, depth + 1)) for name, own in value["records"]}
        first = next(iter(fields.values()))
        found = np.empty(first.shape, dtype=[(name, own.dtype) for name, own in fields.items()])
        for name, own in fields.items():
            if own.shape != first.shape:
                raise ValueError("the fields of records do not go together")
            found[name] = own
        return found

    def _patterned(self, value: Any, depth: int) -> Any:
        """Rows that lack columns."""
        matrix, columns = self(value["patterned"], depth + 1), self(value["columns"], depth + 1)
        if columns is not None:
            matrix = import_module("pandas").DataFrame(matrix, columns=columns)
        return by_pattern(matrix, task=self(value["task"], depth + 1), min_rows=1)

    def _sparse(self, value: Any) -> Any:
        if value["sparse"] not in _SPARSE:
            raise ValueError(f"unknown matrix {value['sparse']!r}")
        data, indices, indptr = (self(part) for part in value["parts"])
        shape = tuple(int(n) for n in value["shape"])
        if len(shape) != 2 or len(indptr) != shape[0 if "csr" in value["sparse"] else 1] + 1:
            raise ValueError("the parts of a sparse matrix do not go together")
        matrix = getattr(scipy.sparse, value["sparse"])((data, indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
        return matrix

    def _frame(self, kind: str, value: Any, depth: int) -> Any:
        pandas = import_module("pandas")
        if kind == "series":
            return pandas.Series(self(value["series"], depth + 1), name=self(value["name"], depth + 1))
        return pandas.DataFrame({self(label): self(column, depth + 1) for label, column in value["frame"]})


__all__ = ["SavedProblem", "load_problem", "save_problem"]
