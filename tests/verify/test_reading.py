"""Untrusted files: a clear message, exit code 2 or 1, no traceback, no large allocation."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_cases import make_case
from hand_certificates import Case, pack

from tasksieve.verify import Mismatch, Unreadable, main, read_certificate, read_table, verify


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case("squared", "l21", 1, rows=6, d=3)


@pytest.fixture(scope="module")
def raw(case: Case) -> bytes:
    return case.save()


def members(raw: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_truncated(raw: bytes, part: float) -> None:
    with pytest.raises(Unreadable):
        read_certificate(raw[: int(part * len(raw))])


def test_archives_that_are_none(raw: bytes, tmp_path: Path) -> None:
    files = members(raw)
    with pytest.raises(Unreadable, match="compressed"):
        read_certificate(zipped(files, zipfile.ZIP_DEFLATED))
    with pytest.raises(Unreadable, match=r"no header\.json"):
        read_certificate(zipped({k: v for k, v in files.items() if k != "header.json"}))
    with pytest.raises(Unreadable, match="unexpected file"):
        read_certificate(zipped({**files, "extra.py": b"print()"}))
    with pytest.raises(Unreadable, match="not a whole certificate"):
        read_certificate(b"PK\x03\x04 nothing")
    with pytest.raises(Unreadable, match="cannot read"):
        read_certificate(tmp_path / "none.npz")
    with pytest.raises(Unreadable, match="cannot read"):
        read_certificate(tmp_path)
    bomb = zipped({**files, "dual.npy": bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    with pytest.raises(Unreadable, match="more than its own size"):
        read_certificate(bomb)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def npy(header: str, body: bytes = b"") -> bytes:
    text = header.encode() + b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }", bytes(8)), "has shape"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", bytes(8)), "has shape"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8)), "little-endian"),
        (npy("{'descr': '>f8', 'fortran_order': False, 'shape': (1,), }", bytes(8)), "little-endian"),
        (npy("{'descr': '<f8', 'fortran_order': True, 'shape': (1, 1), }", bytes(8)), "C order"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", np.array([np.nan]).tobytes()), "NaN"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", np.array([np.inf]).tobytes()), "NaN"),
        (npy("__import__('os').getcwd()"), "array 'gap.npy'"),
        (b"\x93NUMPY\x03\x00" + bytes(20), "version 1.0"),
        (b"nothing", "array 'gap.npy'"),
        (b"", "array 'gap.npy'"),
    ],
)
def test_arrays_that_are_none(raw: bytes, content: bytes, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        read_certificate(zipped({**members(raw), "gap.npy": content}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 2}, "version 2: this program reads 1; get a newer one"),
        ({"version": None}, "version None"),
        ({"format": "model"}, "not a certificate"),
        ({"rows": [6]}, "'rows'"),
        ({"rows": [6, -1]}, "'rows'"),
        ({"tasks": [0, "0"]}, "names a task twice"),
        ({"n_features": 10**30}, "n_features"),
        ({"n_features": True}, "n_features"),
        ({"unit": 0}, "unit"),
        ({"unit": "1"}, "unit"),
        ({"unit": 10**400}, "unit"),
        ({"digests": {}}, r"digests\.matrices"),
        ({"loss": {"name": "hinge"}}, "unknown loss"),
        ({"loss": {"name": "logistic"}}, "'classes' is missing"),
        ({"loss": {"name": "clipped", "mu": 1.0, "labels": "numbers", "low": 1.0, "high": 2.0}}, "low <= 0 <= high"),
        ({"loss": {"name": "clipped", "mu": -1.0, "labels": "numbers", "low": None, "high": None}}, r"loss\.mu"),
        ({"penalty": {"name": "lasso"}}, "unknown penalty"),
        ({"penalty": {"name": "rows", "power": 2}}, "'power' is not known"),
        ({"penalty": {"name": "none"}}, "positive ridge"),
        ({"penalty": {"name": "sorted"}}, "'sorted_weights' is missing"),
        ({"penalty": {"name": "groups"}}, "'group_weights' is missing"),
        ({"task_weights": [1.0]}, "task_weights"),
        ({"intercept": 2.0}, "intercept must be"),
        ({"intercept": False}, "there are intercepts"),
        ({"alpha": 1.0}, "'alpha' is not known"),
        ({"features": ["a"]}, "'features'"),
        ({"table": {}}, "'table'"),
    ],
)
def test_headers_that_make_no_sense(case: Case, changes: dict[str, Any], words: str) -> None:
    header, arrays = case.content()
    with pytest.raises(Unreadable, match=words):
        read_certificate(pack({**header, **changes}, arrays))


def test_headers_that_are_no_json(raw: bytes) -> None:
    for content in (b"{", b"\xff\xfe", b"[]", b'{"unit": NaN}', b"[" * 100_000):
        with pytest.raises(Unreadable):
            read_certificate(zipped({**members(raw), "header.json": content}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gap": np.array([-1e-9])}, "less than 0"),
        ({"alpha": np.array([0.0])}, "positive numbers"),
        ({"alpha": np.zeros(0)}, "positive numbers"),
        ({"dual": np.zeros((1, 3))}, "'dual' must be float64 of shape"),
        ({"feature": np.array([10**9])}, "shape"),
        ({"start": np.array([0, 10**15])}, "'feature' must be int64 of shape"),
        ({"start": np.array([0, -1])}, "less than 0"),
        ({"open": np.array([1])}, "'open_start' is missing"),
        ({"sure": np.array([7]), "sure_start": np.array([0, 1])}, "too large"),
        ({"edges": np.array([[0.0, 1.0], [2.0, 0.0]])}, "symmetric"),
        ({"feature_weights": np.array([1.0, -1.0, 1.0])}, "less than 0"),
        ({"weights": np.ones(3)}, "not known"),
    ],
)
def test_arrays_that_make_no_sense(case: Case, changes: dict[str, Any], words: str) -> None:
    header, arrays = case.content()
    with pytest.raises(Unreadable, match=words):
        read_certificate(pack(header, {**arrays, **changes}))


def test_other_data_are_named(case: Case, raw: bytes) -> None:
    x, y = case.x, case.y

    def words(x: Any, y: Any, **more: Any) -> str:
        verdict = verify(raw, x, y, **more)
        assert not verdict.proved
        return verdict.words

    assert "task 1: X is not the matrix" in words([x[0], x[1][::-1]], y)
    assert "task 0: X is not the matrix" in words([x[0][:, ::-1], x[1]], y)
    assert "task 1: y, weights or offsets" in words(x, [y[0], y[1][::-1]])
    assert "task 1: y, weights or offsets" in words(x, y, sample_weight=[np.ones(len(y[0])), np.full(len(y[1]), 2.0)])
    assert "task 0 has 5 rows and 3 features, in the certificate" in words([x[0][:5], x[1]], [y[0][:5], y[1]])
    assert "1 tasks, the certificate has 2" in words(x[:1], y[:1])
    assert "without offset" in words(x, y, offset=y)
    assert "give the task of each row" in words(np.vstack(x), np.concatenate(y))
    task = np.repeat([0, 7], [len(y[0]), len(y[1])])
    assert "task '7'" in words(np.vstack(x), np.concatenate(y), task=task)
    assert "must be numbers" in words(x, [y[0], np.array(["a"] * len(y[1]))])


def test_data_in_any_form_prove_the_same(case: Case, raw: bytes) -> None:
    from scipy import sparse

    x, y = np.vstack(case.x), np.concatenate(case.y)
    task = np.repeat(["0", "1"], [len(v) for v in case.y])
    mixed = np.argsort(np.concatenate([np.arange(len(v)) for v in case.y]), kind="stable")  # tasks take turns
    assert verify(raw, x[mixed], y[mixed], task=task[mixed]).proved
    assert verify(raw, {"1": case.x[1], 0: case.x[0]}, {0: case.y[0], 1: case.y[1]}).proved
    assert verify(raw, sparse.csr_matrix(x), y, task=task.astype(int)).proved
    assert verify(raw, [sparse.csc_array(block) for block in case.x], case.y).proved
    more_x, more_y = np.vstack([x, np.ones((2, 3))]), np.concatenate([y, [np.nan, 5.0]])
    weight = np.concatenate([np.ones(len(y) + 1), [0.0]])
    assert verify(raw, more_x, more_y, task=np.append(task, ["0", "1"]), sample_weight=weight).proved


def table_case() -> tuple[Case, dict[str, Any]]:
    case = make_case("logistic", "l21", 3, rows=6, d=3, weights=True)
    for block in case.x:
        block[:, 1] = (block[:, 1] > 0).astype(float)
        block[0, 2] = 2.5
    table = {
        "columns": [{"source": "age"}, {"source": "colour", "equals": "red"}, {"source": "dose", "fill": 2.5}],
        "target": "ill", "task": "site", "weight": "w", "offset": None, "missing": ["", "NA"], "drop": True,
        "separator": ",",
    }  # fmt: skip
    return case, table


def write_table(case: Case, path: Path) -> None:
    lines = ["site,ill,colour,age,dose,w,note"]
    assert case.weight is not None
    for t, block in enumerate(case.x):
        for i, row in enumerate(block):
            dose = "NA" if i == 0 else repr(float(row[2]))
            cells = [t, case.classes[int(case.y[t][i])], "red" if row[1] else "blue", repr(float(row[0])), dose]
            lines.append(",".join(map(str, [*cells, repr(float(case.weight[t][i])), '"a, b"'])))
    lines.append("0,,red,1.0,1.0,1.0,no label")
    lines.append("1,a,red,,1.0,1.0,no age")
    path.write_text("\n".join(lines) + "\n")


def test_a_table_by_its_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case, table = table_case()
    header, arrays = case.content(1e-6)
    header["table"] = table
    file, data = tmp_path / "certificate.npz", tmp_path / "table.csv"
    file.write_bytes(pack(header, arrays))
    write_table(case, data)
    assert main([str(file), str(data)]) == 0
    assert capsys.readouterr().out.startswith("proved: ")
    text = data.read_text()
    first = text.split("\n")[2].split(",")[3]
    for wrong, words in (
        (text.replace(first, first[:-1] + "0" if first[-1] != "0" else first[:-1] + "1", 1), "X is not the matrix"),
        (text.replace("age", "years"), "0 columns 'age'"),
        (text.replace(first, "old", 1), "'old' is not a number"),
        (text.replace(first, "nan", 1), "'nan' is not a finite number"),
        (text.replace("\n0,", "\n5,", 1), "task '5'"),
        (text.replace(",a,", ",q,", 1), "class 'q'"),
        (text + "1,2\n", "2 cells, not 7"),
        ("", "0 columns 'age'"),
    ):
        data.write_text(wrong)
        assert main([str(file), str(data)]) == 1
        assert words in capsys.readouterr().out
    assert main([str(file), str(tmp_path / "none.csv")]) == 2
    table["drop"] = False
    write_table(case, data)
    with pytest.raises(Mismatch, match="a value is missing"):
        read_table(read_certificate(pack({**header, "table": table}, arrays)), str(data))


def test_a_table_with_a_target_for_each_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = make_case("squared", "l21", 3, rows=8, d=2, shared=True)
    header, arrays = case.content(1e-6)
    columns = [{"source": "u"}, {"source": "v"}]
    header["table"] = {"columns": columns, "target": ["a", "b"], "missing": [""], "drop": False, "separator": ";"}
    file, data = tmp_path / "certificate.npz", tmp_path / "table.csv"
    file.write_bytes(pack(header, arrays))
    rows = np.column_stack([case.x[0], case.y[0], case.y[1]])
    data.write_text("u;v;a;b\n" + "".join(";".join(map(repr, row)) + "\n" for row in rows.tolist()))
    assert main([str(file), str(data)]) == 0
    data.write_text(data.read_text().replace("u;v;a;b", "u;v;b;a"))
    assert main([str(file), str(data)]) == 1
    assert "task 0: y, weights or offsets are not those" in capsys.readouterr().out


def test_numbers_of_any_kind_have_one_digest() -> None:
    from scipy import sparse

    case = make_case("squared", "l21", 2, rows=9, d=4)
    case.x = [np.round(x) + 0.0 for x in case.x]
    case.coef, case.intercept = np.zeros_like(case.coef), np.array([y.mean() for y in case.y])
    raw = case.save(1e-6)
    kinds = [np.float64, np.float32, np.int8, np.int64]
    for form in (*(lambda x, kind=kind: x.astype(kind) for kind in kinds), np.asfortranarray, sparse.csr_matrix):
        assert verify(raw, [form(x) for x in case.x], case.y).proved
    for form in (lambda x: np.where(x == 0.0, -0.0, x), lambda x: x[::1, :]):
        assert verify(raw, [form(x) for x in case.x], case.y).proved


def test_commands_that_cannot_be_read(raw: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, data = tmp_path / "certificate.npz", tmp_path / "data.npz"
    file.write_bytes(raw)
    assert main([str(file)]) == 2
    assert "give a file of data" in capsys.readouterr().err
    assert main([str(file), str(tmp_path / "table.csv")]) == 2
    assert "does not say how a table was read" in capsys.readouterr().err
    assert main([str(file), str(data)]) == 2
    np.savez(data, Z=np.ones(3))
    assert main([str(file), str(data)]) == 2
    assert "arrays X and y" in capsys.readouterr().err
    np.savez(data, X=np.array([{}], dtype=object), y=np.ones(1))
    assert main([str(file), str(data)]) == 2
    assert main([str(file), "--matrix", str(tmp_path / "x.npy"), "--y", str(file)]) == 2
    np.savez(data, X=np.ones(3), y=np.ones(3))
    assert main([str(file), str(data)]) == 1
    assert main([str(file), str(data), "--value", "5"]) == 2
    assert "there is no value 5" in capsys.readouterr().err
    assert json.loads(members(raw)["header.json"])["version"] == 1
