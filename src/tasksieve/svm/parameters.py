"""Parameters and attributes of the machines on a graph, each described once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypedDict

from ..docstrings import listed
from ..fitted.parameters import ChoiceOptions
from ..parameters import CROSS_VALIDATED, PARAMETERS, Parameter, table

# fmt: off
_CS = Parameter(
    "Cs", "int or array", 10,
    "Values of C that are compared. A whole number: so many, evenly spaced in their logarithms, over a range that "
    "follows from the lengths of the rows: from where the rows of a task together hardly reach their margin to a "
    "hundred times what one of them needs to reach it alone.",
)
_PROGRESS = replace(PARAMETERS["verbose"], text="Report progress on stderr, about once a second.")

_GRAPH = (
    PARAMETERS["graph"],
    Parameter(
        "graph_tasks", "sequence of T labels", None,
        "The task of each row of ``graph``. By default 0, ..., T - 1 where all labels in the data are integers in that "
        "range, else the sorted labels, of which there must then be T. A networkx graph uses the names of its nodes.",
    ),
)
_SOLVED = (
    Parameter(
        "fit_intercept", "bool", True,
        "One more feature, constant and of size ``intercept_scaling``: its coefficients are regularised and coupled as "
        "the others are, and counted in the objective.",
    ),
    PARAMETERS["intercept_scaling"],
    Parameter(
        "class_weight", 'dict or "balanced"', None,
        'Factor of ``sample_weight`` by class; "balanced": total weight / (number of classes x weight of the class).',
    ),
    Parameter(
        "hasher", "WeightedDegreeHasher", None,
        "X is then strings of one length, hashed on the fly inside the solver: their features are never stored.",
    ),
    PARAMETERS["task"],
    replace(PARAMETERS["tol"], text="Stop when the dual gap is at most ``tol`` times the objective at W = 0."),
    Parameter(
        "max_iter", "int", 10_000,
        "Epochs of the descent after which to give up, with a `sklearn.exceptions.ConvergenceWarning`.",
    ),
    Parameter(
        "solver", '{"auto", "dual", "newton"}', "auto",
        'Dual coordinate descent, or Newton\'s method on the loss with rounded kinks. "auto" takes Newton for dense '
        "rows many times more numerous than tasks x features, and falls back on the descent where it stalls.",
    ),
)

#: losses of classification and of regression, with the default of each
CLASS_LOSS = (
    Parameter(
        "loss", '{"hinge", "squared_hinge", "logistic"}', "hinge",
        'max(0, 1 - m), max(0, 1 - m)², log(1 + exp(-m)) of the margin m. "logistic" gives `predict_proba`.',
    ),
)
RESIDUAL_LOSS = (
    Parameter(
        "loss", '{"epsilon_insensitive", "squared_epsilon_insensitive", "squared"}', "epsilon_insensitive",
        "max(0, abs(r) - epsilon), its square, r² of the residual r (no factor 1/2).",
    ),
    PARAMETERS["epsilon"],
)


def of_machine(*loss: Parameter) -> dict[str, Parameter]:
    """Parameters of a machine with one C and one strength, in the order of signatures."""
    return table(
        *_GRAPH,
        Parameter("graph_strength", "float", 1.0, "Factor of the Laplacian; 0: independent machines."),
        PARAMETERS["C"],
        *loss,
        *_SOLVED,
        Parameter(
            "warm_start", "bool", False, "Start from the dual solution of the last `fit`, rescaled if C has changed."
        ),
        Parameter(
            "random_state", "int, RandomState instance", None,
            "Seed of the order in which rows are visited; None is 0, so that the same input gives the same answer.",
        ),
        PARAMETERS["n_jobs"],
        _PROGRESS,
    )


def of_cross_validation(*loss: Parameter) -> dict[str, Parameter]:
    """Parameters of a machine whose C and strength are chosen, in the order of signatures."""
    return table(
        *_GRAPH,
        Parameter(
            "graph_strengths", "array", None,
            "Values of ``graph_strength`` that are compared; by default 0.1, 1 and 10, without a graph 0.",
        ),
        _CS,
        Parameter(
            "cv", "int, splitter or iterable", None,
            "A number of folds, by default 5: shuffled within tasks, stratified by class, whole ``groups`` together. A "
            "splitter or (train, test) pairs of row indices may hold out whole tasks if there is a graph: their "
            "neighbours then predict them.",
        ),
        Parameter(
            "scoring", "str or callable", None,
            "A scorer of scikit-learn, or ``scorer(estimator, X, y)``: the larger, the better; its mean over tasks. By "
            "default the loss of held-out rows, the smaller the better.",
        ),
        replace(
            CROSS_VALIDATED["selection_rule"],
            text="The best mean over the folds; or with the same strength the smallest C within one standard error of "
            "it.",
        ),
        replace(
            CROSS_VALIDATED["fold_tol"],
            text="What folds are solved to, relative to the objective at W = 0; by default max(tol, 1e-4).",
        ),
        *loss,
        *_SOLVED,
        Parameter(
            "random_state", "int, RandomState instance", None,
            "Seed of the folds, and of the order in which rows are visited; None is 0.",
        ),
        replace(
            PARAMETERS["n_jobs"],
            text="Folds that are solved at the same time, in threads; the processors available are shared among them.",
        ),
        _PROGRESS,
    )
# fmt: on


class MachineOptions(TypedDict, total=False):
    """Options of every machine."""

    graph_tasks: Any
    fit_intercept: bool
    intercept_scaling: float
    hasher: Any
    task: str | int | None
    tol: float
    max_iter: int
    solver: Literal["auto", "dual", "newton"]
    random_state: Any
    n_jobs: int | None
    verbose: int


class ValueOptions(MachineOptions, total=False):
    """One C, one strength."""

    graph_strength: float
    C: float
    warm_start: bool


class GridOptions(ChoiceOptions, MachineOptions, total=False):
    """Both by cross-validation."""

    graph_strengths: Any
    Cs: Any


class ClassOptions(TypedDict, total=False):
    """Of classifiers."""

    loss: Literal["hinge", "squared_hinge", "logistic"]
    class_weight: Any


class ResidualOptions(TypedDict, total=False):
    """Of regressors."""

    loss: Literal["epsilon_insensitive", "squared_epsilon_insensitive", "squared"]
    epsilon: float


class SVCOptions(ValueOptions, ClassOptions, total=False):
    """Of `GraphSVC`."""


class SVCCVOptions(GridOptions, ClassOptions, total=False):
    """Of `GraphSVCCV`."""


class SVROptions(ValueOptions, ResidualOptions, total=False):
    """Of `GraphSVR`."""


class SVRCVOptions(GridOptions, ResidualOptions, total=False):
    """Of `GraphSVRCV`."""


#: rows and labels of a fit; the other entries are those of linear models
MACHINE_DATA = """
X : matrix of shape (n, d), list of matrices, or with ``hasher`` n strings
    Rows of all tasks stacked (with ``task``), one matrix per task (a list), or one matrix shared by all tasks
    (with y of shape (n, T)). C-ordered float64, float32, int8 and uint8 arrays and CSR matrices are read as
    they lie in memory, in any order of tasks; never modified.
