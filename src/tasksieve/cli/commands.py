"""The commands: what they are called, what they are for, their options, and the function that does the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .options import REQUIRED, SKIP_WORDS, Columns, Decimal, Format, Missing, Option, run_options

RUN = Option("run", str, "Folder of a finished run.", default=REQUIRED, argument=True)
OUT = Option("out", str, "Folder of the run.", role="run", flag="--out,-o", default=REQUIRED)
TASK = Option("task", str, "Column with the task of each row.", flag="--task,-t")
TASK_NAME = Option("task_name", list[str], "Where files are tasks: a pattern with {} for the part of the path that "
                   "names it, or a name for each file.")  # fmt: skip
WEIGHTS = Option("weights", str, "Column with the weight of each row.")
ID = Option("id", str, "Column that names the rows; by default that of the fit.")
MISSING = Option("missing", Missing, "Rows with missing values: an error, left out, or filled as the fit did, in the "
                 "words of its --missing; a model of patterns takes them as they are.", default="error")  # fmt: skip
UNSEEN = Option("unseen", Literal["error", "nearest"], "Of a model of patterns (--missing patterns), rows with other "
                "columns than any pattern: an error, or the pattern with the largest part of their columns.",
                default="error")  # fmt: skip
UNKNOWN = Option("unknown", Literal["error", "zero"], "Words that the fit has not seen.", default="error")
SEPARATOR = Option("separator", str, "Between the cells of a CSV file; by default found in the file.")
FORMAT = Option("format", Format, "Of the table; by default from its name.")
ENCODING = Option("encoding", str, "Of a file of text, Stata, SPSS or SAS; by default UTF-8, else guessed and said.")
DECIMAL = Option("decimal", Decimal, "Sign before decimals in text; by default found in the file.")
SHEET = Option("sheet", list[str], "Of a workbook: the sheet to read; several names, or a glob: each is a task.")
VALUE_LABELS = Option("value_labels", bool, "Of Stata and SPSS files; by default as for the fit.",
                      flag="--value-labels/--no-value-labels")  # fmt: skip
SKIP = Option("skip", list[str], SKIP_WORDS)
#: how tables are read
READING = (FORMAT, SEPARATOR, ENCODING, DECIMAL, SHEET, VALUE_LABELS, SKIP)
MAX_MEMORY = Option("max_memory", float, "GiB that the model may take; by default 0.25, or 100 times its file where "
                    "that is more.")  # fmt: skip
JSON = Option("json", bool, "As JSON.", default=False)
REPORT = Option("report", bool, "Write report.html.", role="run", flag="--report/--no-report", default=True)
OVERWRITE = Option("overwrite", bool, "Start anew.", role="run", default=False)
QUIET = Option("quiet", bool, "Only errors.", role="run", flag="--quiet,-q", default=False)
DEBUG = Option("debug", bool, "Show where an error comes from.", role="run", default=False)


ELSEWHERE = "where it has another name here (of several outcomes NAME=COLUMN)."
SURVIVAL = (
    Option("time", list[str], f"Of a survival model: column of times, {ELSEWHERE}"),
    Option("event", list[str], f"Column of events, {ELSEWHERE}"),
    Option("entry", list[str], f"Column of entry times, {ELSEWHERE}"),
    Option("strata", list[str], f"Column of strata, {ELSEWHERE}"),
)


def tables(help: str, default: Any = REQUIRED) -> Option:
    return Option("table", list[str], help, default=default, argument=True)


def of_genotypes(key: str, kind: Any, help: str, flag: str = "") -> Option:
    return Option(key, kind, help, "Genotypes", flag=flag)


#: files of genotypes, and which people of them
GENOTYPES = (
    of_genotypes("bfile", list[str], "Prefix of PLINK files (.bed, .bim, .fam); @ stands for the chromosome. Several: "
                 "cohorts."),
    of_genotypes("pfile", list[str], "The same of PLINK 2 files (.pgen, .pvar, .psam); needs pgenlib."),
    of_genotypes("vcf_zarr", list[str], "The same of VCF-Zarr stores (sgkit, bio2zarr), by their paths; needs zarr."),
    of_genotypes("bgen", list[str], "The same of BGEN files (1.2, probabilities of 8 or 16 bits), which hold dosages."),
    of_genotypes("dosages", int, "Dosages in place of hard calls (not of --bfile), as numbers of 8 bits or of 16.",
                 flag="--dosage"),
    of_genotypes("keep", str, "File of the people to keep (FID IID)."),
    of_genotypes("remove", str, "File of people to leave out (FID IID)."),
)  # fmt: skip
#: in place of a table, for a model that was fitted to genotypes
NEW_PEOPLE = (
    *GENOTYPES,
    of_genotypes("pheno", str, "File of FID, IID and the columns that the model needs beside covariates: task, offset, "
                 "labels."),
    of_genotypes("covar", str, "File of FID, IID and the covariates of the fit."),
    of_genotypes("missing_variants", str, "Variants of the model that the files lack: error (default), mean (those of "
                 "the fit stand for them), or the part that may be missing and is filled so (0.05)."),
)  # fmt: skip


def parameter(key: str, kind: Any, help: str | None, default: Any = None, **more: Any) -> Option:
    """Of a model: one that `grade` or `stream` makes itself."""
    return Option(key, kind, help, role="param", default=default, **more)


INTERCEPT = parameter("fit_intercept", bool, None, True, flag="--intercept/--no-intercept")
PENALTY_STRENGTH = "Strength of the penalty."

PREDICT = (
    RUN,
    tables("The rows to predict; several files, a glob, a folder.", None),
    Option("out", str, "A .csv or .parquet file; by default standard output.", flag="--out,-o"),
    Option("alpha", float, "Predict with this value of the path."),
    Option("task", str, "Task column, where it has another name here."),
    TASK_NAME,
    ID,
    Option("all_tasks", bool, "Every task's prediction for every row.", default=False),
    Option("probabilities", bool, "Of the classes, too.", default=False),
    Option("interval", float, "Bounds of every prediction that cover this share of new rows (0.9); of classes, which "
           "are possible. The run needs --keep-folds."),
    Option("borrow", bool, "Of --interval: tasks of too few rows use the errors of all tasks.", default=False),
    Option("times", str, "Of a survival model: the probability to be without an event at these times, too (1,3,5)."),
    Option("strata", str, "Column of strata, where it has another name here; --times needs it."),
    *(MISSING, UNSEEN, UNKNOWN, *READING, *NEW_PEOPLE, MAX_MEMORY, QUIET, DEBUG),
)
EVALUATE = (
    RUN,
    tables("Rows that the model has not seen, with labels; several files, a glob, a folder.", None),
    Option("out", str, "Write the scores of each task to a .csv or .parquet file.", flag="--out,-o"),
    Option("predictions", str, "Write every row's id, task, label and prediction to a .csv or .parquet file."),
    Option("alpha", float, "Evaluate this value of the path."),
    Option("target", list[str], "Target column, where it has another name here.", flag="--target,-y",
           also={"evaluate": "--pheno-name"}),
    *SURVIVAL,
    Option("task", str, "Task column, where it has another name here.", flag="--task,-t"),
    TASK_NAME,
    WEIGHTS,
    Option("row_groups", str, "Column that related rows share: they count as one in the uncertainty. none: rows are "
           "not related, whatever their ids."),
    *(ID, MISSING, UNSEEN, UNKNOWN),
    Option("level", float, "Of the intervals.", default=0.9),
    *(*READING, *NEW_PEOPLE, MAX_MEMORY, QUIET, DEBUG),
)
TRANSFER = (
    RUN,
    tables("The rows of the new task, with labels; several files, a glob, a folder."),
    OUT,
    Option("name", str, "Of the new task.", default=REQUIRED),
    Option("how", Literal["auto", "alone", "weights", "offset", "distance"], "How old coefficients are used: auto "
           "tries all, and leaves them where held-out rows do not confirm that they help.", default="auto"),
    Option("cv", int, "Folds of the new rows.", default=5),
    Option("seed", int, "Of the folds.", default=0),
    Option("alpha", float, "Start from this value of the path."),
    Option("target", list[str], "Target column, where it has another name here.", flag="--target,-y"),
    WEIGHTS,
    Option("row_groups", str, "Column that related rows share: they are held out together. none: rows are not related. "
           "(default: an id that comes again)"),
    *(ID, MISSING, UNKNOWN, *READING, MAX_MEMORY, REPORT, OVERWRITE, QUIET, DEBUG),
)  # fmt: skip
EXPORT = (
    RUN,
    Option("out", str, "The file to write; its ending says what: .json, .py, .sql, .onnx; of a model of genotypes "
           ".score (plink2 --score, with frequencies) or .pgs.txt (PGS Catalog, a file for each task).",
           flag="--out,-o", default=REQUIRED),
    Option("alpha", float, "Export this value of the path."),
    Option("table", str, "Of SQL: the table that is to be read. (default: rows)"),
    Option("genome_build", str, "Of a .pgs.txt file: GRCh37, GRCh38."),
    *(MAX_MEMORY, QUIET, DEBUG),
)  # fmt: skip
INSPECT = (
    Option("run", str, "Folder of a run, a certificate.npz, a saved online model, or a table: how it is read. With "
           "genotypes: a run whose variants are looked for.", argument=True),
    *(FORMAT, SEPARATOR, ENCODING, DECIMAL, SHEET, VALUE_LABELS, *GENOTYPES, JSON, MAX_MEMORY, DEBUG),
)  # fmt: skip
DIFF = (
    Option("runs", list[str], "Folders of two or more finished runs.", default=REQUIRED, argument=True),
    Option("html", str, "Write a page with tables and pictures, too."),
    *(JSON, MAX_MEMORY, QUIET, DEBUG),
)
VERIFY = (
    Option("run", str, "Folder of a run, or a certificate.npz; a certificate-part.npz or a statement.npz of sites.",
           default=REQUIRED, argument=True),
    Option("data", str, "The file of data (of genotypes: the prefix of .bed files); by default that of the run."),
    Option("plan", str, "Of a statement.npz: the plan whose sites must have signed it."),
    Option("value", int, "A value of the path, counted from 0."),
    Option("every", bool, "All values of the path; by default the one chosen.", flag="--all", default=False),
    Option("exact", bool, "Rational arithmetic: trust no floating point. Slow.", default=False),
    *(JSON, QUIET, DEBUG),
)
GRADE = (
    Option("coefficients", str, "Table with columns feature, coefficient (and task); or feature and one per task.",
           default=REQUIRED, argument=True),
    tables("The data; several files, a glob, a folder: one for each task."),
    Option("target", list[str], "Column that is predicted.", flag="--target,-y"),
    Option("time", list[str], "With --loss cox, in place of --target: column of times (of several outcomes "
           "NAME=COLUMN, here and below)."),
    Option("event", list[str], "Whether they are those of events: 1, else 0; or COLUMN==VALUE."),
    Option("entry", list[str], "Column of entry times."),
    Option("strata", list[str], "Column of strata."),
    parameter("alpha", float, PENALTY_STRENGTH),
    Option("problem", str, "In place of --alpha, --loss, --penalty: the program whose problem it is (glmnet, sklearn, "
           "scikit-survival, skglm, celer, ...)."),
    Option("parameters", list[str], "Its own words of the problem: NAME=VALUE (lambda=0.1, of a path lambda=0.3,0.1).",
           flag="--parameter"),
    *(TASK, TASK_NAME),
    Option("columns", Columns, "Columns that not all files have: an error, left out, "
           "or no features of the tasks that lack them. (default: same)"),
    parameter("loss", str, "Loss: {names}, cox.", "squared"),
    Option("ties", Literal["efron", "breslow"], "Of --loss cox: how events at the same time are treated.",
           default="efron"),
    parameter("penalty", str, "Penalty: {names}.", "l21"),
    parameter("ridge", float, "Strength of a ridge beside it.", 0.0),
    Option("features", list[str], "Columns of features; by default all others.", flag="--features,-x"),
    Option("drop", list[str], "Columns to leave out."),
    WEIGHTS,
    Option("offset", str, "Column with what is known of each prediction."),
    MISSING,
    Option("intercepts", str, "Table with columns task, intercept; else features called (Intercept).", role="run"),
    INTERCEPT,
    parameter("standardize", bool, "The penalty is of coefficients per standard deviation.", False),
    parameter("positive", bool, "Coefficients below 0 are not allowed.", False),
    parameter("solve", bool, "Solve the problem, too: for a sharper proof, and to compare.", True,
              flag="--solve/--no-solve"),
    Option("certificate", str, "Write the proof to a .npz file.", role="run"),
    *(SEPARATOR, ENCODING, DECIMAL, SHEET, SKIP, JSON, QUIET, DEBUG),
)  # fmt: skip
#: options of outcomes that no online model learns
NOT_STREAMED = ("time", "event", "entry", "strata", "outcome", "categories")
STREAM = (
    Option("table", str, "CSV, Parquet or libsvm file; - for CSV from standard input.", default=REQUIRED,
           argument=True),
    OUT,
    Option("target", str, "Column to predict.", flag="--target,-y"),
    TASK,
    Option("features", list[str], "Columns to learn from; by default all others.", flag="--features,-x"),
    Option("keep", list[str], "Columns to learn from although they look like an id in the first rows (names or "
           "globs)."),
    WEIGHTS,
    Option("missing", Literal["error", "drop"], "Rows with missing values.", default="error"),
    Option("model", Literal["regressor", "classifier"], None, flag="--model,-m", default="regressor"),
    parameter("alpha", float, PENALTY_STRENGTH, 1.0),
    parameter("penalty", Literal["l21", "l11", "l1+l21"], "Rows, entries, or both.", "l21"),
    parameter("l1", float, "With l1+l21: cost of a single coefficient."),
    parameter("loss", Literal["squared", "logistic", "hinge"], "By default squared; classifier: logistic."),
    parameter("gamma", str, "Damping of the steps: auto (default), or a number (larger: smaller steps)."),
    parameter("l2", float, "Ridge penalty.", 0.0),
    parameter("scheme", Literal["per-task", "importance", "rounds"], "How tasks that come at different rates are "
              "counted.", "per-task", parameter="missing"),
    INTERCEPT,
    Option("format", Literal["csv", "parquet", "libsvm"], "By default from the file's name."),
    *(SEPARATOR, ENCODING, DECIMAL),
    Option("n_features", int, "Of a libsvm file."),
    Option("chunk_rows", int, "Rows in memory at a time.", default=10_000),
    Option("checkpoint_every", int, "Rows between checkpoints.", role="run", default=200_000),
    Option("max_rows", int, "Stop after so many rows.", role="run"),
    Option("resume", bool, "Go on from the last checkpoint.", role="run", default=False),
    *(Option(key, list[str], None, role="run", hidden=True) for key in NOT_STREAMED),
    *(REPORT, OVERWRITE, QUIET, DEBUG),
)  # fmt: skip
DATASETS = (
    Option("name", str, "Which one; by default all are listed.", argument=True),
    Option("out", str, "A .csv, .parquet or .npz file to write.", flag="--out,-o"),
    Option("settings", list[str], "Parameter of the data set: name=value.", flag="--set"),
    DEBUG,
)
DEMO = (
    Option("out", str, "Folder for the table and the run.", flag="--out,-o", default="tasksieve-demo"),
    *(OVERWRITE, REPORT, QUIET, DEBUG),
)


MCP = (
    Option("folder", str, "The folder that the tools may read and write; nothing outside of it.", default=REQUIRED),
    Option("seconds", float, "That a call may take.", default=600.0),
    Option("max_memory", float, "GiB that a call may take.", default=4.0),
    Option("max_file", float, "GiB of a file that is read or written.", default=1.0),
    Option("max_cells", int, "Rows x columns of a table.", default=100_000_000),
    Option("threads", int, "Threads of a call; by default those of this machine."),
    DEBUG,
)
SITE = Option("site", str, "Folder of the site.", default=REQUIRED, argument=True)
EXCHANGE = Option("exchange", str, "Folder in which questions arrive and answers are left.", default=REQUIRED,
                  argument=True)  # fmt: skip
PLAN = Option("plan", str, "The plan, a .toml file.", default=REQUIRED, argument=True)
SITE_INIT = (
    SITE,
    Option("name", str, "Name of the site in the plan: lower-case letters, digits, '-'.", default=REQUIRED),
    Option("table", str, "File with the rows of the site.", default=REQUIRED),
    Option("target", str, "Column that is predicted.", flag="--target,-y"),
    Option("time", str, "Of survival, in place of --target: column of times."),
    Option("event", str, "Whether they are those of events: 1, else 0; or COLUMN==VALUE."),
    Option("entry", str, "Column of entry times."),
    Option("strata", str, "Column of strata."),
    Option("categories", str, "Ordered classes, lowest first: none,mild,severe."),
    *(TASK, WEIGHTS, Option("offset", str, "Column with what is known of each prediction.")),
    Option("missing", Literal["error", "drop"], "Rows with missing values: an error, or left out.", default="error"),
    *(FORMAT, SEPARATOR, ENCODING, DECIMAL, Option("sheet", str, "Of a workbook: the sheet to read.")),
    Option("min_sites", int, "Rule: fewest sites of a plan.", default=3),
    Option("min_rows", int, "Rule: fewest rows of a task, in every fold and half.", default=10),
    Option("min_held_out", int, "Rule: fewest rows of a task that a fold leaves out.", default=3),
    Option("max_questions", int, "Rule: most questions that are answered.", default=5000),
    Option("open", bool, "Rule: numbers may leave without masks, so that the coordinator sees those of this site.",
           default=False),
    *(QUIET, DEBUG),
)  # fmt: skip
SITE_ANSWER = (
    *(SITE, EXCHANGE),
    Option("watch", bool, "Go on answering what arrives, until Ctrl-C.", default=False),
    *(QUIET, DEBUG),
)
CERTIFICATES = (
    Option("certificate", str, "PEM file of the certificate of this side."),
    Option("private_key", str, "PEM file of its private key."),
    Option("trusted", list[str], "PEM files of the certificates of the other side, or of their authority."),
)
SITE_SERVE = (
    SITE,
    *CERTIFICATES,
    Option("coordinator", str, "Name in the certificate of the coordinator.", default="coordinator"),
    Option("host", str, "Address to listen at; by default all of this computer.", default=""),
    Option("port", int, "Port to listen at.", default=8443),
    Option("new_certificate", list[str], "Write a certificate, signed by itself, and its key into the folder of the "
           "site, for these names or addresses of this computer; and end."),
    *(QUIET, DEBUG),
)  # fmt: skip
SITE_MODEL = (
    SITE,
    Option("result", str, "The result.npz of the coordinator.", default=REQUIRED, argument=True),
    OUT,
    Option("value", int, "A value of the path, counted from 0; by default the one chosen."),
    *(REPORT, OVERWRITE, QUIET, DEBUG),
)
SITE_PART = (
    SITE,
    Option("out", str, "File to write.", flag="--out,-o", default="certificate-part.npz"),
    Option("rows", str, "Also write the rows of the site, as the fit has read them, to this .npz file."),
    *(OVERWRITE, QUIET, DEBUG),
)
FEDERATE = (
    Option("plan", str, "The plan, a .toml file.", argument=True),
    Option("out", str, "Folder for exchanges and results; what is there is gone on with.", flag="--out,-o"),
    Option("keys", str, "File with the keys of the coordinator.", default="coordinator.json"),
    Option("new_keys", bool, "Make that file, print the line for the plan, and end.", default=False),
    Option("new_certificate", bool, "For HTTPS: write a certificate, signed by itself, and its key beside that file, "
           "and end.", default=False),
    Option("check", bool, "Only check the plan, and say what it would take.", default=False),
    Option("folders", str, "Exchange files: a folder in which each site has one of its name."),
    Option("addresses", list[str], "Exchange over HTTPS: NAME=https://host:port, of each site."),
    *CERTIFICATES,
    Option("patience", float, "Seconds to wait for sites; 0: take what is there, and end.", default=600.0),
    *(REPORT, QUIET, DEBUG),
)  # fmt: skip


@dataclass(frozen=True)
class Command:
    """One command."""

    name: str
    about: str  # its help
    body: str  # module:function of this package that does the work, imported when it is wanted
    options: Sequence[Option]


FIT = """Fit a model to a TABLE and leave everything about it in a run folder. Of several files each is a task.

