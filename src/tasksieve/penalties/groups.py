"""Groups of features, each over all tasks: genes, sets of SNPs, the columns of one category.

    Omega(W) = sum_G u_G ( g ||W_G||_F + r sum_{j in G} ||W_j||_2 + l ||W_G||_1 ),    g = 1 - mix,   r or l = mix

Groups do not overlap; at most one of r and l is positive. The dual ball is a matter of each group alone: with
r = l = 0 it is ``{M : ||M_G||_F <= u_G for all G}``, else ``||(x - u_G mix)_+|| <= u_G g`` with x the norms of the
group's rows, or its entries.

The gauge of a group is given to each of its rows, so that callers must pass whole groups: `restrict` refuses
a part of one, whose gauge would be too small (`whole` completes a list of features).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from ..complex_numbers import refuse_complex
from ..messages import either, value_error
from ..screening.ball import rejects, sphere_norms, zero_entries
from .base import REJECT, BlockForm, RowPenalty, row_norms

Array = np.ndarray[Any, Any]

_INSIDE = (None, "rows", "entries")


class Groups(RowPenalty):
    """``sum_G u_G ||W_G||_F`` over groups of features x all tasks, optionally with sparsity inside the groups.

    Parameters
    ----------
    labels : array of shape (d,), or mapping
        The group of each feature, any labels; or the features of each group, ``{"gene": [0, 1, 5], ...}``. Every
        feature is in exactly one group.
    inside : {None, "rows", "entries"}
        Features of a chosen group are all in; or some, for all tasks; or some, each for some tasks.
    mix : float, default=0.5
        With `inside`: share of the norm inside, ``(1 - mix) ||W_G||_F + mix (sum_j ||W_j||_2 or ||W_G||_1)``.
    weights : "sqrt", None, array or mapping
        u_G: the root of the group's size; 1; or numbers > 0, by label or in the order of the sorted labels.

    Examples
    --------
    >>> import tasksieve as ts
    >>> X, y, task, _ = ts.datasets.make_small_tasks()
    >>> penalty = ts.penalties.Groups(["near", "near", "near", "far", "far", "far", "far", "far"])
    >>> model = ts.MultiTaskRegressor(penalty=penalty, alpha=0.3).fit(X, y, task=task)
    >>> model.selected_groups_.tolist()
    ['near']
    """

    label = "groups"
    formula = "α Σ_G u_G ‖W_G‖₂, G a group of features,"
    _code: Array
    _sizes: Array

    def __init__(
        self,
        labels: Any,
        inside: Literal["rows", "entries"] | None = None,
        *,
        mix: float = 0.5,
        weights: Any = "sqrt",
    ) -> None:
        self.labels = labels
        self.inside = inside
        self.mix = mix
        self.group_weights = weights

    def parameters(self) -> dict[str, Any]:
        return {"labels": self.labels, "inside": self.inside, "mix": self.mix, "weights": self.group_weights}

    # -- which features are in which group ------------------------------------------------------------------------

    @cached_property
    def _read(self) -> tuple[Array, Array]:
        """The names of the groups, and for each feature the position of its group among them."""
        return read_feature_groups(self.labels)

    def size(self) -> int | None:
        return len(self._read[1])

    def named_blocks(self) -> tuple[Array, Array] | None:
        return self._read

    def check(self, n_features: int) -> None:
        """Refuse what makes no sense for so many features."""
        if self.inside not in _INSIDE:
            raise ValueError(f"Groups' 'inside' must be None, 'rows' or 'entries'; got {self.inside!r}.")
        if not (isinstance(self.mix, int | float | np.number) and 0.0 < self.mix < 1.0):
            raise ValueError(
                f"Groups' 'mix' must lie strictly between 0 and 1; got {self.mix!r}. Without sparsity inside the "
                "groups leave 'inside' out; without groups use SparseGroup."
            )
        if self.size() != n_features:
            raise ValueError(
                f"The groups are of {self.size()} features, but X has {n_features}: one label per feature."
            )

    def on(self, weights: Array, n_tasks: int, **options: Any) -> Self:
        self.check(len(weights))
        names, code = self._read
        sizes = np.bincount(code, minlength=len(names))
        weights = np.asarray(weights, dtype=np.float64)
        lowest, highest = np.full(len(names), np.inf), np.zeros(len(names))
        np.minimum.at(lowest, code, weights)
        np.maximum.at(highest, code, weights)
        uneven = np.flatnonzero(lowest != highest)
        if len(uneven):
            members = np.flatnonzero(code == uneven[0])
            other = members[weights[members] != weights[members[0]]][0]
            raise ValueError(
                f"feature_weights differ within group {names.tolist()[uneven[0]]!r} (feature {members[0]}: "
                f"{weights[members[0]]:g}, feature {other}: {weights[other]:g}): a group has one weight, which "
                "multiplies that of 'weights'."
            )
        bound = super().on(weights * read_group_weights(self.group_weights, names, sizes)[code], n_tasks, **options)
        bound._code, bound._sizes, bound._n_tasks = code, sizes, n_tasks
        bound._g, bound._in = (1.0, 0.0) if self.inside is None else (1.0 - float(self.mix), float(self.mix))
        bound.has_entries = self.inside is not None
        entries = int(sizes.max(initial=0)) * n_tasks
        bound.gauge_error = 2.0**-53 * (entries + 64) + (1e-12 if self.inside else 0.0)
        return bound._grouped()

    _g: float
    _in: float
    _n_tasks: int
    _order: Array | None
    _starts: Array
    _position: Array

    def _grouped(self) -> Self:
        """Where the rows of a group are: `_order` puts them together (None: they are), `_position` is a row's group."""
        code = self._code
        order = None if not len(code) or np.all(code[1:] >= code[:-1]) else np.argsort(code, kind="stable")
        ranked = code if order is None else code[order]
        new = np.ones(len(code), dtype=bool)
        new[1:] = ranked[1:] != ranked[:-1]
        self._starts = np.flatnonzero(new)
        position = np.cumsum(new) - 1
        if order is not None:
            unranked = np.empty_like(position)
            unranked[order] = position
            position = unranked
        self._order, self._position = order, position
        return self

    def certificate_form(self) -> tuple[dict[str, Any], dict[str, Array]]:
        form = {"name": "groups", "group": self._g, "l1": self._in, "inside": self.inside}
        weights = np.ones(len(self._sizes))
        free = self.weights == 0.0
        weights[self._code[~free]] = self.weights[~free]
        arrays = {"feature_weights": np.where(free, 0.0, 1.0), "group_of": self._code, "group_weights": weights}
        return form, arrays

    def restrict(self, features: Array) -> Self:
        smaller = super().restrict(features)
        smaller._code = self._code[features]
        smaller._grouped()
        found = np.diff(np.append(smaller._starts, len(smaller._code)))
        first = smaller._first
        short = np.flatnonzero(found != self._sizes[smaller._code[first]])
        if len(short):
            group = smaller._code[first[short[0]]]
            name = self._read[0].tolist()[group]
            raise ValueError(
                f"{found[short[0]]} of the {self._sizes[group]} features of group {name!r}: a group is one block and "
                "cannot be cut (features in several storages: keep each group in one of them)."
            )
        return smaller

    def whole(self, features: Array) -> Array:
        code = self.__dict__.get("_code")
        code = self._read[1] if code is None else code
        if not len(features):
            return features
        named = np.zeros(int(code.max()) + 1, dtype=bool)
        named[code[features]] = True
        return np.flatnonzero(named[code])

    def pieces(self, size: int) -> list[Any]:
        ends = np.append(self._starts[1:], len(self._code))
        cuts, low = [0], 0
        while low < len(self._code):
            fits = np.searchsorted(ends, low + size, side="right")  # at least one group
            low = int(ends[max(fits - 1, np.searchsorted(ends, low, side="right"))])
            cuts.append(low)
        parts = [slice(a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
        return parts if self._order is None or len(parts) == 1 else [self._order[part] for part in parts]

    # -- sums over groups -----------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Without what was read from the labels: a penalty that has been used is the same penalty."""
        return {name: value for name, value in self.__dict__.items() if name != "_read"}

    @property
    def _first(self) -> Array:
        """A row of each group."""
        return self._starts if self._order is None else self._order[self._starts]

    def _sums(self, values: Array) -> Array:
        if not len(values):
            return values
        ranked = values if self._order is None else values[self._order]
        return np.asarray(np.add.reduceat(ranked, self._starts, axis=0))

    def _sizes_of(self, rows: Array) -> Array:
        """What is measured inside the groups, a column or more for each row: norms of rows, or sizes of entries."""
        return row_norms(rows)[:, None] if self.inside == "rows" else np.abs(rows)

    def _norms(self, rows: Array) -> Array:
        """Frobenius norms of the groups."""
        return np.sqrt(self._sums(np.einsum("jt,jt->j", rows, rows)))

    # -- the four of its own --------------------------------------------------------------------------------------

    def value(self, rows: Array) -> float:
        if not len(rows):
            return 0.0
        norms = self._g * self._norms(rows)
        if self.inside is not None:
            norms = norms + self._in * self._sums(np.add.reduce(self._sizes_of(rows), axis=1))
        return float(self.weights[self._first] @ norms)

    def gauges(self, products: Array) -> Array:
        if not len(products):
            return np.zeros(0)
        found = self._norms(products) if self.inside is None else self._mixed(self._sizes_of(products))
        return np.asarray((found / self.weights[self._first])[self._position])

    def _mixed(self, sizes: Array) -> Array:
        """For each group the v with ``||(sizes - v r)_+|| = v g``: Newton's method from the left, as for one row."""
        g, r, position = self._g, self._in, self._position
        squares, counts = self._sums(np.square(sizes).sum(axis=1)), self._sums(np.full(len(sizes), sizes.shape[1]))
        largest = np.zeros(len(squares))
        np.maximum.at(largest, position, np.max(sizes, axis=1))
        v = np.maximum(largest / (g + r), np.sqrt(squares) / (r * np.sqrt(counts) + g))
        for _ in range(60):
            rest = np.maximum(sizes - (r * v)[position][:, None], 0.0)
            norm = np.sqrt(self._sums(np.square(rest).sum(axis=1)))
            total = self._sums(rest.sum(axis=1))
            slope = g + r * np.divide(total, norm, out=np.zeros_like(total), where=norm > 0.0)
            step = (norm - v * g) / slope
            v = v + step
            if not np.any(step > 1e-15 * v):
                break
        return v

    def prox(self, rows: Array, step: float) -> Array:
        """Leaves first: entries or rows, then groups."""
        if not len(rows):
            return rows.copy()
        inner = (step * self._in) * self.weights[:, None]
        if self.inside == "entries":
            rows = rows - np.clip(rows, -inner, inner)
        elif self.inside == "rows":
            sizes = row_norms(rows)[:, None]
            rows = rows * np.maximum(1.0 - np.divide(inner, sizes, out=np.ones_like(sizes), where=sizes > 0.0), 0.0)
        norms = self._norms(rows)
        outer = (step * self._g) * self.weights[self._first]
        ratio = np.divide(outer, norms, out=np.ones_like(norms), where=norms > 0.0)
        return np.asarray(rows * np.maximum(1.0 - ratio, 0.0)[self._position][:, None])

    def reach(self, centre: Array, norms: Array, radius: float) -> Array:
        """One step of the dual point moves all rows of a group: it is a row whose entries are norms, task by task."""
        if not len(centre):
            return np.zeros(0)
        level = self._g * self.weights[self._first]
        by_task = np.sqrt(self._sums(np.square(centre)))
        equal = norms.strides[1] == 0
        lengths = np.sqrt(self._sums(np.square(norms[:, :1] if equal else norms)))
        lengths = np.broadcast_to(lengths, by_task.shape) if equal else lengths
        if self.inside is None:
            found = sphere_norms(by_task, lengths, radius, level) / level
            return np.asarray(found[self._position])
        longest = radius * np.max(lengths, axis=1)
        strength = self.weights[self._first]
        sizes = self._sizes_of(centre)
        upper = (self._mixed(sizes) + longest / (self._g + self._in)) / strength
        # Sharper where it decides: what stands out of the inner ball and how far it can move, or the way to its border.
        over = sizes - ((1.0 - 1e-9) * self._in * self.weights)[:, None]
        most = np.full(len(level), -np.inf)
        np.maximum.at(most, self._position, np.max(over, axis=1))
        out = np.sqrt(self._sums(np.square(np.maximum(over, 0.0)).sum(axis=1))) + longest
        inside = np.where(most > 0.0, out, most + longest) < REJECT * level
        return np.asarray(np.where(inside, np.minimum(upper, 0.9 * REJECT), upper)[self._position])

    # -- what it knows beside them --------------------------------------------------------------------------------

    def steepest(self, products: Array) -> tuple[Array, Array] | None:
        gauges = self.row_gauges(products)
        hardest = int(np.argmax(gauges))
        members = np.flatnonzero(self._position == self._position[hardest])
        rows = products[members]
        rows = np.maximum(rows, 0.0) if self.positive else rows
        inner = gauges[hardest] * self._in * self.weights[hardest]
        if self.inside == "entries":
            rows = rows - np.clip(rows, -inner, inner)
        elif self.inside == "rows":
            sizes = row_norms(rows)
            kept = np.maximum(sizes - inner, 0.0)
            rows = rows * np.divide(kept, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)[:, None]
        return members, rows

    def zero_entries(self, centre: Array, errors: Array, norms: Array, radius: float) -> Array | None:
        if self.inside is None:
            return None
        inner = self._in * self.weights
        if self.inside == "entries":
            return zero_entries(centre, norms, radius, inner, self.positive, errors)
        start = np.maximum(centre, 0.0) if self.positive else centre
        rows = rejects(start, norms, radius, inner, math.sqrt(self._n_tasks) * errors)
        return np.broadcast_to(rows[:, None], centre.shape).copy()

    def block_form(self) -> BlockForm | None:
        strength = self.weights[self._first]
        return BlockForm(
            "stack" if self.inside == "rows" else "sum", self._g * strength, self._in * strength, self._position
        )


def read_feature_groups(groups: Any) -> tuple[Array, Array]:
    """The names of the groups, and for each feature the position of its group among them.

    - `groups`: array of labels, one a feature, or mapping from names to features
    """
    if isinstance(groups, Mapping):
        return _read_mapping(groups)
    labels = np.asarray(groups, dtype=object) if isinstance(groups, list | tuple) else np.asarray(groups)
    if labels.ndim != 1 or any(isinstance(label, list | tuple | set | np.ndarray) for label in labels[:1]):
        raise value_error(
            "Feature groups{where} must be one label per feature, or a mapping from names to lists of features; "
            "got {what}.",
            where=either(" (feature_groups, or labels of Groups)"),
            what=f"an array of shape {labels.shape}" if labels.ndim != 1 else "a list of lists",
        )
    missing = np.flatnonzero([label is None or label != label for label in labels.tolist()])
    if len(missing):
        raise ValueError(
            f"Feature {missing[0]} has no group: feature_groups[{missing[0]}] (or the label of Groups) is "
            f"{labels[missing[0]]!r}. Give every feature a label."
        )
    try:
        names, code = np.unique(np.array(labels.tolist()) if labels.dtype == object else labels, return_inverse=True)
    except TypeError as error:
        raise ValueError("Labels of feature groups must be of one kind, all numbers or all strings.") from error
    return names, code.astype(np.int64)


def _read_mapping(groups: Mapping[Any, Any]) -> tuple[Array, Array]:
    names = list(groups)
    lists = [np.atleast_1d(np.asarray(groups[name])) for name in names]
    for name, features in zip(names, lists, strict=True):
        if not features.size:
            raise ValueError(f"Feature group {name!r} is empty: leave it out.")
        if features.ndim != 1 or not np.issubdtype(features.dtype, np.integer) or features.min() < 0:
            raise ValueError(f"Feature group {name!r} must be a list of features by number, from 0 on; got {features}.")
    total = np.concatenate(lists) if lists else np.empty(0, dtype=np.int64)
    code = np.full(int(total.max(initial=-1)) + 1, -1, dtype=np.int64)
    for k, features in enumerate(lists):
        for feature in features.tolist():
            if code[feature] >= 0:
                raise ValueError(
                    f"Feature {feature} is in group {names[code[feature]]!r} and in group {names[k]!r}: groups must "
                    "not overlap."
                )
            code[feature] = k
    alone = np.flatnonzero(code < 0)
    if len(alone):
        raise ValueError(f"Feature {alone[0]} is in no group: give it one of its own.")
    return np.array(names), code


def read_group_weights(weights: Any, names: Array, sizes: Array) -> Array:
    """One number > 0 for each group."""
    if isinstance(weights, str) and weights == "sqrt":
        return np.sqrt(sizes.astype(np.float64))
    if weights is None:
        return np.ones(len(names))
    if isinstance(weights, Mapping):
        known = set(names.tolist())
        unknown = [name for name in weights if name not in known]
        if unknown:
            raise ValueError(f"Groups' 'weights' name {unknown[0]!r}, which is no group.")
        absent = [name for name in names.tolist() if name not in weights]
        if absent:
            raise ValueError(f"Groups' 'weights' have no number for group {absent[0]!r}.")
        weights = [weights[name] for name in names.tolist()]
    refuse_complex(weights, "Groups' 'weights'")
    try:
        found = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Groups' 'weights' must be 'sqrt', None or numbers; got {weights!r}.") from error
    if found.shape != (len(names),):
        raise ValueError(
            f"Groups' 'weights' have shape {found.shape}, but there are {len(names)} groups: one number for each, in "
            "the order of the sorted labels."
        )
    bad = np.flatnonzero(~((found > 0.0) & np.isfinite(found)))
    if len(bad):
        raise ValueError(
            f"The weight of group {names.tolist()[bad[0]]!r} is {found[bad[0]]}: weights must be positive "
            "(feature_weights of 0 leave a group unpenalised)."
        )
    return found
