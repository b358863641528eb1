"""One battery for every reader: what files of tables hold is read right, or refused by name."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from file_writers import (
    ARROWS,
    BOOKS,
    LABELLED,
    TEXTS,
    WRITERS,
    Error,
    Formula,
    write_excel,
    write_german,
    write_ods,
    write_workbook,
)

from tasksieve.tables import Table, TableError, TableProblem, prepare, read_sheets, read_table
from tasksieve.tables.dates import date_ways

X = ("x", [1.5, 2.5, 4.0, 3.25])
Y = ("y", [0.5, 1.5, 2.0, 3.0])
NAMES = tuple(WRITERS)
DAYS = [datetime.date(2024, 1, 31), datetime.date(2024, 2, 28), datetime.date(2023, 5, 1), datetime.date(2022, 7, 9)]


def written(tmp_path: Path, ending: str, *columns: tuple[str, list[Any]], **how: Any) -> Path:
    path = tmp_path / f"table.{ending}"
    WRITERS[ending](path, [*columns, X, Y], **how)
    return path


def problem(table: Table, **options: Any) -> TableProblem:
    return prepare(table, target=["y"], **options)


def refusal(path: Path, **options: Any) -> str:
    """What is said about a table that is not read, or whose features are not."""
    with pytest.raises(TableError) as error:
        problem(read_table(path), **options)
    assert path.name in str(error.value)
    return str(error.value)


def feature(found: TableProblem, name: str) -> list[float]:
    return found.X[:, found.encoding.feature_names.index(name)].tolist()


@pytest.mark.parametrize("ending", NAMES)
def test_numbers_and_words(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path, ending, ("n", [1, 2, 3, 5]), ("word", ["no", "yes", "no", "no"]))
    found = problem(read_table(path))
    assert found.encoding.feature_names == ["n", "word=yes", "x"]
    np.testing.assert_array_equal(found.X, np.array([[1, 2, 3, 5], [0, 1, 0, 0], X[1]]).T)
    np.testing.assert_array_equal(found.y, Y[1])


@pytest.mark.parametrize("ending", NAMES)
def test_leading_zeros(tmp_path: Path, ending: str) -> None:
    table = read_table(written(tmp_path, ending, ("code", ["007", "010", "123", "007"])))
    assert table.columns["code"].values.tolist() == ["007", "010", "123", "007"]
    assert problem(table).encoding.feature_names[:3] == ["code=007", "code=010", "code=123"]
    assert problem(table, task="code").tasks.tolist() == ["007", "010", "123"]


@pytest.mark.parametrize("ending", NAMES)
def test_dates(tmp_path: Path, ending: str) -> None:
    table = read_table(written(tmp_path, ending, ("seen", DAYS)))
    assert date_ways(table.columns["seen"])
    found = problem(table)
    assert found.encoding.feature_names == ["x"]
    assert any("'seen' is left out: it holds dates" in note for note in found.notes)
    parts = problem(table, date_parts=True)
    assert feature(parts, "seen.year") == [2024, 2024, 2023, 2022]
    assert feature(parts, "seen.day") == [31, 28, 1, 9]


@pytest.mark.parametrize("ending", NAMES)
def test_missing_values(tmp_path: Path, ending: str) -> None:
    words = ["a", "b", None if ending != "dta" else "", "a"]
    path = written(tmp_path, ending, ("n", [1.0, None, 3.0, 4.0]), ("word", words))
    said = refusal(path)
    assert "2 missing value(s)" in said
    assert "column 'n'" in said
    assert "column 'word'" in said
    assert problem(read_table(path), missing="drop").rows.tolist() == [0, 3]


def test_sas_files_are_read_as_pandas_reads_them(tmp_path: Path) -> None:
    """Whose reader is another program than the one behind ours, and than the writer of these files."""
    words, numbers = ["north", None, "süd", "a longer name"], [1.5, None, -3.0, 1e300]
    path = written(tmp_path, "sas7bdat", ("site", words), ("n", numbers), ("seen", DAYS))
    frame, table = pd.read_sas(path, encoding="utf-8"), read_table(path)
    assert list(table.columns) == frame.columns.tolist() == ["site", "n", "seen", "x", "y"]
    assert table.columns["site"].values.tolist() == [None if word != word else word for word in frame.site] == words
    np.testing.assert_array_equal(table.columns["n"].values, frame.n)
    np.testing.assert_array_equal(table.columns["n"].values, np.array(numbers, dtype=np.float64))
    np.testing.assert_array_equal(table.columns["seen"].values, frame.seen.to_numpy("datetime64[us]"))


@pytest.mark.parametrize("ending", [*TEXTS, *ARROWS, *BOOKS])
def test_whole_numbers_beyond_doubles(tmp_path: Path, ending: str) -> None:
    beyond = [2**53 + 1, 2**53 + 3, 5, 2**53 + 9]
    path = written(tmp_path, ending, ("n", beyond))
    assert "'n'" in refusal(path)
    assert "beyond 2^53" in refusal(path)
    kept = problem(read_table(path), id="n")
    if ending != "xlsx":  # whose writer rounds
        assert [int(one) for one in kept.ids[1]] == beyond  # type: ignore[index]
    path = written(tmp_path, ending, ("n", [2**53 + 9, None, 5, 6]))
    assert "'n'" in refusal(path, missing="drop")
    assert "beyond 2^53" in refusal(path, missing="drop")
    assert problem(read_table(path), drop=["n"]).encoding.feature_names == ["x"]


def test_more_digits_than_any_type_has(tmp_path: Path) -> None:
    path = written(tmp_path, "csv", ("n", [str(10**30 + k) for k in range(4)]))
    assert "beyond 2^53" in refusal(path)


@pytest.mark.parametrize("ending", [*TEXTS, *ARROWS, *BOOKS])
def test_names_of_columns(tmp_path: Path, ending: str) -> None:
    table = read_table(written(tmp_path, ending, (" age ", [1, 2, 3, 5])))
    assert list(table.columns) == ["age", "x", "y"]
    assert "'x' occurs twice" in refusal(written(tmp_path, ending, ("x ", [1, 2, 3, 5])))
    assert "no name" in refusal(written(tmp_path, ending, ("age", [1, 2, 3, 5]), (" ", [1, 2, 3, 5])))
    # a first one holds row names, as R and pandas write them
    found = problem(read_table(written(tmp_path, ending, (" ", ["p7", "p1", "p2", "p1"]))))
    assert found.encoding.feature_names == ["x"]
    assert "column 'Unnamed: 0' is left out: it looks like an id (row names, without a name" in found.notes[0]


@pytest.mark.parametrize("ending", [*TEXTS, *BOOKS])
@pytest.mark.parametrize(("words", "numbers"), [
    (["1.234,5", "12,25", "1.000.000,0", "7"], [1234.5, 12.25, 1e6, 7]),
    (["1,234.5", "12.25", "1,000,000.0", "7"], [1234.5, 12.25, 1e6, 7]),
    (["1'234.5", "12.25", "1'000'000", "7"], [1234.5, 12.25, 1e6, 7]),
    (["12.5%", "3 %", "-0.1%", "100%"], [0.125, 0.03, -0.001, 1.0]),
    (["12,5 %", "3%", "-0,1%", "100%"], [0.125, 0.03, -0.001, 1.0]),
])  # fmt: skip
def test_numbers_as_people_write_them(tmp_path: Path, ending: str, words: list[str], numbers: list[float]) -> None:
    comma = "," in words[1] or ("," in words[0] and "." not in words[1])
    real = [str(one).replace(".", ",") for one in X[1]] if comma and ending in TEXTS else X[1]
    labels = [str(one).replace(".", ",") for one in Y[1]] if comma and ending in TEXTS else Y[1]
    path = tmp_path / f"table.{ending}"
    WRITERS[ending](path, [("n", words), ("x", real), ("y", labels)])
    table = read_table(path)
    found = problem(table)
    assert feature(found, "n") == numbers
    assert feature(found, "x") == X[1]
    assert any("'n'" in note for note in table.notes)
    assert table.recognised["decimal"] == ("," if comma else ".")


@pytest.mark.parametrize("ending", [*ARROWS, "dta", "sav"])
@pytest.mark.parametrize(
    "words", [["1.234,5", "12,25", "3,5", "7,0"], ["12.5%", "3%", "1%", "100%"], ["1'000.5", "2", "3", "4"]]
)
def test_words_of_a_file_that_has_numbers(tmp_path: Path, ending: str, words: list[str]) -> None:
    path = written(tmp_path, ending, ("n", words))
    assert "'n'" in refusal(path)
    assert "numbers" in refusal(path)
    assert "n=" in problem(read_table(path), categorical=["n"]).encoding.feature_names[0]


@pytest.mark.parametrize("ending", [*TEXTS, *ARROWS, *BOOKS])
def test_truths(tmp_path: Path, ending: str) -> None:
    found = problem(read_table(written(tmp_path, ending, ("t", [True, False, True, True]))))
    assert feature(found, "t") == [1, 0, 1, 1]


@pytest.mark.parametrize("ending", [*TEXTS, *BOOKS])
def test_errors_of_formulas(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path, ending, ("n", [1.5, Error("#DIV/0!"), 2.5, 3.5]))
    said = refusal(path)
    assert "#DIV/0!" in said
    assert ("cell A3" if ending in BOOKS else "row 2, column 'n'") in said
    said = refusal(written(tmp_path, ending, ("word", ["a", Error("#REF!"), "b", "a"])))
    assert "#REF!" in said
    assert "'word'" in said
    assert "#REF!" in refusal(tmp_path / f"table.{ending}", task="word")
    path = written(tmp_path, ending, ("n", [1.5, Error("#N/A"), 2.5, 3.5]))
    assert "1 missing value(s)" in refusal(path)


@pytest.mark.parametrize("ending", [*TEXTS, *ARROWS, *BOOKS])
def test_two_rows_of_header(tmp_path: Path, ending: str) -> None:
    numbers: list[Any] = [1, 2, 3] if ending in BOOKS else ["1", "2", "3"]
    path = written(tmp_path, ending, ("age", ["years", *numbers]))
    said = refusal(path)
    assert "second row of header" in said
    assert "'age' is 'years'" in said


def test_empty_rows(tmp_path: Path) -> None:
    holes: list[Any] = [1, None, 2, None]
    columns = [("n", holes), ("x", holes), ("y", holes)]
    (tmp_path / "a.csv").write_text("n,x,y\n1,1,1\n\n2,2,2\n\n")
    assert problem(read_table(tmp_path / "a.csv")).n_used == 2
    (tmp_path / "b.csv").write_text("n,x,y\n1,1,1\n,,\n2,2,2\n")
    assert "row 2, column" in refusal(tmp_path / "b.csv")
    for ending in BOOKS:
        path = tmp_path / f"a.{ending}"
        WRITERS[ending](path, columns)
        table = read_table(path)
        assert table.n_rows == 2
        assert [note for note in table.notes if "1 empty row(s) of the sheet left out: 3" in note]
        WRITERS[ending](path, [("n", [1, None, 2, 3]), ("x", [1, None, None, 3]), ("y", [1, None, 2, 3])])
        assert "row 4 of the sheet, column 'x'" in refusal(path)


def test_merged_cells(tmp_path: Path) -> None:
    site = ("site", ["a", None, "b", "b"])
    write_excel(tmp_path / "body.xlsx", [site, X, Y], ["A2:A3"])
    write_ods(tmp_path / "body.ods", [site, X, Y], {(1, 0): ' table:number-rows-spanned="2"'})
    for ending in BOOKS:
        assert "'site'" in refusal(tmp_path / f"body.{ending}", task="site")
        assert "cells A2:A3 are merged" in refusal(tmp_path / f"body.{ending}")
        assert problem(read_table(tmp_path / f"body.{ending}"), drop=["site"]).n_used == 4
    write_excel(tmp_path / "head.xlsx", [("Blood", ["n", 1, 2, 3]), ("", ["m", 1, 2, 3]), X, Y], ["A1:B1"])
    assert "A1:B1 of the header are merged" in refusal(tmp_path / "head.xlsx")
    rows: list[list[Any]] = [["A report", None, None], ["n", "x", "y"], [1, 2, 3]]
    write_workbook(tmp_path / "title.xlsx", {"Sheet": rows})
    assert "A title?" in refusal(tmp_path / "title.xlsx")


@pytest.mark.parametrize("ending", BOOKS)
def test_formulas_without_a_result(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path, ending, ("n", [1, Formula("B2+B3"), 2, 3]))
    assert "cell A3 holds a formula without its result" in refusal(path)
    assert problem(read_table(path), drop=["n"]).n_used == 4


@pytest.mark.parametrize("ending", BOOKS)
def test_cells_of_several_kinds(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path, ending, ("n", [1, "2", 3, 4.5]))  # a number that was typed into a cell of text
    table = read_table(path)
    assert feature(problem(table), "n") == [1, 2, 3, 4.5]
    assert any("'n' (1, first A3)" in note for note in table.notes)
    path = written(tmp_path, ending, ("n", [1, "two", 3, 4]))
    assert "row 3 of the sheet, column 'n' is 'two'" in refusal(path)
    path = written(tmp_path, ending, ("n", [DAYS[0], "two", DAYS[1], DAYS[2]]))
    assert "holds dates and other things" in refusal(path)


# --- value labels and missing codes --------------------------------------------------------------------------------


def labelled(path: Path, **how: Any) -> None:
    frame = pd.DataFrame({"sex": [1.0, 2.0, 2.0, 1.0], "age": [30.0, 41.0, -9.0, 52.0], "y": Y[1]})
    write = pyreadstat.write_dta if path.suffix == ".dta" else pyreadstat.write_sav
    labels = {"sex": {1: "männlich", 2: "weiblich"}, "age": {-9: "no answer"}}
    write(frame, str(path), variable_value_labels=labels, **how)


@pytest.mark.parametrize("ending", ["dta", "sav"])
def test_value_labels(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"table.{ending}"
    labelled(path)
    table = read_table(path)
    assert table.columns["sex"].values.tolist() == ["männlich", "weiblich", "weiblich", "männlich"]
    assert any("value labels are read as words: columns 'sex'" in note for note in table.notes)
    said = refusal(path)
    assert "'age'" in said
    assert "-9 'no answer'" in said
    assert "--no-value-labels" in said
    found = problem(table, categorical=["age"], reference=["sex=männlich"])
    assert found.encoding.feature_names == ["sex=weiblich", "age=30", "age=41", "age=52", "age=no answer"]
    numbers = problem(read_table(path, value_labels=False))
    assert numbers.encoding.feature_names == ["sex", "age"]
    assert feature(numbers, "age") == [30, 41, -9, 52]
    # a target with labels on its scale is a number for models of numbers, and a class for those of classes
    assert prepare(table, target=["sex"], drop=["age"]).y.tolist() == [1, 2, 2, 1]
    assert prepare(table, target=["sex"], drop=["age"], classes=True).y.tolist()[0] == "männlich"


def test_missing_codes(tmp_path: Path) -> None:
    labelled(tmp_path / "t.sav", missing_ranges={"age": [-9]})
    table = read_table(tmp_path / "t.sav")
    assert "1 missing value(s)" in refusal(tmp_path / "t.sav")
    np.testing.assert_array_equal(table.columns["age"].values, [30, 41, np.nan, 52])
    frame = pd.DataFrame({"age": [30, 41, "a", 52], "y": Y[1]})
    pyreadstat.write_dta(frame, str(tmp_path / "t.dta"), missing_user_values={"age": ["a"]}, version=15)
    np.testing.assert_array_equal(read_table(tmp_path / "t.dta").columns["age"].values, [30, 41, np.nan, 52])


@pytest.mark.parametrize("ending", LABELLED)
def test_ids_are_found_among_doubles(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"table.{ending}"
    rng = np.random.default_rng(0)
    columns = [("person", list(range(1, 31))), ("x", rng.standard_normal(30).tolist())]
    WRITERS[ending](path, [*columns, ("y", rng.standard_normal(30).tolist())])
    assert problem(read_table(path)).encoding.feature_names == ["x"]


# --- text ----------------------------------------------------------------------------------------------------------


def test_a_german_file(tmp_path: Path) -> None:
    path = tmp_path / "klinik.csv"
    columns = [("Größe", ["1,5", "2,25", "0,5", "1,0"]), ("Ort", ["Köln", "Bonn", "Köln", "Bonn"])]
    columns += [("Datum", ["01.02.2020", "15.03.2020", "07.01.2019", "31.12.2021"])]
    write_german(path, [*columns, ("y", [1, 2, 3, 4])])
    table = read_table(path)
    assert table.recognised == {"format": "csv", "encoding": "cp1252", "separator": ";", "decimal": ","}
    assert "klinik.csv is not UTF-8: read as cp1252" in table.notes[0]
    found = problem(table)
    assert found.encoding.feature_names == ["Größe", "Ort=Köln"]
    assert feature(found, "Größe") == [1.5, 2.25, 0.5, 1.0]
    assert any("'Datum' is left out: it holds dates" in note for note in found.notes)


@pytest.mark.parametrize(("encoding", "found"), [("utf-8-sig", "utf-8"), ("utf-16", "utf-16"), ("utf-8", "utf-8")])
def test_encodings(tmp_path: Path, encoding: str, found: str) -> None:
    (tmp_path / "t.csv").write_bytes("Größe,y\n1,2\n3,4\n".encode(encoding))
    table = read_table(tmp_path / "t.csv")
    assert list(table.columns) == ["Größe", "y"]
    assert table.recognised["encoding"] == found
    assert table.notes == []
    assert list(read_table(tmp_path / "t.csv", encoding=encoding).columns) == ["Größe", "y"]


def test_text_that_is_not_utf8_after_its_first_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasksieve.tables.text_form.SAMPLE", 64)
    rows = "".join(f"{k},a\n" for k in range(100))
    (tmp_path / "t.csv").write_bytes(f"n,word\n{rows}1,Köln\n".encode("cp1252"))
    table = read_table(tmp_path / "t.csv")
    assert table.columns["word"].values[-1] == "Köln"
    assert "cp1252" in table.notes[0]
    with pytest.raises(TableError, match="--encoding"):
        read_table(tmp_path / "t.csv", encoding="utf-8")
    (tmp_path / "t.csv").write_bytes(f"n,word\n{rows}1,".encode() + bytes([0, 200, 3]) + b"\n")
    with pytest.raises(TableError, match="not UTF-8"):
        read_table(tmp_path / "t.csv")


def test_leading_zeros_after_the_first_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasksieve.tables.text_form.SAMPLE", 64)
    rows = "".join(f"{1000 + k},{k}.5,0{k}:30\n" for k in range(100))
    (tmp_path / "t.csv").write_text(f"zip,x,time\n{rows}0999,1.5,08:30\n")
    table = read_table(tmp_path / "t.csv")
    assert table.columns["zip"].values[-1] == "0999"
    assert table.columns["x"].kind == "number"
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"0{k}.5,1\n" for k in range(100)))
    assert read_table(tmp_path / "t.csv").columns["a"].kind == "number"


def test_a_comma_that_may_be_either(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("n;y\n1,234;1\n12,500;2\n")
    with pytest.raises(TableError, match=r"'1,234'.*--decimal"):
        read_table(path)
    assert read_table(path, decimal=",").columns["n"].values.tolist() == [1.234, 12.5]
    assert read_table(path, decimal=".").columns["n"].values.tolist() == [1234, 12500]
    path.write_text('n,y\n"1,234",1\n"12,500",2\n')  # commas are between the cells, too
    assert read_table(path).columns["n"].values.tolist() == [1234, 12500]


def test_points_in_a_file_of_commas(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b;y\n1,5;1.5;1\n2,5;2.25;2\n")
    assert "decimal comma" in refusal(tmp_path / "t.csv")
    with pytest.raises(TableError, match="with decimal points in a file of decimal commas"):
        problem(read_table(tmp_path / "t.csv", decimal=","))


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_separators_are_found(tmp_path: Path, sign: str) -> None:
    (tmp_path / "t.txt").write_text(f'a{sign}"b, c; d"{sign}y\n1{sign}2{sign}3\n4{sign}5{sign}6\n')
    table = read_table(tmp_path / "t.txt")
    assert list(table.columns) == ["a", "b, c; d", "y"]
    assert table.columns["y"].values.tolist() == [3, 6]


def test_decimals_are_the_nearest_doubles(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    numbers = rng.standard_normal(500) * 10.0 ** rng.integers(-12, 12, 500)
    (tmp_path / "t.csv").write_text("a;y\n" + "".join(f"{repr(float(v)).replace('.', ',')};1\n" for v in numbers))
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv").columns["a"].values, numbers)


# --- what is said about a file, and archives -----------------------------------------------------------------------


@pytest.mark.parametrize(("ending", "said", "words"), [
    ("csv", {"sheet": "A"}, "--sheet: is for files of format excel, ods"),
    ("xlsx", {"separator": ";"}, "--separator: is for files of format csv"),
    ("xlsx", {"encoding": "cp1252"}, "--encoding"),
    ("parquet", {"decimal": ","}, "--decimal"),
    ("xpt", {"value_labels": True}, "--value-labels"),
    ("csv", {"encoding": "klingon"}, "no encoding 'klingon'"),
    ("csv", {"decimal": ";"}, "--decimal"),
    ("xlsx", {"sheet": "B"}, "no sheet 'B'; it has 'Sheet'"),
])  # fmt: skip
def test_what_does_not_go_together(tmp_path: Path, ending: str, said: dict[str, Any], words: str) -> None:
    with pytest.raises(TableError, match=words):
        read_table(written(tmp_path, ending), **said)


def test_files_that_are_not_read_are_told_how(tmp_path: Path) -> None:
    for name, words in (("a.xls", "save it as .xlsx"), ("a.rds", "from R"), ("a.pkl", "could run code")):
        (tmp_path / name).write_bytes(b"?")
        with pytest.raises(TableError, match=words):
            read_table(tmp_path / name)
    (tmp_path / "a.parquet.gz").write_bytes(b"?")
    with pytest.raises(TableError, match="unpack it"):
        read_table(tmp_path / "a.parquet.gz")
    import zipfile

    with zipfile.ZipFile(tmp_path / "two.csv.zip", "w") as archive:
        archive.writestr("a.csv", "a,y\n1,2\n")
        archive.writestr("b.csv", "a,y\n1,2\n")
    with pytest.raises(TableError, match=r"2 files \(a.csv, b.csv\)"):
        read_table(tmp_path / "two.csv.zip")


@pytest.mark.parametrize("ending", [*BOOKS, *LABELLED])
def test_broken_files(tmp_path: Path, ending: str) -> None:
    path = written(tmp_path, ending)
    content = path.read_bytes()
    for spoilt in (content[: len(content) // 2], content[:10], b"a,b\n1,2\n" * 50):
        path.write_bytes(spoilt)
        with pytest.raises(TableError, match="table"):
            read_table(path)


def test_sheets(tmp_path: Path) -> None:
    head = ["x", "y"]
    sheets: dict[str, list[list[Any]]] = {"north": [head, [1, 2]], "south": [head, [3, 4], [5, 6]], "notes": []}
    write_workbook(tmp_path / "book.xlsx", sheets)
    with pytest.raises(TableError, match=r"2 sheets: 'north', 'south'. --sheet"):
        read_table(tmp_path / "book.xlsx")
    assert read_table(tmp_path / "book.xlsx", sheet="south").columns["y"].values.tolist() == [4, 6]
    found = read_sheets(tmp_path / "book.xlsx", ["*"])
    assert list(found) == ["north", "south"]
    assert "sheets without a cell are left out: 'notes'" in found["north"].notes[0]
    with pytest.raises(TableError, match="'notes' holds no cell"):
        read_sheets(tmp_path / "book.xlsx", ["north", "notes"])
    with pytest.raises(TableError, match="no sheet 'w\\*'"):
        read_sheets(tmp_path / "book.xlsx", ["w*"])
    write_workbook(tmp_path / "book.xlsx", {"north": sheets["north"], "notes": []})
    assert "'notes' hold no cell" in read_table(tmp_path / "book.xlsx").notes[0]


def test_a_spreadsheet_written_by_odfpy(tmp_path: Path) -> None:
    pytest.importorskip("odf")
    frame = pd.DataFrame({"n": [1, 2, 3], "t": [True, False, True], "w": ["a", "b  c", None]})
    frame["day"] = pd.to_datetime(DAYS[:3])
    frame.to_excel(tmp_path / "t.ods", engine="odf", index=False)
    table = read_table(tmp_path / "t.ods")
    assert table.columns["n"].values.tolist() == [1, 2, 3]
    assert table.columns["t"].values.tolist() == [1, 0, 1]
    assert table.columns["day"].kind == "date"
    assert table.columns["w"].values.tolist() == ["a", "b  c", None]
