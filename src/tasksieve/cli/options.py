"""All options of the commands that leave a run folder: what is typed, what it means, what it becomes.

Those of estimators' parameters are described in `tasksieve.parameters`.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

Panel = Literal["Data", "Genotypes", "Model", "Strength", "Trust", "Run"]
Role = Literal["config", "param", "run"]


@dataclass(frozen=True)
class Option:
    """One option.

    - `key`: Its place in a configuration.
    - `flag`: What is typed; a boolean has its opposite after a slash, and after " /" another word for that.
    - `panel`: Heading in the help.
    - `role`: Part of what is computed, parameter of the estimator, or a matter of this call only.
    - `commands`: names of the commands that have it
    - `also`: dict of command to another word for it there
    - `parameter`: Its name in Python, where that is not its key.
    """

    key: str
    flag: str
    kind: Any
    help: str
    panel: Panel
    role: Role = "config"
    commands: tuple[str, ...] = EVERY
    also: Mapping[str, str] = field(default_factory=dict)
    parameter: str | None = None

    @property
    def name(self) -> str:
        """What it is called in Python."""
        return self.parameter or self.key

    @property
    def long(self) -> str:
        return next(flag for flag in self.flag.split(",") if flag.startswith("--")).partition("/")[0]


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
    return Option(key or parameter, said.flag, said.typed, words, panel, role, commands, also or {}, parameter)


OPTIONS = [
    Option("target", "--target,-y", list[str], "Column to predict (name or glob). Several targets: one shared matrix, "
           "each target a task; empty cells are labels not observed.", "Data",
           also=dict.fromkeys(GENOTYPES, "--pheno-name")),
    Option("task", "--task,-t", str, "Column with the task of each row; of several files by default the file's name.",
           "Data"),
    Option("task_name", "--task-name", list[str], "Of several files: a pattern with {} for the part of the path that "
           "names the task ('run_{}.csv', '{}/data.csv'), or a name for each file.", "Data"),
    Option("columns", "--columns", Literal["same", "intersection", "union"], "Columns that not all files have: an "
           "error, left out, or no features of the tasks that lack them. (default: same)", "Data"),
    Option("features", "--features,-x", list[str], "Columns to learn from (names or globs); by default all others.",
           "Data"),
    Option("drop", "--drop", list[str], "Columns to leave out (names or globs).", "Data"),
    Option("keep", "--keep", list[str], "Columns to learn from although they look like an id (names or globs); named "
           "in --features they are kept, too. With genotypes: a file of the people to keep (FID IID).", "Data"),
    Option("id", "--id", str, "Column that names the rows: not learned from, carried into predictions.", "Data"),
    Option("date_parts", "--date-parts/--no-date-parts", bool, "Learn from the parts of dates (days since 1970, year, "
           "month, day, weekday, hour); otherwise dates are left out.", "Data"),
    Option("weights", "--weights", str, "Column with the weight of each row.", "Data"),
    Option("offset", "--offset", str, "Column that is added to every prediction, not learned (log exposure, of a "
           "rate); predict needs it, too.", "Data", "config", MODELS_OF),
    Option("row_groups", "--row-groups", str, "Column that related rows share (a family, a patient): they are held "
           "out together in cross-validation, and are in the same half.", "Data", "config",
           ("fit", "stability", "compare")),
    Option("categorical", "--categorical", list[str], "Columns of numbers that are names of things (names or globs). "
           "Columns of words always are.", "Data"),
    Option("reference", "--reference", list[str], "COLUMN=CATEGORY: this category of a column of words gets no "
           "indicator. (default: of two the more frequent, of more none)", "Data"),
    Option("missing", "--missing", Literal["error", "drop", "mean"], "Rows with missing values: an error, "
           "left out, or filled with the column's mean. (default: error)", "Data"),
    Option("max_categories", "--max-categories", int, "Most words in a column of words. (default: 100)", "Data"),
    Option("format", "--format", Literal["csv", "parquet", "arrow", "npz", "libsvm"],
           "Format of the table; by default from its name.", "Data"),
    Option("separator", "--separator", str, "Between the cells of a CSV file. (default: , (tab for .tsv))", "Data"),
    Option("chunk_rows", "--chunk-rows", int, "Read CSV, Parquet or Arrow in chunks of so many rows and keep only "
           "their sums (lasso, elastic-net, sparse-group; squared loss); 0: never. (default: where a table is tall, or "
           "larger than memory)", "Data", "config", MODELS_OF),
    Option("bfile", "--bfile", list[str], "Prefix of PLINK files (.bed, .bim, .fam) to learn from; @ stands for the "
           "chromosome. Several: cohorts, whose variants are matched.", "Genotypes", "config", GENOTYPES),
    Option("pfile", "--pfile", list[str], "The same of PLINK 2 files (.pgen, .pvar, .psam); needs pgenlib.",
           "Genotypes", "config", GENOTYPES),
    Option("vcf_zarr", "--vcf-zarr", list[str], "The same of VCF-Zarr stores (sgkit, bio2zarr), by their paths; needs "
           "zarr.", "Genotypes", "config", GENOTYPES),
    Option("pheno", "--pheno", str, "File of FID, IID and phenotypes (--pheno-name); -9 (-9.0) and NA are not "
           "observed.", "Genotypes", "config", GENOTYPES),
    Option("covar", "--covar", str, "File of FID, IID and covariates, which are not penalised.", "Genotypes", "config",
           GENOTYPES),
    Option("covar_name", "--covar-name", list[str], "Which of its columns; by default all that are nothing else.",
           "Genotypes", "config", GENOTYPES),
    Option("remove", "--remove", str, "File of people to leave out (FID IID).", "Genotypes", "config", GENOTYPES),
    Option("extract", "--extract", str, "File of variants (identifiers) to keep.", "Genotypes", "config", GENOTYPES),
    Option("exclude", "--exclude", str, "File of variants to leave out.", "Genotypes", "config", GENOTYPES),
    Option("mind", "--mind", float, "Leave out people with a larger part of missing calls.", "Genotypes", "config",
           GENOTYPES),
    Option("geno", "--geno", float, "Leave out variants with a larger part of missing calls.", "Genotypes", "config",
           GENOTYPES),
    Option("maf", "--maf", float, "Leave out variants whose rarer allele is less frequent.", "Genotypes", "config",
           GENOTYPES),
    Option("task_geno", "--task-geno", float, "The same as --geno, within every task.", "Genotypes", "config",
           GENOTYPES),
    Option("task_maf", "--task-maf", float, "The same as --maf, within every task.", "Genotypes", "config",
           GENOTYPES),
    Option("model", "--model,-m", Literal[tuple(MODELS)],
           "Which model; `tasksieve info` says what they are for. (default: lasso)", "Model"),
    option_of("l1_ratio", "Model"),
    option_of("l1", "Model"),
    option_of("group", "Model"),
    option_of("l2", "Model"),
    option_of("loss", "Model"),
    option_of("penalty", "Model"),
    option_of("ridge", "Model"),
    option_of("task_graph", "Model", "config"),
    option_of("feature_groups", "Model", "config"),
    option_of("inside", "Model"),
    option_of("delta", "Model"),
    option_of("q", "Model", also={"fit": "--q", "path": "--q", "compare": "--q"}),
    option_of("smoothing", "Model"),
    option_of("weights", "Model", key="owl_weights"),
    option_of("oscar_ratio", "Model"),
    option_of("fdr", "Model"),
    option_of("graph", "Model", "config"),
    option_of("graph_strength", "Model"),
    option_of("epsilon", "Model"),
    option_of("class_weight", "Model"),
    option_of("intercept_scaling", "Model"),
    option_of("fit_intercept", "Model"),
    option_of("positive", "Model"),
    option_of("standardize", "Model"),
    option_of("task_weights", "Model"),
    option_of("tol", "Model"),
    option_of("max_iter", "Model"),
    option_of("screening", "Model"),
    option_of("alpha", "Strength", commands=("fit",)),
    option_of("C", "Strength", commands=("fit",)),
    option_of("cv", "Strength", "config", CHOOSING),
    option_of("random_state", "Strength", "config", ("fit", "stability", "compare"), key="seed"),
    Option("shuffle", "--shuffle/--no-shuffle", bool, "Folds of shuffled rows, or of consecutive ones, of each task "
           "and class. (default: shuffle)", "Strength", "config", ("fit",)),
    option_of("alphas", "Strength", "config", ("fit", "path", "compare")),
    option_of("eps", "Strength", "config", ("fit", "path", "compare")),
    option_of("selection_rule", "Strength", "config", CHOOSING),
    option_of("early_stopping", "Strength", "config", CHOOSING),
    option_of("fold_tol", "Strength", "config", CHOOSING),
    Option("stability", "--stability/--no-stability", bool, "Say which features would be found again on halves of the "
           "rows, and whether anything matters at all.", "Trust", "config", ("fit",)),
    option_of("n_pairs", "Trust", "config", TRUST, key="pairs", table=STABILITY),
    option_of("pfer", "Trust", "config", TRUST, table=STABILITY),
    option_of("threshold", "Trust", "config", TRUST, table=STABILITY),
    option_of("q", "Trust", "config", TRUST, {"stability": "--q"}, key="per_half", table=STABILITY),
    option_of("assumption", "Trust", "config", TRUST, table=STABILITY),
    option_of("small_tasks", "Trust", "config", TRUST, table=STABILITY),
    Option("permutations", "--permutations", int, "Shuffles of the labels that test whether anything matters; 0: none. "
           "(default: 1000)", "Trust", "config", TRUST),
    Option("compare", "--compare/--no-compare", bool, "Say whether sharing helps: against one model per task, one for "
           "all rows, and the mean.", "Trust", "config", ("fit",)),
    Option("outer_folds", "--outer-folds", int, "Folds whose rows judge the models compared, each chosen by --cv folds "
           "of the others. (default: 5)", "Trust", "config", CHOOSING),
    Option("level", "--level", float, "Of the intervals of a comparison. (default: 0.9)", "Trust", "config", CHOOSING),
    option_of("n_jobs", "Run", "config", EVERY, {"stability": "--jobs", "compare": "--jobs"}, key="threads"),
    option_of("device", "Run"),
    Option("cluster", "--cluster", str, "Address of a Dask scheduler (tcp://host:8786) whose workers hold the columns "
           "of data.zarr; without it the cores of this machine do.", "Run", "run"),
    Option("out", "--out,-o", str, "Folder of the run.", "Run", "run"),
    Option("resume", "--resume", bool, "Go on with an interrupted run (or start it, if there is none).", "Run", "run"),
    Option("overwrite", "--overwrite", bool, "Start anew in a folder that holds a run.", "Run", "run"),
    Option("config", "--config", str, "Take options from the config.json of another run; those given here come first.",
           "Run", "run"),
    Option("report", "--report/--no-report", bool, "Write report.html. (default: report)", "Run", "run"),
    Option("save_problem", "--save-problem", str, "Write the table as the model sees it, and the model's parameters, "
           "to a .npz file: all that a bug report needs.", "Run", "run", MODELS_OF),
    Option("quiet", "--quiet,-q", bool, "No progress, no summary.", "Run", "run"),
    Option("debug", "--debug", bool, "Show where an error comes from.", "Run", "run"),
]  # fmt: skip

BY_KEY = {option.key: option for option in OPTIONS}
# Parameters of which cross-validation can compare several values.
COMPARED = ("l1_ratio", "l2")


def command(
    name: str, about: str, body: Callable[[str, list[str], dict[str, Any]], int]
) -> Callable[..., int]:
    """A function whose signature lists the options of a command; it hands what was given to ``body``."""

    def run(**given: Any) -> int:
        tables = given.pop("table", None) or []
        return body(
            name, tables, {key: value for key, value in given.items() if value is not None and value != []}
        )

    formats = (
        "The table: CSV, Parquet, Arrow, npz, libsvm, or a Zarr store. One file for each task: several files, a glob "
        "(quoted), or their folder."
    )
    table = Annotated[list[str] | None, typer.Argument(help=formats, show_default=False)]
    parameters = [inspect.Parameter("table", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=table)]
    for option in OPTIONS:
        if name not in option.commands:
            continue
        flags = [*option.flag.split(","), *([option.also[name]] if name in option.also else [])]
        info = typer.Option(*flags, help=option.help, rich_help_panel=option.panel, show_default=False)
        annotation = Annotated[option.kind | None, info]  # type: ignore[name-defined]
        parameters.append(
            inspect.Parameter(option.key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        )
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__ = name
    run.__doc__ = about
    return run


def split_given(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is to be computed, and how this call goes about it."""
    config = {key: value for key, value in given.items() if BY_KEY[key].role != "run"}
    call = {key: value for key, value in given.items() if BY_KEY[key].role == "run"}
    return config, call


