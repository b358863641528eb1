"""Forgeries and accidents of certain kinds, one by one: refused in words, by both arithmetics."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from certificate_oracle import Content, Truth
from hand_cases import SQUARED

import tasksieve as ts
from tasksieve.verify import Floating, Undecided, Unreadable, Verdict, _tidy, read_certificate, verify

Array = np.ndarray[Any, Any]
SQUARE_ROOT = {"name": "square-root"}


def forged(
    x: Array, y: Array, coef: Any, dual: Any, claims: tuple[float, float, float], *, intercept: Any = False,
    b: float = 0.0, **changes: Any,
) -> Content:  # fmt: skip
    """One task; claims are the objective, the dual value and the gap. Changes of the header, or arrays."""
    feature = np.flatnonzero(coef)
    header = {
        "format": "tasksieve-certificate", "version": 1, "tasks": [0], "rows": [len(y)], "n_features": x.shape[1],
        "shared": False, "offset": False, "classes": None, "digests": {}, "unit": 1.0, "intercept": intercept,
        "standardize": False, "positive": False, "loss": SQUARED, "penalty": {"name": "rows"}, "task_weights": None,
        "class_weights": None,
    }  # fmt: skip
    objective, dual_value, gap = claims
    arrays = {
        "alpha": np.ones(1), "ridge": np.zeros(1), "objective": np.array([objective]), "gap": np.array([gap]),
        "dual_value": np.array([dual_value]), "intercept": np.array([[b]]), "start": np.array([0, len(feature)]),
        "feature": feature, "output": 0 * feature, "coef": np.asarray(coef, dtype=float)[feature],
        "dual": np.asarray(dual, dtype=float)[None],
    }  # fmt: skip
    weight = changes.pop("weight", np.ones(len(y)))
    for name, value in changes.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif isinstance(value, list) and name in ("open", "sure"):
            arrays |= {name: np.array(value, dtype=np.int64), f"{name}_start": np.array([0, len(value)])}
        else:
            header[name] = value
    found = Content(header, arrays, [x], [y], [weight])
    found.sign()
    return found


def refused(content: Content, *words: str) -> None:
    """A false certificate, which neither arithmetic proves."""
    assert Truth(content).unsupported()
    for exact in (False, True):
        verdict = verify(content.pack(), **content.data(), exact=exact)
        assert not verdict.proved
        for word in words:
            assert word in verdict.words


X, Y = np.array([[1.0], [-1.0], [2.0], [-2.0]]), np.array([1.0, -1.0, 2.0, -2.0])
GROUPS = {"group_of": np.array([0]), "group_weights": np.ones(1)}
NORMS: dict[str, dict[str, Any]] = {
    "l21": {"penalty": {"name": "rows"}},
    "l11": {"penalty": {"name": "rows", "group": 0.0, "l1": 1.0}},
    "sparse group": {"penalty": {"name": "rows", "group": 0.5, "l1": 0.5}},
    "largest": {"penalty": {"name": "largest"}},
    "split": {"penalty": {"name": "split", "group": 1.0, "l1": 1.0}},
    "groups": {"penalty": {"name": "groups"}, **GROUPS},
    "groups, rows": {"penalty": {"name": "groups", "group": 0.5, "l1": 0.5, "inside": "rows"}, **GROUPS},
    "groups, entries": {"penalty": {"name": "groups", "group": 0.5, "l1": 0.5, "inside": "entries"}, **GROUPS},
    "sorted": {"penalty": {"name": "sorted"}, "sorted_weights": np.ones(1)},
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("unit", [1e-200, 1e-320])
@pytest.mark.parametrize("penalty", NORMS)
def test_a_unit_times_alpha_that_underflows(penalty: str, unit: float) -> None:
    """No coefficients are said to be the best, although nothing is penalised in effect: y = x."""
    objective = 5.0 * 1e-200 / unit  # sum s y^2 / 2 = 5e-200
    for more in ({}, {"open": []}):
        claims = (objective, objective * (1 - 1e-9), objective * 1e-6)
        content = forged(X, Y, [0.0], Y, claims, unit=unit, alpha=np.array([1e-200]), weight=np.full(4, 1e-200),
                         **NORMS[penalty], **more)  # fmt: skip
        refused(content)


def test_a_false_zero_alone() -> None:
    """A gap that is true, and zeros that would follow if N alpha were negative."""
    content = forged(X, Y, [1.0], 0 * Y, (1e-200, -1e-3, 1e-2), unit=1e-200, alpha=np.array([1e-200]),
                     weight=np.full(4, 1e-200), open=[])  # fmt: skip
    refused(content, "not proved to be zero")


def test_a_row_whose_weight_underflows_counts() -> None:
    """All that the column is, it is in a row whose weight is 1e-330 as a product. Of a dual vector that is off by 1e100
    at most, its product with the column is off by 1e80 x 1e-165 x 1e100: the feature may be anything."""
    x = np.array([[1e80], [0.0], [0.0], [0.0]])
    weight = np.array([1e-165, 1e165, 1e165, 1e165])
    for standardize in (False, True):
        content = forged(x, Y, [0.0], 0 * Y, (4.5, -1.0, 1e200), weight=weight, task_weights=[1e-165],
                         standardize=standardize, open=[])  # fmt: skip
        refused(content, "not proved to be zero")


def test_the_square_root_loss_without_a_penalty() -> None:
    """A vector as large as one likes, where there is no scale that could bring it back."""
    x, y = np.array([[1.0], [1.0], [0.0], [0.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    problem: dict[str, Any] = {"loss": SQUARE_ROOT, "penalty": {"name": "none"}, "ridge": np.ones(1)}
    content = forged(x, y, [0.0], 1e6 * y, (2.0, 1e6, 1e-9), **problem)
    refused(content, "leaves the domain of the square-root loss")
    content = forged(x, y, [0.0], 0.49 * y, (2.0, 1.95, 0.06), **problem)
    assert verify(content.pack(), **content.data()).proved


def test_a_penalised_intercept_may_stand_in_for_a_feature() -> None:
    """x is constant, so that w and b take each other's place: w = 0 is the best, w = 1/2 and b = -1/2 nearly so."""
    x, y = np.ones((6, 1)), np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    ridge = 1e-3
    objective = 3.0 + ridge * (0.25 + 0.25) / 2
    content = forged(x, y, [0.5], y, (objective, 2.99, 0.01), intercept=1.0, b=-0.5, penalty={"name": "none"},
                     ridge=np.array([ridge]), open=[0], sure=[0])  # fmt: skip
    refused(content, "not proved to be non-zero")


