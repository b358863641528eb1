"""What a site answers: sums over its tasks, which may be added up over sites, as numbers and as integers.

`FIELDS` says how each number becomes an integer. Numbers that are bounds are rounded outwards at the site, so sums of
them are bounds as well; open and masked answers are the same integers, with or without masks.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from .errors import FederatedError
from .packing import Array
from .question import Question
from .units import BINS, GROUPS, NORM_POWER, Units, bits, histogram

# Scales k at which dual values -F*(-k u) are sent: they are concave in k, so chords between two are lower bounds.
GRID = 1.0 - np.concatenate([[0.0], np.geomspace(1e-9, 0.5, 28)])
_WEIGHT = -30  # weights, and numbers of tasks, are sent in units of 2^-30
_WEIGHT_PLACES = slice(2, 4)
HELD_OUT = 4  # numbers about rows that are held out
FIRST_NUMBER = 1 + len(GROUPS)  # before it stand a 1, so that its sum is the number of sites, and a flag for each group
_FLAGS = slice(1, FIRST_NUMBER)
#: place of the word of a point that is not 0 where a site has no dual value, and places of the dual values
NO_DUAL = FIRST_NUMBER + 4
DUAL = slice(NO_DUAL + 1, NO_DUAL + 1 + len(GRID))


class Field(NamedTuple):
    """How a part of an answer is sent: bits of its integers (of two words where there are more than 64), their rounding
    and their unit."""

    name: str
    ring: int
    rounding: str  # "up", "down", "nearest"
    group: str  # which unit, and which count says that it did not fit


_WORDS = {32: (32,), 64: (64,), 96: (64, 32), 128: (64, 64)}  # of an integer, the lowest first
_POINT = (
    Field("phi", 64, "nearest", "sums"),
    Field("loss", 64, "up", "sums"),
    Field("yr", 64, "down", "sums"),
    Field("rr", 64, "up", "sums"),
    Field("no_dual", 64, "nearest", ""),
    Field("dual", 64, "down", "sums"),
    Field("held_out", 64, "nearest", "sums"),
    Field("z", 64, "up", "squares"),
    Field("hessian", 32, "nearest", "hessian"),
    Field("levels", 32, "up", "levels"),
)
FIELDS: dict[str, tuple[Field, ...]] = {
    "sizes": (Field("sizes", 32, "nearest", ""),),
    "null": (
        Field("phi", 128, "nearest", "sums"),
        Field("loss", 128, "up", "sums"),
        Field("yr", 128, "down", "sums"),
        Field("rr", 128, "up", "sums"),
        Field("dual", 128, "down", "sums"),
        Field("held_out", 128, "nearest", "sums"),
        Field("levels", 96, "up", "levels"),
    ),
    "norms": (Field("norms", 64, "up", "squares"),),
    "moments": (
        Field("weight", 64, "nearest", "sums"),
        Field("first", 64, "nearest", "sums"),
        Field("second", 64, "up", "squares"),
    ),
    "point": _POINT,
    "part": (
        Field("loss", 64, "up", "sums"),
        Field("dual", 64, "down", "sums"),
        Field("w2", 64, "up", "squares"),
        Field("c2", 64, "up", "squares"),
    ),
}


@dataclass(eq=False)
class Answer:
    """Sums at a point s, over the tasks of a site or over sites; ``a + b`` adds two.

    Attributes
    ----------
    phi : float
        The local problems' values: loss + 1/2 sum w^2/s (+ l1 sum abs(w)).
    loss : float
        F(X w + Z b) (+ l1 sum abs(w)).
    yr, rr : float
        For the squared loss y'r, for others the constant that reported objectives have beside the loss
        (`DataLoss.constant`; it may be below 0, so that tolerances are relative to the loss without it); u'u.
    dual : array of shape (29,) or None
        -F*(-k u) for each k of `GRID`; where one is minus infinity at a site, all are.
    z : array of shape (a,)
        c_j^2 on the question's features.
    hessian : array of shape (a, a) or None
        c_j c_k x_j' M x_k.
    levels : array of shape (l,) or (d,)
        c_j^2.
    held_out : array of shape (4,)
        Scores of held-out rows added up over tasks, those of the null model of the training rows, how many tasks have a
        score, and the weight of the training rows, which is the number of tasks times what estimators divide by.
    norms : array of shape (d,) or None
        ||x_jt|| to the power `NORM_POWER`, added up over tasks.
    sizes : array of shape (3, 512) or None
        Histograms of exponents, see `units.histogram`.
    weight : float
        Of a question of kind "moments": the weight of all rows.
    first, second : array of shape (a,) or None
        Weighted sums of the question's columns less its numbers s, and of the squares of these differences.
    w2, c2 : array or None
        Of a strict part (`Half`): squared coefficients on the question's features, squared products, from above. Its
        loss and dual values are bounds, too: from above and from below.
    slack : float
        Of kind "moments": how far each number of `second` may be from the sum, because it was rounded, in units of its
        column.
    sum_slack : float
        The same of phi, loss, yr, rr and the dual values, and of `first`, in units of its column.
    """

    phi: float = 0.0
    loss: float = 0.0
    yr: float = 0.0
    rr: float = 0.0
    dual: Array | None = None
    z: Array | None = None
    hessian: Array | None = None
    levels: Array | None = None
    held_out: Array | None = None
    norms: Array | None = None
    sizes: Array | None = None
    weight: float = 0.0
    first: Array | None = None
    second: Array | None = None
    w2: Array | None = None
    c2: Array | None = None
    slack: float = 0.0
    sum_slack: float = 0.0

    def __add__(self, other: Answer) -> Answer:
        if not isinstance(other, Answer):
            return NotImplemented
        parts: dict[str, Any] = {}
        for part in fields(self):
            one, two = getattr(self, part.name), getattr(other, part.name)
            if (one is None) != (two is None) or np.shape(one) != np.shape(two):
                raise FederatedError("answer", f"two answers differ in the shape of {part.name}")
            parts[part.name] = None if one is None else one + two
        return Answer(**parts)

    def __radd__(self, other: Any) -> Answer:
        return self if isinstance(other, int) and other == 0 else NotImplemented


def answer_of_sizes(null: Answer, norms: Answer) -> Answer:
    """What a site answers first: how large its numbers are, from its answers at s = 0 and about norms."""
    assert null.dual is not None and null.levels is not None and norms.norms is not None
    finite = null.dual[np.isfinite(null.dual)]
    total = np.max(np.abs([null.phi, null.loss, null.yr, null.rr, *finite]))
    level = null.levels.max(initial=0.0)
    norm = norms.norms.max(initial=0.0) ** (1.0 / NORM_POWER) * (1.0 + 1e-12)  # not below a power of two by rounding
    return Answer(sizes=histogram(np.array([total, level, norm])))


def norm_bounds(answer: Answer) -> Array:
    """Upper bounds of the columns' norms at every site: a maximum is no sum, that of high powers is near to it."""
    if answer.norms is None:
        raise FederatedError("answer", "the answer has no norms")
    bounds: Array = np.power(np.maximum(answer.norms, 0.0), 1.0 / NORM_POWER) * (1.0 + 1e-12)
    return bounds


