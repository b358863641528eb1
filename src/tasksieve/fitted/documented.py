"""Signatures and docstrings of estimators, completed from the tables of what they share.

`documented` gives a constructor that takes common parameters as ``**options`` the signature with all of them, which
`inspect.signature`, scikit-learn's ``get_params`` and ``help()`` show, and a class the entries that its docstring does
not have: parameters from `parameters`, attributes from the tables below, and a model with cross-validation those of the
model that it repeats.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from ..docstrings import Entry, LazyText, entries, lines, listed, merged, sections, with_sections
from ..parameters import Parameter

C = TypeVar("C", bound=type)

#: data of a fit, as every method that takes them describes them
DATA = """
X : matrix of shape (n, d), list of matrices, or dict of task to (X, y)
    Rows of all tasks stacked (with ``task``), one matrix per task (a list), one matrix shared by all
    tasks (with y of shape (n, T)), or pairs by the name of the task (without y and task), whose data frames are
    matched by the names of their columns. float64, float32, int8 and uint8 arrays, scipy sparse matrices, data
    frames, memory maps and torch tensors on any device; never modified.
y : array of shape (n,) or (n, T), or list of 1-D arrays
    Targets. NaN is a label that is not observed. 1-D without ``task``: one task.
task : array of shape (n,), optional
    The task of each row: words or whole numbers, in any order.
sample_weight : array or list in the form of y, or float, optional
    Weights >= 0 of the rows, in fitting and in scoring; 0 leaves a row out. For a shared matrix (n,) or (n, T).
groups : array of shape (n,), or list of such, optional
    Any labels, one per row of X (a list of matrices: or a list): rows of one group, relatives say, are held out
    together, in all tasks. Splitters that take groups get these, or else the tasks.
offset : float, or array or list in the form of y, optional
    What is known of each prediction beforehand: it is x . w_t + b_t + offset. Needed at `predict`, too.
"""

#: rows to predict
ROWS = """
X : matrix of shape (n, d), or list of matrices
    Rows to predict, in any form that `fit` takes; in a list, item t belongs to ``tasks_[t]``.
task : array of shape (n,), optional
    The task of each row, one of ``tasks_``.
offset : float, or array or list in the form of the predictions, optional
    Needed if the model was fitted with one (0.0 for none); one per row serves for all tasks. Models that are fitted
    without offsets, online and on a graph, refuse it.
"""

#: what `predict` gives for them
PREDICTIONS = """
ndarray of shape (n,) or (n, T), or list of ndarray
    With ``task`` (n,), without (n, T), every task's prediction (but (n,) where the model was fitted to
    a 1-D y without task); a list for a list.
"""

#: attributes of a fitted model on the engine
FITTED = """
coef_ : ndarray of shape (T, d)
    Coefficients W', a row per task.
intercept_ : ndarray of shape (T,)
tasks_ : ndarray of shape (T,)
    Task labels in the order of ``coef_``: sorted; the columns of a data frame y; 0..T-1 for lists and other Y.
objective_ : float
    The objective above at the fitted model.
dual_gap_ : float
    Upper bound on ``objective_`` minus the optimum: always computed, always true.
null_objective_ : float
    The objective of the empty model; ``dual_gap_`` is at most ``tol`` times this, or there was a warning.
scale_ : ndarray of shape (T, d)
    Standard deviations that define the objective; only with ``standardize=True``.
n_iter_ : int
status_ : Status
    How the solution ended: "converged", or why not.
choice_ : Choice
    Which solver found it (``kind``: "rows", "sums", "sums-in-blocks", "device"), and why (``reason``).
n_features_in_ : int
feature_names_in_ : ndarray of str
    Where X is a data frame.
"""

#: further attributes of a model whose penalty is a parameter
OF_PENALTY = """
shared_coef_, specific_coef_ : ndarray in the shape of ``coef_``
    Parts of ``coef_``, of which it is the sum; with a penalty that has parts (`tasksieve.penalties.Dirty`).
selected_groups_ : ndarray
    Labels of the groups that are not zero; with a penalty on groups (`tasksieve.penalties.Groups`).
"""

#: further attributes of a model whose strength was chosen by cross-validation; the others are of the final fit
CHOSEN = """
alpha_ : float
    The value chosen.
alphas_ : ndarray of shape (K,)
cv_scores_ : ndarray of shape (K, n_folds)
    Mean over tasks of the held-out {held_out}.
cv_folds_ : str
    How the folds were made, in words.
cv_fold_ : ndarray, or list of such for a list
    The fold, from 1, in which each row was held out, in the order of y: the last of several; NaN where it never was.
