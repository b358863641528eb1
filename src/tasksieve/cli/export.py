"""``tasksieve export``: a run's model as a file that predicts without tasksieve."""

from __future__ import annotations

from ..exports.write import checked_format, write_description
from ..runs import RunFolder
from ..runs.exported import describe_run
from .exit_codes import OK, say
from .options import Asked
from .predict import chosen_model


def run_export(asked: Asked) -> int:
    """Write the file."""
    checked_format(asked.out, asked.table)
    found = describe_run(chosen_model(RunFolder(asked.run), asked))
    file = write_description(found, asked.out, asked.table)
    if not asked.quiet:
        size = file.stat().st_size
        told = f"{len(found.tasks):,} task(s), {len(found.features):,} feature(s) of {len(found.inputs):,} column(s)"
        say(f"{file}: {told}, {size:,} bytes")
    return OK