def test_machines_do_not_claim_what_an_intercept_may_undo() -> None:
    x = np.ones((8, 1)) + 1e-9 * np.arange(8.0)[:, None]
    y = np.tile([1.0, -1.0], 4) + 0.5
    task = np.zeros(8, dtype=int)
    model = ts.GraphSVR(np.zeros((1, 1)), C=1.0, loss="squared", tol=1e-2)  # so far from the best that w may be 0
    certificate = model.fit(x, y, task=task).certificate(x, y, task=task)
    assert certificate.verify(x, y, task=task).proved
    content = Content(certificate.header, certificate.arrays, [x], [y], [np.ones(8)])
    assert Truth(content).unsupported() == []


# --- what is no certificate, and data that are no numbers ----------------------------------------------------


@pytest.fixture
def honest() -> Content:
    return forged(X, Y, [0.9], 0.1 * Y, (0.95, 0.94, 0.02))


def test_the_honest_one_is_proved(honest: Content) -> None:
    for exact in (False, True):
        assert verify(honest.pack(), **honest.data(), exact=exact).proved


def test_a_shape_that_is_a_truth_value(honest: Content) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ones(1), version=(1, 0))
    raw = stream.getvalue().replace(b"(1,), }   ", b"(True,), }")
    assert b"True,)" in raw
    with pytest.raises(Unreadable, match="has shape"):
        read_certificate(replaced(honest.pack(), "alpha.npy", raw))


