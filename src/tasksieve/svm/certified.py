"""Certificates of the machines on a graph: the format's penalty `none`, a ridge and the edges."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from ..proof.certificate import Certificate
from ..proof.claims import ClaimedSolution, certify
from ..proof.forms import form_of, plain_labels
from ..tasks import kind_of
from ..tasks.named import takes_named_tasks
from ..tasks.readable import by_task
from ..verify import Matrix, Task
from .problem import LOSSES

Array = np.ndarray[Any, Any]


class CertifiedMachine:
    """A fitted machine that can write down the proof of its answer."""

    @takes_named_tasks
    def certificate(self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None) -> Certificate:
        """The proof of the fit, to be checked with the data.

        Parameters
        ----------
        X, y, task, sample_weight
            The data of the fit: the dual point is ``dual_coef_``, one number for each of their rows.

        Returns
        -------
        Certificate
            Its ``save`` writes the file.
        """
        model: Any = self
        state = model._learned()
        header, arrays, tasks, dual = _statement(model._stated(), state, model.dual_coef_, X, y, task, sample_weight)
        rows = np.ascontiguousarray(state.coef.T, dtype=np.float64)
        features = np.flatnonzero(rows.any(axis=1))
        answer = ClaimedSolution(*_STRENGTHS, features, rows[features], np.asarray(state.intercept), dual)
        return certify(header, arrays, tasks, [answer])

    def _in_words_of_the_format(
        self, X: Any, y: Any, task: Any = None, sample_weight: Any = None
    ) -> tuple[dict[str, Any], dict[str, Array], float, Callable[[float], tuple[float, float]]]:
        """The machine's problem on data, without its answer: as of linear models, whatever alpha is."""
        model: Any = self
        header, arrays, _, _ = _statement(model._stated(), model._learned(), None, X, y, task, sample_weight)
        return header, arrays, 0.0, lambda _: _STRENGTHS


_STRENGTHS = (0.0, 1.0)  # alpha and ridge of the format


def _statement(
    model: Any, state: Any, dual_coef: Any, X: Any, y: Any, task: Any, sample_weight: Any
) -> tuple[dict[str, Any], dict[str, Array], list[Task], Array]:
    """Header, arrays and data of the format, and the dual point (zeros where there is none)."""
    if model.hasher is not None:
        raise ValueError(
            "A certificate is about a matrix of numbers, and a verifier does not hash strings: fit to the hashed rows, "
            "hasher.fit_transform(X), without hasher, and certify that."
        )
    if np.ndim(state.coef) != 2:
        raise ValueError(
            "A certificate holds one machine, and with more than two classes there is one for each class: fit the "
            "machines one by one to y == class, and certify these."
        )
    reader = copy(model)
    data = reader._read_data(X, y, task, sample_weight)
    labels = data.labels
    weights, factors = labels.weights, reader._class_factors(labels, labels.weights)
    if dual_coef is None:
        beta = np.zeros(np.shape(labels.y))
    else:
        listed = isinstance(dual_coef, list)
        same = listed == (labels.form == "list") and len(dual_coef) == (labels.n_tasks if listed else labels.n_rows)
        beta = labels.flatten(dual_coef) if same else np.empty(0)
    if np.shape(beta) != np.shape(labels.y) or data.tasks.tolist() != state.tasks.tolist():
        raise ValueError("X, y and task must be the data of the fit: its dual_coef_ has a number for each row.")
    if labels.shared and len(data.tasks) != labels.n_tasks:
        raise ValueError(
            f"The graph has {len(data.tasks)} tasks and y has {labels.n_tasks} columns: give rows stacked with task."
        )
    cost = float(model.C) * (weights if factors is None else weights * factors)
    p = np.divide(beta, cost, out=np.zeros(len(cost)), where=cost > 0.0)
    form = form_of(LOSSES[model.loss][1](float(getattr(model, "epsilon", 0.0))))
    signs = model._targets == "classes"
    codes = (data.targets[0] > 0.0) * 1.0 if signs else np.asarray(data.targets[0], dtype=np.float64)
    codes = np.where(weights > 0.0, codes, 0.0)
    n_tasks, n_features = len(data.tasks), data.source.shape[1]
    kept = np.ones(len(weights), dtype=bool) if labels.shared else weights > 0.0
    matrices = by_task([kind_of(data.source)(data.source)], labels, kept)
    tasks = [Task(Matrix(np.empty((0, n_features))), np.zeros(0), np.zeros(0), None)] * n_tasks
    class_weights, dual = np.ones((n_tasks, 2)), [np.zeros(0)] * n_tasks
    for position, part, matrix in zip(data.position.tolist(), labels.per_task(), matrices, strict=True):
        own, live = kept[part], weights[part] > 0.0
        tasks[position] = Task(matrix, codes[part][own], weights[part][own], None)
        dual[position] = p[part][own]
        if factors is not None:
            class_weights[position, codes[part][live].astype(np.intp)] = factors[part][live]
    header = {
        "tasks": plain_labels(data.tasks),
        "n_features": int(n_features),
        "classes": plain_labels(reader.classes_) if signs else None,
        "shared": bool(labels.shared),
        "unit": 1.0,
        "intercept": float(model.intercept_scaling) if model.fit_intercept else False,
        "standardize": False,
        "positive": False,
        "loss": form,
        "penalty": {"name": "none"},
        "task_weights": [float(model.C)] * n_tasks,
        "class_weights": None if factors is None else class_weights.tolist(),
        "about": {"model": type(model).__name__, "made_by": "tasksieve", "C": float(model.C)},
    }
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        header["features"] = [str(name) for name in names]
    strength = float(model.graph_strength)
    arrays = {"edges": strength * data.graph} if strength > 0.0 and data.graph.any() else {}
    return header, arrays, tasks, np.concatenate(dual)
