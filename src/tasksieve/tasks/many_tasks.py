"""More tasks than half the rows: the labels of rows may not be those of tasks. A warning."""

from __future__ import annotations

from ..messages import Message, either
from ..user_warnings import warn
from .patterns import Patterns
from .sample_space import TaskLabels


class ManyTasksWarning(UserWarning):
    """``task`` has more labels than half as many as there are rows.

    Models borrow strength across tasks, and learn what is a task's own from its rows. With fewer than two rows a task
    there is little to learn, and ``task`` is more often something else: the outcome, a weight, a number of the row.

    Attributes
    ----------
    n_tasks, n_rows : int

    Examples
    --------
    >>> import warnings
    >>> import tasksieve as ts
    >>> warnings.simplefilter("ignore", ts.ManyTasksWarning)  # as many tasks are meant
    """

    def __init__(self, message: str, n_tasks: int = 0, n_rows: int = 0) -> None:
        super().__init__(message)
        self.n_tasks, self.n_rows = n_tasks, n_rows


def warn_many_tasks(labels: TaskLabels, patterns: Patterns | None = None) -> None:
    """Warn where rows were given with so many tasks; of rows in patterns the tasks are those that were given."""
    if labels.form == "stacked":
        warn_many(labels.n_tasks if patterns is None else len(patterns.families()[0]), labels.n_rows)


def warn_many(n_tasks: int, n_rows: int) -> None:
    """The warning where it is due, given the numbers."""
    if n_tasks < 2 or 2 * n_tasks <= n_rows:
        return
    message = Message(
        "{task} has {n_tasks:,} labels in {n_rows:,} rows, so that there are fewer than two rows a task: is it the "
        "outcome, or a number of the row? Name the column that says which rows belong together{how}.",
        n_tasks=n_tasks,
        n_rows=n_rows,
        how=either("; if so many tasks are meant, ignore ts.ManyTasksWarning"),
    )
    warn(ManyTasksWarning(message, n_tasks, n_rows))
