"""What a certificate of one value may claim, from `docs/certificate-format.md` alone, in fractions and 60 digits.

Nothing of the library or of its verifier is used. Sums, projections and matrices are fractions, without any rounding;
roots, logarithms and exponentials have 60 digits. A claim is false here if no scale c of the stored dual vector
supports it (`Truth.unsupported`); it is disproved if other coefficients do better than it allows (`Truth.disproved`).
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

Array = np.ndarray[Any, Any]
Point = tuple[Array, Array]  # coefficients (features, outputs) and intercepts

mpmath.mp.dps = 60
ZERO, ONE = Fraction(0), Fraction(1)
CLEAR = mpf(10) ** -12  # of the size of what is compared


@dataclass
class Content:
    """A certificate and its data, task by task: y holds numbers or places of classes."""

    header: dict[str, Any]
    arrays: dict[str, Array]
    x: list[Array]
    y: list[Array]
    weight: list[Array]
    offset: list[Array] | None = None
    others: list[Point] = field(default_factory=list)  # coefficients that may do better than the stored ones
    story: str = ""

    def copy(self) -> Content:
        return copy.deepcopy(self)

    def sign(self) -> None:
        self.header["digests"] = self.digests()

    def digests(self) -> dict[str, list[str]]:
        """Of the data as they are."""
        def digest(values: Array) -> str:
            return hashlib.sha256((np.ascontiguousarray(values, dtype="<f8") + 0.0).tobytes()).hexdigest()

        labels = []
        for t, y in enumerate(self.y):
            columns = [*np.atleast_2d(y.T), self.weight[t]] + ([] if self.offset is None else [self.offset[t]])
            labels.append(digest(np.stack(columns, axis=1)))
        matrices = self.x[:1] if self.header["shared"] else self.x
        return {"matrices": [digest(x) for x in matrices], "labels": labels}

    def pack(self) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("header.json", json.dumps(self.header))
            for name, values in self.arrays.items():
                part = io.BytesIO()
                kind = "<i8" if values.dtype.kind == "i" else "<f8"
                np.lib.format.write_array(part, np.ascontiguousarray(values, dtype=kind), version=(1, 0))
                archive.writestr(f"{name}.npy", part.getvalue())
        return stream.getvalue()

    def labels(self) -> list[Array]:
        """y as the data have it."""
        classes = self.header.get("classes")
        if any(y.ndim == 2 for y in self.y):
            names = ("time", "event", "entry", "stratum")
            kinds = [(name, float) for name in names]
            records = [np.array([tuple(row) for row in y], dtype=kinds) if y.ndim == 2 else None for y in self.y]
            rest = self.copy()
            rest.y = [y if y.ndim == 1 else np.zeros(0) for y in self.y]
            return [own if record is None else record for own, record in zip(rest.labels(), records, strict=True)]
        if classes is None:
            return self.y
        nested = any(one is None or isinstance(one, list) for one in classes)
        own = [classes[t] if nested else classes for t in range(len(self.y))]
        return [y if one is None else np.array(one, dtype=object)[y.astype(int)]
                for one, y in zip(own, self.y, strict=True)]  # fmt: skip

    def data(self) -> dict[str, Any]:
        """What the verifier is called with."""
        found: dict[str, Any] = {"y": self.labels(), "sample_weight": self.weight, "offset": self.offset}
        if self.header["shared"]:
            stacked = {name: None if parts is None else np.stack(parts, axis=1) for name, parts in found.items()}
            return {"X": self.x[0], **stacked}
        return {"X": self.x, **found}

    def file(self) -> bytes:
        """A file of arrays for the checker of the page."""
        assert not self.header["shared"]
        task = np.concatenate([np.full(len(y), t) for t, y in enumerate(self.y)])
        names = np.array([str(label) for label in self.header["tasks"]])
        y = np.concatenate(self.labels())
        arrays = {"X": np.vstack(self.x), "y": y.astype(str) if y.dtype == object else y, "task": names[task]}
        arrays["sample_weight"] = np.concatenate(self.weight)
        if self.offset is not None:
            arrays["offset"] = np.concatenate(self.offset)
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        return stream.getvalue()


def unpack(raw: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        header = json.loads(archive.read("header.json"))
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        arrays = {name[:-4]: np.load(io.BytesIO(archive.read(name))) for name in names}
    return header, arrays


def real(q: Any) -> Any:
    return mpf(q.numerator) / mpf(q.denominator) if isinstance(q, Fraction) else mpf(q)


def fractions(values: Any) -> list[Fraction]:
    return [Fraction(v) for v in np.ravel(np.asarray(values, dtype=np.float64)).tolist()]


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return sum((p * q for p, q in zip(a, b, strict=True)), ZERO)


def solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """A solution, or None where there is none."""
    n = len(right)
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    pivots: list[int] = []
    for column in range(n):
        at = len(pivots)
        found = next((i for i in range(at, n) if rows[i][column]), None)
        if found is None:
            continue
        rows[at], rows[found] = rows[found], rows[at]
        head = rows[at][column]
        rows[at] = [value / head for value in rows[at]]
        for i in range(n):
            if i != at and rows[i][column]:
                factor = rows[i][column]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[at], strict=True)]
        pivots.append(column)
    if any(rows[i][n] for i in range(len(pivots), n)):
        return None
    answer = [ZERO] * n
    for i, column in enumerate(pivots):
        answer[column] = rows[i][n]
    return answer


def entropy(x: Any) -> Any:
    return x * mpmath.log(x) if x > 0 else mpf(0)


#: losses that are about y - z alone
RESIDUAL = ("clipped", "square-root", "log_cosh", "expectile")


class Truth:
    """The problem, the point and the claims of a certificate of one value."""

    def __init__(self, content: Content) -> None:
        self.content = content
        header, arrays = content.header, content.arrays
        self.header, self.arrays = header, arrays
        self.loss, self.penalty = header["loss"], header["penalty"]
        self.name, self.norm = self.loss["name"], self.penalty["name"]
        self.d, self.tasks = header["n_features"], range(len(header["tasks"]))
        self.N, self.alpha = Fraction(header["unit"]), Fraction(float(arrays["alpha"][0]))
        self.ridge = Fraction(float(arrays["ridge"][0]))
        self.constant = header["intercept"] is True
        self.sized = None if isinstance(header["intercept"], bool) else Fraction(header["intercept"])
        self.x = [[fractions(column) for column in x.T] for x in content.x]  # columns
        self.offset = [fractions(np.zeros(len(y)) if content.offset is None else content.offset[t])
                       for t, y in enumerate(content.y)]  # fmt: skip
        self.s = [self._weights(t) for t in self.tasks]
        sides = self.name == "logistic" or self.loss.get("labels") == "classes"
        self.y = [fractions(2.0 * y - 1.0 if sides else y) for y in content.y]
        self.outputs = [[t] for t in self.tasks]
        if self.name == "multinomial":
            classes, start = header["classes"], 0
            for t in self.tasks:
                count = len(classes[t] if isinstance(classes[0], list) else classes)
                self.outputs[t], start = list(range(start, start + count)), start + count
        self.task_of = [t for t in self.tasks for _ in self.outputs[t]]
        self.Q = len(self.task_of)
        self.u = fractions(arrays["feature_weights"]) if "feature_weights" in arrays else [ONE] * self.d
        self.kept = [j for j in range(self.d) if self.u[j] > 0]
        self.free = [j for j in range(self.d) if self.u[j] == 0]
        edges = arrays.get("edges")
        self.edges = [] if edges is None else [
            (q, r, Fraction(float(edges[q, r]))) for q in range(self.Q) for r in range(self.Q) if edges[q, r]
        ]
        self.sigma = [[self._sigma(t, j) for j in range(self.d)] for t in self.tasks]
        w = np.zeros((self.d, self.Q))
        w[arrays["feature"], arrays["output"]] = arrays["coef"]
        self.point: Point = (w, arrays["intercept"][0])
        self.P = self.primal(self.point)
        self.p = self._project()
        self.M = self._products()
        self._prepare()

    def _weights(self, t: int) -> list[Fraction]:
        s = fractions(self.content.weight[t])
        if self.header.get("task_weights") is not None:
            factor = Fraction(self.header["task_weights"][t])
            s = [one * factor ** (2 if self.name == "square-root" else 1) for one in s]
        if self.header.get("class_weights") is not None:
            own = [Fraction(w) for w in self.header["class_weights"][t]]
            s = [one * own[int(c)] for one, c in zip(s, self.content.y[t], strict=True)]
        return s

    @property
    def gap(self) -> Fraction:
        return Fraction(float(self.arrays["gap"][0]))

    @cached_property
    def spread(self) -> list[list[Fraction]]:
        return [[self._spread(t, j) for j in range(self.d)] for t in self.tasks]

    def _spread(self, t: int, j: int) -> Fraction:
        """``sum s (x - mean)^2``, about 0 without an intercept."""
        s, x = self.s[t], self.x[t][j]
        total = sum(s, ZERO)
        first = dot(s, x)
        square = sum((a * b * b for a, b in zip(s, x, strict=True)), ZERO)
        return square - first * first / total if self.constant and total else square

    def _sigma(self, t: int, j: int) -> Any:
        if not self.header["standardize"] or self.spread[t][j] == 0:
            return mpf(1)
        return mpmath.sqrt(real(self.spread[t][j] / sum(self.s[t], ZERO)))

    # -- primal ----------------------------------------------------------------------------------------------

    def bounds(self, t: int, i: int) -> tuple[Any, Any]:
        low, high = (None if self.loss.get(k) is None else Fraction(self.loss[k]) for k in ("low", "high"))
        if self.loss["labels"] == "classes":
            far = None if high is None else -high
            return (ZERO, high) if self.y[t][i] > 0 else (far, ZERO)
        return low, high

    def scaled(self, w: Array) -> list[list[Any]]:
        """W~, (features, outputs)."""
        return [
            [real(Fraction(float(w[j, q]))) * self.sigma[self.task_of[q]][j] for q in range(self.Q)]
            for j in range(self.d)
        ]

    def ridged(self, point: Point) -> list[list[Any]]:
        """Rows that the ridge and the graph see."""
        w, b = point
        scaled = self.scaled(w)
        rows = [scaled[j] for j in self.kept]
        if self.sized is not None:
            rows.append([real(Fraction(float(one)) / self.sized) for one in b])
        return rows

    def quadratic(self, rows: list[list[Any]]) -> Any:
        total = real(self.ridge) / 2 * sum((v * v for row in rows for v in row), mpf(0))
        for q, r, strength in self.edges:
            total += real(strength) / 4 * sum(((row[q] - row[r]) ** 2 for row in rows), mpf(0))
        return total

    def pulled(self, row: list[Any]) -> list[Any]:
        """``R w``."""
        found = [real(self.N * self.ridge) * v for v in row]
        for q, r, strength in self.edges:
            found[q] += real(self.N * strength) * (row[q] - row[r])
        return found

    def primal(self, point: Point) -> Any:
        w, b = point
        if self.header["positive"] and (w < 0).any():
            return mpf("inf")
        total = mpf(0)
        for t in self.tasks:
            n = len(self.y[t])
            z = []
            for q in self.outputs[t]:
                own, start = fractions(w[:, q]), Fraction(float(b[q]))
                used = [j for j in range(self.d) if own[j]]
                z.append([start + o + sum((self.x[t][j][i] * own[j] for j in used), ZERO)
                          for i, o in zip(range(n), self.offset[t], strict=True)])  # fmt: skip
            total += self._loss(t, z)
        return total / real(self.N) + real(self.alpha) * self.omega(self.scaled(w)) + self.quadratic(self.ridged(point))

    def _loss(self, t: int, z: list[list[Fraction]]) -> Any:
        s, y = self.s[t], self.y[t]
        if self.name == "multinomial":
            total = mpf(0)
            for i, c in enumerate(self.content.y[t].astype(int)):
                top = max(own[i] for own in z)
                powers = sum((mpmath.exp(real(own[i] - top)) for own in z), mpf(0))
                total += real(s[i]) * (mpmath.log(powers) + real(top - z[c][i]))
            return total
        z0 = z[0]
        if self.name == "logistic":
            margins = [real(a * b) for a, b in zip(y, z0, strict=True)]
            losses = [max(-m, mpf(0)) + mpmath.log1p(mpmath.exp(-abs(m))) for m in margins]
        elif self.name == "poisson":
            losses = [mpmath.exp(real(b)) - real(a * b) for a, b in zip(y, z0, strict=True)]
        elif self.name in ("gamma", "tweedie", "negative_binomial", "log_cosh", "expectile"):
            losses = [self._outcome(real(a), real(b), real(a - b)) for a, b in zip(y, z0, strict=True)]
        elif self.name == "square-root":
            return mpmath.sqrt(real(sum((w * (a - b) ** 2 for w, a, b in zip(s, y, z0, strict=True)), ZERO)))
        else:
            mu, epsilon = Fraction(self.loss["mu"]), Fraction(self.loss.get("epsilon") or 0.0)
            exact = ZERO
            for i, (weight, a, b) in enumerate(zip(s, y, z0, strict=True)):
                exact += weight * self._clipped(a - b, mu, epsilon, self.bounds(t, i))
            return real(exact)
        return sum((real(a) * b for a, b in zip(s, losses, strict=True)), mpf(0))

    def _outcome(self, y: Any, z: Any, r: Any) -> Any:
        """f of one row; r = y - z."""
        if self.name == "gamma":
            return y * mpmath.exp(-z) + z
        if self.name == "tweedie":
            k, rest = self._powers
            return y * mpmath.exp(-k * z) / k + mpmath.exp(rest * z) / rest
        if self.name == "negative_binomial":
            size = mpf(self.loss["size"])
            return (y + size) * mpmath.log1p(mpmath.exp(z) / size) - y * z
        if self.name == "log_cosh":
            return abs(r) + mpmath.log1p(mpmath.exp(-2 * abs(r))) - mpmath.log(2)
        return self._side(r) * r * r / 2

    @property
    def _powers(self) -> tuple[Any, Any]:
        return mpf(self.loss["power"]) - 1, 2 - mpf(self.loss["power"])

    def _side(self, r: Any) -> Any:
        level = mpf(self.loss["level"])
        return level if r > 0 else 1 - level

    def _conjugate(self, y: Any, p: Any) -> Any:
        """``f*(-p)``, without ``-p y`` where the loss is about y - z."""
        if self.name == "gamma":
            return entropy(1 + p) - (1 + p) * (1 + mpmath.log(y))
        if self.name == "negative_binomial":
            size = mpf(self.loss["size"])
            share = (y - p) / (y + size)
            return (y + size) * (entropy(share) + entropy(1 - share)) + (y - p) * mpmath.log(size)
        if self.name == "log_cosh":
            return (entropy(1 + p) + entropy(1 - p)) / 2
        if self.name == "expectile":
            return p * p / (2 * self._side(p))
        k, rest = self._powers
        if y == 0:
            return (entropy(-p) + p) / rest
        z = self._tweedie_score(float(y), float(p))
        for _ in range(6):  # Newton's method: at the end a - b = p to 60 digits
            a, b = y * mpmath.exp(-k * z), mpmath.exp(rest * z)
            z += (a - b - p) / (k * a + rest * b)
        return -p * z - y * mpmath.exp(-k * z) / k - mpmath.exp(rest * z) / rest

    def _tweedie_score(self, y: float, p: float) -> Any:
        k, rest = (float(one) for one in self._powers)
        low, high = -700.0, 700.0
        for _ in range(100):
            z = (low + high) / 2
            over = y * np.exp(-k * z) - np.exp(rest * z) > p
            low, high = (z, high) if over else (low, z)
        return mpf(high)

    @staticmethod
    def _clipped(r: Fraction, mu: Fraction, epsilon: Fraction, bounds: tuple[Any, Any]) -> Fraction:
        """The largest ``p r - mu p^2/2 - epsilon |p|`` between the bounds."""
        if abs(r) <= epsilon:
            return ZERO
        over, bound = abs(r) - epsilon, bounds[1] if r > 0 else None if bounds[0] is None else -bounds[0]
        if mu == 0:
            return bound * over
        p = over / mu if bound is None else min(over / mu, bound)
        return p * over - mu * p * p / 2

    def omega(self, w: list[list[Any]]) -> Any:
        u = [real(one) for one in self.u]
        g, l1 = real(Fraction(self.penalty.get("group", 1.0))), self._l1()
        norms = {j: mpmath.sqrt(sum((v * v for v in w[j]), mpf(0))) for j in self.kept}
        sums = {j: sum((abs(v) for v in w[j]), mpf(0)) for j in self.kept}
        if self.norm == "rows":
            return sum((u[j] * (g * norms[j] + l1[j] * sums[j]) for j in self.kept), mpf(0))
        if self.norm == "largest":
            return sum((u[j] * max(abs(v) for v in w[j]) for j in self.kept), mpf(0))
        if self.norm == "split":
            return sum((u[j] * _split([abs(v) for v in w[j]], g, l1[j]) for j in self.kept), mpf(0))
        if self.norm == "sorted":
            ranks = [real(one) for one in fractions(self.arrays["sorted_weights"])]
            falling = sorted(norms.values(), reverse=True)
            return sum((a * b for a, b in zip(falling, ranks, strict=False)), mpf(0))
        total = mpf(0)
        for k, weight in enumerate(fractions(self.arrays.get("group_weights", ()))):
            mine = [j for j in self.kept if self.arrays["group_of"][j] == k]
            if not mine:
                continue
            inside = self.penalty.get("inside")
            part = {None: lambda mine: mpf(0), "rows": lambda mine: sum(norms[j] for j in mine),
                    "entries": lambda mine: sum(sums[j] for j in mine)}[inside](mine)  # fmt: skip
            total += real(weight) * (g * mpmath.sqrt(sum(norms[j] ** 2 for j in mine)) + l1[mine[0]] * part)
        return total

    def _l1(self) -> list[Any]:
        if "l1" in self.arrays:
            return [real(one) for one in fractions(self.arrays["l1"])]
        return [real(Fraction(self.penalty.get("l1", 0.0)))] * self.d

    # -- the dual point --------------------------------------------------------------------------------------

    def _project(self) -> list[list[list[Fraction]]]:
        """p of each task and output: the projection of the stored vector, or zeros where that leaves the domain."""
        stored, start, found = fractions(self.arrays["dual"][0]), 0, []
        for t in self.tasks:
            n, p = len(self.y[t]), []
            for _ in self.outputs[t]:
                own = stored[start : start + n]
                p.append([a if w > 0 else ZERO for a, w in zip(own, self.content.weight[t], strict=True)])
                start += n
            moved = self._project_classes(t, p) if self.name == "multinomial" else self._project_rows(t, p[0])
            found.append([[ZERO] * n for _ in p] if moved is None else moved)
        return found

    def _columns(self, t: int) -> list[list[Fraction]]:
        return ([[ONE] * len(self.y[t])] if self.constant else []) + [self.x[t][j] for j in self.free]

    def _project_rows(self, t: int, p: list[Fraction]) -> list[list[Fraction]] | None:
        s, y, columns = self.s[t], self.y[t], self._columns(t)
        n = len(p)
        if self.name == "clipped":
            h = []
            for i in range(n):
                low, high = self.bounds(t, i)
                rooms = ([] if low is None else [p[i] - low]) + ([] if high is None else [high - p[i]])
                h.append(max(min(rooms, default=ONE), ZERO))
        elif self.name == "logistic":
            h = [a * b * (1 - a * b) for a, b in zip(y, p, strict=True)]
        else:
            h = [self._room(a, b) for a, b in zip(y, p, strict=True)]
        if columns and n:
            matrix = [[sum((a * b * w * k for a, b, w, k in zip(left, right, s, h, strict=True)), ZERO)
                       for right in columns] for left in columns]  # fmt: skip
            c = solved(matrix, [sum((a * w * k for a, w, k in zip(one, s, p, strict=True)), ZERO) for one in columns])
            if c is None:
                return None
            p = [p[i] - h[i] * sum((column[i] * b for column, b in zip(columns, c, strict=True)), ZERO)
                 for i in range(n)]  # fmt: skip
        for i in range(n):
            if self.name == "clipped":
                low, high = self.bounds(t, i)
                outside = (low is not None and p[i] < low) or (high is not None and p[i] > high)
            elif self.name == "logistic":
                outside = not 0 <= y[i] * p[i] <= 1
            else:
                outside = self._outside(y[i], p[i])
            if outside:
                return None
        large = self.name == "square-root" and sum((w * b * b for w, b in zip(s, p, strict=True)), ZERO) > 1
        if large and self.norm == "none":  # here there is no c that could help
            return None
        return [p]

    def _room(self, y: Fraction, p: Fraction) -> Fraction:
        if self.name == "negative_binomial":
            return (y - p) * (Fraction(self.loss["size"]) + p)
        if self.name == "tweedie":
            return abs(p) + (y > 0)
        return {"poisson": y - p, "gamma": 1 + p, "log_cosh": 1 - p * p}.get(self.name, ONE)

    def _outside(self, y: Fraction, p: Fraction) -> bool:
        """Whether p is not in the domain."""
        if self.name == "negative_binomial":
            return not -Fraction(self.loss["size"]) <= p <= y
        if self.name == "tweedie":
            return y == 0 and p > 0
        return {"poisson": p > y, "gamma": p < -1, "log_cosh": abs(p) > 1}.get(self.name, False)

    def _project_classes(self, t: int, p: list[list[Fraction]]) -> list[list[Fraction]] | None:
        s, columns, classes = self.s[t], self._columns(t), range(len(p))
        n = len(self.y[t])
        own = self.content.y[t].astype(int)
        labels = [[Fraction(int(own[i] == q)) for i in range(n)] for q in classes]
        pi = [[a - b for a, b in zip(labels[q], p[q], strict=True)] for q in classes]
        for i in range(n):
            # the first of the largest, as float64 has them: that is what a file can say
            top = int(np.argmax([float(labels[q][i]) - float(p[q][i]) for q in classes]))
            pi[top][i] = 1 - sum((pi[q][i] for q in classes if q != top), ZERO)
        if columns and n:
            positions = [(q, k) for q in classes[:-1] for k in range(len(columns))]
            matrix = [[sum((s[i] * pi[q][i] * ((q == r) - pi[r][i]) * columns[k][i] * columns[j][i]
                            for i in range(n)), ZERO) for r, j in positions] for q, k in positions]  # fmt: skip
            right = [
                sum((s[i] * (labels[q][i] - pi[q][i]) * columns[k][i] for i in range(n)), ZERO) for q, k in positions
            ]
            c = solved(matrix, right)
            if c is None:
                return None
            for i in range(n):
                moves = [sum((columns[k][i] * b for (r, k), b in zip(positions, c, strict=True) if r == q), ZERO)
                         for q in classes]  # fmt: skip
                mean = sum((pi[q][i] * moves[q] for q in classes), ZERO)
                new = [pi[q][i] * (1 + moves[q] - mean) for q in classes]
                for q in classes:
                    pi[q][i] = new[q]
        if any(one < 0 for row in pi for one in row):
            return None
        return [[a - b for a, b in zip(labels[q], pi[q], strict=True)] for q in classes]

    def _products(self) -> list[list[Any]]:
        """``X'v / sigma``, (features, outputs)."""
        found = [[mpf(0)] * self.Q for _ in range(self.d)]
        for t in self.tasks:
            for q, p in zip(self.outputs[t], self.p[t], strict=True):
                v = [a * b for a, b in zip(self.s[t], p, strict=True)]
                for j in range(self.d):
                    found[j][q] = real(dot(self.x[t][j], v)) / self.sigma[t][j]
        return found

    # -- the dual value --------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        rows = self.ridged(self.point)
        self.half = self.quadratic(rows)
        pulls = [self.pulled(row) for row in rows]
        # M - R W of the kept features, in units of N alpha
        self.m = [[real(a - b) for a, b in zip(self.M[j], pulls[k], strict=True)] for k, j in enumerate(self.kept)]
        along = quadratic = sizes = ZERO
        for t in self.tasks:
            for p in self.p[t]:
                for w, b, a, o in zip(self.s[t], p, self.y[t], self.offset[t], strict=True):
                    along += w * b * ((a if self.name in RESIDUAL else 0) - o)
                    quadratic += w * b * b
                    sizes += w * abs(b)
        self._rows = [
            (real(weight), real(self.y[t][i]), [real(p[i]) for p in self.p[t]])
            for t in self.tasks for i, weight in enumerate(self.s[t])
        ]  # fmt: skip
        self.along, self.squares, self.sizes = real(along), real(quadratic), real(sizes)
        if self.norm == "none":
            self.most, self.best = mpf(1), mpf(1)
            self.D = self._without_penalty(rows, pulls)
            self.forgetful = self.D + self.half
            return
        m = [[max(v, mpf(0)) if self.header["positive"] else abs(v) for v in row] for row in self.m]
        strength = real(self.N * self.alpha)
        self.ball = [[v / strength for v in row] for row in m]
        gauges = [self.gauge()]
        if self.name == "square-root":
            norms = (sum((w * b * b for w, b in zip(self.s[t], self.p[t][0], strict=True)), ZERO) for t in self.tasks)
            gauges += [mpmath.sqrt(real(norm)) for norm in norms]
        self.most = 1 / max(1, *gauges)
        self.D, self.best = self._highest(self.most)
        self.forgetful = self.D + self.best**2 * self.half  # as if ridge and graph cost nothing in the dual, with U = W
        if self.ridge > 0:  # any matrix U may stand in the place of W
            self.towards = sum((dot(self.M[j], rows[k]) for k, j in enumerate(self.kept)), mpf(0)) / real(self.N)
            self.weight = real(self.alpha) * self.omega(self.scaled(self.point[0]))
            free = 1 / max(1, *gauges[1:]) if len(gauges) > 1 else mpf(1)
            self.D, self.best = self._highest(free, self.above)

    def above(self, c: Any) -> Any:
        """No less than D for a scale c and any U: ``min Q(U)`` over c (M - R U) in the ball is at least
        ``c <M, W'>/N - alpha Omega(W') - Q(W')`` for every W', here the best multiple of W."""
        lead = c * self.towards - self.weight
        least = lead * lead / (4 * self.half) if lead > 0 and self.half > 0 else mpf(0)
        return self.dual(c) + c * c * self.half - least

    def gauge(self) -> Any:
        """The least number by which M must be divided to be in the dual ball."""
        g, l1 = real(Fraction(self.penalty.get("group", 1.0))), self._l1()
        if self.norm == "sorted":
            norms = sorted((mpmath.sqrt(sum(v * v for v in row)) for row in self.ball), reverse=True)
            total, limit, found = mpf(0), mpf(0), mpf(0)
            for norm, rank in zip(norms, fractions(self.arrays["sorted_weights"]), strict=False):
                total, limit = total + norm, limit + real(rank)
                found = max(found, quotient(total, limit))
            return found
        if self.norm == "groups":
            cut = l1[0] if self.penalty.get("inside") else mpf(0)
            units = [(self._members(k, self.ball), weight * cut, weight * g) for k, weight in self._groups()]
            return max([mpf(0), *(_cut_gauge(*unit) for unit in units)])
        found = mpf(0)
        for row, j in zip(self.ball, self.kept, strict=True):
            u = real(self.u[j])
            if self.norm == "largest":
                found = max(found, sum(row) / u)
            elif self.norm == "split":
                length = mpmath.sqrt(sum(v * v for v in row))
                found = max(found, quotient(length, u * g), quotient(max(row), u * l1[j]))
            else:
                found = max(found, _cut_gauge(row, u * l1[j], u * g))
        return found

    def _groups(self) -> list[tuple[int, Any]]:
        weights = fractions(self.arrays["group_weights"])
        return [(k, real(weights[k])) for k in sorted({int(self.arrays["group_of"][j]) for j in self.kept})]

    def _members(self, k: int, rows: list[list[Any]]) -> list[Any]:
        """What the group's ball is a ball of: the rows' norms, or the entries."""
        mine = [row for row, j in zip(rows, self.kept, strict=True) if self.arrays["group_of"][j] == k]
        if self.penalty.get("inside") == "rows":
            return [mpmath.sqrt(sum(v * v for v in row)) for row in mine]
        return [v for row in mine for v in row]

    def dual(self, c: Any) -> Any:
        """D for a scale c, of any penalty but `none`."""
        total = c * self.along
        if self.name == "clipped":
            mu, epsilon = Fraction(self.loss["mu"]), Fraction(self.loss.get("epsilon") or 0.0)
            total -= real(mu) / 2 * c * c * self.squares + real(epsilon) * c * self.sizes
        elif self.name != "square-root":
            total -= self._entropies(c)
        return total / real(self.N) - c * c * self.half

    def _entropies(self, c: Any) -> Any:
        total = mpf(0)
        for weight, y, p in self._rows:
            if self.name == "logistic":
                cost = entropy(c * y * p[0]) + entropy(1 - c * y * p[0])
            elif self.name == "poisson":
                cost = entropy(y - c * p[0]) - (y - c * p[0])
            elif self.name != "multinomial":
                cost = self._conjugate(y, c * p[0])
            else:
                cost = sum(entropy((int(y) == q) - c * own) for q, own in enumerate(p))
            total += weight * cost
        return total

    def _highest(self, most: Any, dual: Any = None) -> tuple[Any, Any]:
        """The largest D for a scale of at most `most`: a concave function."""
        dual = dual or self.dual
        last = dual(most)
        if most == 0 or dual(most * (1 - mpf(10) ** -20)) <= last:
            return last, most
        low, high = mpf(0), most
        for _ in range(32):
            c = (low + high) / 2
            low, high = (c, high) if dual(c * (1 + mpf(10) ** -20)) > dual(c) else (low, c)
        found = dual(high)
        return found + (abs(found) + abs(last)) * mpf(10) ** -15, high  # flat there: c is right to 10 digits

    def _without_penalty(self, rows: list[list[Any]], pulls: list[list[Any]]) -> Any:
        v = [self.M[j] for j in self.kept]
        if self.sized is not None:
            sums = [real(self.sized * dot(self.s[t], p)) for t in self.tasks for p in self.p[t]]
            v = [*v, sums]
        along = sum((dot(left, right) for left, right in zip(v, rows, strict=True)), mpf(0))
        missed = sum(((a - b) ** 2 for left, right in zip(v, pulls, strict=True)
                      for a, b in zip(left, right, strict=True)), mpf(0))  # fmt: skip
        N = real(self.N)
        half, self.half = self.half, mpf(0)
        losses = self.dual(mpf(1))
        self.half = half
        return losses - (along + missed / (2 * N * real(self.ridge))) / N + half

    # -- claims ----------------------------------------------------------------------------------------------

    @property
    def size(self) -> Any:
        """Of what is compared."""
        return abs(self.P) + abs(self.D) + abs(real(self.gap))

    def unsupported(self) -> list[str]:
        """Claims that fail by a clear margin, whatever c is used."""
        arrays, gap = self.arrays, real(self.gap)
        objective, dual_value = (real(Fraction(float(arrays[k][0]))) for k in ("objective", "dual_value"))
        found, margin = [], CLEAR * (self.size + abs(objective) + abs(dual_value))
        if self.content.digests() != self.header["digests"]:
            found.append("digests")
        if self.header["positive"] and (arrays["coef"] < 0).any():
            found.append("positive")
        if dual_value > self.D + margin:
            found.append("dual_value")
        if gap < self.P - self.D - margin:
            found.append("gap")
        if objective - self.D > gap + margin or self.P - objective > gap + margin:
            found.append("objective")
        if not found:
            found += self._wrong_zeros() + self._wrong_nonzeros()
        return found

    def disproved(self) -> bool:
        """Whether some other coefficients are better than the certificate allows."""
        arrays, gap = self.arrays, real(self.gap)
        objective, dual_value = (real(Fraction(float(arrays[k][0]))) for k in ("objective", "dual_value"))
        margin = CLEAR * (self.size + abs(objective) + abs(dual_value))
        if mpmath.isinf(self.P) or self.P - objective > gap + margin:
            return True
        limit = max(self.P - gap, objective - gap, dual_value) - margin
        return any(self.primal(point) < limit for point in self.content.others)

    def _listed(self, name: str) -> list[int] | None:
        return self.arrays[name].tolist() if name in self.arrays else None

    def _wrong_zeros(self) -> list[str]:
        opened = self._listed("open")
        claimed = [] if opened is None else [j for j in range(self.d) if j not in opened]
        if not claimed:
            return []
        modulus = self._modulus()
        if not modulus or self.ridge > 0 or self.edges or self.norm in ("sorted", "none"):
            return ["zeros that nothing proves"]
        if set(claimed) & set(self.free):
            return ["zeros of free features"]
        radius = mpmath.sqrt(real(2 * self.N * self.gap / Fraction(modulus)))
        if not self._not_zero(claimed, radius, self.most):
            return []
        # a smaller c leaves more room, as long as the gap is still proved with it
        least = self._least_scale()
        return [f"feature {j} is zero" for j in self._not_zero(claimed, radius, least)]

    def _modulus(self) -> Any:
        if self.name == "expectile":
            level = Fraction(self.loss["level"])
            return 1 / max(level, 1 - level)
        if self.name == "negative_binomial":
            return 4 / (max((max(y, default=ZERO) for y in self.y), default=ZERO) + Fraction(self.loss["size"]))
        moduli = {"clipped": self.loss.get("mu"), "logistic": 4.0, "multinomial": 2.0, "log_cosh": 1.0}
        return moduli.get(self.name, 0.0)

    def _least_scale(self) -> Any:
        arrays, gap = self.arrays, real(self.gap)
        objective, dual_value = (real(Fraction(float(arrays[k][0]))) for k in ("objective", "dual_value"))
        needed = max(self.P - gap, objective - gap, dual_value)
        needed -= CLEAR * (self.size + abs(objective) + abs(dual_value))
        low, high = mpf(0), self.best
        if self.dual(low) >= needed:
            return low
        for _ in range(60):
            c = (low + high) / 2
            low, high = (low, c) if self.dual(c) >= needed else (c, high)
        return low

    def _not_zero(self, claimed: list[int], radius: Any, c: Any) -> list[int]:
        """Features whose rows may leave the ball, clearly."""
        g, l1, strength = real(Fraction(self.penalty.get("group", 1.0))), self._l1(), real(self.N * self.alpha)
        shares = [[mpmath.sqrt(real(self.spread[t][j])) / self.sigma[t][j] for t in self.tasks] for j in range(self.d)]
        moved = {j: radius * max(shares[j]) / strength for j in self.kept}
        rows = {j: [c * v for v in row] for j, row in zip(self.kept, self.ball, strict=True)}
        less = 1 + mpf(10) ** -9
        if self.norm == "groups":
            wrong = set()
            for k, weight in self._groups():
                mine = [j for j in self.kept if self.arrays["group_of"][j] == k]
                far = mpmath.sqrt(sum(moved[j] ** 2 for j in mine))
                cut = weight * l1[0] if self.penalty.get("inside") else 0
                over = [max(v - cut, 0) for v in self._members(k, [rows[j] for j in self.kept])]
                if mpmath.sqrt(sum(v * v for v in over)) + far > weight * g * less:
                    wrong |= set(mine)
            return sorted(wrong & set(claimed))
        found = []
        for j in claimed:
            u, row = real(self.u[j]), rows[j]
            if self.norm == "largest":
                proved = sum(row) + mpmath.sqrt(self.Q) * moved[j] <= u * less
            else:
                over = [v - u * l1[j] if self.norm == "rows" else v for v in row]
                inside = mpmath.sqrt(sum(max(v, 0) ** 2 for v in over)) + moved[j] <= u * g * less
                small = max(row) + moved[j] <= u * l1[j] * less
                proved = inside and small if self.norm == "split" else inside or small
            if not proved:
                found.append(j)
        return found

    def _wrong_nonzeros(self) -> list[str]:
        """Of those listed as sure. Whatever numbers the columns are divided by, the least eigenvalue proves no more
        than ``w^2 / (A^-1)_jj > 2 mu N G``."""
        sure = self._listed("sure") or []
        w = self.point[0]
        left = []
        for j in sure:
            length = sum((v * v for v in self.scaled(w)[j]), mpf(0)) if j in self.kept else mpf(0)
            if not real(self.ridge) * length * (1 + mpf(10) ** -9) > 2 * real(self.gap):
                left.append(j)
        if not left:
            return []
        opened = self._listed("open")
        squared = self.name == "clipped" and self.loss["labels"] == "numbers" and not self.loss.get("epsilon")
        squared = squared and self.loss["low"] is None and self.loss["high"] is None and self.loss["mu"] > 0
        proved: set[int] = set()
        if squared and opened is not None:
            support = sorted({*opened, *self.free})
            reach = 2 * Fraction(self.loss["mu"]) * self.N * self.gap
            for t in self.tasks:
                for j in left:
                    if j in support and self._stands(t, j, support, Fraction(float(w[j, t])), reach):
                        proved.add(j)
        return [f"feature {j} is not zero" for j in left if j not in proved]

    def _stands(self, t: int, j: int, support: list[int], w: Fraction, reach: Fraction) -> bool:
        """``min sum s (x_j w + others)^2 > reach``, the others being the support and the constant: all in fractions."""
        s, columns = self.s[t], [self.x[t][k] for k in support if k != j]
        if self.constant or self.sized is not None:
            columns.append([ONE] * len(s))
        own = self.x[t][j]
        matrix = [[sum((a * b * c for a, b, c in zip(p, q, s, strict=True)), ZERO) for q in columns] for p in columns]
        right = [sum((a * b * c for a, b, c in zip(p, own, s, strict=True)), ZERO) for p in columns]
        c = solved(matrix, right)
        assert c is not None  # normal equations
        left = sum((a * b * b for a, b in zip(s, own, strict=True)), ZERO) - dot(right, c)
        return left * w * w * (1 + Fraction(1, 10**9)) > reach


