"""Random problems of every kind with solutions of the library, as cases of `hand_certificates`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from hand_certificates import Case

import tasksieve as ts

Array = np.ndarray[Any, Any]

SQUARED = {"name": "clipped", "mu": 1.0, "low": None, "high": None, "labels": "numbers"}
NUMBERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "squared": ("squared", SQUARED),
    "huber": (ts.losses.Huber(delta=1.35), {**SQUARED, "low": -1.35, "high": 1.35}),
    "quantile": (ts.losses.Quantile(q=0.25, smoothing=0.5), {**SQUARED, "mu": 0.5, "low": -0.75, "high": 0.25}),
    "poisson": ("poisson", {"name": "poisson"}),
    "square-root": ("square-root", {"name": "square-root"}),
    "gamma": ("gamma", {"name": "gamma"}),
    "tweedie": (ts.losses.Tweedie(power=1.4), {"name": "tweedie", "power": 1.4}),
    "negative_binomial": (ts.losses.NegativeBinomial(size=1.7), {"name": "negative_binomial", "size": 1.7}),
    "log_cosh": ("log_cosh", {"name": "log_cosh"}),
    "expectile": (ts.losses.Expectile(level=0.8), {"name": "expectile", "level": 0.8}),
}
CLASSES: dict[str, tuple[Any, dict[str, Any]]] = {
    "logistic": ("logistic", {"name": "logistic"}),
    "squared_hinge": ("squared_hinge", {"name": "clipped", "mu": 1.0, "high": None, "labels": "classes"}),
    "smoothed_hinge": (
        ts.losses.SmoothedHinge(kappa=0.5),
        {"name": "clipped", "mu": 0.5, "high": 1.0, "labels": "classes"},
    ),
    "multinomial": ("logistic", {"name": "multinomial"}),
}
LOSSES = (*NUMBERS, *CLASSES)
MEANS = ("poisson", "gamma", "tweedie", "negative_binomial")  # labels that are not negative, and stay where they are
PENALTIES = ("l21", "l11", "sparse_group", "linf", "dirty", "owl", "groups", "groups-rows", "groups-entries")
MACHINES = ("hinge", "squared_hinge", "logistic", "epsilon_insensitive", "squared_epsilon_insensitive", "squared")


def penalty_of(name: str, d: int, rng: Any) -> tuple[Any, dict[str, Any], dict[str, Array]]:
    """The library's object, the format's words, and arrays."""
    if name == "l21":
        return ts.penalties.L21(), {"name": "rows", "group": 1.0, "l1": 0.0}, {}
    if name == "l11":
        return ts.penalties.L11(), {"name": "rows", "group": 0.0, "l1": 1.0}, {}
    if name == "sparse_group":
        return ts.penalties.SparseGroup(l1=0.4, group=0.7), {"name": "rows", "group": 0.7, "l1": 0.4}, {}
    if name == "linf":
        return ts.penalties.LInf(), {"name": "largest"}, {}
    if name == "dirty":
        return ts.penalties.Dirty(shared=1.3), {"name": "split", "group": 1.3, "l1": 1.0}, {}
    if name == "owl":
        weights = np.linspace(1.0, 0.4, d)
        return ts.penalties.Sorted(weights), {"name": "sorted"}, {"sorted_weights": weights}
    inside = None if name == "groups" else name.partition("-")[2]
    labels = rng.integers(0, max(2, d // 3), d)
    labels = np.unique(labels, return_inverse=True)[1]
    weights = np.sqrt(np.bincount(labels).astype(float))
    penalty = ts.penalties.Groups(labels, inside=inside, mix=0.3) if inside else ts.penalties.Groups(labels)
    words = {"name": "groups", "group": 0.7 if inside else 1.0, "l1": 0.3 if inside else 0.0, "inside": inside}
    return penalty, words, {"group_of": labels.astype(np.int64), "group_weights": weights}


def make_case(
    loss: str,
    penalty: str,
    seed: int,
    *,
    n_tasks: int = 2,
    rows: int = 14,
    d: int = 9,
    strength: float = 0.3,
    tol: float = 1e-7,
    **options: Any,
) -> Case:
    """A problem with the named members, solved by the library to about `tol`.

    Options: intercept, standardize, positive, ridge, graph, weights, task_weights, class_weights, offset, free,
    feature_weights (booleans), shared, offsets_of_columns (a number added to columns, and to y), scale (a factor of X).
    """
    rng = np.random.default_rng(seed)
    shared = bool(options.get("shared"))
    n_rows = [rows] * n_tasks if shared else [rows + int(k) for k in rng.integers(0, 4, n_tasks)]
    x = [rng.standard_normal((n, d)) for n in n_rows]
    if shared:
        x = [x[0]] * n_tasks
    far, scale = options.get("far", 0.0), options.get("scale", 1.0)
    x = [(block + far) * scale for block in x]
    truth = np.zeros((d, n_tasks))
    truth[: d // 3] = rng.standard_normal((d // 3, n_tasks))
    z = [(block / scale - far) @ truth[:, t] for t, block in enumerate(x)]
    classes: list[Any] | None = None
    if loss in NUMBERS:
        named, words = NUMBERS[loss]
        if loss in ("poisson", "negative_binomial"):
            y = [rng.poisson(np.exp(0.5 * v)).astype(float) for v in z]
        elif loss in ("gamma", "tweedie"):
            y = [np.exp(0.5 * v) * rng.gamma(2.0, 0.5, len(v)) for v in z]
            y = y if loss == "gamma" else [v * (rng.random(len(v)) < 0.7) for v in y]
        else:
            y = [v + 0.5 * rng.standard_normal(len(v)) + far for v in z]
        estimator: Any = ts.MultiTaskRegressor
    else:
        named, words = CLASSES[loss]
        levels = 3 if loss == "multinomial" else 2
        noisy = [v + 0.5 * rng.standard_normal(len(v)) for v in z]
        y = [np.digitize(v, np.quantile(v, np.arange(1, levels) / levels)).astype(float) for v in noisy]
        classes = ["a", "b", "c"][:levels]
        estimator = ts.MultiTaskClassifier
    weight = [rng.uniform(0.5, 2.0, n) for n in n_rows] if options.get("weights") else None
    away = far if loss in NUMBERS and loss not in MEANS else 0.0
    offset = [0.3 * rng.standard_normal(n) + away for n in n_rows]
    offset = offset if options.get("offset") and loss != "multinomial" else None
    norm, penalty_words, arrays = penalty_of(penalty, d, rng)
    if options.get("feature_weights") and penalty in ("l21", "l11", "sparse_group", "linf", "dirty"):
        arrays["feature_weights"] = rng.uniform(0.5, 1.5, d)
    if options.get("free") and not options.get("positive") and loss != "multinomial" and penalty != "owl":
        free = arrays["group_of"] == arrays["group_of"][d // 2] if "group_of" in arrays else np.arange(d) == d // 2
        arrays["feature_weights"] = np.where(free, 0.0, arrays.get("feature_weights", np.ones(d)))
    task_weights = rng.uniform(0.5, 2.0, n_tasks).tolist() if options.get("task_weights") else None
    class_weights = None
    if options.get("class_weights") and classes is not None:
        class_weights = rng.uniform(0.5, 2.0, (n_tasks, len(classes))).tolist()
    outputs = n_tasks * (3 if loss == "multinomial" else 1)
    case = Case(
        x, y, np.zeros((d, outputs)), np.zeros(outputs), words, penalty_words, 1.0, classes=classes, weight=weight,
        offset=offset, task_weights=task_weights, class_weights=class_weights, arrays=arrays, shared=shared,
        fit_intercept=options.get("intercept", True), standardize=bool(options.get("standardize")),
        positive=bool(options.get("positive")),
    )  # fmt: skip
    graph = None
    if options.get("graph") and n_tasks > 1 and loss != "multinomial":
        graph = 0.2 * (np.ones((n_tasks, n_tasks)) - np.eye(n_tasks))
        arrays["edges"] = graph
    case.ridge = 0.1 if options.get("ridge") else 0.0
    total = [np.ones(n) if weight is None else weight[t] for t, n in enumerate(n_rows)]
    if class_weights is not None:
        total = [s * np.array(class_weights[t])[y[t].astype(int)] for t, s in enumerate(total)]
    mean = sum(float(s.sum()) for s in total) / n_tasks
    case.unit = float(np.sqrt(mean)) if loss == "square-root" else mean
    model = estimator(
        named, norm, ridge=case.ridge, task_graph=graph, fit_intercept=case.fit_intercept, positive=case.positive,
        standardize=case.standardize, feature_weights=arrays.get("feature_weights"), task_weights=task_weights, tol=tol,
        screening=None,
    )  # fmt: skip
    labels = np.concatenate(y if classes is None else [np.array(classes)[v.astype(int)] for v in y])
    known: dict[str, Any] = {"task": np.repeat(np.arange(n_tasks), n_rows), "sample_weight": np.concatenate(total)}
    if offset is not None:
        known["offset"] = np.concatenate(offset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.alpha = strength * model.alpha_max(np.vstack(x), labels, **known) or 0.1
        model.fit(np.vstack(x), labels, **known)
    coef, intercept = np.asarray(model.coef_), np.asarray(model.intercept_)
    if loss == "multinomial":  # (classes, tasks, features) to task after task
        coef, intercept = coef.transpose(1, 0, 2).reshape(outputs, d), intercept.T.reshape(-1)
    case.alpha, case.coef = float(model.alpha), np.ascontiguousarray(coef.T)
    case.intercept = intercept.astype(float) if case.fit_intercept else np.zeros(outputs)
    return case


def make_machine(loss: str, seed: int, *, n_tasks: int = 3, rows: int = 12, d: int = 6, intercept: bool = True) -> Case:
    """A machine on a graph: penalty `none`; the last task has no rows."""
    rng = np.random.default_rng(seed)
    x = [rng.standard_normal((rows if t < n_tasks - 1 else 0, d)) for t in range(n_tasks)]
    z = [block[:, 0] + 0.5 * rng.standard_normal(len(block)) for block in x]
    signs = loss in ("hinge", "squared_hinge", "logistic")
    y = [(v > 0).astype(float) if signs else v for v in z]
    graph = np.ones((n_tasks, n_tasks)) - np.eye(n_tasks)
    C, strength = 0.5, 0.7
    kind = ts.GraphSVC if signs else ts.GraphSVR
    model: Any = kind(graph, C=C, loss=loss, graph_strength=strength, fit_intercept=intercept, tol=1e-8)
    flat, task = np.vstack(x), np.repeat(np.arange(n_tasks), [len(v) for v in y])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(flat, np.concatenate(y), task=task)
    words: dict[str, Any] = {
        "hinge": {"name": "clipped", "mu": 0.0, "high": 1.0, "labels": "classes"},
        "squared_hinge": {"name": "clipped", "mu": 0.5, "high": None, "labels": "classes"},
        "logistic": {"name": "logistic"},
        "epsilon_insensitive": {**SQUARED, "mu": 0.0, "epsilon": 0.1, "low": -1.0, "high": 1.0},
        "squared_epsilon_insensitive": {**SQUARED, "mu": 0.5, "epsilon": 0.1},
        "squared": {**SQUARED, "mu": 0.5},
    }[loss]
    return Case(
        x, y, model.coef_.T.copy(), model.intercept_.astype(float), words, {"name": "none"}, 1.0, ridge=1.0, unit=1.0,
        weight=[np.full(len(v), C) for v in y], fit_intercept=1.0 if intercept else False,
        classes=[0, 1] if signs else None, arrays={"edges": strength * graph},
    )  # fmt: skip
