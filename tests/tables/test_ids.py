"""Ids: by their names and by their values, in all rows, in every file and in every task; rows that one relates."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasksieve.tables import Table, TableError, TableProblem, prepare, prepare_rows, read_table
from tasksieve.tables.chunks import ChunkReader
from tasksieve.tables.frame_columns import from_frame
from tasksieve.tables.ids import names_rows, why_id
from tasksieve.tables.seen import SeenTable
from tasksieve.tables.stack import FILE_TASK, Wanted, stack
from tasksieve.tables.wide import WIDE

N = 40

CALLED = (
    "id", "ID", "Id", "pid", "PID", "sid", "eid", "IID", "FID", "uid", "uuid", "mrn", "USUBJID", "patient", "Patient",
    "patient_id", "patientId", "PatientID", "patient id", "patient.id", "Patient-No.", "patient_nr", "PATNO", "ptid",
    "Patientennummer", "id_patient", "subject", "subject_id", "SubjectID", "subj_no", "participant", "person",
    "person_code", "individual", "respondent_id", "proband", "record", "record_id", "case_id", "CaseNo", "sample_id",
    "specimen_number", "family_id", "household_id", "donor_id", "study_id", "animal_no", "rownames", "row names",
    "row.names", "Unnamed: 0", "Unnamed: 0.1", "__index_level_0__",
)  # fmt: skip
INNOCENT = (
    "humidity", "grid", "lipid", "acid", "rapid", "covid", "paid", "identity", "width", "steroid", "ID1", "ID2", "ID3",
    "IDS", "IDE", "PID1", "CIDEA", "patients", "n_patients", "number_of_patients", "patient_age", "age", "age_days",
    "subject_weight", "person_years", "personality", "record_high", "case", "cases", "sample", "samples", "index",
    "row", "key", "child_number", "visit_number", "Unnamed: 5", "index_level", "family", "student", "x", "no", "nodes",
)  # fmt: skip


def frame_of(rng: np.random.Generator, n: int = N, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame({**columns, "x": rng.standard_normal(n), "y": rng.standard_normal(n)})


def problem_of(frame: pd.DataFrame, **options: Any) -> TableProblem:
    return prepare(from_frame(frame, "t.csv"), target=["y"], **options)


def features(frame: pd.DataFrame, **options: Any) -> list[str]:
    return problem_of(frame, **options).encoding.feature_names


def stacked(
    *frames: pd.DataFrame, rule: Any = "same", keep: Any = (), **options: Any
) -> tuple[TableProblem, list[str]]:
    """Files as tasks, as the command line puts them together."""
    tables = [from_frame(frame, f"{name}.csv") for name, frame in zip("abcdef", frames, strict=False)]
    wanted = Wanted([("--target", "y")], rule=rule, keep=keep, features=options.get("features", ()))
    found = stack(tables, list("abcdef"[: len(tables)]), wanted)
    problem = prepare(found.table, target=["y"], task=FILE_TASK, keep=keep, **options)
    return problem, [*found.notes, *problem.notes]


# --- names -----------------------------------------------------------------------------------------------------------


def test_names_of_ids() -> None:
    assert [name for name in CALLED if not names_rows(name)] == []
    assert [name for name in INNOCENT if names_rows(name)] == []


def test_a_column_called_an_id_is_left_out_whatever_its_numbers(rng: np.random.Generator) -> None:
    repeated = rng.integers(1, 15, N)
    for values in (repeated, repeated * 1.0, [f"P{k}" for k in repeated], np.where(repeated == 3, np.nan, repeated)):
        for name in ("id", "patient", "Subject_ID", "rownames"):
            frame = frame_of(rng, **{name: values})
            [note] = problem_of(frame).notes
            assert f"column {name!r} is left out: it looks like an id" in note
            assert features(frame) == ["x"]
            assert features(frame, keep=[name], missing="drop")[0].startswith(name)
            assert features(frame, features=[name, "x"], missing="drop")[0].startswith(name)
    assert features(frame_of(rng, 4, id=[3, 1, 3, 2])) == ["x"]  # so few rows decide by the name alone


def test_what_is_no_id_whatever_it_is_called(rng: np.random.Generator) -> None:
    innocent: dict[str, Any] = {
        "fractions": rng.standard_normal(N),
        "yes or no": rng.integers(0, 2, N),
        "two words": rng.choice(["patient", "control"], N),
        "constant": np.ones(N, dtype=int),
    }
    for kind, values in innocent.items():
        assert features(frame_of(rng, patient=values))[0].startswith("patient"), kind
    days = rng.permutation(20_000)[:N]
    assert len(set(days)) == N  # different in every row, and no id
    for name in ("age_days", "ID1", "IDS", "grid", "humidity"):
        assert features(frame_of(rng, **{name: days})) == [name, "x"]
        frames = [frame_of(rng, **{name: days}) for _ in range(2)]
        assert stacked(*frames)[0].encoding.feature_names == [name, "x"]


# --- files and tasks -------------------------------------------------------------------------------------------------


def test_ids_of_each_file_overlap(rng: np.random.Generator) -> None:
    """Numbers that are unique in each file, and not in all of them: judged as in the file alone."""
    for name, values in {
        "pid": [np.sort(rng.permutation(90)[:N]) for _ in range(2)],  # with gaps
        "who": [np.arange(N), 1 + rng.permutation(N)],  # each once
        "entry_id": [3 * np.arange(N), 3 * rng.permutation(N)],  # all different
        "code": [[f"P{i:03}" for i in rng.permutation(N)] for _ in range(2)],
    }.items():
        frames = [frame_of(rng, **{name: own}) for own in values]
        assert [features(frame) for frame in frames] == [["x"], ["x"]], name
        problem, notes = stacked(*frames)
        assert problem.encoding.feature_names == ["x"], name
        assert sum(f"column {name!r} is left out" in note for note in notes) == 1
        assert any("in every file" in note for note in notes)
        assert problem.related is None  # other persons of the same number
        kept, _ = stacked(*frames, keep=[name])
        assert kept.encoding.feature_names[0].startswith(name)
        one = pd.concat([frame.assign(site=site) for frame, site in zip(frames, "ab", strict=True)])
        assert features(one.sample(frac=1.0, random_state=0), task="site") == ["x"], name
        if name in ("who", "entry_id"):
            assert name in features(one)  # whose numbers come again, and which no task explains


def test_what_each_task_counts_may_be_a_time(rng: np.random.Generator) -> None:
    """Weeks 1, 2, 3, ... of every shop, and states that every year has once, are features."""
    for name in ("week", "visit_day", "t", "Month"):
        frames = [frame_of(rng, 30, **{name: np.arange(1, 31)}) for _ in range(3)]
        assert stacked(*frames)[0].encoding.feature_names == [name, "x"]
    states = [f"{a}{b}land" for a in "abcde" for b in "uvwxyz"]
    frames = [frame_of(rng, 30, state=rng.permutation(states)) for _ in range(3)]
    assert len(stacked(*frames)[0].encoding.feature_names) == 31
    few = [frame_of(rng, 12, dose=rng.permutation(12)) for _ in range(5)]  # too few rows in each to say
    assert stacked(*few)[0].encoding.feature_names == ["dose", "x"]


def by_hand(values: list[int], tasks: list[str]) -> bool:
    """Consecutive whole numbers in all rows, or in every task, the largest of which has 20 rows."""

    def run(own: list[int]) -> bool:
        return sorted(own) == list(range(min(own), min(own) + len(own)))

    parts = [[v for v, t in zip(values, tasks, strict=True) if t == task] for task in set(tasks)]
    return (len(values) >= 20 and run(values)) or (max(map(len, parts)) >= 20 and all(map(run, parts)))


def test_in_memory_and_in_chunks_as_by_hand(rng: np.random.Generator) -> None:
    said = []
    for trial in range(80):
        tasks = rng.choice(["a", "b", "c"][: rng.integers(1, 4)], rng.integers(15, 70)).tolist()
        values = np.zeros(len(tasks), dtype=int)
        for task in set(tasks):
            own = np.flatnonzero(np.array(tasks) == task)
            values[own] = rng.integers(0, 5) + rng.permutation(len(own))
            if rng.random() < 0.3:
                values[own[0]] += rng.integers(0, 3)
        frame = frame_of(rng, len(tasks), v=values, s=tasks)
        expected = by_hand(values.tolist(), tasks)
        assert ("v" not in features(frame, task="s")) == expected, trial
        seen, codes = SeenTable("t.csv"), np.unique(tasks, return_inverse=True)[1]
        for low in range(0, len(tasks), 13):
            part = slice(low, low + 13)
            seen.look(from_frame(frame[part].reset_index(drop=True), "t.csv"), codes[part])
        assert (why_id("v", seen.as_table().columns["v"]) is not None) == expected, trial
        said.append(expected)
    assert 15 < sum(said) < 65


def test_chunks_say_of_names_what_a_whole_table_says(rng: np.random.Generator) -> None:
    tasks = np.repeat(["a", "b"], N // 2)
    for values in (np.arange(N) // 2, np.arange(N) % (N // 2), 7 * rng.permutation(N)):
        frame = frame_of(rng, patient=values, s=tasks)
        [whole] = [note for note in problem_of(frame, task="s").notes if "patient" in note]
        seen = SeenTable("t.csv")
        for low in range(0, N, 13):
            part = slice(low, low + 13)
            seen.look(from_frame(frame[part].reset_index(drop=True), "t.csv"), (tasks[part] == "b").astype(int))
        column = seen.as_table().columns["patient"]
        assert f"({why_id('patient', column)})" in whole
        assert column.seen.names.relate == (values[0] == values[1])


def test_an_id_that_only_some_files_have_is_no_difference(rng: np.random.Generator) -> None:
    first, second = frame_of(rng, pid=np.arange(N)), frame_of(rng)
    problem, notes = stacked(first, second)
    assert problem.encoding.feature_names == ["x"]
    assert any("'pid'" in note and "not all files have them" in note for note in notes)
    with pytest.raises(TableError, match=r"a\.csv has 'pid'|b\.csv lacks 'pid'"):
        stacked(first, second, keep=["pid"])
    assert "pid" in stacked(first, second, keep=["pid"], rule="union")[0].encoding.feature_names


# --- related rows ----------------------------------------------------------------------------------------------------


def test_values_that_come_again_within_a_task_relate_rows(rng: np.random.Generator) -> None:
    who, site = np.repeat(np.arange(N // 2), 2), np.tile(["a", "b"], N // 2)
    frame = frame_of(rng, patient=who, site=site)
    found = problem_of(frame)
    assert found.related is not None
    assert found.related[0] == "patient"
    np.testing.assert_array_equal(found.related[1], who)
    assert found.groups is None  # that is for the caller to say
    assert problem_of(frame, task="site").related is None  # once in each task
    assert problem_of(frame, groups="patient").related is None  # said
    assert problem_of(frame, keep=["patient"]).related is None  # not an id, says the user
    for options in ({"drop": ["patient"]}, {"features": ["x"]}, {"id": "patient"}):  # related all the same
        related = problem_of(frame, **options).related
        assert related is not None
        assert related[0] == "patient"
    again = frame.rename(columns={"patient": "tube"})
    assert problem_of(again).related is None
    related = problem_of(again, id="tube").related  # whatever it is called
    assert related is not None
    assert related[0] == "tube"


def test_the_widest_relation_is_taken(rng: np.random.Generator) -> None:
    family, patient = np.arange(N) // 8, np.arange(N) // 2
    related = problem_of(frame_of(rng, patient=patient, family_id=family, id=np.arange(N))).related
    assert related is not None
    assert related[0] == "family_id"
    # a task that is one person says nothing about rows
    frame = frame_of(rng, pid=np.arange(N) // 4, who=[f"task {i // 4}" for i in range(N)])
    assert problem_of(frame, task="who").related is None


def test_rows_without_an_id_are_by_themselves(rng: np.random.Generator) -> None:
    who = np.where(np.arange(N) % 5 == 0, np.nan, np.arange(N) // 4)
    related = problem_of(frame_of(rng, patient=who)).related
    assert related is not None
    labels = related[1]
    assert len(labels) == N
    empty = np.isnan(who)
    assert len(set(labels[empty])) == empty.sum()
    same = np.equal.outer(labels, labels)[np.ix_(~empty, ~empty)]
    np.testing.assert_array_equal(same, np.equal.outer(who[~empty], who[~empty]))
    assert not set(labels[empty]) & set(labels[~empty])


# --- row names -------------------------------------------------------------------------------------------------------


def text_of(frame: pd.DataFrame, as_r: bool) -> str:
    """``write.csv`` of R, and ``to_csv`` of pandas."""
    text = str(frame.to_csv(quoting=2 if as_r else 0))
    assert text.startswith('"",' if as_r else ",")
    return text


@pytest.mark.parametrize("names", ["numbers", "words", "zeros", "again"])
def test_a_first_column_without_a_name_holds_row_names(
    tmp_path: Path, rng: np.random.Generator, names: str
) -> None:
    frame = frame_of(rng)
    frame.index = pd.Index({
        "numbers": np.arange(1, N + 1), "words": [f"car {i}" for i in range(N)],
        "zeros": [f"{i:04}" for i in range(N)], "again": np.arange(N) // 2,
    }[names])  # fmt: skip
    for as_r in (True, False):
        (tmp_path / "t.csv").write_text(text_of(frame, as_r))
        table = read_table(tmp_path / "t.csv")
        assert list(table.columns) == ["Unnamed: 0", "x", "y"]
        problem = prepare(table, target=["y"])
        assert problem.encoding.feature_names == ["x"]
        assert "column 'Unnamed: 0' is left out: it looks like an id" in problem.notes[0]
        np.testing.assert_array_equal(problem.X[:, 0], frame.x)
        assert (problem.related is not None) == (names == "again")
        if names == "numbers":
            kept = prepare(table, target=["y"], keep=["Unnamed: 0"])
            np.testing.assert_array_equal(kept.X[:, 0], np.arange(1, N + 1))
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_excel(tmp_path / "t.xlsx")
    for file in ("t.parquet", "t.xlsx"):
        problem = prepare(read_table(tmp_path / file), target=["y"])
        assert problem.encoding.feature_names == ["x"]


def test_row_names_of_a_wide_table(tmp_path: Path, rng: np.random.Generator) -> None:
    n, d = 25, WIDE + 3
    counts = rng.integers(0, 900, (n, d))
    frame = pd.DataFrame(counts, columns=[f"g{j}" for j in range(d - 2)] + ["IDS", "patient"])
    frame["patient"] = np.arange(n) // 2
    frame["y"] = rng.standard_normal(n)
    frame.index = pd.Index([f"{i:03}" for i in range(n)])
    frame.to_csv(tmp_path / "t.csv")
    frame.reset_index(names=" ").to_parquet(tmp_path / "t.parquet")
    for file in ("t.csv", "t.parquet"):
        table = read_table(tmp_path / file)
        assert next(iter(table.columns)) == "Unnamed: 0"
        problem = prepare(table, target=["y"])
        assert problem.encoding.feature_names == list(frame.columns[:-2])
        assert problem.related is not None
        assert problem.related[0] == "patient"
        np.testing.assert_array_equal(problem.X, counts[:, :-1])


def test_only_the_first_column_may_lack_a_name(tmp_path: Path) -> None:
    for text in ("a,,y\n1,2,3\n", ",,y\n1,2,3\n", "\n1\n"):
        (tmp_path / "t.csv").write_text(text)
        with pytest.raises(TableError):
            read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text(",Unnamed: 0,y\n1,2,3\n")
    with pytest.raises(TableError, match="'Unnamed: 0' occurs twice"):
        read_table(tmp_path / "t.csv")


# --- other readers ---------------------------------------------------------------------------------------------------


def test_a_model_that_has_learned_from_an_id_takes_new_rows(rng: np.random.Generator) -> None:
    """As models of earlier versions have."""
    frame = frame_of(rng, id=np.arange(N) // 2)
    encoding = problem_of(frame, keep=["id"]).encoding
    X, *_ = prepare_rows(from_frame(frame, "t.csv"), encoding)
    np.testing.assert_array_equal(X, frame[["id", "x"]])
    encoding = problem_of(frame).encoding
    for new in (frame, frame.drop(columns="id")):
        X, *_ = prepare_rows(from_frame(new, "t.csv"), encoding)
        np.testing.assert_array_equal(X[:, 0], frame.x)


def test_ids_in_files_of_matrices(tmp_path: Path, rng: np.random.Generator) -> None:
    who = np.arange(N) // 2
    np.savez(tmp_path / "t.npz", X=rng.random((N, 3)), y=rng.random(N), patient=who)
    problem = prepare(read_table(tmp_path / "t.npz"), target=["y"])
    assert problem.encoding.feature_names == ["x0", "x1", "x2"]
    assert problem.related is not None
    np.testing.assert_array_equal(problem.related[1], who)


def test_streams_leave_out_the_ids_of_their_first_rows(rng: np.random.Generator) -> None:
    frame = frame_of(rng, patient=np.arange(N) // 2, count=np.arange(N), s=["a", "b"] * (N // 2))

    def names(**how: Any) -> tuple[list[str], list[str]]:
        text = io.BytesIO(frame.to_csv().encode())
        reader = ChunkReader(text, "rows", "csv", "y", "s", chunk_rows=30, **how)
        assert sum(len(y) for _, y, _, _ in reader) == N
        return reader.feature_names, reader.notes

    assert names() == (["Unnamed: 0", "patient", "count", "x"], [])  # of Python, where columns are as they are given
    found, notes = names(keep=())
    assert found == ["x"]
    assert [note.split("'")[1] for note in notes] == ["Unnamed: 0", "patient", "count"]
    assert names(keep=["count", "p*"])[0] == ["patient", "count", "x"]
    assert names(keep=(), features=["patient", "x"]) == (["patient", "x"], [])


def test_a_table_of_one_kind_has_no_parts(rng: np.random.Generator) -> None:
    table: Table = from_frame(frame_of(rng, v=np.r_[np.arange(N // 2), np.arange(N // 2)]), "t.csv")
    assert why_id("v", table.columns["v"]) is None