Without --alpha, the strength is chosen by cross-validation.

Exit codes: 0 done, 1 wrong input, 2 wrong options, 3 not converged (the answer is written, its gap is true), \
4 cannot write, 130 interrupted (--resume continues)."""
PATH = "Solve a whole sequence of penalty strengths, without choosing one; else as fit."
STABILITY = """Say which features of a TABLE would be found again, and whether anything matters at all.

Labels are shuffled to test whether anything matters; then the path is followed on random halves of the rows, and \
features that are used early on most of them are stable. Any two of --threshold, --pfer and --q give the third."""
COMPARE = """Say whether sharing between the tasks of a TABLE helps, task by task.

The shared model is compared with one model per task, one model for all rows and the mean, by nested \
cross-validation: no row judges a model that it helped to choose."""
CHECK = """Say whether the data prove what a run claims.

The same check without tasksieve: verify.py, one file that needs nothing but NumPy.

Exit codes: 0 proved, 1 not proved, 2 could not be read."""
EXPORTING = """Write the model of a run into a FILE that predicts without tasksieve.

The file holds the coefficients that some task uses, and how columns of the table become features."""
SERVING = """Serve inspect_table, fit, stability, compare, grade, verify and explain_report to an assistant, as tools \
of the Model Context Protocol on standard input and output, within one folder."""
LEARN = """Learn one row at a time from a TABLE of any length, in bounded memory.