cv_predictions_ : ndarray, or list of such for a list
    Out of fold at ``alpha_``, in the order of y: numbers, or probabilities as of ``predict_proba`` (decision values
    where the loss has none); NaN for rows that were never held out, the mean for those held out twice.
cv_quality_ : HeldOutQuality
    How good these are, task by task and overall, with standard errors: R² or D², or accuracy and AUC, and the loss.
    ``alpha_`` was chosen by the same rows, and it says so.
cv_quality_by_task_ : HeldOutQuality
    Where X is rows of `by_pattern`: the same for the tasks as they were given, all patterns of each together.
cv_task_scores_ : ndarray of shape (T, n_folds)
    What ``cv_scores_`` at ``alpha_`` are the mean of; NaN for tasks without held-out rows.
path_ : RegularizationPath
    The path on all rows.
path_scores_ : ndarray of shape (`n_scored_`, n_folds)
    ``cv_scores_`` along ``path_``; ``cv_measure`` names what they measure.
n_scored_ : int
    Values that were solved: past an early stop ``cv_scores_`` are NaN, and there ``path_`` ends.
passes_ : float
    Readings of X by folds and path together, in equivalents. Where they are expensive (a file, a `Storage`) folds
    advance in step and share them.
"""

#: letters of an objective, for docstrings that write ``{terms}``; u where the formula weighs features
_TERMS = (
    "row j of W the coefficients of feature j in all tasks, :math:`\\bar n` the total sample weight of the observed "
    "labels / the number of tasks, and {weights} and samples. Each task has its own data matrix, or all share one."
)

_CHOICE = r"""
.. math:: \arg\min_{CHOSEN} \frac1F \sum_f \frac1T \sum_t
    \ell\bigl(y_t^{(f)}, X_t^{(f)} w_t^{(-f)}(CHOSEN) + b_t^{(-f)}(CHOSEN)\bigr)
"""
_FOLDS = (
    "over folds f, each predicted by a model of the other folds; :math:`\\ell` is the %s. Folds are row weights: X is "
    "neither copied nor cut. The model with ``alpha_`` is then fitted to all rows, and has its attributes."
)

# of a model with cross-validation that compares several values of a parameter, too
_COMPARED = """
Parameters
----------
n_alphas : int, default=100
    Number of values, geometrically from ``alpha_max`` (of each ``{name}``) to ``eps`` times that.
selection_rule : {{"min", "1se"}}, default="min"
    The smallest mean loss, or, with the same ``{name}``, the largest alpha within one standard error of it.

Attributes
----------
{name}_ : float
    The value chosen.
cv_compared_ : dict of arrays
    For each ``"{name}"`` the ``"alpha"`` that would be chosen with it, and the ``"score"`` there: mean over folds,
    with its standard ``"error"``.
alphas_ : ndarray of shape (K,), or (n_{name}, K) where ``{name}`` is a list
cv_scores_ : ndarray of shape (K, n_folds), or (n_{name}, K, n_folds) where ``{name}`` is a list
    Mean over tasks of the held-out {held_out}.
path_ : RegularizationPath
    The path with ``{name}_`` on all rows.
