"""Which cases of a large grid are in the quick run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

# an irrational step: the cases chosen do not line up with the columns of a grid
STEP = 0.6180339887498949


def slow_cases(cases: Sequence[Mapping[str, Hashable]], one_in: int) -> list[bool]:
    """Which cases of a test marked `sampled(one_in)` are slow: all but about one in so many.

    A case is the values of its arguments. Of an argument that takes few values each is in the quick run at least once;
    cases taken for that count among the one in so many.

    >>> cases = [{"loss": loss, "seed": seed} for loss in ("squared", "logistic") for seed in range(20)]
    >>> slow = slow_cases(cases, 5)
    >>> [f"{case['loss']} {case['seed']}" for case, left_out in zip(cases, slow) if not left_out]
    ['squared 0', 'squared 5', 'squared 10', 'squared 13', 'squared 18',
     'logistic 0', 'logistic 6', 'logistic 11', 'logistic 14', 'logistic 19']
    """
    values: dict[str, set[Hashable]] = defaultdict(set)
    for case in cases:
        for name, value in case.items():
            values[name].add(value)
    few = [name for name, taken in values.items() if len(taken) <= max(len(cases) / one_in, 2)]
    seen: set[tuple[str, Hashable]] = set()
    slow = []
    for k, case in enumerate(cases):
        new = {(name, case[name]) for name in few if name in case} - seen
        enough = (slow.count(False) - 2) * one_in > k
        slow.append(not new and (enough or k * STEP % 1.0 >= 1.0 / one_in))
        if not slow[-1]:
            seen |= new
    return slow