@dataclass(eq=False)
class Words:
    """The integers of one answer or of several: they are added modulo 2^64 and 2^32."""

    long: Array
    short: Array

    def __post_init__(self) -> None:
        if self.long.dtype != np.uint64 or self.short.dtype != np.uint32 or self.long.ndim != 1 or self.short.ndim != 1:
            raise FederatedError("format", "words are lists of unsigned 64-bit and 32-bit integers")

    def __add__(self, other: Words) -> Words:
        if self.long.shape != other.long.shape or self.short.shape != other.short.shape:
            raise FederatedError("answer", "two answers do not have the same number of words")
        return Words(self.long + other.long, self.short + other.short)

    def __sub__(self, other: Words) -> Words:
        return self + Words(np.uint64(0) - other.long, np.uint32(0) - other.short)


class Misfit(Exception):
    """Numbers that did not fit: the names of their groups."""

    def __init__(self, groups: tuple[str, ...]) -> None:
        super().__init__(groups)
        self.groups = groups


def check_total(words: Words, n_sites: int) -> None:
    """Refuse words that are not the sum of all sites' answers to one question: their masks have not cancelled."""
    if words.long[0] != n_sites:
        raise FederatedError("masks", "the answers do not add up: masks differ, or the questions that were answered")


def misfits(words: Words) -> Array:
    """For each group whether some site's numbers did not fit."""
    return words.long[_FLAGS] != 0


def counts(question: Question, n_features: int) -> tuple[int, int]:
    """How many 64-bit and 32-bit words an answer has."""
    total = {64: FIRST_NUMBER, 32: 0}
    for part in _sent(question):
        for ring in _WORDS[part.ring]:
            total[ring] += _length(part.name, question, n_features)
    return total[64], total[32]