"""

# of a model with cross-validation that has none of its own; the doctests run it for each
_EXAMPLE = """
>>> import tasksieve as ts
>>> X, y, task, _ = ts.datasets.make_small_tasks({labels})
>>> model = ts.{name}(n_alphas=20, eps=0.05, cv=3).fit(X, y, task=task)
>>> model.cv_scores_.shape, model.alpha_ in model.alphas_
((20, 3), True)
>>> model.score(X, y, task=task) > {least}
True
"""


def documented(kind: C) -> C:
    """Decorate an estimator: its constructor gets its whole signature, its docstring all entries."""
    own = kind.__dict__
    constructor = own.get("__init__")
    options = _options(constructor) if constructor is not None else None
    if options is not None:
        table: Mapping[str, Parameter] = kind._parameters  # type: ignore[attr-defined]
        names = [name for name in table if name in options]
        kind._option_defaults = {name: table[name].default for name in names}  # type: ignore[attr-defined]
        _complete_signature(constructor, options, kind._option_defaults)  # type: ignore[attr-defined]
    if kind.__doc__ is not None:  # None: python -OO
        kind.__doc__ = LazyText(partial(_text, kind, kind.__doc__))  # type: ignore[assignment]
    return kind


def _options(constructor: Any) -> Mapping[str, Any] | None:
    """Names and types of ``**options: Unpack[...]``."""
    written = constructor.__annotations__.get("options")
    if written is None:
        return None
    return constructor.__globals__[written[written.index("[") + 1 : -1]].__annotations__


def _complete_signature(constructor: Any, options: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    bare = inspect.signature(constructor)
    own = [given for given in bare.parameters.values() if given.kind is not inspect.Parameter.VAR_KEYWORD]
    common = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=getattr(options[name], "__forward_arg__", options[name]),
        )
        for name, default in defaults.items()
    ]
    constructor.__signature__ = bare.replace(parameters=[*own, *common])


def _text(kind: Any, source: str) -> str:
    text = _with_terms(inspect.cleandoc(source))
    parts = sections(text)
    repeated: Any = getattr(kind, "_estimator", None)
    held_out = getattr(kind, "_held_out_words", "score")
    shared = entries(kind._attributes.replace("{held_out}", held_out))
    chosen, comparison, new = r"\alpha", dict[str, str](), dict[str, str]()
    if repeated is None:
        if hasattr(kind, "selected_groups_") and "penalty" in inspect.signature(kind).parameters:
            shared = {**shared, **entries(OF_PENALTY)}
        chooser, others = f"{kind.__name__}CV", parts.get("See Also", "")
        if hasattr(sys.modules[kind.__module__], chooser) and chooser not in others:
            new["See Also"] = f"{chooser} : alpha by cross-validation.\n{others}".strip("\n")
    else:
        compared: str | None = getattr(kind, "_compared", None)
        if compared is not None:
            chosen += rf", \texttt{{{compared}}}".replace("_", r"\_")
            comparison = sections(_COMPARED.format(name=compared, held_out=held_out))
        of_model = sections(repeated.__doc__ or "")
        shared = {**entries(of_model.get("Attributes", "")), **shared}
        shared = {name: shared[name] for name in [*entries(kind._attributes), *shared]}
        if ".. math::" not in parts[""]:
            summary, _, rest = parts[""].partition("\n\n")
            folds = "\n".join(lines(_FOLDS % held_out))
            formula = _CHOICE.replace("CHOSEN", chosen).strip("\n")
            new[""] = "\n\n".join(filter(None, [summary, formula, folds, rest]))
        if "Examples" not in parts:
            labels, least = kind._example
            new["Examples"] = _EXAMPLE.format(name=kind.__name__, labels=labels, least=least).strip("\n")
        if "See Also" not in parts:
            new["See Also"] = f"{repeated.__name__} : for one value of alpha."
    own = {
        title: {**entries(comparison.get(title, "")), **entries(parts.get(title, ""))}
        for title in ("Parameters", "Attributes")
    }
    new["Parameters"] = listed(_parameters(kind, own["Parameters"], repeated))
    new["Attributes"] = listed(merged(own["Attributes"], shared).values())
    if repeated is not None and "[1]_" in new["Parameters"] + new["Attributes"]:
        new["References"] = of_model["References"]
    return with_sections(text, new)


def _with_terms(text: str) -> str:
    """A text whose paragraphs say what the letters of a formula are."""
    weights = "u, v, s the weights of features, tasks" if "u_j" in text else "v, s the weights of tasks"
    paragraphs = text.split("\n\n")
    for k, paragraph in enumerate(paragraphs):
        if "{terms}" in paragraph:
            paragraphs[k] = "\n".join(lines(paragraph.replace("{terms}", _TERMS.format(weights=weights))))
    return "\n\n".join(paragraphs)


def _parameters(kind: Any, own: Mapping[str, Entry], repeated: Any) -> list[Entry]:
    """An entry for each parameter of the constructor: its own, that of the model repeated, or the table's."""
    table: Mapping[str, Parameter] = kind._parameters
    compared: str | None = getattr(kind, "_compared", None)
    if compared is not None:
        several = replace(table[compared], kind="float or list of float").with_sentence("Or several to compare.")
        table = {**table, compared: several}
    of_model: Mapping[str, Entry] = {}
    if repeated is not None:
        of_model = {
            name: entry
            for name, entry in entries(sections(repeated.__doc__ or "").get("Parameters", "")).items()
            if table.get(name) is repeated._parameters.get(name)
        }
    found = []
    for name, given in list(inspect.signature(kind.__init__).parameters.items())[1:]:
        if name in own or name in of_model:
            found.append(own.get(name) or of_model[name])
        elif name in table:
            found.append(table[name].entry(given.default))
        else:
            raise LookupError(f"{kind.__name__}: parameter {name!r} is described nowhere.")
    return found


