"""What a site proves of its rows: bounds whose sums over all sites prove the gap of the pooled model.

At the coefficients and the dual point that a site has stored, a `Half` bounds its loss from above, its dual value at
the scales of `GRID` from below, squared coefficients and squared products from above. They are found by the verifier
itself (`verify.part_bounds`), in floating point with every rounding counted, for every loss, with intercepts and
unpenalised features; as integers they are rounded outwards once more, and integers add up exactly, masked or not.

Files: `SiteProof.part` (``certificate-part.npz``, stays at the site) and `published_half` (``half.npz``, its bounds
alone); sums and gap are in ``statement.npz`` (`statement`). The format is described in "The certificate file".
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import verify
from ..atomic import write_atomically
from ..linear.held_out import Solved
from ..losses import Loss
from ..proof.certificate import write_archive
from ..proof.claims import ClaimedSolution, inside_domain, listed_points
from ..proof.forms import form_of, plain_labels
from ..tasks import TaskData
from ..tasks.readable import by_task
from .answer import FIELDS, GRID, Answer, Words, counts, misfits, to_words
from .errors import FederatedError
from .question import Question
from .units import Units

Array = np.ndarray[Any, Any]

SALT = 32  # bytes
_INWARD = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # how far a dual point is moved from the edge of its domain
_LARGEST = 900  # exponents of the format


@dataclass(frozen=True, eq=False)
class Half:
    """Bounds of a site at one point, in sum units.

    - `loss`: At least F + l1 sum |w|.
    - `dual` (29,): At most -F*(-k u) - k <u, offset>, for each k of `GRID`.
    - `w2` (a,), `c2` (d,): At least the sums over tasks of w_j^2 on the question's features, and of soft(x_j'u, l1)^2.
    """

    loss: float
    dual: Array
    w2: Array
    c2: Array

    def answer(self) -> Answer:
        """As it is sent."""
        return Answer(loss=self.loss, dual=self.dual, w2=self.w2, c2=self.c2)


@dataclass(frozen=True, eq=False)
class SitePoint:
    """What a site stores at a question: coefficients in the units of the data, and a dual point as the format lists
    it."""

    features: Array
    rows: Array
    intercept: Array
    dual: Array
    thresholds: Array | None = None

    def claimed(self) -> ClaimedSolution:
        return ClaimedSolution(
            1.0, 0.0, self.features, self.rows, self.intercept, self.dual, thresholds=self.thresholds
        )


class SiteProof:
    """The tasks of a site in the words of the certificate's format, and the bounds of points on them.

    Parameters
    ----------
    data : TaskData
    loss : Loss
    weights : flat array
        Sample weights of the rows that are learned from, 0 for others.
    fit_intercept : bool
    scales : {"no", "task"} or array of shape (d,)
        What columns are divided by.
    unpenalised : array of int
    """

    def __init__(
        self, data: TaskData, loss: Loss, weights: Array, *, fit_intercept: bool, scales: Any, unpenalised: Array
    ) -> None:
        if data.class_factors is not None or data.class_counts is not None:
            raise FederatedError("part", "class weights, and more than two unordered classes, have no part")
        self._data, self._weights = data, np.asarray(weights, dtype=np.float64)
        self._free = np.asarray(unpenalised, dtype=np.int64)
        self._scales = None if isinstance(scales, str) else np.asarray(scales, dtype=np.float64)
        self._form = form_of(loss)
        self._kept = np.ones(len(weights), dtype=bool) if data.shared else self._weights > 0.0
        spans = list(data.per_task())
        kind = verify.kind_of(self._form)
        self._present = [np.unique(self._labels(part)[self._weights[part] > 0.0]).astype(np.int64)
                         if kind == "ordered" else None for part in spans]  # fmt: skip
        assert data.source is not None
        matrices = by_task(data.source.parts, data, self._kept)
        self.tasks = [self._task(t, m, part) for t, (m, part) in enumerate(zip(matrices, spans, strict=True))]
        own = data.with_weights(self._weights).task_weights
        self._header = {
            "tasks": plain_labels(data.tasks),
            "rows": [len(part.y) for part in self.tasks],
            "n_features": int(data.n_features),
            "classes": self._classes(kind),
            "shared": bool(data.shared),
            "offset": data.known is not None,
            "intercept": bool(fit_intercept),
            "standardize": isinstance(scales, str) and scales == "task",
            "loss": self._form,
            "task_weights": None if data.task_weights_rule is None else [float(w) for w in own],
            "class_weights": None,
        }

    def _labels(self, part: slice) -> Array:
        y = self._data.y[part]
        if verify.kind_of(self._form) == "survival":
            return np.asarray(verify.survival_table(y)[0])
        return np.asarray(0.5 * (y + 1.0) if verify.kind_of(self._form) == "signs" else y, dtype=np.float64)

    def _task(self, t: int, matrix: Any, part: slice) -> verify.Task:
        here, weight, labels, have = self._kept[part], self._weights[part], self._labels(part), self._present[t]
        if have is not None:  # of ordered classes those that there are rows of
            labels = np.minimum(np.searchsorted(have, labels), len(have) - 1).astype(np.float64)
        labels = verify.listed_labels(labels, weight > 0.0)
        known = None if self._data.known is None else self._data.known[part][here]
        return verify.Task(matrix, labels[here], weight[here], known)

    def _classes(self, kind: str) -> Any:
        data = self._data
        if kind == "ordered":
            found = []
            for t, have in enumerate(self._present):
                assert have is not None
                labels = have.tolist() if data.classes is None else plain_labels(data.classes_of(t))
                found.append(labels if data.classes is None else [labels[k] for k in have])
            return found
        if kind != "signs":
            return None
        return [-1, 1] if data.classes is None else plain_labels(data.classes)

    def point(self, stored: Solved, residual: Array, root: Array) -> SitePoint:
        """Coefficients, and the dual point u of a solver in its geometry, where rows are multiplied by `root`."""
        p = np.divide(residual, root, out=np.zeros_like(residual), where=root > 0.0)
        p = np.where(self._kept, p, 0.0) if self._data.shared else p[self._kept]
        thresholds = None
        if stored.thresholds is not None and verify.kind_of(self._form) == "ordered":
            own = [stored.thresholds[have[:-1], t] for t, have in enumerate(self._present) if have is not None]
            thresholds = np.concatenate([np.empty(0), *own])
        return self._inside(SitePoint(stored.features, stored.rows, stored.intercept, p, thresholds))

    def _inside(self, point: SitePoint) -> SitePoint:
        """The point with a dual vector that has a projection in the domain of the conjugate, a little further from its
        edge where need be; one that has none counts as 0 in its task, which proves little and is as true."""
        nearest = inside_domain(self._problem(point), point.dual)
        found = SitePoint(point.features, point.rows, point.intercept, nearest, point.thresholds)
        with np.errstate(all="ignore"):
            for share in _INWARD:
                dual = (1.0 - share) * nearest
                moved = SitePoint(point.features, point.rows, point.intercept, dual, point.thresholds)
                problem = self._problem(moved)
                at = problem.project(0)
                gain = problem.dual_losses(at, problem.arith.one(1.0)).total()
                if not at.dropped and np.isfinite(gain.lo):
                    return moved
        return found

    def _problem(self, point: SitePoint) -> verify.Problem:
        arrays = listed_points([point.claimed()])
        weights = np.ones(self._data.n_features)
        weights[self._free] = 0.0
        header = {
            **self._header,
            "format": "tasksieve-certificate",
            "version": verify.VERSION,
            "unit": 1.0,
            "positive": False,
            "penalty": {"name": "rows"},
            "digests": {"matrices": ["0" * 64] * len(self._matrices), "labels": ["0" * 64] * len(self.tasks)},
        }
        stated = verify.Certificate(json.loads(json.dumps(header)), {**arrays, "feature_weights": weights})
        return verify.Problem(stated, self.tasks, verify.Floating())

    @property
    def _matrices(self) -> list[verify.Task]:
        return self.tasks[:1] if self._header["shared"] else self.tasks

    def half(self, question: Question, point: SitePoint) -> Half:
        """Bounds at what was stored for a question, a little wider than found here: another processor adds in another
        order."""
        agreed = {
            "l1": np.array([question.l1]),
            "scale": GRID,
            "active_start": np.array([0, len(question.features)]),
            "active": question.features,
            **({} if self._scales is None else {"column_scale": self._scales}),
        }
        with np.errstate(all="ignore"):
            found = verify.part_bounds(self._problem(point), 0, agreed, lambda words: None)
        loss, w2, c2 = (_above(box) for box in (found.loss, found.w2, found.c2))
        dual = _below(found.gain)
        if question.levels is not None:
            c2 = c2[question.levels]
        return Half(float(loss), dual, w2, c2)

    def digests(self, salt: bytes) -> dict[str, list[str]]:
        """Of the data, salted: to those without the salt they confirm no guess."""
        matrices = verify.matrix_digests(self.tasks, self._header["shared"])
        return {
            "matrices": [verify.salted(one, salt) for one in matrices],
            "labels": [verify.salted(part.digest(), salt) for part in self.tasks],
        }

    def part(
        self,
        site: str,
        salt: bytes,
        questions: Sequence[Question],
        units: Sequence[Units],
        points: Sequence[SitePoint],
        halves: Sequence[Half],
        *,
        names: Sequence[str] | None = None,
    ) -> Archive:
        """``certificate-part.npz``: all that proves the halves of some questions but the rows. It stays at the site.

        Parameters
        ----------
        site : str
        salt : bytes
            32 random ones, kept by the site.
        questions, units, points, halves : sequences of the same length
            As they were asked and answered, of kind "part" and about all features.
        names : sequence of str, optional
            Of the features.
        """
        if len(salt) < SALT:
            raise FederatedError("part", f"a salt has {SALT} bytes")
        d = int(self._data.n_features)
        words = [
            to_words(half.answer(), question, unit, d)
            for half, question, unit in zip(halves, questions, units, strict=True)
        ]
        own = listed_points([point.claimed() for point in points])
        for name in ("alpha", "ridge", "objective", "dual_value", "gap"):
            own.pop(name)
        header = {
            "format": "tasksieve-certificate-part",
            "version": verify.VERSION,
            "site": site,
            "salt": salt.hex(),
            **self._header,
            "digests": self.digests(salt),
            **({} if names is None else {"features": [str(name) for name in names]}),
        }
        agreed = agreed_arrays(questions, units, self._free, self._scales)
        return Archive(header, {**own, **agreed, **added_words(words, questions, d)})


def _above(box: verify.Box) -> Any:
    return np.where(box.hi == 0.0, 0.0, box.hi + 2.0 * (box.hi - box.lo) + 2.0**-50 * np.abs(box.hi))


def _below(box: verify.Box) -> Any:
    return box.lo - 2.0 * (box.hi - box.lo) - 2.0**-50 * np.abs(box.lo)


@dataclass(eq=False)
class Archive:
    """A header and arrays, as a file of the certificate's format."""

    header: dict[str, Any]
    arrays: dict[str, Array]

    def to_bytes(self) -> bytes:
        """The file's content: the same for the same content."""
        stream = io.BytesIO()
        write_archive(stream, self.header, self.arrays)
        return stream.getvalue()

    def save(self, path: Any) -> None:
        """Write the file, whole or not at all."""
        write_atomically(Path(path), lambda file: write_archive(file, self.header, self.arrays))