With --resume, an interrupted stream continues from its last checkpoint (standard input must be given from its
beginning) and ends with the same bytes."""

FEDERATED = """Fit the model of all sites of a PLAN, whose rows stay where they are, and leave the path, its gaps, a \
report and result.npz in a folder.

Exchanges are kept there: called again, it goes on where it was. Exit codes: 0 done, 1 wrong input or a site refuses, \
2 wrong options, 3 not converged (the answer is written, its gap is true), 5 sites have not answered yet."""

#: commands of two words: the first, and what it is for
GROUPS = {"site": "A site of a federated fit: its rows stay here, and it says what leaves."}

COMMANDS = (
    Command("fit", FIT, "fit:run_fit", run_options("fit")),
    Command("path", PATH, "fit:run_fit", run_options("path")),
    Command("stability", STABILITY, "findings:run_findings", run_options("stability")),
    Command("compare", COMPARE, "findings:run_findings", run_options("compare")),
    Command("predict", "Predict the rows of a TABLE with the model of a run: one line for each row, in the same order.",
            "predict:run_predict", PREDICT),
    Command("evaluate", "Say how well the model of a run predicts the rows of a TABLE that it has not seen, task by "
            "task.", "evaluate:run_evaluate", EVALUATE),
    Command("transfer", "Fit a new task to the rows of a TABLE, with what the tasks of a run have in common where that "
            "helps, into a run folder of its own. The rows of the old tasks are not needed.",
            "transfer:run_transfer", TRANSFER),
    Command("export", EXPORTING, "export:run_export", EXPORT),
    Command("report", "Write report.html of a run once more.", "report:run_report", (RUN, MAX_MEMORY, QUIET, DEBUG)),
    Command("inspect", "Say what is in a run: model, objective, data and their digests, features, gap, files, "
            "versions; or how a table is read: encoding, separator, sheets, columns; or what genotypes have.",
            "inspect:run_inspect", INSPECT),
    Command("diff", "Say how runs differ: settings, features, coefficients, scores, gaps.", "diff:run_diff", DIFF),
    Command("verify", CHECK, "verify:run_verify", VERIFY),
    Command("grade", "Say how far the COEFFICIENTS of any program are from the optimum, and which of its zeros are "
            "provably right.", "grade:run_grade", GRADE),
    Command("stream", LEARN, "stream:run_stream", STREAM),
    Command("federate", FEDERATED, "federate:run_federate", FEDERATE),
    Command("site init", "Make the folder of a site: keys, where its rows are, its rules. Prints the line for the "
            "plan.", "site:run_init", SITE_INIT),
    Command("site show", "Say what a site is, what it has agreed to, its rules and what it has answered.",
            "site:run_show", (SITE, DEBUG)),
    Command("site agree", "Show a PLAN in words, check it against rows and rules, and agree to it.",
            "site:run_agree", (SITE, PLAN, Option("check", bool, "Only show and check it.", default=False), DEBUG)),
    Command("site review", "Say what waiting questions ask, what would leave, and which rule refuses them; nothing "
            "leaves.", "site:run_review", (SITE, EXCHANGE, DEBUG)),
    Command("site answer", "Answer the questions that wait in a folder.", "site:run_answer", SITE_ANSWER),
    Command("site serve", "Answer the coordinator over HTTPS, both sides with certificates, until Ctrl-C.",
            "site:run_serve", SITE_SERVE),
    Command("site model", "Make the model of this site's tasks from the RESULT: a run folder with report, for predict, "
            "evaluate and export.", "site_model:run_model", SITE_MODEL),
    Command("site part", "Write what proves this site's bounds in the statement of a fit, for verify with its rows. It "
            "stays at the site.", "site:run_part", SITE_PART),
    Command("datasets", "List the data sets that come with the library, or write one as a table.",
            "extras:run_datasets", DATASETS),
    Command("demo", "Fit real handwritten digits, each against the rest, and write the report.", "extras:run_demo",
            DEMO),
    Command("mcp", SERVING, "mcp.command:run_mcp", MCP),
    Command("info", "Versions, kernels, threads, extras.", "extras:run_info", (DEBUG,)),
)  # fmt: skip
