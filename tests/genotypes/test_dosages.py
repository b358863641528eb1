"""Dosages of .pgen and .bgen files and VCF-Zarr stores, against the dense matrix of their rounded numbers."""

from __future__ import annotations

import contextlib
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from plink_files import draw_counts

import tasksieve as ts
from tasksieve.design import StepStorage
from tasksieve.genotypes.bgen import BgenFile

from .test_other_files import write_pgen, write_zarr

ROWS, VARIANTS = 41, 24
STEPS = {8: 64, 16: 16384}


@pytest.fixture(scope="module")
def drawn():
    """Dosages of which some are missing (a whole task of one variant), phenotypes and tasks."""
    rng = np.random.default_rng(4)
    counts = draw_counts(rng, ROWS, VARIANTS)
    copies = np.clip(counts + np.where(rng.random(counts.shape) < 0.6, rng.normal(0, 0.2, counts.shape), 0), 0, 2)
    task = np.resize(["b", "a", "a"], ROWS)
    copies[task == "b", 5] = np.nan
    known = np.nan_to_num(copies, nan=1.0)
    y = known[:, 0] - known[:, 7] + 0.3 * rng.standard_normal(ROWS)
    return copies, y, task


def write_pgen_dosages(prefix, copies):
    pgenlib = pytest.importorskip("pgenlib", reason="pgenlib (the test extra) writes and reads .pgen files")
    write_pgen(prefix, np.zeros(copies.shape))  # tables
    writer = pgenlib.PgenWriter(
        f"{prefix}.pgen".encode(), len(copies), variant_ct=copies.shape[1], nonref_flags=False, dosage_present=True
    )
    for column in copies.T:
        writer.append_dosages(np.ascontiguousarray(np.where(np.isnan(column), -9.0, column), dtype=np.float64))
    writer.close()
    return str(prefix)


def write_bgen(path, copies, *, bits=8, compression=1, layout=2, phased=0, ploidy=2, named=True, alleles=("G", "A")):
    """Probabilities whose dosage of the second allele is the nearest that two numbers of so many bits give."""
    most, n = (1 << bits) - 1, len(copies)
    names = b"".join(struct.pack("<H", len(f"i{i}")) + f"i{i}".encode() for i in range(n))
    samples = struct.pack("<II", len(names) + 8, n) + names if named else b""
    header = struct.pack("<III", 20, copies.shape[1], n) + b"bgen"
    header += struct.pack("<I", compression | layout << 2 | int(named) << 31)
    content = struct.pack("<I", len(header) + len(samples)) + header + samples
    for j, column in enumerate(copies.T):
        known = np.nan_to_num(column)
        none = np.rint(np.maximum(1.0 - known, 0.0) * most)
        one = np.clip(np.rint((2.0 - known) * most - 2 * none), 0, most - none)
        pairs = np.stack([none, one], axis=1).astype("u1" if bits == 8 else "<u2")
        said = np.where(np.isnan(column), 128 + ploidy, ploidy).astype(np.uint8)
        block = struct.pack("<IHBB", n, 2, ploidy, ploidy) + said.tobytes() + bytes([phased, bits]) + pairs.tobytes()
        words = b"".join(struct.pack("<H", len(w)) + w for w in (b"", f"rs1_{j}".encode(), b"1"))
        words += struct.pack("<IH", 1000 + 10 * j, len(alleles))
        words += b"".join(struct.pack("<I", len(a)) + a.encode() for a in alleles)
        packed = struct.pack("<I", len(block)) + zlib.compress(block) if compression == 1 else block
        content += words + struct.pack("<I", len(packed)) + packed
    Path(f"{path}.bgen").write_bytes(content)
    return str(path)


def rounded(copies, bits, task):
    """Nearest steps; missing ones are means of tasks in steps, halves up, over all people where a task has none."""
    steps = np.rint(copies * STEPS[bits])
    for j in range(copies.shape[1]):
        for label in np.unique(task):
            own = task == label
            hole = own & np.isnan(steps[:, j])
            here = own & ~np.isnan(steps[:, j])
            here = here if here.any() else ~np.isnan(steps[:, j])
            steps[hole, j] = np.floor(steps[here, j].sum() / here.sum() + 0.5)
    return steps / STEPS[bits]


