"""Rows for a model that is fitted already: those of tables, or people of genotype files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..runs import RunFolder, SavedModel
from ..runs.folder import DATA
from ..tables import Encoding, Table
from ..tables.ids import row_names
from .exit_codes import UsageError, say
from .files import Tables, expand_tables, read_new_rows, tables_digest, title
from .options import Asked


@dataclass
class NewRows:
    """Rows of a table.

    - `encoding`, `how`: How its columns become features, and what becomes of missing values and unknown words: for
      `tasksieve.tables.problem.prepare_labelled`.
    - `files`: That it was read from.
    - `notes`: On how they were read.
    """

    kind: ClassVar[str] = "table"
    table: Table
    encoding: Encoding
    how: dict[str, Any]
    files: Tables
    notes: list[str]

    @property
    def title(self) -> str:
        """What the rows are called."""
        return title(self.files)

    def seen_by(self, folder: RunFolder) -> bool:
        """Whether the model of a run was fitted to them."""
        return bool(folder.read_json(DATA).get("sha256") == tables_digest(self.files))

    def features(self, X: Any, rows: Any) -> Any:
        """The features of some rows, given those that are columns of the table."""
        return X

    def with_names(self, columns: dict[str, list[Any]], saved: SavedModel, asked: Asked) -> dict[str, list[Any]]:
        """The columns after the one that names the rows, where the fit or this call has one."""
        name, table = asked.id or saved.said["id"], self.table
        if not isinstance(name, str):
            return columns
        if asked.id is None and name not in table.columns:
            if not asked.quiet:
                say(f"note: {table.source} has no column {name!r}, the --id of the fit: predictions come without it")
            return columns
        return {f"{name} (id)" if name in columns else name: row_names(table.require(name, "--id")), **columns}

    def write_beside(self, out: str | None) -> None:
        """What is known of the rows and worth keeping beside a table of results: nothing more of a table."""


def read_table_rows(
    asked: Asked,
    saved: SavedModel,
    needed: Sequence[tuple[str, str]],
    all_tasks: bool = False,
    some: Sequence[tuple[str, str]] = (),
) -> NewRows:
    """Those of the tables that are named; see `read_new_rows`."""
    if not asked.table:
        raise UsageError("name the TABLE of the rows, or their genotypes (--bfile, --pfile, --vcf-zarr, --bgen)")
    table = read_new_rows(asked, saved, needed, all_tasks, some)
    how = {**saved.filling, "missing": asked.missing, "unknown": asked.unknown, "unseen": asked.unseen}
    how["patterns"] = getattr(saved.estimator, "patterns_", None)
    files = expand_tables(asked.table, asked.format, asked.skip)
    return NewRows(table, saved.encoding, how, files, list(table.notes))
