"""Columns that are no numbers are named."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tasksieve as ts

DAY = pd.Timestamp("2024-01-31 12:00")
COLUMNS = {
    "text": (["m", "f"] * 10, "column 'sex' holds text: 'm' in row 1"),
    "text late": (["1", "2"] * 9 + ["1", "two"], "column 'sex' holds text: 'two' in row 20"),
    "strings": (pd.Series(["m", "f"] * 10, dtype="string"), "column 'sex' holds text"),
    "categories": (pd.Categorical(["m", "f"] * 10), "column 'sex' holds text"),
    "timestamps": ([DAY] * 20, "column 'sex' holds dates: 2024-01-31"),
    "time zone": ([DAY.tz_localize("Europe/Oslo")] * 20, "column 'sex' holds dates"),
    "days": ([datetime.date(2024, 1, 31)] * 20, "column 'sex' holds dates: 2024-01-31"),
    "months": ([pd.Period("2024-01")] * 20, "column 'sex' holds dates: 2024-01"),
    "durations": ([pd.Timedelta(days=1)] * 20, "column 'sex' holds durations"),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("model", [ts.MultiTaskLasso(0.1), ts.GraphSVR(), ts.OnlineMultiTaskRegressor()])
def test_a_column_of_a_data_frame_is_named(model: Any, kind: str, rng: np.random.Generator) -> None:
    values, said = COLUMNS[kind]
    frame, y = pd.DataFrame({"age": rng.standard_normal(20)}).assign(sex=values), rng.standard_normal(20)
    for X in (frame, frame[["sex"]]):
        with pytest.raises(ValueError, match="X: column") as error:
            model.fit(X, y)
        assert said in str(error.value)
        assert "drop the column" in str(error.value)


def test_prediction_and_lists_of_tasks_name_it_too(rng: np.random.Generator) -> None:
    frame = pd.DataFrame({"age": rng.standard_normal(20), "sex": rng.integers(0, 2, 20)})
    words = frame.assign(sex="m")
    model = ts.MultiTaskLasso(0.1).fit(frame, rng.standard_normal(20))
    with pytest.raises(ValueError, match="column 'sex' holds text"):
        model.predict(words)
    with pytest.raises(ValueError, match=r"X\[1\]: column 'sex' holds text"):
        ts.MultiTaskLasso(0.1).fit([frame, words], [np.zeros(20), np.zeros(20)])


def test_arrays_have_numbers_for_names(rng: np.random.Generator) -> None:
    y = rng.standard_normal(20)
    with pytest.raises(ValueError, match=r"X: column X\[:, 1\] holds text: 'm'"):
        ts.MultiTaskLasso(0.1).fit(np.array([[1.0, "m"]] * 20, dtype=object), y)
    with pytest.raises(ValueError, match=r"X: column X\[:, 0\] holds dates"):
        ts.MultiTaskLasso(0.1).fit(np.full((20, 1), np.datetime64("2024-01-31")), y)


def test_numbers_in_any_dress_are_numbers(rng: np.random.Generator) -> None:
    values, y = rng.standard_normal((20, 2)).round(3), rng.standard_normal(20)
    expected = ts.MultiTaskLasso(0.01).fit(values, y).coef_
    for X in (values.astype(object), values.astype(str), pd.DataFrame(values).astype("Float64")):
        np.testing.assert_array_equal(ts.MultiTaskLasso(0.01).fit(X, y).coef_, expected)