@pytest.mark.parametrize("bits", [8, 16])
def test_a_fit_is_that_of_the_rounded_numbers(drawn, tmp_path, bits):
    copies, y, task = drawn
    X = ts.read_pgen(write_pgen_dosages(tmp_path / "x", copies), dosages=bits)
    assert repr(X) == f"Dosages ({bits} bits) of {ROWS} people, {X.n_variants} variants"
    kept = [int(name.split("_")[1]) for name in X.variant_table["id"]]
    assert len(kept) == VARIANTS
    exact = np.rint(copies.astype(np.float32).astype(float) * 16384) / 16384  # what the file can say
    stored = X.calls(np.arange(VARIANTS))
    assert np.nanmax(np.abs(stored - copies)) <= 0.5 / STEPS[bits] + 2.0**-14
    np.testing.assert_array_equal(stored[:, [5]], np.rint(exact * STEPS[bits])[:, [5]] / STEPS[bits])
    dense = rounded(stored, bits, task)
    order = np.argsort(task, kind="stable")
    storage = X.in_task_order(order, np.array([0, (task == "a").sum(), ROWS]))
    assert isinstance(storage, StepStorage)
    np.testing.assert_array_equal(storage.take(np.arange(VARIANTS)), dense[order])
    for options in ({}, {"standardize": True}):
        first = ts.MultiTaskLasso(0.05, tol=1e-10, **options).fit(X, y, task=task)
        second = ts.MultiTaskLasso(0.05, tol=1e-10, **options).fit(dense, y, task=task)
        np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-7)
        np.testing.assert_allclose(first.predict(X, task=task), second.predict(dense, task=task), atol=1e-7)
        certificate = first.certificate(X, y, task=task)
        assert certificate.verify(dense, y, task=task).proved
        assert certificate.verify(X, y, task=task).proved
        assert not certificate.verify(rounded(np.nan_to_num(stored), bits, task), y, task=task).proved
    shared = ts.MultiTaskLasso(0.05, tol=1e-10).fit(X, np.column_stack([y, -y]))
    whole = rounded(stored, bits, np.zeros(ROWS))
    other = ts.MultiTaskLasso(0.05, tol=1e-10).fit(whole, np.column_stack([y, -y]))
    np.testing.assert_allclose(shared.coef_, other.coef_, atol=1e-7)


@pytest.mark.parametrize("bits", [8, 16])
def test_products_are_exact_multiples(drawn, tmp_path, bits):
    """Of vectors and squares, all columns and some, beside covariates: those of the dense matrix."""
    copies, _, task = drawn
    X = ts.read_pgen(write_pgen_dosages(tmp_path / "x", copies), dosages=bits)
    rng = np.random.default_rng(0)
    age = rng.standard_normal(ROWS)
    dense = np.column_stack([age, rounded(X.calls(np.arange(VARIANTS)), bits, task)])
    X = X.with_covariates(age)
    order, offsets = np.argsort(task, kind="stable"), np.array([0, (task == "a").sum(), ROWS])
    storage = X.in_task_order(order, offsets)
    vector = rng.standard_normal(ROWS)
    for columns in (None, np.array([3, 0, 9])):
        own = dense[order] if columns is None else dense[order][:, columns]
        for squares in (False, True):
            found = storage.products(vector, offsets, False, columns, squares, 1)
            power, cut = own ** (2 if squares else 1), offsets[1]
            wanted = np.stack([power[:cut].T @ vector[:cut], power[cut:].T @ vector[cut:]], axis=1)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    both = rng.standard_normal((2, ROWS))
    found = storage.products(both.ravel(), np.array([0, ROWS, 2 * ROWS]), True, None, False, 1)
    np.testing.assert_allclose(found, dense[order].T @ both.T, rtol=1e-12, atol=1e-12)


