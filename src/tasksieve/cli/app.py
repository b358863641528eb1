"""The commands, and what they are called."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Annotated, Any, Literal

import typer

from .errors import guarded
from .exit_codes import UsageError
from .members import MemberCommand
from .options import command

app = typer.Typer(
    name="tasksieve",
    help="Sparse multi-task learning whose every answer carries a proof: from a table on disk to a report.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
Run = Annotated[str, typer.Argument(help="Folder of a finished run.", show_default=False)]
Separator = Annotated[str | None, typer.Option("--separator", help="Between the cells of a CSV file.")]
Id = Annotated[str | None, typer.Option("--id", help="Column that names the rows; by default that of the fit.")]
Task = Annotated[str | None, typer.Option("--task", "-t", help="Column with the task of each row.")]
Weights = Annotated[str | None, typer.Option(help="Column with the weight of each row.")]
Intercept = Annotated[bool, typer.Option("--intercept/--no-intercept")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Start anew.")]
Report = Annotated[bool, typer.Option("--report/--no-report", help="Write report.html.")]
OnlineModel = Literal["regressor", "classifier"]
Penalty = Literal["l21", "l11", "l1+l21"]
Scheme = Literal["per-task", "importance", "rounds"]
StreamLoss = Literal["squared", "logistic", "hinge"]
StreamFormat = Literal["csv", "parquet", "libsvm"]
StreamMissing = Literal["error", "drop"]
Format = Annotated[
    Literal["csv", "parquet", "arrow", "npz", "libsvm"] | None,
    typer.Option(help="Of the table; by default from its name."),
]
Missing = Annotated[Literal["error", "drop", "mean"], typer.Option(help="Rows with missing values.")]
Unknown = Annotated[Literal["error", "zero"], typer.Option(help="Words that the fit has not seen.")]
Rule = Literal["same", "intersection", "union"]
TaskName = Annotated[
    list[str] | None,
    typer.Option(help="Where files are tasks: a pattern with {} for the part of the path that names it, or a name for "
                 "each file."),
]  # fmt: skip


MaxMemory = Annotated[
    float | None,
    typer.Option(help="GiB that the model may take; by default 0.25, or 100 times its file where that is more."),
]


def with_options(function: Callable[..., int], given: Mapping[str, Any]) -> int:
    """Call a function with those options of a command, its ``locals()``, that the function names."""
    return function(**{name: given[name] for name in signature(function).parameters})


def fit_or_path(name: str, tables: list[str], given: dict[str, Any]) -> int:
    from .fit import run_fit

    return run_fit(name, tables, given)


FIT = (
    "Fit a model to a TABLE and leave everything about it in a run folder. Of several files each is a task.\n\n"
    "Without --alpha, the strength is chosen by cross-validation.\n\n"
    "Exit codes: 0 done, 1 wrong input, 2 wrong options, 3 not converged (the answer is written, its gap is true), "
    "4 cannot write, 130 interrupted (--resume continues)."
)
app.command("fit", cls=MemberCommand)(guarded(command("fit", FIT, fit_or_path)))
app.command("path", cls=MemberCommand)(
    guarded(
        command(
            "path",
            "Solve a whole sequence of penalty strengths, without choosing one; else as fit.",
            fit_or_path,
        )
    )
)


def findings(name: str, tables: list[str], given: dict[str, Any]) -> int:
    from .findings import run_findings

    return run_findings(name, tables, given)


STABILITY = (
    "Say which features of a TABLE would be found again, and whether anything matters at all.\n\n"
    "Labels are shuffled to test whether anything matters; then the path is followed on random halves of the rows, and "
    "features that are used early on most of them are stable. Any two of --threshold, --pfer and --q give the third."
)
COMPARE = (
    "Say whether sharing between the tasks of a TABLE helps, task by task.\n\n"
    "The shared model is compared with one model per task, one model for all rows and the mean, by nested "
    "cross-validation: no row judges a model that it helped to choose."
)
app.command("stability", cls=MemberCommand)(guarded(command("stability", STABILITY, findings)))
app.command("compare", cls=MemberCommand)(guarded(command("compare", COMPARE, findings)))


@app.command()
@guarded
def predict(
    run: Run,
    table: Annotated[list[str], typer.Argument(help="The rows to predict; several files, a glob, a folder.",
                                               show_default=False)],
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="A .csv or .parquet file; by default standard output.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Predict with this value of the path.")] = None,
    task: Annotated[str | None, typer.Option(help="Task column, where it has another name here.")] = None,
    task_name: TaskName = None,
    id: Id = None,
    all_tasks: Annotated[
        bool, typer.Option("--all-tasks", help="Every task's prediction for every row.")
    ] = False,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="Of the classes, too.")] = False,
    missing: Missing = "error",
    unknown: Unknown = "error",
    format: Format = None,
    separator: Separator = None,
    max_memory: MaxMemory = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Predict the rows of a TABLE with the model of a run: one line for each row, in the same order."""
    from .predict import run_predict

    return with_options(run_predict, locals())


