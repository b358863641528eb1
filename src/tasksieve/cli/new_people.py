"""People of genotype files for a model that is fitted already: its variants found among theirs, alleles turned."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic import write_json
from ..fitted.restore import get_state
from ..genotypes import Genotypes, open_genotypes
from ..genotypes.alleles import Matched
from ..genotypes.files import variant_table
from ..genotypes.people import are_missing, as_number, as_numbers
from ..genotypes.table import Table as Variants
from ..report.words import count, few
from ..runs import RunError, RunFolder, SavedModel
from ..runs.folder import CONFIG
from ..runs.genome import variants_in_use
from ..tables import Encoding
from ..tables.table import Column
from .exit_codes import UsageError
from .genotype_source import FILES, PeopleColumns, file_option
from .new_rows import NewRows, read_table_rows
from .options import Asked, flag

Array = np.ndarray[Any, Any]

#: options that are about genotypes, and those that are about tables, with what they are where nothing is said
OF_GENOTYPES = ("pheno", "covar", "keep", "remove", "dosages", "missing_variants")
OF_TABLES = {
    "format": None, "separator": None, "encoding": None, "decimal": None, "sheet": None, "value_labels": None,
    "skip": None, "id": None, "task_name": None, "missing": "error", "unseen": "error",
}  # fmt: skip


@dataclass
class NewPeople(NewRows):
    """People: `table` has their covariates, tasks and labels, and `genotypes` the variants that the model uses, in
    their places among all features of the fit."""

    kind = "cohort"
    genotypes: Genotypes
    variants: Variants
    option: str

    def features(self, X: Any, rows: Any) -> Any:
        some = self.genotypes.with_people(rows)
        return some.with_covariates(X, self.encoding.feature_names) if X.shape[1] else some

    @property
    def title(self) -> str:
        return ", ".join(Path(prefix).name for prefix in self.files)

    def seen_by(self, folder: RunFolder) -> bool:
        return bool(folder.read_json(CONFIG).get(self.option) == self.files)

    def with_names(self, columns: dict[str, list[Any]], saved: SavedModel, asked: Asked) -> dict[str, list[Any]]:
        samples = self.genotypes.sample_table
        names = {"FID": "fid", "IID": "iid"} | ({"cohort": "cohort"} if self.genotypes.n_cohorts > 1 else {})
        own = {title: samples[name].tolist() for title, name in names.items()}
        return {**own, **{f"{name} (of the fit)" if name in own else name: values for name, values in columns.items()}}

    def write_beside(self, out: str | None) -> None:
        if out is not None and out != "-":
            write_json(Path(out).with_suffix(".variants.json"), matching(self.genotypes, self.variants))


def open_rows(
    asked: Asked,
    saved: SavedModel,
    folder: RunFolder,
    needed: Sequence[tuple[str, str]],
    *,
    all_tasks: bool = False,
    some: Sequence[tuple[str, str]] = (),
    classes: Sequence[str] = (),
) -> NewRows:
    """The rows that are named, of tables or of genotypes, with the columns that are `needed` (option, name) beside the
    features, and `some` where they are there; `classes` are those of class labels."""
    if not names_genotypes(asked):
        for key in OF_GENOTYPES:
            if getattr(asked, key):
                raise UsageError(f"{_flag(key)}: goes with --bfile, --pfile, --vcf-zarr or --bgen")
        return read_table_rows(asked, saved, needed, all_tasks, some)
    option = file_option(vars(asked))
    if asked.table:
        raise UsageError(f"{flag(option)}: there is no TABLE with it; --pheno and --covar name files of the people")
    for key, default in OF_TABLES.items():
        if getattr(asked, key) not in (default, []):
            raise UsageError(f"{_flag(key)}: is about the columns of a table, and does not go with {flag(option)}")
    features, variants = variants_in_use(folder, saved)
    refuse_without_means(folder, saved, features)
    X = open_people(asked, option, variants)
    admit_missing(asked.missing_variants, X)
    n_covariates = int(saved.said["covariates"])
    names = saved.feature_names[n_covariates:]
    ids, _, alleles = ([*part] for part in zip(*(name.rpartition("_") for name in names), strict=True))
    empty = np.full(len(names), "", dtype=object)
    whole = variant_table(empty, np.zeros(len(names), dtype=np.int64), ids, alleles, empty)
    notes = matching_notes(X)
    people = PeopleColumns(X, {key: getattr(asked, key) for key in ("pheno", "covar") if getattr(asked, key)})
    encoding = covariate_encoding(saved.encoding, n_covariates)
    wanted = [*needed, *((_flag("target"), name) for _, name in some if people.has(name))]
    words = {name: people.column(name, option) for option, name in wanted}
    words |= {name: people.covariate(name) for name in encoding.sources}
    labels = {}
    task = None if all_tasks or saved.task is None else asked.task or saved.task
    if task is not None:
        if not people.has(task):
            remedy = ", --all-tasks predicts all tasks for all people" if asked.command == "predict" else ""
            raise UsageError(f"--task: neither --pheno nor --covar has a column {task!r}; --task names it{remedy}")
        labels[task] = labels_as_known(people.column(task, "--task"), task, saved.estimator.tasks_.tolist())
    for name in classes:
        labels[name] = labels_as_known(people.column(name, "--pheno-name"), name, known_classes(saved))
    table = people.as_table(words)
    table = replace(table, columns={**table.columns, **labels})
    how = {"missing": "drop", "unknown": asked.unknown}
    files = [os.path.abspath(prefix) for prefix in getattr(asked, option)]
    return NewPeople(table, encoding, how, files, notes, X.among(features - n_covariates, whole), variants, option)


def names_genotypes(asked: Asked) -> bool:
    return any(getattr(asked, key) for key in FILES)


def open_people(asked: Asked, option: str, variants: Variants | None) -> Genotypes:
    """The people of the files that are named, with some variants or all."""
    prefixes = getattr(asked, option)
    lists = {key: getattr(asked, key) for key in ("keep", "remove", "dosages") if getattr(asked, key, None)}
    return open_genotypes(
        prefixes[0] if len(prefixes) == 1 else prefixes, kind=FILES[option][0], like=variants, **lists
    )


def _flag(key: str) -> str:
    return flag(key) if key == "dosages" else "--" + key.replace("_", "-")


# --- variants --------------------------------------------------------------------------------------------------------


def refuse_without_means(folder: RunFolder, saved: SavedModel, features: Array) -> None:
    """Runs of earlier versions keep the means of the chosen value alone."""
    known = get_state(saved.estimator).get("fills")
    if len(features) and (known is None or not np.isin(features, known.features).all()):
        raise RunError(
            f"{folder.path} does not hold the means that stand for missing calls at this --alpha: fit it again with "
            "this version"
        )


def admit_missing(allowed: str | None, X: Genotypes) -> None:
    """Refuse to predict where more variants of the model are missing than allowed: none (error), any (mean), or a part
    of them."""
    most = {"error": 0.0, "mean": 1.0}.get(allowed or "error")
    try:
        most = float(str(allowed)) if most is None else most
    except ValueError:
        most = -1.0
    if not 0.0 <= most <= 1.0:
        raise UsageError(f"--missing-variants: error, mean, or the part that may be missing (0.05); got {allowed!r}")
    for name, own in X.matched.items():
        n_missing, n = int(own.missing.sum()), len(own.missing)
        if n_missing > most * n:
            ids = few(X.variant_table["id"][own.missing].tolist(), 5)
            raise UsageError(
                f"{name}: {n_missing:,} of the {n:,} variants of the model are missing{reasons(own)}: {ids}. "
                "--missing-variants mean has the means of the fit in their place, --missing-variants 0.05 as long as "
                "they are at most 5 %"
            )


def reasons(own: Matched) -> str:
    """Why variants are missing, in words."""
    counts = own.counts()
    words = {
        "other_alleles": "have other alleles there",
        "repeated": "are there more than once",
        "unusable": "have calls that are not diploid",
    }
    found = [f"{counts[key]:,} {said}" for key, said in words.items() if counts[key]]
    return f" ({', '.join(found)})" if found else ""


def matching_notes(X: Genotypes) -> list[str]:
    """How the variants of the model were found, in words."""
    notes = []
    for name, own in X.matched.items():
        counts = own.counts()
        told = [
            f"{counts['swapped']:,} counted by the other allele",
            f"{counts['flipped']:,} on the other strand",
            f"{counts['ambiguous']:,} ambiguous (A/T, C/G)",
            *([f"{counts['by_id']:,} without a position by their identifier"] if counts["by_id"] else []),
            f"{counts['missing']:,} missing{reasons(own)}",
        ]
        n = count(len(own.missing), "variant")
        notes.append(f"{name}: {counts['matched']:,} of {n} of the model matched: {', '.join(told)}")
        if counts["missing"]:
            notes.append(f"{name}: means of the fit stand for the {count(counts['missing'], 'missing variant')}")
        if counts["ambiguous"] and counts["flipped"]:
            notes.append(
                f"{name}: ambiguous variants are taken to be on the same strand, although others are on the other one"
            )
    return notes


def matching(X: Genotypes, variants: Variants) -> dict[str, Any]:
    """The same for a JSON file: counts, and identifiers of those that are not simply there."""
    found = {}
    for name, own in X.matched.items():
        listed = {key: variants["id"][flags].tolist() for key, flags in own.flags().items() if key != "matched"}
        found[name] = {"variants": len(own.missing), **own.counts(), "identifiers": listed}
    return {"people": X.n_rows, "cohorts": found}


# --- columns ---------------------------------------------------------------------------------------------------------


def covariate_encoding(encoding: Encoding, n_covariates: int) -> Encoding:
    """How the covariates, which are the first features of a model, were read."""
    columns: list[Any] = []
    for name, coding in encoding.columns:
        if len(Encoding(columns).feature_names) >= n_covariates:
            break
        columns.append((name, coding))
    return Encoding(columns)


def known_classes(saved: SavedModel) -> list[Any]:
    classes = saved.estimator.classes_
    every = classes if isinstance(classes, list) else [classes]
    return [label for own in every if own is not None for label in own.tolist()]


def labels_as_known(words: Array, name: str, known: Sequence[Any]) -> Column:
    """Labels as the fit has them: words as they are, and numbers however they are written (1, 1.0)."""
    if not all(isinstance(label, str) for label in known):
        return Column("number", as_numbers(words, name))
    by_number = {number: label for label in known if (number := as_number(label)) is not None}
    found = np.full(len(words), None, dtype=object)
    for i in np.flatnonzero(~are_missing(words)).tolist():
        number = None if words[i] in known else as_number(words[i])
        found[i] = words[i] if number is None else by_number.get(number, words[i])
    return Column("text", found)
