"""Certificates of genotypes, checked from .bed, .bim and .fam files: the files that were fitted are proved, and none in
which a call, a name, an allele, a phenotype or the recipe says something else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flawed_verifier import flawed
from plink_files import draw_counts, filled, write_plink

import tasksieve as ts
from tasksieve import verify
from tasksieve.proof.certificate import Certificate

PEOPLE, VARIANTS = 36, 20
NAMES = [f"f{i} i{i}" for i in range(PEOPLE)]
USED = [i for i in range(PEOPLE) if i not in (4, 17)]  # the others have no phenotype
KEPT = [j for j in range(VARIANTS) if j != 7]  # left out by a filter
ALLELES = [("A", "G"), ("C", "T"), ("AT", "A"), ("G", "C")] * 5


@pytest.fixture(scope="module")
def counts() -> Any:
    rng = np.random.default_rng(2)
    found = draw_counts(rng, PEOPLE, VARIANTS)
    found[np.arange(PEOPLE) % 3 == 1, 3] = np.nan  # no call in a task
    return found


@pytest.fixture(scope="module")
def folder(counts: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a study and its certificate, whose recipe is written by hand."""
    path = tmp_path_factory.mktemp("study")
    rng = np.random.default_rng(3)
    write_plink(path / "study", counts, alleles=ALLELES)
    task, age = np.resize(["east", "north", "south"], PEOPLE), rng.integers(30, 70, PEOPLE)
    sex = np.resize(["m", "f", "f"], PEOPLE)
    dense = filled(counts[USED], task[USED])
    y = np.round(dense[:, 0] - dense[:, 3] + 0.02 * age[USED] + 0.3 * rng.standard_normal(len(USED)), 3)
    told = dict(zip(USED, y.tolist(), strict=True))
    pheno = [f"f{i}\ti{i}\t{told.get(i, 'NA' if i == 4 else -9)}\t{task[i]}" for i in reversed(range(PEOPLE))]
    covar = [f"i{i} {age[i]} {sex[i]}" for i in range(PEOPLE)]
    (path / "study.pheno").write_text("\n".join(["#FID\tIID\ttrait\tsite", *pheno]) + "\n")
    (path / "study.covar").write_text("\n".join(["IID age sex", *covar]) + "\n")
    X = ts.read_plink(path / "study", keep=[f"i{i}" for i in USED])
    X = X.with_variants(np.array([X.variant_table["id"].tolist().index(f"rs1_{j}") for j in KEPT]))
    X = X.with_covariates(np.column_stack([age, sex == "m"])[USED], ["age", "sex=m"])
    assert X.shape == (len(USED), 2 + len(KEPT))
    model = ts.MultiTaskLasso(0.1, feature_weights=X.feature_weights).fit(X, y, task=task[USED])
    certificate = model.certificate(X, y, task=task[USED])
    certificate.header["genotypes"] = {
        "people": [NAMES[i] for i in USED],
        "variants": [f"1 {1000 + 10 * j} rs1_{j} {ALLELES[j][0]} {ALLELES[j][1]}" for j in KEPT],
        "covariates": [{"source": "age"}, {"source": "sex", "equals": "m"}],
        "target": "trait", "task": "site", "weight": None, "offset": None,
    }  # fmt: skip
    certificate.header["features"] = [*X.feature_names]
    certificate.save(path / "certificate.npz")
    return path


