"""Results of earlier versions: every stored run is read, proved and predicts as it did; so are certificates and models.

``write.py`` says which version has written what is stored here, and how.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import pickle
import shutil
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine
from stored_archives import STORED, read_data, unpack

import tasksieve as ts
from tasksieve import verify as verifier

ARCHIVES = sorted(STORED.glob("*/runs/*.zip"))


@pytest.fixture
def stored(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An archive taken apart in the current folder."""
    monkeypatch.chdir(tmp_path)
    return unpack(request.param, tmp_path)


def named(archives: list[Path]) -> Any:
    return pytest.mark.parametrize("stored", archives, ids=lambda file: file.stem, indirect=True)


def assert_same_table(found: Path, expected: Path) -> None:
    """Columns that were there are there, with the same words and numbers."""
    one, other = pd.read_csv(found), pd.read_csv(expected)
    assert [name for name in one if name in other] == list(other)
    for name in other:
        if other[name].dtype.kind == "f":
            np.testing.assert_allclose(one[name], other[name], rtol=1e-10, atol=1e-12, err_msg=name)
        else:
            assert one[name].tolist() == other[name].tolist(), name


def assert_same_claims(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found["proved"]
    assert [one["value"] for one in found["values"]] == [one["value"] for one in expected["values"]]
    for one, other in zip(found["values"], expected["values"], strict=True):
        size = abs(other["objective"])
        assert one["alpha"] == other["alpha"]
        assert one["objective"] == pytest.approx(other["objective"], rel=1e-10)
        assert one["gap"] <= 1.001 * other["gap"] + 1e-11 * size
    needs = {(one["value"], *one["without"]): one["worse_by"] for one in found["needs"]}
    for other in expected["needs"]:
        assert needs[other["value"], *other["without"]] == pytest.approx(other["worse_by"], rel=1e-6)


def assert_same_scores(found: Path, expected: Path) -> None:
    """Measures that were there, but those of ranks, of which other pairs may count."""
    one, other = (pd.read_csv(file) for file in (found, expected))
    keys = [name for name in ("task", "measure") if name in other]
    one, other = one.set_index(keys), other.set_index(keys)
    for key, row in other.iterrows():
        if "oncordance" not in str(key):
            np.testing.assert_allclose(one.loc[[key], "value"], [row["value"]], rtol=1e-9, atol=1e-12, err_msg=str(key))


def assert_same_inspection(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for key in ("rows used", "features", "tasks"):
        assert found.get("data", {}).get(key) == expected.get("data", {}).get(key)
    selected, before = found.get("selected"), expected.get("selected")
    if before is not None:
        assert (selected["number"], selected["of"]) == (before["number"], before["of"])
        assert [one["feature"] for one in selected["strongest"]] == [one["feature"] for one in before["strongest"]]


def take_along(run: Path) -> None:
    """Genotypes are verified with the phenotypes where the run has them: the run is moved with its files."""
    config = (run / "config.json").read_bytes()
    moved = config.replace(b'"/study/', f'"{Path.cwd()}/'.encode())
    assert moved != config
    (run / "config.json").write_bytes(moved)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["files"]["config.json"] = {"bytes": len(moved), "sha256": hashlib.sha256(moved).hexdigest()}
    (run / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.sampled(6)
@named(ARCHIVES)
def test_a_run_is_read_and_proved(stored: dict[str, Any], cli: CommandLine) -> None:
    assert_same_inspection(json.loads(cli("inspect", "run", "--json").out), stored["inspect"])
    cli("inspect", "run")
    for asked in stored["predict"]:
        cli("predict", "run", *asked["words"], "-o", "found.csv")
        assert_same_table(Path("found.csv"), Path(asked["file"]))
    if "evaluate" in stored:
        cli("evaluate", "run", *stored["evaluate"]["words"], "-o", "scores.csv")
        assert_same_scores(Path("scores.csv"), Path(stored["evaluate"]["file"]))
    if "verify" in stored:
        asked = stored["verify"]
        if Path("toy.bed").exists():
            files = ["--bfile", "toy", "--pheno", "toy.pheno", "--covar", "toy.covar"]
            assert verifier.main(["run/certificate.npz", *files]) == 0
            take_along(Path("run"))
        for key, more in (("chosen", ()), ("all", ("--all",))):
            ended = cli("verify", "run", "--data", asked["data"], "--json", *more, code=None)
            assert ended.code == 0, ended.out + ended.err
            if asked[key]["proved"]:
                assert_same_claims(json.loads(ended.out), asked[key])
    for ending, code in stored["exports"].items():
        ended = cli("export", "run", "-o", f"exported.{ending}", code=None)
        assert code != 0 or ended.code == 0, ended.err
    shutil.copytree("run", "copy")
    if len(stored["predict"]):
        cli("diff", "run", "copy")


@pytest.mark.sampled(9)
@named(ARCHIVES)
def test_a_run_is_reported(stored: dict[str, Any], cli: CommandLine, reports: list[Any]) -> None:
    cli("report", "run")
    assert len(reports) == 1
    for asked in stored["predict"][:1]:  # which leaves a run that is whole
        cli("predict", "run", *asked["words"], "-o", "found.csv")


# -- certificates, models, problems ----------------------------------------------------------------------------------


def contents(file: str) -> tuple[zipfile.ZipFile, dict[str, Any]]:
    archive = zipfile.ZipFile(STORED / "0.2.0" / "files" / f"{file}.zip")
    return archive, json.loads(archive.read("expected.json"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", ["estimators", "members", "kinds"])
def test_certificates_are_proved(kind: str, part: int) -> None:
    archive, told = contents(f"certificates-{kind}")
    assert len(told["cases"]) > 30
    for case in told["cases"][part::4]:
        content, data = archive.read(case["certificate"]), read_data(archive.read(case["data"]))
        verdict = verifier.verify(content, **data)
        assert verdict.proved, f"{case['name']}: {verdict.words}"
        assert len(verdict.values) == len(case["values"])
        for one, other in zip(verdict.values, case["values"], strict=True):
            assert one.alpha == other["alpha"]
            assert one.objective == pytest.approx(other["objective"], rel=1e-10)
            assert one.gap <= 1.001 * other["gap"] + 1e-11 * abs(other["objective"]), case["name"]
        needs = {(one.value, *(int(j) for j in one.features)): one.delta for one in verdict.needs}
        for value, features, delta in case["needs"]:
            assert needs[value, *features] == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("kind", ["estimators", "members", "kinds"])
def test_certificates_of_other_labels_are_refused(kind: str) -> None:
    archive, told = contents(f"certificates-{kind}")
    for case in told["cases"][::9]:
        data = read_data(archive.read(case["data"]))
        if isinstance(data["X"], np.ndarray):
            data["X"] = data["X"].copy()
            data["X"].flat[np.flatnonzero(data["X"])[0]] *= 1.0 + 1e-6
            assert not verifier.verify(archive.read(case["certificate"]), **data).proved, case["name"]


def test_online_models_go_on(tmp_path: Path) -> None:
    archive, told = contents("online-models")
    for case in told["cases"]:
        (tmp_path / "model.npz").write_bytes(archive.read(f"{case['name']}.npz"))
        model = getattr(ts, f"OnlineMultiTask{case['kind']}").load(tmp_path / "model.npz")
        data = read_data(archive.read(f"{case['name']}-data.npz"))
        X, y, task = data["X"], data["y"], data["task"]
        np.testing.assert_allclose(model.coef_, data["coef"], rtol=1e-12, atol=1e-14)
        same_predictions(model.predict(X, task=task), data["predict"], case["name"])
        if "dual_gap" in case:
            found = model.certify(X, y, task=task, needed=False)
            assert found.objective == pytest.approx(case["objective"], rel=1e-9)
            assert found.dual_gap == pytest.approx(case["dual_gap"], rel=1e-4)
        model.partial_fit(X[:5], y[:5], task=task[:5])


def test_pickles_predict_as_they_did() -> None:
    archive, told = contents("pickled-models")
    models = pickle.loads(lzma.decompress(archive.read("models.xz")))
    assert list(models) == told["names"]
    for number, name in enumerate(models):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Trying to unpickle")  # scikit-learn: its own version is another
            model = pickle.loads(models[name])
        data = read_data(archive.read(f"{number}.npz"))
        given = {} if data.get("task") is None else {"task": data["task"]}
        same_predictions(model.predict(data["X"], **given), data["predict"], name)


def same_predictions(found: Any, expected: Any, name: str) -> None:
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12, err_msg=name)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=name)


def test_problems_are_fitted(tmp_path: Path) -> None:
    archive, told = contents("problem-files")
    assert len(told["cases"]) == 10
    for name in told["cases"]:
        (tmp_path / "problem.npz").write_bytes(archive.read(f"{name}.npz"))
        found = ts.load_problem(tmp_path / "problem.npz").fit()
        coef = read_data(archive.read(f"{name}-coef.npz"))["coef"]
        np.testing.assert_allclose(np.asarray(found.coef_), coef, rtol=1e-3, atol=1e-3, err_msg=name)


# -- folders ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return lambda name: unpack(STORED / "0.2.0" / "folders" / f"{name}.zip", tmp_path)


@pytest.mark.parametrize("kind", ["fit", "stream"])
def test_interrupted_runs_are_resumed(kind: str, folder: Any, cli: CommandLine) -> None:
    told = folder(f"interrupted-{kind}")
    cli(*told["command"], "-o", "run", "--resume")
    one, other = (pd.read_csv(f"{name}/coefficients.csv") for name in ("run", "finished"))
    pd.testing.assert_frame_equal(one, other, rtol=1e-6, atol=1e-9)
    if kind == "fit":
        cli("verify", "run", "--data", "table.csv", "-q")


def test_grades_are_proved(folder: Any, cli: CommandLine) -> None:
    told = folder("graded")
    frame = pd.read_csv("table.csv")
    X, task = frame[list("abcde")].to_numpy(), frame.region.to_numpy(str)
    assert verifier.verify("proof.npz", X, frame.y.to_numpy(), task=task).proved
    found = json.loads(cli("grade", *told["command"], "--json").out)
    for key in ("objective", "dual_gap"):
        assert found[key] == pytest.approx(told["told"][key], rel=1e-3)
    cli("verify", "run", "--data", "table.csv", "-q")
    assert ts.load_problem("problem.npz").fit().dual_gap_ < 1e-5


def test_sites_are_proved(folder: Any, cli: CommandLine) -> None:
    pytest.importorskip("cryptography", reason="federated fits")
    folder("sites")
    cli("verify", "out/statement.npz", "--plan", "plan.toml", "-q")
    cli("verify", "part.npz", "--data", "north.npz", "-q")
    cli("predict", "run", "north.csv", "-o", "found.csv")
    assert_same_table(Path("found.csv"), Path("expected/predict-0.csv"))
    cli("inspect", "run")
    cli("report", "run")


# -- and these checks can fail ---------------------------------------------------------------------------------------


def test_a_changed_number_is_noticed(tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks above can fail: a coefficient of a stored model, its manifest made to agree, is another prediction
    and is not proved."""
    monkeypatch.chdir(tmp_path)
    told = unpack(STORED / "0.2.0" / "runs" / "numbers.zip", tmp_path)
    with np.load("run/model.npz") as content:
        arrays = dict(content)
    arrays["coef_data"][0] *= 1.0 + 1e-9
    np.savez("run/model.npz", **arrays)
    content = Path("run/model.npz").read_bytes()
    assert "model.npz has changed" in cli("verify", "run", "--data", "table.csv", code=1).out
    manifest = json.loads(Path("run/manifest.json").read_text())
    manifest["files"]["model.npz"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    Path("run/manifest.json").write_text(json.dumps(manifest))
    cli("predict", "run", *told["predict"][0]["words"], "-o", "found.csv")
    with pytest.raises(AssertionError, match="prediction"):
        assert_same_table(Path("found.csv"), Path(told["predict"][0]["file"]))
    assert "not those of certificate.npz" in cli("verify", "run", "--data", "table.csv", code=1).out