def quotient(a: Any, b: Any) -> Any:
    return a / b if b else mpf("inf") if a else mpf(0)


def _cut_gauge(sizes: list[Any], cut: Any, length: Any) -> Any:
    """The root of ``|(sizes - x cut)_+|_2 = x length``, by the number of entries that are not cut away."""
    falling = sorted(sizes, reverse=True)
    if not falling or falling[0] == 0:
        return mpf(0)
    if length == 0:
        return quotient(falling[0], cut)
    first = second = mpf(0)
    for k, v in enumerate(falling, start=1):
        first, second = first + v, second + v * v
        root = second / (cut * first + mpmath.sqrt(max((cut * first) ** 2 - (k * cut * cut - length**2) * second, 0)))
        if k == len(falling) or falling[k] <= root * cut:
            return root
    raise AssertionError("one of the numbers of entries is right")


def _split(sizes: list[Any], g: Any, l1: Any) -> Any:
    """``min g |p|_2 + l |w - p|_1``: entries cut at a height, the best of those between any two sizes."""
    def value(height: Any) -> Any:
        cut = [min(v, height) for v in sizes]
        rest = sum((v - c for v, c in zip(sizes, cut, strict=True)), mpf(0))
        return g * mpmath.sqrt(sum((c * c for c in cut), mpf(0))) + l1 * rest

    heights = [mpf(0), *sizes]
    for low in heights:
        small = sum((v * v for v in sizes if v <= low), mpf(0))
        count = sum(v > low for v in sizes)
        if g * g > l1 * l1 * count:
            heights = [*heights, l1 * mpmath.sqrt(small / (g * g - l1 * l1 * count))]
    return min(value(h) for h in heights)
