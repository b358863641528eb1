"""Files of the bed-reader wheel: the good ones read as bed-reader reads them, the broken ones refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from plink_files import filled, write_plink

import tasksieve as ts
from tasksieve.design import DenseStorage, Design

bed_reader = pytest.importorskip("bed_reader", reason="bed-reader (the test extra) has the files and the oracle")
FILES = Path(bed_reader.__file__).parent / "tests" / "data"
GOOD = ("toydata.5chrom", "some_missing", "plink_sim_10s_100v_10pmiss")


def oracle(name):
    with bed_reader.open_bed(FILES / f"{name}.bed", num_threads=1) as bed:
        return bed.read(dtype="float64")


@pytest.mark.parametrize("name", GOOD)
def test_calls_are_bed_readers(name):
    counts = oracle(name)
    X = ts.read_plink(str(FILES / name))
    varying = [len(np.unique(column[~np.isnan(column)])) > 1 or bool((column == 1).any()) for column in counts.T]
    assert X.shape == (len(counts), sum(varying))
    gone = sum(X.dropped.get(words, 0) for words in ("variants without a call", "variants with one allele only"))
    assert gone == len(varying) - sum(varying)
    np.testing.assert_array_equal(X.calls(np.arange(X.n_variants)), counts[:, varying])
    with bed_reader.open_bed(FILES / f"{name}.bed") as bed:
        np.testing.assert_array_equal(X.variants["id"], bed.sid[varying])
        np.testing.assert_array_equal(X.variants["effect_allele"], bed.allele_1[varying])
        np.testing.assert_array_equal(X.variants["pos"], bed.bp_position[varying])
        np.testing.assert_array_equal(X.samples["iid"], bed.iid)


@pytest.mark.parametrize("name", GOOD)
def test_verbs_on_scattered_tasks_with_people_left_out(rng, name):
    """Norms, correlations, products and columns against the same numbers as a dense array."""
    counts = oracle(name)
    people = rng.permutation(len(counts))[: len(counts) - min(7, len(counts) // 3)]
    X = ts.read_plink(str(FILES / name)).with_people(people)
    with bed_reader.open_bed(FILES / f"{name}.bed") as bed:
        left = set(X.variants["id"])
        columns = [j for j, name in enumerate(bed.sid.tolist()) if name in left]
    task = rng.integers(0, 3, len(people))
    order = np.argsort(task, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(task, minlength=3))])
    dense = filled(counts[people][:, columns], task)[order] if name != "toydata.5chrom" else None
    if dense is None:  # nothing is missing in the largest
        dense = counts[people][:, columns][order]
    first = X.in_task_order(order, offsets)
    second = DenseStorage(np.asfortranarray(dense))
    weights = rng.uniform(0.5, 2.0, len(people))
    weights[rng.random(len(people)) < 0.2] = 0.0
    r = rng.standard_normal(len(people))
    for options in ({}, {"weights": weights}, {"weights": weights, "standardize": True}):
        ours, oracle_design = Design(first, offsets, **options), Design(second, offsets, **options)
        scale = np.linalg.norm(r) * np.maximum(oracle_design.norms(), 1e-12)
        assert np.abs(ours.norms() - oracle_design.norms()).max() <= 1e-12 * oracle_design.norms().max()
        assert (np.abs(ours.correlate(r) - oracle_design.correlate(r)) / scale).max() <= 1e-12
    some = rng.integers(0, X.n_features, 9)
    np.testing.assert_array_equal(first.take(some), second.take(some))
    for squares in (False, True):
        np.testing.assert_allclose(
            first.products(r, offsets, False, None, squares, 2),
            second.products(r, offsets, False, None, squares, 1),
            atol=1e-11,
        )


def test_files_written_are_read_by_bed_reader(rng, tmp_path):
    """People chosen and sorted by task; what is read back needs no copy."""
    X = ts.read_plink(str(FILES / "some_missing")).with_people(rng.permutation(100)[:61])
    task = rng.integers(0, 3, 61)
    prefix = ts.genotypes.write_plink(X, tmp_path / "sorted", task=task)
    order = np.argsort(task, kind="stable")
    with bed_reader.open_bed(f"{prefix}.bed") as bed:
        np.testing.assert_array_equal(bed.read(dtype="float64"), X.calls(np.arange(X.n_variants))[order])
        np.testing.assert_array_equal(bed.iid, X.samples["iid"].to_numpy()[order])
    again = ts.read_plink(prefix)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(task))])
    mapped, copied = again.in_task_order(None, offsets), X.in_task_order(order, offsets)
    assert mapped.costly_reads
    assert not copied.costly_reads
    np.testing.assert_array_equal(mapped.take(np.arange(5)), copied.take(np.arange(5)))


def broken():
    """Prefixes whose files are not all there, or not what they say."""
    found = {path.stem for path in FILES.glob("*.bed")} - {*GOOD, "small", "sparse"}
    return sorted(found)


@pytest.mark.parametrize("name", broken())
def test_broken_files_are_refused(name):
    with pytest.raises(ValueError) as told:
        ts.read_plink(str(FILES / name))
    assert name in str(told.value)


def test_reasons_for_a_refusal(rng, tmp_path):
    for name, words in (("smallmode0", "sample-major"), ("small_no_bim", "no file"), ("small_too_short", "bytes")):
        with pytest.raises(ValueError, match=words):
            ts.read_plink(str(FILES / name))
    for suffix in (".bed", ".bim", ".fam"):
        shutil.copy(FILES / f"some_missing{suffix}", tmp_path / f"x{suffix}")
    shutil.copy(FILES / "small.bim", tmp_path / "x.bim")
    with pytest.raises(ValueError, match="do not belong together"):
        ts.read_plink(str(tmp_path / "x"))
    shutil.copy(FILES / "small.bim_bad_positions.bim", tmp_path / "x.bim")
    with pytest.raises(ValueError, match=r"line|position"):
        ts.read_plink(str(tmp_path / "x"))


def mutated(rng, data, header):
    """One byte changed (of the first three, where there is a header), the end cut off, or bytes put in."""
    data = bytearray(data)
    kind = rng.integers(3)
    if kind == 0:
        index = rng.integers(3 if header else len(data))
        data[index] = (data[index] + rng.integers(1, 256)) % 256
    elif kind == 1:
        del data[rng.integers(len(data)) :]
    else:
        index = rng.integers(len(data))
        data[index:index] = bytes(rng.integers(0, 256, rng.integers(1, 9)).tolist())
    return bytes(data)


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_mutated_headers(rng, tmp_path, count):
    prefix = write_plink(tmp_path / "x", rng.integers(0, 3, (11, 9)).astype(float))
    whole = Path(prefix + ".bed").read_bytes()
    for _ in range(count):
        Path(prefix + ".bed").write_bytes(mutated(rng, whole, header=True))
        with pytest.raises(ValueError, match=r"x\.bed"):
            ts.read_plink(prefix)


def test_mutated_tables_are_refused_or_read(rng, tmp_path):
    """A changed letter may be a name like any other; nothing crashes, and shapes stay true."""
    prefix = write_plink(tmp_path / "x", rng.integers(0, 3, (11, 9)).astype(float))
    read = refused = 0
    for trial in range(300):
        file = Path(prefix + (".bim", ".fam")[trial % 2])
        whole = file.read_bytes()
        file.write_bytes(mutated(rng, whole, header=False))
        try:
            X = ts.read_plink(prefix)
        except ValueError:
            refused += 1
        else:
            read += 1
            assert X.take(np.arange(X.n_features)).shape == X.shape
        file.write_bytes(whole)
    assert min(read, refused) > 20
