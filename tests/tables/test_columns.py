"""Which columns are learned from: ids and dates are not, unless asked for."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasksieve.tables import Encoding, Table, TableError, TableProblem, prepare, prepare_rows, read_table
from tasksieve.tables.frame_columns import from_frame

N = 40


def frame_with(rng: np.random.Generator, n: int = N, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame({**columns, "x": rng.standard_normal(n), "y": rng.standard_normal(n)})


def problem_of(frame: pd.DataFrame, **options: Any) -> TableProblem:
    return prepare(from_frame(frame, "t.csv"), target=["y"], **options)


def features(frame: pd.DataFrame, **options: Any) -> list[str]:
    return problem_of(frame, **options).encoding.feature_names


# --- ids -----------------------------------------------------------------------------------------------------


def ids(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "row numbers": np.arange(N),
        "from 1001, in any order": 1001 + rng.permutation(N),
        "backwards": np.arange(N)[::-1] - 7,
        "short integers": np.arange(N, dtype=np.int8),
        "unsigned": np.arange(2**40, 2**40 + N, dtype=np.uint64),
        "codes": [f"P{i:03}" for i in range(N)],
        "codes with holes": [None if i % 7 == 0 else f"P{i:03}" for i in range(N)],
        "free text": [f"came with {i} complaints" for i in range(N)],
    }


@pytest.mark.parametrize("kind", ids(np.random.default_rng(0)))
def test_ids_are_left_out_and_named(kind: str, rng: np.random.Generator) -> None:
    frame = frame_with(rng, who=ids(rng)[kind])
    problem = problem_of(frame)
    assert problem.encoding.feature_names == ["x"]
    assert len(problem.rows) == N  # a hole in what is not learned from is no missing value
    [note] = problem.notes
    assert "column 'who' is left out: it looks like an id" in note
    assert "--keep who" in note
    assert "--id who" in note


def test_a_column_called_id_may_have_gaps(rng: np.random.Generator) -> None:
    gaps = 3 * np.arange(N) + rng.integers(0, 2, N)
    for name in ("id", "ID", "patient_id", "patient id", "patientId", "PatientID", "key"):
        assert features(frame_with(rng, **{name: gaps})) == ["x"], name
    for name in ("grid", "rapid", "covid", "identity", "monkey", "dose"):
        assert features(frame_with(rng, **{name: gaps})) == [name, "x"], name


def test_what_is_no_id(rng: np.random.Generator) -> None:
    innocent: dict[str, Any] = {
        "counts": rng.poisson(20, N),
        "numbers with gaps": 2 * np.arange(N),
        "consecutive but for one": np.r_[np.arange(N - 1), N],
        "years of a time series": 1980 + np.arange(N),
        "measurements": np.arange(N) + 0.0,  # written with a decimal point
        "each number twice": np.arange(N) // 2,
        "constant": np.ones(N, dtype=int),
        "words that come again": ["a", "b", "c", "d"] * (N // 4),
        "yes or no": rng.integers(0, 2, N).astype(bool),
    }
    for kind, values in innocent.items():
        frame = frame_with(rng, v=values)
        assert not any("left out" in note for note in problem_of(frame).notes), kind
        assert features(frame)[0].startswith("v"), kind


def test_a_small_table_decides_nothing(rng: np.random.Generator) -> None:
    """Six doses are six numbers in a row, and six cities six words: no ids."""
    frame = frame_with(rng, 6, dose=np.arange(1, 7), city=["Bonn", "Oslo", "Rome", "Paris", "Wien", "Bern"])
    assert features(frame)[0] == "dose"
    assert len(features(frame)) == 8
    assert features(frame_with(rng, 19, dose=np.arange(19))) == ["dose", "x"]
    assert features(frame_with(rng, 20, dose=np.arange(20))) == ["x"]
    assert features(frame_with(rng, 10, city=list("abcdefghij"))) == ["x"]


def test_spoilt_numbers_stay_an_error_that_names_the_row(rng: np.random.Generator) -> None:
    words = [f"{value:.6f}" for value in rng.standard_normal(N)]
    words[7] = "oops"
    with pytest.raises(TableError, match="row 8, column 'v' is 'oops'"):
        problem_of(frame_with(rng, v=words))


def test_ids_can_be_kept(rng: np.random.Generator) -> None:
    frame = frame_with(rng, hour=np.arange(N), who=[f"P{i}" for i in range(N)])
    assert features(frame, keep=["hour"]) == ["hour", "x"]
    assert features(frame, features=["hour", "x"]) == ["hour", "x"]
    assert features(frame, features=["h*", "x"]) == ["x"]  # a glob names nothing
    assert len(features(frame, keep=["*"])) == 2 + N
    assert len(features(frame, categorical=["hour"], drop=["who"])) == N + 1
    with pytest.raises(TableError, match="no column 'houre'"):
        features(frame, keep=["houre"])
    with pytest.raises(TableError, match=r"no column left for features; column 'hour' is left out.*--keep hour"):
        features(frame[["hour", "y"]])


def test_columns_are_dropped(rng: np.random.Generator) -> None:
    frame = frame_with(rng, a=rng.random(N), b=rng.random(N), who=np.arange(N))
    problem = problem_of(frame, drop=["a", "w*"])
    assert problem.encoding.feature_names == ["b", "x"]
    assert problem.notes == []
    assert features(frame, drop=["[ay]*", "who"]) == ["b", "x"]  # a glob may touch the target
    for options, said in (
        ({"drop": ["z"]}, "--drop: t.csv has no column 'z'"),
        ({"drop": ["y"]}, "--drop: column 'y' is also the target"),
        ({"drop": ["a"], "features": ["a", "b"]}, "--features: column 'a' is also in --drop"),
        ({"drop": ["a"], "keep": ["a"]}, "--keep: column 'a' is also in --drop"),
        ({"drop": ["*"]}, "no column left"),
    ):
        with pytest.raises(TableError) as error:
            problem_of(frame, **options)
        assert said in str(error.value)


def test_an_id_is_a_role(rng: np.random.Generator) -> None:
    frame = frame_with(rng, a=rng.random(N), who=np.arange(N))
    problem = problem_of(frame, id="who")
    assert problem.encoding.feature_names == ["a", "x"]
    assert problem.notes == []
    assert features(frame, id="a") == ["x"]  # whatever it looks like
    with pytest.raises(TableError, match=r"--id: t.csv has no column 'whose'; did you mean 'who'"):
        problem_of(frame, id="whose")
    with pytest.raises(TableError, match="--id: column 'y' is also the target"):
        problem_of(frame, id="y")


def test_features_of_a_matrix_are_dropped_by_name(tmp_path: Path, rng: np.random.Generator) -> None:
    np.savez(tmp_path / "t.npz", X=rng.random((N, 3)), y=rng.random(N), who=np.arange(N))
    table = read_table(tmp_path / "t.npz")
    problem = prepare(table, target=["y"], id="who", drop=["x1"], keep=["*"])
    assert problem.encoding.feature_names == ["x0", "x2"]
    np.testing.assert_array_equal(problem.X, table.matrix[:, [0, 2]])
    for options, said in (({"date_parts": True}, "matrix of numbers"), ({"drop": ["x9"]}, "no column 'x9'")):
        with pytest.raises(TableError, match=said):
            prepare(table, target=["y"], **options)


# --- dates ---------------------------------------------------------------------------------------------------

DAYS = pd.date_range("2023-12-20", periods=N, freq="D")
WRITTEN = {
    "ISO": DAYS.strftime("%Y-%m-%d"),
    "ISO with time": DAYS.strftime("%Y-%m-%dT%H:%M:%S"),
    "ISO with zone": DAYS.strftime("%Y-%m-%d %H:%M:%SZ"),
    "slashes": DAYS.strftime("%Y/%m/%d"),
    "German": DAYS.strftime("%d.%m.%Y"),
    "British": DAYS.strftime("%d/%m/%Y"),
    "American": DAYS.strftime("%m/%d/%Y %H:%M"),
    "names of months": DAYS.strftime("%d-%b-%Y"),
    "eight digits": DAYS.strftime("%Y%m%d").astype(int),
    "timestamps": DAYS,
    "time zone": DAYS.tz_localize("Europe/Oslo"),
    "Python's": [day.date() for day in DAYS],
    "days as periods": DAYS.to_period("D"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", WRITTEN)
def test_dates_are_left_out_or_taken_apart(kind: str, rng: np.random.Generator) -> None:
    frame = frame_with(rng, seen=WRITTEN[kind])
    problem = problem_of(frame)
    assert problem.encoding.feature_names == ["x"]
    assert problem.notes == [
        "column 'seen' is left out: it holds dates. --date-parts learns from their year, month, day and so on"
    ]
    problem = problem_of(frame, date_parts=True)
    assert problem.notes == []
    names = ["seen.days", "seen.year", "seen.month", "seen.day", "seen.weekday", "x"]
    assert problem.encoding.feature_names == names
    days = (DAYS - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    expected = np.column_stack([days, DAYS.year, DAYS.month, DAYS.day, DAYS.day_of_week, frame.x])
    np.testing.assert_array_equal(problem.X, expected)
    # a model file keeps how it was done, and new rows are read so
    again = Encoding.from_json(problem.encoding.to_json(), names)
    rows, *_ = prepare_rows(from_frame(frame.iloc[3:9], "new.csv"), again)
    np.testing.assert_array_equal(rows, expected[3:9])


def test_hours_are_a_part_where_there_are_any(rng: np.random.Generator) -> None:
    times = pd.date_range("1969-12-31 23:15", periods=N, freq="7h")
    for values in (times, times.strftime("%Y-%m-%d %H:%M")):
        problem = problem_of(frame_with(rng, seen=values), date_parts=True)
        assert problem.encoding.feature_names[-2] == "seen.hour"
        np.testing.assert_allclose(problem.X[:, 5], times.hour + times.minute / 60, atol=1e-12)
        np.testing.assert_array_equal(problem.X[:, 1], times.year)
        np.testing.assert_array_equal(problem.X[:, 4], times.day_of_week)


def test_missing_dates_are_missing_values(rng: np.random.Generator, tmp_path: Path) -> None:
    for values in (DAYS, DAYS.strftime("%Y-%m-%d")):
        frame = frame_with(rng, seen=values)
        frame.loc[4, "seen"] = None
        assert len(problem_of(frame).rows) == N
        with pytest.raises(TableError, match="row 5, column 'seen'"):
            problem_of(frame, date_parts=True)
        assert len(problem_of(frame, date_parts=True, missing="drop").rows) == N - 1
        filled = problem_of(frame, date_parts=True, missing="mean")
        assert filled.X[4, 1] == pytest.approx(filled.X[[i for i in range(N) if i != 4], 1].mean())


def test_day_or_month_first_is_not_guessed(rng: np.random.Generator) -> None:
    frame = frame_with(rng, seen=["03/04/2024", "05/06/2024"] * (N // 2))
    assert features(frame) == ["x"]
    with pytest.raises(TableError, match=r"'seen' of t.csv holds dates such as '03/04/2024': is the day or the month"):
        problem_of(frame, date_parts=True)


def test_new_rows_are_read_as_the_fitted_ones(rng: np.random.Generator) -> None:
    """Day first, as the fit could tell, also where new rows alone could not."""
    encoding = problem_of(frame_with(rng, seen=WRITTEN["British"]), date_parts=True).encoding
    new = pd.DataFrame({"seen": ["03/04/2024"], "x": [0.0]})
    rows, *_ = prepare_rows(from_frame(new, "new.csv"), encoding)
    assert rows[0, 2:4].tolist() == [4.0, 3.0]
    rows, *_ = prepare_rows(from_frame(new.assign(seen=[datetime.date(2024, 4, 3)]), "new.csv"), encoding)
    assert rows[0, 2:4].tolist() == [4.0, 3.0]
    with pytest.raises(TableError, match=r"new.csv: row 1, column 'seen' is '12/31/2024', which is no date"):
        prepare_rows(from_frame(new.assign(seen=["12/31/2024"]), "new.csv"), encoding)


def test_real_dates_cannot_be_kept_as_they_are(rng: np.random.Generator) -> None:
    frame = frame_with(rng, seen=DAYS)
    for options in ({"keep": ["seen"]}, {"features": ["seen"]}, {"categorical": ["seen"]}, {"keep": ["*"]}):
        with pytest.raises(TableError, match=r"column 'seen' of t.csv holds dates.*--date-parts.*--drop"):
            problem_of(frame, **options)
    for role in ("task", "weights"):
        with pytest.raises(TableError, match=f"--{role}: column 'seen'"):
            problem_of(frame, **{role: "seen"})


def test_words_that_are_dates_may_stay_words(rng: np.random.Generator) -> None:
    frame = frame_with(rng, term=["2024-01-01", "2024-07-01"] * (N // 2))
    for options in ({"keep": ["term"]}, {"features": ["term", "x"]}, {"categorical": ["term"], "date_parts": True}):
        assert features(frame, **options) == ["term=2024-07-01", "x"]


def test_what_is_no_date(rng: np.random.Generator) -> None:
    for values in (
        ["1.5.2", "1.5.3"] * (N // 2),  # versions
        ["2024-13-01", "2024-01-01"] * (N // 2),
        ["10-12", "10-13"] * (N // 2),
        [19_990_000 + i for i in range(0, 3 * N, 3)],
        [20_240_131] * N,
        1_700_000_000 + 86_400 * np.arange(N),
    ):
        frame = frame_with(rng, v=values)
        assert features(frame)[0].startswith("v"), values[:2]
        assert not any("left out" in note for note in problem_of(frame).notes)
    assert problem_of(frame_with(rng), date_parts=True).notes == ["--date-parts: no feature column holds dates"]


def test_a_spoilt_encoding_is_refused() -> None:
    names = ["d.days", "d.year"]
    for spoilt in ({"parts": ["century"], "way": ""}, {"parts": ["days", "year"], "way": "%q"}, {"parts": ["days"]}, 7):
        with pytest.raises((ValueError, KeyError)):
            Encoding.from_json({"columns": [["d", spoilt]]}, names)


def test_durations_are_named(rng: np.random.Generator) -> None:
    frame = frame_with(rng, stay=pd.to_timedelta(rng.integers(1, 9, N), unit="D"))
    with pytest.raises(TableError, match=r"column 'stay'.*durations.*--drop"):
        problem_of(frame)


def test_columns_of_dates_survive_files(tmp_path: Path, rng: np.random.Generator) -> None:
    frame = frame_with(rng, seen=DAYS, day=[day.date() for day in DAYS])
    frame.to_parquet(tmp_path / "t.parquet")
    table: Table = read_table(tmp_path / "t.parquet")
    for name in ("seen", "day"):
        assert table.columns[name].kind == "date"
        np.testing.assert_array_equal(table.columns[name].values, DAYS.to_numpy().astype("datetime64[us]"))