def replaced(archive: bytes, name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as new:
        for member in old.namelist():
            new.writestr(member, content if member == name else old.read(member))
    return stream.getvalue()


def test_products_that_overflow_have_no_eigenvalues() -> None:
    """The matrix of products holds infinities: words, and no traceback."""
    x = np.array([[1e300, 1.0], [-1e300, 2.0], [1e300, 1.0], [3.0, 1.0]])
    content = forged(x, Y, [1e-300, 1.0], 0.0 * Y, (5.0, -1.0, 10.0), open=[0, 1], sure=[0, 1])
    for exact in (False, True):
        assert not verify(content.pack(), **content.data(), exact=exact).proved


def verdict_on(content: Content, **changes: Any) -> Verdict:
    data = {"X": content.x[0], "y": content.y[0], **changes}
    return verify(content.pack(), **data)


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_complex_numbers(honest: Content, name: str) -> None:
    given = (honest.y if name == "y" else honest.weight)[0].astype(complex)
    for values in (given, given.astype(object)):
        verdict = verdict_on(honest, **{name: values})
        assert not verdict.proved
        assert f"{name} must be numbers, and real ones" in verdict.words


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.dok_array, np.asarray])
def test_complex_matrices(honest: Content, kind: Any) -> None:
    """Their real parts would be those of the certificate."""
    assert verdict_on(honest, X=kind(honest.x[0])).proved
    verdict = verdict_on(honest, X=kind(honest.x[0] + 1j))
    assert "X must be a matrix of numbers" in verdict.words


def test_complex_classes_and_offsets(honest: Content) -> None:
    honest.header |= {"loss": {"name": "logistic"}, "classes": [0, 1], "offset": True}
    verdict = verdict_on(honest, y=np.array([0j, 1, 0, 1]), offset=np.zeros(4))
    assert "complex numbers, which are no labels" in verdict.words
    verdict = verdict_on(honest, y=np.array([0, 1, 0, 1]), offset=np.zeros(4, dtype=complex))
    assert "offset must be numbers, and real ones" in verdict.words


@pytest.mark.parametrize(
    "y",
    [
        np.array([2**70 + 1, 3, 0, 1], dtype=object),
        np.ma.masked_array([2**53 + 1, 3, 0, 1], mask=[False, True, False, False]),
    ],
    ids=["objects", "masked"],
)
def test_labels_that_float64_would_round(honest: Content, y: Any) -> None:
    assert "whole numbers beyond 2^53" in verdict_on(honest, y=y).words


def test_words_and_numbers_that_are_one_label(honest: Content) -> None:
    task = np.array([0, "0", 0, 0], dtype=object)
    assert "task holds '0' as a word and as a number" in verdict_on(honest, task=task).words
    honest.header |= {"loss": {"name": "logistic"}, "classes": [0, 1]}
    y = np.array([0, "1", 1, 0], dtype=object)
    assert "y holds '1' as a word and as a number" in verdict_on(honest, y=y).words


