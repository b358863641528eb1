"""``tasksieve export``: files that predict what ``tasksieve predict`` predicts, with the recipe of the table."""

from __future__ import annotations

from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine
from export_scorers import by_duckdb, by_json, by_onnx, by_python, by_sqlite

# what is not installed is left out
FOR_SQL = [score for score, package in ((by_sqlite, "sqlite3"), (by_duckdb, "duckdb")) if find_spec(package)]
WITH_ONNX = find_spec("onnx") and find_spec("onnxruntime")


def table(n: int = 150, seed: int = 2) -> pd.DataFrame:
    """Numbers, words, codes and dates, with holes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((n, 3)), columns=["a b", 'say "x"', "ß"])
    frame["ward"] = rng.choice(["general", "it's heart", "surgery"], n)
    frame["code"] = rng.choice([3, 7, 12], n)
    frame["seen"] = pd.Timestamp("2019-12-30 06:30") + pd.to_timedelta(rng.integers(0, 2000, n), "D")
    frame["seen"] += pd.to_timedelta(rng.integers(0, 17, n), "h")
    frame["site"] = rng.choice(["north", "south"], n)
    frame["time"] = rng.uniform(0.5, 2.0, n).round(3)
    effect = 2.0 * frame["a b"] - (frame.ward == "surgery") + 1.0 * (frame.code == 7)
    frame["y"] = (effect + 0.3 * frame.seen.dt.month + 0.1 * rng.standard_normal(n)).round(4)
    for name in ("a b", "ward"):
        frame.loc[rng.random(n) < 0.1, name] = np.nan
    return frame


def records(frame: pd.DataFrame, dates: str | None) -> list[dict[str, Any]]:
    """Rows as a program would have them: None for what is missing, dates in words or as they are."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    if dates is not None:
        rows = [{**row, "seen": row["seen"].strftime(dates)} for row in rows]
    return rows


@pytest.mark.parametrize("missing", ["mean", "task-mean", "indicator"])
def test_the_recipe_of_a_table(cli: CommandLine, missing: str, tmp_path: Path) -> None:
    frame = table()
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("-y", "y", "-t", "site", "--missing", missing, "--date-parts", "--categorical", "code")
    run = tmp_path / "run"
    cli("fit", tmp_path / "t.csv", *words, "--alpha", 0.02, "--drop", "time", "--no-report", "-o", run)
    cli("predict", run, tmp_path / "t.csv", "--missing", missing, "-o", tmp_path / "p.csv")
    right = pd.read_csv(tmp_path / "p.csv").prediction.to_numpy()
    told = cli("export", run, "-o", tmp_path / "model.py").err
    assert "2 task(s)" in told
    for rows in (records(frame, None), records(frame, "%Y-%m-%d %H:%M:%S"), records(frame, "%Y-%m-%dT%H:%M")):
        found, _ = by_python(tmp_path / "model.py", rows, [None] * len(rows))
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)
    cli("export", run, "-o", tmp_path / "model.sql", "-q")
    sites = frame.site.tolist()
    written = ((by_duckdb, None), (by_duckdb, "%Y-%m-%dT%H:%M:%S"), (by_sqlite, "%Y-%m-%d %H:%M:%S"))
    for score, dates in (pair for pair in written if pair[0] in FOR_SQL):
        found, _ = score(tmp_path / "model.sql", records(frame, dates), sites)
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)
    if WITH_ONNX:
        check_onnx(cli, run, frame, right)
    scorer: dict[str, Any] = {}
    exec((tmp_path / "model.py").read_text(), scorer)
    row = records(frame, None)[1]
    for name, value in (("ward", "garden"), ("code", 4), ("seen", "2024-02-30"), ("seen", "soon"), ("ß", None)):
        if name in scorer["INPUTS"]:
            with pytest.raises(ValueError, match=name) if name != "ß" or missing == "indicator" else nullcontext():
                scorer["predict"]({**row, name: value})
    assert {"a b", "ward", "code", "seen"} <= set(scorer["INPUTS"])
    if missing != "indicator":
        assert scorer["predict"]({**row, "code": "7.0"}) == scorer["predict"]({**row, "code": 7})


