"""``tasksieve fit data.zarr --cluster ADDRESS``: a Zarr store whose columns stay with the workers of a Dask cluster.

The store is a group: ``X`` (rows x features, in blocks of features that hold all rows), ``y`` (rows, or rows x tasks),
and as far as there are any ``task``, ``weights``, ``groups`` (rows) and ``features`` (names of the features). Options
such as --target and --task name other arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..design.cluster.needs import needed
from ..tables.encode import Encoding
from ..tables.problem import TableProblem
from ..tables.row_columns import groups_column
from ..tables.survival_columns import side_by_side
from ..tables.table import Column, Table
from ..tasks.cluster import ClusterMatrix, open_zarr
from .exit_codes import UsageError
from .options import refuse
from .outcomes import survival_of
from .source import Source

SUFFIX = ".zarr"
# Arrays beside X and y, by the option that names another.
_BESIDE = {"task": "task", "weights": "weights", "row_groups": "groups", "offset": "offset"}
# Options that choose or change columns of a table.
_OF_TABLES = (
    "features", "drop", "categorical", "reference", "id", "chunk_rows", "format", "separator", "encoding", "decimal",
    "sheet", "value_labels", "min_rows", "exclude_task", "exclude_class",
)  # fmt: skip


class ZarrSource(Source):
    """A Zarr store, X with the workers of a cluster."""

    problem: TableProblem

    @classmethod
    def recognises(cls, config: dict[str, Any]) -> bool:
        return str(config.get("table", "")).rstrip("/").endswith(SUFFIX)

    @classmethod
    def decide(cls, config: dict[str, Any]) -> None:
        """Arrays that are meant where no others are named."""
        super().decide(config)
        refuse((key for key in _OF_TABLES if config.get(key)), "is for tables; X of a Zarr store is used as it is")
        config.setdefault("target", ["y"])
        if not Path(config["table"]).is_dir():  # said when it is read
            return
        group = _group(config)
        for key, name in _BESIDE.items():
            if config.get(key) is None and name in group and key != "offset":
                config[key] = name

    @classmethod
    @contextmanager
    def connected(cls, address: str | None) -> Iterator[None]:
        distributed = needed("distributed", "--cluster")
        options = {"dashboard_address": ":0"} if address is None else {"address": address}
        try:
            client = distributed.Client(**options)
        except OSError as error:
            raise UsageError(f"--cluster: no answer from {address}: {error}") from None
        with client:
            yield

    def read(self) -> Source:
        config, group = self.config, _group(self.config)

        def array(name: str, option: str) -> np.ndarray:
            if name not in group:
                has = ", ".join(sorted(group))
                raise UsageError(f"{option}: {config['table']} has no array {name!r}; it has {has}")
            return np.asarray(group[name][...])

        matrix = ClusterMatrix(open_zarr(config["table"], "X"))
        y = self._labels(array)
        asked = {**config, "row_groups": groups_column(config.get("row_groups"))}
        beside = {key: array(asked[key], f"--{key}") for key in _BESIDE if asked.get(key)}
        names = [str(name) for name in array("features", "features")] if "features" in group else None
        rows, n_features = matrix.shape
        for name, values in {"y": y, **beside, "features": [None] * n_features if names is None else names}.items():
            expected = n_features if name == "features" else rows
            if len(values) != expected:
                raise UsageError(f"{config['table']}: {name} has {len(values)} entries, X has shape {matrix.shape}")
        words = y.dtype.kind in "OUST"
        if words:
            y = y.astype(object)
        targets = list(config["target"])
        if y.ndim == 2 and len(targets) != y.shape[1]:
            targets = [f"{targets[0]}{t}" for t in range(y.shape[1])]
        self.problem = TableProblem(
            matrix,
            y,
            beside.get("task"),
            beside.get("weights"),
            targets,
            Encoding([], names or [f"x{j}" for j in range(n_features)]),
            None,
            np.arange(rows),
            rows,
            groups=beside.get("row_groups"),
            classes=self.kind.wants_classes(config.get("loss"), words),
            offset=beside.get("offset"),
        )
        return self

    def _labels(self, array: Callable[[str, str], np.ndarray]) -> np.ndarray:
        """The targets, or the survival outcomes, of arrays of the store."""
        config, survival = self.config, survival_of(self.config)
        if self.kind.targets == "mixed":
            raise UsageError(f"--model mixed: reads tables; {config['table']} is a Zarr store")
        found = [] if survival else [array(name, "--target") for name in config["target"]]
        for own in survival.values():
            columns = {name: as_column(array(name, option)) for option, name in own.flags.items()}
            table = Table(config["table"], len(columns[own.time].values), columns)
            found.append(own.read(table, np.arange(table.n_rows)))
        if len(found) == 1:
            return found[0]
        return side_by_side(found) if survival else np.stack(found, axis=1)

    @property
    def matrix(self) -> Any:
        return np.asarray(self.problem.X.array[...])

    def digest(self) -> str:
        """Of the labels, and of what the store says about X: its numbers are not read for it."""
        problem = self.problem
        digest = hashlib.sha256(repr((problem.X.shape, str(problem.X.dtype))).encode())
        for values in (problem.y, problem.task, problem.sample_weight, problem.groups):
            digest.update(b"-" if values is None else repr(np.asarray(values).tolist()).encode())
        return digest.hexdigest()


def as_column(values: np.ndarray) -> Column:
    """An array of a store as a column of a table."""
    if values.dtype.kind in "biuf":
        return Column("number", values)
    return Column("text", np.array([str(word) for word in values.tolist()], dtype=object))


def _group(config: dict[str, Any]) -> Any:
    zarr = needed("zarr", "A Zarr store")
    if not Path(config["table"]).is_dir():
        raise UsageError(f"there is no Zarr store {config['table']}")
    return zarr.open_group(config["table"], mode="r")