def test_fractions_need_no_floating_point(honest: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a process takes the smallest numbers for 0, --exact decides."""
    assert verdict_on(honest, exact=True).proved

    def flushed(self: Floating) -> None:
        raise Undecided("this process takes the smallest numbers for 0")

    monkeypatch.setattr(Floating, "__init__", flushed)
    assert verdict_on(honest, exact=True).proved


@pytest.mark.parametrize("name", ["X", "sample_weight", "task"])
def test_masks(honest: Content, name: str) -> None:
    """A mask says that a number is not there: of labels alone that means something."""
    values = {"X": honest.x[0], "sample_weight": honest.weight[0], "task": np.zeros(4, dtype=int)}[name]
    open_eyes = np.ma.masked_array(values, mask=np.zeros(values.shape, dtype=bool))
    assert verdict_on(honest, **{name: open_eyes}).proved
    mask = np.zeros(values.shape, dtype=bool)
    mask.reshape(-1)[0] = True
    verdict = verdict_on(honest, **{name: np.ma.masked_array(values, mask=mask)})
    assert not verdict.proved
    assert f"{name} is masked" in verdict.words


@pytest.mark.parametrize("kind", ["numbers", "words", "truth values"])
def test_masked_labels_are_not_observed(kind: str) -> None:
    """As `fit` reads them."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 3))
    y = x[:, 0] + 0.3 * rng.standard_normal(30)
    mask = np.arange(30) % 5 == 0
    labels = np.ma.masked_array(y, mask=mask)
    if kind == "numbers":
        certificate = ts.MultiTaskLasso(alpha=0.1).fit(x, labels).certificate(x, labels)
    else:
        labels = np.ma.masked_array(np.where(y > 0, "up", "down") if kind == "words" else y > 0, mask=mask)
        seen, given = x[~mask], labels[~mask].data
        certificate = ts.MultiTaskClassifier(alpha=0.05).fit(seen, given).certificate(seen, given)
    assert verify(certificate.to_bytes(), x, labels).proved
    assert not verify(certificate.to_bytes(), x, labels.data).proved


# --- labels and tasks that could be read in two ways ---------------------------------------------------------


def test_tasks_of_one_name(honest: Content) -> None:
    """1 and "1" are one word: data of which one part would be left out are refused."""
    honest.header["tasks"] = [1]
    x, y = honest.x[0], honest.y[0]
    assert verify(honest.pack(), {1: x}, {"1": y}).proved
    verdict = verify(honest.pack(), {1: 2.0 * x, "1": x}, {1: y, "1": y})
    assert "X has two tasks of the same name" in verdict.words
    verdict = verify(honest.pack(), {1: x}, {1: 2.0 * y, "1": y})
    assert "y has two tasks of the same name" in verdict.words
    assert "y must be a dict of tasks" in verify(honest.pack(), {1: x}, y).words


def test_a_task_that_would_be_ignored(honest: Content) -> None:
    task = np.array([0, 0, 1, 1])
    for x, y in (([honest.x[0]], [honest.y[0]]), ({0: honest.x[0]}, {0: honest.y[0]})):
        assert verify(honest.pack(), x, y).proved
        assert "X is given task by task" in verify(honest.pack(), x, y, task=task).words
    honest.header["shared"] = True
    assert verify(honest.pack(), honest.x[0], honest.y[0]).proved
    assert "share a matrix" in verify(honest.pack(), honest.x[0], honest.y[0], task=task).words


def test_rows_without_a_task(honest: Content) -> None:
    honest.header["tasks"] = ["nan"]
    assert verdict_on(honest, task=np.array(["nan"] * 4)).proved
    for nothing in (None, float("nan")):
        verdict = verdict_on(honest, task=np.array(["nan", "nan", "nan", nothing], dtype=object))
        assert "task is missing for some rows" in verdict.words


class Unknown:
    """A value that says neither yes nor no, as that of pandas."""

    def __ne__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("not known")

    __hash__ = None  # type: ignore[assignment]


def test_labels_that_are_not_known() -> None:
    """They are not there, as NaN is not; of numbers they are refused."""
    content = forged(X, np.array([0.0, 1.0, 1.0, 0.0]), [0.0], 0 * Y, (3.0, -1.0, 9.0), loss={"name": "logistic"},
                     classes=["a", "b"])  # fmt: skip
    x = np.vstack([X, [[5.0]]])
    assert verify(content.pack(), x, np.array(["a", "b", "b", "a", Unknown()], dtype=object)).proved
    content = forged(X, Y, [0.9], 0.1 * Y, (0.95, 0.94, 0.02))
    assert not verify(content.pack(), x, np.array([*Y, Unknown()], dtype=object)).proved


def test_words_that_are_no_plain_numbers_stay_words() -> None:
    """In a table "nan" is no missing label unless it is listed as one, and 1_0 is not 10."""
    assert _tidy("10", [10, 2]) == _tidy(" 1e1", [10, 2]) == 10.0
    for word in ("nan", "1_0", "inf"):
        assert _tidy(word, [10, 2]) == word


def test_numbers_that_float64_would_round(honest: Content) -> None:
    """They are others than those whose digest is in the certificate."""
    large = forged(2.0**53 * X, Y, [0.0], 0 * Y, (5.0, -1.0, 9.0))
    whole = (2**53 * X).astype(np.int64)
    for x, y in ((whole, Y), (whole.astype(np.float64), Y)):
        assert verify(large.pack(), x + 0, y).proved == (x.dtype.kind == "f")
    wide = honest.x[0].astype(np.longdouble)
    assert verdict_on(honest, X=wide).proved
    more = wide * (1 + np.finfo(np.longdouble).eps)
    if (more != more.astype(np.float64)).any():  # where long double is wider
        assert "more digits than float64" in verdict_on(honest, X=more).words
        assert "more digits than float64" in verdict_on(honest, y=more[:, 0]).words


def test_offsets_whose_mean_overflows() -> None:
    """Sums of both infinities on the way to a mean: no traceback, in fractions neither."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1.7e308, 1.7e308], 64)
    content = forged(np.ones((64, 1)), y, [0.0], 0 * y, (1.0, 0.0, 1.0), intercept=True)
    for exact in (False, True):
        assert not verify(content.pack(), **content.data(), exact=exact).proved