def check_onnx(cli: CommandLine, run: Path, frame: pd.DataFrame, right: np.ndarray) -> None:
    """A date is given by its parts."""
    file, seen, sites = run / "model.onnx", frame.seen.dt, frame.site.tolist()
    cli("export", run, "-o", file, "-q")
    parts = frame.assign(**{f"seen.{part}": getattr(seen, part) for part in ("year", "month", "day")})
    parts["seen.weekday"], parts["seen.hour"] = seen.day_of_week, seen.hour + seen.minute / 60.0
    parts["seen.days"] = (frame.seen - pd.Timestamp(0)) / pd.Timedelta(days=1)
    found, _ = by_onnx(file, records(parts, None), sites)
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-4)
    strange = records(parts.iloc[:2], None)
    strange[0]["ward"] = "garden"
    found, _ = by_onnx(file, strange, sites[:2])
    assert np.isnan(found).tolist() == [True, False]


@pytest.mark.parametrize("way", ["%d.%m.%Y", "%b %d, %Y", "%Y%m%d", "%d/%m/%Y %H:%M"])
def test_dates_as_the_table_writes_them(cli: CommandLine, way: str, tmp_path: Path) -> None:
    frame = table().drop(columns=["ward", "a b", "time"])
    frame["seen"] = frame.seen.dt.strftime(way)
    frame.to_csv(tmp_path / "t.csv", index=False)
    run = tmp_path / "run"
    cli("fit", tmp_path / "t.csv", "-y", "y", "-t", "site", "--date-parts", "--alpha", 0.001, "--no-report", "-o", run)
    cli("predict", run, tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    cli("export", run, "-o", tmp_path / "model.py")
    found, _ = by_python(tmp_path / "model.py", records(frame, None), [None] * len(frame))
    right = pd.read_csv(tmp_path / "p.csv").prediction
    np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)
    cli("export", run, "-o", tmp_path / "model.sql", "--table", "my visits")
    assert 'FROM "my visits"' in (tmp_path / "model.sql").read_text()
    cli("export", run, "-o", tmp_path / "model.sql")
    for score in FOR_SQL:
        if way == "%Y%m%d":
            found, _ = score(tmp_path / "model.sql", records(frame, None), frame.site.tolist())
            np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)
        else:  # text that is no date of SQL
            assert score(tmp_path / "model.sql", records(frame, None), frame.site.tolist())[0] == [None] * len(frame)


def test_several_targets_offsets_and_a_value_of_the_path(cli: CommandLine, tmp_path: Path) -> None:
    frame = table().drop(columns=["ward", "a b", "seen"])
    frame["second"] = frame.y * 2.0 - frame["ß"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    run, given = tmp_path / "run", ("-y", "y", "-y", "second", "--drop", "site", "--offset", "time")
    cli("path", tmp_path / "t.csv", *given, "--alphas", 5, "--no-report", "-o", run)
    alpha = pd.read_csv(run / "path.csv").alphas[3]
    cli("predict", run, tmp_path / "t.csv", "--alpha", alpha, "-o", tmp_path / "p.csv")
    right = pd.read_csv(tmp_path / "p.csv")
    rows = records(frame, None)
    for score, ending in ((by_python, ".py"), (by_json, ".json"), *((score, ".sql") for score in FOR_SQL)):
        cli("export", run, "--alpha", alpha, "-o", tmp_path / f"model{ending}")
        for target in ("y", "second"):
            found, _ = score(tmp_path / f"model{ending}", rows, [target] * len(rows))
            np.testing.assert_allclose(found, right[f"prediction ({target})"], rtol=1e-12, atol=1e-12)
    assert "without a choice" in cli("export", run, "-o", tmp_path / "m.py", code=2).err


def test_what_cannot_be_exported(cli: CommandLine, tmp_path: Path) -> None:
    frame = table().drop(columns=["ward", "seen"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    run = tmp_path / "run"
    given = ("-y", "y", "-t", "site", "--missing", "patterns", "--alpha", 0.1, "--no-report")
    cli("fit", tmp_path / "t.csv", *given, "-o", run)
    told = cli("export", run, "-o", tmp_path / "m.py", code=1).err
    assert "patterns of present columns" in told
    assert ".json" in cli("export", run, "-o", tmp_path / "m.txt", code=1).err
    assert not (tmp_path / "m.py").exists()