y : array of shape (n,) or (n, T), or list of 1-D arrays
    Class labels, or numbers. NaN (None) is a label that is not observed. 1-D without ``task``: one task.
"""

_PATH_STRENGTHS = Parameter(
    "graph_strengths", "array", None,
    "Values of ``graph_strength``, those of the model by default; a graph is needed.",
)  # fmt: skip
#: values that a path goes through
PATH_VALUES = listed(parameter.entry(parameter.default) for parameter in (_CS, _PATH_STRENGTHS))

#: attributes of a fitted machine
MACHINE = """
coef_ : ndarray of shape (T, d)
    A row per task of the graph, also for those without rows.
intercept_ : ndarray of shape (T,)
tasks_ : ndarray of shape (T,)
    Task labels in the order of the graph.
dual_coef_ : ndarray of shape (n,) or (n, T), or list of ndarray, in the form of y
support_ : ndarray, or list of ndarray
    Rows whose dual coefficient is not 0 in some task or class.
objective_ : float
    The objective at the stored coefficients and intercepts.
dual_gap_ : float
    ``objective_`` minus the optimum is at most this, all rounding included. A model that has not converged (there
    was a warning) is never worse than W = 0. Both take one pass over the rows at the end of a fit.
null_objective_ : float
    The objective of the empty model; ``dual_gap_`` is at most ``tol`` times this, or there was a warning.
n_iter_ : int
    Epochs of the descent, or Newton steps.
status_ : Status
    How the solution ended: "converged", or why not.
n_visits_ : int
    Rows that the descent has read, in all epochs and classes.
solver_ : str
    The method that found the answer.
n_features_in_ : int
feature_names_in_ : ndarray of str
    Where X had them.
hasher_ : WeightedDegreeHasher
    The hasher fitted to the length of the strings, where there is one.
"""

#: further attributes of a machine chosen by cross-validation; the others are of the machine fitted to all rows
MACHINE_CHOSEN = """
C_, graph_strength_ : float
    The values chosen.
Cs_, graph_strengths_ : ndarrays
    The values compared, increasing.
cv_scores_ : ndarray of shape (number of strengths, number of Cs, number of folds)
    Held-out losses with ``class_weight`` in them (the smaller, the better), or with ``scoring`` scores (the
    larger, the better): means over tasks, and over the machines of one-vs-rest.
cv_compared_ : dict of arrays
    For each ``"graph_strength"`` the ``"C"`` that would be chosen with it, and the ``"score"`` there: mean over folds,
    with its standard ``"error"``.
cv_fold_ : ndarray, or list of ndarray, in the form of y
    The fold, from 1, in which each row was held out: the last of several; NaN where it never was.
cv_predictions_ : ndarray, or list of ndarray, in the form of y
    For each row what the fold that held it out predicted with the values chosen: numbers, ``decision_function``, or
    with the logistic loss ``predict_proba``, with their last axis for classes. The mean where a row was held out
    twice, NaN where it never was.
cv_quality_ : HeldOutQuality
    How good these are, task by task and overall, with standard errors: R², or accuracy and AUC, and the loss. The
    values were chosen by the same rows, and it says so.
cv_folds_ : str
    How the folds were made, in words.
cv_measure : str
    What ``cv_scores_`` are, in words.
"""
