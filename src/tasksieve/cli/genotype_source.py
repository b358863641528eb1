"""``tasksieve fit --bfile``, ``--pfile``, ``--vcf-zarr``, ``--bgen``: genotypes with phenotypes and covariates."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..genotypes import (
    Genotypes,
    align_people,
    are_numbers,
    as_numbers,
    filter_variants,
    open_genotypes,
    without_holes,
)
from ..genotypes.files import matching_prefixes
from ..genotypes.people import are_coded_missing, are_missing
from ..tables import SurvivalColumns, TableProblem
from ..tables.categories import Categories
from ..tables.encode import Encoding
from ..tables.row_columns import Labels, RowColumns, fraction_words, groups_column
from ..tables.table import Column, NamedRows, Table, tidy_labels
from ..tasks.labels import first_fraction
from .exit_codes import UsageError
from .options import flag, refuse
from .outcomes import mixed_labels, survival_of
from .source import Source

Array = np.ndarray[Any, Any]

#: option -> kind of its files, and the endings of those
FILES = {
    "bfile": ("bed", (".bed", ".bim", ".fam")),
    "pfile": ("pgen", (".pgen", ".pvar", ".psam")),
    "vcf_zarr": ("vcf-zarr", ("",)),
    "bgen": ("bgen", (".bgen",)),
}
#: what is about the columns of a table
OF_TABLES = (
    "features", "drop", "categorical", "reference", "format", "separator", "encoding", "decimal", "sheet",
    "value_labels", "chunk_rows", "id", "date_parts",
    "max_categories", "missing", "min_rows", "exclude_task", "exclude_class", "feature_groups", "compare", "columns",
    "task_name",
)  # fmt: skip
PATHS = ("pheno", "covar", "remove", "extract", "exclude")


class GenotypeSource(Source):
    """Genotypes, with phenotypes and covariates in files beside them."""

    problem: TableProblem
    covariates: list[tuple[str, str | None]]
    genotypes = True
    not_saved = "genotypes stay in their files"

    @classmethod
    def recognises(cls, config: dict[str, Any]) -> bool:
        return any(config.get(key) for key in FILES)

    @classmethod
    def decide(cls, config: dict[str, Any]) -> None:
        """Refuse options that do not go together; the phenotype file is the table."""
        option = file_option(config)
        given, genotypes = config.keys() - config.get("by_default", ()), flag(option)
        why = f"is about the columns of a table, and does not go with {genotypes}"
        refuse((key for key in OF_TABLES if key in given), why)
        if option == "bfile" and "dosages" in config:
            raise UsageError("--dosage: .bed files hold hard calls; dosages are in .pgen and .bgen files and VCF-Zarr")
        if "pheno" not in config:
            raise UsageError("--pheno: name the file of phenotypes, with FID and IID in its first columns")
        for key in PATHS:
            if key in config:
                config[key] = os.path.abspath(config[key])
        config[option] = [os.path.abspath(prefix) for prefix in config[option]]
        config["keep"] = [os.path.abspath(path) for path in config.get("keep", [])]
        if len(config["keep"]) > 1:
            raise UsageError(f"--keep: with {genotypes}, one file of people")
        if "table" in config and config["table"] != config["pheno"]:
            raise UsageError(f"with {genotypes} there is no other table than --pheno")
        config["table"] = config["pheno"]
        config["target"] = [name for word in config.get("target", ()) for name in word.split(",") if name]

    @property
    def title(self) -> str:
        return ", ".join(Path(prefix).name for prefix in self.config[file_option(self.config)])

    def files(self) -> list[Path]:
        config, option = self.config, file_option(self.config)
        first, *_ = suffixes = FILES[option][1]
        prefixes = [found for prefix in config[option] for found in matching_prefixes(prefix, first)]
        named = [Path(prefix.removesuffix(first) + suffix) for prefix in prefixes for suffix in suffixes]
        own = [file for path in named for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
        own = [file for file in own if not file.is_dir()]
        own += [beside for file in own if (beside := file.with_suffix(".sample")).is_file() and file.suffix == ".bgen"]
        return [*own, *(Path(config[key]) for key in PATHS[1:] if key in config), *map(Path, config["keep"])]

    def parameters(self) -> dict[str, Any]:
        """Covariates are not penalised."""
        if not self.problem.X.n_covariates:
            return {}
        if "feature_weights" not in self.kind.parameters():
            raise UsageError(f"--covar: --model {self.kind.name} penalises all features; it has no covariates")
        return {"feature_weights": self.problem.X.feature_weights}

    def read(self) -> Source:
        """People with phenotypes, a task and all covariates; variants that pass the filters among them."""
        config = self.config
        given = {key: config.get(key) for key in ("remove", "extract", "exclude", "dosages")}
        keep = config["keep"][0] if config["keep"] else None
        option = file_option(config)
        kind_of_files, prefixes = FILES[option][0], config[option]
        X = open_genotypes(prefixes[0] if len(prefixes) == 1 else prefixes, kind=kind_of_files, keep=keep, **given)
        n_people = X.n_rows
        tables = PeopleColumns(X, config)
        targets: list[str] = config["target"]
        phenotypes = self._phenotypes(tables)
        words, classes = phenotypes.words, phenotypes.classes
        beside = tables.covariates([*targets, *words])
        covariates, codings = _encoded(beside, n_people)
        self.covariates = []  # of each its column, and the word that it is an indicator of
        for name, coding in codings:
            self.covariates += [(name, word) for word in ([None] if coding is None else coding.indicators)]
        absent = {
            "people without a phenotype": phenotypes.absent,
            "people without a task": tables.missing("task"),
            "people without a covariate": np.isnan(covariates).any(axis=1),
            "people without a weight": tables.missing("weights"),
            "people without an offset": tables.missing("offset"),
            "people without a group": tables.missing("row_groups"),
        }
        stay = np.ones(n_people, dtype=bool)
        for reason, flags in absent.items():
            if gone := int(np.count_nonzero(flags & stay)):
                X.dropped[reason] = gone
            stay &= ~flags
        if not stay.any():
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in X.dropped.items())
            raise ValueError(f"no people are left: {reasons}")
        rows = np.flatnonzero(stay)
        X = X.with_people(rows)
        if "mind" in config:
            X, few = without_holes(X, config["mind"])
            rows = rows[few]
        task = tables.labels("task", rows)
        limits = {key: config.get(key) for key in ("geno", "maf", "task_geno", "task_maf")}
        X = filter_variants(X, task=None if task is None else task.astype(str), **limits)
        if covariates.shape[1]:
            X = X.with_covariates(covariates[rows], Encoding(codings).feature_names)
        notes = [
            *_missing_notes("phenotypes", words),
            *_missing_notes("covariates", beside),
            *(_zero_notes(words) if classes else ()),
            *(f"left out: {count:,} {reason}" for reason, count in X.dropped.items()),
        ]
        self.problem = TableProblem(
            X,
            phenotypes.labels(rows),
            task,
            tables.numbers("weights", rows),
            targets,
            Encoding([*codings, *((str(name), None) for name in X.feature_names[X.n_covariates :])]),
            None,
            rows,
            n_people,
            notes,
            tables.labels("row_groups", rows),
            classes,
            tables.numbers("offset", rows),
            ("IID", X.sample_table["iid"].tolist()),
        )
        return self

    def _phenotypes(self, tables: PeopleColumns) -> _Phenotypes:
        """The labels that are asked for."""
        config, survival = self.config, survival_of(self.config)
        targets: list[str] = config["target"]
        if self.kind.targets == "mixed":
            return self._unlike(tables, survival)
        if survival:
            named = {name: flag for own in survival.values() for flag, name in own.flags.items()}
            words = {name: tables.column(name, flag) for name, flag in named.items()}
            table, columns = tables.as_table(words), RowColumns(targets, survival=survival)
            absent = np.all([columns.missing(table, name) for name in targets], axis=0)
            return _Phenotypes(words, absent, False, lambda rows: columns.labels(table, rows))
        words = {name: tables.column(name, "--pheno-name") for name in targets}
        numbers = all(are_numbers(own) for own in words.values())
        wanted = self.kind.wants_classes(config.get("loss"), not numbers)
        # an order is one of numbers, where they are
        own = wanted and not (numbers and self.kind.name == "ordinal")
        y = np.column_stack([_labels(words[name], name, own) for name in targets])

        def labels(rows: Array) -> Array:
            found = y[rows] if len(targets) > 1 else y[rows, 0]
            return tidy_labels(found) if wanted and len(targets) == 1 else found

        return _Phenotypes(
            words, np.array([all(v is None or v != v for v in row) for row in y.tolist()]), wanted, labels
        )


    def _unlike(self, tables: PeopleColumns, survival: dict[str, SurvivalColumns]) -> _Phenotypes:
        """Phenotypes of unlike kinds: a column each, or those of the tasks that people belong to."""
        targets, task = self.config["target"], self.config.get("task")
        how = mixed_labels(self.config, targets)
        columns = RowColumns(targets, task, survival=survival, flag="--pheno-name", by_task=how.get("by_task"))
        named = {name: flag for target in targets for name, flag in columns.columns_of(target).items()}
        words = {name: tables.column(name, flag) for name, flag in named.items()}
        if task is None:
            table = tables.as_table(words)
            absent = np.all([columns.missing(table, name) for name in targets], axis=0)
        else:
            table = tables.as_table({**words, task: tables.column(task, "--task")})
            absent = np.zeros(table.n_rows, dtype=bool)
            for _, rows in how["by_task"].holes(table, task):
                absent[rows] = True
        return _Phenotypes(words, absent, False, lambda rows: columns.labels(table, rows, how.get("classes", False)))


@dataclass(frozen=True)
class _Phenotypes:
    """Columns of phenotypes as words, people who have none, and the labels of some people."""

    words: dict[str, Array]
    absent: Array
    classes: bool
    labels: Callable[[Array], Labels]


def file_option(config: dict[str, Any]) -> str:
    """The option that names the genotypes."""
    given = [key for key in FILES if config.get(key)]
    if len(given) > 1:
        options = " and ".join(map(flag, given))
        raise UsageError(f"{options}: do not go together; give genotypes of one kind")
    return given[0]


class PeopleColumns:
    """Columns of the phenotype and the covariate file, in the order of people."""

    def __init__(self, X: Genotypes, config: dict[str, Any]) -> None:
        self._config, samples = config, X.sample_table
        self._pheno = align_people(samples, config["pheno"], "--pheno") if "pheno" in config else {}
        self._covar = align_people(samples, config["covar"], "--covar") if "covar" in config else {}
        self._cohort = {"cohort": samples["cohort"]} if X.n_cohorts > 1 else {}
        self._n_people = X.n_rows
        self._names = [" ".join(pair) for pair in samples.pairs("fid", "iid")]

    def as_table(self, words: dict[str, Array]) -> Table:
        """Columns in the order of people, as those of a table: numbers where all are."""
        columns = {}
        for name, own in words.items():
            if are_numbers(own):
                columns[name] = Column("number", as_numbers(own, name))
                continue
            values = own.copy()
            values[are_missing(own)] = None
            columns[name] = Column("text", values)
        return Table(NamedRows("--pheno", self._names), self._n_people, columns)

    def column(self, name: str, flag: str) -> Array:
        for found in (self._pheno, self._covar, self._cohort):
            if name in found:
                return found[name]
        known = ", ".join([*self._pheno, *self._covar])
        raise UsageError(f"{flag}: neither --pheno nor --covar has a column {name!r}; they have {known}")

    def has(self, name: str) -> bool:
        return any(name in found for found in (self._pheno, self._covar, self._cohort))

    def covariate(self, name: str) -> Array:
        """A column of --covar that a model was fitted with."""
        if name in self._covar:
            return self._covar[name]
        if not self._covar:
            raise UsageError(f"--covar: name the file of the covariates, of which the model has {name!r}")
        known = ", ".join(self._covar)
        raise UsageError(f"--covar: has no column {name!r}, which the model was fitted with; it has {known}")

    def _asked(self, key: str) -> Array | None:
        name = self._config.get(key)
        name = groups_column(name) if key == "row_groups" else name
        return None if name is None else self.column(name, flag(key))

    def missing(self, key: str) -> Array:
        words = self._asked(key)
        if words is None:
            return np.zeros(self._n_people, dtype=bool)
        return are_missing(words)

    def labels(self, key: str, rows: Array) -> Array | None:
        words = self._asked(key)
        if words is None:
            return None
        name, words = self._config[key], words[rows]
        odd = first_fraction(as_numbers(words, name)) if key == "task" and are_numbers(words) else None
        if odd is not None:
            raise UsageError(fraction_words(self._names[rows[odd]], name, float(words[odd])))
        return tidy_labels(words)

    def numbers(self, key: str, rows: Array) -> Array | None:
        words = self._asked(key)
        return None if words is None else as_numbers(words, flag(key))[rows]

    def covariates(self, targets: list[str]) -> dict[str, Array]:
        """The columns that --covar-name names, or all of --covar that are nothing else."""
        config = self._config
        chosen = [name for word in config.get("covar_name", ()) for name in word.split(",") if name]
        if chosen and not self._covar:
            raise UsageError("--covar-name: goes with --covar")
        for name in chosen:
            if name not in self._covar:
                raise UsageError(f"--covar-name: --covar has no column {name!r}; it has {', '.join(self._covar)}")
        used = {*targets, *(config.get(key) for key in ("task", "weights", "offset", "row_groups"))}
        return {name: self._covar[name] for name in chosen or [name for name in self._covar if name not in used]}


def _encoded(covariates: dict[str, Array], n_people: int) -> tuple[Array, list[tuple[str, Categories | None]]]:
    """Numbers as they are; words as indicators of all but the first, since covariates are not penalised. And how each
    column was read."""
    columns, codings = [np.empty((n_people, 0))], list[tuple[str, Categories | None]]()
    for name, words in covariates.items():
        if are_numbers(words):
            columns.append(as_numbers(words, name)[:, None])
            codings.append((name, None))
            continue
        absent = are_missing(words)
        levels = sorted(set(words[~absent].tolist()))
        columns += [np.where(absent, np.nan, words == level)[:, None] for level in levels[1:]]
        codings.append((name, Categories(tuple(levels), levels[0])))
    return np.hstack(columns), codings


def _missing_notes(kind: str, columns: dict[str, Array]) -> list[str]:
    """How many people have no value, column by column."""
    counts = []
    for name, words in columns.items():
        count, coded = np.count_nonzero(are_missing(words)), np.count_nonzero(are_coded_missing(words))
        if count:
            counts.append(f"{name} {count:,}" + (f" ({coded:,} written as -9)" if coded else ""))
    n_people = max((len(words) for words in columns.values()), default=0)
    return [f"{kind} not observed, of {n_people:,} people: {', '.join(counts)}"] if counts else []


def _zero_notes(phenotypes: dict[str, Array]) -> list[str]:
    """PLINK reads the 0 of a case/control phenotype (1, 2) as not observed."""
    alike = [
        name
        for name, words in phenotypes.items()
        if are_numbers(words) and set(as_numbers(words, name)[~are_missing(words)].tolist()) == {0.0, 1.0, 2.0}
    ]
    return [f"{name} has the classes 0, 1 and 2; if 0 means not observed, as in PLINK, write NA" for name in alike]


def _labels(words: Array, name: str, classes: bool) -> Array:
    if not classes:
        return as_numbers(words, name)
    labels = words.copy()
    labels[are_missing(words)] = None
    return labels
