"""What a coordinator asks of all sites: points s on some features, and which sums are wanted there.

A site solves its local problem at s, min_w F(X w) + 1/2 sum_j w_j^2 / s_j, and answers with sums over its tasks
(`Answer`). Neither the strength of the penalty nor the features' weights are part of a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .errors import FederatedError
from .packing import Array, digest
from .units import Units

KINDS = ("sizes", "moments", "norms", "point", "part", "null")
#: kinds that may be asked before the pooled scales of columns are known
BEFORE_SCALES = ("sizes", "moments")
LARGEST_FEATURE = 2**32 - 1  # places travel as unsigned 32-bit numbers
#: s and l1 are at most so large: with numbers beyond, whether a product overflows would tell about one site's columns
LARGEST = 2.0**400
_LARGEST_SCALE = 2.0**250  # columns of at most 2^255 have squares that are finite
_LAST_ROUND = 10**6
_FLAGS = ("hessian", "held_out", "dual")


def _no_places() -> Array:
    return np.empty(0, np.int64)


def _no_numbers() -> Array:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class Question:
    """A point s >= 0, and the sums that are wanted there.

    Parameters
    ----------
    problem : str
        Which rows: ``"all"``, ``"fold 3"``, ``"half 12"``; what these are follows from the plan.
    features : array of int, ascending
        A: where z and the Hessian are wanted.
    s : array of float
        One a feature of A, zeros allowed: coefficients at the sites are w_jt = s_j c_jt. Of kind "moments" the numbers
        that columns are taken about.
    levels : array of int, ascending, or None
        L: features whose c^2 are wanted; None: all.
    l1 : float
        Strength on single entries, within the local problem: c becomes soft(c, l1).
    hessian, held_out, dual : bool
        Whether second derivatives are wanted, the loss of the rows left out of this problem, and dual values (which
        follow from others for the squared loss).
    kind : {"point", "null", "norms", "sizes", "moments", "part"}
        Sums at s; at s = 0, in words so long that nobody need know before how large the numbers are; of the columns'
        norms; how large numbers are; sums and sums of squares of columns, for pooled standardisation; strict bounds at
        s.
    reach : float
        A guess of the largest c^2 of a site at s, which chooses the unit in which levels are sent; 0: the largest
        that any site had at s = 0. A guess that was too small costs a round, one that is too large costs digits.

    Examples
    --------
    >>> import numpy as np
    >>> Question(features=np.array([3, 8]), s=np.array([0.5, 0.0])).kind
    'point'
    """

    problem: str = "all"
    features: Array = field(default_factory=_no_places)
    s: Array = field(default_factory=_no_numbers)
    levels: Array | None = None
    l1: float = 0.0
    hessian: bool = True
    held_out: bool = False
    dual: bool = True
    kind: str = "point"
    reach: float = 0.0

    def __post_init__(self) -> None:
        for name in ("features", "levels"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, _places(name, given))
        s = np.asarray(self.s, dtype=np.float64)
        if s.shape != self.features.shape:
            raise FederatedError("question", f"{len(self.features)} features, but s has the shape {s.shape}")
        least = -LARGEST if self.kind == "moments" else 0.0
        if not ((s >= least) & (s <= LARGEST)).all():
            raise FederatedError("question", f"s must be >= {least:.2g} and at most {LARGEST:.2g}")
        object.__setattr__(self, "s", s + 0.0)  # no negative zeros: the same point has the same bytes
        for name, most in (("l1", LARGEST), ("reach", np.finfo(float).max)):
            number = float(getattr(self, name))
            if not 0.0 <= number <= most:
                raise FederatedError("question", f"{name} must be >= 0 and at most {most:.2g}")
            object.__setattr__(self, name, number + 0.0)
        for name in _FLAGS:
            object.__setattr__(self, name, bool(getattr(self, name)))
        if not isinstance(self.problem, str):
            raise FederatedError("question", "a problem is known by its name")
        if self.kind not in KINDS:
            raise FederatedError("question", f"no kind of question is called {self.kind!r}")
        if self.kind == "null" and (len(self.features) or self.l1):
            raise FederatedError("question", "the model without features has none, and no strength on entries")

    def n_levels(self, n_features: int) -> int:
        """How many levels an answer has."""
        return n_features if self.levels is None else len(self.levels)

    def check(self, n_features: int) -> None:
        """Refuse places that no feature has."""
        for places in (self.features, self.levels):
            if places is not None and len(places) and places[-1] >= n_features:
                raise FederatedError("question", f"there are {n_features} features, but one has place {places[-1]}")

    def packed(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays, as `packing.pack` takes them."""
        names = ("problem", "kind", "l1", "reach", *_FLAGS)
        arrays = {"features": self.features.astype(np.uint32), "s": self.s}
        if self.levels is not None:
            arrays["levels"] = self.levels.astype(np.uint32)
        return {name: getattr(self, name) for name in names}, arrays

    @classmethod
    def from_packed(cls, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Question:
        """The question that was packed."""
        if set(header) != {"problem", "kind", "l1", "reach", *_FLAGS} or not {"features", "s"} <= set(arrays):
            raise FederatedError("format", "this is no question")
        if set(arrays) - {"features", "s", "levels"} or any(type(header[name]) is not bool for name in _FLAGS):
            raise FederatedError("format", "this is no question")
        if any(type(header[name]) not in (float, int) for name in ("l1", "reach")):
            raise FederatedError("format", "this is no question")
        return cls(**header, features=arrays["features"], s=arrays["s"], levels=arrays.get("levels"))

    def digest(self) -> bytes:
        """Of all that is asked."""
        return digest(*self.packed())


def _places(name: str, given: Any) -> Array:
    places = np.asarray(given)
    if places.ndim != 1 or (places.dtype.kind not in "iu" and len(places)):
        raise FederatedError("question", f"{name} must be a list of places")
    places = places.astype(np.int64)
    if len(places) and (places[0] < 0 or places[-1] > LARGEST_FEATURE or (np.diff(places) <= 0).any()):
        raise FederatedError("question", f"{name} must be ascending places of features")
    return places


@dataclass(frozen=True, eq=False)
class Round:
    """Questions that are asked together, in one message to all sites.

    Parameters
    ----------
    number : int
        Counted from 0.
    plan : bytes
        Digest of the plan that the sites have agreed to.
    questions : tuple of Question
    units : tuple of Units
        In which each of the answers is sent.
    scales : array of shape (n_features,), optional
        With pooled standardisation: what all sites divide their columns by before they answer. Every round has them,
        so that an answer needs nothing but the rows and the round.
    """

    number: int
    plan: bytes
    questions: tuple[Question, ...]
    units: tuple[Units, ...]
    scales: Array | None = None

    def __post_init__(self) -> None:
        if not (type(self.number) is int and 0 <= self.number <= _LAST_ROUND and isinstance(self.plan, bytes)):
            raise FederatedError("format", f"a round has a number from 0 to {_LAST_ROUND} and the digest of a plan")
        if not self.questions or len(self.questions) != len(self.units):
            raise FederatedError("format", "a round has questions, each with its units")
        for question, units in zip(self.questions, self.units, strict=True):
            if units.hessian.shape != question.features.shape:
                raise FederatedError("format", "the units of a question are not those of its features")
        if self.scales is not None:
            scales = np.asarray(self.scales)
            plain = scales.dtype == np.float64 and scales.ndim == 1
            if not plain or not ((scales >= 1.0 / _LARGEST_SCALE) & (scales <= _LARGEST_SCALE)).all():
                raise FederatedError("format", "scales of columns are positive numbers, of usual sizes")

    def packed(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays, as `packing.pack` takes them."""
        headers, arrays = [], {}
        for i, (question, units) in enumerate(zip(self.questions, self.units, strict=True)):
            asked, numbers = question.packed()
            headers.append({**asked, "units": units.exponents()})
            arrays.update({f"{i}.{name}": array for name, array in numbers.items()})
            arrays[f"{i}.hessian"] = units.hessian
        if self.scales is not None:
            arrays["scales"] = self.scales
        return {"number": self.number, "plan": self.plan.hex(), "questions": headers}, arrays

    @classmethod
    def from_packed(cls, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Round:
        """The round that was packed."""
        try:
            headers = [dict(asked) for asked in header["questions"]]
            units = [asked.pop("units") for asked in headers]
            own: list[dict[str, Array]] = [{} for _ in headers]
            scales = arrays.get("scales")
            for name, array in ((name, array) for name, array in arrays.items() if name != "scales"):
                place, _, part = name.partition(".")
                own[int(place)][part] = array
            powers = [Units(hessian=numbers.pop("hessian"), **given) for numbers, given in zip(own, units, strict=True)]
            questions = [Question.from_packed(*asked) for asked in zip(headers, own, strict=True)]
            found = cls(header["number"], bytes.fromhex(header["plan"]), tuple(questions), tuple(powers), scales)
        except (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise FederatedError("format", f"this is no round of questions ({error})") from None
        if found.packed()[0] != dict(header):
            raise FederatedError("format", "this is no round of questions")
        return found

    def digest(self) -> bytes:
        """Of everything in the round: the masks of its answers are keyed by it."""
        return digest(*self.packed())

    def scales_digest(self) -> str:
        """Of the scales of columns; "" where there are none."""
        return "" if self.scales is None else digest({}, {"scales": self.scales}).hex()

    def parts(self) -> list[str]:
        """Digest of each question with its units: rules count different ones."""
        alone = [(question,) for question in self.questions]
        units = [(each,) for each in self.units]
        return [Round(0, self.plan, *both).digest().hex() for both in zip(alone, units, strict=True)]
