"""Some tasks of a design: what a loss sees of it. The columns stay with the whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from .design import Design

Array = np.ndarray[Any, Any]


class Part(Design):
    """The samples of some tasks of a design: offsets, weights, what intercepts and unpenalised features explain.

    It has no features, and so no norms and no products: a loss asks for none of them.

    - `tasks` (int array): Which ones, in the order that they have here.
    - `factors` (array, one for each): What the weights of their rows are multiplied by; None: by 1.
    """

    def __init__(self, whole: Design, tasks: Array, factors: Array | None = None) -> None:
        self.n_threads, self.n_rows, self.n_features = whole.n_threads, whole.n_rows, 0
        self.unpenalised, self.standardize = whole.unpenalised, whole.standardize
        self._set_samples(whole.samples.part(tasks, factors))
        self.blocks = np.array([0, self.n_tasks])
