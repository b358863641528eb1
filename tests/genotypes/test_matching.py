"""Variants of two files that are the same: alleles, strands, positions, identifiers, one case a line."""

from __future__ import annotations

import numpy as np
import pytest
from plink_files import draw_counts, write_plink

import tasksieve as ts
from tasksieve.genotypes.alleles import match_variants
from tasksieve.genotypes.files import variant_table


def table(*variants):
    chromosome, pos, ids, effect, other = (list(column) for column in zip(*variants, strict=True))
    return variant_table(chromosome, np.array(pos), ids, effect, other)


HERE = ("1", 100, "rs1", "A", "C")


@pytest.mark.parametrize(
    ("wanted", "there", "found"),
    [
        (HERE, [("chr1", 100, "x", "A", "C")], {"matched"}),
        (HERE, [("1", 100, "x", "c", "a")], {"matched", "swapped"}),
        (HERE, [("1", 100, "x", "T", "G")], {"matched", "flipped"}),
        (HERE, [("1", 100, "x", "G", "T")], {"matched", "swapped", "flipped"}),
        (HERE, [("1", 100, "x", "A", "G")], {"missing", "other_alleles"}),
        (HERE, [("1", 101, "rs1", "A", "C")], {"missing"}),
        (HERE, [("1", 0, "rs1", "C", "A")], {"matched", "swapped", "by_id"}),
        (HERE, [("1", 100, "a", "A", "C"), ("1", 100, "b", "G", "T")], {"missing", "repeated"}),
        (HERE, [("1", 100, "a", "A", "C"), ("1", 100, "b", "A", "T")], {"matched"}),
        (("1", 0, "rs1", "A", "C"), [("7", 5, "rs1", "T", "G")], {"matched", "flipped", "by_id"}),
        (("1", 0, ".", "A", "C"), [("1", 0, ".", "A", "C")], {"missing"}),
        (("1", 100, "rs1", "A", "T"), [("1", 100, "x", "T", "A")], {"matched", "swapped", "ambiguous"}),
        (("1", 100, "rs1", "C", "G"), [("1", 100, "x", "C", "G")], {"matched", "ambiguous"}),
        (("1", 100, "rs1", "AG", "A"), [("1", 100, "x", "T", "CT")], {"matched", "swapped", "flipped"}),
    ],
)
def test_one_variant(wanted, there, found):
    counts = match_variants(table(wanted), table(*there)).counts()
    assert {name for name, n in counts.items() if n} == found


def test_reasons_of_three_cohorts_are_counted_once(rng, tmp_path):
    """A variant that clashes in two cohorts is one variant."""
    counts = draw_counts(rng, 20, 4, 0.0)
    alleles = {"a": [("A", "G")] * 4, "b": [("A", "G"), ("A", "C"), ("A", "G"), ("A", "G")]}
    alleles["c"] = [("A", "G"), ("A", "T"), ("G", "A"), ("A", "C")]
    paths = {}
    for name, pairs in alleles.items():
        people = [(name, f"{name}{i}") for i in range(20)]
        paths[name] = write_plink(tmp_path / name, counts, alleles=pairs, people=people)
    X = ts.read_plink(paths)
    assert X.n_variants == 2
    assert X.dropped["variants with other alleles (cohorts)"] == 2
    assert X.dropped["variants not in every cohort"] == 0
