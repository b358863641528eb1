"""Claims about features: zero, or not zero, in every solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hand_cases import make_case
from hand_certificates import Case, pack

from tasksieve.verify import Verdict, verify


def claimed(case: Case, opened: Any, sure: Any = (), exact: bool = False, gap: float | None = None) -> Verdict:
    header, arrays = case.content(1e-9)
    for name, listed in (("open", opened), ("sure", sure)):
        arrays[name] = np.array(sorted(listed), dtype=np.int64)
        arrays[name + "_start"] = np.array([0, len(listed)])
    if gap is not None:
        arrays["gap"] = np.array([gap])
    return verify(pack(header, arrays), **case.data(), exact=exact)


def provable(case: Case, gap: float | None = None) -> set[int]:
    """Features that can be left out of `open` one by one."""
    d = len(case.coef)
    found = {j for j in range(d) if claimed(case, set(range(d)) - {j}, gap=gap).proved}
    if found:
        assert claimed(case, set(range(d)) - found, gap=gap).proved
    return found


@pytest.mark.parametrize(
    ("loss", "penalty", "options"),
    [
        ("squared", "l21", {}),
        ("squared", "sparse_group", {"standardize": True, "weights": True}),
        ("squared", "linf", {"positive": True, "feature_weights": True}),
        ("logistic", "dirty", {}),
        ("huber", "l11", {"offset": True}),
        ("multinomial", "l21", {}),
        ("smoothed_hinge", "groups-rows", {"strength": 0.8}),
        ("quantile", "groups", {"strength": 0.8}),
        ("squared", "linf", {"free": True}),
    ],
)
def test_zeros(loss: str, penalty: str, options: dict[str, Any]) -> None:
    """Zero rows are proved to be, the more the smaller the gap; rows that are not zero never are."""
    case = make_case(loss, penalty, 3, **{"rows": 8, "d": 6, "strength": 0.5, "tol": 1e-9, **options})
    support = set(np.flatnonzero(case.coef.any(axis=1)).tolist()) | set(case.free.tolist())
    found = provable(case)
    assert support
    assert found
    assert not found & support
    gap = float(case.content(1e-9)[1]["gap"][0])
    assert provable(case, gap=1e3 * gap + 1e-2) <= found
    assert claimed(case, set(range(6)) - found, exact=True).proved
    refused = claimed(case, set(range(6)) - found - support)
    assert not refused.proved
    assert "is not proved to be zero in every solution" in refused.words


@pytest.mark.parametrize(
    ("loss", "penalty", "options"),
    [
        ("squared", "l21", {"ridge": True}),
        ("squared", "owl", {}),
        ("square-root", "l21", {}),
        ("squared", "l21", {"graph": True}),
    ],
)
def test_where_no_zero_is_proved(loss: str, penalty: str, options: dict[str, Any]) -> None:
    case = make_case(loss, penalty, 3, rows=10, d=9, strength=0.7, **options)
    assert claimed(case, range(9)).proved
    assert "nothing proves that the 1 features not listed as open are zero" in claimed(case, range(8)).words


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("options", [{}, {"standardize": True, "far": 1e6}, {"intercept": False}, {"free": True}])
def test_non_zeros_by_the_least_eigenvalue(exact: bool, options: dict[str, Any]) -> None:
    case = make_case("squared", "l21", 8, rows=25, d=8, strength=0.3, tol=1e-10, **options)
    sizes = np.abs(case.coef).max(axis=1)
    assert claimed(case, range(8), np.flatnonzero(sizes > 1e-2), exact=exact).proved
    refused = claimed(case, range(8), [int(np.argmin(sizes))], exact=exact)
    assert "is not proved to be non-zero in every solution" in refused.words
    assert not claimed(case, range(8), np.flatnonzero(sizes > 1e-2), exact=exact, gap=10.0).proved
    twice = make_case("squared", "l21", 8, rows=25, d=8, strength=0.3, tol=1e-10, **options)
    twice.x = [np.hstack([x[:, :-1], x[:, :1]]) for x in twice.x]  # the first column again: either may be zero
    twice.coef[7] = 0.0
    assert not claimed(twice, range(8), [0], exact=exact, gap=1.0).proved


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "huber", "poisson", "square-root"])
def test_non_zeros_by_the_ridge(exact: bool, loss: str) -> None:
    case = make_case(loss, "linf", 5, rows=10, d=6, ridge=True, standardize=True, tol=1e-9)
    gap = case.content(1e-9)[1]["gap"][0]
    sizes = np.sqrt((case.scaled() ** 2).sum(axis=1))
    radius = np.sqrt(2 * gap / case.ridge)
    above = np.flatnonzero(sizes > radius * (1 + 1e-9))
    assert len(above)
    assert claimed(case, range(6), above, exact=exact).proved
    below = np.setdiff1d(np.arange(6), above)
    for j in below:
        assert not claimed(case, range(6), [j], exact=exact).proved
