"""What is told beside a number: the null model, nested numbers first, covariates apart from what was selected."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_helpers import CommandLine, classification_csv, regression_csv
from plink_files import write_plink
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import tasksieve as ts
from tasksieve.fitted.shown import certificate_rows
from tasksieve.report.content import ReportContent
from tasksieve.report.page import render
from tasksieve.runs import RunFolder, load_model
from tasksieve.runs.content import report_content
from tasksieve.runs.results import read_path

COVARIATES = ["PC1", "PC2", "age"]


@pytest.fixture
def people(tmp_path: Path, rng: np.random.Generator) -> pd.DataFrame:
    """120 people: a trait of two variants, and much more of three covariates; cases and controls."""
    counts = rng.binomial(2, 0.4, (120, 40)).astype(float)
    write_plink(tmp_path / "g", counts)
    table = pd.DataFrame(rng.standard_normal((120, 3)), columns=COVARIATES)
    table["age"] = 50.0 + 9.0 * table["age"]
    table["trait"] = 3 * table["PC1"] + 0.2 * table["age"] + counts[:, 3] - counts[:, 7] + rng.standard_normal(120)
    noise = rng.logistic(size=120)
    table["case"] = np.where(table["PC1"] + 2 * counts[:, 3] - 1.6 + noise > 0, 2, 1)
    names = pd.DataFrame({"FID": [f"f{i}" for i in range(120)], "IID": [f"i{i}" for i in range(120)]})
    for file, columns in (("p.txt", ["trait", "case"]), ("c.txt", COVARIATES)):
        pd.concat([names, table[columns]], axis=1).to_csv(tmp_path / file, sep=" ", index=False)
    return table


def fit_words(folder: Path, name: str) -> list[object]:
    given = ["--bfile", folder / "g", "--pheno", folder / "p.txt", "--pheno-name", name, "--covar", folder / "c.txt"]
    return ["fit", *given, "--cv", 3, "--alphas", 12]


def test_covariates_are_not_selected(
    cli: CommandLine, reports: list[ReportContent], people: pd.DataFrame, tmp_path: Path
) -> None:
    told = cli(*fit_words(tmp_path, "trait"), "-o", tmp_path / "run").out
    saved = load_model(RunFolder(tmp_path / "run"))
    model = saved.estimator
    used = np.flatnonzero(model.coef_[0, 3:])
    assert 0 < len(used) < 40
    assert np.all(model.coef_[0, :3] != 0)
    # printed
    assert "1 task, 40 features, 3 covariates" in told
    assert re.search(rf"alpha = \S+: {len(used)} features selected\n", told)
    strongest = re.findall(r"strongest: (.*)", told)[0].removesuffix(", ...").split(", ")
    assert set(strongest) <= {f"rs1_{j}_A" for j in used}
    assert "covariates, not penalised: PC1, PC2, age\n" in told
    # how good it is beyond them
    x, y = people[COVARIATES], people["trait"]
    alone = LinearRegression().fit(x, y)
    training = pd.read_csv(tmp_path / "run" / "quality.csv")
    assert training["null_value"].item() == pytest.approx(alone.score(x, y))
    np.testing.assert_allclose(saved.null.coef_[0, :3], alone.coef_)
    assert not saved.null.coef_[0, 3:].any()
    quality = pd.read_csv(tmp_path / "run" / "cv_quality.csv").iloc[0]
    assert quality.increment == pytest.approx(quality.value - quality.null_value)
    assert 0 < quality.null_value < quality.value
    assert f"null model {quality.null_value:.3g}, beyond it {quality.increment:.3g} ±" in told
    assert "null model (intercepts and 3 covariates)" in told
    # written
    lines = pd.read_csv(tmp_path / "run" / "coefficients.csv")
    assert lines.feature[lines.covariate == "yes"].tolist() == COVARIATES
    assert np.count_nonzero(lines.covariate == "no") == len(used)
    variants = pd.read_csv(tmp_path / "run" / "variants.csv")
    assert not set(COVARIATES) & set(variants.feature)
    path = pd.read_csv(tmp_path / "run" / "path.csv")
    assert path.n_selected[0] == 0
    # in the report
    content = reports[-1]
    assert f"{len(used)} of 40 features are used, beside 3 covariates" in content.answered
    assert "of 40 features are needed" in content.asked
    page = render(content)
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["nSelected"] == len(used) == data["path"]["nSelected"][data["path"]["chosen"]]
    assert not set(COVARIATES) & set(data["features"])
    assert content.tables[0].title == "Covariates"
    assert [row[0] for row in content.tables[0].rows] == COVARIATES
    assert "of 40; 3 covariates beside" in page
    # and by inspect
    found = json.loads(cli("inspect", tmp_path / "run", "--json").out)["selected"]
    assert (found["number"], found["of"]) == (len(used), 40)
    assert [one["feature"] for one in found["covariates"]] == COVARIATES
    assert f"features in use: {len(used)} of 40" in cli("inspect", tmp_path / "run").out
    methods = (tmp_path / "run" / "methods.txt").read_text()
    assert "40 features beside 3 covariates, which are not penalised" in methods


@pytest.mark.slow
def test_classes_beyond_covariates(cli: CommandLine, people: pd.DataFrame, tmp_path: Path) -> None:
    told = cli(*fit_words(tmp_path, "case"), "-m", "logistic", "-o", tmp_path / "run").out
    null = load_model(RunFolder(tmp_path / "run")).null
    alone = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(people[COVARIATES], people["case"])
    np.testing.assert_allclose(null.coef_[:, :3], alone.coef_, rtol=1e-4)
    quality = pd.read_csv(tmp_path / "run" / "cv_quality.csv").set_index("measure")
    assert quality.index.tolist() == ["accuracy", "AUC", "logistic loss"]
    for name, line in quality.iterrows():
        shown = f"{str(name)[:1].upper()}{str(name)[1:]} on rows held out: {line.value:.3g} ±"
        assert shown in told
        assert f"null model {line.null_value:.3g}, beyond it" in told


def test_a_test_table(cli: CommandLine, tmp_path: Path) -> None:
    table = classification_csv(tmp_path / "t.csv")
    data = pd.read_csv(table)
    train, test = data.iloc[::2], data.iloc[1::2]
    train.to_csv(tmp_path / "train.csv", index=False)
    test.to_csv(tmp_path / "test.csv", index=False)
    words = ("-y", "state", "-t", "site", "-m", "logistic", "--alpha", 0.05)
    cli("fit", tmp_path / "train.csv", *words, "-o", tmp_path / "run")
    told = cli("evaluate", tmp_path / "run", tmp_path / "test.csv", "--out", tmp_path / "q.csv").out
    found = pd.read_csv(tmp_path / "q.csv")
    for site in test.site.unique():
        own, new = train.state[train.site == site], test.state[test.site == site]
        share = (own == "well").mean()
        p = np.full(len(new), share)
        guess = np.full(len(new), "well" if share > 0.5 else "sick")
        expected = [accuracy_score(new, guess), roc_auc_score(new, p), log_loss(new, p, labels=["sick", "well"])]
        np.testing.assert_allclose(found.null_value[found.task == str(site)], expected, rtol=1e-6)
    assert "null model (intercepts only): accuracy" in told
    assert "AUC 0.5, beyond it" in told


def test_nested_numbers_are_the_headline(cli: CommandLine, reports: list[ReportContent], tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "t.csv")
    words = ("-y", "y", "-t", "region", "-x", "[a-f]", "--alphas", 8, "--cv", 3)
    told = cli("fit", table, *words, "--compare", "-o", tmp_path / "run").out
    both = pd.read_csv(tmp_path / "run" / "comparison.csv").iloc[-1]
    own = pd.read_csv(tmp_path / "run" / "cv_quality.csv").iloc[-2]
    nested = f"R² on rows held out, nested: {both.score_shared:.3g} ± {both.score_error:.2g}"
    optimistic = f"R² on rows held out: {own.value:.3g} ± {own.error:.2g} (mean over tasks; optimistic: alpha was tuned"
    assert told.index(nested) < told.index(optimistic)
    assert "alpha was chosen without these rows" in told
    assert f"null model {both.null_score:.3g}, beyond it {both.increment:.3g} ± {both.increment_error:.2g}" in told
    content = reports[-1]
    assert content.headline is not None
    assert content.headline.measure == "R² on rows held out, nested"
    np.testing.assert_allclose(np.mean(content.headline.values), both.score_shared)
    assert nested in content.answered
    assert f"{own.value:.3g} ±" not in content.answered or f"{own.value:.3g}" == f"{both.score_shared:.3g}"
    # the loss by which alpha was chosen, and that of the rows, are two numbers; the page says why
    assert "the same rows count one by one" in render(content)


@pytest.mark.slow
def test_runs_without_a_null_model_or_statuses_are_shown(cli: CommandLine, tmp_path: Path) -> None:
    """As version 0.2 has written them."""
    table = regression_csv(tmp_path / "t.csv")
    words = ("-y", "y", "-t", "region", "-x", "[a-f]", "--alphas", 8, "--cv", 3, "--compare")
    cli("fit", table, *words, "-o", tmp_path / "run")
    run = tmp_path / "run"
    content = json.loads((run / "model.json").read_text())
    new = ("null_", "increment", "overall_increment", "tuned", "one_class")
    content["cv_quality"] = {k: v for k, v in content["cv_quality"].items() if not k.startswith(new)}
    del content["status"]
    (run / "model.json").write_text(json.dumps(content))
    with np.load(run / "path.npz") as arrays:
        kept = {name: arrays[name] for name in arrays.files if name != "status"}
    np.savez(run / "path.npz", **kept)
    with np.load(run / "model.npz") as arrays:
        kept = {name: arrays[name] for name in arrays.files if not name.startswith("null_")}
    np.savez(run / "model.npz", **kept)
    training = pd.read_csv(run / "quality.csv").drop(columns="null_value")
    training.to_csv(run / "quality.csv", index=False)
    both = json.loads((run / "comparison.json").read_text())
    later = ("null_loss", "null_score", "score_error", "increment", "increment_error")
    both["columns"] = {name: values for name, values in both["columns"].items() if name not in later}
    (run / "comparison.json").write_text(json.dumps(both))
    saved = load_model(RunFolder(run))
    assert saved.null is None
    assert not hasattr(saved.estimator, "status_")
    assert read_path(RunFolder(run)).status.tolist() == ["converged"] * 8
    assert saved.estimator.cv_quality_.null_values is None
    shown = report_content(RunFolder(run))
    assert shown.headline is not None
    assert shown.headline.measure == "R² on rows held out, nested"
    page = render(shown)
    assert "null model" not in page.split("<script")[0]


def test_a_path_counts_penalised_features(rng: np.random.Generator) -> None:
    x = rng.standard_normal((60, 8))
    y = x[:, 0] + 2 * x[:, 5] + 0.3 * rng.standard_normal(60)
    weights = np.r_[np.ones(5), 0.0, 1.0, 0.0]
    model = ts.MultiTaskLasso(feature_weights=weights)
    path = model.path(x, y, n_alphas=5, eps=0.1)
    coefs = [path.coef(k).toarray()[0] for k in range(5)]
    assert path.n_selected.tolist() == [np.count_nonzero(np.delete(coef, [5, 7])) for coef in coefs]
    assert path.n_selected[0] == 0
    assert path.to_frame("values")["n_selected"].tolist() == path.n_selected.tolist()
    fitted = path.model(2)
    assert ("covariates, not penalised", "2") in certificate_rows(fitted)
    content = ts.report.content_from_model(fitted, x, y, n_alphas=3)
    assert content.n_selected_features == np.count_nonzero(np.delete(coefs[2], [5, 7]))
    assert "beside 2 covariates" in content.answered
