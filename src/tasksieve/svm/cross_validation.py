"""Cross-validation of machines on a graph: folds are subsets of the samples, no row is copied.

Each fold walks through the values as a path does, every solution started from its neighbour's; the strengths of the
graph follow one another, so that of the out-of-fold scores no more is kept than those of two strengths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from ..docstrings import described_by
from ..fitted.arguments import kernel_threads
from ..fitted.assess import OutOfFold, units_of
from ..fitted.choosing import CrossValidated, fold_tolerance, select
from ..fitted.documented import DATA
from ..fitted.fold_assignment import read_seed
from ..fitted.folds import FoldRules, Weights, make_folds
from ..fitted.held_out import mean_score, read_scorer
from ..fitted.measures import measure_of
from ..fitted.parameters import check_common
from ..fitted.progress import carried, reporter, tells_callbacks
from ..parameters import Parameter
from ..tasks.named import takes_named_tasks
from .grids import check_Cs, read_Cs
from .model import GraphModel, GraphRows
from .parameters import MACHINE_CHOSEN, MACHINE_DATA
from .problem import Solution, StringSource
from .reading import GraphData
from .walk import Walk, stacked

STRENGTHS = (0.1, 1.0, 10.0)  # of a graph, where none are given
Scorer = Callable[..., float]


class GraphModelCV(CrossValidated, GraphRows):
    """Machine whose C and graph_strength are chosen by cross-validation."""

    _parameters: ClassVar[dict[str, Parameter]]
    _attributes: ClassVar[str] = MACHINE_CHOSEN

    Cs: Any
    graph_strengths: Any

    def _stated(self) -> GraphModel:
        """The machine of the values chosen: whose problem the certificate is about."""
        chosen: GraphModel = self._model(C=self.C_, graph_strength=self.graph_strength_)
        if hasattr(self, "feature_names_in_"):
            chosen.feature_names_in_ = self.feature_names_in_
        return chosen

    def _check_parameters(self) -> None:
        check_common(self)
        check_Cs(self.Cs)
        self._strength_grid(self._model())
        self._model()._check_parameters()

    def _strength_grid(self, model: GraphModel) -> np.ndarray:
        return model._strengths(self.graph_strengths, STRENGTHS if self.graph is not None else (0.0,))

    @property
    def _loss_label(self) -> str:
        return f"{self.loss.replace('_', '-')} loss"

    @tells_callbacks
    @takes_named_tasks
    @described_by(MACHINE_DATA, DATA)
    def fit(self, X: Any, y: Any = None, *, task: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose C and graph_strength by cross-validation and fit on all rows.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._check_targets(y, task)
        seed = read_seed(self.random_state)
        jobs = effective_n_jobs(self.n_jobs)
        model = self._model(random_state=seed, n_jobs=max(1, kernel_threads() // jobs))
        data = model._read_data(X, y, task, sample_weight)
        labels = data.labels
        strengths = self._strength_grid(model)
        Cs = read_Cs(self.Cs, data, model._weigh(labels, labels.weights))
        if self._targets == "classes":  # which folds are stratified by
            labels = replace(labels, y=np.where(labels.weights > 0, data.codes, 0.0), classes=self._targets)
        rules = FoldRules(seed, whole_tasks=self.graph is not None)
        found = make_folds(self.cv, y, labels, groups, rules)
        tol = fold_tolerance(float(self.tol), self.fold_tol)
        scorer = read_scorer(self.scoring)
        folds = [_Fold(model, data, weights, tol, scorer) for weights in found.weights]
        for f, fold in enumerate(folds):
            fold.report_to(f"{type(self).__name__}, fold {f + 1}", self.verbose, len(strengths) * len(Cs))

        # "sharedmem" means threads: the kernels let them run side by side, and X is in memory once
        parallel = Parallel(n_jobs=self.n_jobs, require="sharedmem")
        scores = np.full((len(strengths), len(Cs), len(folds)), np.nan)
        lowest, kept = np.inf, list[np.ndarray]()
        for s, strength in enumerate(strengths.tolist()):
            out = parallel(delayed(carried(fold.along))(Cs, strength) for fold in folds)
            scores[s] = np.stack([losses for losses, _ in out], axis=1)
            best = float(np.min(scores[s].mean(axis=1)))
            if best < lowest or not kept:
                lowest, kept = best, [of_fold for _, of_fold in out]
        if np.isnan(scores).any():
            raise ValueError(
                f"scoring={self.scoring!r} is not a number in fold {int(np.argwhere(np.isnan(scores))[0, 2])}: it is "
                "not defined for the held-out rows of any task. Use fewer folds or another score."
            )
        self._warn_open_folds(sum(fold.n_open for fold in folds), scores.size, model.max_iter)
        s, k = select(scores, self.selection_rule)
        model.set_params(C=float(Cs[k]), graph_strength=float(strengths[s]))
        model._solve_data(data, f"{type(self).__name__}, all rows")
        for name, value in vars(model).items():
            if name.endswith("_") or name == "_single":
                setattr(self, name, value)
        if not hasattr(model, "feature_names_in_") and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.C_, self.graph_strength_ = float(Cs[k]), float(strengths[s])
        self.Cs_, self.graph_strengths_ = Cs, strengths
        self.cv_scores_ = scores if self.scoring is None else -scores
        compared = {"graph_strength": strengths}
        self.cv_compared_ = self._best_of_each(compared, {"C": [Cs] * len(strengths)}, self.cv_scores_)
        self.cv_folds_ = found.words
        # the same machine without features: it has intercepts alone
        empty = replace(data, source=np.zeros((data.source.shape[0], 1)))
        without = [_Fold(model, empty, weights, tol) for weights in found.weights]
        null = [fold.along(Cs[k : k + 1], self.graph_strength_)[1][0] for fold in without]
        answers = self._out_of_fold(data)
        held_out = np.full(data.offsets[-1], np.nan)  # from 1; NaN for rows that are never held out
        for f, fold in enumerate(folds, start=1):
            held_out[fold.test] = f
        self.cv_fold_ = data.in_form_of_y(held_out)
        for fold, values, of_null in zip(folds, kept, null, strict=True):
            answers.add(fold.test, values[k], of_null)
        self.cv_predictions_ = data.in_form_of_y(answers.means())
        self.cv_quality_ = answers.quality(
            found,
            groups=groups,
            units=data.sorted(units_of(data.labels, groups)),
            weights=data.sorted(data.labels.weights),  # those of classes do not count
            loss=self._loss_label,
            tuned="C",
            n_tried=scores.shape[0] * scores.shape[1],
        )
        return self

    def _out_of_fold(self, data: GraphData) -> OutOfFold:
        """Of samples in the order of the graph."""
        probable, n_machines = hasattr(self, "predict_proba"), len(data.targets)
        return OutOfFold(
            replace(data.labels, tasks=data.tasks, offsets=data.offsets, y=data.sorted(data.labels.y)),
            measure_of(self),
            data.sorted(data.codes) if self._targets == "classes" else None,
            losses=data.losses,
            answers=self._learned().probabilities if probable else np.asarray,
            ranks=np.asarray,
            width=2 if probable and n_machines == 1 else n_machines,
        )


class _Fold:
    """One fold, which remembers where it has come to from strength to strength."""

    def __init__(
        self, model: GraphModel, data: GraphData, weights: Weights, tol: float, scorer: Scorer | None = None
    ) -> None:
        train, test = (data.sorted(part) for part in weights)
        self.test, self.n_open = np.flatnonzero(test > 0), 0
        self._model, self._data, self._scorer = model, data, scorer
        options = {**model._options(), "tol": tol}
        self._walk = Walk(data, model._weigh(data.labels, weights[0]), options, np.flatnonzero(train > 0))
        self._weights, self._held = test[self.test], data.scorer(self.test)
        factors = model._class_factors(data.labels, weights[0])
        self._in_loss = self._weights if factors is None else self._weights * data.sorted(factors)[self.test]
        self._task = np.repeat(np.arange(len(data.tasks)), np.diff(data.offsets))[self.test]
        self._parts = {} if scorer is None else self._held_out_tasks()
        self._progress: Callable[..., None] | None = None

    def report_to(self, label: str, verbose: int, n_values: int) -> None:
        """Say after each value how many of them are solved."""
        self._progress, self._done, self._n_values = reporter(label, "value", verbose), 0, n_values

    def along(self, Cs: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
        """Held-out losses (or scores times -1) for all K values of C, and scores of shape (K, samples), with a last
        axis for the machines where there are several."""
        losses, scores = [], []
        for C, _ in self._walk.values(Cs, np.array([strength])):
            solutions = self._walk.solve(C, strength)
            self.n_open += not all(found.converged for found in solutions)
            z = [self._held.scores(found.w) for found in solutions]
            scores.append(z[0] if len(z) == 1 else np.stack(z, axis=1))
            losses.append(self._loss(scores[-1]) if self._scorer is None else -self._score(solutions))
            if self._progress is not None:
                self._done += 1
                self._progress(self._done, self._n_values, f"C = {C:.3g}, graph_strength = {strength:.3g}")
        return np.array(losses), np.stack(scores)

    def _loss(self, scores: np.ndarray) -> float:
        """Mean over tasks of the weighted mean loss."""
        weight = np.bincount(self._task, weights=self._in_loss)
        total = np.bincount(self._task, weights=self._in_loss * self._data.losses(self.test, scores))
        return float(np.mean(total[weight > 0] / weight[weight > 0]))

    def _score(self, solutions: list[Solution]) -> float:
        model = self._model._as_fitted(self._data, *stacked(solutions, self._data.source.shape[1]))
        assert self._scorer is not None
        return mean_score(self._scorer, model, self._parts)

    def _held_out_tasks(self) -> dict[int, tuple[Any, np.ndarray, np.ndarray | None]]:
        data = self._data
        rows = self.test if data.row_of is None else data.row_of[self.test]
        y = data.sorted(data.labels.y)[self.test]
        X = data.source.text if isinstance(data.source, StringSource) else data.source
        parts = {}
        for t in np.unique(self._task).tolist():
            own = np.flatnonzero(self._task == t)
            weights = self._weights[own]
            parts[t] = X[rows[own]], y[own], None if np.all(weights == 1.0) else weights
        return parts
