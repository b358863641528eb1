"""A thousand spoilt certificates: none is accepted unless what it says is still true."""

from __future__ import annotations

import copy
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from hand_cases import make_case
from hand_certificates import Case, pack

from tasksieve.verify import Unreadable, read_certificate, verify

Array = np.ndarray[Any, Any]
Content = tuple[dict[str, Any], dict[str, Array]]

MEMBERS = [
    ("squared", "l21", {"standardize": True}),
    ("logistic", "sparse_group", {}),
    ("huber", "owl", {"weights": True}),
    ("square-root", "dirty", {"task_weights": True}),
    ("poisson", "linf", {"offset": True}),
]
COUNT = 200  # of each: 100 bits of the file, 100 changes of what it says


@cache
def case_of(number: int) -> Case:
    loss, penalty, options = MEMBERS[number]
    case = make_case(loss, penalty, 30 + number, n_tasks=2, rows=6, d=4, strength=0.4, **options)
    case.coef = case.coef * (1 + 1e-3)  # so that the gap is nothing that rounding decides
    return case


@cache
def true_content(number: int) -> Content:
    """Claims that are as tight as they can be, but for a millionth."""
    case = case_of(number)
    header, arrays = case.content(1e-3)
    value = verify(pack(header, arrays), **case.data(), exact=True).values[0]
    slack = 1e-6 * value.gap
    arrays["gap"] = np.array([value.gap + 3 * slack])
    arrays["dual_value"] = np.array([value.dual_value - slack])
    arrays["objective"] = np.array([value.objective])
    return header, arrays


def change_number(header: Any, arrays: dict[str, Array], rng: Any) -> str:
    """A number of an array: nudged, scaled, negated, of the next entry, 0, or huge."""
    name = str(rng.choice([n for n, a in arrays.items() if a.size]))
    flat = arrays[name].ravel().copy()
    k = int(rng.integers(len(flat)))
    if flat.dtype.kind == "i":
        flat[k] += int(rng.choice([-1, 1, 10**6]))
    else:
        way = int(rng.integers(7))
        factor = 1 + 10.0 ** -rng.integers(1, 14) * rng.choice([-1, 1])
        old, other = flat[k], flat[(k + 1) % len(flat)]
        flat[k] = [old * factor, -old, other, 0.0, old * 1e6, old * 1e300, old / 2][way]
    arrays[name] = flat.reshape(arrays[name].shape)
    return f"{name}[{k}]"


def change_claim(header: Any, arrays: dict[str, Array], rng: Any) -> str:
    """Slightly more than is true: by one part in 10^4 to 10^5."""
    name = str(rng.choice(["gap", "dual_value", "objective"]))
    step = float(arrays["gap"][0]) * 10.0 ** -rng.uniform(4, 5)
    far = 2 * float(arrays["gap"][0]) * rng.choice([-1, 1])
    arrays[name] = arrays[name] + {"gap": -step, "dual_value": step, "objective": far}[name]
    return name


def change_rounding(header: Any, arrays: dict[str, Array], rng: Any) -> str:
    """All of an array moved by its last bits."""
    name = str(rng.choice([n for n, a in arrays.items() if a.dtype.kind == "f" and a.size]))
    arrays[name] = arrays[name] * (1 + 2.0**-52 * rng.integers(-8, 9, arrays[name].shape))
    return name


def swap_arrays(header: Any, arrays: dict[str, Array], rng: Any) -> str:
    a, b = rng.choice(list(arrays), 2, replace=False)
    arrays[a], arrays[b] = arrays[b], arrays[a]
    return f"{a} and {b}"


def change_order(header: Any, arrays: dict[str, Array], rng: Any) -> str:
    name = str(rng.choice([n for n, a in arrays.items() if a.size > 1]))
    flat = arrays[name].ravel()
    arrays[name] = flat[rng.permutation(len(flat))].reshape(arrays[name].shape)
    return name


def lose_array(header: Any, arrays: dict[str, Array], rng: Any) -> str:
    name = str(rng.choice(list(arrays)))
    if rng.random() < 0.5:
        del arrays[name]
    else:
        arrays[name] = arrays[name][..., :-1]
    return name


def change_header(header: Any, arrays: dict[str, Array], rng: Any) -> str:
    """A number, a word or a switch of the header, at any depth."""
    positions = []

    def walk(node: Any, path: tuple[Any, ...]) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in items:
            positions.append((node, key, path))
            walk(value, (*path, key))

    walk(header, ())
    node, key, path = positions[int(rng.integers(len(positions)))]
    value = node[key]
    if isinstance(value, bool):
        node[key] = not value
    elif isinstance(value, int | float):
        node[key] = [value * 2, value + 1, -value, value * (1 + 1e-9), 0, 10**400][int(rng.integers(6))]
    elif isinstance(value, str):
        node[key] = "rows" if rng.random() < 0.3 else value[:-1] + ("a" if value[-1:] != "a" else "b")
    else:
        node[key] = [None, [], {}, "x", 1.5][int(rng.integers(5))]
    return "/".join(map(str, (*path, key)))


CHANGES = (change_number, change_claim, change_rounding, swap_arrays, change_order, lose_array, change_header)


def same(raw: bytes, header: dict[str, Any], arrays: dict[str, Array]) -> bool:
    """Whether a file says what these say."""
    other = read_certificate(raw)
    original = read_certificate(pack(header, arrays))
    names = set(other.arrays) == set(original.arrays)
    return names and other.header == original.header and all(
        np.array_equal(values, original.arrays[name]) for name, values in other.arrays.items()
    )


def outcome(raw: bytes, case: Case, header: dict[str, Any], arrays: dict[str, Array], told: str) -> str:
    try:
        verdict = verify(raw, **case.data())
    except Unreadable:
        return "unreadable"
    if not verdict.proved:
        return "not proved"
    if same(raw, header, arrays):
        return "the same"
    assert verify(raw, **case.data(), exact=True).proved, f"a false claim was accepted: {told}"
    return "still true"


@pytest.mark.parametrize("number", range(len(MEMBERS)))
def test_flipped_bits(number: int) -> None:
    case, (header, arrays) = case_of(number), true_content(number)
    raw = pack(header, arrays)
    assert verify(raw, **case.data()).proved
    rng = np.random.default_rng(number)
    found: Counter[str] = Counter()
    for _ in range(COUNT // 2):
        spoilt = bytearray(raw)
        position = int(rng.integers(len(raw)))
        spoilt[position] ^= 1 << int(rng.integers(8))
        found[outcome(bytes(spoilt), case, header, arrays, f"byte {position}")] += 1
    assert found["unreadable"] > COUNT // 4  # the archive has checksums of what it holds
    assert not found["still true"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", range(len(MEMBERS)))
def test_changed_claims(number: int) -> None:
    case, (header, arrays) = case_of(number), true_content(number)
    rng = np.random.default_rng(100 + number)
    found: Counter[str] = Counter()
    for k in range(COUNT // 2):
        change = CHANGES[k % len(CHANGES)]
        other_header, other = copy.deepcopy(header), dict(arrays)
        told = change(other_header, other, rng)
        try:
            raw = pack(other_header, other)
        except (ValueError, OverflowError):
            continue
        result = outcome(raw, case, header, arrays, f"{change.__name__}: {told}")
        if change is change_claim:
            assert result == "not proved"
        found[result] += 1
    assert found["not proved"] >= COUNT // 8
