"""Certificates of the models on the engine: the problem in the format's words, the data, and a dual point."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from ..proof.certificate import Certificate
from ..proof.claims import ClaimedSolution, certify, tidy
from ..proof.dual import DualPoints
from ..proof.forms import form_of, plain_labels
from ..proof.reduced import ReducedProblems
from ..tasks import count_rows, outcomes_in_order, read_labels
from ..tasks.named import takes_named_tasks
from ..tasks.readable import by_task
from ..verify import Task, kind_of, listed_labels, survival_table

Array = np.ndarray[Any, Any]

_TIGHTER = (1e-1, 1e-2, 1e-3, 1e-5)  # than the gap claimed: how well a value is solved again


class CertifiedModel:
    """A fitted model that can write down the proof of its answer."""

    @takes_named_tasks
    def certificate(
        self,
        X: Any,
        y: Any = None,
        *,
        task: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        need: bool = False,
    ) -> Certificate:
        """The proof of the fit, which an independent program can check.

        Afterwards ``proven_zero_`` and ``proven_nonzero_`` are there as well.

        Parameters
        ----------
        X, y, task, sample_weight, offset
            The data of the fit. (Other data with the same tasks and features: the certificate says how good the
            coefficients are there.)
        need : bool, default=False
            Also prove for each feature in use that it is needed: that every model without it is worse, and by how much
            (`Certificate.needs`). The file grows by one float64 for each row and such feature.

        Returns
        -------
        Certificate
            Its ``save`` writes the file. About three passes over X.
        """
        model: Any = self
        state = model._learned()
        y = outcomes_in_order(y, state.tasks)
        stated, alpha = model._stated()
        rows = np.ascontiguousarray(state.rows.T)
        features = np.flatnonzero(rows.any(axis=1))
        gap = float(getattr(model, "dual_gap_", np.inf))
        constants = np.asarray(state.constants, dtype=np.float64)
        point = (alpha, features, rows[features], constants, gap, state.stored_thresholds)
        found = Statement(stated, X, y, task, sample_weight, offset).certificate([point], 0 if need else None)
        if found.header["n_features"] == model.n_features_in_:
            model._proven = found.proven_zero(), found.proven_nonzero()
        return found

    def _in_words_of_the_format(
        self, X: Any, y: Any, task: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> tuple[dict[str, Any], dict[str, Array], float, Callable[[float], tuple[float, float]]]:
        """The model's problem on data, without its answer: header and arrays of a certificate, its alpha, and the
        strengths of the format (alpha and ridge) at any alpha."""
        stated, alpha = self._stated()  # type: ignore[attr-defined]
        statement = Statement(stated, X, y, task, sample_weight, offset)
        return statement.header(), tidy(statement.arrays), alpha, statement.strengths

    def _weights_as_given(self, X: Any, y: Any, task: Any, sample_weight: Any) -> Array:
        """Of rows: a common factor may have been taken out of those of the solver."""
        targets = self._raw_targets  # type: ignore[attr-defined]
        return np.asarray(
            read_labels(count_rows(X), y, task, sample_weight, targets=targets, allow_empty=True).weights
        )

    @property
    def proven_zero_(self) -> Array:
        """Features that are zero in every solution, of shape (d,); known once `certificate` was called."""
        return self._proof()[0]

    @property
    def proven_nonzero_(self) -> Array:
        """Features that are not zero in any solution, of shape (d,); known once `certificate` was called."""
        return self._proof()[1]

    def _proof(self) -> tuple[Array, Array]:
        found: tuple[Array, Array] | None = getattr(self, "_proven", None)
        if found is None:
            raise AttributeError(
                "proven_zero_ and proven_nonzero_ are known once certificate(X, y, ...) was called: the proof needs "
                "the data, and a model does not keep them."
            )
        return found


class Statement:
    """A model's problem on data, in the format's words."""

    def __init__(self, model: Any, X: Any, y: Any, task: Any, sample_weight: Any, offset: Any) -> None:
        form_of(model._loss)  # refused before any work
        if not isinstance(offset, list | tuple) and np.ndim(offset) == 2 and np.ndim(y) == 1:
            raise ValueError("offset: a certificate holds one number per row, not one for each class.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit has warned already
            self.data = data = model._read_with(X, y, task, sample_weight, offset)
            self.problem = model._problem(data)
        self.model = model
        self.weights, self.codes = model._weights_as_given(X, y, task, sample_weight), data.class_codes
        #: by task, of ordered classes those that it has rows of: the others are not in the certificate
        self.present = [self._present(t, part) for t, part in enumerate(data.per_task())]
        kept = np.ones(len(self.weights), dtype=bool) if data.shared else self.weights > 0.0
        self.duals = DualPoints(self.problem, data, kept)
        self.loss = form_of(model._loss_of(data))
        if data.balance is not None:
            self.loss["scales"] = [float(scale) for scale in data.balance.scales]
        matrices = by_task(data.source.parts, data, kept)
        self.tasks = [
            self._task(t, matrix, slice(part.start, part.stop), kept)
            for t, (matrix, part) in enumerate(zip(matrices, data.per_task(), strict=True))
        ]
        self.penalty, self.arrays = form_of(self.problem.penalty)
        if model.task_graph is not None and model.graph_strength > 0.0:
            self.arrays["edges"] = float(model.graph_strength) * model._edges(data)
        if data.patterns is not None and not data.patterns.complete:
            absent = [np.flatnonzero(~own) for own in data.patterns.present]
            self.arrays["absent"] = np.concatenate(absent).astype(np.int64)
            self.arrays["absent_start"] = np.cumsum([0, *map(len, absent)]).astype(np.int64)

    def _present(self, t: int, part: slice) -> Array | None:
        data = self.data
        if not (data.ordered or (data.kinds is not None and data.kinds[t] == "ordered")):
            return None
        y = data.y[part] if data.y.dtype.names is None else data.y[part]["time"]
        return np.unique(y[self.weights[part] > 0.0]).astype(np.int64)

    def _task(self, t: int, matrix: Any, part: slice, kept: Array) -> Task:
        data, here = self.data, kept[part]
        weight = self.weights[part]
        labels = listed_labels(self._labels(t, part), weight > 0.0)
        known = None if data.known is None else data.known[part][here]
        return Task(matrix, labels[here], weight[here], known)

    def _labels(self, t: int, part: slice) -> Array:
        """Numbers, places of classes, or times with events: as the task's loss has them."""
        y = self.data.y[part]
        kind = kind_of(self.loss["losses"][t] if self.loss["name"] == "mixed" else self.loss)
        if kind == "survival":
            return survival_table(y)[0]
        if self.codes is not None and self.present[t] is None:
            return np.asarray(self.codes[part], dtype=np.float64)
        y = y if y.dtype.names is None else y["time"]
        have = self.present[t]
        if have is not None:
            return np.minimum(np.searchsorted(have, y), len(have) - 1).astype(np.float64)
        return np.asarray(0.5 * (y + 1.0) if kind == "signs" else y, dtype=np.float64)

    def _class_weights(self) -> list[list[float]] | None:
        data, codes, found = self.data, self.codes, []
        if data.class_factors is None or codes is None:
            return None
        for t, part in enumerate(data.per_task()):
            own = np.ones(len(data.classes_of(t)))
            live = self.weights[part] > 0.0
            own[codes[part][live]] = data.class_factors[part][live]
            have = self.present[t]
            found.append(own.tolist() if have is None else own[have].tolist())
        return found

    def _given_weights(self) -> Array:
        """With those of classes; a common factor may have been taken out of them for the solver."""
        factors = self.data.class_factors
        return self.weights if factors is None else self.weights * factors

    def _unit(self) -> float:
        """In the weights as they were given."""
        return float(self.model._loss.unit(float(np.add.reduce(self._given_weights())) / self.data.n_tasks))

    def _dual_scale(self) -> float | Array:
        """From the solver's dual points to those under the weights as they were given: s p is in the unit of the
        objective. In a mixture s holds the weight of the task's loss."""
        heaviest = int(np.argmax(self.data.weights))
        common = float(self._given_weights()[heaviest] / self.data.weights[heaviest])
        found = 1.0 if common == 1.0 else self._unit() / self.model._unit(self.data) / common
        if self.loss["name"] != "mixed":
            return found
        return np.asarray(found / np.repeat(self.loss["weights"], [len(part.y) for part in self.tasks]))

    def header(self) -> dict[str, Any]:
        model, data = self.model, self.data
        classes: Any = None
        if data.classes is not None:
            nested = isinstance(data.classes, list)
            classes = [None if own is None else plain_labels(own) for own in data.classes] if nested else plain_labels(
                data.classes
            )
            own = self.present
            if any(have is not None and len(have) < len(data.classes_of(t)) for t, have in enumerate(own)):
                classes = classes if nested else [classes] * data.n_tasks
                classes = [
                    known if have is None else [known[k] for k in have]
                    for known, have in zip(classes, own, strict=True)
                ]
        found = {
            "tasks": plain_labels(data.tasks),
            "n_features": int(data.n_features),
            "classes": classes,
            "shared": bool(data.shared),
            "unit": self._unit(),
            "intercept": bool(model.fit_intercept),
            "standardize": bool(model.standardize),
            "positive": bool(model.positive),
            "loss": self.loss,
            "penalty": self.penalty,
            "task_weights": None if data.task_weights_rule is None else [float(w) for w in data.task_weights],
            "class_weights": self._class_weights(),
            "about": {"model": type(model).__name__, "made_by": "tasksieve"},
        }
        if "absent" in self.arrays:
            of = data.patterns.of
            dropped = int(data.source.matrices[0].n_dropped)
            found["patterns"] = {"of": None if of is None else plain_labels(of), "dropped": dropped}
        names = getattr(model, "feature_names_in_", None)
        if names is not None and len(names) == data.n_features:
            found["features"] = [str(name) for name in names]
        return found

    def certificate(
        self, points: Sequence[tuple[float, Array, Array, Array, float, Array | None]], need: int | None = None
    ) -> Certificate:
        """That of some values; `need` is the one of which it is proved what it needs."""
        answers = [self.answer(*point) for point in points]
        strengths = [(point[0], point[4]) for point in points]
        asked = None
        if need is not None:
            k = range(len(points))[need]
            asked = k, self._reduced(*points[k][:3]), lambda dual: self.duals.listed(dual) * self._dual_scale()
        return certify(self.header(), self.arrays, self.tasks, answers, lambda k: self._better(*strengths[k]), asked)

    def _reduced(self, alpha: float, features: Array, rows: Array) -> ReducedProblems:
        """The problem of a value without some features."""
        units, order = self.problem.units, np.argsort(features, kind="stable")
        lam = float(self.model._inward(self.data, units, np.array([alpha]))[0])
        return ReducedProblems(self.problem, lam, features[order], units.rows(rows[order]), self.model.max_iter)

    def answer(
        self,
        alpha: float,
        features: Array,
        rows: Array,
        intercept: Array,
        gap: float = np.inf,
        thresholds: Array | None = None,
    ) -> ClaimedSolution:
        """Coefficients at a strength, with the dual point that is theirs; thresholds are (m, T)."""
        if rows.shape[1] != self.problem.design.n_tasks or (len(features) and features[-1] >= self.data.n_features):
            raise ValueError("X, y and task must have the features, tasks and classes of the fitted model.")
        self._refuse_absent(features, rows)
        dual = self.dual_of(alpha, features, rows)
        listed = None if thresholds is None else self._listed(thresholds)
        return ClaimedSolution(*self.strengths(alpha), features, rows, intercept, dual, gap, listed)

    def _refuse_absent(self, features: Array, rows: Array) -> None:
        """Coefficients of features that their tasks do not have."""
        data = self.data
        if data.patterns is None:
            return
        counts = 1 if data.class_counts is None else data.class_counts
        wrong = np.argwhere((rows.T != 0.0) & ~np.repeat(data.patterns.present, counts, axis=0)[:, features])
        if len(wrong):
            t = int(np.repeat(np.arange(data.n_tasks), counts)[wrong[0, 0]])
            raise ValueError(
                f"task {data.tasks.tolist()[t]!r} does not have feature {features[wrong[0, 1]]}: its coefficient there "
                "must be 0."
            )

    def _listed(self, thresholds: Array) -> Array:
        """Thresholds between the classes that tasks have rows of, task after task."""
        live = [(t, have) for t, have in enumerate(self.present) if have is not None]
        if max((int(have[-1]) for _, have in live), default=0) > len(thresholds):
            raise ValueError("y has classes that the thresholds do not know: these are of other data.")
        found = np.concatenate([np.empty(0), *(thresholds[have[:-1], t] for t, have in live)])
        if not np.isfinite(found).all():
            raise ValueError("y has rows of a class that a task did not have where the thresholds come from.")
        return found

    def strengths(self, alpha: float) -> tuple[float, float]:
        """alpha and ridge of the format."""
        options, lam = self.model._penalty(), alpha * self.model._norm_share()
        return lam, lam * options.get("ridge_ratio", 0.0) + options.get("fixed_ridge", 0.0)

    def dual_of(self, alpha: float, features: Array, rows: Array) -> Array:
        """The dual point of coefficients, at the best intercepts for them."""
        units = self.problem.units
        lam = self.model._inward(self.data, units, np.array([alpha]))[0]
        order = np.argsort(features, kind="stable")
        found = self.duals.of(float(lam), features[order], units.rows(rows[order]))
        return found * self._dual_scale()

    def _better(self, alpha: float, gap: float) -> Iterator[Array]:
        """Dual points of a value with that gap, solved again ever more closely."""
        scale = self.problem.loss.null.value / self.problem.unit
        if not np.isfinite(gap) or not scale > 0.0:
            return
        last: Array | None = None
        for part in _TIGHTER:
            model = copy(self.model)
            model.tol = part * gap / scale
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                point = model._solve(self.data, self.problem, np.array([alpha])).points[0]
            if last is not None and np.array_equal(last, point.rows):
                continue  # it was as close as this the last time
            last = point.rows
            if getattr(point, "dual", None) is not None:
                yield self.duals.listed(point.dual) * self._dual_scale()
            yield self.dual_of(alpha, point.features, point.rows)