def size(question: Question, n_features: int) -> int:
    """Bytes of the words of an answer."""
    long, short = counts(question, n_features)
    return 8 * long + 4 * short


def to_words(answer: Answer, question: Question, units: Units, n_features: int) -> Words:
    """The integers of a site's answer. Where numbers of a group do not fit, or are not finite, the flag of the group is
    1 and all numbers are 0; where a dual value is minus infinity, `NO_DUAL` is 1 and all dual values are 0. A site must
    not send that as it is (`masks.unfit_hidden`, `masks.no_dual_hidden`): a sum without it would show its own. Nor does
    it refuse, which would tell whose numbers are so large."""
    pieces: dict[int, list[Array]] = {64: [], 32: []}
    unfit = dict.fromkeys(("", *GROUPS), 0)  # "": flags and counts, which always fit
    for part in _sent(question):
        numbers = _numbers(answer, part.name, question, n_features)
        whole = _rounded(numbers, _powers(part.name, question, units), part.rounding)
        if not (np.abs(whole) <= 2.0 ** _all_bits(part, units.sites)).all():
            unfit[part.group] = 1
        *lower, top = _WORDS[part.ring]
        for ring in lower:  # exact: the last digits of a double are a double
            share = 2.0 ** bits(ring, units.sites)
            rest = np.trunc(whole / share)
            with np.errstate(invalid="ignore"):  # not finite: it does not fit
                pieces[ring].append(whole - rest * share)
            whole = rest
        pieces[top].append(whole)
    fits = not any(unfit.values())
    found = {ring: np.concatenate([np.empty(0), *parts]) if fits else _nothing(parts) for ring, parts in pieces.items()}
    flags = np.array([1, *(unfit[group] for group in GROUPS)], np.int64)
    long = np.concatenate([flags, found[64].astype(np.int64)]).view(np.uint64)
    return Words(long, found[32].astype(np.int32).view(np.uint32))


def from_words(words: Words, question: Question, units: Units, n_features: int) -> Answer:
    """The sums that added words stand for; bounds stay bounds. `Misfit` where some site's numbers did not fit."""
    if (len(words.long), len(words.short)) != counts(question, n_features):
        raise FederatedError("answer", "an answer does not have the number of words that was asked for")
    long, short = words.long.view(np.int64), words.short.view(np.int32)
    flags = long[_FLAGS]
    check_total(words, units.sites)
    if flags.any():
        raise Misfit(tuple(group for group, flag in zip(GROUPS, flags.tolist(), strict=True) if flag))
    at = {64: FIRST_NUMBER, 32: 0}
    parts: dict[str, Any] = {}
    no_dual = question.kind == "point" and question.dual and bool(long[NO_DUAL])
    for part in _sent(question):
        n = _length(part.name, question, n_features)
        pieces = []
        for ring in _WORDS[part.ring]:
            pieces.append((long if ring == 64 else short)[at[ring] : at[ring] + n].astype(np.int64))
            at[ring] += n
        if part.name == "no_dual":
            continue
        if part.name == "dual" and no_dual:  # what is there is noise
            parts[part.name] = np.full(n, -np.inf)
            continue
        for ring, whole in zip(_WORDS[part.ring], pieces, strict=True):
            if part.name != "sizes" and (np.abs(whole) > units.sites << bits(ring, units.sites)).any():
                raise FederatedError("masks", f"the answers do not add up in {part.name}")
        numbers = [_outward(whole, part.rounding) for whole in pieces]
        total = numbers[0]
        if len(numbers) > 1:
            total = _together(total, numbers[1], bits(64, units.sites), part.rounding)
        parts[part.name] = _shaped(part.name, np.ldexp(total, _powers(part.name, question, units)), question)
    if question.kind in ("null", "point"):
        parts.setdefault("z", np.empty(0))
        parts.setdefault("held_out", np.zeros(HELD_OUT))
    if question.kind == "moments":
        parts["slack"] = float(np.ldexp(units.sites, units.squares))
    parts["sum_slack"] = float(np.ldexp(units.sites, units.sums))
    return Answer(**parts)


def _sent(question: Question) -> tuple[Field, ...]:
    wanted = {"hessian": question.hessian, "held_out": question.held_out}
    if question.kind != "part":
        wanted["dual"] = wanted["no_dual"] = question.dual
    return tuple(part for part in FIELDS[question.kind] if wanted.get(part.name, True))


