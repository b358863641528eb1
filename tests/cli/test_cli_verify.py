"""tasksieve verify: the certificate that a run leaves, and what is said of runs and data that do not go with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, classification_csv, regression_csv

from tasksieve import verify
from tasksieve.cli.run_claims import _same
from tasksieve.proof.certificate import Certificate
from tasksieve.runs import RunFolder, load_model
from tasksieve.runs.arrays import pack_names
from tasksieve.tables import Encoding, write_arrays

QUICK = ("--no-report", "--quiet")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return regression_csv(tmp_path / "data.csv")


@pytest.fixture
def run(table: Path, tmp_path: Path, cli: CommandLine) -> Path:
    words = ("--target", "y", "--task", "region", "--alpha", "0.1", "--tol", "1e-4", "--out", tmp_path / "run", *QUICK)
    cli("fit", table, *words)
    return tmp_path / "run"


def alone(folder: Path, *words: Any, python: Path | str = sys.executable) -> subprocess.CompletedProcess[str]:
    """The verifier by itself, in an empty folder."""
    folder.mkdir()
    shutil.copy(verify.__file__, folder / "verify.py")
    command = [str(python), "-I", "verify.py", *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_run_is_proved_by_tasksieve_and_without_it(
    run: Path, table: Path, tmp_path: Path, cli: CommandLine
) -> None:
    found = cli("verify", run)
    assert found.out.startswith("proved: no model of this kind is better by more than ")
    assert cli("verify", run, "--exact").out.startswith("proved")
    assert cli("verify", run / "certificate.npz", "--data", table).out.startswith("proved")
    found = alone(tmp_path / "empty", run / "certificate.npz", table)
    assert (found.returncode, found.stderr) == (0, "")
    header = verify.read_certificate(run / "certificate.npz").header
    assert header["table"]["columns"][:2] == [{"source": "city", "equals": "Oslo"}, {"source": "a"}]


def test_of_many_rows_and_values_the_chosen_one_is_proved(
    table: Path, tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasksieve.cli.proof_file.MOST_NUMBERS", 10)
    asked = ("--target", "y", "--task", "region", "--alphas", "8")
    cli("fit", table, *asked, "--cv", "3", "--out", tmp_path / "run", "--quiet")
    assert verify.read_certificate(tmp_path / "run" / "certificate.npz").n_values == 1
    assert cli("verify", tmp_path / "run").out.startswith("proved: no model of this kind")
    cli("report", tmp_path / "run")
    cli("path", table, *asked, "--out", tmp_path / "path", *QUICK)
    assert not (tmp_path / "path" / "certificate.npz").exists()


def test_the_demo_is_proved_by_the_verifier_alone(tmp_path: Path, cli: CommandLine) -> None:
    cli("demo", "--out", tmp_path / "demo", *QUICK)
    run = tmp_path / "demo" / "run"
    chosen = verify.read_certificate(run / "certificate.npz").header["about"]["chosen"]
    words = [run / "certificate.npz", tmp_path / "demo" / "digits.npz", "--value", chosen]
    found = alone(tmp_path / "empty", *words)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.slow
def test_the_demo_is_proved_where_there_is_numpy_and_nothing_else(tmp_path: Path, cli: CommandLine) -> None:
    """An environment of its own, to which NumPy's own folders are copied: that needs no network."""
    venv.create(tmp_path / "numpy-only", with_pip=False)
    python = tmp_path / "numpy-only" / ("Scripts" if os.name == "nt" else "bin") / "python"

    def ask(program: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(python), "-I", "-c", program], capture_output=True, text=True, check=False)

    packages = Path(ask("import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())
    for part in (Path(np.__file__).parent, Path(np.__file__).parent.with_name("numpy.libs")):
        if part.is_dir():
            shutil.copytree(part, packages / part.name)
    assert {path.name for path in packages.iterdir()} <= {"numpy", "numpy.libs"}
    assert ask("import numpy").returncode == 0
    for name in ("tasksieve", "scipy", "sklearn"):
        assert "ModuleNotFoundError" in ask(f"import {name}").stderr
    cli("demo", "--out", tmp_path / "demo", *QUICK)
    run = tmp_path / "demo" / "run"
    found = alone(tmp_path / "empty", run / "certificate.npz", tmp_path / "demo" / "digits.npz", python=python)
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.startswith("proved: none of ")


def test_tables_of_every_kind(tmp_path: Path, cli: CommandLine) -> None:
    rng = np.random.default_rng(0)
    n = 60
    lines = ["who;a;b;yes;code;colour;y;w;o"]
    for i in range(n):
        a = "NA" if i in (3, 17) else repr(float(rng.standard_normal()))
        b = repr(float(rng.standard_normal() * 1e-7 / 3.0))
        y = "" if i == 9 else repr(float(rng.standard_normal()))
        yes, code = ("True", "False")[i % 2], (10, 20, 30)[i % 3]
        colour = ("rot", "grün", "a b")[(i * i) % 3]
        lines.append(f"{('x', 'y')[i % 2 == 0]};{a};{b};{yes};{code};{colour};{y};{1 + i % 3};{0.1 * i!r}")
    file = tmp_path / "data.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ["--separator", ";", "--target", "y", "--task", "who", "--categorical", "code", "--alpha", "0.1", *QUICK]
    for k, more in enumerate((["--missing", "mean", "--weights", "w", "--offset", "o"], ["--missing", "drop"])):
        out = tmp_path / f"run{k}"
        cli("fit", file, *words, *more, "--out", out)
        assert "table" in verify.read_certificate(out / "certificate.npz").header, (out / "log.txt").read_text()
        cli("verify", out)


def test_classes_paths_and_cross_validation(tmp_path: Path, cli: CommandLine) -> None:
    file = classification_csv(tmp_path / "data.csv")
    words = ("--target", "state", "--task", "site", "--model", "logistic", "--alphas", "4", *QUICK)
    cli("fit", file, *words, "--out", tmp_path / "fit")
    cli("path", file, *words, "--out", tmp_path / "path")
    for run in ("fit", "path"):
        assert "table" in verify.read_certificate(tmp_path / run / "certificate.npz").header
        assert "none of 4 models" in cli("verify", tmp_path / run, "--all").out
        cli("verify", tmp_path / run, "--value", "1")
    assert "no model" in cli("verify", tmp_path / "fit").out
    assert "none of 4" in cli("verify", tmp_path / "path").out  # nothing was chosen
    assert cli("verify", tmp_path / "fit", "--value", "9", code=2).err.startswith("tasksieve: cannot be read")
    cli("verify", tmp_path / "fit", "--value", "1", "--all", code=2)


def test_what_the_recipe_has_no_words_for_is_read_as_the_fit_has_read_it(
    tmp_path: Path, cli: CommandLine
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    write_arrays(tmp_path / "wide.npz", {"X": X, "out": X[:, :2] + 0.1})
    cli("fit", tmp_path / "wide.npz", "--target", "out", "--alpha", "0.1", "--out", tmp_path / "run", *QUICK)
    cli("verify", tmp_path / "run")
    write_arrays(tmp_path / "wide.npz", {"X": X, "out": X[:, :2] + 0.2})
    assert "digest" in cli("verify", tmp_path / "run", code=1).out


def test_several_targets_share_a_matrix(tmp_path: Path, cli: CommandLine) -> None:
    rng = np.random.default_rng(0)
    lines = ["p,q,a,b,c"]
    for i in range(40):
        a, b, c = rng.standard_normal(3).tolist()
        lines.append(f"{'' if i == 4 else repr(a + b)},{c!r},{a!r},{b!r},{c!r}")
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    words = ("--target", "p", "--target", "q", "--alpha", "0.1", "--out", tmp_path / "run", *QUICK)
    cli("fit", tmp_path / "data.csv", *words)
    assert verify.read_certificate(tmp_path / "run" / "certificate.npz").header["table"]["target"] == ["p", "q"]
    assert alone(tmp_path / "empty", tmp_path / "run" / "certificate.npz", tmp_path / "data.csv").returncode == 0


def test_a_machine_on_a_graph(tmp_path: Path, cli: CommandLine) -> None:
    file = classification_csv(tmp_path / "data.csv")
    words = ("--target", "state", "--task", "site", "--model", "graph-svm", "--graph", "complete", *QUICK)
    cli("fit", file, *words, "--out", tmp_path / "run")
    cli("verify", tmp_path / "run")


@pytest.mark.parametrize("change", ["digit", "columns", "rows", "fewer"])
def test_other_data_are_refused(run: Path, table: Path, change: str, tmp_path: Path, cli: CommandLine) -> None:
    lines = table.read_text().splitlines()
    if change == "digit":
        lines[5] = lines[5][:-1] + str((int(lines[5][-1]) + 1) % 10)
    elif change == "columns":
        lines[0] = lines[0].replace("a,b", "b,a")
    elif change == "rows":
        lines[1], lines[2] = lines[2], lines[1]
        lines[3], lines[4] = lines[4], lines[3]
        lines[1:] = sorted(lines[1:])
    else:
        del lines[7]
    other = tmp_path / "other.csv"
    other.write_text("\n".join(lines) + "\n")
    found = cli("verify", run, "--data", other, code=1)
    assert found.out.startswith("not proved:")


def test_data_that_are_not_there_or_no_data(run: Path, tmp_path: Path, cli: CommandLine) -> None:
    assert "cannot be read" in cli("verify", run, "--data", tmp_path / "nothing.csv", code=2).err
    (tmp_path / "noise.csv").write_bytes(b"\xff\xfe\x00region")
    assert "not proved" in cli("verify", run, "--data", tmp_path / "noise.csv", code=1).out
    assert "cannot be read" in cli("verify", tmp_path / "no-run", code=2).err
    (run / "certificate.npz").unlink()
    assert "no certificate.npz" in cli("verify", run, code=2).err


def test_tampered_runs_are_refused(run: Path, tmp_path: Path, cli: CommandLine) -> None:
    for name, change in (("coefficients.csv", b"0"), ("model.npz", b"x")):
        copy = tmp_path / f"changed-{name}"
        shutil.copytree(run, copy)
        with open(copy / name, "ab") as file:
            file.write(change)
        assert name in cli("verify", copy, code=1).out
    # a lie that is told everywhere: the manifest agrees
    copy = tmp_path / "lie"
    shutil.copytree(run, copy)
    content = json.loads((copy / "certificate.json").read_text())
    (copy / "certificate.json").write_text(json.dumps({**content, "objective": content["objective"] / 2}))
    RunFolder(copy).finish()
    assert "certificate.json" in cli("verify", copy, code=1).out
    copy = tmp_path / "other"
    shutil.copytree(run, copy)
    words = ("--target", "y", "--task", "region", "--alpha", "0.2", "--out", tmp_path / "second", *QUICK)
    cli("fit", tmp_path / "data.csv", *words)
    shutil.copy(tmp_path / "second" / "certificate.npz", copy / "certificate.npz")
    RunFolder(copy).finish()
    assert "alpha of the model is 0.1, in certificate.npz 0.2" in cli("verify", copy, code=1).out


def test_a_truncated_certificate_is_unreadable(run: Path, cli: CommandLine) -> None:
    whole = (run / "certificate.npz").read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        (run / "certificate.npz").write_bytes(whole[:size])
        assert "cannot be read" in cli("verify", run, code=2).err


def forged(run: Path, copy: Path, change: Any) -> Path:
    """A copy of a run with some of its files changed, and a manifest that says so."""
    shutil.copytree(run, copy)
    change(copy)
    RunFolder(copy).finish()
    return copy


def change_json(name: str, **numbers: Any) -> Any:
    def change(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        for key, value in numbers.items():
            *inside, last = key.split("__")
            part = content
            for word in inside:
                part = part[word]
            part[last] = value
        (folder / name).write_text(json.dumps(content))

    return change


def change_arrays(name: str, change_them: Any, **options: Any) -> Any:
    def change(folder: Path) -> None:
        with np.load(folder / name) as file:
            arrays = {key: file[key] for key in file.files}
        change_them(arrays)
        write_arrays(folder / name, arrays, **options)

    return change


def change_certificate(of_header: Any = None, of_arrays: Any = None) -> Any:
    def change(folder: Path) -> None:
        found = verify.read_certificate(folder / "certificate.npz")
        header, arrays = json.loads(json.dumps(found.header)), {k: v.copy() for k, v in found.arrays.items()}
        if of_header is not None:
            of_header(header)
        if of_arrays is not None:
            of_arrays(arrays)
        Certificate(header, arrays).save(folder / "certificate.npz")

    return change


def together(*changes: Any) -> Any:
    return lambda folder: [change(folder) for change in changes]


def times(name: str, factor: float) -> Any:
    def change(arrays: dict[str, Any]) -> None:
        arrays[name] = arrays[name] * factor

    return change


def forget_chosen(header: dict[str, Any]) -> None:
    del header["about"]["chosen"]


def backwards(header: dict[str, Any]) -> None:
    header["features"] = header["features"][::-1]


def first_twice(header: dict[str, Any]) -> None:
    header["features"][1] = header["features"][0]


def encode_backwards(folder: Path) -> None:
    """Model and certificate agree on names that are not those of the columns."""
    with np.load(folder / "model.npz") as file:
        arrays = {key: file[key] for key in file.files}
    content = json.loads((folder / "model.json").read_text())
    turned = Encoding(load_model(RunFolder(folder)).encoding.columns[::-1])
    content["encoding"], names = turned.to_json(), turned.feature_names
    (folder / "model.json").write_text(json.dumps(content))
    arrays["feature_names"], arrays["feature_ends"] = pack_names(names)
    write_arrays(folder / "model.npz", arrays)
    change_certificate(lambda header: header.update(features=names))(folder)


def other_names(folder: Path) -> None:
    text = (folder / "coefficients.csv").read_text().splitlines()
    cells = [line.split(",") for line in text]
    cells[1][1], cells[2][1] = cells[2][1], cells[1][1]
    (folder / "coefficients.csv").write_text("\n".join(map(",".join, cells)) + "\n")


def repeated_line(folder: Path) -> None:
    text = (folder / "coefficients.csv").read_text().splitlines()
    (folder / "coefficients.csv").write_text("\n".join([*text, text[-1]]) + "\n")


def other_parquet(folder: Path) -> None:
    frame = pd.read_parquet(folder / "coefficients.parquet")
    frame.assign(coefficient=-frame["coefficient"]).to_parquet(folder / "coefficients.parquet", index=False)


def other_columns(folder: Path) -> None:
    text = (folder / "coefficients.csv").read_text()
    (folder / "coefficients.csv").write_text(text.replace("coefficient", "value", 1))


TIMES_7 = change_arrays("model.npz", times("coef_data", -7.0))
FORGERIES: dict[str, tuple[Any, str]] = {
    "coefficients": (TIMES_7, "the coefficients are not those"),
    "coefficients, no chosen value": (together(TIMES_7, change_certificate(forget_chosen)), "the coefficients are not"),
    "intercepts": (change_arrays("model.npz", times("intercept", 2.0)), "the coefficients are not those"),
    "gap": (change_json("certificate.json", dual_gap=1e-30), "has the duality gap 1e-30"),
    "gap of the model": (change_json("model.json", dual_gap=1e-30), "1e-30 in model.json"),
    "gap everywhere": (
        together(
            change_json("model.json", dual_gap=1e-30),
            change_json("certificate.json", dual_gap=1e-30, relative_gap=1e-30, null_objective=1.0),
            change_json("model.json", null_objective=1.0),
        ),
        "has the duality gap 1e-30",
    ),
    "relative gap": (change_json("certificate.json", relative_gap=1e-30), "has a relative gap of 1e-30"),
    "objective": (change_json("certificate.json", objective=1e-3), "has objective 0.001"),
    "objective of the model": (change_json("model.json", objective=1e-3), "0.001 in model.json"),
    "alpha": (change_json("model.json", params__alpha=99.0), "alpha of the model is 99.0"),
    "standardisation": (change_json("model.json", params__standardize=False), "standardize of the model is False"),
    "sign": (change_json("model.json", params__positive=True), "positive of the model is True"),
    "class": (change_json("model.json", **{"class": "MultiTaskElasticNet", "model": "elastic-net"}), ""),
    "weights of tasks": (change_json("model.json", params__task_weights="balanced"), "task_weights of the model"),
    "names backwards": (change_certificate(backwards), "the features of model.npz are not those"),
    "a name twice": (change_certificate(first_twice), "the features of model.npz are not those"),
    "columns backwards": (encode_backwards, "in certificate.npz"),
    "coefficients.csv": (other_names, "coefficients.csv does not hold"),
    "coefficients.parquet": (other_parquet, "coefficients.parquet does not hold"),
    "columns of the table": (other_columns, "coefficients.csv cannot be read"),
    "a line twice": (repeated_line, "coefficients.csv does not hold"),
    "certificate of another alpha": (change_certificate(None, times("alpha", 3.0)), ""),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_run_that_says_something_else_is_not_proved(run: Path, tmp_path: Path, cli: CommandLine, name: str) -> None:
    change, words = FORGERIES[name]
    found = cli("verify", forged(run, tmp_path / "forged", change), code=1)
    assert found.out.startswith("not proved"), found.out
    assert words in found.out


def test_a_path_that_says_something_else_is_not_proved(table: Path, tmp_path: Path, cli: CommandLine) -> None:
    run = tmp_path / "path"
    cli("path", table, "--target", "y", "--task", "region", "--alphas", "6", "--out", run, *QUICK)
    assert cli("verify", run).out.startswith("proved: none of 6 models")
    changed = {"coef_data": -7.0, "dual_gaps": 1e-9, "objectives": 0.5, "alphas": 2.0, "relative_gaps": 0.1}
    for k, (key, factor) in enumerate(changed.items()):
        change = change_arrays("path.npz", times(key, factor))
        found = cli("verify", forged(run, tmp_path / f"forged-{k}", change), code=1)
        assert found.out.startswith("not proved"), key

    def other_table(folder: Path) -> None:
        frame = pd.read_csv(folder / "path.csv")
        frame.assign(dual_gaps=1e-9 * frame["dual_gaps"]).to_csv(folder / "path.csv", index=False)

    found = cli("verify", forged(run, tmp_path / "forged-table", other_table), code=1)
    assert "dual_gaps of path.csv are not those of path.npz" in found.out


def test_a_path_of_another_ridge_is_not_proved(table: Path, tmp_path: Path, cli: CommandLine) -> None:
    """The ridge of every value is that of the model at its alpha, and not what the certificate says it is."""
    words = ("--target", "y", "--task", "region", "--model", "elastic-net", "--alphas", "4", "--l1-ratio", 0.5, *QUICK)
    run = tmp_path / "run"
    cli("path", table, *words, "--out", run)
    assert cli("verify", run).out.startswith("proved")

    def stronger(arrays: dict[str, Any]) -> None:
        arrays["ridge"][0] *= 1.5

    found = cli("verify", forged(run, tmp_path / "forged", change_certificate(None, stronger)), code=1)
    assert "ridge of the model is" in found.out


def test_many_rows_solved_to_rounding_are_proved(tmp_path: Path, cli: CommandLine) -> None:
    """The rounding of sums over so many rows is in the certificate's gap, and at W = 0 not in the fit's."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 2))
    y = (X[:, 0] + rng.standard_normal(len(X)) > 0.0).astype(float)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    words = ("fit", tmp_path / "t.npz", "--target", "y", "--model", "logistic", "--alpha", "10", *QUICK)
    cli(*words, "--out", tmp_path / "run")
    assert cli("verify", tmp_path / "run").out.startswith("proved")


@pytest.mark.parametrize(("label", "model"), [(0, "lasso"), (3, "lasso"), (3, "calibrated"), (0.1, "quantile")])
def test_labels_that_the_empty_model_explains_are_proved(
    tmp_path: Path, cli: CommandLine, label: float, model: str
) -> None:
    """All that is left of the objective is the rounding of the labels, which the fit and the verifier count each in
    its own way."""
    table = pd.read_csv(regression_csv(tmp_path / "data.csv")).assign(y=label)
    table.to_csv(tmp_path / "constant.csv", index=False)
    words = ("--target", "y", "--task", "region", "--alpha", "0.1", "--model", model, "--out", tmp_path / "run", *QUICK)
    cli("fit", tmp_path / "constant.csv", *words)
    assert cli("verify", tmp_path / "run").out.startswith("proved")
    lie = forged(tmp_path / "run", tmp_path / "lie", change_json("certificate.json", objective=1e-9))
    assert "has objective 1e-09" in cli("verify", lie, code=1).out


def test_a_certificate_of_the_chosen_value_says_what_it_is_not_about(
    table: Path, tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tasksieve.cli import proof_file

    monkeypatch.setattr(proof_file, "MOST_NUMBERS", 1)
    run = tmp_path / "run"
    cli("fit", table, "--target", "y", "--task", "region", "--alphas", "6", "--out", run, *QUICK)
    found = cli("verify", run).out
    assert found.startswith("proved")
    assert "of path.npz the chosen value alone is proved, 5 others are not" in found
    found = cli("verify", forged(run, tmp_path / "forged", change_arrays("path.npz", times("coef_data", 2.0))), code=1)
    assert "path.npz has other coefficients than the model at its alpha" in found.out


def test_a_free_intercept_is_no_penalised_one() -> None:
    assert not _same(1.0, True)
    assert not _same({"intercept": True}, {"intercept": 1})
    assert _same(1.0, 1)


def test_the_verdict_says_what_was_proved(table: Path, run: Path, tmp_path: Path, cli: CommandLine) -> None:
    words = cli("verify", run).out
    program = f"verify.py {verify.PROGRAM}"
    for part in ("loss squared", "penalty rows", "alpha = 0.1", "target 'y'", "no sample weights", program):
        assert part in words
    n = verify.read_certificate(run / "certificate.npz")["rows"]
    assert f"{sum(n)} labels used" in words
    found = alone(tmp_path / "empty", "--version")
    assert found.stdout == f"{program}, certificates of format 1\n"


@pytest.mark.parametrize("model", ["graph-svm", "owl", "elastic-net", "sparse-group", "calibrated", "huber"])
def test_runs_of_every_kind_are_proved(table: Path, tmp_path: Path, cli: CommandLine, model: str) -> None:
    words = ("--target", "y", "--task", "region", "--model", model, "--out", tmp_path / "run", *QUICK)
    cli("fit", table, *words, *(() if model == "graph-svm" else ("--alpha", "0.1")))
    assert cli("verify", tmp_path / "run").out.startswith("proved")
    found = cli("verify", forged(tmp_path / "run", tmp_path / "forged", TIMES_7), code=1)
    assert "the coefficients are not those" in found.out
