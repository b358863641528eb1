"""scikit-learn's `cross_val_predict` hands ``task`` to `fit`, and to nothing else: a warning."""

from __future__ import annotations

import sys
from types import FrameType

from ..user_warnings import warn

_PASSED = ("sklearn", "tasksieve")  # whose functions may lie between


def warn_of_all_tasks() -> None:
    """Warn where rows are predicted without the tasks that the fit of the same fold was given."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED:
        if frame.f_code.co_name == "_fit_and_predict":
            given = frame.f_locals.get("fit_params") or {}
            if any(name.rpartition("__")[2] == "task" for name in given):
                warn(
                    "cross_val_predict of scikit-learn gives task to fit and not to what predicts: of each row you get "
                    "the predictions of all tasks, (n, T). For those of its own task name the column of X that holds "
                    "the tasks in the constructor, MultiTaskLasso(task='hospital'), and pass no task."
                )
            return
        frame = frame.f_back
