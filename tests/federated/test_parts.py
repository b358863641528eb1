"""What a site says of its rows: bounds, for every loss; what is not a bound is refused, in floats and in fractions."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from tasksieve import verify
from tasksieve.federated.answer import GRID, from_words, to_words
from tasksieve.federated.errors import FederatedError
from tasksieve.federated.local import LocalProblem
from tasksieve.federated.part import Archive, published_half
from tasksieve.federated.question import Question
from tasksieve.federated.units import Sizes
from tasksieve.tasks import read_tasks

D, N = 10, 18
SALT = bytes(range(32))
FEATURES, S = np.array([0, 1, 5]), np.array([0.1, 0.05, 0.0])
QUESTION = Question(features=FEATURES, s=S, kind="part", hessian=False)


def units(question=QUESTION, n_sites=3):
    return Sizes(n_sites, 8, 9, 4).units(question.features, question.s, 0.0)


def rows(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    z = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=N)
    if loss == "cox":
        y = np.empty(N, dtype=[("event", bool), ("time", float)])
        y["time"], y["event"] = np.round(np.exp(-z), 1) + 0.1, rng.random(N) < 0.7
        return X, y, "survival"
    if loss == "logistic":
        return X, np.where(z > 0.0, 1, -1), "classes"
    if loss == "ordinal":
        return X, np.digitize(z, [-1.0, 0.5]), "ordered"
    if loss in ("poisson", "negative_binomial"):
        return X, rng.poisson(np.exp(np.clip(z, -2.0, 2.0))).astype(float), "values"
    if loss in ("gamma", "tweedie"):
        return X, np.exp(z) * rng.gamma(2.0, size=N), "values"
    return X, z + 5.0, "values"


def site(loss="squared", seed=0, *, offset=None, **options):
    X, y, targets = rows(loss, seed)
    weight = np.random.default_rng(seed + 1).uniform(0.5, 2.0, N)
    weight[3] = 0.0
    data = read_tasks([X], [y], sample_weight=[weight], targets=targets)
    given = {"X": [X], "y": [y], "sample_weight": [weight]}
    if offset is not None:
        data, given["offset"] = dataclasses.replace(data, known=offset), [offset]
    return LocalProblem(data, loss, **options), given


def proved(part, given, **options):
    raw = part.to_bytes() if isinstance(part, Archive) else part
    return verify.verify_part(raw, **given, **options)


SLOW = pytest.mark.slow
LOSSES = ("squared", "huber", "quantile", "logistic", "poisson", "gamma", "negative_binomial", "tweedie", "expectile",
          "log_cosh", "ordinal", "cox")  # fmt: skip


@pytest.mark.parametrize("loss", [one if one in ("squared", "logistic", "cox") else pytest.param(one, marks=SLOW)
                                  for one in LOSSES])  # fmt: skip
def test_a_half_of_every_loss_is_proved_by_its_rows_and_is_narrow(loss):
    local, given = site(loss)
    answer, half = local.answer(Question(features=FEATURES, s=S)), local.half(QUESTION)
    shift = half.loss - answer.loss  # deviances leave out what does not depend on the model
    if loss != "squared":  # where y'r is in its place
        assert shift == pytest.approx(answer.yr, abs=1e-9)
    near = half.dual - shift >= answer.dual - 1e-9
    if loss == "cox":  # chords between every seventh
        near = half.dual - shift >= answer.dual - 1e-9 - 20.0 * (1.0 - GRID)
    assert near.all()
    assert half.dual[0] - shift == pytest.approx(answer.dual[0], abs=1e-8)
    np.testing.assert_allclose(half.c2, answer.levels, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(half.w2, S**2 * answer.z, rtol=1e-9)
    part = local.part("north", SALT, [QUESTION], [units()])
    found = proved(part, given)
    assert found, found.words
    assert found.words.startswith("proved: the half of site 'north', 1 value, holds for these rows (in floating point")
    found = proved(part, given, exact=True)
    assert found, found.words


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"standardize": "task"}, marks=SLOW),
        pytest.param({"standardize": np.linspace(0.5, 2.0, D)}, marks=SLOW),
        pytest.param({"unpenalised": [3, 4]}, marks=SLOW), pytest.param({"fit_intercept": False}, marks=SLOW),
        pytest.param({"offset": np.linspace(-1.0, 1.0, N)}, marks=SLOW),
        {"standardize": "task", "unpenalised": [9], "offset": np.linspace(-1.0, 1.0, N)},
    ],
)  # fmt: skip
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_with_scales_free_features_offsets(loss, options):
    local, given = site(loss, **options)
    for question in (QUESTION, dataclasses.replace(QUESTION, l1=0.7)):
        answer, half = local.answer(dataclasses.replace(question, kind="point")), local.half(question)
        np.testing.assert_allclose(half.c2, answer.levels, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(half.dual - half.loss, answer.dual - answer.loss, atol=1e-8)
        part = local.part("north", SALT, [question], [units()])
        for exact in (False, True):
            found = proved(part, given, exact=exact)
            assert found, found.words


def test_bounds_hold_in_rational_arithmetic_written_down_a_second_time():
    """Squared loss without intercept: everything is a polynomial in the stored numbers."""
    local, given = site(fit_intercept=False)
    question = dataclasses.replace(QUESTION, l1=0.25)
    point, half = local.strict(question)
    kept = given["sample_weight"][0] > 0.0
    x, y, s = (list(map(Fraction, v[kept].ravel().tolist())) for v in (given["X"][0], given["y"][0],
                                                                        given["sample_weight"][0]))  # fmt: skip
    n, p = len(y), [Fraction(v) for v in point.dual.tolist()]
    w = dict(zip(point.features.tolist(), map(Fraction, point.rows[:, 0].tolist()), strict=True))
    r = [y[i] - sum(x[i * D + j] * v for j, v in w.items()) for i in range(n)]
    loss = sum(s[i] * r[i] ** 2 for i in range(n)) / 2 + Fraction(question.l1) * sum(map(abs, w.values()))
    assert loss <= Fraction(half.loss) <= loss * Fraction(1 + 1e-12)
    for k, gain in zip(map(Fraction, GRID.tolist()), half.dual.tolist(), strict=True):
        true = sum(s[i] * (k * p[i] * y[i] - (k * p[i]) ** 2 / 2) for i in range(n))
        assert Fraction(gain) <= true <= Fraction(gain) + Fraction(1e-10)
    for j in range(D):
        m = max(abs(sum(x[i * D + j] * s[i] * p[i] for i in range(n))) - Fraction(question.l1), Fraction(0))
        assert m**2 <= Fraction(half.c2[j]) <= m**2 + Fraction(1e-8)
    for j, bound in zip(FEATURES.tolist(), half.w2.tolist(), strict=True):
        assert w.get(j, Fraction(0)) ** 2 <= Fraction(bound)


def test_several_tasks_and_several_values_and_a_shared_matrix():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D))
    Y = np.stack([X[:, 0] + rng.normal(size=N), X[:, 1] + rng.normal(size=N)], axis=1)
    Y[4, 1] = np.nan
    questions = [QUESTION, Question(kind="part", hessian=False), dataclasses.replace(QUESTION, s=3.0 * S)]
    for data, given in (
        (read_tasks(X, Y), {"X": X, "y": Y}),
        (read_tasks([X, X[5:]], [Y[:, 0], Y[5:, 0]]), {"X": [X, X[5:]], "y": [Y[:, 0], Y[5:, 0]]}),
    ):
        local = LocalProblem(data, "squared")
        part = local.part("south", SALT, questions, [units(q) for q in questions], names=list("abcdefghij"))
        for exact in (False, True):
            found = proved(part, given, exact=exact)
            assert found, found.words
        assert "3 values" in found.words
        assert proved(part, given, value=1)


def test_words_are_those_of_the_message():
    local, _ = site()
    own = units(n_sites=1)
    part = local.part("north", SALT, [QUESTION], [own])
    words = to_words(local.answer(QUESTION), QUESTION, own, D)
    sums, half = from_words(words, QUESTION, own, D), verify.read_half(published_half(part).to_bytes())
    arith = verify.Floating()
    assert half.box(arith, "loss", 0).hi >= sums.loss >= half.box(arith, "loss", 0).lo
    np.testing.assert_array_equal(half.box(arith, "gain", 0).lo, sums.dual)
    np.testing.assert_array_equal(half.box(arith, "w2", 0).lo, sums.w2)
    np.testing.assert_array_equal(half.box(arith, "c2", 0).lo, sums.c2)


def test_the_same_part_has_the_same_bytes_and_a_half_has_nothing_that_stays():
    part = site()[0].part("north", SALT, [QUESTION], [units()])
    assert part.to_bytes() == site()[0].part("north", SALT, [QUESTION], [units()]).to_bytes()
    half = published_half(part)
    assert set(half.arrays) == {*verify.AGREED, *verify.WORDS} - {"column_scale"}
    assert set(half.header) == {"format", "version", "site", "n_features", "names", "problem"}


# --- forgeries ----------------------------------------------------------------------------------------------


def forged(part, **changes):
    return Archive(dict(part.header), {**part.arrays, **changes}).to_bytes()


@pytest.mark.parametrize(
    ("loss", "exact"),
    [("squared", False), ("squared", True), *(pytest.param(loss, exact, marks=SLOW)
     for loss in ("logistic", "poisson", "cox") for exact in (False, True))],
)  # fmt: skip
def test_every_word_below_its_bound_is_refused(loss, exact):
    """One word after the other, moved to the first one that is not a bound."""
    local, given = site(loss)
    part = local.part("north", SALT, [QUESTION], [units()])
    tasks = verify.arrange(verify.read_part(part.to_bytes()).cert, given["X"], given["y"], None,
                           given["sample_weight"], None)  # fmt: skip
    read = verify.read_part(part.to_bytes())
    arith = verify.Exact(160)
    with np.errstate(all="ignore"):
        true = verify.part_bounds(verify.Problem(read.cert, tasks, arith), 0, read.arrays, lambda words: None)
    powers = {"loss": units().sums, "gain": units().sums, "c2": units().squares, "w2": part.arrays["w2_exponent"]}
    for name in verify.WORDS:
        box = getattr(true, name)
        ends = np.atleast_1d(box.hi if name == "gain" else box.lo).tolist()  # what is surely true
        places = range(len(ends)) if name in ("loss", "w2") else (0, len(ends) - 1)
        for i in places:
            step = Fraction(2) ** int(np.broadcast_to(powers[name], len(ends))[i])
            word = ends[i] / step
            wrong = (word.__floor__() + 1 + (word.__floor__() == word)) if name == "gain" else word.__ceil__() - 1
            if wrong < 0 and name in ("w2", "c2"):
                continue  # the least word is a bound
            changed = part.arrays[name].copy()
            changed.reshape(-1)[i] = wrong
            found = proved(forged(part, **{name: changed}), given, exact=exact)
            assert not found
            assert f"value 0: {name}" in found.words


def test_what_is_not_of_these_rows_is_refused():
    local, given = site()
    part = local.part("north", SALT, [QUESTION], [units()])
    other = {**given, "X": [given["X"][0].copy()]}
    other["X"][0][2, 3] = np.nextafter(other["X"][0][2, 3], 9.0)
    assert "its digest differs" in proved(part, other).words
    assert "their digest differs" in proved(part, {**given, "y": [given["y"][0][::-1]]}).words
    permuted = {**given, "X": [given["X"][0][:, ::-1]]}
    assert "its digest differs" in proved(part, permuted).words
    wrong_salt = Archive({**part.header, "salt": bytes(32).hex()}, part.arrays)
    assert "its digest differs" in proved(wrong_salt, given).words
    assert verify.salted("00" * 32, SALT) != "00" * 32


def test_stored_numbers_that_the_words_are_not_about_are_refused():
    local, given = site()
    part = local.part("north", SALT, [QUESTION], [units()])
    arrays = part.arrays
    for name, change in (("coef", lambda v: 1.01 * v), ("intercept", lambda v: v + 1e-3), ("dual", lambda v: 1.1 * v),
                         ("l1", lambda v: v + 0.1), ("scale", lambda v: np.concatenate([[0.9], v[1:] * 0.9])),
                         ("exponent", lambda v: v - 1), ("w2_exponent", lambda v: v - 1)):  # fmt: skip
        found = proved(forged(part, **{name: change(arrays[name])}), given)
        assert not found, name
    for exact in (False, True):
        free = forged(part, free=np.array([7]))  # c2 would be 0 there; coefficients of others are fitted without it
        assert not proved(free, given, exact=exact)
        assert not proved(forged(part, active=np.array([0, 2, 5])), given, exact=exact)  # a coefficient not counted
        scaled = forged(part, column_scale=np.full(D, 0.5))
        assert not proved(scaled, given, exact=exact)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"c2": lambda v: v - (1 << 60)}, "less than 0"),
        ({"w2": lambda v: -v - 1}, "less than 0"),
        ({"loss": lambda v: v + (1 << 62)}, "may wrap around"),
        ({"c2": lambda v: v[:, :-1]}, "shape"),
        ({"gain": lambda v: v.astype(float)}, "int64"),
        ({"scale": lambda v: v[::-1]}, "fall"),
        ({"scale": lambda v: v + 0.5}, "fall"),
        ({"scale": lambda v: v[:0]}, "empty"),
        ({"active": lambda v: v[::-1]}, "rising"),
        ({"active": lambda v: v + 8}, "rising"),
        ({"active_start": lambda v: v + 1}, "rise from 0"),
        ({"exponent": lambda v: v + 2000}, "too large"),
        ({"exponent": lambda v: v - 2000}, "less than"),
        ({"free": lambda v: np.array([5])}, "never penalised"),
        ({"l1": lambda v: v - 1.0}, "less than 0"),
        ({"column_scale": lambda v: np.zeros(D)}, "positive"),
        ({"more": lambda v: np.zeros(1)}, "not known"),
        ({"dual": lambda v: v[:, 1:]}, "shape"),
        ({"alpha": lambda v: np.ones(1)}, "not known"),
    ],
)
def test_what_makes_no_sense_cannot_be_read(changes, words):
    part = site()[0].part("north", SALT, [QUESTION], [units()])
    changed = {name: np.asarray(change(part.arrays.get(name))) for name, change in changes.items()}
    with pytest.raises(verify.Unreadable, match=words):
        verify.read_part(forged(part, **changed))


@pytest.mark.parametrize(
    "header",
    [
        {"format": "tasksieve-certificate"}, {"version": 2}, {"salt": "00"}, {"salt": 3}, {"site": ""}, {"more": 1},
        {"standardize": "task"}, {"intercept": 2.0}, {"loss": {"name": "square-root"}}, {"loss": {"name": "none"}},
        {"n_features": 0}, {"features": ["a"]}, {"digests": {}}, {"patterns": None}, {"unit": 2.0},
    ],
)  # fmt: skip
def test_headers_that_make_no_sense_cannot_be_read(header):
    part = site()[0].part("north", SALT, [QUESTION], [units()])
    with pytest.raises(verify.Unreadable):
        verify.read_part(Archive({**part.header, **header}, part.arrays).to_bytes())
    for key in ("salt", "site", "tasks", "loss", "digests"):
        short = {name: value for name, value in part.header.items() if name != key}
        with pytest.raises(verify.Unreadable, match=key):
            verify.read_part(Archive(short, part.arrays).to_bytes())


def test_what_has_no_part():
    local, _ = site()
    with pytest.raises(FederatedError, match="salt"):
        local.part("north", b"short", [QUESTION], [units()])
    with pytest.raises(FederatedError, match="about all features"):
        local.part("north", SALT, [dataclasses.replace(QUESTION, levels=np.arange(3))], [units()])
    small = dataclasses.replace(units(), sums=-200)
    with pytest.raises(FederatedError, match="did not fit"):
        local.part("north", SALT, [QUESTION], [small])
