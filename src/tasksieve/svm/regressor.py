"""Support vector regression for tasks on a graph."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from ..fitted.arguments import check_number
from ..fitted.parameters import keep_parameters
from ..fitted.predicting import TaskRegression
from ..tasks.named import takes_named_tasks
from .cross_validation import GraphModelCV
from .model import GraphModel


class GraphSVR(TaskRegression, GraphModel):
    r"""Support vector regression for tasks that are neighbours on a graph.

    .. math::

        \min_W\ \tfrac12 \sum_t \lVert w_t \rVert^2 + \tfrac12 \sum_{st} L_{st}\, w_s \cdot w_t
        + C \sum_i s_i\, \ell\bigl(x_i \cdot w_{t(i)} - y_i\bigr)

    with L = ``graph_strength`` times the Laplacian of the graph, as in `GraphSVC`.

    Parameters
    ----------
    graph, graph_tasks, graph_strength, C
        As in `GraphSVC`.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive", "squared"}, default="epsilon_insensitive"
        max(0, abs(r) - epsilon), its square, r² of the residual r (no factor 1/2).
    epsilon : float, default=0.1
        Half the width of the tube in which residuals cost nothing, >= 0. The squared loss has no tube.
    fit_intercept, intercept_scaling, hasher, tol, max_iter, solver, warm_start, random_state, n_jobs, verbose
        As in `GraphSVC`. The intercept is regularised: centre y, or raise ``intercept_scaling``, where its mean is
        far from 0.

    Attributes
    ----------
    coef_ : ndarray of shape (T, d)
    intercept_ : ndarray of shape (T,)
    tasks_ : ndarray of shape (T,)
        Task labels in the order of the graph.
    dual_coef_ : ndarray of shape (n,) or (n, T), or list of ndarray, in the form of y
    support_ : ndarray, or list of ndarray
        Rows whose dual coefficient is not 0.
    objective_, dual_gap_ : float
        The objective at the stored coefficients and intercepts; it minus the optimum is at most the gap, all rounding
        included. Both take one pass over the rows at the end of a fit.
    null_objective_ : float
        The objective of the empty model; ``dual_gap_`` is at most ``tol`` times this, or there was a warning.
    n_iter_ : int
    status_ : Status
        How the solution ended: "converged", or why not.
    n_visits_ : int
        Rows that the descent has read, in all epochs.
    solver_ : str
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had them.
    hasher_ : WeightedDegreeHasher
        Where there is one.

    See Also
    --------
    GraphSVRCV : C and graph_strength by cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((60, 5)), np.repeat(["a", "b", "c"], 20)
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(60)
    >>> model = ts.GraphSVR(ts.graph.complete_graph(3), C=10.0).fit(X, y, task=task)
    >>> model.coef_[:, 0].round(1).tolist()
    [1.0, 1.0, 1.0]
    """

    _losses: ClassVar[tuple[str, ...]] = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared")

    def __init__(
        self,
        graph: Any = None,
        *,
        graph_tasks: Any = None,
        graph_strength: float = 1.0,
        C: float = 1.0,
        loss: Literal[
            "epsilon_insensitive", "squared_epsilon_insensitive", "squared"
        ] = "epsilon_insensitive",
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        hasher: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        solver: Literal["auto", "dual", "newton"] = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        keep_parameters(self, locals())

    @takes_named_tasks
    def fit(self, X: Any, y: Any = None, task: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : matrix of shape (n, d), list of matrices, or with ``hasher`` n strings
            As in `GraphSVC.fit`.
        y : array of shape (n,) or (n, T), or list of 1-D arrays
            Targets. NaN is a label that is not observed. 1-D without ``task``: one task.
        task : array of shape (n,), optional
            The task of each row: any labels, in any order.
        sample_weight : array or list in the form of y, or float, optional
            Weights >= 0 of the rows in the loss; 0 leaves a row out.

        Returns
        -------
        self
        """
        result: GraphSVR = self._solve_all(X, y, task, sample_weight)
        return result

    def _check_parameters(self) -> None:
        check_number(self.epsilon, "epsilon", low=0, closed=True)
        super()._check_parameters()


class GraphSVRCV(TaskRegression, GraphModelCV):
    r"""Support vector regression for tasks on a graph, with C and graph_strength chosen by cross-validation.

    .. math::

        \min_W\ \tfrac12 \sum_t \lVert w_t \rVert^2 + \tfrac12 \sum_{st} L_{st}\, w_s \cdot w_t
        + C \sum_i s_i\, \ell\bigl(x_i \cdot w_{t(i)} - y_i\bigr)

    the objective of `GraphSVR`, with the pair of values whose held-out score is best.

    Parameters
    ----------
    graph, graph_tasks
        As in `GraphSVC`.
    graph_strengths, Cs, cv, scoring, selection_rule, fold_tol
        As in `GraphSVCCV`. With the epsilon-insensitive loss, values of C that are not given are in the unit of y, too.
    loss, epsilon, fit_intercept, intercept_scaling, hasher, tol, max_iter, solver
        As in `GraphSVR`.
    random_state, n_jobs, verbose
        As in `GraphSVCCV`.

    Attributes
    ----------
    C_, graph_strength_, Cs_, graph_strengths_, cv_scores_, cv_folds_, cv_measure
        As in `GraphSVCCV`.
    cv_predictions_ : ndarray, or list of ndarray, in the form of y
        For each row the prediction of the fold that held it out, with the values chosen; NaN where none did.
    cv_quality_ : HeldOutQuality
        How good these are, task by task and overall, with standard errors: R², or accuracy and AUC, and the loss. The
        values were chosen by the same rows, and it says so.
    coef_, intercept_, tasks_, dual_coef_, support_, objective_, dual_gap_, null_objective_
        Of the machine fitted to all rows with the values chosen, as are ``n_iter_``, ``status_``, ``n_visits_``,
        ``solver_``, ``n_features_in_``, ``feature_names_in_`` and ``hasher_``: see `GraphSVR`.

    Examples
    --------
    >>> import numpy as np
    >>> import tasksieve as ts
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((60, 5)), np.repeat(["a", "b", "c"], 20)
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(60)
    >>> model = ts.GraphSVRCV(ts.graph.complete_graph(3), Cs=[0.01, 0.1, 1.0]).fit(X, y, task=task)
    >>> model.C_, model.graph_strength_
    (1.0, 10.0)
    >>> model.cv_predictions_.shape
    (60,)
    """

    _estimator = GraphSVR

    def __init__(
        self,
        graph: Any = None,
        *,
        graph_tasks: Any = None,
        graph_strengths: Any = None,
        Cs: Any = 10,
        cv: Any = None,
        scoring: Any = None,
        selection_rule: Literal["min", "1se"] = "min",
        fold_tol: float | None = None,
        loss: Literal[
            "epsilon_insensitive", "squared_epsilon_insensitive", "squared"
        ] = "epsilon_insensitive",
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        hasher: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        solver: Literal["auto", "dual", "newton"] = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        keep_parameters(self, locals())
