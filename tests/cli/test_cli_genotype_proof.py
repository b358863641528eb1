"""Certificates of runs on genotypes: written by `fit`, proved by `verify` from the files, refused after any change."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tasksieve as ts
from tasksieve import verify as verifier
from tasksieve.datasets import write_toy_genotypes
from tasksieve.proof.certificate import Certificate
from tasksieve.runs import RunFolder, load_model
from tasksieve.runs.folder import file_digest


@pytest.fixture
def toy(tmp_path):
    """40 people of each of three cohorts, 60 variants; a phenotype of words, one of times, and one with holes."""
    prefix = write_toy_genotypes(tmp_path, n_rows=40, n_variants=60)
    frame = pd.read_csv(f"{prefix}.pheno", sep="\t")
    rng = np.random.default_rng(0)
    frame["other"] = np.round(-frame["trait"] + rng.standard_normal(len(frame)), 3)
    frame.loc[::7, "other"] = -9
    frame["ill"] = rng.choice(["yes", "no"], len(frame))
    frame["days"] = np.ceil(20 * rng.exponential(size=len(frame))).astype(int)
    frame["dead"] = rng.integers(0, 2, len(frame))
    frame["w"] = np.resize([1.0, 2.0, 0.5, 0.0], len(frame))
    frame.to_csv(f"{prefix}.pheno", sep="\t", index=False, na_rep="NA")
    covar = pd.read_csv(f"{prefix}.covar", sep="\t")
    covar["site"] = np.resize(["a", "b", "c"], len(covar))
    covar.to_csv(f"{prefix}.covar", sep="\t", index=False)
    return Path(prefix)


def fit(cli, toy, run, *words, bfile=True):
    files = ["--bfile", toy] if bfile else []
    files += ["--pheno", f"{toy}.pheno", "--out", run, "--no-report", "-q"]
    cli("fit", *files, *map(str, words))
    return verifier.read_certificate(run / "certificate.npz")


def alone(run, *prefixes, covar=True):
    """The exit code of the verifier alone, which knows nothing of the run."""
    words = [word for prefix in prefixes for word in ("--bfile", str(prefix))]
    words += ["--pheno", f"{prefixes[0]}.pheno", *(["--covar", f"{prefixes[0]}.covar"] if covar else [])]
    return verifier.main([str(run / "certificate.npz"), *words])


RUNS = {
    "tasks, a path": ("--pheno-name", "trait", "--task", "cohort", "--alphas", "3", "--eps", "0.5", "--cv", "2",
                      "--maf", "0.05"),
    "classes, weights": ("--pheno-name", "ill", "--model", "logistic", "--task", "cohort", "--alpha", "0.05",
                         "--weights", "w"),
    "two phenotypes": ("--pheno-name", "trait,other", "--alpha", "0.3"),
    "times": ("--time", "days", "--event", "dead", "--model", "cox", "--task", "cohort", "--alpha", "0.2"),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("words", RUNS.values(), ids=RUNS)
def test_runs_are_proved_from_their_files_and_refused_after_one_call(cli, toy, tmp_path, words):
    run = tmp_path / "run"
    fit(cli, toy, run, "--covar", f"{toy}.covar", *words)
    assert "people and" in cli("verify", run, "--all").out
    assert alone(run, toy) == 0
    content = bytearray(Path(f"{toy}.bed").read_bytes())
    content[-5] ^= 0b10
    Path(f"{toy}.bed").write_bytes(content)
    assert "not the matrix of the certificate" in cli("verify", run, code=1).out
    assert alone(run, toy) == 1


def test_a_run_says_what_its_certificate_does(cli, toy, tmp_path):
    """Files of a run, and the recipe: what the options name, and nothing else."""
    run = tmp_path / "run"
    cert = fit(cli, toy, run, "--covar", f"{toy}.covar", "--pheno-name", "trait", "--task", "cohort", "--alpha", "0.3")
    recipe = cert["genotypes"]
    assert [one.get("equals") for one in recipe["covariates"]] == [None, None, "b", "c"]
    assert recipe["target"] == "trait"
    assert len(recipe["people"]) == 120
    for change in (
        lambda own: own["people"].reverse(),
        lambda own: own.update(target="other"),
        lambda own: own["variants"].__setitem__(0, own["variants"][0].replace(" 100000 ", " 100001 ")),
    ):
        cert = verifier.read_certificate(run / "certificate.npz")
        change(cert["genotypes"])
        shutil.copytree(run, tmp_path / "forged", dirs_exist_ok=True)
        Certificate(cert.header, cert.arrays).save(tmp_path / "forged" / "certificate.npz")
        old, new = (file_digest(one / "certificate.npz") for one in (run, tmp_path / "forged"))
        manifest = (run / "manifest.json").read_text()
        assert old in manifest
        (tmp_path / "forged" / "manifest.json").write_text(manifest.replace(old, new))
        assert "are not those that the options of the run name" in cli("verify", tmp_path / "forged", code=1).out


def test_studies_and_chromosomes(cli, toy, tmp_path):
    """Two studies, one of which counts other alleles, are tasks; and files cut by chromosomes."""
    X = ts.read_plink(str(toy))
    half = np.arange(X.n_rows) % 2 == 0
    for name, rows in (("one", half), ("two", ~half)):
        ts.genotypes.write_plink(X.with_people(rows), tmp_path / name)
    bim = pd.read_csv(tmp_path / "two.bim", sep="\t", header=None, dtype=str)
    content = np.frombuffer((tmp_path / "two.bed").read_bytes()[3:], dtype=np.uint8).reshape(len(bim), -1).copy()
    turned = np.arange(len(bim)) % 3 == 0
    pairs = content[turned]
    unlike = (pairs ^ (pairs >> 1)) & 0x55  # missing calls, and those of one copy
    content[turned] = pairs ^ 0xFF ^ (unlike | unlike << 1)
    (tmp_path / "two.bed").write_bytes(b"\x6c\x1b\x01" + content.tobytes())
    bim.loc[turned, [4, 5]] = bim.loc[turned, [5, 4]].to_numpy()
    bim.to_csv(tmp_path / "two.bim", sep="\t", header=False, index=False)
    pheno = pd.read_csv(f"{toy}.pheno", sep="\t").drop(columns="cohort")
    pheno.to_csv(tmp_path / "one.pheno", sep=" ", index=False)
    words = ["--bfile", tmp_path / "one", "--bfile", tmp_path / "two", "--pheno", tmp_path / "one.pheno", "-q"]
    words += ["--pheno-name", "trait", "--task", "cohort", "--alpha", "0.3", "--no-report"]
    cli("fit", *words, "--out", tmp_path / "run")
    assert verifier.read_certificate(tmp_path / "run" / "certificate.npz")["tasks"] == ["one", "two"]
    cli("verify", tmp_path / "run")
    assert alone(tmp_path / "run", tmp_path / "one", tmp_path / "two", covar=False) == 0
    content[-1, 0] ^= 0b01
    (tmp_path / "two.bed").write_bytes(b"\x6c\x1b\x01" + content.tobytes())
    assert alone(tmp_path / "run", tmp_path / "one", tmp_path / "two", covar=False) == 1


def test_other_files_are_proved_as_they_are_and_from_a_bed_of_plink2(cli, toy, tmp_path):
    pytest.importorskip("pgenlib", reason="pgenlib (the test extra) reads .pgen files")
    if shutil.which("plink2") is None:
        pytest.skip("plink2 is not on the path")

    def plink2(*words):
        subprocess.run(["plink2", *map(str, words)], check=True, capture_output=True)

    plink2("--bfile", toy, "--make-pgen", "--out", toy)
    run = tmp_path / "run"
    given = ["--pfile", toy, "--covar", f"{toy}.covar", "--pheno-name", "trait", "--task", "cohort", "--alpha", "0.3"]
    fit(cli, toy, run, *given, bfile=False)
    assert f"plink2 --pfile {toy} --make-bed --out {toy}" in cli("verify", run).out
    out = tmp_path / "exported"
    plink2("--pfile", toy, "--make-bed", "--out", out)
    for name in ("pheno", "covar"):
        shutil.copy(f"{toy}.{name}", f"{out}.{name}")
    assert alone(run, out) == 0
    cli("verify", run, "--data", out)
    (tmp_path / "exported.bed").write_bytes((tmp_path / "exported.bed").read_bytes()[:-1] + b"\0")
    assert alone(run, out) == 1
    cli("verify", run, "--data", out, code=1)


def test_dosages(cli, toy, tmp_path):
    """Of a .pgen and a .bgen file: fitted, proved, refused after a dosage is changed."""
    pgenlib = pytest.importorskip("pgenlib", reason="pgenlib (the test extra) reads .pgen files")
    X = ts.read_plink(str(toy))
    calls = X.calls(np.arange(X.n_variants)).T
    rng = np.random.default_rng(1)
    copies = np.where(np.isnan(calls), -9.0, np.clip(calls + rng.normal(0, 0.1, calls.shape), 0, 2))
    variants = X.variants[["chr", "pos", "id", "other_allele", "effect_allele"]]
    variants.set_axis(["#CHROM", "POS", "ID", "REF", "ALT"], axis=1).to_csv(f"{toy}.pvar", sep="\t", index=False)
    X.samples[["fid", "iid"]].set_axis(["#FID", "IID"], axis=1).to_csv(f"{toy}.psam", sep="\t", index=False)

    def write():
        writer = pgenlib.PgenWriter(
            f"{toy}.pgen".encode(), X.n_rows, variant_ct=X.n_variants, nonref_flags=False, dosage_present=True
        )
        for row in copies:
            writer.append_dosages(np.ascontiguousarray(row))
        writer.close()

    write()
    words = ["--pheno-name", "trait", "--task", "cohort", "--alpha", "0.3"]
    cert = fit(cli, toy, tmp_path / "run", "--pfile", toy, "--dosage", "8", *words, bfile=False)
    assert "genotypes" not in cert.header
    assert "arrays of the rounded numbers" in cli("verify", tmp_path / "run").out
    given = ["--pfile", toy, "--dosage", "8", "--pheno", f"{toy}.pheno"]
    cli("predict", tmp_path / "run", *given, "-o", tmp_path / "found.csv")
    same = ts.read_pgen(str(toy), dosages=8)
    task = pd.read_csv(f"{toy}.pheno", sep="\t")["cohort"]
    wanted = load_model(RunFolder(tmp_path / "run")).estimator.predict(same, task=task)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "found.csv")["prediction"], wanted, atol=1e-12)
    assert f"{120 * same.n_variants:,} bytes of calls" in cli("inspect", *given[:4]).out
    files = ["--pheno", f"{toy}.pheno", *words, "--out", tmp_path / "no"]
    assert "--dosage: .bed files hold hard calls" in cli("fit", "--bfile", toy, *files, "--dosage", "8", code=2).err
    assert "--dosage" in cli("fit", "--pfile", toy, *files, "--dosage", "9", code=None).err
    if shutil.which("plink2") is not None:
        export = ["plink2", "--pfile", toy, "--export", "bgen-1.2", "bits=8", "ref-first", "--out", toy]
        subprocess.run(list(map(str, export)), check=True, capture_output=True)
        fit(cli, toy, tmp_path / "other", "--bgen", f"{toy}.bgen", *words, bfile=False)
        cli("verify", tmp_path / "other")
    copies[3, 5] = 2.0 - copies[3, 5]
    write()
    assert "not the matrix" in cli("verify", tmp_path / "run", code=1).out
