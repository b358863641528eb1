"""What the R package asks of tasksieve: plain arrays in, plain arrays out, errors and warnings as values.

R's ``lambda`` and ``alpha`` are taken apart before they come here: ``strength`` is what the norm is multiplied by,
``ridge`` how many times that the ridge is, so that both grow together along a path, as in glmnet.
"""

from __future__ import annotations

import sys
import warnings
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse
import sklearn

import tasksieve as ts
from tasksieve.messages import Face, said
from tasksieve.penalties.coupling import Coupling

# Parameters of Python under their names in R.
NAMES = {
    "X": "x", "alpha": "lambda", "alphas": "lambda", "cv": "nfolds", "eps": "lambda.min.ratio",
    "feature_weights": "penalty.factor", "fit_intercept": "intercept", "graph_strength": "graph.strength",
    "max_iter": "maxit", "n_alphas": "nlambda", "n_jobs": "threads", "n_pairs": "n.pairs", "positive": "lower.limits",
    "ridge": "alpha", "sample_weight": "weights", "scoring": "type.measure", "task_graph": "task.graph",
    "task_weights": "task.weights", "threshold": "cutoff",
}  # fmt: skip


class _R(Face):
    """Parameters as they are called in R."""

    def parameter(self, name: str) -> str:
        return NAMES.get(name, name)

    def setting(self, name: str, value: Any) -> str:
        return f"{self.parameter(name)} = {str(value).upper() if isinstance(value, bool) else value}"

    def estimator(self, name: str) -> str:
        return "tasksieve"


def ask(name: str, given: list[Any]) -> dict[str, Any]:
    """The answer of a function below, or its error; and its warnings."""
    answer: dict[str, Any] = {"value": None, "error": None, "kinds": []}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer |= {"value": globals()[name](*given)}
        except Exception as error:
            answer |= {
                "error": said(error, _R()),
                "kinds": [kind.__name__ for kind in type(error).__mro__[:-2]],
            }
    answer["warnings"] = [[said(one.message, _R()), one.category.__name__] for one in caught]
    return answer


# --- the data ---------------------------------------------------------------------------------------------------------


def sparse(values: Any, rows: Any, starts: Any, shape: Any) -> Any:
    """A matrix by columns, as the slots of a dgCMatrix have it."""
    return scipy.sparse.csc_matrix((values, rows, starts), shape=tuple(int(n) for n in shape))


def opened(path: str, kind: str, shape: Any = None, dtype: str | None = None) -> Any:
    """A matrix that stays in its file."""
    if kind == "bed":
        return ts.read_plink(path)
    if kind == "pgen":
        return ts.read_pgen(path)
    if kind == "raw":
        return np.memmap(path, mode="r", dtype=dtype, shape=tuple(int(n) for n in shape), order="F")
    X = np.load(path, mmap_mode="r", allow_pickle=False)
    if X.ndim != 2:
        raise ValueError(f"{path} holds an array with {X.ndim} dimensions: a matrix has 2.")
    return X


def about(X: Any) -> dict[str, Any]:
    """Size and names of a matrix."""
    names = getattr(X, "feature_names", None)
    return {"shape": list(X.shape), "names": None if names is None else [str(name) for name in names]}


def labels(names: list[str], codes: Any) -> Any:
    """Labels of rows."""
    return np.asarray(names)[np.asarray(codes)]


def outcome(time: Any, event: Any, entry: Any = None, strata: Any = None) -> Any:
    """Survival times."""
    return ts.survival(time, event, entry=entry, strata=strata)


# --- the models -------------------------------------------------------------------------------------------------------


@cache
def growing(kind: type[Any]) -> type[Any]:
    """A model whose ``ridge`` counts in units of ``alpha``."""

    def penalty(self: Any) -> dict[str, Any]:
        found = super(made, self)._penalty()
        found["ridge_ratio"] = found.pop("fixed_ridge")
        return found

    made = type(kind.__name__, (kind,), {"_penalty": penalty, "__module__": __name__})
    if hasattr(kind, "_estimator"):
        made._estimator = growing(kind._estimator)
    return made


def model(loss: str, options: dict[str, Any], *, choosing: bool = False, along: bool = True) -> Any:
    """An estimator; `choosing`: by cross-validation; `along`: with a ridge in units of ``alpha``."""
    options = dict(options)
    if loss == "cox":
        name = "MultiTaskCox"
    elif loss == "ordinal":
        name = "MultiTaskOrdinal"
    else:
        name = "MultiTaskClassifier" if loss == "logistic" else "MultiTaskRegressor"
        options["loss"] = loss
    if loss in ("cox", "ordinal"):
        options.pop("fit_intercept", None)
    kind = getattr(ts, name + "CV" * choosing)
    return (growing(kind) if along and options["ridge"] else kind)(**options)


