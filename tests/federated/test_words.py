"""Questions and answers as bytes and integers: nothing is lost, bounds stay bounds, masks cancel."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tasksieve.federated.answer import (
    DUAL,
    FIELDS,
    GRID,
    Answer,
    Misfit,
    Words,
    answer_of_sizes,
    counts,
    from_words,
    size,
    to_words,
)
from tasksieve.federated.errors import FederatedError
from tasksieve.federated.masks import masked, no_dual_hidden, stream
from tasksieve.federated.packing import pack, unpack
from tasksieve.federated.question import Question, Round
from tasksieve.federated.units import NORM_POWER, Sizes, Units, histogram

D = 12


def random_question(rng, **more):
    features = np.sort(rng.choice(D, 4, replace=False))
    s = np.where(rng.random(4) < 0.3, 0.0, rng.lognormal(size=4))
    if more.get("kind") == "null":
        features, s, more = [], [], {**more, "l1": 0.0}
    return Question(features=features, s=s, levels=None if rng.random() < 0.5 else np.array([0, 5, 7]), **more)


def random_answer(rng, question, scale=1.0):
    """Of about the magnitudes that sites have."""
    a, levels = len(question.features), question.n_levels(D)
    if question.kind == "norms":
        return Answer(norms=rng.uniform(1.0, 8.0, D) ** NORM_POWER)
    if question.kind == "moments":
        return Answer(weight=20.0 * rng.random(), first=rng.normal(size=a), second=rng.random(a))
    if question.kind == "part":
        return Answer(
            loss=scale * rng.random(), dual=scale * rng.normal(size=len(GRID)),
            w2=question.s**2 * rng.random(a), c2=rng.random(levels),
        )  # fmt: skip
    half = rng.normal(size=(a, a))
    if question.kind == "null":  # of any size: their unit does not know it
        scale *= 10.0 ** rng.uniform(0.0, 10.0)
    return Answer(
        phi=scale * rng.normal(), loss=scale * rng.normal(), yr=scale * rng.normal(), rr=scale * rng.random(),
        dual=scale * rng.normal(size=len(GRID)), z=rng.random(a), hessian=1e-2 * (half + half.T),
        levels=rng.random(levels), held_out=scale * np.array([1.5, 2.5, 4.0, 20.0]),
    )  # fmt: skip


def sizes(n_sites, total=2, level=1, norm=1):
    return Sizes(n_sites, total, level, norm)


def units_of(question, n_sites, **more):
    if question.kind == "null":
        return Units.for_null(n_sites)
    return sizes(n_sites, **more).units(question.features, question.s, question.reach)


@pytest.mark.parametrize("seed", range(6))
def test_rounds_are_the_same_after_packing(seed):
    rng = np.random.default_rng(seed)
    questions = tuple(random_question(rng, kind=kind, l1=rng.random(), problem=f"fold {kind}") for kind in FIELDS)
    scales = np.arange(1.0, D + 1.0) if seed % 2 else None
    asked = Round(3, bytes(range(32)), questions, tuple(units_of(question, 5) for question in questions), scales)
    header, arrays = unpack(pack(*asked.packed()))
    again = Round.from_packed(header, arrays)
    assert again.digest() == asked.digest()
    for one, two in zip(again.questions, asked.questions, strict=True):
        assert one.digest() == two.digest()
        assert one.features.dtype == np.int64
        np.testing.assert_array_equal(one.s, two.s)
        assert (one.levels is None) == (two.levels is None)
        assert (one.problem, one.kind, one.l1) == (two.problem, two.kind, two.l1)


def test_every_part_of_a_round_is_in_its_digest():
    question = Question(features=[1, 4], s=[0.5, 0.0], levels=[2])
    units = units_of(question, 3)
    asked = Round(0, b"plan", (question,), (units,))
    others = [
        replace(asked, number=1), replace(asked, plan=b"other"),
        replace(asked, questions=(question,) * 2, units=(units,) * 2), replace(asked, units=(units.larger("hessian"),)),
    ]  # fmt: skip
    changes = [
        {"features": [1, 5]}, {"s": [0.5, 1e-300]}, {"levels": None}, {"levels": [3]}, {"l1": 1.0}, {"hessian": False},
        {"held_out": True}, {"dual": False}, {"kind": "part"}, {"problem": "half 1"}, {"reach": 2.0},
    ]  # fmt: skip
    others += [replace(asked, questions=(replace(question, **change),)) for change in changes]
    digests = {other.digest() for other in others}
    assert len(digests) == len(others)
    assert asked.digest() not in digests
    assert replace(asked, questions=(replace(question, s=[0.5, -0.0]),)).digest() == asked.digest()


@pytest.mark.parametrize(
    "bad",
    [
        {"features": [4, 1], "s": [1.0, 1.0]}, {"features": [1, 1], "s": [1.0, 1.0]}, {"features": [-1], "s": [1.0]},
        {"features": [1.5], "s": [1.0]}, {"features": [1], "s": [-1.0]}, {"features": [1], "s": [np.nan]},
        {"features": [1], "s": [1.0, 2.0]}, {"kind": "rows"}, {"l1": np.inf}, {"l1": 1e200},
        {"features": [1], "s": [1e200]}, {"levels": [2**33]}, {"problem": 3},
        {"features": [1], "s": [0.0], "kind": "null"}, {"l1": 1.0, "kind": "null"},
    ],
)  # fmt: skip
def test_bad_questions_are_refused(bad):
    with pytest.raises(FederatedError):
        Question(**bad)


def test_features_that_are_not_there_are_refused():
    Question(features=[D - 1], s=[1.0]).check(D)
    with pytest.raises(FederatedError, match="12 features"):
        Question(levels=[D]).check(D)


def test_bytes_that_are_no_message_are_refused():
    data = pack({"a": 1, "text": "ü"}, {"x": np.arange(3.0), "y": np.zeros((2, 2), np.uint32)})
    header, arrays = unpack(data)
    assert header == {"a": 1, "text": "ü"}
    np.testing.assert_array_equal(arrays["y"], np.zeros((2, 2)))
    for n in range(len(data)):
        with pytest.raises(FederatedError):
            unpack(data[:n])
    swaps = [(b'"<f8"', b'"|O8"'), (b"[3]", b"[9]"), (b"[3]", b"[2]"), (b"[2,2]", b"[-2,-2]"), (b"1,", b"1 ,")]
    for other in (data + b"\0", *(data.replace(*swap) for swap in swaps)):
        assert other != data
        with pytest.raises(FederatedError):
            unpack(other)
    with pytest.raises(ValueError, match="type"):
        pack({}, {"x": np.array(["text"])})


@pytest.mark.parametrize("n_sites", [1, 3, 8, 20])
@pytest.mark.parametrize("kind", ["point", "null", "norms", "moments", "part"])
def test_sums_of_words_are_bounds_of_the_sums(kind, n_sites):
    """Against rational arithmetic: rounded up is above, down is below, nearest is within half a unit a site."""
    rng = np.random.default_rng(n_sites)
    question = random_question(rng, kind=kind, held_out=True)
    units = units_of(question, n_sites, norm=3)
    answers = [random_answer(rng, question) for _ in range(n_sites)]
    words = [to_words(answer, question, units, D) for answer in answers]
    assert [(len(w.long), len(w.short)) for w in words] == [counts(question, D)] * n_sites
    total = words[0]
    for more in words[1:]:
        total = total + more
    found = from_words(total, question, units, D)
    for part in FIELDS[kind]:
        if part.name == "no_dual":
            continue
        got = np.ravel(getattr(found, part.name))
        each = [np.ravel(getattr(answer, part.name)) for answer in answers]
        exact = [sum(map(Fraction, column)) for column in zip(*each, strict=True)]
        error = np.array([float(Fraction(g) - e) for g, e in zip(got, exact, strict=True)])
        size_of = max((abs(float(e)) for e in exact), default=0.0)
        if part.rounding == "up":
            assert (error >= 0).all()
        if part.rounding == "down":
            assert (error <= 0).all()
        digits = {"hessian": 3e-5}.get(part.name, 3e-6 if part.ring == 32 else 3e-10)  # small for their unit
        assert np.abs(error).max() <= n_sites * digits * max(size_of, 1e-2), part.name


def test_masked_and_open_answers_have_the_same_sums():
    rng = np.random.default_rng(0)
    question = random_question(rng)
    units = units_of(question, 4)
    names = ["north", "east", "south", "west"]
    secrets = {frozenset({a, b}): rng.bytes(32) for a in names for b in names if a != b}
    own = {a: {b: secrets[frozenset({a, b})] for b in names if b != a} for a in names}
    words = {name: to_words(random_answer(rng, question), question, units, D) for name in names}
    noisy = {name: masked(words[name], name, own[name], b"round") for name in names}
    open_, hidden = (sum_of(list(each.values())) for each in (words, noisy))
    np.testing.assert_array_equal(open_.long, hidden.long)
    np.testing.assert_array_equal(open_.short, hidden.short)
    assert all((noisy[name].long != words[name].long).all() for name in names)
    # asked something else, the masks of one site stay in the sum
    other = {**noisy, "east": masked(words["east"], "east", own["east"], b"other round")}
    with pytest.raises(FederatedError, match="add up"):
        from_words(sum_of(list(other.values())), question, units, D)
    with pytest.raises(FederatedError, match="add up"):
        from_words(sum_of([noisy[name] for name in names[:-1]]), question, units, D)


def sum_of(words):
    total = words[0]
    for more in words[1:]:
        total = total + more
    return total


def test_streams_look_like_noise_and_depend_on_everything():
    long = stream(bytes(32), b"a", 20000, 20000)
    for words, n in ((long.long, 64), (long.short, 32)):
        ones = np.unpackbits(words.view(np.uint8)).reshape(-1, n).mean(axis=0)
        assert np.abs(ones - 0.5).max() < 5 * 0.5 / np.sqrt(20000)
    keys = [(secret, context) for secret in (bytes(32), b"1" * 32) for context in (b"", b"a", b"b")]
    firsts = {stream(*key, 1, 0).long[0] for key in keys}
    assert len(firsts) == 6
    with pytest.raises(FederatedError, match="32 bytes"):
        stream(b"short", b"a", 1, 1)


@pytest.mark.parametrize(
    ("name", "group"), [("loss", "sums"), ("z", "squares"), ("levels", "levels"), ("hessian", "hessian")]
)
def test_numbers_that_do_not_fit_raise_a_flag_and_fit_in_larger_units(name, group):
    rng = np.random.default_rng(1)
    question = random_question(rng)
    units = units_of(question, 2)
    answer = random_answer(rng, question)
    huge = replace(answer, **{name: getattr(answer, name) * 2.0**18})
    words = [to_words(huge, question, units, D), to_words(answer, question, units, D)]
    assert not words[0].short.any()
    with pytest.raises(Misfit) as misfit:
        from_words(sum_of(words), question, units, D)
    assert misfit.value.groups == (group,)
    for _ in range(6):
        units = units.larger(group)
    found = from_words(sum_of([to_words(a, question, units, D) for a in (huge, answer)]), question, units, D)
    np.testing.assert_allclose(getattr(found, name), getattr(huge, name) + getattr(answer, name), rtol=1e-2, atol=3)


def test_dual_values_may_be_minus_infinity():
    rng = np.random.default_rng(2)
    question = random_question(rng)
    for n_sites in (2, 3, 20):
        units = units_of(question, n_sites)
        answers = [random_answer(rng, question) for _ in range(n_sites)]
        finite = from_words(sum_of([to_words(a, question, units, D) for a in answers]), question, units, D)
        assert np.isfinite(finite.dual).all()
        answers[0].dual[3] = -np.inf
        words = [to_words(answers[0], question, units, D), *(to_words(a, question, units, D) for a in answers[1:])]
        assert not words[0].long[DUAL].any()
        words[0] = no_dual_hidden(words[0], bytes(32), b"round")
        found = from_words(sum_of(words), question, units, D)
        assert np.isneginf(found.dual).all()
        assert found.loss == finite.loss
        np.testing.assert_array_equal(found.levels, finite.levels)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e300, 1e300])
@pytest.mark.parametrize(("name", "group"), [("dual", "sums"), ("phi", "sums"), ("z", "squares"), ("levels", "levels")])
def test_numbers_that_are_not_finite_do_not_fit(name, group, value):
    """A site that refused them would tell whose they are."""
    rng = np.random.default_rng(2)
    question = random_question(rng)
    units = units_of(question, 3)
    answers = [random_answer(rng, question) for _ in range(3)]
    wrong = np.array(getattr(answers[1], name), dtype=float)
    wrong.reshape(-1)[0] = value
    answers[1] = replace(answers[1], **{name: wrong})
    with pytest.raises(Misfit) as misfit:
        from_words(sum_of([to_words(a, question, units, D) for a in answers]), question, units, D)
    assert misfit.value.groups == (group,)


def test_norms_that_do_not_fit_are_asked_for_again():
    rng = np.random.default_rng(2)
    question = Question(kind="norms", hessian=False)
    answers, units = [random_answer(rng, question) for _ in range(3)], Units(3, norms=-40)
    for _ in range(4):
        try:
            found = from_words(sum_of([to_words(a, question, units, D) for a in answers]), question, units, D)
            break
        except Misfit as misfit:
            units = units.larger(*misfit.groups)
    assert units.norms > -40
    true = sum(answer.norms for answer in answers)
    assert (found.norms >= true).all()
    np.testing.assert_allclose(found.norms, true, atol=1e-6 * true.max())


def test_two_words_hold_what_one_does_not():
    """Integers of more than 64 bits, of either sign, without a digit lost."""
    question, units = Question(kind="null"), Units.for_null(3)
    rng = np.random.default_rng(7)
    exponents = np.ldexp(1.0, rng.integers(-20, 48, 29))
    duals = [rng.normal(size=29) * exponents for _ in range(3)]
    answers = [Answer(loss=7.5, rr=1e15, dual=dual, levels=np.full(D, 2.0**49)) for dual in duals]
    words = [to_words(answer, question, units, D) for answer in answers]
    low, high = (words[0].long[5 + 4 * 2 :][part * 29 : (part + 1) * 29].view(np.int64) for part in (0, 1))
    assert (low != 0).all()
    assert 0 < np.count_nonzero(high) < 29
    found = from_words(sum_of(words), question, units, D)
    exact = [sum(map(Fraction, column)) for column in zip(*duals, strict=True)]
    for got, true, size_of in zip(found.dual, exact, np.abs(duals).sum(axis=0), strict=True):
        assert 0 <= true - Fraction(got) <= Fraction(size_of) / 2**51 + Fraction(found.sum_slack)
    assert (found.levels == 3 * 2.0**49).all()
    assert found.rr == 3e15
    for more in ({"loss": 2.0**60}, {"dual": np.full(29, -np.inf)}, {"rr": np.nan}):  # then it is asked as a point
        larger = replace(answers[2], **more)
        with pytest.raises(Misfit) as misfit:
            from_words(sum_of([*words[:2], to_words(larger, question, units, D)]), question, units, D)
        assert misfit.value.groups == ("sums",)


def test_the_first_exchange_tells_sizes_and_not_whose():
    known = ((3.0, 9.0), (100.0, 0.1), (1e-9, 2.0))
    nulls = [Answer(loss=total, dual=np.zeros(29), levels=np.array([1.0, level])) for total, level in known]
    norms = [Answer(norms=np.array([0.0, x**NORM_POWER])) for x in (1.5, 3.0, 0.2)]
    question = Question(kind="sizes")
    units = Units.for_sizes(3)
    sent = [to_words(answer_of_sizes(*both), question, units, D) for both in zip(nulls, norms, strict=True)]
    assert len(sent[0].short) == 3 * 512
    found = from_words(sum_of(sent), question, units, D)
    known = Sizes.from_histogram(3, found.sizes)
    assert (known.total, known.level, known.norm) == (7, 4, 2)
    with pytest.raises(FederatedError, match="do not add up"):
        Sizes.from_histogram(3, 0 * found.sizes)
    with pytest.raises(FederatedError, match="larger"):
        histogram(np.array([1e80, 1.0, 1.0]))


def test_answers_add_up():
    rng = np.random.default_rng(3)
    question = random_question(rng, held_out=True)
    a, b = random_answer(rng, question), random_answer(rng, question)
    total = sum([a, b])
    assert total.phi == a.phi + b.phi
    np.testing.assert_array_equal(total.hessian, a.hessian + b.hessian)
    with pytest.raises(FederatedError, match="shape of hessian"):
        a + replace(b, hessian=None)


def test_bytes_of_an_answer():
    """280 + 8 a + 2 a (a + 1) + 4 l, and six words in place of two numbers."""
    question = Question(features=np.arange(10), s=np.ones(10))
    assert size(question, 1000) == 8 * (5 + 4 + 1 + 29) + 8 * 10 + 2 * 10 * 11 + 4 * 1000
    assert size(replace(question, dual=False), 1000) == 8 * (5 + 4) + 8 * 10 + 2 * 10 * 11 + 4 * 1000
    assert size(Question(kind="null", dual=False), 1000) == 8 * (5 + 2 * 4) + 12 * 1000


def test_words_of_the_wrong_kind_are_refused():
    with pytest.raises(FederatedError):
        Words(np.zeros(3), np.zeros(3, np.uint32))
    question = Question()
    with pytest.raises(FederatedError, match="number of words"):
        from_words(Words(np.zeros(3, np.uint64), np.zeros(0, np.uint32)), question, Units(3), D)
