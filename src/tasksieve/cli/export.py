"""``tasksieve export``: a run's model as a file that predicts without tasksieve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..exports.score_files import PGS, SCORES, proved_of, write_score_files
from ..exports.write import checked_format, write_description
from ..runs import RunFolder, SavedModel
from ..runs.exported import describe_run
from ..runs.folder import PROOF, file_digest
from ..runs.genome import variants_in_use
from .exit_codes import OK, UsageError, say
from .options import Asked
from .predict import chosen_model


def run_export(asked: Asked) -> int:
    """Write the file."""
    ending, folder = checked_format(asked.out, asked.table), RunFolder(asked.run)
    if asked.genome_build is not None and ending != PGS:
        raise UsageError(f"--genome-build: is for {PGS} files")
    saved = chosen_model(folder, asked)
    if ending in SCORES:
        return write_scores(folder, saved, asked)
    found = describe_run(saved)
    file = write_description(found, asked.out, asked.table)
    if not asked.quiet:
        size = file.stat().st_size
        told = f"{len(found.tasks):,} task(s), {len(found.features):,} feature(s) of {len(found.inputs):,} column(s)"
        say(f"{file}: {told}, {size:,} bytes")
    return OK


def write_scores(folder: RunFolder, saved: SavedModel, asked: Asked) -> int:
    """Score files, and what they cannot hold beside them."""
    _, variants = variants_in_use(folder, saved)
    certificate = file_digest(folder / PROOF) if (folder / PROOF).is_file() else None
    proved = proved_of(saved.estimator, certificate)
    trait = saved.targets[0] if len(saved.targets) == 1 else None
    more: dict[str, Any] = {"trait": trait, "genome_build": asked.genome_build}
    files = write_score_files(describe_run(saved), variants, Path(asked.out), proved, **more)
    if not asked.quiet:
        say(f"{len(variants):,} variant(s): {', '.join(str(file) for file in files)}")
    return OK
