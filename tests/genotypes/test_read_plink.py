"""`read_plink`: several files, cohorts, filters, covariates; and models on what it gives."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from plink_files import draw_counts, filled, write_plink

import tasksieve as ts


@pytest.fixture
def study(rng, tmp_path):
    counts = draw_counts(rng, 90, 40, 0.05)
    prefix = write_plink(tmp_path / "study", counts)
    task = rng.choice(["b", "a", "c"], 90)
    y = np.nan_to_num(counts[:, 3] - 0.8 * counts[:, 17]) + (task == "a") + 0.3 * rng.standard_normal(90)
    return prefix, counts, y, task


def agree(model, other):
    np.testing.assert_allclose(model.coef_, other.coef_, atol=2e-7)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-6)


@pytest.mark.parametrize("standardize", [False, True])
def test_fit_path_cv_and_predict_match_the_dense_array(rng, study, standardize):
    prefix, counts, y, task = study
    X, dense = ts.read_plink(prefix), filled(counts, task)
    weights = rng.uniform(0.5, 2.0, 90)
    weights[:5] = 0.0
    options = {"standardize": standardize, "tol": 1e-10}
    model = ts.MultiTaskLasso(0.05, **options).fit(X, y, task=task, sample_weight=weights)
    other = ts.MultiTaskLasso(0.05, **options).fit(dense, y, task=task, sample_weight=weights)
    agree(model, other)
    np.testing.assert_allclose(model.predict(X, task=task), other.predict(dense, task=task), atol=1e-6)
    path, other_path = (ts.MultiTaskLasso(**options).path(x, y, task=task, n_alphas=8) for x in (X, dense))
    np.testing.assert_allclose(path.coef(7).toarray(), other_path.coef(7).toarray(), atol=1e-6)
    np.testing.assert_allclose(path.predict(X, 7, task=task), other_path.predict(dense, 7, task=task), atol=1e-5)
    np.testing.assert_allclose(path.model(7).predict(X, task=task), path.predict(X, 7, task=task))
    cv, other_cv = (
        ts.MultiTaskLassoCV(n_alphas=8, eps=0.1, cv=3, fold_tol=1e-10, **options).fit(x, y, task=task)
        for x in (X, dense)
    )
    np.testing.assert_allclose(cv.cv_scores_, other_cv.cv_scores_, rtol=1e-6)


def test_one_matrix_and_several_phenotypes(rng, study):
    """Means over all people, whichever phenotypes they have."""
    prefix, counts, y, _ = study
    Y = np.column_stack([y, -y, y**2])
    Y[rng.random(Y.shape) < 0.3] = np.nan
    X, dense = ts.read_plink(prefix), filled(counts, np.zeros(90))
    model = ts.MultiTaskLasso(0.05, tol=1e-10).fit(X, Y)
    other = ts.MultiTaskLasso(0.05, tol=1e-10).fit(dense, Y)
    agree(model, other)
    np.testing.assert_allclose(model.predict(X), other.predict(dense), atol=1e-6)


def test_many_phenotypes_and_classes(rng, study):
    prefix, counts, y, task = study
    X, dense = ts.read_plink(prefix), filled(counts, np.zeros(90))
    Y = np.column_stack([y + rng.standard_normal(90) for _ in range(7)])
    agree(ts.MultiTaskLasso(0.1, tol=1e-10).fit(X, Y), ts.MultiTaskLasso(0.1, tol=1e-10).fit(dense, Y))
    classes = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    model, other = (
        ts.MultiTaskClassifier(alpha=0.05, tol=1e-9).fit(x, classes, task=task)
        for x in (X, filled(counts, task))
    )
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)
    np.testing.assert_array_equal(model.predict(X, task=task), other.predict(filled(counts, task), task=task))


def test_covariates_are_not_penalised(rng, study):
    prefix, counts, y, task = study
    beside = rng.standard_normal((90, 2))
    X = ts.read_plink(prefix).with_covariates(beside, ["age", "sex"])
    assert X.shape == (90, 42)
    assert X.feature_names[:3].tolist() == ["age", "sex", "rs1_0_A"]
    dense = np.column_stack([beside, filled(counts, task)])
    model = ts.MultiTaskLasso(0.1, feature_weights=X.feature_weights, tol=1e-10).fit(X, y, task=task)
    other = ts.MultiTaskLasso(0.1, feature_weights=X.feature_weights, tol=1e-10).fit(dense, y, task=task)
    agree(model, other)
    assert model.coef_[:, :2].all()
    np.testing.assert_allclose(model.predict(X, task=task), other.predict(dense, task=task), atol=1e-6)
    with pytest.raises(ValueError, match=r"'sex' of person 5 .* is nan"):
        beside[4, 1] = np.nan
        ts.read_plink(prefix).with_covariates(beside, ["age", "sex"])


def test_new_people_get_the_means_of_the_fit(rng, study, tmp_path):
    """Variants in another order, some counted by the other allele, one not there at all."""
    prefix, counts, y, task = study
    X = ts.read_plink(prefix)
    model = ts.MultiTaskLasso(0.02).fit(X, y, task=task)
    new = draw_counts(rng, 13, 40, 0.3)
    new[:, 3] = np.nan
    order = rng.permutation(np.delete(np.arange(40), 17))
    turned = np.flatnonzero(rng.random(len(order)) < 0.5)
    written = new[:, order].copy()
    written[:, turned] = 2.0 - written[:, turned]
    write_plink(tmp_path / "raw", written)
    lines = [f"chr1 new{j} 0 {1000 + 10 * j} A G" for j in order]
    for k in turned:
        lines[k] = lines[k].replace("A G", "C T")  # the other allele, on the other strand
    (tmp_path / "raw.bim").write_text("\n".join(lines))
    found = ts.read_plink(str(tmp_path / "raw"), like=X)
    new[:, 17] = np.nan
    np.testing.assert_array_equal(found.calls(np.arange(40)), new)
    means = np.array([[np.nanmean(counts[task == t, j]) for j in range(40)] for t in "abc"])
    for t, label in enumerate("abc"):
        expected = np.where(np.isnan(new), means[t], new) @ model.coef_[t] + model.intercept_[t]
        np.testing.assert_allclose(model.predict(found)[:, t], expected, atol=1e-12)
        np.testing.assert_allclose(model.predict(found, task=[label] * 13), expected, atol=1e-12)
    copied = pickle.loads(pickle.dumps((model, found)))
    np.testing.assert_array_equal(copied[0].predict(copied[1]), model.predict(found))
    with pytest.raises(ValueError, match="like="):
        model.predict(ts.read_plink(str(tmp_path / "raw"), like=X).with_variants(np.arange(40)[::-1]))


def test_chromosomes_in_files_of_their_own(rng, tmp_path):
    counts = [draw_counts(rng, 23, n) for n in (7, 5, 6)]
    for name, own in zip(("2", "10", "X"), counts, strict=True):
        write_plink(tmp_path / f"chr{name}", own, chromosome=name)
    X = ts.read_plink(str(tmp_path / "chr@"))
    assert X.variants["chr"].tolist() == ["2"] * 7 + ["10"] * 5 + ["X"] * 6
    np.testing.assert_array_equal(X.calls(np.arange(18)), np.hstack(counts))
    mapped = X.in_task_order(None, np.array([0, 9, 23]))
    copied = X.in_task_order(np.arange(23)[::-1], np.array([0, 14, 23]))
    assert mapped.costly_reads
    dense = filled(np.hstack(counts), np.repeat([0, 1], [9, 14]))
    np.testing.assert_array_equal(mapped.take(np.arange(18)), dense)
    np.testing.assert_array_equal(copied.take(np.arange(18)), dense[::-1])
    write_plink(tmp_path / "chr3", draw_counts(rng, 22, 4), chromosome="3")
    with pytest.raises(ValueError, match="different people"):
        ts.read_plink(str(tmp_path / "chr@"))
    with pytest.raises(ValueError, match="in place of @"):
        ts.read_plink(str(tmp_path / "other@"))


def test_cohorts_are_matched(rng, tmp_path):
    """The same alleles, swapped, on the other strand, both; ambiguous, other alleles, absent and repeated ones go."""
    first, second = draw_counts(rng, 15, 8, 0.0), draw_counts(rng, 12, 8, 0.0)
    write_plink(tmp_path / "one", first, alleles=[*[("A", "G")] * 4, ("A", "T"), ("C", "G"), ("A", "G"), ("A", "G")])
    others = [("A", "G"), ("G", "A"), ("T", "C"), ("C", "T"), ("A", "T"), ("C", "G"), ("A", "C"), ("A", "G")]
    people = [("two", f"{i}") for i in range(12)]
    write_plink(tmp_path / "two", second, chromosome="chr1", alleles=others, people=people)
    bim = (tmp_path / "two.bim").read_text().splitlines()
    bim[7] = bim[7].replace("1070", "5555")
    (tmp_path / "two.bim").write_text("\n".join(bim))
    X = ts.read_plink([str(tmp_path / "one"), str(tmp_path / "two")])
    assert X.shape == (27, 4)
    assert X.samples["cohort"].tolist() == ["one"] * 15 + ["two"] * 12
    expected = np.vstack([first[:, :4], second[:, :4]])
    expected[15:, [1, 3]] = 2.0 - expected[15:, [1, 3]]
    np.testing.assert_array_equal(X.calls(np.arange(4)), expected)
    assert X.dropped["variants A/T or C/G (cohorts)"] == 2
    assert X.dropped["variants with other alleles (cohorts)"] == 1
    assert X.dropped["variants not in every cohort"] == 1
    task = rng.integers(0, 2, 27)
    order = np.argsort(task, kind="stable")
    storage = X.in_task_order(order, np.array([0, int((task == 0).sum()), 27]))
    np.testing.assert_array_equal(storage.take(np.arange(4)), expected[order])
    with pytest.raises(ValueError, match="no variant in common"):
        (tmp_path / "two.bim").write_text("\n".join(line.replace("chr1", "chr2") for line in bim))
        ts.read_plink([str(tmp_path / "one"), str(tmp_path / "two")])


def test_filters_and_what_they_drop(rng, tmp_path):
    counts = draw_counts(rng, 40, 12, 0.0)
    counts[:, 0], counts[:, 1] = np.nan, 2.0  # no calls; one allele
    counts[:, 2] = 0.0
    counts[0, 2] = 1.0  # rare: 1/80
    counts[:20, 3] = np.nan  # half missing
    counts[5] = np.nan  # a person without calls
    prefix = write_plink(tmp_path / "x", counts)
    X = ts.read_plink(prefix)
    assert X.dropped == {"variants without a call": 1, "variants with one allele only": 1}
    keep = tmp_path / "keep"
    keep.write_text("#FID IID\n" + "".join(f"f{i} i{i}\n" for i in range(38)))
    X = ts.read_plink(
        prefix, keep=keep, remove=["i3"], extract=[f"rs1_{j}" for j in range(11)], exclude=["rs1_9"], mind=0.5,
        geno=0.2, maf=0.05,
    )  # fmt: skip
    assert X.n_rows == 40 - 2 - 1 - 1
    assert "i5" not in X.samples["iid"].tolist()
    assert X.variants["id"].tolist() == [f"rs1_{j}" for j in (4, 5, 6, 7, 8, 10)]
    assert X.dropped == {
        "people not in keep": 2,
        "people in remove": 1,
        "variants not in extract": 1,
        "variants in exclude": 1,
        "people with missing calls (mind)": 1,
        "variants without a call": 1,
        "variants with one allele only": 1,
        "variants with missing calls (geno)": 1,
        "variants too rare (maf)": 1,
    }
    task = np.repeat(["a", "b"], 20)
    within = ts.read_plink(prefix, task=task, task_geno=0.3, task_maf=0.01)
    assert within.dropped["variants with missing calls in a task (task_geno)"] == 1
    assert within.dropped["variants too rare in a task (task_maf)"] >= 1
    for options, words in (
        ({"keep": ["nobody"]}, "keep names no person"),
        ({"extract": ["none"]}, "leave no variant"),
        ({"maf": 2}, "maf. parameter must be"),
        ({"maf": 0.5}, "no variant is left"),
        ({"task_maf": 0.1}, "need task"),
        ({"like": X, "maf": 0.1}, "cannot go together"),
        ({"keep": tmp_path / "nothing"}, "there is no file"),
    ):
        with pytest.raises(ValueError, match=words):
            ts.read_plink(prefix, **options)


def test_people_there_twice(rng, tmp_path):
    people = [("f", f"i{i}") for i in range(8)]
    people[6] = people[2]
    prefix = write_plink(tmp_path / "x", draw_counts(rng, 8, 5), people=people)
    with pytest.raises(ValueError, match=r"line 7: person f i2 is in line 3"):
        ts.read_plink(prefix)


def test_a_certificate_is_about_the_means(study):
    """Missing calls in scattered tasks: the proof reads what the solver read."""
    prefix, counts, y, task = study
    y[:4] = np.nan  # the means are those of all people, with a phenotype or without
    X = ts.read_plink(prefix)
    model = ts.MultiTaskLasso(0.05).fit(X, y, task=task)
    certificate = model.certificate(X, y, task=task)
    assert certificate.verify(filled(counts, task), y, task=task).proved
    assert not certificate.verify(filled(counts, np.zeros(90)), y, task=task).proved


def test_findings_on_genotypes(study):
    prefix, counts, y, task = study
    X, dense = ts.read_plink(prefix), filled(counts, task)
    first, second = (
        ts.StabilitySelection(ts.MultiTaskLasso(), n_pairs=5).fit(x, y, task=task) for x in (X, dense)
    )
    np.testing.assert_allclose(first.selection_probabilities_, second.selection_probabilities_)


def test_it_works_without_pandas(study, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    X = ts.read_plink(study[0])
    assert X.variants["id"][2] == "rs1_2"
    assert X.samples.columns[:2] == ["fid", "iid"]
    assert len(X.samples) == 90
