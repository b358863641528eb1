"""`predict`, `evaluate` and `inspect` with genotype files: the model's variants among those of another cohort."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_helpers import command
from cohort_files import rewritten, write_cohort
from plink_files import filled

import tasksieve as ts
from tasksieve.datasets import write_toy_genotypes
from tasksieve.runs import RunFolder, load_model
from tasksieve.runs.results import read_path


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three cohorts of 60 people, 200 variants, a covariate of words."""
    folder = tmp_path_factory.mktemp("study")
    toy = Path(write_toy_genotypes(folder, n_rows=60, n_variants=200))
    covar = pd.read_csv(f"{toy}.covar", sep="\t")
    covar["site"] = np.resize(["b", "a", "c"], len(covar))
    covar.to_csv(f"{toy}.covar", sep="\t", index=False)
    return toy


@pytest.fixture(scope="module")
def fitted(study):
    """A path, of which a value was chosen."""
    words = ["fit", "--bfile", study, *beside(study, "pheno", "covar"), "--pheno-name", "trait", "--task", "cohort"]
    words += ["--alphas", "8", "--eps", "0.2", "--cv", "2", "--no-report", "-q", "--out", study.parent / "run"]
    with pytest.raises(SystemExit, match="0"):
        command()([str(word) for word in words], prog_name="tasksieve")
    return study.parent / "run"


def beside(study, *names):
    return [word for name in names for word in (f"--{name}", f"{study}.{name}")]


def by_hand(run, study, k=None):
    """Copies times coefficients (of value k of the path), missing calls the means of their task, intercepts, age, sex
    and site: of the people of the study in their order."""
    X = ts.read_plink(str(study))
    pheno, covar = (pd.read_csv(f"{study}.{name}", sep="\t").set_index("IID") for name in ("pheno", "covar"))
    iid = X.samples["iid"]
    task = pheno.cohort[iid].to_numpy()
    counts = filled(X.calls(np.arange(X.n_variants)), task)
    known = np.column_stack([covar[["age", "sex"]].loc[iid], *(covar.site[iid] == level for level in "bc")])
    model = load_model(RunFolder(run)).estimator
    coef, intercept = model.coef_, model.intercept_
    if k is not None:
        path = read_path(RunFolder(run))
        coef, intercept = path.coefs[k].toarray(), path.intercepts[k]
    code = np.searchsorted(model.tasks_, task)
    values = (np.column_stack([known, counts]) * coef[code]).sum(axis=1) + intercept[code]
    return pd.Series(values, iid), task


def content(study):
    """Counts, variants and people."""
    X = ts.read_plink(str(study))
    return X.calls(np.arange(X.n_variants)), X.variants, X.samples[["fid", "iid"]]


def used_variants(run):
    table = pd.read_csv(run / "variants.csv")
    return table.id[table.filter(like="coefficient_").any(axis=1)]


@pytest.mark.parametrize("kind", ["bed", "pgen", "zarr"])
def test_another_cohort_gives_the_same_predictions(cli, rng, study, fitted, tmp_path, kind):
    counts, variants, people, swapped, flipped = rewritten(rng, *content(study))
    words = write_cohort(kind, tmp_path / "new", counts, variants, people)
    files = beside(study, "pheno", "covar")
    if kind == "zarr":  # its people have no FID
        for name in ("pheno", "covar"):
            frame = pd.read_csv(f"{study}.{name}", sep="\t", dtype=str).drop(columns="FID")
            frame.rename(columns={"IID": "#IID"}).to_csv(tmp_path / f"iid.{name}", sep="\t", index=False)
        files = beside(tmp_path / "iid", "pheno", "covar")
    told = cli("predict", fitted, *words, *files, "--out", tmp_path / "new.csv")
    cli("predict", fitted, "--bfile", study, *beside(study, "pheno", "covar"), "--out", tmp_path / "old.csv")
    new, old = (pd.read_csv(tmp_path / f"{name}.csv").set_index("IID") for name in ("new", "old"))
    assert new.index.tolist() == people["iid"].tolist()
    pd.testing.assert_series_equal(new.prediction, old.prediction[new.index], rtol=1e-12, atol=1e-12)
    expected, task = by_hand(fitted, study)
    np.testing.assert_allclose(old.prediction, expected, rtol=1e-10, atol=1e-10)
    assert old.task.tolist() == task.tolist()
    # what is said of the variants
    used = used_variants(fitted)
    found = json.loads((tmp_path / "new.variants.json").read_text())["cohorts"][Path(words[1]).name]
    n, n_swapped, n_flipped = len(used), int(swapped[used].sum()), int(flipped[used].sum())
    assert n_swapped
    assert n_flipped
    keys = ("variants", "matched", "swapped", "flipped", "missing")
    assert [found[key] for key in keys] == [n, n, n_swapped, n_flipped, 0]
    assert set(found["identifiers"]["flipped"]) == set(used[flipped[used].to_numpy()])
    assert f"{n} of {n} variants of the model matched" in told.err
    assert f"{n_swapped} counted by the other allele, {n_flipped} on the other strand" in told.err


