"""``--chunk-rows``: tables that are never in memory as a whole."""

from __future__ import annotations

import os
from concurrent.futures import Future
from dataclasses import fields
from functools import partial
from typing import Any

from ..design.memory import free_memory
from ..linear.from_moments import null_of_moments
from ..path.policy import sums_are_smaller, table_is_tall
from ..report.content import FitQuality
from ..runs import ModelKind
from ..runs.folder import CERTIFICATE, PROOF
from ..tables import table_format
from ..tables.chunked import CHUNKED, ChunkedProblem, ChunkedTable, NotTall, rows_of_chunks
from ..tables.columns import FeatureChoice
from ..tables.frames import counted_size, text_form
from ..tables.text_form import TextForm
from .background import in_background
from .exit_codes import UsageError
from .files import several_files
from .related import judged_ids, named_groups, unanswered
from .source import Source, named
from .trust import findings_asked

# Models whose loss is known by sums of products, whatever the number of rows.
SUMMED = ("lasso", "elastic-net", "sparse-group")
# What a table takes while it is read, encoded and fitted: its numbers, several times; and the share that may be taken.
COPIES, SHARE = 4.0, 0.5
CELL_BYTES = 8.0
# Options that leave rows out.
LEAVING_OUT = ("min_rows", "exclude_task", "exclude_class")
# Options that choose features.
CHOICE = tuple(option.name for option in fields(FeatureChoice) if option.name != "ids")


def open_chunked(config: dict[str, Any], kind: ModelKind, whole: Source, needed: bool) -> Source:
    """The source of a table in a file: in chunks where that is asked for, where it is tall, or larger than memory; the
    table as a `whole` where all rows are needed, whatever they take."""
    if "chunk_rows" in config:
        if config["chunk_rows"] < 0:
            raise UsageError(f"--chunk-rows: at least 1, or 0 for the table as a whole; got {config['chunk_rows']}")
        if not config["chunk_rows"]:
            return whole
        why = _why_not(config, kind)
        if why is not None:
            raise UsageError(f"--chunk-rows: {why}")
        return ChunkedSource(config, kind, whole)
    if needed or _why_not(config, kind) is not None:
        return whole
    size = counted_size(config["table"], _format(config), _form(config))
    if size is None:
        return whole
    rows, columns = size
    cells = rows * columns
    larger = COPIES * max(CELL_BYTES * cells, os.path.getsize(config["table"])) > SHARE * free_memory()
    tall = table_is_tall(rows, columns)
    if not larger and not tall:
        return whole
    about = "" if _format(config) == "parquet" else "about "
    why = "more than memory holds" if larger and not tall else "tall"
    note = (
        f"{about}{rows:,} rows x {columns} columns are {why}: read in chunks, of which only sums are kept; no {PROOF} "
        "and no predictions of held-out rows (--chunk-rows 0 reads the table as a whole)"
    )
    return ChunkedSource(config, kind, whole, note, tall=not larger)


def _format(config: dict[str, Any]) -> str:
    return str(config.get("format") or table_format(config["table"]))


def _form(config: dict[str, Any]) -> TextForm | None:
    """How a table of text is written."""
    if _format(config) != "csv" or not os.path.isfile(config["table"]):
        return None
    return text_form(config["table"], **{key: config.get(key) for key in ("separator", "encoding", "decimal")})