@app.command()
@guarded
def evaluate(
    run: Run,
    table: Annotated[list[str], typer.Argument(help="Rows that the model has not seen, with labels; several files, a "
                                               "glob, a folder.", show_default=False)],
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Write the scores of each task to a .csv or .parquet file.")
    ] = None,
    predictions: Annotated[
        str | None, typer.Option(help="Write every row's id, task, label and prediction to a .csv or .parquet file.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Evaluate this value of the path.")] = None,
    target: Annotated[
        list[str] | None, typer.Option("--target", "-y", help="Target column, where it has another name here.")
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", "-t", help="Task column, where it has another name here.")
    ] = None,
    task_name: TaskName = None,
    weights: Weights = None,
    row_groups: Annotated[
        str | None, typer.Option(help="Column that related rows share: they count as one in the uncertainty.")
    ] = None,
    id: Id = None,
    missing: Missing = "error",
    unknown: Unknown = "error",
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.9,
    format: Format = None,
    separator: Separator = None,
    max_memory: MaxMemory = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Say how well the model of a run predicts the rows of a TABLE that it has not seen, task by task."""
    from .evaluate import run_evaluate

    return with_options(run_evaluate, locals())


@app.command()
@guarded
def report(run: Run, max_memory: MaxMemory = None, quiet: Quiet = False, debug: Debug = False) -> int:
    """Write report.html of a run once more."""
    from .report import run_report

    return run_report(run, max_memory, quiet)


@app.command()
@guarded
def inspect(
    run: Annotated[
        str, typer.Argument(help="Folder of a run, a certificate.npz, or a saved online model.", show_default=False)
    ],
    json: Json = False,
    max_memory: MaxMemory = None,
    debug: Debug = False,
) -> int:
    """Say what is in a run: model, objective, data and their digests, features, gap, files, versions."""
    from .inspect import run_inspect

    return run_inspect(run, json, max_memory)


@app.command()
@guarded
def diff(
    runs: Annotated[list[str], typer.Argument(help="Folders of two or more finished runs.", show_default=False)],
    html: Annotated[str | None, typer.Option("--html", help="Write a page with tables and pictures, too.")] = None,
    json: Json = False,
    max_memory: MaxMemory = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Say how runs differ: settings, features, coefficients, scores, gaps."""
    from .diff import run_diff

    return run_diff(runs, html, json, max_memory, quiet)


