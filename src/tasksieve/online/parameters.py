"""Parameters and attributes of the online models, each described once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypedDict

from ..parameters import PARAMETERS, Parameter, table


def online_parameters(*, loss: Parameter) -> dict[str, Parameter]:
    """Parameters of an online model, in the order of signatures."""
    return table(
        replace(PARAMETERS["alpha"], text="Strength of the penalty, >= 0."),
        Parameter(
            "penalty",
            '{"l21", "l11", "l1+l21"}',
            "l21",
            '"l21" (aMTFS): a feature is in for all tasks or out for all; :math:`r_j = 0`. "l11" (iMTFS): only '
            r':math:`\alpha \lVert W \rVert_1`, every task selects for itself. "l1+l21" (MTFTS): features, and tasks '
            "within them.",
        ),
        Parameter(
            "l1",
            "float or array of shape (d,)",
            0.01,
            ':math:`r_j` of "l1+l21"; the other penalties do not use it.',
        ),
        loss,
        Parameter(
            "gamma",
            'float or "auto"',
            "auto",
            r'Damping: the step of row t is :math:`\sqrt t / \gamma`. "auto": follows the sizes of the rows so far and '
            "never falls (see Notes of `OnlineMultiTaskRegressor`). A number > 0 (or 0 with a ridge): fixed; it should "
            "be about the squared norm of a row (times the square root of the number of tasks unless rows come in "
            "rounds), and too small a value makes the first steps explode.",
        ),
        Parameter("l2", "float", 0.0, r"Ridge :math:`\lambda_2`."),
        Parameter(
            "enhanced",
            "float",
            0.0,
            r":math:`\rho` of the enhanced method: the threshold is :math:`\alpha + \gamma \rho / \sqrt t`, so that "
            "early iterates are sparser. The limit is the same.",
        ),
        Parameter(
            "missing",
            '{"per-task", "importance", "rounds"}',
            "per-task",
            'What a step is where tasks come in any proportion. "per-task": every row is a step, and the gradients of '
            'each task are averaged over its own rows. "importance": gradients are divided by the task\'s share of the '
            'rows so far. "rounds": the paper\'s; rows are collected until a task comes again, all gradients of the '
            "round are taken at its start, and a task that is absent counts as a zero gradient.",
        ),
        replace(
            PARAMETERS["fit_intercept"], text="One intercept per task, neither penalised nor shrunk by the ridge."
        ),
        Parameter(
            "average",
            'bool or "auto"',
            "auto",
            'Whether to keep the average of all iterates, at a cost of O(d T) per step. "auto": for dense rows of at '
            "most 1,000 features.",
        ),
        Parameter("max_iter", "int", 20, "Passes over the data in `fit`."),
        Parameter("shuffle", "bool", True, "Whether `fit` takes the rows of every pass in a new random order."),
        Parameter("random_state", "int or RandomState", None, "For that order."),
        Parameter("warm_start", "bool", False, "Whether `fit` continues from what was learned before."),
        Parameter(
            "task_feature",
            "hashable",
            None,
            "Name under which the rows of `learn_one` carry their task, for pipelines that pass rows only.",
        ),
        Parameter(
            "hash_features",
            "int",
            None,
            "`learn_one` hashes feature names into so many features; by default each new name is a new feature.",
        ),
        replace(PARAMETERS["verbose"], text="Report progress on stderr, about once a second."),
    )


class OnlineOptions(TypedDict, total=False):
    """Options of every online model."""

    penalty: Literal["l21", "l11", "l1+l21"]
    l1: Any
    gamma: float | Literal["auto"]
    l2: float
    enhanced: float
    missing: Literal["per-task", "importance", "rounds"]
    fit_intercept: bool
    average: bool | Literal["auto"]
    max_iter: int
    shuffle: bool
    random_state: Any
    warm_start: bool
    task_feature: Any
    hash_features: int | None
    verbose: int


class OnlineRegressorOptions(OnlineOptions, total=False):
    """Of `OnlineMultiTaskRegressor`."""

    loss: Literal["squared"]


class OnlineClassifierOptions(OnlineOptions, total=False):
    """Of `OnlineMultiTaskClassifier`."""

    loss: Literal["logistic", "hinge", "squared"]


#: matrices to learn from; the other entries are those of linear models
ONLINE_DATA = """
X : matrix of shape (n, d), or list of matrices
    Rows of all tasks stacked (with ``task``), one matrix per task (a list), or one matrix shared by all tasks
    (with y of shape (n, T)). Dense or sparse; never modified.
"""

#: a single row
ONE_ROW = """
x : dict of name to value, or 1-D array
    Names that were never seen before are new features to `learn_one`, and left out by what predicts.
task : hashable, optional
    The row's task; none: there is only one.
w : float, default=1.0
    Weight of the row's loss; 0 leaves it out.
"""

#: attributes of a model that has learned a row
ONLINE = """
coef_ : ndarray of shape (T, d)
    The last iterate: sparse. Computed at access.
intercept_ : ndarray of shape (T,)
averaged_coef_, averaged_intercept_ : ndarray
    Averages of all iterates, where kept.
tasks_ : ndarray of shape (T,)
    Task labels in the order of ``coef_``: first seen first.
t_ : int
    Steps made.
gamma_ : float
    The damping after the rows so far.
progressive_loss_ : float
    Mean loss of the rows so far, each predicted before it was learned; more in `progress`.
n_rows_seen_ : int
n_features_in_ : int
n_iter_ : int
    Passes made by `fit`.
feature_index_ : dict
    Feature names met by `learn_one`, and their places in ``coef_``.
"""