def _why_not(config: dict[str, Any], kind: ModelKind) -> str | None:
    """What keeps a fit from rows that go by, in words."""
    if config.get("missing") == "patterns":
        return "--missing patterns looks at all rows before it knows the tasks; leave --chunk-rows out"
    if kind.targets == "survival":
        return (
            f"--model {kind.name} compares every row with all that are at risk at its time, so that all rows are "
            "needed in memory; leave --chunk-rows out, or fit parts of the rows one by one"
        )
    if kind.name not in SUMMED or config.get("loss", "squared") != "squared":
        loss = f" with --loss {config['loss']}" if "loss" in config else ""
        return (
            f"--model {kind.name}{loss} needs all rows in memory, at every step of its solver. Squared errors are "
            f"known by sums over rows: {', '.join(SUMMED)}. With the squared, logistic and hinge loss tasksieve stream "
            "learns from rows that go by"
        )
    if several_files(config):
        return "several files are read as a whole; one table, with a column for the task (--task), goes by in chunks"
    format, screening = _format(config), config.get("screening", "auto")
    go_by = ", ".join(CHUNKED)
    folds = "needs the whole table; without it folds are shuffled within tasks, row by row"
    reasons = (
        (findings_asked(config), "--stability, --intervals and --compare need all rows in memory"),
        (config.get("offset") is not None, "--offset is for rows in memory"),
        (format not in CHUNKED, f"tables of format {format} are read as a whole; {go_by} go by in chunks"),
        (named_groups(config) is not None, f"--row-groups {folds}"),
        (config.get("shuffle") is False, f"--no-shuffle {folds}"),
        (config.get("task_graph") is not None, "--task-graph needs all rows in memory"),
        (any(key in config for key in LEAVING_OUT), "tasks and classes are left out of a whole table"),
        (config.get("date_parts"), "--date-parts needs the whole table"),
        (config.get("missing") in ("task-mean", "indicator"), "task means of --missing need the whole table"),
        (screening != "auto", f"--screening {screening} is about columns, and only their sums are kept"),
    )
    return next((why for applies, why in reasons if applies), None)


class ChunkedSource(Source):
    """A table of which only sums over rows are kept."""

    problem: ChunkedProblem
    has_rows = False
    no_proof = (
        f"the rows went by in chunks, and a dual point has a number for each of them; {CERTIFICATE} has the gap, "
        "--chunk-rows 0 writes both"
    )
    not_saved = "the rows went by in chunks; --chunk-rows 0 keeps them"
    advice = "; --chunk-rows 0 continues with the rows themselves"

    def __init__(
        self, config: dict[str, Any], kind: ModelKind, whole: Source, note: str = "", tall: bool = False
    ) -> None:
        """Chunks that were not asked for have a `note`; where they were chosen since the table is `tall`, it is read as
        a `whole` should the sums of its tasks be more than its rows."""
        super().__init__(config, kind)
        self.notes = [note] if note else []
        self._whole, self._tall = whole, tall
        self._digest: Future[str] | None = None

    def read(self) -> Source:
        """The sums of a table; the table as a whole where it is not tall after all."""
        config = self.config
        if config["threads"] > 1:
            self._digest = in_background(super().digest)
        choice, form = FeatureChoice(**named(config, *CHOICE), ids=judged_ids(config)), _form(config)
        rows = config.get("chunk_rows") or rows_of_chunks(config["table"], _format(config), form)
        how = (_format(config), form, rows, config["target"], choice)
        table = ChunkedTable(config["table"], *how, **named(config, "task", "weights", "id", "missing"))
        table.unrelated = not unanswered(config) or choice.ids == "values"
        cells = config.get("cv", 0) + 1
        try:
            self.problem = table.problem(
                n_folds=config.get("cv"),
                seed=config.get("seed", 0),
                fit_intercept=config.get("fit_intercept", True),
                n_jobs=config["threads"],
                serves=partial(sums_are_smaller, n_cells=cells) if self._tall else None,
            )
        except NotTall:
            return self._whole.read()
        self.decided = {"chunk_rows": rows}
        return self

    def digest(self) -> str:
        return super().digest() if self._digest is None else self._digest.result()

    def fit(self, model: Any) -> None:
        model.fit_moments(self.problem.moments)

    def path(self, model: Any, grid: dict[str, Any]) -> Any:
        return model.path_moments(self.problem.moments, **grid)

    def null_model(self, model: Any) -> Any:
        return null_of_moments(model, self.problem.moments)

    def quality(self, model: Any) -> FitQuality:
        moments = self.problem.moments
        return FitQuality("R² on the training rows", moments.r2(model), moments.rows_per_task_)