def test_other_values_of_the_path_have_their_means(cli, study, fitted, tmp_path):
    alphas = pd.read_csv(fitted / "path.csv").alphas
    words = ["--bfile", study, *beside(study, "pheno", "covar"), "--out", tmp_path / "p.csv", "-q"]
    cli("predict", fitted, *words, "--alpha", alphas.iloc[-1])
    expected, _ = by_hand(fitted, study, len(alphas) - 1)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv").prediction, expected, rtol=1e-10, atol=1e-10)


def test_variants_that_are_missing(cli, study, fitted, tmp_path):
    """Absent, with other alleles, or there twice: an error that names them, or the means of the fit."""
    counts, variants, people = content(study)
    used = used_variants(fitted).tolist()
    absent, strange, twice = used[:3]
    place = {name: j for j, name in enumerate(variants["id"])}
    variants.loc[place[strange], ["effect_allele", "other_allele"]] = ["AT", "A"]
    stay = [j for name, j in place.items() if name != absent] + [place[twice]]
    words = write_cohort("bed", tmp_path / "new", counts[:, stay], variants.iloc[stay], people)
    words += [*beside(study, "pheno", "covar"), "--out", tmp_path / "p.csv"]
    told = cli("predict", fitted, *words, code=2).err
    assert f"new: 3 of the {len(used)} variants of the model are missing" in told
    assert "(1 have other alleles there, 1 are there more than once)" in told
    assert absent in told
    cli("predict", fitted, *words, "--missing-variants", "0.01", code=2)
    told = cli("predict", fitted, *words, "--missing-variants", "no", code=2).err
    assert "--missing-variants: error, mean, or" in told
    assert not (tmp_path / "p.csv").exists()
    for allowed in ("mean", 3 / len(used)):
        told = cli("predict", fitted, *words, "--missing-variants", allowed).err
        assert f"{len(used) - 3} of {len(used)} variants of the model matched" in told
        assert "means of the fit stand for the 3 missing variants" in told
    X = ts.read_plink(str(study))
    model = load_model(RunFolder(fitted)).estimator
    pheno = pd.read_csv(f"{study}.pheno", sep="\t")
    code = np.searchsorted(model.tasks_, pheno.cohort)
    expected, _ = by_hand(fitted, study)
    for name in (absent, strange, twice):  # its share of a prediction becomes that of the mean
        own = X.calls([place[name]])[:, 0]
        means = np.array([np.nanmean(own[code == t]) for t in range(3)])
        expected += model.coef_[code, 4 + place[name]] * (means[code] - np.where(np.isnan(own), means[code], own))
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv").prediction, expected, rtol=1e-10, atol=1e-10)
    found = json.loads((tmp_path / "p.variants.json").read_text())["cohorts"]["new"]
    assert found["identifiers"]["missing"] == [name for name in used if name in (absent, strange, twice)]
    assert found["identifiers"]["other_alleles"] == [strange]
    assert found["identifiers"]["repeated"] == [twice]


def test_identifiers_stand_for_positions(cli, rng, study, fitted, tmp_path):
    counts, variants, people = content(study)
    order = rng.permutation(len(variants))
    words = write_cohort("bed", tmp_path / "new", counts[:, order], variants.assign(pos=0).iloc[order], people)
    told = cli("predict", fitted, *words, *beside(study, "pheno", "covar"), "--out", tmp_path / "p.csv")
    assert f"{len(used_variants(fitted))} without a position by their identifier, 0 missing" in told.err
    expected, _ = by_hand(fitted, study)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv").prediction, expected, rtol=1e-10, atol=1e-10)


