"""What the command line does unasked, says that it does, and writes down: scales, ids, dates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, classification_csv, regression_csv

import tasksieve as ts
from tasksieve.cli.defaults import CONFIG_FORMAT
from tasksieve.report.content import ReportContent
from tasksieve.runs import MODELS, RunFolder, load_model

Reports = list[ReportContent]


@pytest.fixture
def patients(tmp_path: Path, rng: np.random.Generator) -> Path:
    """Dose in kilograms, an id, a date: what a table of a hospital looks like."""
    n = 60
    dose, age = rng.random(n), rng.uniform(20, 80, n)
    site = rng.choice(["A", "B"], n)
    frame = pd.DataFrame(
        {
            "patient": np.arange(5001, 5001 + n),
            "name": [f"N{i}" for i in rng.permutation(n)],
            "admitted": pd.date_range("2024-03-01", periods=n, freq="19h").strftime("%Y-%m-%d %H:%M"),
            "site": site,
            "dose_kg": dose / 1000,
            "age": age,
            "recovery": 3 * dose + 0.001 * age + 0.05 * rng.standard_normal(n),
        }
    )
    frame.to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path / "patients.csv"


def config_of(run: Path) -> dict[str, Any]:
    return json.loads((run / "config.json").read_text())


def selected(run: Path) -> set[str]:
    return set(pd.read_csv(run / "coefficients.csv").feature)


# --- scales ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_units_do_not_matter(cli: CommandLine, reports: Reports, tmp_path: Path, patients: Path) -> None:
    fit = ("fit", patients, "-y", "recovery", "-t", "site", "--cv", 3, "--alphas", 20, "--selection-rule", "1se")
    result = cli(*fit, "-o", tmp_path / "run")
    assert "columns standardised while fitting (not with --as-is); coefficients are in the units" in result.out
    assert "strongest: dose_kg" in result.out
    assert "dose_kg" in selected(tmp_path / "run")
    coefficient = pd.read_csv(tmp_path / "run" / "coefficients.csv").set_index("feature").coefficient["dose_kg"]
    np.testing.assert_allclose(coefficient, 3000, rtol=0.3)  # in kilograms
    frame = pd.read_csv(patients)
    frame.assign(dose_kg=frame.dose_kg * 1024).to_csv(tmp_path / "other.csv", index=False)
    cli("fit", tmp_path / "other.csv", *fit[2:], "-o", tmp_path / "other")
    one, other = (
        load_model(RunFolder(tmp_path / name)).estimator.coef_ for name in ("run", "other")
    )
    np.testing.assert_allclose(one, other * [1024, 1], rtol=1e-6)
    content = reports[0]
    assert "columns were standardised within each task" in content.asked
    assert dict(content.facts)["columns standardised while fitting"].startswith("yes, within tasks")


@pytest.mark.parametrize("flag", ["--as-is", "--no-standardize"])
def test_as_is_is_said_and_warned_of(
    cli: CommandLine, reports: Reports, tmp_path: Path, patients: Path, flag: str
) -> None:
    run = tmp_path / "run"
    result = cli("fit", patients, "-y", "recovery", "-t", "site", "--cv", 3, "--alphas", 20, flag, "-o", run)
    assert "columns as they are, not standardised" in result.out
    assert result.err.count("differ in scale") == 1
    assert "times as much as 'dose_kg'" in result.err
    assert "without --as-is" in result.err
    assert "dose_kg" not in selected(run)
    assert config_of(run)["standardize"] is False
    assert "standardize" not in config_of(run)["by_default"]
    assert any("differ in scale" in warning for warning in reports[0].warnings)
    assert "--as-is" in reports[0].reproduce
    assert ("columns standardised while fitting", "no") in list(reports[0].facts)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("model", "make", "target"),
    [
        *((model, regression_csv, "y") for model in ("lasso", "elastic-net", "calibrated", "owl", "sparse-group")),
        ("logistic", classification_csv, "state"),
        ("multinomial-owl", classification_csv, "state"),
    ],
)
def test_every_model_that_can_standardises(
    cli: CommandLine, reports: Reports, tmp_path: Path, model: str, make: Any, target: str
) -> None:
    run = tmp_path / "run"
    cli("fit", make(tmp_path / "t.csv"), "-y", target, "-m", model, "--alpha", 0.05, "-o", run)
    assert load_model(RunFolder(run)).estimator.standardize is True
    assert "standardize" in MODELS[model].parameters()


def test_a_model_without_it_says_nothing_of_scales(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    run = tmp_path / "run"
    table = regression_csv(tmp_path / "t.csv")
    result = cli("fit", table, "-y", "y", "-t", "region", "-m", "graph-svm", "-o", run)
    assert "standardised" not in result.out
    assert "standardize" not in config_of(run)
    refused = cli("fit", table, "-y", "y", "-m", "graph-svm", "--as-is", "-o", tmp_path / "r", code=2)
    assert "--standardize: --model graph-svm has no such option" in refused.err


# --- the configuration -------------------------------------------------------------------------------------------


def test_defaults_are_written_down(cli: CommandLine, reports: Reports, tmp_path: Path, patients: Path) -> None:
    run = tmp_path / "run"
    cli("fit", patients, "-y", "recovery", "-t", "site", "--alphas", 5, "--tol", 1e-5, "-o", run)
    config = config_of(run)
    assert config["config_format"] == CONFIG_FORMAT
    model = load_model(RunFolder(run)).estimator
    expected = {
        "model": "lasso", "missing": "error", "max_categories": 100, "keep": [], "date_parts": False, "reference": [],
        "standardize": True, "cv": 5, "shuffle": True, "seed": 0, "eps": 0.01, "selection_rule": "min",
            "early_stopping": True,
        "fit_intercept": True, "positive": False, "max_iter": model.max_iter, "screening": model.screening,
    }  # fmt: skip
    assert set(config["by_default"]) == set(expected)
    assert {key: config[key] for key in expected} == expected
    assert config["tol"] == 1e-5
    assert config["alphas"] == "5"
    for key in expected:  # the command to repeat it says what was asked, no more
        assert f"--{key.replace('_', '-')} " not in reports[0].reproduce


def test_written_defaults_are_used(
    cli: CommandLine, reports: Reports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patients: Path
) -> None:
    """A version with other defaults resumes a run as it was begun."""
    from tasksieve.cli import defaults

    fit = ("fit", patients, "-y", "recovery", "-t", "site", "--alphas", 5, "--cv", 3)
    cli(*fit, "-o", tmp_path / "run")
    (tmp_path / "run" / "manifest.json").unlink()  # as if it had been killed
    monkeypatch.setitem(defaults.PARAMETER_DEFAULTS, "standardize", False)
    monkeypatch.setitem(defaults.DEFAULTS, "missing", "drop")
    cli(*fit, "-o", tmp_path / "run", "--resume")
    cli("fit", "--config", tmp_path / "run" / "config.json", "-o", tmp_path / "third")
    cli(*fit, "-o", tmp_path / "other")
    for name, standardised in (("run", True), ("third", True), ("other", False)):
        assert load_model(RunFolder(tmp_path / name)).estimator.standardize is standardised
        assert config_of(tmp_path / name)["missing"] == ("error" if standardised else "drop")
    assert "--standardize" in reports[-2].reproduce  # no default any more, so it must be said


def test_a_configuration_serves_other_questions(
    cli: CommandLine, reports: Reports, tmp_path: Path, patients: Path
) -> None:
    """Defaults of one model do not stand in the way of another."""
    cli("fit", patients, "-y", "recovery", "-t", "site", "--alphas", 5, "--cv", 3, "-o", tmp_path / "run")
    config = ("--config", tmp_path / "run" / "config.json")
    cli("fit", *config, "-m", "sparse-group", "-o", tmp_path / "a")
    assert config_of(tmp_path / "a")["model"] == "sparse-group"
    cli("path", patients, "-y", "recovery", "-o", tmp_path / "p")
    cli("fit", "--config", tmp_path / "p" / "config.json", "--alpha", 0.1, "-o", tmp_path / "b")
    assert "cv" not in config_of(tmp_path / "b")
    cli("fit", "--config", tmp_path / "p" / "config.json", "-m", "graph-svm", "-o", tmp_path / "c")
    assert "standardize" not in config_of(tmp_path / "c")
    cli("fit", "--config", tmp_path / "p" / "config.json", "--as-is", "-o", tmp_path / "d")
    assert load_model(RunFolder(tmp_path / "d")).estimator.standardize is False


def test_configurations_that_are_none(cli: CommandLine, tmp_path: Path, patients: Path) -> None:
    for content, said in (
        ({"config_format": CONFIG_FORMAT + 1}, f"reads up to {CONFIG_FORMAT}"),
        ({"config_format": "two"}, "'config_format' cannot be 'two'"),
        ({"by_default": ["magic"]}, "'by_default' cannot be"),
        ({"by_default": 3}, "'by_default' cannot be"),
        ({"keep": "x"}, "'keep' cannot be 'x'"),
    ):
        (tmp_path / "c.json").write_text(json.dumps(content))
        given = ("--config", tmp_path / "c.json", "-y", "recovery", "-o", tmp_path / "r", "--no-report")
        assert said in cli("fit", patients, *given, code=1).err
        assert not (tmp_path / "r").exists()


# --- ids and dates -----------------------------------------------------------------------------------------------


def test_ids_and_dates_are_left_out_and_told(
    cli: CommandLine, reports: Reports, tmp_path: Path, patients: Path
) -> None:
    run = tmp_path / "run"
    result = cli("fit", patients, "-y", "recovery", "-t", "site", "--alpha", 0.01, "-o", run)
    for said in (
        "column 'patient' is left out: it looks like an id (whole numbers from 5001 to 5060, each once)",
        "column 'name' is left out: it looks like an id (60 words, all different)",
        "column 'admitted' is left out: it holds dates",
    ):
        assert said in result.err
        assert any(said in note for note in json.loads((run / "data.json").read_text())["notes"])
        assert any(said in warning for warning in reports[0].warnings)
    assert load_model(RunFolder(run)).feature_names == ["dose_kg", "age"]


def test_an_id_is_carried_into_predictions(
    cli: CommandLine, reports: Reports, tmp_path: Path, patients: Path
) -> None:
    run, new = tmp_path / "run", tmp_path / "new.csv"
    result = cli("fit", patients, "-y", "recovery", "-t", "site", "--alpha", 0.01, "--id", "patient", "--drop", "name",
                 "--date-parts", "-o", run)  # fmt: skip
    assert "left out" not in result.err
    names = load_model(RunFolder(run)).feature_names
    parts = [f"admitted.{part}" for part in ("days", "year", "month", "day", "weekday", "hour")]
    assert names == [*parts, "dose_kg", "age"]
    frame = pd.read_csv(patients).drop(columns=["recovery", "name"])
    frame = frame.sample(frac=1, random_state=0)  # rows are told by their names
    frame.loc[frame.index[2], "age"] = np.nan
    frame.to_csv(new, index=False)
    cli("predict", run, new, "--missing", "drop", "-o", tmp_path / "predictions.csv")
    found = pd.read_csv(tmp_path / "predictions.csv")
    assert list(found) == ["patient", "task", "prediction"]
    assert found.patient.tolist() == frame.patient.tolist()
    assert found.prediction.isna().tolist() == [i == 2 for i in range(60)]
    # under another name, or none at all
    frame.drop(columns="patient").assign(who=[f"W{i}" for i in range(60)]).to_csv(new, index=False)
    result = cli("predict", run, new, "--missing", "drop")
    assert result.out.startswith("task,prediction\n")
    assert "has no column 'patient', the --id of the fit: predictions come without it" in result.err
    result = cli("predict", run, new, "--missing", "drop", "--id", "who")
    assert result.out.splitlines()[:1] == ["who,task,prediction"]
    assert result.out.splitlines()[1].startswith("W0,")
    assert "no column 'whom'" in cli("predict", run, patients, "--id", "whom", code=1).err
    cli("predict", run, patients, "--id", "admitted", "-o", tmp_path / "p.parquet")
    assert pd.read_parquet(tmp_path / "p.parquet").admitted[0] == "2024-03-01 00:00"


def test_a_name_of_rows_does_not_hide_an_answer(cli: CommandLine, reports: Reports, tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "t.csv")
    frame = pd.read_csv(table).rename(columns={"a": "prediction"})
    frame.to_csv(table, index=False)
    cli("fit", table, "-y", "y", "-t", "region", "--alpha", 0.1, "--id", "prediction", "-o", tmp_path / "run")
    assert cli("predict", tmp_path / "run", table).out.startswith("prediction (id),task,prediction\n")


def test_predictions_use_the_columns_of_the_fit(
    cli: CommandLine, reports: Reports, tmp_path: Path, patients: Path
) -> None:
    """A column that looks like an id in one table only: what the fit decided holds."""
    run = tmp_path / "run"
    cli("fit", patients, "-y", "recovery", "-t", "site", "--alpha", 0.001, "--keep", "patient", "-o", run)
    assert load_model(RunFolder(run)).feature_names == ["patient", "dose_kg", "age"]
    few = pd.read_csv(patients).iloc[[3, 1, 44]]
    few.assign(extra="x").to_csv(tmp_path / "few.csv", index=False)
    whole = cli("predict", run, patients).out.splitlines()[1:]
    assert cli("predict", run, tmp_path / "few.csv").out.splitlines()[1:] == [whole[i] for i in (3, 1, 44)]
    refused = cli("predict", run, write_without(few, "patient", tmp_path), code=1)
    assert "the model's features" in refused.err
    assert "no column 'patient'" in refused.err


def write_without(frame: pd.DataFrame, name: str, folder: Path) -> Path:
    frame.drop(columns=name).to_csv(folder / "without.csv", index=False)
    return folder / "without.csv"


def test_the_command_to_repeat_it_names_ids_and_drops(
    cli: CommandLine, reports: Reports, tmp_path: Path, patients: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shlex

    cli("fit", patients, "-y", "recovery", "-t", "site", "--alpha", 0.01, "--id", "patient", "--drop", "na*", "--drop",
        "age", "--keep", "dose_kg", "--date-parts", "--as-is", "-o", tmp_path / "run")  # fmt: skip
    words = shlex.split(reports[-1].reproduce)
    for option in ("--id", "--drop", "--keep", "--date-parts", "--as-is"):
        assert option in words
    monkeypatch.chdir(patients.parent)  # a report names files without their folders
    cli(*words[1:-1], tmp_path / "again")
    for name in ("coefficients.csv", "model.json", "model.npz"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_timestamps_are_named(cli: CommandLine, reports: Reports, tmp_path: Path, patients: Path) -> None:
    frame = pd.read_csv(patients, parse_dates=["admitted"])
    frame.to_parquet(tmp_path / "t.parquet")
    fit = ("fit", tmp_path / "t.parquet", "-y", "recovery", "-t", "site", "--alpha", 0.01, "-o")
    assert "column 'admitted' is left out: it holds dates" in cli(*fit, tmp_path / "a").err
    refused = cli(*fit, tmp_path / "b", "-x", "admitted", "-x", "age", code=1)
    assert "column 'admitted' of" in refused.err
    assert "--date-parts" in refused.err
    cli(*fit, tmp_path / "c", "-x", "admitted", "-x", "age", "--date-parts")
    stream = ("stream", tmp_path / "t.parquet", "-y", "recovery", "-x", "admitted", "-o", tmp_path / "s")
    assert "column 'admitted'" in cli(*stream, code=1).err


def test_scale_warnings_are_public() -> None:
    assert issubclass(ts.ScaleWarning, UserWarning)
