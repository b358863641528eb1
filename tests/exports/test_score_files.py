"""Score files of genotype models: plink2 --score, by plink2 itself, and PGS Catalog's format."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cohort_files import write_cohort
from plink_files import draw_counts, filled

import tasksieve as ts

PLINK2 = shutil.which("plink2")
ROWS, VARIANTS = 90, 12
needs_plink2 = pytest.mark.skipif(PLINK2 is None, reason="plink2 is not installed (apt-get install plink2)")


@pytest.fixture
def study(rng, tmp_path):
    """Genotypes in files, two tasks, a covariate; every fifth call is missing."""
    counts = draw_counts(rng, ROWS, VARIANTS, 0.2)
    pairs = [("A", "G"), ("C", "T"), ("G", "T")] * (VARIANTS // 3)
    variants = pd.DataFrame({
        "chr": ["1"] * 6 + ["7"] * 6, "pos": 100 * np.arange(1, VARIANTS + 1),
        "id": [f"rs{j}" for j in range(1, VARIANTS)] + ["7:1200"],
        "effect_allele": [a for a, _ in pairs], "other_allele": [b for _, b in pairs],
    })  # fmt: skip
    people = pd.DataFrame({"fid": [f"f{i}" for i in range(ROWS)], "iid": [f"i{i}" for i in range(ROWS)]})
    _, prefix = write_cohort("bed", tmp_path / "toy", counts, variants, people)
    return counts, variants, people, prefix, np.resize(["in vitro", "b"], ROWS), rng.standard_normal(ROWS)


def effects(rng):
    return rng.standard_normal(VARIANTS)


def plink2_sums(folder, scores, prefix):
    """What plink2 adds up, by the commands that the JSON file has."""
    found = {}
    for own in scores:
        command = [PLINK2, "--threads", "1", "--memory", "640", *own["plink2"].split()[1:]]
        command[command.index("PREFIX")] = str(prefix)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        table = pd.read_csv(folder / f"{command[-1]}.sscore", sep="\t").set_index("IID")
        found[own["task"]] = table[f"{own['column']}_SUM"]
    return found


def close_to_print(printed, expected):
    """plink2 prints six digits."""
    np.testing.assert_allclose(printed, expected, rtol=5.1e-6, atol=1e-12)


@needs_plink2
def test_plink2_gives_the_predictions_less_intercept_and_covariates(rng, study, tmp_path):
    counts, variants, people, prefix, task, age = study
    X = ts.read_plink(str(prefix)).with_covariates(age, ["age"])
    y = filled(counts, task) @ effects(rng) + age
    model = ts.MultiTaskLasso(0.1, feature_weights=X.feature_weights).fit(X, y, task=task)
    (tmp_path / "out").mkdir()
    file = ts.export(model, tmp_path / "out" / "trait.score", variants=X)
    beside = json.loads(Path(f"{file}.json").read_text())
    assert [own["task"] for own in beside["scores"]] == ["b", "in vitro"]
    assert beside["scores"][1]["column"] == "in_vitro"
    assert beside["claims"]["dual_gap"] == model.dual_gap_
    sums = plink2_sums(file.parent, beside["scores"], prefix)
    # others write the same with alleles the other way round and people in another order
    order, swap = rng.permutation(ROWS), rng.random(VARIANTS) < 0.5
    turned = variants.copy()
    alleles = ["effect_allele", "other_allele"]
    turned.loc[swap, alleles] = variants.loc[swap, alleles[::-1]].to_numpy()
    _, other = write_cohort(
        "bed", tmp_path / "other", np.where(swap, 2 - counts, counts)[order], turned, people.iloc[order]
    )
    theirs = plink2_sums(file.parent, beside["scores"], other)
    predicted = model.predict(X)
    for t, own in enumerate(beside["scores"]):
        expected = predicted[:, t] - own["intercept"] - own["covariates"]["age"] * age
        assert own["intercept"] == model.intercept_[t]
        close_to_print(sums[own["task"]], expected)
        close_to_print(theirs[own["task"]][people["iid"]], expected)


@needs_plink2
@pytest.mark.parametrize("kind", ["pgen", "zarr"])
def test_plink2_from_the_command_line(cli, rng, study, tmp_path, kind):
    """Several phenotypes have one mean, and one file of frequencies; fitted to other kinds of files."""
    counts, variants, people, prefix, _, _ = study
    words = write_cohort(kind, tmp_path / "again", counts, variants, people)
    pheno = people[["iid"]].rename(columns={"iid": "#IID"})
    for name in ("height", "weight"):
        pheno[name] = filled(counts, np.zeros(ROWS)) @ effects(rng)
    pheno.to_csv(tmp_path / "p", sep="\t", index=False)
    words += ["--pheno", tmp_path / "p", "--pheno-name", "height,weight", "--alpha", "0.05", "--no-report", "-q"]
    cli("fit", *words, "--out", tmp_path / "run")
    (tmp_path / "out").mkdir()
    told = cli("export", tmp_path / "run", "-o", tmp_path / "out" / "body.score").err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["body.afreq", "body.score", "body.score.json"]
    assert "body.afreq" in told
    beside = json.loads((tmp_path / "out" / "body.score.json").read_text())
    certificate = hashlib.sha256((tmp_path / "run" / "certificate.npz").read_bytes()).hexdigest()
    assert beside["claims"]["certificate"] == f"sha256:{certificate}"
    sums = plink2_sums(tmp_path / "out", beside["scores"], prefix)
    cli("predict", tmp_path / "run", "--bfile", prefix, "--out", tmp_path / "ours.csv", "-q")
    ours = pd.read_csv(tmp_path / "ours.csv")
    for own in beside["scores"]:
        close_to_print(sums[own["task"]], ours[f"prediction ({own['task']})"] - own["intercept"])


def read_pgs(file):
    """Header and table, as any reader of the format would."""
    lines = file.read_text().splitlines()
    header = dict(line[1:].split("=", 1) for line in lines if line.startswith("#") and not line.startswith("##"))
    assert lines[0].startswith("###PGS CATALOG SCORING FILE")
    return header, list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


def test_pgs_files_hold_what_is_needed(cli, rng, study, tmp_path):
    counts, variants, people, prefix, task, age = study
    score = filled(counts, task) @ effects(rng)
    pheno = people.set_axis(["FID", "IID"], axis=1).assign(sick=1 + (score > np.median(score)), where=task)
    pheno["where"] = pheno["where"].str.replace(" ", "-")
    covar = pheno[["FID", "IID"]].assign(age=age, site=np.resize(["x", "y", "y"], ROWS))
    for name, frame in (("p", pheno), ("c", covar)):
        frame.to_csv(tmp_path / name, sep="\t", index=False)
    words = ["--bfile", prefix, "--pheno", tmp_path / "p", "--covar", tmp_path / "c", "--pheno-name", "sick"]
    words += ["--task", "where", "--model", "logistic", "--alpha", "0.02", "--no-report", "-q"]
    cli("fit", *words, "--out", tmp_path / "run")
    cli("export", tmp_path / "run", "-o", tmp_path / "sick.pgs.txt", "--genome-build", "GRCh38", "-q")
    cli("predict", tmp_path / "run", *words[:6], "--probabilities", "--out", tmp_path / "ours.csv", "-q")
    ours = pd.read_csv(tmp_path / "ours.csv")["probability of 2"].to_numpy()
    place = {(c, str(p)): j for j, (c, p) in enumerate(variants[["chr", "pos"]].to_numpy())}
    for name, label in (("b", "b"), ("in-vitro", "in vitro")):
        header, rows = read_pgs(tmp_path / f"sick.{name}.pgs.txt")
        assert (header["format_version"], header["genome_build"]) == ("2.0", "GRCh38")
        assert (header["weight_type"], header["trait_reported"]) == ("log(OR)", "sick")
        assert header["variants_number"] == str(len(rows))
        certificate = hashlib.sha256((tmp_path / "run" / "certificate.npz").read_bytes()).hexdigest()
        assert header["certificate"] == f"sha256:{certificate}"
        gap = json.loads((tmp_path / "run" / "certificate.json").read_text())["dual_gap"]
        assert header["proved"].endswith(f"is at most {gap!r} above the optimum")
        here = task == label
        sums = np.full(ROWS, float(header["intercept"]))
        known = json.loads(header["covariates"])
        sums += known["age"] * age + known["site=y"] * (covar.site == "y")
        for row in rows:
            j = place[row["chr_name"], row["chr_position"]]
            own = counts[:, j]
            mean = 2.0 * float(row["allelefrequency_effect"])
            assert mean == np.nanmean(own[here])
            assert (row["effect_allele"], row["other_allele"]) == tuple(variants.iloc[j, 3:])
            assert row["rsID"] == (variants["id"][j] if j < VARIANTS - 1 else "")
            sums += float(row["effect_weight"]) * np.where(np.isnan(own), mean, own)
        np.testing.assert_allclose(ours[here], 1.0 / (1.0 + np.exp(-sums[here])), rtol=1e-10)
    beside = json.loads((tmp_path / "sick.pgs.txt.json").read_text())
    assert [own["file"] for own in beside["scores"]] == ["sick.b.pgs.txt", "sick.in-vitro.pgs.txt"]
    assert beside["scores"][0]["classes"] == ["1", "2"]
    told = cli("export", tmp_path / "run", "-o", tmp_path / "x.score", "--genome-build", "GRCh38", code=2).err
    assert "--genome-build: is for .pgs.txt files" in told


def test_python_with_a_table_of_variants_and_what_is_refused(rng, study, tmp_path):
    counts, variants, people, prefix, task, _ = study
    X = ts.read_plink(str(prefix))
    y = filled(counts, task) @ effects(rng)
    model = ts.MultiTaskLasso(0.1).fit(X, y, task=task)
    both = [ts.export(model, tmp_path / f"{k}.pgs.txt", variants=own) for k, own in enumerate((X, X.variants))]
    texts = [Path(str(file).replace(".pgs", ".b.pgs")).read_text() for file in both]
    assert texts[0].replace("=0.b", "=1.b") == texts[1]
    of_numbers = ts.MultiTaskLasso(0.1).fit(filled(counts, task), y, task=task)
    cases = {
        "needs the genotypes": (model, "x.score", {}),
        "are for score files": (model, "x.json", {"variants": X}),
        "one of .*\\.score, \\.pgs\\.txt": (model, "x.scores", {"variants": X}),
        "is for a model of genotypes": (of_numbers, "x.score", {"variants": X}),
    }
    for told, (own, name, words) in cases.items():
        with pytest.raises(ValueError, match=told):
            ts.export(own, tmp_path / name, **words)
    names = variants.assign(id=".")
    write_cohort("bed", tmp_path / "nameless", counts, names, people)
    nameless = ts.read_plink(str(tmp_path / "nameless"))
    for chosen, told in ((np.arange(VARIANTS), "two inputs are called"), (np.arange(3), "finds variants by their id")):
        some = nameless.with_variants(chosen)
        with pytest.raises(ValueError, match=told):
            ts.export(ts.MultiTaskLasso(0.01).fit(some, y, task=task), tmp_path / "x.score", variants=some)
    empty = ts.MultiTaskLasso(1e6).fit(X, y, task=task)
    file = ts.export(empty, tmp_path / "none.score", variants=X)
    assert file.read_text() == "ID\tA1\tb\tin_vitro\n"