def check(folder: Path, program: Any = verify, certificate: str = "certificate.npz") -> int:
    words = [str(folder / certificate), "--bfile", str(folder / "study"), "--pheno", str(folder / "study.pheno")]
    return int(program.main([*words, "--covar", str(folder / "study.covar")]))


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    for path in folder.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def test_the_files_are_proved(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(folder) == 0
    assert "34 of 36 people and 19 of 20 variants of study" in capsys.readouterr().out


def test_numbers_are_those_of_the_fit_bit_by_bit(folder: Path, counts: Any) -> None:
    """Counts with means filled in by a program that shares nothing with either reader."""
    cert = verify.read_certificate(folder / "certificate.npz")
    data = verify.read_genotypes(
        cert, [str(folder / "study")], str(folder / "study.pheno"), str(folder / "study.covar")
    )
    X, task = data["X"], data["task"].astype(str)
    dense = filled(counts[np.ix_(USED, KEPT)], task)
    np.testing.assert_array_equal(X.columns(slice(None))[:, 2:], dense)
    some = np.array([3, 20, 7])
    np.testing.assert_array_equal(X.take_rows(some).columns(np.array([5, 2])), dense[some][:, [3, 0]])
    plain = np.hstack([X.columns([0, 1]), dense])
    assert X.digest() == verify.Matrix(plain).digest()
    assert X.take_rows(some).digest() == verify.Matrix(plain[some]).digest()
    own = ts.read_plink(folder / "study", keep=[f"i{i}" for i in USED]).readable(
        np.unique(task, return_inverse=True)[1]
    )
    whole = filled(counts[USED], task)
    np.testing.assert_array_equal(own.columns(slice(None)), whole)
    assert own.take_rows(some).digest() == verify.Matrix(whole[some]).digest()


# --- the files say something else ----------------------------------------------------------------------------------


def bed(change: Callable[[bytearray], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        content = bytearray((folder / "study.bed").read_bytes())
        changed = change(content)
        (folder / "study.bed").write_bytes(content if changed is None else changed)

    return apply


def lines(name: str, change: Callable[[list[str]], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / f"study.{name}"
        found = path.read_text().splitlines()
        found = change(found) or found
        path.write_text("\n".join(found) + "\n")

    return apply


def word(line: int, place: int, said: str) -> Callable[[list[str]], None]:
    def change(found: list[str]) -> None:
        cells = found[line].split()
        cells[place] = said
        found[line] = ("\t" if "\t" in found[line] else " ").join(cells)

    return change


def swapped(a: int, b: int) -> Callable[[list[str]], None]:
    def change(found: list[str]) -> None:
        found[a], found[b] = found[b], found[a]

    return change


def one_call(content: bytearray) -> None:
    content[3 + 9 * 2] ^= 0b01  # the first person's call of the third variant


OTHERS: dict[str, Callable[[Path], None]] = {
    "a call": bed(one_call),
    "a file cut short": bed(lambda content: content[:-1]),
    "a file too long": bed(lambda content: content + b"\0"),
    "another magic number": bed(lambda content: b"\x6d" + content[1:]),
    "people after people": bed(lambda content: content[:2] + b"\0" + content[3:]),
    "no bytes": bed(lambda content: b""),
    "two people change places": lines("fam", swapped(0, 1)),
    "a person has another name": lines("fam", word(5, 1, "i99")),
    "a person is there twice": lines("fam", lambda f: [*f[:5], f[6], *f[6:]]),
    "two variants change places": lines("bim", swapped(0, 4)),
    "a variant has another position": lines("bim", word(2, 3, "77")),
    "a variant has another chromosome": lines("bim", word(2, 0, "2")),
    "the other allele is the first one": lines("bim", lambda f: [*word_pair(f, 0)]),
    "another allele": lines("bim", word(0, 4, "C")),
    "a position that is none": lines("bim", word(0, 3, "x")),
    "five fields": lines("bim", lambda f: [f[0].rsplit("\t", 1)[0], *f[1:]]),
    "a line of the .fam is lost": lines("fam", lambda f: f[:-1]),
    "a phenotype": lines("pheno", word(3, 2, "0.5")),
    "a phenotype that is no number": lines("pheno", word(3, 2, "high")),
    "a phenotype is lost": lines("pheno", word(3, 2, "NA")),
    "a person without a phenotype": lines("pheno", lambda f: [*f[:3], *f[4:]]),
    "another task": lines("pheno", word(3, 3, "north")),
    "a task is lost": lines("pheno", word(3, 3, "NA")),
    "an unknown task": lines("pheno", word(3, 3, "west")),
    "another column of phenotypes": lines("pheno", lambda f: [f[0].replace("trait", "other"), *f[1:]]),
    "a covariate": lines("covar", word(3, 1, "29")),
    "a covariate is lost": lines("covar", word(3, 1, "-9")),
    "a word of a covariate": lines("covar", word(1, 2, "f")),
}


def word_pair(found: list[str], line: int) -> list[str]:
    *first, a, b = found[line].split("\t")
    return [*found[:line], "\t".join([*first, b, a]), *found[line + 1 :]]


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_other_files_are_refused(copied: Path, change: Callable[[Path], None]) -> None:
    change(copied)
    assert check(copied) == 1


def test_every_single_call_counts(copied: Path) -> None:
    """Each call in use, changed to each other value."""
    original = (copied / "study.bed").read_bytes()
    arguments = ([str(copied / "study")], str(copied / "study.pheno"), str(copied / "study.covar"))
    cert = verify.read_certificate(copied / "certificate.npz")
    rng = np.random.default_rng(0)
    for _ in range(25):
        i, j, other = int(rng.choice(USED)), int(rng.choice(KEPT)), int(rng.integers(1, 4))
        content = bytearray(original)
        content[3 + 9 * j + i // 4] ^= other << 2 * (i % 4)
        (copied / "study.bed").write_bytes(content)
        data = verify.read_genotypes(cert, *arguments)
        rows = [data.get(name) for name in ("X", "y", "task", "sample_weight", "offset")]
        assert verify.check_digests(cert, verify.arrange(cert, *rows)), (i, j, other)


def test_calls_that_are_not_in_use_do_not_matter(copied: Path) -> None:
    content = bytearray((copied / "study.bed").read_bytes())
    content[3 + 9 * 7] ^= 0xFF  # a variant that was left out
    content[3 + 9 * 2 + 1] ^= 0b11  # a person who was
    (copied / "study.bed").write_bytes(content)
    assert check(copied) == 0


# --- the same in other files -----------------------------------------------------------------------------------------


def test_people_and_variants_are_found_by_name(folder: Path, counts: Any, tmp_path: Path) -> None:
    """In another order, counting other alleles, on the other strand, cut by chromosomes or into two studies."""
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(PEOPLE), rng.permutation(VARIANTS)
    people, ids = [tuple(NAMES[i].split()) for i in rows], [f"rs1_{j}" for j in columns]
    turned = rng.random(VARIANTS) < 0.5
    alleles = [ALLELES[j][::-1] if turned[j] else ALLELES[j] for j in columns]
    strand = str.maketrans("ACGT", "TGCA")
    alleles = [
        tuple(a.translate(strand)[::-1] for a in pair) if k % 2 and set(pair) != {"G", "C"} else pair
        for k, pair in enumerate(alleles)
    ]
    found = np.where(turned, 2.0 - counts, counts)[rows][:, columns]
    names = {name: (folder / name).read_bytes() for name in ("certificate.npz", "study.pheno", "study.covar")}
    for name, content in names.items():
        (tmp_path / name).write_bytes(content)
    given = {"alleles": alleles, "ids": ids, "people": people, "chromosome": "chr1"}
    write_plink(tmp_path / "study", found, **given)
    place = [1000 + 10 * j for j in columns]
    bim = (tmp_path / "study.bim").read_text().splitlines()
    bim = ["\t".join([*(c := line.split("\t"))[:3], str(p), *c[4:]]) for line, p in zip(bim, place, strict=True)]
    (tmp_path / "study.bim").write_text("\n".join(bim) + "\n")
    assert check(tmp_path) == 0
    certificate, tables = str(tmp_path / "certificate.npz"), ["--pheno", str(tmp_path / "study.pheno")]
    tables += ["--covar", str(tmp_path / "study.covar")]
    for names_of_files, cut in (
        (["chr1", "chr2"], lambda k: (slice(None), slice(10 * k, 10 * k + 10))),
        (["one", "two"], lambda k: (slice(20 * k, 20 * k + 20), slice(None))),
    ):
        for k, name in enumerate(names_of_files):
            own, some = cut(k)
            parts = {"alleles": alleles[some], "ids": ids[some], "people": people[own]}
            write_plink(tmp_path / name, found[own, some], **parts)
            (tmp_path / f"{name}.bim").write_text("\n".join(bim[some]) + "\n")
    for prefixes, code in ((["chr@"], 0), (["one", "two"], 0), (["chr1"], 1), (["one"], 1), (["chr@", "one"], 1)):
        words = [word for prefix in prefixes for word in ("--bfile", str(tmp_path / prefix))]
        assert verify.main([certificate, *words, *tables]) == code, prefixes


# --- the recipe says something else ----------------------------------------------------------------------------------


def forged(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """The certificate with another recipe."""
    cert = verify.read_certificate(folder / "certificate.npz")
    change(cert.header["genotypes"])
    Certificate(cert.header, cert.arrays).save(folder / "forged.npz")


def unnamed(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """The same without names of features, which a certificate need not have."""
    cert = verify.read_certificate(folder / "certificate.npz")
    change(cert.header["genotypes"])
    del cert.header["features"]
    Certificate(cert.header, cert.arrays).save(folder / "forged.npz")


def without(key: str, place: int) -> Callable[[dict[str, Any]], Any]:
    return lambda recipe: recipe[key].pop(place)


def first(key: str, said: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda recipe: recipe[key].__setitem__(0, said)


UNREADABLE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a person twice": lambda r: r["people"].append(r["people"][0]),
    "a variant twice": lambda r: r["variants"].append(r["variants"][0]),
    "a variant less": without("variants", 0),
    "a covariate less": without("covariates", 0),
    "nobody": lambda r: r["people"].clear(),
    "a person without a name": first("people", ""),
    "a person of three words": first("people", "a b c"),
    "a person that is a number": first("people", 3),
    "a person that is a list": first("people", ["f0", "i0"]),
    "a variant of four words": first("variants", "1 1000 rs1_0 A"),
    "people in a word": lambda r: r.update(people="f0 i0"),
    "covariates in a dict": lambda r: r.update(covariates={}),
    "a covariate with a fill": first("covariates", {"source": "age", "fill": 40.0}),
    "a covariate that equals a list": first("covariates", {"source": "age", "equals": ["m"]}),
    "a covariate of no column": first("covariates", {"source": None}),
    "an unknown word": lambda r: r.update(means=[0.5]),
    "no target": lambda r: r.pop("target"),
    "the other allele": first("variants", "1 1000 rs1_0 G A"),
    "variants in another order": lambda r: r["variants"].reverse(),
    "another variant": first("variants", "1 1070 rs1_7 G C"),
    "targets in a list": lambda r: r.update(target=["trait"]),
    "no task": lambda r: r.update(task=None),
    "a task that is a number": lambda r: r.update(task=1),
}
REFUSED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a person less": without("people", 3),
    "a person without a phenotype more": lambda r: r["people"].append("f4 i4"),
    "people in another order": lambda r: r["people"].reverse(),
    "an unknown person": first("people", "f99 i99"),
    "an unknown variant": first("variants", "1 55 rs1_0 A G"),
    "a position that is none": first("variants", "1 1e3 rs1_0 A G"),
    "another covariate": first("covariates", {"source": "sex", "equals": "f"}),
    "a word as a number": lambda r: r["covariates"].__setitem__(1, {"source": "sex"}),
    "an unknown covariate": first("covariates", {"source": "height"}),
    "another target": lambda r: r.update(target="site"),
    "a position with two signs": first("variants", "1 --5 rs1_0 A G"),
    "weights": lambda r: r.update(weight="age"),
    "an offset": lambda r: r.update(offset="age"),
    "another task": lambda r: r.update(task="sex"),
}


@pytest.mark.parametrize("change", UNREADABLE.values(), ids=UNREADABLE)
def test_recipes_without_sense_are_unreadable(copied: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    forged(copied, change)
    assert check(copied, certificate="forged.npz") == 2


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_other_recipes_are_refused(copied: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    forged(copied, change)
    assert check(copied, certificate="forged.npz") == 1


@pytest.mark.parametrize("name", ["another variant", "variants in another order", "the other allele"])
def test_other_variants_are_refused_by_their_numbers(copied: Path, name: str) -> None:
    unnamed(copied, UNREADABLE[name])
    assert check(copied, certificate="forged.npz") == 1


def test_what_is_not_given_is_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate = str(folder / "certificate.npz")
    for words in ([], [str(folder / "study.pheno")], ["--bfile", str(folder / "study")]):
        assert verify.main([certificate, *words]) == 2
    assert "--make-bed" in capsys.readouterr().err
    words = [certificate, "--bfile", str(folder / "none"), "--pheno", str(folder / "study.pheno")]
    assert verify.main(words) == 2
    assert verify.main([*words[:2], str(folder / "@"), *words[3:]]) == 2


def test_other_programs_refuse_what_they_do_not_know(folder: Path) -> None:
    """A verifier of before reads no `genotypes`: it must not take the numbers for others."""
    older = flawed(('"about", "patterns", "genotypes"}', '"about", "patterns"}'))
    with pytest.raises(older.Unreadable, match="'genotypes' is not known"):
        older.read_certificate(folder / "certificate.npz")


FLAWS = {
    "people are taken as they lie": (
        "self.person[people[name]] = line",
        'self.person[people[name]] = int(name.split(" i")[1])',
        OTHERS["two people change places"],
    ),
    "alleles are not compared": (
        "if self.variants[line][3:] in turned]",
        "]\n            turned[self.variants[fitting[0]][3:] if fitting else ''] = False",
        OTHERS["another allele"],
    ),
    "the size is not compared": (
        "if size != 3 + width * len(self.variants):",
        "if size < 3 + width * len(self.variants):",
        OTHERS["a file too long"],
    ),
    "the order of calls is not looked at": (
        'if head != b"\\x6c\\x1b\\x01":',
        'if head[:2] != b"\\x6c\\x1b":',
        OTHERS["people after people"],
    ),
}


@pytest.mark.parametrize(("old", "new", "change"), FLAWS.values(), ids=FLAWS)
def test_flaws_would_be_found(copied: Path, old: str, new: str, change: Callable[[Path], None]) -> None:
    """Each of these files is accepted by a verifier without the comparison that refuses it."""
    change(copied)
    assert check(copied, flawed((old, new))) == 0