def test_filters_people_and_new_files(drawn, tmp_path):
    copies, y, task = drawn
    prefix = write_pgen_dosages(tmp_path / "x", copies)
    X = ts.read_pgen(prefix, dosages=8)
    calls = X.calls(np.arange(VARIANTS))
    frequency = np.nanmean(calls, axis=0) / 2
    rare = np.minimum(frequency, 1 - frequency) < 0.25
    assert 0 < rare.sum() < VARIANTS
    left = ts.read_pgen(prefix, dosages=8, maf=0.25)
    assert left.dropped["variants too rare (maf)"] == rare.sum()
    np.testing.assert_array_equal(left.calls(np.arange(left.n_variants)), calls[:, ~rare])
    few = ts.read_pgen(prefix, dosages=8, mind=0.1)
    np.testing.assert_array_equal(
        few.calls(np.arange(VARIANTS)), calls[np.isnan(calls).sum(axis=1) <= 0.1 * VARIANTS]
    )
    model = ts.MultiTaskLasso(0.05).fit(X, y, task=task)
    new = ts.read_pgen(prefix, dosages=16, like=X, keep=[f"i{i}" for i in range(10)])
    assert new.shape == (10, VARIANTS)
    gap = np.abs(model.predict(new, task=task[:10]) - model.predict(X, task=task)[:10]).max()
    assert gap <= np.abs(model.coef_).sum(axis=1).max() / 64
    with pytest.raises(ValueError, match="2 bits do not hold"):
        ts.genotypes.write_plink(X, tmp_path / "no")
    with pytest.raises(ValueError, match="must be 8 or 16"):
        ts.read_pgen(prefix, dosages=12)
    ts.genotypes.write_plink(ts.read_pgen(prefix), tmp_path / "hard")
    with pytest.raises(ValueError, match="hold hard calls"):
        ts.read_plink(tmp_path / "hard", dosages=8)


def test_cohorts_that_count_other_alleles(drawn, tmp_path):
    copies, _, _ = drawn
    prefix = write_pgen_dosages(tmp_path / "one", copies)
    write_pgen_dosages(tmp_path / "two", 2.0 - copies)
    told = Path(f"{tmp_path}/two.pvar").read_text().replace("\tG\tA", "\tA\tG")
    Path(f"{tmp_path}/two.pvar").write_text(told)
    X = ts.read_pgen([prefix, tmp_path / "two"], dosages=16)
    calls = X.calls(np.arange(X.n_variants))
    np.testing.assert_allclose(calls[:ROWS], calls[ROWS:], atol=2.0**-13)


def test_a_store_of_zarr(drawn, tmp_path):
    copies, _, _ = drawn
    counts = np.rint(copies)
    path = write_zarr(tmp_path / "x.vcz", counts, call_DS=copies.T.astype(np.float32))
    X = ts.read_vcf_zarr(path, dosages=16)
    wanted = np.rint(copies.astype(np.float32).astype(float) * 16384) / 16384
    np.testing.assert_array_equal(X.calls(np.arange(VARIANTS)), wanted)
    np.testing.assert_array_equal(ts.read_vcf_zarr(path).calls(np.arange(VARIANTS)), counts)
    with pytest.raises(ValueError, match="has no array call_DS"):
        ts.read_vcf_zarr(write_zarr(tmp_path / "y.vcz", counts), dosages=8)
    path = write_zarr(tmp_path / "z.vcz", counts, call_DS=2.5 + 0 * copies.T)
    with pytest.raises(ValueError, match="not between 0 and 2"):
        ts.read_vcf_zarr(path, dosages=8)


