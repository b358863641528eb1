"""Reports: one self-contained HTML file that says what was asked, what was answered, and the proof."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .content import FitQuality, ReportContent
from .federated import federated_page
from .from_model import content_from_model, task_quality
from .page import render, write_page

__all__ = ["FitQuality", "ReportContent", "content_from_model", "render", "task_quality", "write_report"]
__dir__ = __all__.copy  # TAB shows these alone


def write_report(model: Any, path: str | os.PathLike[str], **about: Any) -> Path:
    """Write a report: one HTML file that needs nothing else, for the screen, the keyboard and the printer.

    Parameters
    ----------
    model : fitted estimator, RegularizationPath, FederatedFit or ReportContent
    path : path
        The file to write; it is replaced as a whole or not at all.
    **about
        What to say about an estimator or a path: ``X``, ``y``, ``task``, ``sample_weight``, ``along``, ``held_out``,
        ``permutation``, ``stability``, ``comparison``, ``intervals``, ``feature_names``, ``title``, ``asked``,
        ``answered``, ... as in `tasksieve.report.content_from_model`. Of a `FederatedFit`: its ``plan``.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> import tasksieve as ts, tempfile, pathlib
    >>> X, y, task, _ = ts.datasets.load_digits_tasks(20)
    >>> model = ts.MultiTaskLogisticRegression(alpha=0.3).fit(X, y, task=task)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = ts.write_report(model, pathlib.Path(folder) / "report.html", X=X, y=y, task=task)
    ...     file.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    if hasattr(model, "plan_digest"):  # a federated fit
        return write_page(federated_page(model, **about), path)
    if not isinstance(model, ReportContent):
        model = content_from_model(model, **about)
    elif about:
        raise TypeError(f"a ReportContent says everything itself; got also {', '.join(sorted(about))}")
    return write_page(render(model), path)
