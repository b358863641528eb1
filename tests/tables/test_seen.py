"""What is remembered of columns that went by decides as the whole columns would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasksieve.tables import TableError
from tasksieve.tables.categories import Categories
from tasksieve.tables.columns import FeatureChoice, choose_features
from tasksieve.tables.frame_columns import from_frame
from tasksieve.tables.seen import SeenTable

N = 200
RNG = np.random.default_rng(0)
COLUMNS: dict[str, Any] = {
    "numbers": RNG.standard_normal(N),
    "counts": RNG.integers(0, 9, N),
    "row": RNG.permutation(N) - 50,
    "serial": np.arange(N) + 10**12,
    "almost": np.r_[np.arange(N - 1), 5],
    "person_id": RNG.permutation(10 * N)[:N],
    "visit_id": np.r_[np.arange(N - 1) * 3, 3],
    "far_id": (RNG.permutation(N).astype(np.int64) - 100) * 10**15,
    "year": np.arange(N) + 1900,
    "city": RNG.choice(["Bonn", "Oslo", "Rome"], N),
    "name": [f"person {k}" for k in RNG.permutation(N)],
    "twin": [f"person {k}" for k in [*range(N - 1), 3]],
    "flag": RNG.uniform(size=N) < 0.5,
    "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(RNG.integers(0, 300, N), "D"),
    "written": [f"2024-0{k}-11" for k in RNG.integers(1, 9, N)],
    "ambiguous": [f"0{k}/0{k}/2024" for k in RNG.integers(1, 9, N)],
    "digits": np.sort(RNG.choice([20240101 + k for k in range(28)], N)),
    "hole": np.where(np.arange(N) == 77, np.nan, RNG.standard_normal(N)),
    "empty first": np.r_[np.full(40, np.nan), RNG.standard_normal(N - 40)],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [30, 200])
def test_columns_are_what_they_are_in_memory(name: str, rows: int) -> None:
    frame = pd.DataFrame({name: COLUMNS[name], "x": 1.5})
    seen = SeenTable("t.csv")
    for low in range(0, N, rows):
        seen.look(from_frame(frame.iloc[low : low + rows].reset_index(drop=True), "t.csv"))
    answers = []
    for table in (from_frame(frame, "t.csv"), seen.as_table()):
        try:
            encoding, notes = choose_features(table, {}, FeatureChoice(max_categories=100))
            answers.append((encoding.columns, notes))
        except TableError as error:
            answers.append((str(error), []))
    assert answers[0] == answers[1]
    assert seen.columns[name].n_missing == int(pd.isna(frame[name]).sum())


def test_categories_and_spoilt_numbers() -> None:
    frame = pd.DataFrame({"code": np.tile([3, 1], 30), "spoilt": ["1.5"] * 40 + ["n/k"] + ["2"] * 19, "x": 0.5})
    seen = SeenTable("t.csv", ["code"])
    for low in range(0, 60, 25):
        seen.look(from_frame(frame.iloc[low : low + 25].reset_index(drop=True), "t.csv"))
    encoding, _ = choose_features(seen.as_table(), {"spoilt": "the task"}, FeatureChoice(categorical=["code"]))
    assert encoding.columns == [("code", Categories(("1", "3"), "1")), ("x", None)]
    with pytest.raises(TableError, match="row 41, column 'spoilt' is 'n/k'"):
        choose_features(seen.as_table(), {}, FeatureChoice())


def test_numbers_that_only_look_complete_are_no_ids() -> None:
    values = np.arange(N)
    values[10], values[20] = 12, 18  # the same sum
    frame = pd.DataFrame({"k": values, "x": 0.5})
    seen = SeenTable("t.csv")
    seen.look(from_frame(frame, "t.csv"))
    assert seen.columns["k"].why_id("k") is None