def read_alphas(text: str | None) -> tuple[int | None, list[float] | None]:
    """``--alphas``: a number of values, or the values."""
    if text is None:
        return None, None
    try:
        if "," not in text and "." not in text and "e" not in text.lower():
            return int(text), None
        return None, [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UsageError(f"--alphas: a whole number, or numbers separated by commas; got {text!r}") from None


def read_numbers(text: str, flag: str) -> float | list[float]:
    try:
        numbers = [float(part) for part in str(text).split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers:
        raise UsageError(f"{flag}: a number, or numbers separated by commas; got {text!r}")
    return numbers[0] if len(numbers) == 1 else numbers


def read_alpha(text: str, model: str) -> float | str:
    """``--alpha``: a number, or the word that one model knows."""
    if text == "universal" and model == "calibrated":
        return text
    found = read_numbers(text, "--alpha")
    if isinstance(found, list):
        raise UsageError(f"--alpha: one number; got {text!r}. Several are for --alphas")
    return found


def command_line(config: dict[str, Any], out: str, leave_out: Callable[[str], bool]) -> str:
    """The command that computes a configuration, to be pasted into a shell, less the options to leave out."""
    tables = config["table"]
    words = ["tasksieve", config["command"], *([tables] if isinstance(tables, str) else tables)]
    for option in OPTIONS:
        value = config.get(option.key)
        if option.role == "run" or value is None or leave_out(option.key):
            continue
        if isinstance(value, bool):
            yes, no = option.flag.split(",")[0].split("/")
            words.append(yes if value else no)
        else:
            for item in value if isinstance(value, list) else [value]:
                words += [
                    option.long,
                    f"{item:g}" if isinstance(item, float) and float(f"{item:g}") == item else str(item),
                ]
    return shlex.join([*words, "--out", out])
