"""One file per task: several files, a glob, a folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine

from tasksieve.cli.exit_codes import UsageError
from tasksieve.cli.files import expand_tables, name_tasks
from tasksieve.runs import RunFolder, load_model
from tasksieve.tables import TableError

NAMES = ("north", "south", "west")


def frames(n: int = 24, d: int = 5, seed: int = 0) -> dict[str, pd.DataFrame]:
    """Three places; column a matters everywhere, b in the north, and so does the city."""
    rng = np.random.default_rng(seed)
    found = {}
    for t, name in enumerate(NAMES):
        frame = pd.DataFrame(rng.standard_normal((n, d)).round(4), columns=list("abcde")[:d])
        frame["city"] = rng.choice(["Bonn", "Oslo"], n)
        noise = 0.1 * rng.standard_normal(n)
        frame["y"] = 2 * frame["a"] - (t == 0) * frame["b"] + (frame["city"] == "Oslo") + noise
        found[name] = frame
    return found


def write(folder: Path, tables: dict[str, pd.DataFrame]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, frame in tables.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def same_run(one: Path, other: Path) -> None:
    mine, known = load_model(RunFolder(one)), load_model(RunFolder(other))
    np.testing.assert_array_equal(mine.estimator.coef_, known.estimator.coef_)
    np.testing.assert_array_equal(mine.estimator.intercept_, known.estimator.intercept_)
    assert mine.estimator.tasks_.tolist() == known.estimator.tasks_.tolist()
    assert mine.feature_names == known.feature_names


def test_files_a_glob_and_a_folder_are_the_same_as_one_table(cli: CommandLine, tmp_path: Path) -> None:
    tables = frames()
    folder = write(tmp_path / "places", tables)
    stacked = pd.concat([frame.assign(place=name) for name, frame in tables.items()])
    stacked.to_csv(tmp_path / "all.csv", index=False)
    options = ["-y", "y", "--cv", 3, "--alphas", 8, "--no-report"]
    cli("fit", tmp_path / "all.csv", "-t", "place", *options, "-o", tmp_path / "known")
    files = [folder / f"{name}.csv" for name in ("west", "north", "south")]
    told = cli("fit", *files, *options, "-o", tmp_path / "files")
    assert "3 tasks" in told.out
    same_run(tmp_path / "files", tmp_path / "known")
    cli("fit", str(folder / "*.csv"), *options, "-o", tmp_path / "glob")
    same_run(tmp_path / "glob", tmp_path / "known")
    (folder / "notes.md").write_text("not a table")
    (folder / "~$west.xlsx").write_text("open")
    (folder / "more").mkdir()
    said = cli("fit", folder, *options, "-o", tmp_path / "folder", code=1).err
    assert "no table: more/, notes.md. --skip" in said
    (folder / "more").rmdir()
    (folder / "east.xls").write_text("an old workbook")
    skip = ["--skip", "*.md", "--skip", "east*"]
    assert "east.xls (save it as .xlsx)" in cli("fit", folder, *options, *skip[:2], "-o", tmp_path / "r", code=1).err
    told = cli("fit", folder, *options, *skip, "-o", tmp_path / "folder")
    assert "note: files that are not read (--skip): east.xls, notes.md" in told.err
    same_run(tmp_path / "folder", tmp_path / "known")
    cli("predict", tmp_path / "folder", folder, "-o", tmp_path / "p.csv", "--skip")
    told = cli("fit", folder, "--skip", *options, "-o", tmp_path / "alone")
    assert "note: files that are not read (--skip): east.xls, notes.md" in told.err
    same_run(tmp_path / "alone", tmp_path / "known")
    digests = [RunFolder(tmp_path / run).read_json("data.json")["sha256"] for run in ("files", "glob", "folder")]
    assert len(set(digests)) == 1
    rows = pd.read_csv(tmp_path / "folder" / "out_of_fold.csv")
    assert sorted(rows["task"].unique()) == sorted(NAMES)
    assert rows["row"].max() == 24  # counted in each file

    # the configuration leads back to the files
    cli("fit", "--config", tmp_path / "files" / "config.json", "--no-report", "-o", tmp_path / "again")
    same_run(tmp_path / "again", tmp_path / "known")
    resumed = cli("fit", *files, *options, "--resume", "-o", tmp_path / "files")
    assert "nothing to resume" in resumed.err
    assert cli("verify", tmp_path / "files").out.startswith("proved")
    moved = write(tmp_path / "moved", tables)
    assert cli("verify", tmp_path / "files", "--data", moved).out.startswith("proved")
    assert "one file for each task" in cli("verify", tmp_path / "files", "--data", moved / "west.csv", code=2).err


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ending", ["tsv", "csv.gz", "parquet", "arrow"])
def test_formats(cli: CommandLine, tmp_path: Path, ending: str) -> None:
    files = []
    for name, frame in frames().items():
        files.append(tmp_path / f"{name}.{ending}")
        if ending in ("parquet", "arrow"):
            getattr(frame, "to_parquet" if ending == "parquet" else "to_feather")(files[-1])
        else:
            frame.to_csv(files[-1], index=False, sep="\t" if ending == "tsv" else ",")
    cli("fit", *files, "-y", "y", "--alpha", 0.1, "--no-report", "-o", tmp_path / "run")
    assert load_model(RunFolder(tmp_path / "run")).estimator.tasks_.tolist() == sorted(NAMES)


def test_columns_are_matched_by_name(cli: CommandLine, tmp_path: Path) -> None:
    tables = frames()
    known = write(tmp_path / "known", tables)
    tables["south"] = tables["south"][["y", "e", "city", "c", "a", "b", "d"]]
    other = write(tmp_path / "other", tables)
    for folder in (known, other):
        cli("fit", folder, "-y", "y", "--alpha", 0.1, "--no-report", "-o", tmp_path / f"run-{folder.name}")
    same_run(tmp_path / "run-known", tmp_path / "run-other")


def test_a_slip_in_the_name_of_a_column(cli: CommandLine, tmp_path: Path) -> None:
    renamed = {"a": "flavanoids", "b": "gene17"}
    tables = {site: table.rename(columns=renamed) for site, table in frames().items()}
    tables["south"] = tables["south"].rename(columns={"flavanoids": "flavonoids"})
    tables["west"] = tables["west"].rename(columns={"gene17": "gene18"})  # another column, as far as one can tell
    folder = write(tmp_path / "places", tables)
    said = cli("fit", folder, "-y", "y", "--alpha", 0.1, "-o", tmp_path / "run", code=1).err
    assert "(is 'flavonoids' a slip for 'flavanoids'?)" in said
    assert said.count("slip") == 1


def test_files_that_differ_are_listed(cli: CommandLine, tmp_path: Path) -> None:
    tables = frames()
    tables["south"] = tables["south"].drop(columns=["b", "city"])
    tables["west"]["extra"] = 1.5
    folder = write(tmp_path / "places", tables)
    fit = ["fit", folder, "-y", "y", "--alpha", 0.1, "--no-report"]
    said = cli(*fit, "-o", tmp_path / "run", code=1).err
    assert "south.csv lacks 'b', 'city'" in said
    assert "west.csv has 'extra', which most others have not" in said
    assert "slip" not in said
    assert "--columns intersection" in said
    assert "--columns union" in said
    assert not (tmp_path / "run").exists()

    cli(*fit, "--columns", "intersection", "-o", tmp_path / "shared")
    assert load_model(RunFolder(tmp_path / "shared")).feature_names == list("acde")
    assert "'b', 'city', 'extra'" in json.dumps(RunFolder(tmp_path / "shared").read_json("data.json")["notes"])
    # what is not learned from may differ
    cli(*fit, "--drop", "b", "--drop", "city", "--drop", "extra", "-o", tmp_path / "dropped")
    same_run(tmp_path / "dropped", tmp_path / "shared")
    cli(*fit, "-x", "a", "-x", "[c-e]", "-o", tmp_path / "chosen")
    same_run(tmp_path / "chosen", tmp_path / "shared")


def test_a_column_that_a_task_lacks(cli: CommandLine, tmp_path: Path) -> None:
    tables = frames()
    tables["south"] = tables["south"].drop(columns=["b", "city"])
    tables["north"].loc[3, "b"] = np.nan
    folder = write(tmp_path / "places", tables)
    told = cli(
        "fit", folder, "-y", "y", "--columns", "union", "--missing", "mean", "--alpha", 0.02, "--no-report",
        "-o", tmp_path / "run",
    )  # fmt: skip
    assert "south.csv lacks 2 of 6 columns" in told.err
    saved = load_model(RunFolder(tmp_path / "run"))
    names, model = saved.feature_names, saved.estimator
    south = model.tasks_.tolist().index("south")
    rarer = pd.concat([tables["north"]["city"], tables["west"]["city"]]).value_counts().idxmin()
    assert names == ["a", "b", "c", "d", "e", f"city={rarer}"]
    assert not model.coef_[south, [1, 5]].any()
    assert model.coef_[south, 0] != 0.0
    assert np.count_nonzero(model.coef_[:, 1]) == 2  # b, in the other two
    assert np.count_nonzero(model.coef_[:, 5]) == 2
    # the mean that fills a hole is of rows that have the column
    mean = pd.concat([tables["north"]["b"], tables["west"]["b"]]).mean()
    assert saved.fill is not None
    assert saved.fill[1] == pytest.approx(mean)
    # what the task lacked it may lack again; if it has it by now, that changes nothing
    plain = pd.read_csv(predicted(cli, tmp_path, folder / "south.csv"))
    tables["south"]["b"], tables["south"]["city"] = 7.0, "Rome"
    more = write(tmp_path / "more", tables)
    pd.testing.assert_frame_equal(pd.read_csv(predicted(cli, tmp_path, more / "south.csv")), plain)
    tables["west"].drop(columns="b").to_csv(more / "west.csv", index=False)
    said = cli("predict", tmp_path / "run", more / "west.csv", code=1).err
    assert "west.csv lacks 'b'" in said


def predicted(cli: CommandLine, folder: Path, *words: object) -> Path:
    out = folder / "predicted.csv"
    cli("predict", folder / "run", *words, "-o", out)
    return out


def test_predict_and_evaluate(cli: CommandLine, tmp_path: Path) -> None:
    folder = write(tmp_path / "places", frames())
    cli("fit", folder, "-y", "y", "--alpha", 0.05, "--no-report", "-o", tmp_path / "run")
    model = load_model(RunFolder(tmp_path / "run")).estimator
    every = pd.read_csv(predicted(cli, tmp_path, folder))
    assert every["task"].tolist() == [name for name in sorted(NAMES) for _ in range(24)]
    one = pd.read_csv(predicted(cli, tmp_path, folder / "west.csv"))
    # rows are multiplied in blocks of other sizes
    np.testing.assert_allclose(one["prediction"], every["prediction"][-24:], rtol=1e-12)
    new = write(tmp_path / "new", {"site_9": frames(seed=1)["west"]})
    said = cli("predict", tmp_path / "run", new / "site_9.csv", code=2).err
    assert "no task 'site_9'" in said
    assert "--task-name" in said
    known = pd.read_csv(predicted(cli, tmp_path, new / "site_9.csv", "--task-name", "west"))
    assert set(known["task"]) == {"west"}
    wide = pd.read_csv(predicted(cli, tmp_path, new / "site_9.csv", "--all-tasks"))
    np.testing.assert_allclose(wide["prediction (west)"], known["prediction"], rtol=1e-12)
    column = frames(seed=1)["west"].assign(place="west")
    column.to_csv(new / "column.csv", index=False)
    by_column = pd.read_csv(predicted(cli, tmp_path, new / "column.csv", "--task", "place"))
    np.testing.assert_allclose(by_column["prediction"], known["prediction"], rtol=1e-12)

    told = cli("evaluate", tmp_path / "run", folder / "north.csv", folder / "west.csv")
    assert "north" in told.out
    assert "2 files" in told.out
    assert "fitted to" in cli("evaluate", tmp_path / "run", folder).err
    assert model.tasks_.tolist() == sorted(NAMES)


def test_files_as_parts_of_a_table(cli: CommandLine, tmp_path: Path) -> None:
    stacked = pd.concat([frame.assign(place=name) for name, frame in frames().items()], ignore_index=True)
    shuffled = stacked.sample(frac=1.0, random_state=0)
    shuffled.to_csv(tmp_path / "all.csv", index=False)
    write(tmp_path / "parts", {"part-0": shuffled[:30], "part-1": shuffled[30:]})
    options = ["-y", "y", "-t", "place", "--alpha", 0.1, "--no-report"]
    for name in ("all.csv", "parts"):
        cli("fit", tmp_path / name, *options, "-o", tmp_path / f"r-{name}")
    same_run(tmp_path / "r-all.csv", tmp_path / "r-parts")
    out = cli("predict", tmp_path / "r-parts", tmp_path / "parts").out
    assert out == cli("predict", tmp_path / "r-all.csv", tmp_path / "all.csv").out


def test_other_commands(cli: CommandLine, tmp_path: Path) -> None:
    folder = write(tmp_path / "places", frames())
    cli("path", folder, "-y", "y", "--alphas", 5, "--no-report", "-o", tmp_path / "path")
    told = cli(
        "stability", folder, "-y", "y", "--pairs", 4, "--permutations", 20, "--jobs", 1, "--no-report", "-o",
        tmp_path / "stability",
    )  # fmt: skip
    assert "3 tasks" in told.out
    coefficients = tmp_path / "coefficients.csv"
    coefficients.write_text("feature,north,south,west\na,2,2,2\n")
    told = cli("grade", coefficients, folder, "-y", "y", "--alpha", 0.1, "--no-solve")
    assert "1 features are not zero" in told.out


def test_rows_are_named_as_in_their_file(cli: CommandLine, tmp_path: Path) -> None:
    tables = frames()
    tables["south"].loc[4, "c"] = np.nan
    folder = write(tmp_path / "places", tables)
    said = cli("fit", folder, "-y", "y", "--alpha", 0.1, "-o", tmp_path / "run", code=1).err
    assert "row 5 of south.csv, column 'c'" in said
    tables["south"]["c"] = tables["west"]["c"].astype(str)
    tables["south"].loc[7, "c"] = "broken"
    write(folder, tables)
    said = cli("fit", folder, "-y", "y", "--alpha", 0.1, "-o", tmp_path / "run", code=1).err
    assert "row 8 of south.csv, column 'c' is 'broken'" in said


def test_every_file_needs_the_target(cli: CommandLine, tmp_path: Path) -> None:
    tables = frames()
    tables["south"] = tables["south"].rename(columns={"y": "Y"})
    folder = write(tmp_path / "places", tables)
    for rule in ("same", "union"):
        said = cli("fit", folder, "-y", "y", "--columns", rule, "--alpha", 0.1, "-o", tmp_path / "run", code=1).err
        assert "--target: column 'y' is not in south.csv" in said


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["places/north.csv", "-y", "y", "--columns", "union"], 2, "--columns: is for several files"),
        (["places", "-y", "y", "--task-name", "one"], 2, "1 name(s) for 3 file(s)"),
        (["places", "-y", "y", "-t", "city", "--task-name", "{}.csv"], 2, "--task-name and --task"),
        (["places", "-y", "y", "--chunk-rows", "10"], 2, "several files are read as a whole"),
        (["places", "-y", "a", "-y", "b"], 2, "each of the 3 files is a task"),
        (["places", "-y", "city", "-m", "multinomial-owl"], 2, "has no tasks"),
        (["places/*.txt", "-y", "y"], 1, "no file matches"),
        (["empty", "-y", "y"], 1, "holds no table"),
        (["places/north.csv", "places/north.csv", "-y", "y"], 1, "is named twice"),
        (["places/north.csv", "places/nowhere.csv", "-y", "y"], 1, "there is no file"),
    ],
)
def test_what_is_refused(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, said: str
) -> None:
    write(tmp_path / "places", frames())
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert said in cli("fit", *words, "--alpha", 0.1, "--no-report", "-o", tmp_path / "run", code=code).err
    assert not (tmp_path / "run").exists()


def test_a_stream_takes_one_table(cli: CommandLine, tmp_path: Path) -> None:
    folder = write(tmp_path / "places", frames())
    said = cli("stream", folder, "--target", "y", "--out", tmp_path / "run", code=2).err
    assert "is a folder" in said


def test_names_of_tasks() -> None:
    files = ["/data/run_a/x.csv", "/data/run_b/x.csv.gz"]
    with pytest.raises(UsageError, match="two files are task 'x'"):
        name_tasks(files)
    assert name_tasks(files, ["run_{}/x"]) == ["a", "b"]
    assert name_tasks(files, ["{}/*"]) == ["run_a", "run_b"]
    assert name_tasks(files, ["first", "second"]) == ["first", "second"]
    assert name_tasks(["/d/env_1_v2.csv"], ["env_{}_v?.csv"]) == ["1"]
    assert name_tasks(["/d/site.a.tsv.bz2"]) == ["site.a"]
    for wrong in ("{}{}.csv", "y_{}"):
        with pytest.raises(UsageError, match="--task-name"):
            name_tasks(files[:1], [wrong])


def test_a_file_whose_name_looks_like_a_glob(tmp_path: Path) -> None:
    odd = tmp_path / "a[1].csv"
    odd.write_text("y\n1\n")
    assert expand_tables([str(odd)]) == str(odd)
    assert expand_tables([str(odd), str(tmp_path / "b.csv")]) == [str(odd), str(tmp_path / "b.csv")]
    with pytest.raises(TableError, match="no file matches"):
        expand_tables([str(tmp_path / "b[1].csv")])