def path(loss: str, options: dict[str, Any], data: dict[str, Any], grid: dict[str, Any]) -> dict[str, Any]:
    """Solutions for decreasing strengths."""
    found = model(loss, options).path(**data, **grid)
    if not len(found):
        raise ValueError("The path was interrupted before its first value was solved.")
    return described(found) | explained(found, loss, options, data)


def explained(found: Any, loss: str, options: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """The part of the deviance of intercepts alone that each value explains; and half that deviance."""
    X = data["X"]
    empty = [np.zeros((part.shape[0], 1)) for part in (X if isinstance(X, list) else [X])]
    plain = {**options, "feature_weights": None, "standardize": False, "ridge": 0.0}
    null = model(loss, plain).path(**{**data, "X": empty if isinstance(X, list) else empty[0]}, alphas=[1.0])
    half = float(null.null_objective)  # of a saturated model 0: objectives may be off by a constant
    part = (null.objectives[0] - losses(found)) / half if half > 0.0 else np.zeros(len(found))
    return {"explained": part, "half_deviance": half}


def losses(found: Any) -> Any:
    """Objectives without their penalties."""
    estimator, (scale, exponent) = found._estimator, found._scale
    options = estimator._penalty()
    penalty, graph = options.pop("penalty"), None
    if estimator.task_graph is not None and estimator.graph_strength > 0.0:
        graph = Coupling(float(estimator.graph_strength) * estimator._edges(found._facts))
    weights = np.ones(found.n_features) if estimator.feature_weights is None else estimator.feature_weights
    whole = penalty.on(weights, found._points[0].rows.shape[1], coupling=graph, **options)
    spent = np.empty(len(found))
    for k, alpha in enumerate(found.alphas):
        features, rows = found._points[k].features, found._points[k].rows
        counted = weights[features] > 0.0  # those of weight 0 have no ridge either
        features, rows = features[counted], rows[counted]
        if scale is not None:
            rows = rows * np.ldexp(scale[features], exponent)
        spent[k] = whole.at(float(alpha)).restrict(features).total(rows)
    return found.objectives - spent


def one(loss: str, options: dict[str, Any], data: dict[str, Any]) -> Any:
    """The model of one strength, ``ridge`` in the units of the objective."""
    return model(loss, options, along=False).fit(**data)


def described(found: Any) -> dict[str, Any]:
    """A path as arrays: of each row of coefficients the slots of a dgCMatrix, features x values."""
    entries = [found.coef(k).tocsr() for k in range(len(found))]
    classes, n_tasks = found._classes, len(found.tasks)
    order, kinds = np.arange(entries[0].shape[0]), None
    task = order
    if isinstance(classes, list):
        task = np.repeat(np.arange(n_tasks), [len(own) for own in classes])
        kinds = np.concatenate([np.asarray(own, dtype=np.float64) for own in classes])
    elif classes is not None:  # class after class there, task after task here
        order = order.reshape(len(classes), n_tasks).T.ravel()
        task = np.repeat(np.arange(n_tasks), len(classes))
        kinds = np.tile(np.asarray(classes, dtype=np.float64), n_tasks)
    rows = []
    for r in order:
        parts = [coef[[r]].sorted_indices() for coef in entries]
        rows.append({
            "i": np.concatenate([part.indices for part in parts]).astype(np.int32),
            "p": np.cumsum([0, *(part.nnz for part in parts)]).astype(np.int32),
            "x": np.concatenate([part.data for part in parts]),
        })  # fmt: skip
    thresholds = None
    if found._points[0].thresholds is not None:
        thresholds = [[np.asarray(own) for own in found.thresholds(k)] for k in range(len(found))]
    return {
        "path": found,
        "strength": found.alphas,
        "rows": rows,
        "intercept": np.array([found.intercept(k)[order] for k in range(len(found))]).T,
        "tasks": [str(label) for label in found.tasks.tolist()],
        "task": task.astype(np.int32),
        "kind": kinds,
        "thresholds": thresholds,
        "objective": found.objectives,
        "gap": found.dual_gaps,
        "relative_gap": found.relative_gaps,
        "null": float(found.null_objective),
        "selected": found.n_selected,
        "converged": found.converged,
        "status": [str(one) for one in found.status],
        "passes": float(found.passes),
        "interrupted": bool(found.interrupted),
        "solver": str(found.choice.reason) if found.choice is not None else "",
        "n_features": int(found.n_features),
    }


def scores(path: Any, X: Any, values: Any, task: Any = None) -> Any:
    """Linear predictions of some values of a path on rows that stay in their file, (rows, outputs, values)."""
    parts = [np.asarray(path.predict(X, int(k), task=task), dtype=np.float64) for k in np.atleast_1d(values)]
    return np.stack([part.reshape(part.shape[0], -1) for part in parts], axis=-1)


def cross_validated(
    loss: str, options: dict[str, Any], data: dict[str, Any], grid: dict[str, Any], about: dict[str, Any]
) -> dict[str, Any]:
    """Held-out scores along a path; `about`: the fold of each row from 1, or how many, a seed, and what is scored."""
    found = model(loss, {**options, **grid}, choosing=True)
    fold = about.pop("fold", None)
    if fold is not None:
        about["cv"] = [
            (np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(1, int(fold.max()) + 1)
        ]
    found.set_params(**about)
    found.fit(**data)
    folds = found.cv_fold_
    kept = (
        [np.asarray(own, dtype=np.float64) for own in folds] if isinstance(folds, list) else np.asarray(folds)
    )
    whole = found.path_
    return {
        "model": found, "scores": found.cv_scores_, "fold": kept,
        **described(whole), **explained(whole, loss, options, data),
    }  # fmt: skip


# --- findings ---------------------------------------------------------------------------------------------------------


def stability(
    loss: str, options: dict[str, Any], data: dict[str, Any], about: dict[str, Any]
) -> dict[str, Any]:
    """How often features are selected on halves of the rows."""
    found = ts.StabilitySelection(model(loss, options), **about).fit(**data)
    levels = found.stability_path_.tocsc()
    return {
        "probability": found.selection_probabilities_,
        "cutoff": float(found.threshold_),
        "q": int(found.q_),
        "pfer": float(found.pfer_bound_),
        "bounds": {name: float(value) for name, value in found.pfer_bounds_.items()},
        "n_pairs": int(found.n_pairs_),
        "selectable": int(found.n_selectable_),
        "strength": found.alphas_,
        "path": {"i": levels.indices.astype(np.int32), "p": levels.indptr.astype(np.int32), "x": levels.data},
        "halves": found.halves_,
        "selection": found,
    }


def graded(
    coef: Any, intercept: Any, thresholds: Any, options: dict[str, Any], data: dict[str, Any]
) -> dict[str, Any]:
    """What is proved about coefficients of any program."""
    found = ts.grade(coef, intercept, **data, **options, thresholds=thresholds)
    names = ("objective", "dual_gap", "relative_gap", "best_objective", "excess")
    flags = ("proven_zero", "proven_nonzero", "wrong_zero", "wrong_nonzero", "selected")
    return {
        **{name: None if getattr(found, name) is None else float(getattr(found, name)) for name in names},
        **{name: getattr(found, name) for name in flags},
        "words": found.summary(),
        "certificate": found.certificate,
    }


def certified(path: Any, data: dict[str, Any], file: str | None) -> dict[str, Any]:
    """The proof of all values of a path: what it shows, and the file."""
    found = path.certificate(**data)
    if file is not None:
        found.save(file)
    checked = found.verify(**data)
    n_values = len(path)
    return {
        "proved": bool(checked.proved),
        "gap": np.asarray(found.gaps, dtype=np.float64),
        "proven_zero": np.array([int(found.proven_zero(k).sum()) for k in range(n_values)]),
        "proven_nonzero": np.array([int(found.proven_nonzero(k).sum()) for k in range(n_values)]),
        "file": file,
    }


def survival_curves(
    loss: str, options: dict[str, Any], data: dict[str, Any], newx: Any, times: Any, task: Any, strata: Any
) -> Any:
    """Survival of new rows at some times, (rows, times)."""
    fitted = one(loss, options, data)
    return np.asarray(fitted.predict_survival_function(newx, task=task, times=times, strata=strata))


def event_times(y: Any) -> Any:
    """All times of events."""
    parts = y if isinstance(y, list) else [y]
    return np.unique(np.concatenate([part["time"][part["event"]] for part in parts]))


def events(y: Any) -> Any:
    """Whether rows end with an event."""
    parts = y if isinstance(y, list) else [y]
    return np.concatenate([part["event"] for part in parts]).astype(np.float64)


def reported(model: Any, file: str, data: dict[str, Any], about: dict[str, Any]) -> str:
    """The page of a fitted model."""
    return str(ts.write_report(model, file, **data, **about))


def in_r(version: str) -> str:
    """A version as R spells it, in numbers: 1.0.0.dev0 is 1.0.0.9000."""
    released, development, number = version.partition(".dev")
    return f"{released}.{9000 + int(number)}" if development else version


def health() -> dict[str, Any]:
    """Versions, and whether the compiled kernels are in use."""
    from tasksieve._kernels import compiled

    return {
        "tasksieve": ts.__version__,
        "version_in_r": in_r(ts.__version__),
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "sklearn": sklearn.__version__,
        "compiled": bool(compiled),
    }