def test_evaluate_is_that_of_the_predictions(cli, rng, study, fitted, tmp_path):
    """R² by hand; people without a phenotype or a covariate are left out, and have no prediction without the latter."""
    counts, variants, people, *_ = rewritten(rng, *content(study))
    words = write_cohort("bed", tmp_path / "new", counts, variants, people)
    pheno, covar = (pd.read_csv(f"{study}.{name}", sep="\t", dtype=str) for name in ("pheno", "covar"))
    pheno.loc[[3, 8], "trait"], covar.loc[5, "age"] = "-9", "NA"
    pheno = pheno.rename(columns={"trait": "height", "cohort": "where"})
    pheno.to_csv(tmp_path / "new.pheno", sep="\t", index=False)
    covar.to_csv(tmp_path / "new.covar", sep="\t", index=False)
    words += [*beside(tmp_path / "new", "pheno", "covar"), "--task", "where"]
    outs = ["--out", tmp_path / "q.csv", "--predictions", tmp_path / "p.csv"]
    told = cli("evaluate", fitted, *words, "--pheno-name", "height", *outs)
    assert "3 of 180 rows have missing values and are left out" in told.err
    assert "flatter" not in told.err
    rows = pd.read_csv(tmp_path / "p.csv").dropna()
    assert len(rows) == 177
    expected, _ = by_hand(fitted, study)
    np.testing.assert_allclose(rows.prediction, expected[rows.IID], rtol=1e-10, atol=1e-10)
    quality = pd.read_csv(tmp_path / "q.csv").set_index("task")
    for label, own in rows.groupby("task"):
        errors = ((own.observed - own.prediction) ** 2).sum()
        spread = ((own.observed - own.observed.mean()) ** 2).sum()
        np.testing.assert_allclose(quality.loc[label].filter(like="R²").iloc[0], 1 - errors / spread, rtol=1e-9)
    told = cli("predict", fitted, *words, "--out", tmp_path / "all.csv")
    every = pd.read_csv(tmp_path / "all.csv").set_index("IID")
    assert every.index[every.prediction.isna()].tolist() == [covar.IID[5]]
    assert "1 of 180 rows have missing values and no prediction" in told.err
    told = cli("evaluate", fitted, "--bfile", study, *beside(study, "pheno", "covar"))
    assert "note: toy is the cohort that the run was fitted to: rows that it has seen flatter it" in told.err


def test_classes_are_those_of_the_fit_however_they_are_written(cli, study, tmp_path):
    pheno = pd.read_csv(f"{study}.pheno", sep="\t")
    pheno["sick"] = 1 + (pheno.trait > pheno.trait.median())
    pheno["cohort"] = pheno.cohort.map({"east": 1, "north": 2, "south": 3})
    pheno.to_csv(tmp_path / "a.pheno", sep="\t", index=False)
    pheno[["sick", "cohort"]] = pheno[["sick", "cohort"]].astype(float)
    pheno.to_csv(tmp_path / "b.pheno", sep="\t", index=False)
    words = ["--pheno-name", "sick", "--task", "cohort", "--model", "logistic", "--alpha", "0.05", "--no-report", "-q"]
    cli("fit", "--bfile", study, *beside(tmp_path / "a", "pheno"), *words, "--out", tmp_path / "run")
    found = []
    for name in "ab":
        words = ["--bfile", study, *beside(tmp_path / name, "pheno"), "--predictions", "-", "-q"]
        found.append(cli("evaluate", tmp_path / "run", *words).out)
    assert found[0] == found[1]
    told = cli("predict", tmp_path / "run", *words[:4], "--probabilities", "-q").out
    chances = pd.read_csv(io.StringIO(told))
    np.testing.assert_allclose(chances["probability of 1"] + chances["probability of 2"], 1.0)
    assert chances.task.isin([1, 2, 3]).all()
    told = cli("predict", tmp_path / "run", "--bfile", study, "--all-tasks", "-q").out
    assert pd.read_csv(io.StringIO(told)).columns.tolist() == ["FID", "IID", *(f"prediction ({t})" for t in "123")]