# --- BGEN ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", [0, 1])
@pytest.mark.parametrize("bits", [8, 16])
def test_bgen_files(drawn, tmp_path, bits, compression):
    copies, _, _ = drawn
    X = ts.read_bgen(write_bgen(tmp_path / "x", copies, bits=bits, compression=compression))
    calls = X.calls(np.arange(VARIANTS))
    assert np.nanmax(np.abs(calls - copies)) <= 1.0 / ((1 << bits) - 1) + 2.0**-15
    np.testing.assert_array_equal(np.isnan(calls), np.isnan(copies))
    assert X.variant_table["effect_allele"].tolist() == ["A"] * VARIANTS
    assert X.sample_table["fid"].tolist() == ["0"] * ROWS
    lines = "".join(f"f{i} i{i} 0\n" for i in range(ROWS))
    (tmp_path / "x.sample").write_text("ID_1 ID_2 missing\n0 0 0\n" + lines)
    assert ts.read_bgen(tmp_path / "x.bgen", dosages=8).sample_table["fid"].tolist()[:2] == ["f0", "f1"]


def test_bgen_files_that_are_refused(drawn, tmp_path):
    copies = drawn[0][:, :4]
    for options, words in (
        ({"layout": 1}, "has layout 1.*plink2 --bgen"),
        ({"compression": 2}, "zstd"),
        ({"phased": 1}, "phased"),
        ({"ploidy": 1}, "haploid"),
        ({"named": False}, "does not name its people"),
        ({"alleles": ("G", "A", "T")}, "more than two alleles"),
    ):
        prefix = write_bgen(tmp_path / "x", copies, **options)
        with pytest.raises(ValueError, match=words):
            ts.read_bgen(prefix)
    whole = Path(write_bgen(tmp_path / "x", copies) + ".bgen").read_bytes()
    rng = np.random.default_rng(0)
    for cut in [0, 3, 20, 30, *rng.integers(0, len(whole), 20).tolist()]:
        (tmp_path / "x.bgen").write_bytes(whole[:cut])
        with pytest.raises(ValueError, match=r"x\.bgen"):
            ts.read_bgen(tmp_path / "x")
    for _ in range(60):  # a byte is another: refused in words, or read
        content = bytearray(whole)
        content[int(rng.integers(len(whole)))] ^= int(rng.integers(1, 256))
        (tmp_path / "x.bgen").write_bytes(content)
        with contextlib.suppress(ValueError):
            assert ts.read_bgen(tmp_path / "x").n_rows == ROWS
    (tmp_path / "x.bgen").write_bytes(whole)
    (tmp_path / "x.sample").write_text("ID_1 ID_2\n0 0\na a\n")
    with pytest.raises(ValueError, match=r"x\.sample has 1 people"):
        ts.read_bgen(tmp_path / "x")


def test_plink2_and_cbgen_read_the_same(drawn, tmp_path):
    """Files that plink2 exports, 8 bits, as cbgen and plink2's own .pgen have them."""
    if shutil.which("plink2") is None:
        pytest.skip("plink2 is not on the path")
    prefix = write_pgen_dosages(tmp_path / "x", drawn[0])
    words = ["plink2", "--pfile", prefix, "--export", "bgen-1.2", "bits=8", "ref-first", "--out", tmp_path / "y"]
    subprocess.run(words, check=True, capture_output=True)
    X, wanted = ts.read_bgen(tmp_path / "y"), ts.read_pgen(prefix, dosages=16)
    assert X.feature_names.tolist() == wanted.feature_names.tolist()
    assert X.sample_table["iid"].tolist() == wanted.sample_table["iid"].tolist()
    calls = X.calls(np.arange(VARIANTS))
    assert np.nanmax(np.abs(calls - wanted.calls(np.arange(VARIANTS)))) <= 1.5 / 255
    cbgen = pytest.importorskip("cbgen", reason="cbgen reads BGEN files, too")
    with cbgen.bgen_file(tmp_path / "y.bgen") as file:
        own = BgenFile(str(tmp_path / "y"))
        for j in range(VARIANTS):
            probabilities = file.read_probability(int(own._blocks[j, 0]) - 4)
            np.testing.assert_allclose(
                own._dosages(j), probabilities[:, 1] + 2 * probabilities[:, 2], rtol=0, atol=1e-12
            )

