"""Groups of rows that belong together (families, patients, plots): read and encoded."""

from __future__ import annotations

from typing import Any

import numpy as np

from .labels import matching_list, row_labels, sorted_labels
from .masked import refuse_masked_or_complex
from .sample_space import TaskLabels
from .tensors import to_numpy


def read_groups(groups: Any, labels: TaskLabels) -> tuple[np.ndarray, np.ndarray]:
    """The names of the groups, sorted, and the position among them of the group of each row of X.

    - `groups` (array of shape (n,), or for a list of matrices a list of such): Any labels, none missing.
    """
    groups = to_numpy(groups)
    if labels.form == "list" and isinstance(groups, list | tuple) and all(np.ndim(part) for part in groups):
        for t, part in enumerate(groups):
            refuse_masked_or_complex(part, f"groups[{t}]")
        groups = np.concatenate(matching_list(np.diff(labels.offsets).tolist(), groups, "groups"))
    return sorted_labels(row_labels(groups, labels.n_rows, "groups"), "groups")
