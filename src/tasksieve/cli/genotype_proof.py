"""Certificates of genotypes: the header's recipe, and the data again by it from .bed files."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import verify
from ..genotypes import Dosages
from ..genotypes.files import matching_prefixes
from ..proof.certificate import Certificate
from ..tables.recipe import outcome_recipe
from .genotype_source import GenotypeSource, file_option
from .outcomes import survival_of

# Calls up to which a certificate is written beside a fit, and up to which the verifier reads them once more.
MOST_CALLS, TRIED_CALLS = 1 << 30, 1 << 26
DOSAGES = "verify.py reads no dosages from files, only arrays of the rounded numbers"


def genotype_recipe(source: GenotypeSource) -> dict[str, Any]:
    """The header's `genotypes`: people and variants in the order of rows and columns, and where the rest is."""
    config, X, survival = source.config, source.problem.X, survival_of(source.config)
    variants, targets = X.variant_table, source.problem.targets
    named = ("chr", "pos", "id", "effect_allele", "other_allele")
    outcomes = [outcome_recipe(survival[name], {}, {}) if name in survival else name for name in targets]
    roles = {"task": config.get("task"), "weight": config.get("weights"), "offset": config.get("offset")}
    return {
        "people": [f"{fid} {iid}" for fid, iid in X.sample_table.pairs("fid", "iid")],
        "variants": [" ".join(map(str, row)) for row in zip(*(variants[name].tolist() for name in named), strict=True)],
        "covariates": [{"source": name} if word is None else {"source": name, "equals": word}
                       for name, word in source.covariates],
        "target": outcomes if source.problem.several else outcomes[0],
        **roles,
    }  # fmt: skip


def reads_differently(certificate: Certificate, source: GenotypeSource) -> str | None:
    """What the verifier finds wrong with the recipe, if anything: with labels and covariates, and with calls where
    they are not very many."""
    try:
        stated = verify.read_certificate(certificate.to_bytes())
        X, problem = source.problem.X, source.problem
        if file_option(source.config) == "bfile" and X.n_rows * X.n_variants <= TRIED_CALLS:
            data = by_recipe(stated, source.config)
            rows = [data.get(name) for name in ("X", "y", "task", "sample_weight", "offset")]
            wrong = verify.check_digests(stated, verify.arrange(stated, *rows))
            return wrong[0] if wrong else None
        beside = verify.people_of(stated, *_tables(source.config), cohorts=_cohorts(source))
    except (verify.Mismatch, verify.Unreadable) as error:
        return str(error)
    if not np.array_equal(beside.pop("covariates"), X.covariates):
        return "the covariates are read differently"
    rows = [beside.get(name) for name in ("y", "task", "sample_weight", "offset")]
    parts = verify.arrange(stated, X.readable(task_codes(problem.task)), *rows)
    same = [part.digest() for part in parts] == stated["digests"]["labels"]
    return None if same else "the phenotypes are read differently"


def by_recipe(cert: verify.Certificate, config: dict[str, Any], prefixes: list[str] | None = None) -> dict[str, Any]:
    """X, y, task, ... as the verifier reads them from .bed files."""
    return verify.read_genotypes(cert, prefixes or config["bfile"], *_tables(config))


def task_codes(task: Any) -> Any:
    return None if task is None else np.unique(np.asarray(task), return_inverse=True)[1]


def export_words(source: GenotypeSource) -> str:
    """What makes .bed files of the genotypes, which the verifier reads."""
    config, option = source.config, file_option(source.config)
    if isinstance(source.problem.X, Dosages):
        return DOSAGES
    if option == "bfile":
        return "its log.txt says why verify.py cannot"
    if option == "pfile":
        first = matching_prefixes(config[option][0], ".pgen")[0].removesuffix(".pgen")
        return f"verify.py reads .bed files: plink2 --pfile {first} --make-bed --out {first}"
    store = matching_prefixes(config[option][0], "")[0]
    names = "--set-missing-var-ids '@:#:$r:$a'"  # as they are called here
    export = f"vcztools view {store} > calls.vcf; plink2 --vcf calls.vcf {names} --make-bed --out calls"
    return f"verify.py reads .bed files: {export}"


def _tables(config: dict[str, Any]) -> tuple[str, str | None]:
    return config["pheno"], config.get("covar")


def _cohorts(source: GenotypeSource) -> list[str] | None:
    X = source.problem.X
    return X.sample_table["cohort"].tolist() if X.n_cohorts > 1 else None
