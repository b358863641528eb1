"""Tables on disk: every format, every way a cell can be wrong, and files that are not tables at all."""

from __future__ import annotations

import io
import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from tasksieve.tables import Encoding, TableError, prepare, prepare_rows, read_arrays, read_table

CSV = """site,city,age,dose,y
a,Rome,30,1.5,0.1
b,Oslo,41,2.5,0.2
a,Rome,52,3.5,0.3
b,Bonn,63,4.5,0.4
"""


def write(folder: Path, text: str, name: str = "table.csv") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def csv_problem(folder: Path, text: str = CSV, **options: Any) -> Any:
    options = {"target": ["y"], "task": "site", **options}
    return prepare(read_table(write(folder, text)), **options)


# --- what is read ------------------------------------------------------------------------------------------------


def test_csv_becomes_a_problem(tmp_path: Path) -> None:
    problem = csv_problem(tmp_path)
    assert problem.encoding.feature_names == ["city=Bonn", "city=Oslo", "city=Rome", "age", "dose"]
    np.testing.assert_array_equal(problem.X[:, 3], [30, 41, 52, 63])
    np.testing.assert_array_equal(problem.X[:, :3], [[0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(problem.y, [0.1, 0.2, 0.3, 0.4])
    assert problem.task.tolist() == ["a", "b", "a", "b"]
    assert problem.notes == [
        "columns of more categories become one indicator for each, no reference: city (3). --reference COLUMN=CATEGORY "
        "leaves one out"
    ]


def test_every_format_gives_the_same_problem(tmp_path: Path, rng: np.random.Generator) -> None:
    import pandas as pd

    X, y, task = rng.standard_normal((20, 4)), rng.standard_normal(20), np.repeat([3, 7], 10)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]).assign(y=y, task=task)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_feather(tmp_path / "t.feather")
    np.savez(tmp_path / "t.npz", X=X, y=y, task=task)
    np.savez_compressed(tmp_path / "packed.npz", X=np.asfortranarray(X), y=y, task=task)
    for name in ("t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.feather", "t.npz", "packed.npz"):
        problem = prepare(read_table(tmp_path / name), target=["y"], task="task")
        np.testing.assert_array_equal(problem.X, X, err_msg=name)
        np.testing.assert_array_equal(problem.y, y, err_msg=name)
        assert problem.task.tolist() == task.tolist(), name
        assert problem.encoding.feature_names == ["x0", "x1", "x2", "x3"], name


def test_sparse_npz_and_libsvm(tmp_path: Path) -> None:
    X = scipy.sparse.csr_matrix([[0, 2.0, 0], [1.0, 0, 0], [0, 0, 3.0]])
    np.savez(
        tmp_path / "s.npz",
        X_data=X.data,
        X_indices=X.indices,
        X_indptr=X.indptr,
        X_shape=X.shape,
        y=[1.0, 2.0, 3.0],
    )
    problem = prepare(read_table(tmp_path / "s.npz"), target=["y"])
    np.testing.assert_array_equal(problem.X.toarray(), X.toarray())
    file = write(tmp_path, "1 qid:4 2:2\n-1 qid:5 1:1\n1 qid:4 3:3\n", "s.libsvm")
    problem = prepare(read_table(file), target=["label"], task="qid", classes=True)
    np.testing.assert_array_equal(problem.X.toarray(), X.toarray())
    assert problem.encoding.feature_names == ["f1", "f2", "f3"]
    assert problem.y.tolist() == [1, -1, 1]
    assert problem.task.tolist() == [4, 5, 4]
    # rows to predict may lack the last features, or have more
    other = read_table(write(tmp_path, "0 1:5 9:1\n", "other.libsvm"))
    X, *_ = prepare_rows(other, problem.encoding)
    np.testing.assert_array_equal(X.toarray(), [[5.0, 0, 0]])


def test_small_numbers_keep_their_type(tmp_path: Path) -> None:
    import pandas as pd

    for kind in ("int8", "uint8", "float32", "float64"):
        frame = pd.DataFrame({"a": [0, 1, 2], "b": [2, 1, 0]}).astype(kind).assign(y=[0.0, 1.0, 2.0])
        frame.to_parquet(tmp_path / "t.parquet")
        assert prepare(read_table(tmp_path / "t.parquet"), target=["y"]).X.dtype == kind


def test_several_targets_and_globs(tmp_path: Path) -> None:
    text = "g1,g2,age,y1,y2\n1,2,3,4,\n5,6,7,8,9\n0,1,0,,\n"
    problem = csv_problem(tmp_path, text, target=["y*"], task=None, features=["g*"])
    np.testing.assert_array_equal(problem.X, [[1, 2], [5, 6]])
    np.testing.assert_array_equal(problem.y, [[4, np.nan], [8, 9]])
    assert problem.targets == ["y1", "y2"]
    assert any("row 3" in note for note in problem.notes)
    assert any("not observed" in note for note in problem.notes)


def test_two_dimensional_target_of_npz(tmp_path: Path, rng: np.random.Generator) -> None:
    np.savez(tmp_path / "t.npz", X=rng.standard_normal((5, 3)), y=np.arange(10.0).reshape(5, 2))
    problem = prepare(read_table(tmp_path / "t.npz"), target=["y"])
    np.testing.assert_array_equal(problem.y, np.arange(10.0).reshape(5, 2))


def test_numbers_that_are_names(tmp_path: Path) -> None:
    text = "zip,x,y\n1010,0.5,1\n2020,0.25,2\n1010,1,3\n"
    problem = csv_problem(tmp_path, text, task=None, categorical=["zip"])
    assert problem.encoding.feature_names == ["zip=2020", "x"]


# --- missing values ----------------------------------------------------------------------------------------------

HOLES = "site,city,age,y\na,Rome,30,1\nb,,41,2\na,Rome,,3\nb,Oslo,50,\n"


def test_missing_values_are_named(tmp_path: Path) -> None:
    with pytest.raises(TableError) as error:
        csv_problem(tmp_path, HOLES)
    for words in ("row 4, column 'y'", "row 2, column 'city'", "row 3, column 'age'", "--missing drop"):
        assert words in str(error.value)


def test_missing_values_are_dropped(tmp_path: Path) -> None:
    problem = csv_problem(tmp_path, HOLES, missing="drop")
    assert problem.rows.tolist() == [0]
    assert any("3 of 4 rows" in note and "row 2, 3, 4" in note for note in problem.notes)


def test_missing_values_are_filled(tmp_path: Path) -> None:
    problem = csv_problem(tmp_path, HOLES, missing="mean")
    assert problem.rows.tolist() == [0, 1, 2]  # the row without a label cannot be filled
    names = problem.encoding.feature_names
    assert names == ["city=Oslo", "age"]
    np.testing.assert_allclose(problem.X, [[0, 30], [0, 41], [0, 35.5]])
    table = read_table(write(tmp_path, "site,city,age\nb,,\n", "new.csv"))
    X, *_ = prepare_rows(table, problem.encoding, missing="mean", fill=problem.fill)
    np.testing.assert_allclose(X, [[0, 35.5]])


# --- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("a,b,y\n1,2,3\n", {"target": ["z"]}, "no column 'z'"),
        ("a,b,yield\n1,2,3\n", {"target": ["yeild"]}, "did you mean 'yield'"),
        ("a,a,y\n1,2,3\n", {}, "occurs twice"),
        ("a,b,y\n1,2,3,4\n", {}, "more fields"),
        ("a,b,y\n1,2,3\n1,2,3,4\n", {}, "line 3"),
        ("a,b,y\n", {}, "no rows"),
        ("a,,y\n1,2,3\n", {}, "no name"),
        ("a,b,y\n1,inf,3\n2,1,1\n", {}, "row 1, column 'b' is infinite"),
        ("a,b,y\n1,2,inf\n", {}, "infinite"),
        ("a,b,y\n1,2,low\n1,3,high\n", {}, "holds words"),
        ("a,b,y\n1,2,3\n1,x,3\n1,3,3\n1,4,4\n", {}, "row 2, column 'b' is 'x'"),
        ("a,b,y\nu,2,3\nv,3,3\nw,3,4\n", {"max_categories": 2}, "3 different words"),
        ('a,b,y\n"1,5",2.5,3\n"2,25",3,3\n7,3,4\n', {}, "'a' of"),
        ('a,b,y\n"1,5",2.5,3\n"-2,25",3,3\n', {}, "decimal comma ('-2,25')"),
        ('a,b,y\n1,2.5,"3,5"\n1,3,"4,5"\n', {}, "'y' of"),
        ('a,b,y\n1,2.5,"3,5"\n1,3,4\n', {}, "row 1, column 'y' is '3,5', with a decimal comma"),
        ("a,b,y\n1,2,3\n", {"features": ["c*"]}, "no column 'c*'"),
        ("a,b,y\n1,2,3\n", {"features": ["y"]}, "also the target"),
        ("a,y\n1,2\n", {"task": "a"}, "no column left"),
        ("a,b,y\n1,-2,3\n", {"weights": "b"}, "row 1, column 'b' is -2"),
        ("a,b,c,y\n1,2,3,3\n", {"target": ["y", "c"], "task": "a"}, "each target is a task"),
        ("a,b,y\n1,2,3\n", {"task": "y"}, "also the target"),
        ("a,b,y\n,2,3\n,3,3\n", {"missing": "mean"}, "no value at all"),
        ("a,b,y\n1,2,\n", {"missing": "drop"}, "no row is left"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(TableError) as error:
        csv_problem(tmp_path, text, **{"task": None, **options})
    assert words in str(error.value)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    for name, words in (("none.csv", "no file"), ("x.unknown", "--format"), (".", "cannot be inferred")):
        with pytest.raises(TableError, match=words):
            read_table(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match="folder"):
        read_table(tmp_path / "folder.csv")
    with pytest.raises(TableError, match="empty"):
        read_table(write(tmp_path, ""))
    with pytest.raises(TableError, match="UTF-8"):
        (tmp_path / "latin.csv").write_bytes("naïve,y\n1,2\n".encode("latin-1"))
        read_table(tmp_path / "latin.csv", encoding="utf-8")


def test_dates_and_lists_are_refused_as_features_only(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {"day": pd.to_datetime(["2020-01-01", "2020-01-02"]), "x": [1.0, 2.0], "y": [1.0, 2.0]}
    )
    frame["list"] = [[1], [2]]
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert prepare(table, target=["y"], features=["x"]).X.shape == (2, 1)
    for name in ("day", "list"):
        with pytest.raises(TableError, match=name):
            prepare(table, target=["y"], features=[name, "x"])


def test_unknown_words_at_prediction(tmp_path: Path) -> None:
    encoding = csv_problem(tmp_path).encoding
    table = read_table(write(tmp_path, "city,age,dose\nParis,1,2\n", "new.csv"))
    with pytest.raises(TableError, match="row 1, column 'city' is 'Paris'"):
        prepare_rows(table, encoding)
    X, *_ = prepare_rows(table, encoding, unknown="zero")
    np.testing.assert_array_equal(X, [[0, 0, 0, 1, 2]])
    with pytest.raises(TableError, match="no column 'dose'"):
        prepare_rows(read_table(write(tmp_path, "city,age\nRome,1\n", "new.csv")), encoding)


def test_encoding_survives_json(tmp_path: Path) -> None:
    import json

    encoding = csv_problem(tmp_path).encoding
    again = Encoding.from_json(json.loads(json.dumps(encoding.to_json())), encoding.feature_names)
    assert again == encoding


# --- untrusted npz files ----------------------------------------------------------------------------------------


class Evil:
    """Unpickling this writes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return (Path.touch, (self.file,))


def npy(header: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    head = header.encode("latin-1")
    head += b" " * (-(10 + len(head) + 1) % 64) + b"\n"
    size = len(head).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + size + head + content


def archive(file: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(file, "w", compression) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return file


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    objects = np.empty(1, dtype=object)
    objects[0] = Evil(mark)
    np.savez(tmp_path / "evil.npz", X=objects)
    raw = pickle.dumps(Evil(mark))
    archive(tmp_path / "raw.npz", {"X.npy": raw})
    (tmp_path / "bare.npz").write_bytes(raw)
    lying = npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", raw)
    archive(tmp_path / "lying.npz", {"X.npy": lying})
    for name in ("evil.npz", "raw.npz", "bare.npz", "lying.npz"):
        with pytest.raises(TableError):
            read_table(tmp_path / name)
    assert not mark.exists()
    with pytest.raises(TableError, match="never loaded"):
        read_arrays(tmp_path / "evil.npz")


def test_declared_sizes_are_not_believed(tmp_path: Path) -> None:
    for shape in (
        "(1000000000000,)",
        "(-1,)",
        "(2,)",
        "(4294967296, 4294967296)",
        "(1,) * 99",
        "()",
        "'x'",
        "(1.5,)",
    ):
        member = npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}", bytes(24))
        with pytest.raises(TableError):
            read_arrays(archive(tmp_path / "t.npz", {"X.npy": member}))
    # a true bomb: small on disk, larger than memory when unpacked
    file = archive(
        tmp_path / "bomb.npz", {"X.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9,), }")}
    )
    content = bytearray(file.read_bytes())
    position = content.rindex(b"PK\x01\x02")
    content[position + 24 : position + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    file.write_bytes(bytes(content))
    with pytest.raises(TableError):
        read_arrays(file)


def test_names_cannot_lead_out_of_the_archive(tmp_path: Path) -> None:
    good = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", bytes(8))
    for name in ("../X.npy", "/etc/X.npy", "a/b.npy", "X.txt", "-.npy", ".npy", "X" * 300 + ".npy"):
        with pytest.raises(TableError):
            read_arrays(archive(tmp_path / "t.npz", {name: good}))
    with pytest.raises(TableError, match="compressed"):
        read_arrays(archive(tmp_path / "t.npz", {"X.npy": good}, zipfile.ZIP_DEFLATED), stored=True)
    for descr in ("'<c16'", "[('a', '<f8')]", "'<M8[s]'", "'|V8'", "'<U2'"):
        content = (0x7FFFFFFF).to_bytes(4, "little") * 2
        member = npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}", content)
        with pytest.raises(TableError):
            read_arrays(archive(tmp_path / "t.npz", {"X.npy": member}))


# --- fuzz --------------------------------------------------------------------------------------------------------

FORMATS = ("csv", "parquet", "arrow", "npz", "libsvm")


@pytest.fixture(scope="module")
def good_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    import pandas as pd

    folder = tmp_path_factory.mktemp("good")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((12, 3)), columns=["a", "b", "c"])
    frame["word"] = rng.choice(["x", "y"], 12)
    frame["y"] = rng.standard_normal(12)
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    frame.to_feather(folder / "t.arrow")
    np.savez(
        folder / "t.npz",
        X=frame[["a", "b", "c"]].to_numpy(),
        y=frame["y"].to_numpy(),
        word=np.array(["u"] * 12),
    )
    (folder / "t.libsvm").write_text("1 qid:1 1:0.5 3:2\n-1 qid:2 2:1\n" * 6)
    return {name: (folder / f"t.{name}").read_bytes() for name in FORMATS}


def try_reading(content: bytes, folder: Path, format: str) -> None:
    """A table, or a clean error; nothing else."""
    file = folder / f"fuzz.{format}"
    file.write_bytes(content)
    try:
        table = read_table(file, format)
        names = list(table.columns)
        prepare(table, target=names[-1:], missing="drop", classes=True)
    except TableError:
        pass


@settings(max_examples=60)
@given(content=st.binary(max_size=300), format=st.sampled_from(FORMATS))
def test_random_bytes(content: bytes, format: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    try_reading(content, tmp_path_factory.mktemp("fuzz"), format)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("format", FORMATS)
def test_truncated_and_spoilt_files(format: str, good_files: dict[str, bytes], tmp_path: Path) -> None:
    good = good_files[format]
    for end in np.linspace(0, len(good) - 1, 25).astype(int).tolist():
        try_reading(good[:end], tmp_path, format)
    draw = random.Random(0)
    for _ in range(120):
        spoilt = bytearray(good)
        for _ in range(draw.choice([1, 1, 2, 8])):
            spoilt[draw.randrange(len(spoilt))] = draw.randrange(256)
        try_reading(bytes(spoilt), tmp_path, format)


def test_formats_taken_for_each_other(good_files: dict[str, bytes], tmp_path: Path) -> None:
    for content in good_files.values():
        for format in FORMATS:
            try_reading(content, tmp_path, format)


def test_huge_cells_rows_and_indices(tmp_path: Path) -> None:
    try_reading(b"a,y\n" + b"1" * 5_000_000 + b",2\n", tmp_path, "csv")
    try_reading(b'a,y\n"' + b"x" * 1_000_000, tmp_path, "csv")
    try_reading(b"," * 5_000 + b"\n1\n", tmp_path, "csv")
    try_reading(b"1 99999999999999999999:1\n", tmp_path, "libsvm")
    try_reading(b"1 4000000000:1\n", tmp_path, "libsvm")
    try_reading(b"1 -5:1\n", tmp_path, "libsvm")
    try_reading(b"nan 1:inf\n", tmp_path, "libsvm")
    for indices, indptr in (([0, 9], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 0], [0, 5, 2]), ([0, 0], [0, 1])):
        buffer = io.BytesIO()
        np.savez(
            buffer,
            X_data=[1.0, 2.0],
            X_indices=np.array(indices),
            X_indptr=np.array(indptr),
            X_shape=[2, 3],
            y=[1, 2],
        )
        (tmp_path / "s.npz").write_bytes(buffer.getvalue())
        with pytest.raises(TableError):
            read_table(tmp_path / "s.npz")
