"""Callbacks of scikit-learn (``set_callbacks``, version 1.9 and later) told of the progress of a fit.

Whatever `watch` would be told becomes a task of scikit-learn's tree of tasks: the fit is its root, each fold a branch,
each value of alpha, pass or step a leaf. Where scikit-learn has no callbacks there is nothing to set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # before version 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""


def fit_told(model: Any, watch: Callable[..., Any], fit: Callable[[], Any]) -> Any:
    """Fit a model that has callbacks; `watch` is that of `progress`."""
    from sklearn.callback import with_callbacks

    return with_callbacks(_told)(model, watch, fit)


def _told(model: Any, watch: Callable[..., Any], fit: Callable[[], Any]) -> Any:
    tree = _Tree(model, model._init_callback_context(max_subtasks=None))
    tree.begin(tree.root)
    with watch(tree.advance):
        found = fit()
    for branch in [*tree.branches.values(), tree.root]:
        tree.end(branch)
    return found


class _Tree:
    """Tasks of one fit in scikit-learn's sense."""

    def __init__(self, model: Any, root: Any) -> None:
        self.model, self.root = model, root
        self.branches: dict[tuple[str, str], Any] = {}

    def begin(self, context: Any) -> None:
        context.call_on_fit_task_begin(estimator=self.model)

    def end(self, context: Any) -> bool:
        return bool(context.call_on_fit_task_end(estimator=self.model))

    def advance(self, progress: Any) -> None:
        """A value, a pass or a step is done. A callback that asks to stop does what Ctrl-C does."""
        place = progress.label, progress.unit
        if place not in self.branches:
            name = progress.label.removeprefix(type(self.model).__name__).lstrip(", ") or f"{progress.unit}s"
            self.branches[place] = self.root.subcontext(task_name=name, max_subtasks=None)
            self.begin(self.branches[place])
        leaf = self.branches[place].subcontext(task_name=f"{progress.unit} {progress.done}")
        self.begin(leaf)
        if self.end(leaf):
            raise KeyboardInterrupt
