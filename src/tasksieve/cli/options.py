"""All options of the commands that leave a run folder: what is typed, what it means, what it becomes.

Those of estimators' parameters are described in `tasksieve.parameters`.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import typer

from ..parameters import PARAMETERS, STABILITY, Parameter
from ..runs.registry import MODELS
from .exit_codes import UsageError

EVERY = ("fit", "path", "stability", "compare")
GENOTYPES = ("fit", "path", "stability")  # that read PLINK files
MODELS_OF = ("fit", "path")  # commands that leave a model
CHOOSING = ("fit", "compare")  # that choose a strength by cross-validation
TRUST = ("fit", "stability")
REQUIRED: Any = inspect.Parameter.empty

Panel = Literal["Data", "Genotypes", "Model", "Strength", "Trust", "Run"]
Role = Literal["config", "param", "run"]
Format = Literal[
    "csv", "parquet", "arrow", "npz", "libsvm", "excel", "ods", "stata", "spss", "sas", "xport"
]  # fmt: skip
Decimal = Literal[".", ","]
Columns = Literal["same", "intersection", "union"]
Missing = Literal["error", "drop", "mean", "task-mean", "indicator", "patterns"]
SKIP_WORDS = (
    "Of a folder: files that are no tables, by names or globs; --skip alone, before another option: all. Without it "
    "they are an error."
)
Asked = SimpleNamespace  # the options of a command as they were typed, by their keys; and `command`


@dataclass(frozen=True, eq=False)
class Option:
    """One option."""

    key: str  # its place in a configuration
    kind: Any
    help: str | None
    panel: Panel | None = None  # heading in the help
    role: Role = "config"  # part of what is computed, parameter of the estimator, or a matter of this call only
    commands: tuple[str, ...] = EVERY  # that have it
    also: Mapping[str, str] = field(default_factory=dict)  # command -> another word for it there
    parameter: str | None = None  # its name in Python, where that is not its key
    # what is typed, ``--key`` by default; a boolean has its opposite after a slash, after " /" another word for that
    flag: str = ""
    default: Any = None
    argument: bool = False  # known by its position
    hidden: bool = False  # from the help: refused in words

    @property
    def name(self) -> str:
        """What it is called in Python."""
        return self.parameter or self.key

    @property
    def flags(self) -> list[str]:
        return (self.flag or "--" + self.key.replace("_", "-")).split(",")

    @property
    def long(self) -> str:
        return self.flags[0].partition("/")[0]

    def typed_in(self, command: str) -> inspect.Parameter:
        """The parameter of the function that typer reads."""
        only = inspect.Parameter.KEYWORD_ONLY
        annotation = self._annotation(self.also.get(command))
        return inspect.Parameter(self.key, only, default=self.default, annotation=annotation)

    @cache  # noqa: B019 - options are constants of this module
    def _annotation(self, also: str | None) -> Any:
        """What typer reads of it, one for all commands that call it the same."""
        if self.argument:
            info: Any = typer.Argument(help=self.help, show_default=False)
        else:
            words = [*self.flags, *([also] if also else [])]
            info = typer.Option(*words, help=self.help, rich_help_panel=self.panel, hidden=self.hidden)
        return Annotated[self.kind | None if self.default is None else self.kind, info]


def option_of(
    parameter: str,
    panel: Panel,
    role: Role = "param",
    commands: tuple[str, ...] = EVERY,
    also: Mapping[str, str] | None = None,
    *,
    key: str | None = None,
    table: Mapping[str, Parameter] = PARAMETERS,
) -> Option:
    """The option of a parameter, as its table describes it."""
    said = table[parameter]
    words = said.help or said.text
    return Option(key or parameter, said.typed, words, panel, role, commands, also or {}, parameter, said.flag)


def of_genotypes(key: str, kind: Any, help: str, flag: str = "") -> Option:
    return Option(key, kind, help, "Genotypes", commands=GENOTYPES, flag=flag)


TABLE = Option(
    "table", list[str], "The table: CSV, Parquet, Arrow, Excel, OpenDocument, Stata, SPSS, SAS, npz, libsvm, or a Zarr "
    "store. One file for each task: several files, a glob (quoted), or their folder.", argument=True,
)  # fmt: skip

OPTIONS = [
    Option("target", list[str], "Column to predict (name or glob). Several targets: one shared matrix, each target a "
           "task; empty cells are labels not observed.", "Data", also=dict.fromkeys(GENOTYPES, "--pheno-name"),
           flag="--target,-y"),
    Option("time", list[str], "Survival (--model cox), in place of --target: column with the time of an event or of "
           "censoring. Several outcomes, each a task, have names: NAME=COLUMN, here and in the options below.", "Data"),
    Option("event", list[str], "Column that says whether the time is that of an event: 1 or true, else 0 or false; "
           "COLUMN==VALUE where something else stands for an event (R's status==2).", "Data"),
    Option("entry", list[str], "Column with the time from which on a row is under observation (delayed entry).",
           "Data"),
    Option("strata", list[str], "Column with strata: each has a baseline hazard of its own.", "Data"),
    Option("outcome", list[str], "NAME=KIND, what each outcome is (--model mixed): value, binary, count, ordered, "
           "survival (with --time, --event), or a loss, with options: tweedie:power=1.3. A name is a target column, or "
           "with --task or several files a task. A KIND alone: of all others.", "Data"),
    Option("categories", list[str], "Ordered classes, lowest first: none,mild,severe; or NAME=none,mild,severe, of a "
           "target or task. (default: numbers by size)", "Data"),
    Option("task", str, "Column with the task of each row; of several files by default the file's name.", "Data",
           flag="--task,-t"),
    Option("task_name", list[str], "Of several files: a pattern with {} for the part of the path that names the task "
           "('run_{}.csv', '{}/data.csv'), or a name for each file.", "Data"),
    Option("columns", Columns, "Columns that not all files have: an error, left out, "
           "or no features of the tasks that lack them. (default: same)", "Data"),
    Option("features", list[str], "Columns to learn from (names or globs); by default all others.", "Data",
           flag="--features,-x"),
    Option("drop", list[str], "Columns to leave out (names or globs).", "Data"),
    Option("keep", list[str], "Columns to learn from although they look like an id (names or globs); named in "
           "--features they are kept, too. With genotypes: a file of the people to keep (FID IID).", "Data"),
    Option("id", str, "Column that names the rows: not learned from, carried into predictions.", "Data"),
    Option("date_parts", bool, "Learn from the parts of dates (days since 1970, year, month, day, weekday, hour); "
           "otherwise dates are left out.", "Data", flag="--date-parts/--no-date-parts"),
    Option("weights", str, "Column with the weight of each row.", "Data"),
    Option("offset", str, "Column that is added to every prediction, not learned (log exposure, of a rate); predict "
           "needs it, too.", "Data", "config", MODELS_OF),
    Option("row_groups", str, "Column that related rows share (a family, a patient): they are held out together in "
           "cross-validation, and are in the same half. none: rows are not related. (default: an id that comes again "
           "within a task)", "Data", "config", ("fit", "stability", "compare")),
    Option("categorical", list[str], "Columns of numbers that are names of things (names or globs). Columns of words "
           "always are.", "Data"),
    Option("reference", list[str], "COLUMN=CATEGORY: this category of a column of words gets no indicator. (default: "
           "of two the more frequent, of more none)", "Data"),
    Option("missing", Missing, "Rows with missing values: an error, left out, or filled with the column's mean over "
           "all rows, or that in the row's task; indicator has, next to task means, a feature missing(COLUMN) for "
           "every column that lacks values; patterns fits rows as they are: those of a task that have the same columns "
           "are a task of their own. (default: error)", "Data"),
    Option("pattern_rows", int, "With --missing patterns: patterns with fewer rows are merged into those with fewer "
           "columns.", "Data"),
    Option("min_rows", int, "Leave out tasks with fewer rows.", "Data"),
    Option("exclude_task", list[str], "Leave out a task, by its label; repeatable.", "Data"),
    Option("exclude_class", list[str], "Leave out the rows of a class, by its label; repeatable.", "Data"),
    Option("max_categories", int, "Most words in a column of words. (default: 100)", "Data"),
    Option("format", Format, "Format of the table; by default from its name.", "Data"),
    Option("separator", str, "Between the cells of a CSV file. (default: found in the file)", "Data"),
    Option("encoding", str, "Of a file of text, Stata, SPSS or SAS: cp1252, latin-1, utf-16, ... (default: UTF-8, "
           "otherwise guessed and said)", "Data"),
    Option("decimal", Decimal, "Sign before the decimals of numbers in text. (default: found in the file)", "Data"),
    Option("sheet", list[str], "Of a workbook with several sheets: the one to read. Several names, or a glob ('*' for "
           "all): each sheet is a task.", "Data"),
    Option("value_labels", bool, "Of Stata and SPSS files: numbers that have labels are categories, or the numbers "
           "they are. (default: categories)", "Data", flag="--value-labels/--no-value-labels"),
    Option("skip", list[str], SKIP_WORDS, "Data", "run"),
    Option("chunk_rows", int, "Read CSV, Parquet or Arrow in chunks of so many rows and keep only their sums (lasso, "
           "elastic-net, sparse-group; squared loss); 0: never. (default: where a table is tall, or larger than "
           "memory)", "Data", "config", MODELS_OF),
    of_genotypes("bfile", list[str], "Prefix of PLINK files (.bed, .bim, .fam) to learn from; @ stands for the "
                 "chromosome. Several: cohorts, whose variants are matched."),
    of_genotypes("pfile", list[str], "The same of PLINK 2 files (.pgen, .pvar, .psam); needs pgenlib."),
    of_genotypes("vcf_zarr", list[str], "The same of VCF-Zarr stores (sgkit, bio2zarr), by their paths; needs zarr."),
    of_genotypes("bgen", list[str], "The same of BGEN files (1.2, probabilities of 8 or 16 bits), which hold dosages."),
    of_genotypes("dosages", int, "Dosages in place of hard calls (--pfile, --vcf-zarr, --bgen), as numbers of 8 bits "
                 "(1/64 of a copy) or of 16 (1/16384).", flag="--dosage"),
    of_genotypes("pheno", str, "File of FID, IID and phenotypes (--pheno-name); -9 (-9.0) and NA are not observed."),
    of_genotypes("covar", str, "File of FID, IID and covariates, which are not penalised."),
    of_genotypes("covar_name", list[str], "Which of its columns; by default all that are nothing else."),
    of_genotypes("remove", str, "File of people to leave out (FID IID)."),
    of_genotypes("extract", str, "File of variants (identifiers) to keep."),
    of_genotypes("exclude", str, "File of variants to leave out."),
    of_genotypes("mind", float, "Leave out people with a larger part of missing calls."),
    of_genotypes("geno", float, "Leave out variants with a larger part of missing calls."),
    of_genotypes("maf", float, "Leave out variants whose rarer allele is less frequent."),
    of_genotypes("task_geno", float, "The same as --geno, within every task."),
    of_genotypes("task_maf", float, "The same as --maf, within every task."),
    Option("model", Literal[tuple(MODELS)], "Which model; `tasksieve info` says what they are for. (default: lasso)",
           "Model", flag="--model,-m"),
    *(option_of(name, "Model") for name in ("l1_ratio", "l1", "group", "l2", "loss", "penalty", "ridge")),
    option_of("task_graph", "Model", "config"),
    option_of("feature_groups", "Model", "config"),
    *(option_of(name, "Model") for name in ("inside", "ties", "delta")),
    Option("loss_weights", list[str], "NAME=NUMBER (--model mixed): weight of an outcome's loss, or a NUMBER for all. "
           "(default: 1/root mean square of its null residual)", "Model"),
    Option("target_scales", list[str], "NAME=NUMBER (--model mixed): unit of an outcome, or a NUMBER for all. "
           "(default: its standard deviation where the loss is about differences)", "Model"),
    option_of("q", "Model", also={"fit": "--q", "path": "--q", "compare": "--q"}),
    option_of("smoothing", "Model"),
    option_of("weights", "Model", key="owl_weights"),
    option_of("oscar_ratio", "Model"),
    option_of("fdr", "Model"),
    option_of("graph", "Model", "config"),
    *(option_of(name, "Model") for name in (
        "graph_strength", "epsilon", "class_weight", "intercept_scaling", "fit_intercept", "positive",
        "standardize", "task_weights", "tol", "max_iter", "screening",
    )),
    option_of("alpha", "Strength", commands=("fit",)),
    option_of("C", "Strength", commands=("fit",)),
    option_of("cv", "Strength", "config", CHOOSING),
    option_of("random_state", "Strength", "config", ("fit", "stability", "compare"), key="seed"),
    Option("shuffle", bool, "Folds of shuffled rows, or of consecutive ones, of each task and class. (default: "
           "shuffle)", "Strength", "config", ("fit",), flag="--shuffle/--no-shuffle"),
    option_of("alphas", "Strength", "config", ("fit", "path", "compare")),
    option_of("eps", "Strength", "config", ("fit", "path", "compare")),
    option_of("selection_rule", "Strength", "config", CHOOSING),
    option_of("early_stopping", "Strength", "config", CHOOSING),
    option_of("fold_tol", "Strength", "config", CHOOSING),
    Option("keep_folds", Literal["tuned", "nested"], "Keep the models of the folds, for predict --interval: at the "
           "value that they have chosen together, or each at one chosen by folds of its own rows, which the guarantee "
           "asks for.", "Strength", "config", ("fit",)),
    Option("stability", bool, "Say which features would be found again on halves of the rows, and whether anything "
           "matters at all.", "Trust", "config", ("fit",), flag="--stability/--no-stability"),
    option_of("n_pairs", "Trust", "config", TRUST, key="pairs", table=STABILITY),
    option_of("pfer", "Trust", "config", TRUST, table=STABILITY),
    option_of("threshold", "Trust", "config", TRUST, table=STABILITY),
    option_of("q", "Trust", "config", TRUST, {"stability": "--q"}, key="per_half", table=STABILITY),
    option_of("assumption", "Trust", "config", TRUST, table=STABILITY),
    option_of("small_tasks", "Trust", "config", TRUST, table=STABILITY),
    Option("permutations", int, "Shuffles of the labels that test whether anything matters; 0: none. (default: 1000)",
           "Trust", "config", TRUST),
    Option("intervals", bool, "Say how large the effects are, with standard errors, intervals and p-values: features "
           "are selected on one half of the rows (where --cv chooses the strength, too), and their coefficients are "
           "estimated without the penalty on the other.", "Trust", "config", ("fit",),
           flag="--intervals/--no-intervals"),
    Option("interval_method", Literal["split", "debiased"], "Of --intervals: split is that; debiased takes the "
           "shrinkage out of the model's coefficients on all rows, and is not honest about the selection. (default: "
           "split)", "Trust", "config", ("fit",)),
    Option("interval_features", str, "Of debiased intervals: selected, all, or names of features, separated by commas. "
           "(default: selected)", "Trust", "config", ("fit",)),
    Option("compare", bool, "Say whether sharing helps: against one model per task, one for all rows, and the mean.",
           "Trust", "config", ("fit",), flag="--compare/--no-compare"),
    Option("outer_folds", int, "Folds whose rows judge the models compared, each chosen by --cv folds of the others. "
           "(default: 5)", "Trust", "config", CHOOSING),
    Option("level", float, "Confidence level of the intervals of effects and of a comparison. (default: 0.9)", "Trust",
           "config", CHOOSING),
    option_of("n_jobs", "Run", "config", EVERY, {"stability": "--jobs", "compare": "--jobs"}, key="threads"),
    option_of("device", "Run"),
    Option("cluster", str, "Address of a Dask scheduler (tcp://host:8786) whose workers hold the columns of data.zarr; "
           "without it the cores of this machine do.", "Run", "run"),
    Option("out", str, "Folder of the run.", "Run", "run", flag="--out,-o"),
    Option("resume", bool, "Go on with an interrupted run (or start it, if there is none).", "Run", "run",
           default=False),
    Option("overwrite", bool, "Start anew in a folder that holds a run.", "Run", "run", default=False),
    Option("config", str, "Take options from the config.json of another run; those given here come first.", "Run",
           "run"),
    Option("report", bool, "Write report.html.", "Run", "run", flag="--report/--no-report", default=True),
    Option("save_problem", str, "Write the table as the model sees it, and the model's parameters, to a .npz file: all "
           "that a bug report needs.", "Run", "run", MODELS_OF),
    Option("quiet", bool, "No progress, no summary.", "Run", "run", flag="--quiet,-q", default=False),
    Option("debug", bool, "Show where an error comes from.", "Run", "run", default=False),
]  # fmt: skip

BY_KEY = {option.key: option for option in OPTIONS}
# Parameters of which cross-validation can compare several values.
COMPARED = ("l1_ratio", "l2", "graph_strength")


def flag(key: str) -> str:
    """What is typed for a key of a configuration."""
    return BY_KEY[key].long


def refuse(keys: Iterable[str], why: str) -> None:
    """An error that names the first of the options, if there are any."""
    for key in keys:
        raise UsageError(f"{flag(key)}: {why}")


def run_options(command: str) -> list[Option]:
    """The options of a command that leaves a run folder."""
    return [TABLE, *(option for option in OPTIONS if command in option.commands)]


def given_of(asked: Asked, options: Iterable[Option], *roles: Role) -> dict[str, Any]:
    """What was given for the options of some roles, by their keys."""
    return {option.key: getattr(asked, option.key, option.default) for option in options if option.role in roles}


def gibibytes(max_memory: float | None) -> float | None:
    """``--max-memory`` in bytes."""
    if max_memory is None:
        return None
    if not max_memory > 0:
        raise UsageError(f"--max-memory: must be positive, got {max_memory:g}")
    return max_memory * 2.0**30


def read_numbers(text: str, flag: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        numbers = [float(part) for part in str(text).split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers:
        raise UsageError(f"{flag}: a number, or numbers separated by commas; got {text!r}")
    return numbers


def read_alphas(text: str | None) -> tuple[int | None, list[float] | None]:
    """``--alphas``: a number of values, or the values."""
    if text is None:
        return None, None
    if text.strip().removeprefix("-").isdecimal():
        return int(text), None
    return None, read_numbers(text, "--alphas")


def read_alpha(text: str, model: str) -> float | str:
    """``--alpha``: a number, or the word that one model knows."""
    if text == "universal" and model == "calibrated":
        return text
    found = read_numbers(text, "--alpha")
    if len(found) > 1:
        raise UsageError(f"--alpha: one number; got {text!r}. Several are for --alphas")
    return found[0]


def command_line(
    config: Mapping[str, Any], options: Iterable[Option], out: str, leave_out: Callable[[str], bool]
) -> str:
    """The command that computes a configuration, to be pasted into a shell, less the options to leave out."""
    tables = config["table"]
    words = ["tasksieve", config["command"], *([tables] if isinstance(tables, str) else tables)]
    for option in options:
        value = config.get(option.key)
        if option.role == "run" or option.argument or value is None or leave_out(option.key):
            continue
        if isinstance(value, bool):
            yes, no = option.flags[0].split("/")
            words.append(yes if value else no)
        else:
            for item in value if isinstance(value, list) else [value]:
                whole = isinstance(item, float) and float(f"{item:g}") == item
                words += [option.long, f"{item:g}" if whole else str(item)]
    return shlex.join([*words, "--out", out])
