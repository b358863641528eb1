"""`read_pgen` and `read_vcf_zarr` against `read_plink` of the same calls and the dense array, verb by verb."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from plink_files import draw_counts, filled
from plink_files import write_plink as write_bed

import tasksieve as ts
from tasksieve.design import DenseStorage, Design
from tasksieve.genotypes.files import BedFile
from tasksieve.genotypes.pgen import PgenFile
from tasksieve.genotypes.vcf_zarr import VcfZarr

ROWS, VARIANTS = 43, 30  # rows: no multiple of 4


def write_pgen(prefix, counts, *, psam=None, pvar=None, chromosome="1", alts=None, start=1000):
    """A .pgen file of copies of ALT (A); REF is G. Where `alts` has two alleles, homozygous calls are of the last."""
    pgenlib = pytest.importorskip("pgenlib", reason="pgenlib (the test extra) writes and reads .pgen files")
    rows, variants = counts.shape
    alts = ["A"] * variants if alts is None else alts
    copies = np.where(np.isnan(counts), -9, counts).astype(np.int8)
    most = 1 + max(len(alt.split(",")) for alt in alts)
    writer = pgenlib.PgenWriter(
        f"{prefix}.pgen".encode(), rows, variant_ct=variants, nonref_flags=False, allele_ct_limit=most
    )
    for j, alt in enumerate(alts):
        if "," not in alt:
            writer.append_biallelic(np.ascontiguousarray(copies[:, j]))
            continue
        pairs = np.array([{-9: (-9, -9), 0: (0, 0), 1: (0, 1), 2: (2, 2)}[int(c)] for c in copies[:, j]])
        writer.append_alleles(pairs.astype(np.int32).ravel())
    writer.close()
    lines = [f"{chromosome}\t{start + 10 * j}\trs{chromosome}_{j}\tG\t{alt}" for j, alt in enumerate(alts)]
    told = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\n" + "\n".join(lines) if pvar is None else pvar
    Path(f"{prefix}.pvar").write_text(told + "\n")
    people = "#FID\tIID\tSEX\n" + "".join(f"f{i}\ti{i}\tNA\n" for i in range(rows)) if psam is None else psam
    Path(f"{prefix}.psam").write_text(people)
    return str(prefix)


def write_zarr(path, counts, *, alts=None, zarr_format=2, haploid=(), half=(), chunks=(7, 11, 2), **others):
    """A store as bio2zarr lays it out; `others` replace arrays (None: leave it out)."""
    zarr = pytest.importorskip("zarr", reason="zarr (the test extra) writes and reads VCF-Zarr stores")
    rows, variants = counts.shape
    alts = [["A"]] * variants if alts is None else alts
    calls = np.zeros((variants, rows, 2), dtype=np.int8)
    calls[:, :, 1] = counts.T >= 1
    calls[:, :, 0] = counts.T >= 2
    calls[np.isnan(counts.T)] = -1
    for j, i in haploid:
        calls[j, i, 1] = -2
    for j, i in half:
        calls[j, i] = (-1, 0)
    width = 1 + max(len(alt) for alt in alts)
    arrays = {
        "call_genotype": calls,
        "variant_contig": np.zeros(variants, dtype=np.int8),
        "contig_id": np.array(["1", "2"]),
        "variant_position": np.arange(1000, 1000 + 10 * variants, 10, dtype=np.int32),
        "variant_id": np.array([f"rs1_{j}" for j in range(variants)]),
        "variant_allele": np.array([["G", *alt, *[""] * (width - 1 - len(alt))] for alt in alts]),
        "sample_id": np.array([f"i{i}" for i in range(rows)]),
        **others,
    }
    group = zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
    for name, values in arrays.items():
        if name == "call_genotype":
            group.create_array(name, data=values, chunks=chunks)
        elif values is not None:
            text = values.dtype.kind == "U"  # as bio2zarr has it: of any length
            group.create_array(name, shape=values.shape, dtype=str if text else values.dtype)[:] = values
    return str(path)


@pytest.fixture
def counts(rng):
    counts = draw_counts(rng, ROWS, VARIANTS, 0.12)
    counts[0, 0], counts[1, 0] = 0.0, 2.0
    return counts


@pytest.fixture(params=["pgen", "zarr"])
def pair(request, counts, tmp_path):
    """What read_plink gives, how another reader is called, and where its files are."""
    bed = write_bed(tmp_path / "bed", counts, people=[("0", f"i{i}") for i in range(ROWS)])
    if request.param == "zarr":
        return bed, ts.read_vcf_zarr, write_zarr(tmp_path / "calls.vcz", counts)
    people = "#IID\n" + "".join(f"i{i}\n" for i in range(ROWS))
    return bed, ts.read_pgen, write_pgen(tmp_path / "calls", counts, psam=people)


def same(X, other):
    np.testing.assert_array_equal(X.calls(np.arange(X.n_variants)), other.calls(np.arange(other.n_variants)))
    for name in ("chr", "pos", "id", "effect_allele", "other_allele"):
        assert X.variants[name].tolist() == other.variants[name].tolist()
    for name in ("fid", "iid", "father", "mother", "sex", "phenotype"):
        assert X.samples[name].tolist() == other.samples[name].tolist()
    assert {key: n for key, n in X.dropped.items() if n} == {key: n for key, n in other.dropped.items() if n}


def test_verbs_are_those_of_plink_and_of_the_dense_array(rng, pair, counts):
    bed, read, path = pair
    X, plink = read(path), ts.read_plink(bed)
    same(X, plink)
    source = (PgenFile if read is ts.read_pgen else VcfZarr)(path)
    held, _ = source.held(np.arange(len(source.variants)), np.arange(source.n_people))
    np.testing.assert_array_equal(held.calls, BedFile(bed).calls)  # the same bytes
    task = rng.integers(0, 3, ROWS)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(task, minlength=3))])
    weights, r = rng.uniform(0.5, 2.0, ROWS), rng.standard_normal(ROWS)
    weights[rng.random(ROWS) < 0.2] = 0.0
    varying = [j for j, name in enumerate(f"rs1_{j}" for j in range(VARIANTS)) if name in set(X.variants["id"])]
    for order in (np.argsort(task, kind="stable"), np.arange(ROWS)):  # copied; used as it lies
        dense = counts[:, varying][order]
        dense = DenseStorage(np.asfortranarray(filled(dense, np.repeat([0, 1, 2], np.diff(offsets)))))
        ours, theirs = X.in_task_order(order, offsets), plink.in_task_order(order, offsets)
        every = np.arange(X.n_features)
        np.testing.assert_array_equal(ours.take(every), theirs.take(every))
        np.testing.assert_array_equal(ours.take(every), dense.take(every))
        for squares in (False, True):
            found = [one.products(r, offsets, False, None, squares, 1) for one in (ours, theirs, dense)]
            np.testing.assert_array_equal(found[0], found[1])
            np.testing.assert_allclose(found[0], found[2], atol=1e-11)
        for options in ({}, {"weights": weights}, {"weights": weights, "standardize": True}):
            designs = [Design(one, offsets, **options) for one in (ours, theirs, dense)]
            np.testing.assert_array_equal(designs[0].norms(), designs[1].norms())
            np.testing.assert_array_equal(designs[0].correlate(r), designs[1].correlate(r))
            np.testing.assert_allclose(designs[0].norms(), designs[2].norms(), rtol=1e-11)
            np.testing.assert_allclose(designs[0].correlate(r), designs[2].correlate(r), atol=1e-11)


def test_options_and_a_fit_are_those_of_plink(rng, pair):
    bed, read, path = pair
    options = {
        "keep": [f"i{i}" for i in range(40)], "remove": [("0", "i3")], "exclude": ["rs1_9"], "mind": 0.3, "geno": 0.2,
        "maf": 0.15, "extract": [f"rs1_{j}" for j in range(1, 28)],
    }  # fmt: skip
    X, plink = read(path, **options), ts.read_plink(bed, **options)
    same(X, plink)
    assert X.n_variants < 26
    task = rng.choice(["a", "b"], X.n_rows)
    limits = {"task_maf": 0.2, "task_geno": 0.2}
    whole = rng.choice(["a", "b"], ROWS)
    same(read(path, task=whole, **limits), ts.read_plink(bed, task=whole, **limits))
    y = rng.standard_normal(X.n_rows) + X.take([2])[:, 0]
    ours, theirs = (ts.MultiTaskLasso(0.1).fit(one, y, task=task) for one in (X, plink))
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    copied = pickle.loads(pickle.dumps(X))
    np.testing.assert_allclose(ours.predict(copied), theirs.predict(plink), rtol=1e-12)
    # other files, the columns of the fit: any kind goes with any other
    same(read(path, like=plink), ts.read_plink(bed, like=X))
    both = read(path, like=plink.variants.iloc[::-1])
    assert both.variants["id"].tolist() == plink.variants["id"].tolist()[::-1]
    with pytest.raises(ValueError, match="maf and like"):
        read(path, like=X, maf=0.1)


def test_pgen_chromosomes_and_cohorts(rng, counts, tmp_path):
    for name in ("2", "10"):
        write_pgen(tmp_path / f"chr{name}", counts, chromosome=name)
    X = ts.read_pgen(str(tmp_path / "chr@"))
    half = X.n_variants // 2
    assert X.variants["chr"].tolist() == ["2"] * half + ["10"] * half
    np.testing.assert_array_equal(X.calls(np.arange(half)), X.calls(np.arange(half, 2 * half)))
    with pytest.raises(ValueError, match=r"no \.pgen file with a chromosome"):
        ts.read_pgen(str(tmp_path / "other@"))
    turned = "#CHROM POS ID REF ALT\n" + "".join(f"chr2 {1000 + 10 * j} x{j} A G\n" for j in range(VARIANTS))
    write_pgen(tmp_path / "turned", 2.0 - counts, pvar=turned)
    two = ts.read_pgen({"one": str(tmp_path / "chr2"), "two": str(tmp_path / "turned")})
    assert two.n_cohorts == 2
    calls = two.calls(np.arange(two.n_variants))
    np.testing.assert_array_equal(calls[:ROWS], calls[ROWS:])
    # chromosomes whose people are in another order; some people, none of the second cohort
    order = rng.permutation(ROWS)
    psam = "#FID IID\n" + "".join(f"f{i} i{i}\n" for i in order)
    write_pgen(tmp_path / "chr10", counts[order], chromosome="10", psam=psam)
    few = ts.read_pgen(str(tmp_path / "chr@"), keep=[f"i{i}" for i in range(5, 25)])
    whole = ts.read_pgen(str(tmp_path / "chr@"))
    whole = whole.with_variants(np.isin(whole.variants["pos"], few.variants["pos"]))
    assert few.samples["iid"].tolist() == [f"i{i}" for i in range(5, 25)]
    np.testing.assert_array_equal(few.calls(np.arange(few.n_variants)), whole.calls(np.arange(few.n_variants))[5:25])
    np.testing.assert_array_equal(few.holes_by_person(), np.isnan(few.calls(np.arange(few.n_variants))).sum(axis=1))
    psam = "#FID IID\n" + "".join(f"g{i} j{i}\n" for i in range(ROWS))
    write_pgen(tmp_path / "turned", 2.0 - counts, pvar=turned, psam=psam)
    one = ts.read_pgen([str(tmp_path / "chr2"), str(tmp_path / "turned")], keep=[f"i{i}" for i in range(ROWS)])
    np.testing.assert_array_equal(one.calls(np.arange(one.n_variants)), calls[:ROWS])


def test_pgen_with_more_alleles_and_its_tables(counts, tmp_path):
    """Forms of .pvar and .psam that plink2 writes or takes."""
    alts = ["A", "A,T", "A", "C,T", *["A"] * (VARIANTS - 4)]
    lines = [f"1\t{1000 + 10 * j}\trs1_{j}\tG\t{alt}\t.\tPASS\tAF=0.1;PR" for j, alt in enumerate(alts)]
    pvar = "##INFO=<ID=PR>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n" + "\n".join(lines)
    X = ts.read_pgen(write_pgen(tmp_path / "w", counts, alts=alts, pvar=pvar))
    prefix = write_pgen(tmp_path / "x", counts, alts=alts)
    same(ts.read_pgen(prefix), X)
    assert X.dropped == {"variants with more than two alleles": 2}
    np.testing.assert_array_equal(X.calls(np.arange(X.n_variants)), np.delete(counts, [1, 3], axis=1))
    assert X.feature_names[1] == "rs1_2_A"
    plain = "\n".join(f"1 rs1_{j} {1000 + 10 * j} {alt} G" for j, alt in enumerate(alts))
    same(ts.read_pgen(write_pgen(tmp_path / "y", counts, alts=alts, pvar=plain)), X)
    plain = "\n".join(f"1 rs1_{j} 0 {1000 + 10 * j} {alt} G" for j, alt in enumerate(alts))
    same(ts.read_pgen(write_pgen(tmp_path / "y", counts, alts=alts, pvar=plain)), X)
    fam = "".join(f"f{i} i{i} 0 0 0\n" for i in range(ROWS))
    same(ts.read_pgen(write_pgen(tmp_path / "z", counts, alts=alts, psam=fam)), X)
    psam = "#IID SID PAT MAT SEX bmi\n" + "".join(f"i{i} 0 0 0 {'MF'[i % 2]} {i}\n" for i in range(ROWS))
    people = ts.read_pgen(write_pgen(tmp_path / "z", counts, psam=psam)).samples
    assert people["fid"].tolist() == ["0"] * ROWS
    assert people["sex"].tolist()[:2] == ["1", "2"]
    assert people["phenotype"].tolist()[:3] == ["0", "1", "2"]


def test_pgen_refused(counts, tmp_path, monkeypatch):
    prefix = write_pgen(tmp_path / "x", counts)

    def refused(told):
        with pytest.raises(ValueError, match=told):
            ts.read_pgen(prefix)

    good = {suffix: Path(prefix + suffix).read_bytes() for suffix in (".pgen", ".pvar", ".psam")}

    def write(suffix, content):
        Path(prefix + suffix).write_bytes(content)

    for suffix, cut in ((".psam", good[".psam"].rsplit(b"f42", 1)[0]), (".pvar", good[".pvar"].rsplit(b"1\t", 1)[0])):
        write(suffix, cut)
        refused("do not belong together")
        write(suffix, good[suffix])
    broken = {"begins with nothing": b"", r"is no \.pgen": b"PK\x03\x04", "cut short": good[".pgen"][:9]}
    for told, content in broken.items():
        write(".pgen", content)
        refused(told)
    for size in range(1, len(good[".pgen"]), 13):
        write(".pgen", good[".pgen"][:size])
        refused("cut short|is no .pgen|broken")
    write(".pgen", good[".pgen"])
    write(".psam", good[".psam"].replace(b"f5\ti5", b"f4\ti4"))
    refused("line 7: person f4 i4 is in line 6 already")
    write(".psam", b"#IID\n")
    refused("is empty")
    write(".psam", good[".psam"])
    write(".pvar", good[".pvar"].replace(b"\t1010\t", b"\ttwo\t"))
    refused("'two' is no whole number")
    write(".pvar", good[".pvar"].replace(b"\tALT", b"\tALLELE"))
    refused("no column ALT")
    write(".pvar", good[".pvar"])
    monkeypatch.setitem(sys.modules, "pgenlib", None)
    with pytest.raises(ImportError, match=r"pip install 'tasksieve\[genotypes\]'"):
        ts.read_pgen(prefix)
    Path(prefix + ".pvar").rename(prefix + ".pvar.zst")
    refused("zst-decompress")
    Path(prefix + ".pvar.zst").unlink()
    refused("there is no file")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_alleles_copies_and_names(counts, tmp_path, zarr_format):
    alts = [["A"], ["A", "T"], [], *[["A"]] * (VARIANTS - 3)]
    clean = counts.copy()
    clean[:, 2] = 0.0
    ids = np.array(["." if j % 2 else f"v{j}" for j in range(VARIANTS)])
    given = {"alts": alts, "zarr_format": zarr_format, "haploid": [(4, 3), (4, 9), (20, 0)], "half": [(5, 7)]}
    path = write_zarr(tmp_path / "x.vcz", clean, variant_id=ids, **given)
    X = ts.read_vcf_zarr(path)
    assert X.dropped == {
        "variants with more than two alleles": 1,
        "variants with calls that are not diploid": 2,
        "variants with one allele only": 1,
    }
    left = np.delete(np.arange(VARIANTS), [1, 2, 4, 20])
    expected = clean[:, left]
    expected[7, left.tolist().index(5)] = np.nan
    np.testing.assert_array_equal(X.calls(np.arange(X.n_variants)), expected)
    assert X.variants["id"].tolist()[:3] == ["v0", "1:1030:G:A", "1:1050:G:A"]
    bed = ts.read_plink(write_bed(tmp_path / "bed", clean))
    like = ts.read_vcf_zarr(path, like=bed)
    assert like.n_variants == bed.n_variants
    assert like.dropped["variants with calls that are not diploid"] == 2
    gone = bed.variants["id"].tolist().index("rs1_20")
    assert np.isnan(like.calls([gone])).all()


def test_zarr_refused(counts, tmp_path, monkeypatch):
    def refused(told, **changes):
        with pytest.raises(ValueError, match=told):
            ts.read_vcf_zarr(write_zarr(tmp_path / "x.vcz", counts, **changes))

    refused("no array sample_id", sample_id=None)
    refused("no array contig_id", contig_id=None)
    refused("ploidy 3", call_genotype=np.zeros((VARIANTS, ROWS, 3), dtype=np.int8), chunks=(7, 11, 3))
    refused("call_genotype has shape", call_genotype=np.zeros((VARIANTS, ROWS - 1, 2), dtype=np.int8))
    refused("variant rs1_3 has alleles", call_genotype=np.where(np.arange(VARIANTS) == 3, 2, 0)[:, None, None]
            * np.ones((1, ROWS, 2), dtype=np.int8))  # fmt: skip
    refused("person 0 i0 is in line 1 already", sample_id=np.array(["i0", *(f"i{i}" for i in range(ROWS - 1))]))
    refused("names chromosome 7", variant_contig=np.full(VARIANTS, 7))
    refused("more than two alleles", alts=[["A", "T"]] * VARIANTS)
    refused("not diploid", haploid=[(j, 0) for j in range(VARIANTS)])
    with pytest.raises(ValueError, match="there is no store"):
        ts.read_vcf_zarr(str(tmp_path / "nothing"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="no Zarr group"):
        ts.read_vcf_zarr(str(tmp_path / "folder"))
    path = write_zarr(tmp_path / "x.vcz", counts)
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"pip install 'tasksieve\[genotypes\]'"):
        ts.read_vcf_zarr(path)