def _all_bits(part: Field, n_sites: int) -> int:
    """Of a number of one site."""
    return sum(bits(ring, n_sites) for ring in _WORDS[part.ring])


def _length(name: str, question: Question, n_features: int) -> int:
    a = len(question.features)
    known = {"dual": len(GRID), "held_out": HELD_OUT, "sizes": 3 * BINS, "norms": n_features}
    known |= {"z": a, "w2": a, "first": a, "second": a, "hessian": a * (a + 1) // 2}
    known |= dict.fromkeys(("levels", "c2"), question.n_levels(n_features))
    return known.get(name, 1)


def _numbers(answer: Answer, name: str, question: Question, n_features: int) -> Array:
    no_dual = question.kind == "point" and answer.dual is not None and bool(np.isneginf(answer.dual).any())
    if name == "no_dual":
        return np.array([float(no_dual)])
    given = np.zeros(len(GRID)) if name == "dual" and no_dual else getattr(answer, name)
    if given is None:
        raise FederatedError("answer", f"the answer has no {name}")
    numbers = np.asarray(given, dtype=np.float64)
    if name == "hessian":
        numbers = numbers[np.tril_indices(len(question.features))]
    numbers = numbers.reshape(-1)
    if len(numbers) != _length(name, question, n_features):
        raise FederatedError("answer", f"{name} has {len(numbers)} numbers, which is not what was asked for")
    return numbers


def _powers(name: str, question: Question, units: Units) -> Any:
    """Exponents of the units of each number of a field."""
    if name in ("sizes", "no_dual"):
        return 0
    if name == "norms":
        return units.norms
    if name == "hessian":
        row, column = np.tril_indices(len(question.features))
        each = units.hessian.astype(np.int64)
        return each[row] + each[column] + units.base
    if name == "weight":
        return _WEIGHT
    if name in ("first", "second"):
        each = units.hessian.astype(np.int64)
        return each + units.sums if name == "first" else 2 * each + units.squares
    if name == "w2":  # w_j = s_j c_j
        return units.squares + 2 * np.frexp(question.s)[1].astype(np.int64)
    if name == "held_out":
        powers = np.full(HELD_OUT, units.sums)
        powers[_WEIGHT_PLACES] = _WEIGHT
        return powers
    return {"z": units.squares, "c2": units.squares, "levels": units.levels}.get(name, units.sums)


def _rounded(numbers: Array, powers: Any, rounding: str) -> Array:
    """Whole numbers of units; dividing by a power of two is exact but where it is too small for a double."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scaled = np.ldexp(numbers, -np.asarray(powers))
    if rounding == "up":
        return np.where(numbers > 0.0, np.maximum(np.ceil(scaled), 1.0), np.ceil(scaled))
    if rounding == "down":
        return np.where(numbers < 0.0, np.minimum(np.floor(scaled), -1.0), np.floor(scaled))
    return np.rint(scaled)


def _outward(whole: Array, rounding: str) -> Array:
    """Integers as doubles, not to the wrong side."""
    numbers = whole.astype(np.float64)
    back = numbers.astype(np.int64)
    if rounding == "up":
        return np.where(back < whole, np.nextafter(numbers, np.inf), numbers)
    if rounding == "down":
        return np.where(back > whole, np.nextafter(numbers, -np.inf), numbers)
    return numbers


def _together(low: Array, high: Array, power: int, rounding: str) -> Array:
    """``low + 2^power high`` as doubles, not to the wrong side."""
    high = np.ldexp(high, power)
    total = low + high
    rest = total - high
    error = (low - rest) + (high - (total - rest))  # what the addition has lost, exactly
    if rounding == "up":
        return np.where(error > 0.0, np.nextafter(total, np.inf), total)
    if rounding == "down":
        return np.where(error < 0.0, np.nextafter(total, -np.inf), total)
    return total


def _nothing(parts: list[Array]) -> Array:
    return np.zeros(sum(map(len, parts)))


def _shaped(name: str, numbers: Array, question: Question) -> Any:
    if name in ("phi", "loss", "yr", "rr", "weight"):
        return float(numbers[0])
    if name == "sizes":
        return numbers.reshape(3, BINS).astype(np.int64)
    if name == "hessian":
        a = len(question.features)
        full = np.zeros((a, a))
        row, column = np.tril_indices(a)
        full[row, column] = full[column, row] = numbers
        return full
    return numbers
