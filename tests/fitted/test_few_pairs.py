"""How many pairs a concordance is made of, and which ones where folds leave few: against all pairs, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.fitted.new_rows import quality_on
from tasksieve.report.unseen import out_of_fold
from tasksieve.runs.quality_file import plain_quality, quality_from

Array = np.ndarray[Any, Any]


def cohort(seed: int, n: int, strata: int, entry: bool = False) -> tuple[Array, Any, dict[str, Array]]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    time = np.round(rng.exponential(np.exp(-X[:, 0])), 2) + 0.01
    parts: dict[str, Array] = {"time": time, "event": rng.random(n) < 0.7}
    parts["strata"] = rng.integers(0, strata, n)
    parts["entry"] = np.where(rng.random(n) < 0.4, time - rng.exponential(1.0, n), -np.inf) if entry else None  # type: ignore[assignment]
    return X, ts.survival(time, parts["event"], parts["entry"], parts["strata"]), parts


def by_pairs(parts: dict[str, Array], z: Array, same: Array) -> tuple[int, float]:
    """Comparable pairs, and their concordance."""
    time, event = parts["time"], parts["event"]
    entry = np.full(len(z), -np.inf) if parts["entry"] is None else parts["entry"]
    number, right = 0, 0.0
    for i in np.flatnonzero(event).tolist():
        for j in np.flatnonzero(same[i]).tolist():
            if (time[i] < time[j] or (time[i] == time[j] and not event[j])) and entry[j] < time[i]:
                number, right = number + 1, right + float(z[i] > z[j]) + 0.5 * float(z[i] == z[j])
    return number, right / number


@pytest.mark.parametrize(("n", "strata", "entry"), [(120, 8, False), (90, 5, True), (60, 1, False), (300, 1, False)])
def test_few_pairs_of_folds_give_way_to_those_of_all_folds(n: int, strata: int, entry: bool) -> None:
    X, y, parts = cohort(n, n, strata, entry)
    model = ts.MultiTaskCoxCV(n_alphas=5, eps=0.1, cv=4).fit(X, y)
    quality, z, fold = model.cv_quality_, model.cv_predictions_, model.cv_fold_
    stratum = parts["strata"][:, None] == parts["strata"]
    within, of_folds = by_pairs(parts, z, stratum & (fold[:, None] == fold))
    across, of_all = by_pairs(parts, z, stratum)
    assert quality.fold_pairs.tolist() == [within]
    few = within < 1000
    assert few == (n < 300)
    assert quality.pairs.tolist() == [across if few else within]
    assert quality.values[0, 0] == pytest.approx(of_all if few else of_folds, abs=1e-12)
    said = quality.pairs_words
    assert f"of {across if few else within:,} pairs" in said
    assert (f"within folds and strata there are only {within:,}" in said) == few
    assert ("a few rows decide it" in said) == (quality.pairs[0] < 1000)
    assert said in quality.note
    assert said in out_of_fold(quality)[0].note


def test_the_error_of_pairs_of_all_folds_is_that_of_their_rows() -> None:
    X, y, parts = cohort(3, 70, 3)
    model = ts.MultiTaskCoxCV(n_alphas=3, eps=0.3, cv=3).fit(X, y)
    quality, z = model.cv_quality_, model.cv_predictions_
    assert quality.pairs[0] > quality.fold_pairs[0]
    same = parts["strata"][:, None] == parts["strata"]
    whole = by_pairs(parts, z, same)[1]
    changes = []
    for i in range(70):  # the derivative in the weight of a row, by leaving it out
        others = np.delete(np.arange(70), i)
        own = {name: None if part is None else part[others] for name, part in parts.items()}
        left = by_pairs(own, z[others], same[np.ix_(others, others)])[1]  # type: ignore[arg-type]
        changes.append(whole - left)
    jackknife = quality.widening * np.sqrt(70 / 69 * np.sum(np.square(changes)))
    assert quality.errors[0, 0] == pytest.approx(jackknife, rel=0.1)


def test_tasks_are_counted_one_by_one() -> None:
    large, small = cohort(0, 300, 1), cohort(1, 50, 2)
    model = ts.MultiTaskCoxCV(n_alphas=3, eps=0.3, cv=3).fit([large[0], small[0]], [large[1], small[1]])
    quality = model.cv_quality_
    assert quality.pairs[0] == quality.fold_pairs[0] >= 1000
    assert 1000 > quality.pairs[1] > quality.fold_pairs[1]
    assert "in 1 of 2 tasks" in quality.pairs_words
    frame = quality.to_dict()
    shown = [p for p, name in zip(frame["pairs"], frame["measure"], strict=True) if name == "concordance"]
    assert shown == [*quality.pairs.tolist(), int(quality.pairs.sum())]
    assert all(p is None for p, name in zip(frame["pairs"], frame["measure"], strict=True) if name != "concordance")
    again = quality_from(plain_quality(quality))
    assert again.pairs.tolist() == quality.pairs.tolist()
    assert again.fold_pairs.tolist() == quality.fold_pairs.tolist()


def test_new_rows_are_of_one_fold() -> None:
    X, y, parts = cohort(5, 80, 4)
    model = ts.MultiTaskCox(alpha=0.05).fit(X, y)
    quality = quality_on(model, X, y)
    number, value = by_pairs(parts, X @ model.coef_[0], parts["strata"][:, None] == parts["strata"])
    assert quality.pairs.tolist() == [number]
    assert quality.fold_pairs is None
    assert quality.values[0, 0] == pytest.approx(value, abs=1e-12)
    assert f"Concordance is of {number:,} pairs. Fewer than 1,000" in quality.pairs_words


def test_unlike_outcomes_count_the_pairs_of_survival_alone() -> None:
    X, y, _ = cohort(6, 60, 1)
    number = X[:, 1] + np.random.default_rng(0).standard_normal(60)
    model = ts.MultiTaskMixedCV(["squared", "cox"], n_alphas=3, eps=0.3, cv=3).fit([X, X], [number, y])
    quality = model.cv_quality_
    assert quality.pairs[0] == 0 < quality.pairs[1]
    assert quality.pairs_words.startswith(f"Concordance is of {quality.pairs[1]:,} pairs")


def test_other_outcomes_have_no_pairs() -> None:
    X, _, _ = cohort(0, 40, 1)
    quality = ts.MultiTaskLassoCV(n_alphas=3, cv=3).fit(X, X[:, 0]).cv_quality_
    assert quality.pairs is None
    assert not quality.pairs_words
    assert "pairs" not in quality.to_dict()