def published_half(part: Archive) -> Archive:
    """``half.npz``: the bounds of a part, without coefficients, dual points and salt."""
    read = verify.Part(json.loads(json.dumps(part.header)), dict(part.arrays))
    return Archive(read.half.header, read.half.arrays)


def agreed_arrays(
    questions: Sequence[Question], units: Sequence[Units], free: Array, column_scale: Array | None
) -> dict[str, Array]:
    """What all sites have in common, of some questions of kind "part"."""
    for question in questions:
        if question.kind != "part" or question.levels is not None:
            raise FederatedError("part", "a certificate is made of questions of kind 'part', about all features")
    squares = [unit.squares + 2 * np.frexp(question.s)[1].astype(np.int64)
               for question, unit in zip(questions, units, strict=True)]  # fmt: skip
    found = {
        "l1": np.array([question.l1 for question in questions]),
        "scale": GRID.copy(),
        "exponent": np.array([[unit.sums, unit.squares] for unit in units], dtype=np.int64),
        "w2_exponent": np.concatenate(squares),
        "active_start": np.cumsum([0, *(len(question.features) for question in questions)]),
        "active": np.concatenate([question.features for question in questions]),
        "free": np.asarray(free, dtype=np.int64),
    }
    if max(np.abs(found["exponent"]).max(), np.abs(found["w2_exponent"]).max(initial=0)) > _LARGEST:
        raise FederatedError("part", "numbers are too large or too small for a certificate: bring data to usual sizes")
    return found if column_scale is None else {**found, "column_scale": column_scale}


def added_words(
    words: Sequence[Words], questions: Sequence[Question], n_features: int, n_sites: int = 1
) -> dict[str, Array]:
    """Words of a site, or words that were added up over `n_sites`, question after question, as arrays of the format."""
    found: dict[str, list[Array]] = {"loss": [], "gain": [], "w2": [], "c2": []}
    for one, question in zip(words, questions, strict=True):
        whole = one.long.view(np.int64)
        if misfits(one).any():
            raise FederatedError("part", "numbers of a site did not fit their units: these are no bounds")
        lengths = {"loss": 1, "dual": len(GRID), "w2": len(question.features), "c2": n_features}
        at = len(whole) - sum(lengths.values())
        if (len(whole), len(one.short)) != counts(question, n_features) or whole[0] != n_sites:
            raise FederatedError("part", "these words are no answers of all sites to a question of kind 'part'")
        for part in FIELDS["part"]:
            own = whole[at : at + lengths[part.name]]
            at += lengths[part.name]
            found["gain" if part.name == "dual" else part.name].append(own)
    return {
        "loss": np.concatenate(found["loss"]),
        "gain": np.stack(found["gain"]),
        "w2": np.concatenate(found["w2"]),
        "c2": np.stack(found["c2"]),
    }