@app.command()
@guarded
def verify(
    run: Annotated[str, typer.Argument(help="Folder of a run, or a certificate.npz.", show_default=False)],
    data: Annotated[
        str | None, typer.Option("--data", help="The file of data; by default the table of the run.")
    ] = None,
    value: Annotated[int | None, typer.Option("--value", help="A value of the path, counted from 0.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All values of the path; by default the one chosen.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Rational arithmetic: trust no floating point. Slow.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Say whether the data prove what a run claims.

    The same check without tasksieve: verify.py, one file that needs nothing but NumPy.

    Exit codes: 0 proved, 1 not proved, 2 could not be read.
    """
    if value is not None and every:
        raise UsageError("--value, --all: one or the other")
    from .verify import run_verify

    return run_verify(run, data, value, every, exact, quiet)


@app.command(cls=MemberCommand)
@guarded
def grade(
    coefficients: Annotated[
        str,
        typer.Argument(help="Table with columns feature, coefficient (and task); or feature and one per task."),
    ],
    table: Annotated[list[str], typer.Argument(help="The data; several files, a glob, a folder: one for each task.",
                                               show_default=False)],
    target: Annotated[list[str], typer.Option("--target", "-y", help="Column that is predicted.")],
    alpha: Annotated[float, typer.Option(help="Strength of the penalty.")],
    task: Task = None,
    task_name: TaskName = None,
    columns: Annotated[Rule | None, typer.Option(help="Columns that not all files have: an error, left out, or no "
                                                 "features of the tasks that lack them. (default: same)")] = None,
    loss: Annotated[str, typer.Option(help="Loss: {names}.")] = "squared",
    penalty: Annotated[str, typer.Option(help="Penalty: {names}.")] = "l21",
    ridge: Annotated[float, typer.Option(help="Strength of a ridge beside it.")] = 0.0,
    features: Annotated[
        list[str] | None, typer.Option("--features", "-x", help="Columns of features; by default all others.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option("--drop", help="Columns to leave out.")] = None,
    weights: Weights = None,
    offset: Annotated[str | None, typer.Option(help="Column with what is known of each prediction.")] = None,
    missing: Missing = "error",
    intercepts: Annotated[
        str | None, typer.Option(help="Table with columns task, intercept; else features called (Intercept).")
    ] = None,
    intercept: Intercept = True,
    standardize: Annotated[
        bool, typer.Option("--standardize", help="The penalty is of coefficients per standard deviation.")
    ] = False,
    positive: Annotated[bool, typer.Option("--positive", help="Coefficients below 0 are not allowed.")] = False,
    solve: Annotated[
        bool, typer.Option("--solve/--no-solve", help="Solve the problem, too: for a sharper proof, and to compare.")
    ] = True,
    certificate: Annotated[str | None, typer.Option(help="Write the proof to a .npz file.")] = None,
    separator: Separator = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Say how far the COEFFICIENTS of any program are from the optimum, and which of its zeros are provably right."""
    from .grade import run_grade

    words = {
        "target": target, "task": task, "weights": weights, "offset": offset, "features": features or (),
        "drop": drop or (), "missing": missing, "task_name": task_name, "columns": columns, "separator": separator,
    }  # fmt: skip
    asked = {
        "loss": loss, "penalty": penalty, "alpha": alpha, "ridge": ridge, "fit_intercept": intercept,
        "standardize": standardize, "positive": positive, "solve": solve,
    }  # fmt: skip
    return run_grade(coefficients, table, words, asked, intercepts, certificate, quiet)


@app.command()
@guarded
def stream(
    table: Annotated[str, typer.Argument(help="CSV, Parquet or libsvm file; - for CSV from standard input.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder of the run.")],
    target: Annotated[str | None, typer.Option("--target", "-y", help="Column to predict.")] = None,
    task: Task = None,
    features: Annotated[
        list[str] | None,
        typer.Option("--features", "-x", help="Columns to learn from; by default all others."),
    ] = None,
    weights: Weights = None,
    missing: Annotated[StreamMissing, typer.Option(help="Rows with missing values.")] = "error",
    model: Annotated[OnlineModel, typer.Option("--model", "-m")] = "regressor",
    alpha: Annotated[float, typer.Option(help="Strength of the penalty.")] = 1.0,
    penalty: Annotated[Penalty, typer.Option(help="Rows, entries, or both.")] = "l21",
    l1: Annotated[float | None, typer.Option(help="With l1+l21: cost of a single coefficient.")] = None,
    loss: Annotated[StreamLoss | None, typer.Option(help="By default squared; classifier: logistic.")] = None,
    gamma: Annotated[
        str | None,
        typer.Option(help="Damping of the steps: auto (default), or a number (larger: smaller steps)."),
    ] = None,
    l2: Annotated[float, typer.Option(help="Ridge penalty.")] = 0.0,
    scheme: Annotated[
        Scheme, typer.Option(help="How tasks that come at different rates are counted.")
    ] = "per-task",
    intercept: Intercept = True,
    format: Annotated[StreamFormat | None, typer.Option(help="By default from the file's name.")] = None,
    separator: Separator = None,
    n_features: Annotated[int | None, typer.Option(help="Of a libsvm file.")] = None,
    chunk_rows: Annotated[int, typer.Option(help="Rows in memory at a time.")] = 10_000,
    checkpoint_every: Annotated[int, typer.Option(help="Rows between checkpoints.")] = 200_000,
    max_rows: Annotated[int | None, typer.Option(help="Stop after so many rows.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    report: Report = True,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Learn one row at a time from a TABLE of any length, in bounded memory.

    With --resume, an interrupted stream continues from its last checkpoint (standard input must be given from its
    beginning) and ends with the same bytes.
    """
    from .stream import read_gamma, run_stream

    config = {
        "table": table if table == "-" else os.path.abspath(table), "format": format,
        "separator": separator, "target": target, "task": task, "weights": weights, "features": features or None,
        "missing": missing, "model": model, "n_features": n_features,
        "chunk_rows": chunk_rows,
    }  # fmt: skip
    params: dict[str, Any] = {
        "alpha": alpha, "penalty": penalty, "gamma": read_gamma(gamma), "l2": l2, "missing": scheme,
        "fit_intercept": intercept,
    }  # fmt: skip
    if l1 is not None:
        params["l1"] = l1
    if loss is not None:
        params["loss"] = loss
    call = {
        "out": out, "resume": resume, "overwrite": overwrite, "quiet": quiet, "max_rows": max_rows,
        "checkpoint_every": checkpoint_every, "report": report,
    }  # fmt: skip
    return run_stream(config, params, call)


@app.command()
@guarded
def datasets(
    name: Annotated[
        str | None, typer.Argument(help="Which one; by default all are listed.", show_default=False)
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="A .csv, .parquet or .npz file to write.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter of the data set: name=value.")
    ] = None,
    debug: Debug = False,
) -> int:
    """List the data sets that come with the library, or write one as a table."""
    from .extras import run_datasets

    return run_datasets(name, out, settings or [])


@app.command()
@guarded
def demo(
    out: Annotated[
        str, typer.Option("--out", "-o", help="Folder for the table and the run.")
    ] = "tasksieve-demo",
    overwrite: Overwrite = False,
    report: Report = True,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Fit real handwritten digits, each against the rest, and write the report."""
    from .extras import run_demo

    return run_demo(out, overwrite, report, quiet)


@app.command()
@guarded
def info(debug: Debug = False) -> int:
    """Versions, kernels, threads, extras."""
    from .extras import run_info

    return run_info()


def version(asked: bool) -> None:
    if asked:
        from tasksieve import __version__

        print(__version__)
        raise typer.Exit()


@app.callback()
def root(
    asked: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Sparse multi-task learning whose every answer carries a proof: from a table on disk to a report."""


def run() -> None:
    app()
