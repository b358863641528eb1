"""`tasksieve fit --bfile`: people matched, covariates unpenalised, tables of variants, a score file, the picture."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import tasksieve as ts
from tasksieve.datasets import write_toy_genotypes
from tasksieve.runs import RunFolder, load_model


@pytest.fixture
def toy(tmp_path):
    """60 people of each of three cohorts, 200 variants; three people without a trait, one without a line."""
    prefix = write_toy_genotypes(tmp_path, n_rows=60, n_variants=200)
    lines = (tmp_path / "toy.pheno").read_text().splitlines()
    for k, word in ((3, "-9"), (4, "NA"), (5, "-9")):
        lines[k] = "\t".join([*lines[k].split("\t")[:3], word])
    (tmp_path / "toy.pheno").write_text("\n".join(lines[:-1]))
    return Path(prefix)


WORDS = ("--pheno-name", "trait", "--task", "cohort", "--alpha", "0.3")


def files(toy, *names):
    return [word for name in names for word in (f"--{name}", f"{toy}.{name}")]


def test_a_fit_is_that_of_python(cli, toy, tmp_path):
    given = ["--bfile", toy, *files(toy, "pheno", "covar"), *WORDS, "--out", tmp_path / "run", "--no-report"]
    told = cli("fit", *given, "--maf", "0.05", "--geno", "0.5")
    assert "left out: 4 people without a phenotype" in told.err
    assert "variants too rare (maf)" in told.err
    pheno = pd.read_csv(f"{toy}.pheno", sep="\t", na_values=["-9"]).set_index("IID")
    covar = pd.read_csv(f"{toy}.covar", sep="\t").set_index("IID")
    fam = [line.split()[1] for line in Path(f"{toy}.fam").read_text().splitlines()]
    used = [name for name in fam if name in pheno.index and pheno.trait[name] == pheno.trait[name]]
    X = ts.read_plink(str(toy), keep=used, maf=0.05, geno=0.5).with_covariates(covar.loc[used, ["age", "sex"]])
    model = ts.MultiTaskLasso(0.3, feature_weights=X.feature_weights, standardize=True)
    model.fit(X, pheno.trait[used], task=pheno.cohort[used])
    saved = load_model(RunFolder(tmp_path / "run")).estimator
    np.testing.assert_allclose(saved.coef_, model.coef_, atol=1e-12)
    assert saved.coef_[:, :2].all()
    np.testing.assert_array_equal(saved.predict(X), model.predict(X))  # the means came along
    table = pd.read_csv(tmp_path / "run" / "variants.csv")
    support = np.flatnonzero(model.get_support()[2:])
    assert table["id"].tolist() == X.variants["id"].iloc[support].tolist()
    task = pheno.cohort[used].to_numpy()
    for t, label in enumerate(model.tasks_):
        np.testing.assert_allclose(table[f"coefficient_{label}"], model.coef_[t, 2 + support])
        calls = X.calls(support)[task == label]
        np.testing.assert_allclose(table[f"frequency_{label}"], np.nanmean(calls, axis=0) / 2)
        np.testing.assert_allclose(table[f"call_rate_{label}"], (~np.isnan(calls)).mean(axis=0))
    data = json.loads((tmp_path / "run" / "data.json").read_text())
    assert data["rows"] == len(used)
    assert data["name"] == "toy"
    assert len(data["genome"]) == 22


def test_the_score_file_gives_the_predictions(cli, toy, tmp_path):
    """Copies times scores, added up as plink2 --score does, are the predictions less intercept and covariates."""
    cli("fit", "--bfile", toy, *files(toy, "pheno"), *WORDS, "--out", tmp_path / "run", "--no-report", "-q")
    score = pd.read_csv(tmp_path / "run" / "score.tsv", sep="\t")
    assert score.columns.tolist() == ["ID", "A1", "east", "north", "south"]
    X = ts.read_plink(str(toy))
    position = {(name, allele): j for j, (name, allele) in enumerate(X.variants[["id", "effect_allele"]].to_numpy())}
    calls = X.calls([position[pair] for pair in zip(score["ID"], score["A1"], strict=True)])
    saved = load_model(RunFolder(tmp_path / "run")).estimator
    whole = np.flatnonzero(~np.isnan(calls).any(axis=1))
    sums = calls[whole] @ score[["east", "north", "south"]].to_numpy() + saved.intercept_
    np.testing.assert_allclose(saved.predict(X.with_variants(np.arange(X.n_variants)))[whole], sums, atol=1e-10)


@pytest.mark.slow
def test_a_path_with_stability_and_its_picture(cli, toy, tmp_path):
    given = ["--bfile", toy, *files(toy, "pheno", "covar"), "--pheno-name", "trait", "--task", "cohort"]
    given += ["--alphas", "12", "--eps", "0.2", "--cv", "2", "--stability", "--pairs", "3", "--permutations", "5"]
    told = cli("fit", *given, "--out", tmp_path / "run")
    assert "stable" in told.out
    table = pd.read_csv(tmp_path / "run" / "variants.csv")
    assert {"first_alpha", "stability"} <= set(table.columns)
    path = pd.read_csv(tmp_path / "run" / "path.csv")
    assert set(table["first_alpha"]) <= set(path["alphas"])
    assert (table["first_alpha"] > 0).all()
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert 'id="plot-genome"' in page
    assert '"genome": {' in page
    # the command that the report gives computes the same
    command = json.loads((tmp_path / "run" / "data.json").read_text())["reproduce"].split()
    again = [word if word != str(tmp_path / "run") else str(tmp_path / "again") for word in command[1:]]
    cli(*again, "--no-report", "-q")
    same = pd.read_csv(tmp_path / "again" / "variants.csv")
    pd.testing.assert_frame_equal(table, same)
    cli("report", tmp_path / "run", "-q")


def test_cohorts_are_tasks_and_several_phenotypes_too(cli, toy, tmp_path):
    X = ts.read_plink(str(toy))
    half = np.arange(X.n_rows) % 2 == 0
    for name, rows in (("one", half), ("two", ~half)):
        ts.genotypes.write_plink(X.with_people(rows), tmp_path / name)
    words = ["--bfile", tmp_path / "one", "--bfile", tmp_path / "two", *files(toy, "pheno"), "--no-report", "-q"]
    cli("fit", *words, "--pheno-name", "trait", "--task", "cohort", "--alpha", "0.3", "--out", tmp_path / "a")
    frame = pd.read_csv(f"{toy}.pheno", sep="\t")
    # the file's own column comes first
    assert "coefficient_east" in pd.read_csv(tmp_path / "a" / "variants.csv").columns
    frame["other"] = -frame["trait"]
    frame.drop(columns="cohort").to_csv(tmp_path / "two.pheno", sep=" ", index=False, na_rep="NA")
    words[words.index("--pheno") + 1] = tmp_path / "two.pheno"
    cli("fit", *words, "--pheno-name", "trait", "--task", "cohort", "--alpha", "0.3", "--out", tmp_path / "b")
    assert "coefficient_two" in pd.read_csv(tmp_path / "b" / "variants.csv").columns
    cli("fit", *words, "--pheno-name", "trait,other", "--alpha", "0.3", "--out", tmp_path / "c")
    assert "coefficient_other" in pd.read_csv(tmp_path / "c" / "variants.csv").columns


def test_other_kinds_of_files_give_the_same_run(cli, toy, tmp_path):
    X = ts.read_plink(str(toy))
    pgenlib = pytest.importorskip("pgenlib", reason="pgenlib (the test extra) writes and reads .pgen files")
    zarr = pytest.importorskip("zarr", reason="zarr (the test extra) writes and reads VCF-Zarr stores")
    copies = np.nan_to_num(X.calls(np.arange(X.n_variants)), nan=-9).astype(np.int8).T
    writer = pgenlib.PgenWriter(f"{toy}.pgen".encode(), X.n_rows, variant_ct=X.n_variants, nonref_flags=False)
    writer.append_biallelic_batch(np.ascontiguousarray(copies))
    writer.close()
    variants = X.variants[["chr", "pos", "id", "other_allele", "effect_allele"]]
    variants.columns = ["#CHROM", "POS", "ID", "REF", "ALT"]
    variants.to_csv(f"{toy}.pvar", sep="\t", index=False)
    people = X.samples[["fid", "iid", "sex"]].rename(columns={"fid": "#FID", "iid": "IID", "sex": "SEX"})
    people.to_csv(f"{toy}.psam", sep="\t", index=False)
    store = zarr.open_group(f"{toy}.vcz", mode="w", zarr_format=2)
    calls = np.stack([copies >= 2, copies >= 1], axis=2).astype(np.int8)
    calls[copies < 0] = -1
    names, contig = np.unique(variants["#CHROM"].to_numpy(str), return_inverse=True)
    store.create_array("call_genotype", data=calls)
    store.create_array("variant_contig", data=contig)
    store.create_array("variant_position", data=variants["POS"].to_numpy())
    for name, words in (
        ("contig_id", names), ("variant_id", variants["ID"].to_numpy(str)), ("sample_id", people["IID"].to_numpy(str)),
        ("variant_allele", variants[["REF", "ALT"]].to_numpy(str)),
    ):  # fmt: skip
        store.create_array(name, data=words)
    pheno = pd.read_csv(f"{toy}.pheno", sep="\t", dtype=str).drop(columns="FID").rename(columns={"IID": "#IID"})
    pheno.to_csv(tmp_path / "iid.pheno", sep="\t", index=False, na_rep="NA")
    found = {}
    for flag, path in (("--bfile", toy), ("--pfile", toy), ("--vcf-zarr", f"{toy}.vcz")):
        out = tmp_path / f"run{flag}"
        words = [flag, path, "--pheno", tmp_path / "iid.pheno", *WORDS, "--maf", "0.05", "--no-report", "-q"]
        cli("fit", *words, "--out", out)
        found[flag] = [(out / name).read_bytes() for name in ("variants.csv", "score.tsv")]
        data = json.loads((out / "data.json").read_text())
        assert flag in data["reproduce"]
    assert found["--bfile"] == found["--pfile"] == found["--vcf-zarr"]
    told = cli("fit", "--pfile", toy, "--bfile", toy, *files(toy, "pheno"), *WORDS, "--out", tmp_path / "r", code=2)
    assert "--bfile and --pfile: do not go together" in told.err


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--pheno", "P"], "--target"),
        (["--pheno-name", "trait"], "--pheno: name the file"),
        (["--pheno", "P", "--pheno-name", "height"], "neither --pheno nor --covar has a column 'height'"),
        (["--pheno", "P", "--pheno-name", "trait", "--task", "site"], "has a column 'site'"),
        (["--pheno", "P", "--pheno-name", "trait", "--drop", "a"], "does not go with --bfile"),
        (["--pheno", "P", "--pheno-name", "trait", "--covar-name", "age"], "goes with --covar"),
        (["--pheno", "P", "--pheno-name", "trait", "--extract", "nothing"], "there is no file"),
        (["--pheno", "P", "--pheno-name", "trait", "--maf", "3"], "maf must be"),
        (["--pheno", "P", "--pheno-name", "trait", "--covar", "C", "--model", "owl"], "penalises all features"),
    ],
)
def test_what_is_refused(cli, toy, tmp_path, words, told):
    files = {"P": f"{toy}.pheno", "C": f"{toy}.covar"}
    result = cli("fit", "--bfile", toy, *(files.get(word, word) for word in words), "--out", tmp_path / "r", code=None)
    assert result.code in (1, 2)
    assert told in result.err
    assert not (tmp_path / "r").exists()


def test_options_that_need_genotypes(cli, toy, tmp_path):
    result = cli("fit", f"{toy}.pheno", "--target", "trait", "--maf", "0.1", "--out", tmp_path / "r", code=2)
    assert "--maf: goes with --bfile" in result.err


# --- what is not observed ---------------------------------------------------------------------------------------------

PLINK2 = shutil.which("plink2")


def with_codes(toy: Path, code: str) -> pd.DataFrame:
    """A trait of which a third is not observed, another one, a covariate with holes; written to two files."""
    rng = np.random.default_rng(3)
    pheno = pd.read_csv(f"{toy}.pheno", sep="\t", na_values=["-9"])
    pheno["other"] = pheno.trait + rng.standard_normal(len(pheno))
    pheno.loc[rng.random(len(pheno)) < 0.3, "trait"] = np.nan
    pheno.loc[rng.random(len(pheno)) < 0.1, "other"] = np.nan
    pheno["sick"] = np.where(pheno.other.isna(), np.nan, 1 + (pheno.other > pheno.other.median()))
    covar = pd.read_csv(f"{toy}.covar", sep="\t")
    covar["age"] = covar.age.astype(float).where(rng.random(len(covar)) > 0.05)
    for name, frame in (("pheno", pheno), ("covar", covar)):
        frame.to_csv(f"{toy}.{name}", sep="\t", index=False, na_rep=code)
    return pheno.merge(covar, how="outer", on=["FID", "IID"])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("code", ["-9", "-9.0", "-9.000000", "-9e0", "NA", "nan"])
def test_the_number_of_missing_values_is_no_measurement(cli, toy, tmp_path, code):
    people = with_codes(toy, code)
    given = ["--bfile", toy, *files(toy, "pheno", "covar"), "--pheno-name", "trait", "--alpha", "0.3", "--no-report"]
    told = cli("fit", *given, "--out", tmp_path / "run")
    n_trait, n_age = int(people.trait.isna().sum()), int(people.age.isna().sum())
    written = int(pd.read_csv(f"{toy}.pheno", sep="\t", dtype=str, na_filter=False).trait.eq(code).sum())
    assert 0 < written < n_trait  # one person has no line
    by_code = f" ({written} written as -9)" if code.startswith("-") else ""
    assert f"phenotypes not observed, of 180 people: trait {n_trait}{by_code}\n" in told.err
    assert f"covariates not observed, of 180 people: age {n_age}" in told.err
    used = people[people[["trait", "age"]].notna().all(axis=1)].set_index("IID")
    fam = [line.split()[1] for line in Path(f"{toy}.fam").read_text().splitlines()]
    used = used.loc[[name for name in fam if name in used.index]]
    assert json.loads((tmp_path / "run" / "data.json").read_text())["rows"] == len(used)
    X = ts.read_plink(str(toy), keep=list(used.index)).with_covariates(used[["age", "sex"]])
    model = ts.MultiTaskLasso(0.3, feature_weights=X.feature_weights, standardize=True).fit(X, used.trait)
    np.testing.assert_allclose(load_model(RunFolder(tmp_path / "run")).estimator.coef_, model.coef_, atol=1e-12)


@pytest.mark.parametrize("code", ["-9", "-9.0"])
def test_missing_classes_and_several_phenotypes(cli, toy, tmp_path, code):
    people = with_codes(toy, code)
    given = ["--bfile", toy, *files(toy, "pheno"), "--no-report"]
    told = cli("fit", *given, "--pheno-name", "trait,other", "--alpha", "0.3", "--out", tmp_path / "two")
    n_trait, n_other = int(people.trait.isna().sum()), int(people.other.isna().sum())
    assert f"of 180 people: trait {n_trait} (" in told.err
    assert f"written as -9), other {n_other} (" in told.err
    cli("fit", *given, "--pheno-name", "sick", "--model", "logistic", "--alpha", "0.05", "--out", tmp_path / "classes")
    assert load_model(RunFolder(tmp_path / "classes")).estimator.classes_.tolist() == ["1.0", "2.0"]
    assert json.loads((tmp_path / "classes" / "data.json").read_text())["rows"] == 180 - n_other


def test_zero_of_a_case_control_phenotype_is_told(cli, toy, tmp_path):
    frame = pd.read_csv(f"{toy}.pheno", sep="\t", na_values=["-9"])
    frame["sick"] = np.arange(len(frame)) % 3
    frame.to_csv(f"{toy}.pheno", sep="\t", index=False, na_rep="NA")
    words = ["--bfile", toy, *files(toy, "pheno"), "--pheno-name", "sick", "--model", "logistic", "--alpha", "0.2"]
    told = cli("fit", *words, "--out", tmp_path / "run", "--no-report")
    assert "sick has the classes 0, 1 and 2; if 0 means not observed, as in PLINK, write NA" in told.err


@pytest.mark.skipif(PLINK2 is None, reason="plink2 is not installed (apt-get install plink2)")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("code", ["-9", "-9.0", "-9e0", "NA", "nan"])
def test_plink2_reads_the_same_values(cli, toy, tmp_path, code):
    """The people that plink2 finds a phenotype and all covariates of are those that the model learns from."""
    with_codes(toy, code)
    for name in ("pheno", "covar"):  # plink2 takes no words for a quantitative phenotype
        frame = pd.read_csv(f"{toy}.{name}", sep="\t", dtype=str, na_filter=False)
        frame.drop(columns="cohort", errors="ignore").to_csv(f"{toy}.{name}", sep="\t", index=False)
    words = ["--bfile", toy, *files(toy, "pheno", "covar"), "--make-just-psam", "cols=fid,phenos", "--write-covar"]
    done = subprocess.run([PLINK2, *map(str, words), "--out", str(tmp_path / "p2")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    theirs = pd.read_csv(tmp_path / "p2.psam", sep="\t").merge(pd.read_csv(tmp_path / "p2.cov", sep="\t"))
    given = ["--bfile", toy, *files(toy, "pheno", "covar"), "--alpha", "0.3", "--no-report"]
    told = cli("fit", *given, "--pheno-name", "trait,other", "--out", tmp_path / "run")
    for kind, names in (("phenotypes", ["trait", "other"]), ("covariates", ["age"])):
        line = told.err.split(f"{kind} not observed, of 180 people: ")[1].splitlines()[0]
        counts = re.findall(r"(\w+) (\d+)(?: \(|,|$)", line)
        assert {name: int(count) for name, count in counts} == {name: theirs[name].isna().sum() for name in names}
    known = theirs[["trait", "other"]].notna().any(axis=1) & theirs[["age", "sex"]].notna().all(axis=1)
    assert json.loads((tmp_path / "run" / "data.json").read_text())["rows"] == known.sum()


# --- no variant -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [(), ("--task", "cohort")])
def test_no_variant_is_selected(cli, toy, tmp_path, task):
    """Covariates alone: the coefficients are those of least squares within each task; the tables have no row."""
    given = ["--bfile", toy, *files(toy, "pheno", "covar"), "--pheno-name", "trait", *task, "--alpha", "100"]
    cli("fit", *given, "--tol", "1e-12", "--out", tmp_path / "run")
    assert pd.read_csv(tmp_path / "run" / "variants.csv").empty
    assert pd.read_csv(tmp_path / "run" / "score.tsv", sep="\t").empty
    assert (tmp_path / "run" / "report.html").is_file()
    model = load_model(RunFolder(tmp_path / "run")).estimator
    assert not model.coef_[:, 2:].any()
    pheno, covar = (pd.read_csv(f"{toy}.{name}", sep="\t", na_values=["-9"]) for name in ("pheno", "covar"))
    people = pheno.merge(covar).dropna()
    for t, label in enumerate(model.tasks_.tolist()):
        own = people[people.cohort == label] if task else people
        theirs = LinearRegression().fit(own[["age", "sex"]], own.trait)
        np.testing.assert_allclose(model.coef_[t, :2], theirs.coef_, rtol=1e-6)
        np.testing.assert_allclose(model.intercept_[t], theirs.intercept_, rtol=1e-6)
