"""Anchored correlations: bounds from past passes are never below the truth.

Every draw makes a design, a few past vectors with their passes (often nearly parallel, as neighbouring values of a path
are), a new vector and a ball around it, and compares the bounds with correlations by columns of forty digits.
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers import Case, random_case, random_weights, row_penalty
from hypothesis import given, settings
from hypothesis import strategies as st

from tasksieve.design import Region
from tasksieve.path.anchors import Anchors
from tasksieve.penalties import SparseGroup

DESIGNS = (
    "stacked",
    "one task",
    "shared",
    "shared, one task",
    "shared, missing labels",
    "standardize",
    "weights",
)

PLAIN = row_penalty(np.ones(25))


def draw_case(rng, kind: str, scale: float) -> Case:
    tasks = 1 if "one task" in kind else int(rng.integers(2, 6))
    case = random_case(
        rng,
        tasks=tasks,
        rows=int(rng.integers(2, 9)),
        features=25,
        shared="shared" in kind,
        fit_intercept=bool(rng.random() < 0.5),
        standardize=kind == "standardize",
    )
    case.matrix[:, 0] = 0.0
    case.matrix[:, 1] += 1e4
    case.matrix[:, 2] *= 10.0 ** rng.uniform(-20, 10)
    case.matrix[:, 3] *= 10.0 ** rng.uniform(-48, -36)  # around the smallest numbers of single precision
    case.matrix *= scale
    if kind in ("shared, missing labels", "weights"):
        case = case.but(weights=random_weights(rng, case))
    return case


def draw_anchors(rng, design, scale: float, beside: bool = False) -> tuple[Anchors, list[np.ndarray]]:
    """Anchors that are independent, nearly parallel, equal, or zero in a task; their combinations task by task, or one
    for all tasks. `beside`: the latter may have differences of two vectors among them."""
    joint = bool(not design.uniform and design.n_tasks > 1 and rng.random() < 0.5)
    anchored = Anchors(design, capacity=4, joint=joint)
    base = rng.standard_normal(design.n_samples)
    vectors = []
    for _ in range(int(rng.integers(1, 7))):
        nearness = rng.choice([0.0, 1e-12, 1e-7, 1e-3, 1.0])
        vector = scale * design.project(base + nearness * rng.standard_normal(design.n_samples))
        if rng.random() < 0.2:
            vector[design.offsets[0] : design.offsets[1]] = 0.0
        if beside and joint and vectors:
            anchored.add(vector, vectors[-1])
            design.shard.remember(vector, PLAIN)
        else:
            anchored.remember(vector, PLAIN)
        vectors.append(vector)
    return anchored, vectors


def draw_penalty(rng, size: float) -> SparseGroup:
    group = size * rng.uniform(0.2, 3.0, 25)
    l1 = np.zeros(25)
    kind = rng.choice(["group", "l1", "both", "some"])
    if kind == "l1":
        group, l1 = np.zeros(25), group
    elif kind in ("both", "some"):
        l1 = 0.3 * size * rng.uniform(0.2, 3.0, 25) * (rng.random(25) < (1.0 if kind == "both" else 0.5))
    group[5] = l1[5] = 0.0  # an unpenalised row
    return row_penalty(group, l1, positive=bool(rng.random() < 0.3))


def reached(m: np.ndarray, penalty: SparseGroup) -> np.ndarray:
    """What the bounds bound: ‖soft(m, l1)‖/group, or max|m|/l1 where there is no group part."""
    size = np.maximum(m, 0.0) if penalty.positive else np.abs(m)
    group, l1 = penalty.group, penalty.l1
    soft = np.sqrt(np.sum(np.maximum(size - l1[:, None], 0.0) ** 2, axis=1))
    by_group = np.divide(soft, group, out=np.zeros(25), where=group > 0)
    by_entry = np.divide(size.max(axis=1), l1, out=np.zeros(25), where=l1 > 0)
    return np.where(group > 0, by_group, by_entry)


def columns_of(case: Case) -> list[np.ndarray]:
    return [x.astype(float) for x in case.tilde()]


def products(tilde, case: Case, vector) -> np.ndarray:
    """In float64: their rounding is a millionth of what single precision adds to the bounds."""
    return np.stack([x.T @ vector[rows] for x, rows in zip(tilde, case.rows, strict=True)], axis=1)


def typical(m: np.ndarray) -> float:
    lengths = np.sqrt(np.sum(m**2, axis=1))
    return float(np.median(lengths)) or 1.0


@settings(max_examples=120)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(DESIGNS),
    scale=st.sampled_from([1.0, 1.0, 1e-30, 1e-18, 1e20]),
)
def test_bounds_are_never_below_the_truth(seed, kind, scale):
    rng = np.random.default_rng(seed)
    case = draw_case(rng, kind, scale)
    design, tilde = case.design(), columns_of(case)
    anchored, vectors = draw_anchors(rng, design, scale, beside=True)
    mixed = sum(rng.standard_normal() * v for v in vectors)
    rest = design.project(rng.standard_normal(design.n_samples))
    vector = mixed + scale * rng.choice([0.0, 1e-10, 1e-4, 0.3]) * rest
    m = products(tilde, case, vector)
    penalty = draw_penalty(rng, typical(m))
    estimate, upper = design.shard.bound(anchored.express(vector), penalty)
    truth = reached(m, penalty)
    assert np.all(upper >= truth * (1 - 1e-12))
    assert np.all(upper >= estimate * (1 - 1e-12))
    # the ball around it: towards a feature, in one task or in all, and anywhere
    radius = float(np.linalg.norm(vector)) * 10.0 ** rng.uniform(-6, 0)
    _, upper = design.shard.bound(anchored.express(vector), penalty, Region(radius))
    upper = upper.copy()
    for trial in range(12):
        step = np.concatenate(
            [x[:, trial * 2] * np.sign(m[trial * 2, t]) for t, x in enumerate(tilde)]
        )
        if trial % 3 == 1:
            only = case.rows[trial % case.n_tasks]
            step[: only.start] = step[only.stop :] = 0.0
        elif trial % 3 == 2 or not step.any():
            step = rng.standard_normal(len(step))
        size = np.linalg.norm(step)
        if size == 0.0:
            continue
        inside = products(tilde, case, vector + radius * (step / size))
        assert np.all((upper >= reached(inside, penalty) * (1 - 1e-9)) | (upper >= 1.0))


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(DESIGNS))
def test_combinations_of_anchored_vectors(seed, kind):
    """Sums and multiples, as the centres of screening balls are made of, and anchors themselves."""
    rng = np.random.default_rng(seed)
    case = draw_case(rng, kind, 1.0)
    design, tilde = case.design(), columns_of(case)
    anchored, vectors = draw_anchors(rng, design, 1.0)
    kept = [vectors[0], *vectors[1:][-(len(anchored) - 1) :]] if len(anchored) > 1 else vectors[:1]
    np.testing.assert_array_equal(
        anchored.vectors, kept
    )  # the first stays for ever, of the others the newest
    new = design.project(rng.standard_normal(design.n_samples))
    a, b = rng.standard_normal(2)
    last = len(anchored) - 1
    centre = (
        anchored.express(new).scaled(a) + anchored.anchor(0).scaled(b) + anchored.anchor(last).scaled(-0.5)
    )
    m = products(tilde, case, a * new + b * kept[0] - 0.5 * kept[last])
    penalty = draw_penalty(rng, typical(m))
    _, upper = design.shard.bound(centre, penalty)
    assert np.all(upper >= reached(m, penalty) * (1 - 1e-12))
    for k, vector in enumerate(kept):
        m = products(tilde, case, vector)
        _, upper = design.shard.bound(anchored.anchor(k), penalty)
        assert np.all(upper >= reached(m, penalty) * (1 - 1e-12))


@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(DESIGNS),
    scale=st.sampled_from([1.0, 1e-30, 1e-18, 1e20]),
)
def test_balls_on_the_line_to_the_first_anchor(seed, kind, scale):
    """From inner products noted on the way, or (other penalties) from the anchors: never below the truth."""
    rng = np.random.default_rng(seed)
    case = draw_case(rng, kind, scale)
    design, tilde = case.design(), columns_of(case)
    anchored, vectors = draw_anchors(rng, design, scale)
    new = scale * design.project(rng.standard_normal(design.n_samples))
    if rng.random() < 0.3:  # so close to the first anchor that most of a difference cancels
        new = vectors[0] * (1.0 + rng.choice([0.0, 1e-14, 1e-9])) + rng.choice([0.0, 1e-12]) * new
    current = anchored.follow(new, np.zeros(design.n_tasks))
    a, b = rng.standard_normal(2) if rng.random() < 0.5 else (1.0, -1.0)
    m = products(tilde, case, a * new + b * vectors[0])
    penalty = draw_penalty(rng, typical(products(tilde, case, new)))
    if rng.random() < 0.6:
        penalty = row_penalty(np.where(penalty.group > 0, penalty.group, penalty.l1))
    radius = float(np.linalg.norm(new)) * rng.choice([0.0, 1e-6, 1e-3, 0.3])
    if rng.random() < 0.8:
        followed, note = anchored.judge(new, np.zeros(design.n_tasks), penalty)
        design.shard.bound(followed, penalty, note=note)
    verb, arguments = anchored.ball_question(a, b, penalty, radius)
    if verb == "bound":
        _, upper = design.shard.bound(arguments[0], penalty, Region(radius))
    else:
        upper = design.shard.ball_bound(*arguments[:3], penalty, radius)
    upper = upper.copy()
    centre = current.scaled(a) + anchored.anchor(0).scaled(b)
    _, direct = design.shard.bound(centre, penalty, Region(radius))
    # Nearly as strong as the bound that looks at all anchors: remainders add up by the triangle inequality here, and
    # there is the rounding of what cancels.
    size = reached(
        np.abs(a) * np.abs(products(tilde, case, new)) + np.abs(b) * np.abs(products(tilde, case, vectors[0])),
        penalty,
    )
    assert np.all((upper <= direct * 1.5 + 1e-6 * size) | (direct >= 1.0))
    for trial in range(8):
        step = np.concatenate(
            [x[:, 3 * trial] * np.sign(m[3 * trial, t]) for t, x in enumerate(tilde)]
        )
        if trial % 2 or not step.any():
            step = rng.standard_normal(len(step))
        inside = products(tilde, case, a * new + b * vectors[0] + radius * (step / np.linalg.norm(step)))
        assert np.all((upper >= reached(inside, penalty) * (1 - 1e-9)) | (upper >= 1.0))


def test_bounds_are_tight_where_the_vector_is_a_combination(rng):
    """No remainder: only the rounding of single precision separates bound and truth."""
    for kind in DESIGNS:
        case = draw_case(rng, kind, 1.0)
        case.matrix[:, 1] = rng.standard_normal(len(case.matrix))
        case.matrix[:, 2] = rng.standard_normal(len(case.matrix))
        design = case.design()
        anchored = Anchors(design)
        vectors = [design.project(rng.standard_normal(design.n_samples)) for _ in range(3)]
        for vector in vectors:
            anchored.remember(vector, PLAIN)
        new = vectors[0] - 0.5 * vectors[1] + 0.25 * vectors[2]
        m = products(columns_of(case), case, new)
        penalty = row_penalty(np.ones(25))
        estimate, upper = design.shard.bound(anchored.express(new), penalty)
        length = np.linalg.norm(m, axis=1)
        slack = 1e-5 * design.norms().max(axis=1) * np.linalg.norm(new) + 1e-30
        assert np.all(np.abs(estimate - length) <= slack)
        assert np.all(upper - length <= slack)
        if not design.uniform:  # one combination for all tasks; inner products in single precision
            together = Anchors(design, joint=True)
            together.vectors = np.array(vectors)
            estimate, upper = design.shard.bound(together.express(new), penalty)
            slack = 100.0 * slack + 1e-15
            assert np.all(upper >= length * (1 - 1e-12))
            assert np.all(np.abs(estimate - length) <= slack)
            assert np.all(upper - length <= slack)


def test_zero_vectors_and_zero_data(rng):
    case = draw_case(rng, "stacked", 1.0)
    empty = case.but(matrix=np.zeros_like(case.matrix))
    for given_case in (case, empty):
        design = given_case.design()
        anchored = Anchors(design)
        zero = np.zeros(design.n_samples)
        anchored.remember(zero, PLAIN)
        penalty = row_penalty(np.ones(25))
        _, upper = design.shard.bound(anchored.express(zero), penalty)
        assert np.all(upper <= 1e-30)
        r = rng.standard_normal(design.n_samples)
        _, upper = design.shard.bound(anchored.express(r), penalty)
        assert np.isfinite(upper).all()
        truth = np.linalg.norm(products(columns_of(given_case), given_case, r), axis=1)
        assert np.all(upper >= truth * (1 - 1e-12))


@pytest.mark.parametrize("kind", DESIGNS)
def test_the_oldest_anchor_but_the_first_is_forgotten(rng, kind):
    case = draw_case(rng, kind, 1.0)
    design = case.design()
    anchored = Anchors(design, capacity=3)
    vectors = [design.project(rng.standard_normal(design.n_samples)) for _ in range(4)]
    for vector in vectors:
        assert anchored.position_of(vector) is None
        anchored.remember(vector, PLAIN)
        assert anchored.position_of(vector) == len(anchored) - 1
    np.testing.assert_array_equal(anchored.vectors, [vectors[0], vectors[2], vectors[3]])
    assert [anchored.position_of(vector) for vector in vectors] == [0, None, 1, 2]
    other = case.design()
    fresh = Anchors(other, capacity=3)
    for vector in anchored.vectors:
        fresh.remember(vector, PLAIN)
    penalty = row_penalty(np.ones(25))
    first = design.shard.bound(anchored.express(vectors[1]), penalty)
    second = other.shard.bound(fresh.express(vectors[1]), penalty)
    np.testing.assert_allclose(first, second, rtol=1e-12)