def test_cohorts_keep_and_remove(cli, study, fitted, tmp_path):
    counts, variants, people = content(study)
    for name, rows in (("one", np.arange(100)), ("two", np.arange(100, 180))):
        write_cohort("bed", tmp_path / name, counts[rows], variants, people.iloc[rows])
    people.iloc[90:120].to_csv(tmp_path / "keep", sep="\t", index=False, header=False)
    people.iloc[95:97].to_csv(tmp_path / "gone", sep="\t", index=False, header=False)
    words = ["--bfile", tmp_path / "one", "--bfile", tmp_path / "two", *beside(study, "pheno", "covar")]
    words += ["--keep", tmp_path / "keep", "--remove", tmp_path / "gone", "--task", "cohort", "-q"]
    found = pd.read_csv(io.StringIO(cli("predict", fitted, *words).out))
    left = np.delete(np.arange(90, 120), [5, 6])
    assert found.IID.tolist() == people.iid.iloc[left].tolist()
    assert found.cohort.tolist() == ["one"] * 8 + ["two"] * 20
    expected, _ = by_hand(fitted, study)
    np.testing.assert_allclose(found.prediction, expected.iloc[left], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name the TABLE of the rows, or their genotypes"),
        (["--covar", "C"], "--covar: goes with --bfile"),
        (["--bfile", "B", "P"], "there is no TABLE with it"),
        (["--bfile", "B", "--pfile", "B"], "do not go together"),
        (["--bfile", "B", "--pheno", "P"], "--covar: name the file of the covariates"),
        (["--bfile", "B", "--pheno", "P", "--covar", "P"], "--covar: has no column 'age'"),
        (["--bfile", "B", "--covar", "C"], "neither --pheno nor --covar has a column 'cohort'; --task names it, --all"),
        (["--bfile", "B", "--pheno", "P", "--covar", "C", "--missing", "drop"], "--missing: is about the columns of a"),
        (["--bfile", "B", "--pheno", "P", "--covar", "W"], "'d', a word that was not there"),
    ],
)
def test_what_is_refused(cli, study, fitted, tmp_path, words, told):
    covar = pd.read_csv(f"{study}.covar", sep="\t")
    covar.loc[7, "site"] = "d"
    covar.to_csv(tmp_path / "words", sep="\t", index=False)
    files = {"B": study, "P": f"{study}.pheno", "C": f"{study}.covar", "W": tmp_path / "words"}
    result = cli("predict", fitted, *(files.get(word, word) for word in words), code=None)
    assert result.code in (1, 2)
    assert told in result.err


def test_a_run_of_a_table_has_no_variants(cli, study, tmp_path):
    words = ["--format", "csv", "--target", "age", "--features", "sex", "--alpha", "1", "--no-report", "-q"]
    cli("fit", f"{study}.covar", *words, "--out", tmp_path / "r")
    told = cli("predict", tmp_path / "r", "--bfile", study, code=1)
    assert "was not fitted to genotypes" in told.err


# --- inspect ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bed", "pgen", "zarr"])
def test_inspect_counts_what_is_there(cli, study, tmp_path, kind):
    counts, variants, people = content(study)
    counts[:, 3], counts[:, 4], counts[:, 5] = np.nan, 0.0, np.where(np.arange(len(counts)) == 0, 1.0, 0.0)
    counts[7, : len(variants) // 2] = np.nan
    variants.loc[9, ["effect_allele", "other_allele"]] = ["A", "T"]
    words = write_cohort(kind, tmp_path / "new", counts, variants, people)
    found = json.loads(cli("inspect", *words, "--json").out)["genotypes"]
    assert (found["people"]["number"], found["variants"]["number"]) == (180, 200)
    assert found["people"]["more than 10 % of calls missing"] == int((np.isnan(counts).mean(axis=1) > 0.1).sum())
    assert found["calls"]["missing"] == pytest.approx(np.isnan(counts).mean())
    rarer = np.minimum(mean := np.nanmean(np.delete(counts, 3, axis=1), axis=0) / 2, 1 - mean)
    assert found["variants"]["rarer allele below 1 %"] == int((rarer < 0.01).sum())
    assert found["variants"]["A/T or C/G"] == 1
    assert found["chromosomes"] == {str(name): n for name, n in variants["chr"].value_counts(sort=False).items()}
    assert found["fit"]["left out"] == {"variants without a call": 1, "variants with one allele only": 1}
    assert found["fit"]["features"] == 198
    told = cli("inspect", *words).out
    assert "180" in told
    assert "1 variants without a call" in told


def test_inspect_matches_with_a_run(cli, rng, study, fitted, tmp_path):
    counts, variants, people, swapped, _ = rewritten(rng, *content(study))
    words = write_cohort("bed", tmp_path / "new", counts[:, 50:], variants.iloc[50:], people)
    found = json.loads(cli("inspect", fitted, *words, "--json").out)["model"]["cohorts"]["new"]
    used = used_variants(fitted)
    at = variants.iloc[50:].merge(content(study)[1], on=["chr", "pos"])["id_y"]
    assert found["matched"] == int(used.isin(at).sum())
    assert found["swapped"] == int(swapped[used[used.isin(at)]].sum())
    assert f"{found['matched']} of {len(used)} variants of the model matched" in cli("inspect", fitted, *words).out
    assert "name a run" in cli("inspect", code=2).err
    assert "--sheet: is for a table" in cli("inspect", *words, "--sheet", "a", code=2).err
