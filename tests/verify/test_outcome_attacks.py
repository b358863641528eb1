"""Labels, headers and arrays of outcomes that a forger may try: each is refused in words, none ends in a traceback."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from certificate_oracle import Content
from outcome_vectors import problem, size_of

from tasksieve.verify import Certificate, Unreadable, read_certificate, verify

Array = np.ndarray[Any, Any]

SURVIVAL, ORDINAL, GAMMA, MIXED = 1, 4, 6, 11  # of `problem`


@cache
def made(number: int) -> Content:
    case = problem(number)
    _, coef, intercept, places = case.solution
    return case.content(coef, intercept, places, case.duals(coef, intercept, places), 1e-5 * size_of(case))


def honest(number: int) -> Content:
    return made(number).copy()


# --- headers ------------------------------------------------------------------------------------------------

JUNK: list[Any] = [
    None, True, [], {}, "", "x", -1, 0, 0.5, -0.0, 1e307, 5e-324, 10**400, [1], [None], [[]], {"name": "gamma"}
]  # fmt: skip


def nodes(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield (*path, key)
        yield from nodes(value, (*path, key))


@pytest.mark.parametrize("number", [SURVIVAL, ORDINAL, MIXED, 7, 8, 10, 12])
def test_junk_in_the_header_is_unreadable_or_harmless(number: int) -> None:
    """What is still read says the same of the labels, or another number; nothing but `Unreadable` is raised."""
    content = honest(number)
    assert verify(content.pack(), **content.data()).proved
    refused = 0
    for path in [path for path in nodes(content.header) if path[0] in ("loss", "classes")]:
        for junk in JUNK:
            header: dict[str, Any] = copy.deepcopy(content.header)
            node: Any = header
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = junk
            try:
                read = Certificate(header, content.arrays)
            except Unreadable:
                refused += 1
                continue
            absent, known = ([own is None for own in one or []] for one in (read["classes"], content.header["classes"]))
            assert absent == known
    assert refused > 20


@pytest.mark.parametrize("weight", [0.0, -1.0, -0.0, 1e308, float("inf"), True, "1", None, [1.0], 10**400])
@pytest.mark.parametrize("key", ["weights", "scales"])
def test_weights_and_scales_of_a_mixture(key: str, weight: Any) -> None:
    content = honest(MIXED)
    content.header["loss"].setdefault("scales", [1.0] * 3)
    content.header["loss"][key][0] = weight
    with pytest.raises(Unreadable):
        read_certificate(content.pack())


@pytest.mark.parametrize("weight", [1e-300, 0.5, 2.0, 1e160])
def test_other_weights_of_a_mixture_are_another_problem(weight: float) -> None:
    """The claims are those of the weight that was fitted; exactly, too, where floating point overflows."""
    content = honest(MIXED)
    for t in range(3):
        forged = content.copy()
        forged.header["loss"]["weights"][t] *= weight
        assert not verify(forged.pack(), **forged.data()).proved


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("strata", np.zeros(7)),
        ("time", np.zeros(7)),
        ("thresholds", np.zeros((1, 1))),
        ("classes", np.zeros(2, np.int64)),
    ],
)
def test_arrays_that_do_not_belong_there(name: str, values: Array) -> None:
    content = honest(SURVIVAL)
    content.arrays[name] = values
    with pytest.raises(Unreadable):
        read_certificate(content.pack())


@pytest.mark.parametrize("way", ["equal", "falling", "whole", "infinite", "one more"])
def test_thresholds(way: str) -> None:
    content = honest(ORDINAL)
    places = content.arrays["thresholds"]
    if way == "equal":
        places[:] = 0.0
    elif way == "falling":
        places[:] = np.sort(places)[:, ::-1]
    elif way == "whole":
        content.arrays["thresholds"] = np.arange(places.size)[None]
    elif way == "infinite":
        places[0, 0] = -np.inf
    else:
        content.arrays["thresholds"] = np.append(places, [[9.0]], axis=1)
    assert max(map(len, content.header["classes"])) > 2
    with pytest.raises(Unreadable):
        read_certificate(content.pack())


# --- times and events ---------------------------------------------------------------------------------------


def put(field: str, value: Any) -> Any:
    def change(y: Array) -> Array:
        y[field][0] = value
        return y

    return change


def fields(**kinds: Any) -> Any:
    """Fields of other types, or others."""

    def change(y: Array) -> Array:
        found = np.empty(len(y), dtype=[(name, kinds.get(name, kind)) for name, (kind, _) in y.dtype.fields.items()])
        for name in y.dtype.names:
            found[name] = y[name] if found[name].ndim == 1 else y[name][:, None]
        return found

    return change


def renamed(old: str, new: str) -> Any:
    def change(y: Array) -> Array:
        y.dtype.names = tuple(new if name == old else name for name in y.dtype.names)
        return y

    return change


def mixed_strata(y: Array) -> Array:
    """A word and a number that look the same."""
    y = fields(stratum=object)(y)
    y["stratum"] = [("1" if i % 2 else 1) for i in range(len(y))]
    return y


ATTACKS = {
    "an infinite time": (put("time", np.inf), "y finite"),
    "a time before all": (put("time", -np.inf), "an entry is not before its time"),
    "a time that is none": (put("time", np.nan), "rows and"),
    "an event that is none": (put("event", np.nan), "rows and"),
    "half an event": (put("event", 0.5), "neither 0 nor 1"),
    "a status": (put("event", 2.0), "neither 0 nor 1"),
    "an event below 0": (put("event", -1.0), "neither 0 nor 1"),
    "an infinite event": (put("event", np.inf), "neither 0 nor 1"),
    "an entry at its time": (lambda y: put("entry", y["time"][0])(y), "an entry is not before its time"),
    "an entry after its time": (put("entry", 1e300), "an entry is not before its time"),
    "an entry that is none": (put("entry", np.nan), "an entry is not before its time"),
    "another stratum": (lambda y: put("stratum", 1.0 - y["stratum"][0])(y), "digest differs"),
    "a stratum that is missing": (put("stratum", np.nan), "a stratum is missing"),
    "strata of two kinds": (mixed_strata, "as a word and as a number"),
    "times of words": (fields(time="U8"), "must be numbers"),
    "complex times": (fields(time=complex), "must be numbers"),
    "several times a row": (fields(time=(float, (2,))), "differ in their rows"),
    "times beyond 2^53": (lambda y: put("time", (1 << 53) + 1)(fields(time=np.int64)(y)), "beyond 2^53"),
    "objects beyond 2^53": (lambda y: put("time", (1 << 53) + 1)(fields(time=object)(y)), "beyond 2^53"),
    "objects that are no numbers": (lambda y: put("time", {})(fields(time=object)(y)), "must be numbers"),
    "a field that is not known": (renamed("entry", "start"), "known are time, event, entry and stratum"),
    "no times": (renamed("time", "days"), "must have fields 'event' and 'time'"),
    "a flipped event": (lambda y: put("event", 1.0 - y["event"][0])(y), "digest differs"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_times_that_are_none(name: str) -> None:
    change, words = ATTACKS[name]
    content = honest(SURVIVAL)
    (record,) = content.labels()
    rest: dict[str, Any] = {"sample_weight": content.weight, "offset": content.offset}
    assert verify(content.pack(), content.x, [record.copy()], **rest).proved
    verdict = verify(content.pack(), content.x, [change(record)], **rest)
    assert not verdict.proved
    assert words in verdict.words


def test_ties_of_times_that_were_rounded_to_float32() -> None:
    """The signed times differ; as float32 they are ties, and other data."""
    content = honest(SURVIVAL)
    content.y[0][:, 0] += 1e-9 * np.arange(len(content.y[0]))
    content.sign()
    (record,) = content.labels()
    rest: dict[str, Any] = {"sample_weight": content.weight, "offset": content.offset}
    assert "digest" not in verify(content.pack(), content.x, [record], **rest).words
    assert "digest differs" in verify(content.pack(), content.x, [fields(time=np.float32)(record)], **rest).words


def test_signs_of_zero_and_names_of_strata_mean_nothing() -> None:
    content = honest(SURVIVAL)
    (record,) = content.labels()
    rest: dict[str, Any] = {"sample_weight": content.weight, "offset": content.offset}
    same = record.copy()
    same["event"] = np.where(same["event"] == 0.0, -0.0, same["event"])
    same["stratum"] = np.where(same["stratum"] == 0.0, -0.0, 7.0)
    assert verify(content.pack(), content.x, [same], **rest).proved
    assert verify(content.pack(), content.x, [renamed("stratum", "strata")(same)], **rest).proved


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, -0.0, 0.0])
@pytest.mark.parametrize("number", [SURVIVAL, ORDINAL, GAMMA, MIXED])
def test_weights_of_rows(number: int, weight: float) -> None:
    """A row of weight 0 is not there, and the others are not the task's."""
    content = honest(number)
    content.weight[0][0] = weight
    for signed in (False, True):
        if signed:
            content.sign()
        verdict = verify(content.pack(), **content.data())
        assert not verdict.proved
        assert "weights must be numbers >= 0" in verdict.words or "rows and" in verdict.words


def test_signed_labels_outside_of_the_losses() -> None:
    """A forger signs what data there are: classes that there are not, a label that a loss does not have."""
    for number, value in ((ORDINAL, 9.0), (ORDINAL, -1.0), (ORDINAL, 0.5), (GAMMA, -0.0), (GAMMA, -1.0)):
        content = honest(number)
        labels = content.labels()
        content.y[0][0] = value
        content.sign()
        if number == ORDINAL:
            assert not verify(content.pack(), content.x, labels, sample_weight=content.weight, offset=content.offset)
        else:
            assert not verify(content.pack(), **content.data())
