"""``--chunk-rows``: tables that are never in memory as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..design.memory import free_memory
from ..report.content import FitQuality
from ..runs import ModelKind
from ..tables import table_format
from ..tables.chunked import CHUNKED, ChunkedProblem, ChunkedTable
from ..tables.columns import FeatureChoice
from ..tables.frames import PACKED, need
from .defaults import add_default
from .exits import UsageError
from .trust import asks_comparison, asks_stability

# Models whose loss is known by sums of products, whatever the number of rows.
SUMMED = ("lasso", "elastic-net", "sparse-group")
# What a table takes while it is read, encoded and fitted: its numbers, several times; and the share that may be taken.
COPIES, SHARE = 4.0, 0.5
CELL_BYTES = 8.0
UNPACKED = 5.0  # times the size of a compressed file


def decide_chunks(config: dict[str, Any], kind: ModelKind) -> bool:
    """Whether the table goes by in chunks: asked for, or larger than memory; written down in the configuration."""
    if "chunk_rows" in config:
        if config["chunk_rows"] < 0:
            raise UsageError(f"--chunk-rows: at least 1, or 0 for the table as a whole; got {config['chunk_rows']}")
        if config["chunk_rows"] > 0:
            _refuse_others(config, kind)
        return bool(config["chunk_rows"])
    if _why_not(config, kind) is not None or not _larger_than_memory(config):
        return False
    add_default(config, "chunk_rows", ChunkedTable.rows_for(config["table"], _format(config), config.get("separator")))
    return True


def _format(config: dict[str, Any]) -> str:
    return str(config.get("format") or table_format(config["table"]))


def _refuse_others(config: dict[str, Any], kind: ModelKind) -> None:
    why = _why_not(config, kind)
    if why is not None:
        raise UsageError(f"--chunk-rows: {why}")


def _why_not(config: dict[str, Any], kind: ModelKind) -> str | None:
    """What keeps a fit from rows that go by, in words."""
    if kind.name not in SUMMED or config.get("loss", "squared") != "squared":
        loss = f" with --loss {config['loss']}" if "loss" in config else ""
        return (
            f"--model {kind.name}{loss} needs all rows in memory, at every step of its solver. Squared errors are "
            f"known by sums over rows: {', '.join(SUMMED)}. With other losses tasksieve stream learns from rows that "
            "go by"
        )
    if asks_stability(config) or asks_comparison(config):
        return "--stability and --compare need all rows in memory"
    if config.get("offset") is not None:
        return "--offset is for rows in memory"
    if _format(config) not in CHUNKED:
        return f"tables of format {_format(config)} are read as a whole; {', '.join(CHUNKED)} go by in chunks"
    if config.get("row_groups") is not None or config.get("shuffle") is False:
        flag = "--row-groups" if config.get("row_groups") is not None else "--no-shuffle"
        return f"{flag} needs the whole table; without it folds are shuffled within tasks, row by row"
    if config.get("date_parts"):
        return "--date-parts needs the whole table"
    if config.get("screening", "auto") != "auto":
        return f"--screening {config['screening']} is about columns, and only their sums are kept"
    return None


def _larger_than_memory(config: dict[str, Any]) -> bool:
    """By the size of the file: counted, for no table is read to find out."""
    path = Path(config["table"])
    try:
        size = float(path.stat().st_size)
    except OSError:
        return False  # whoever reads it says what is wrong
    format = _format(config)
    if format == "parquet":
        try:
            known = need("pyarrow.parquet").ParquetFile(path).metadata
            size = CELL_BYTES * known.num_rows * known.num_columns
        except Exception:
            return False
    elif format == "csv" and path.suffix.lower() in PACKED:
        size *= UNPACKED
    return COPIES * size > SHARE * free_memory()


def read_chunked(config: dict[str, Any]) -> ChunkedProblem:
    """The sums of a table."""
    choice = FeatureChoice(
        config.get("features", ()),
        config.get("drop", ()),
        config["keep"],
        config.get("categorical", ()),
        False,
        config["max_categories"],
    )
    table = ChunkedTable(
        config["table"],
        config["target"],
        choice,
        config.get("format"),
        config.get("separator"),
        config["chunk_rows"],
        config.get("task"),
        config.get("weights"),
        config.get("id"),
        config["missing"],
    )
    return table.problem(
        n_folds=config.get("cv"),
        seed=config.get("seed", 0),
        fit_intercept=config.get("fit_intercept", True),
        n_jobs=config["threads"],
    )


def quality_of(model: Any, problem: ChunkedProblem) -> FitQuality:
    """How well each task is fitted."""
    moments = problem.moments
    return FitQuality("R² on the rows learnt from", moments.r2(model), moments.rows_per_task_)

