"""Write results of every kind as this version has them; what is stored already is never written again.

``python tests/stored/write.py [NAME ...]`` adds what is missing below ``tests/stored/VERSION``: archives of run folders
with their tables and with what `predict`, `evaluate`, `verify` and `inspect` said of them, of certificates with their
data, of saved models and of problem files. ``test_stored.py`` reads all of them with the version that is tested.

Everything in ``0.2.0`` was written by commit 4aa27eff (0.2.0 on its way to 1.0; format 1 of runs and certificates),
with compiled kernels and one thread. A new kind of result gets a new name, here and there; none is written a second
time, by whatever version: what is stored is what people have.

Runs are made in a folder whose name is in their ``config.json`` and says nothing of a machine (`--folder`, which must
not exist, and is removed); so does the system in ``versions.json``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.main import get_command

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
os.environ["TASKSIEVE_NUM_THREADS"] = "1"

import results  # noqa: E402
from stored_archives import pack_files, pack_folder  # noqa: E402
from tables import holed, patterned, stacked, study  # noqa: E402

import tasksieve as ts  # noqa: E402
from tasksieve.cli.app import app  # noqa: E402

COMMAND = get_command(app)
VERSION = "0.2.0"


def call(*words: Any) -> tuple[int, str, str]:
    """A command: its exit code and what it said."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            COMMAND([str(word) for word in words], prog_name="tasksieve")
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), err.getvalue()


def done(*words: Any, code: int = 0) -> str:
    found, out, err = call(*words)
    if found != code:
        raise RuntimeError(f"tasksieve {' '.join(map(str, words))}\nended with {found}:\n{out}\n{err}")
    return out


def write(frame: pd.DataFrame, name: str) -> None:
    frame.to_csv(name, index=False)


@dataclass
class Run:
    """A run: tables, the command that makes it, and what is asked of it then."""

    words: tuple[Any, ...]
    tables: Callable[[], None] = lambda: None
    data: str | None = "table.csv"  # for verify; None: it has no certificate
    probe: tuple[str, ...] = ("probe.csv",)
    predict: tuple[tuple[str, ...], ...] = ((), ("--all-tasks",))
    evaluate: tuple[str, ...] | None = ()
    exports: tuple[str, ...] = ("json", "py", "sql")
    before: tuple[tuple[Any, ...], ...] = ()  # commands that make what this run is made of
    extra: dict[str, Any] = field(default_factory=dict)


def plain(frame: pd.DataFrame | None = None, probe: pd.DataFrame | None = None) -> Callable[[], None]:
    def write_both() -> None:
        write(study() if frame is None else frame, "table.csv")
        write(study(9, seed=1) if probe is None else probe, "probe.csv")

    return write_both


X = ("-x", "[a-e]")
T = ("-t", "region")
CV = ("--cv", "3", "--alphas", "6")
Y = ("-y", "y")
FIXED = ("--alpha", "0.05")
NO = ("--no-report",)
PROBABILITIES = ((), ("--all-tasks",), ("--probabilities",))
COX = ("--time", "days", "--event", "died")
TIMES = ((), ("--times", "5,20"))
OUTCOMES = [word for name, kind in {"y": "value", "state": "binary", "events": "count", "pain": "ordered",
            "death": "survival"}.items() for word in ("--outcome", f"{name}={kind}")]  # fmt: skip
ORDER = ("--categories", "pain=none,mild,severe")


def fit(*words: Any, **more: Any) -> Run:
    more.setdefault("tables", plain())
    return Run(("fit", "table.csv", *words, *NO), **more)


def files() -> None:
    for k, name in enumerate(("first", "second", "third")):
        os.makedirs("sites", exist_ok=True)
        os.makedirs("probes", exist_ok=True)
        write(study(20, seed=k)[[*"abcde", "y"]], f"sites/{name}.csv")
        write(study(4, seed=10 + k)[[*"abcde", "y"]], f"probes/{name}.csv")


def files_of_patients() -> None:
    """Each file numbers its patients from 1: a column that 0.2 learns from."""
    files()
    for path in [*Path("sites").iterdir(), *Path("probes").iterdir()]:
        frame = pd.read_csv(path)
        frame.insert(0, "id", np.arange(1, len(frame) + 1))
        write(frame, str(path))


def files_of_other_columns() -> None:
    files()
    for folder in ("sites", "probes"):
        write(pd.read_csv(f"{folder}/third.csv").drop(columns=["c"]), f"{folder}/third.csv")


def patients_with_two_rows() -> None:
    """Of one table: a patient's number is that of the task's patients, each with two rows."""
    for n, seed, name in ((48, 0, "table.csv"), (9, 1, "probe.csv")):
        frame = study(n, seed=seed)
        frame.insert(0, "pid", np.arange(n) // 6 + 1)
        write(frame, name)


def sheets() -> None:
    for n, file, seed in ((18, "table.xlsx", 0), (4, "probe.xlsx", 10)):
        with pd.ExcelWriter(file) as book:
            for k, name in enumerate(("May", "June")):
                study(n, seed=seed + k)[[*"abcde", "y"]].to_excel(book, sheet_name=name, index=False)


def holes_in_targets() -> None:
    frame = study()
    frame.loc[::7, "y2"] = np.nan
    plain(frame)()


def groups_file() -> None:
    plain()()
    write(pd.DataFrame({"feature": list("abcde"), "group": ["one", "one", "two", "two", "three"]}), "groups.csv")


def graph_file() -> None:
    plain()()
    write(pd.DataFrame({"from": ["north", "south"], "to": ["south", "east"], "weight": [1.0, 0.5]}), "graph.csv")


def wide_outcomes() -> None:
    frame = study()
    frame.loc[:2, "y"] = np.nan
    frame.loc[6:8, "pain"] = None
    plain(frame)()


def parquet() -> None:
    study().to_parquet("table.parquet")
    plain()()


def npz() -> None:
    frame = study()
    X = frame[list("abcde")].to_numpy()
    np.savez("table.npz", X=X, y=frame.y.to_numpy(), task=frame.region.to_numpy(str))
    np.savez("probe.npz", X=X[:6] + 0.5, task=frame.region.to_numpy(str)[:6])


def libsvm() -> None:
    for n, seed, name in ((48, 0, "table.libsvm"), (9, 1, "probe.libsvm")):
        frame = study(n, seed=seed)
        lines = []
        for row in frame.itertuples():
            cells = " ".join(f"{j + 1}:{getattr(row, c)}" for j, c in enumerate("abcde"))
            lines.append(f"{row.y} qid:{['north', 'south', 'east'].index(row.region) + 1} {cells}")
        Path(name).write_text("\n".join(lines) + "\n")


def new_task() -> None:
    plain(study(60))()
    few = study(16, seed=4).assign(region="west")
    write(few, "few.csv")


def genotypes() -> None:
    """Two cohorts of 24 people, 20 variants, and other people to predict."""
    prefix = ts.datasets.write_toy_genotypes(".", n_tasks=2, n_rows=24, n_variants=20)
    frame = pd.read_csv(f"{prefix}.pheno", sep="\t")
    rng = np.random.default_rng(0)
    frame["ill"] = rng.choice(["yes", "no"], len(frame))
    frame["days"] = np.ceil(20 * rng.exponential(size=len(frame))).astype(int)
    frame["dead"] = rng.choice([1, 1, 0], len(frame))
    frame.to_csv("toy.pheno", sep="\t", index=False)


def of_genotypes(*words: Any, **more: Any) -> Run:
    command = ("fit", "--bfile", "toy", "--pheno", "toy.pheno", "--covar", "toy.covar", "-t", "cohort", *words, *NO)
    own = ("--bfile", "toy", "--pheno", "toy.pheno", "--covar", "toy.covar")
    more = {"predict": ((),), "exports": ("json", "score"), **more}
    return Run(command, genotypes, data="toy", probe=own, **more)


WEIGHTS, OFFSET = ("--weights", "weight"), ("--offset", "log_hours")
RUNS: dict[str, Run] = {
    # outcomes, chosen by cross-validation
    "numbers": fit(
        *Y, *T, *X, "-x", "city", "-x", "ward", *CV),
    "numbers-1se": fit(*Y, *T, *X, *CV, "--selection-rule", "1se"),
    "two-classes": fit("-y", "state", *T, *X, "-m", "logistic", *CV, predict=PROBABILITIES),
    "several-classes": fit("-y", "colour", *T, *X, "--loss", "logistic", "--penalty", "l21", *CV,
                           predict=PROBABILITIES),
    "multinomial-owl": fit("-y", "colour", *X, "-m", "multinomial-owl", *FIXED, predict=((), ("--probabilities",))),
    "counts": fit("-y", "events", *T, *X, "-m", "poisson", *OFFSET, *WEIGHTS, *CV),
    "ordered": fit("-y", "pain", *T, *X, "-m", "ordinal", "--categories", "none,mild,severe", *CV,
                   predict=PROBABILITIES),
    "survival": fit(*COX, *T, *X, "-m", "cox", *CV, predict=TIMES),
    "survival-entry-strata": fit(*COX, "--entry", "since", "--strata", "sex", *T, *X, "--ties", "breslow", *FIXED,
                                 predict=((), ("--times", "5,20", "--strata", "sex"))),
    "survival-weights": fit(*COX, *T, *X, *WEIGHTS, *FIXED, predict=TIMES),
    "mixed": fit(*OUTCOMES, "--time", "death=days", "--event", "death=died", *ORDER, *X, *CV, tables=wide_outcomes,
                 predict=((), ("--probabilities",))),
    "mixed-tasks": fit(*OUTCOMES, "-t", "kind", "-y", "label", *COX, *ORDER, *X, *FIXED,
                       tables=lambda: plain(stacked(study(60)), stacked(study(9, seed=1)))(),
                       predict=((), ("--probabilities",))),
    "quantile": fit(*Y, *T, *X, "-m", "quantile", "--q", "0.8", "--smoothing", "0.4", *CV),
    "huber": fit(*Y, *T, *X, "-m", "huber", "--delta", "0.9", *CV),
    "gamma": fit("-y", "cost", *T, *X, "--loss", "gamma", *FIXED),
    "tweedie": fit("-y", "cost", *T, *X, "--loss", "tweedie:power=1.4", *OFFSET, *FIXED),
    "negative-binomial": fit("-y", "events", *T, *X, "--loss", "negative_binomial", *FIXED),
    "log-cosh": fit(*Y, *T, *X, "--loss", "log_cosh", *FIXED),
    "expectile": fit(*Y, *T, *X, "--loss", "expectile:level=0.8", *FIXED),
    "square-root": fit(*Y, *T, *X, "--loss", "square-root", *FIXED),
    "squared-hinge": fit("-y", "state", *T, *X, "--loss", "squared_hinge", *FIXED),
    "smoothed-hinge": fit("-y", "state", *T, *X, "--loss", "smoothed_hinge", *FIXED),
    # penalties
    **{f"penalty-{name}": fit(*Y, *T, *X, "--penalty", name, *CV)
       for name in ("l21", "l11", "linf", "dirty", "owl", "sparse_group")},
    "elastic-net": fit(*Y, *T, *X, "-m", "elastic-net", "--l1-ratio", "0.5,0.9", *CV),
    "sparse-group": fit("-y", "state", *T, *X, "-m", "sparse-group", "--loss", "logistic", "--l1", "0.4", *FIXED),
    "group-lasso": fit(*Y, *T, *X, "-m", "group-lasso", "--feature-groups", "groups.csv", "--inside", "rows", *CV,
                       tables=groups_file),
    "group-lasso-columns": fit(*Y, *T, *X, "-x", "ward", "-m", "group-lasso", "--feature-groups", "column", *FIXED),
    "calibrated": fit(*Y, *T, *X, "-m", "calibrated", "--l2", "0,0.01", *CV),
    "owl-slope": fit(*Y, *T, *X, "-m", "owl", "--owl-weights", "slope", *FIXED),
    "ridge-graph": fit(*Y, *T, *X, "--penalty", "l11", "--ridge", "0.1", "--task-graph", "chain", *FIXED),
    "graph-of-a-file": fit(*Y, *T, *X, "--penalty", "l21", "--task-graph", "graph.csv", "--graph-strength", "0.3,3",
                           *CV, tables=graph_file),
    # forms
    "as-is": fit(*Y, *T, *X, "--as-is", *CV),
    "positive": fit(*Y, *T, *X, "--positive", "--no-intercept", "--task-weights", "balanced", *FIXED),
    "weights": fit(*Y, *T, *X, *WEIGHTS, *CV),
    "offset": fit(*Y, *T, *X, *OFFSET, "--row-groups", "family", *CV),
    "published-rule": fit(*Y, *T, *X, "--screening", "dpc-published", *CV),
    "balanced-classes": fit("-y", "state", *T, *X, "-m", "any", "--loss", "logistic", "--class-weight", "balanced",
                            *FIXED, predict=PROBABILITIES),
    "one-task": fit(*Y, *X, *CV, predict=((),)),
    "graph-svm": fit("-y", "state", *T, *X, "-m", "graph-svm", "--graph", "complete", "--C", "0.5"),
    "graph-svm-numbers": fit(*Y, *T, *X, "-m", "graph-svm", "--graph", "complete", "--C", "0.5", "--epsilon", "0.2"),
    # tables
    "dates": fit(*Y, *T, *X, "-x", "visited", "-x", "city", "--date-parts", *FIXED),
    "categories": fit(*Y, *T, *X, "-x", "ward", "-x", "city", "--reference", "ward=eye", "--id", "family", *CV),
    "missing-drop": fit(*Y, *T, *X, "--missing", "drop", *FIXED, tables=plain(holed(study())),
                        predict=((), ("--missing", "drop"))),
    "missing-mean": fit(*Y, *T, *X, "-x", "ward", "--missing", "mean", *FIXED, evaluate=("--missing", "mean"),
                        tables=plain(holed(study()), holed(study(24, seed=1))), predict=(("--missing", "mean"),)),
    "missing-task-mean": fit(*Y, *T, *X, "-x", "ward", "--missing", "task-mean", *CV,
                             tables=plain(holed(study()), holed(study(24, seed=1))),
                             predict=(("--missing", "task-mean"),), evaluate=("--missing", "task-mean")),
    "missing-indicator": fit(*Y, *T, *X, "-x", "ward", "--missing", "indicator", *FIXED,
                             tables=plain(holed(study()), holed(study(24, seed=1))),
                             predict=(("--missing", "indicator"),), evaluate=("--missing", "indicator")),
    "missing-patterns": fit(*Y, *T, *X, "-x", "city", "--missing", "patterns", *CV, exports=(),
                            tables=plain(patterned(study(60)), patterned(study(24, seed=1))), predict=((),)),
    "shared-targets": fit(*Y, "-y", "y2", *X, *CV, tables=holes_in_targets, predict=((),)),
    "sheets": Run(("fit", "table.xlsx", "--sheet", "*", *Y, *CV, *NO), sheets, data="table.xlsx",
                  probe=("probe.xlsx", "--sheet", "*")),
    "files": Run(("fit", "sites", *Y, *CV, *NO), files, data="sites", probe=("probes",)),
    "files-id": Run(("fit", "sites", *Y, *CV, *NO), files_of_patients, data="sites", probe=("probes",)),
    "files-union": Run(("fit", "sites", *Y, "--columns", "union", *FIXED, *NO), files_of_other_columns, data="sites",
                       probe=("probes",), predict=((),), exports=()),
    "pid": fit(*Y, *T, *X, "-x", "pid", *CV, tables=patients_with_two_rows),
    "pid-unasked": fit(*Y, *T, "--drop", "y2", "--drop", "state", "--drop", "colour", "--drop", "pain", "--drop",
                       "visited", *FIXED, tables=patients_with_two_rows),
    "parquet": Run(("fit", "table.parquet", *Y, *T, *X, *FIXED, *NO), parquet, data="table.parquet"),
    "npz": Run(("fit", "table.npz", *Y, *CV, "-t", "task", *NO), npz, data="table.npz", probe=("probe.npz",),
               evaluate=None),
    "libsvm": Run(("fit", "table.libsvm", "-y", "label", "-t", "qid", *FIXED, *NO), libsvm, data="table.libsvm",
                  probe=("probe.libsvm",)),
    "chunks": fit(*Y, *T, *X, "--chunk-rows", "10", *FIXED, data=None),
    # findings
    "reported": fit(*Y, *T, *X, *CV) ,
    "stability-beside": fit(*Y, *T, *X, *FIXED, "--stability", "--pairs", "4", "--permutations", "19"),
    "intervals": fit(*Y, *T, *X, *FIXED, "--intervals"),
    "intervals-debiased": fit(*Y, *T, *X, *FIXED, "--intervals", "--interval-method", "debiased"),
    "compared": fit(*Y, *T, *X, *CV, "--compare", "--outer-folds", "3"),
    "kept-folds": fit(*Y, *T, *X, *CV, "--keep-folds", "tuned", predict=((), ("--interval", "0.9", "--borrow"))),
    "path": Run(("path", "table.csv", *Y, *T, *X, "--alphas", "0.4,0.2,0.1", *NO), plain(),
                predict=(("--alpha", "0.1"),),
                evaluate=("--alpha", "0.1"), exports=()),
    "path-logistic": Run(("path", "table.csv", "-y", "state", *T, *X, "-m", "logistic", "--alphas", "0.1,0.05,0.02",
                          *NO), plain(),
                         predict=(("--alpha", "0.05", "--probabilities"),), evaluate=("--alpha", "0.05"), exports=()),
    "stability": Run(("stability", "table.csv", *Y, *T, *X, "--pairs", "4", "--permutations", "19", *NO), plain(),
                     data=None, predict=(), evaluate=None, exports=()),
    "compare": Run(("compare", "table.csv", *Y, *T, *X, *CV, "--outer-folds", "3", *NO), plain(), data=None,
                   predict=(), evaluate=None, exports=()),
    "stream": Run(("stream", "table.csv", *Y, *T, *X, "--alpha", "0.05", "--gamma", "20", *NO), plain(), data=None,
                  exports=()),
    "stream-classes": Run(("stream", "table.csv", "-y", "state", *T, *X, "-m", "classifier", "--alpha", "0.01",
                           "--penalty", "l1+l21", "--l1", "0.5", "--scheme", "importance", *NO), plain(), data=None,
                          predict=PROBABILITIES, exports=()),
    "transfer": Run(("transfer", "old", "few.csv", "--name", "west", "--cv", "3", *NO), new_task, data=None,
                    before=(("fit", "table.csv", *Y, *T, *X, "--cv", "3", "--alphas", "6", *NO, "-o", "old"),),
                    probe=("few.csv",), predict=((),)),
    # genotypes
    "genotypes": of_genotypes("--pheno-name", "trait", *CV, "--maf", "0.02"),
    "genotypes-classes": of_genotypes("--pheno-name", "ill", "-m", "logistic", *FIXED,
                                      predict=((), ("--probabilities",))),
    "genotypes-survival": of_genotypes("--time", "days", "--event", "dead", "-m", "cox", *FIXED, exports=("json",)),
}  # fmt: skip
RUNS["reported"].words = RUNS["reported"].words[:-1]  # with its page


def make_run(name: str, run: Run) -> None:
    """In the current folder, which is empty."""
    run.tables()
    for words in run.before:
        done(*words, "-q")
    done(*run.words, "-o", "run")
    os.mkdir("expected")
    told: dict[str, Any] = {"version": VERSION, "command": list(run.words), "predict": [], "exports": {}}
    for k, more in enumerate(run.predict):
        file = f"expected/predict-{k}.csv"
        done("predict", "run", *run.probe, *more, "-o", file)
        told["predict"].append({"words": [*run.probe, *more], "file": file})
    if run.evaluate is not None:
        words = [*run.probe, *run.evaluate]
        done("evaluate", "run", *words, "-o", "expected/scores.csv")
        told["evaluate"] = {"words": words, "file": "expected/scores.csv"}
    inspected = json.loads(done("inspect", "run", "--json"))
    told["inspect"] = {key: inspected[key] for key in ("what", "selected", "certificate", "data") if key in inspected}
    if run.data is not None:
        told["verify"] = {"data": run.data, "chosen": _verdict(run.data), "all": _verdict(run.data, "--all")}
    for ending in run.exports:
        told["exports"][ending] = call("export", "run", "-o", f"exported.{ending}")[0]
        for path in Path().glob("exported*"):
            path.unlink()
    Path("expected.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _verdict(data: str, *more: str) -> dict[str, Any]:
    """The claims that were proved; of an honest run that was not, why."""
    code, out, err = call("verify", "run", "--data", data, "--json", *more)
    if code == 0:
        found = json.loads(out)
        return {key: found[key] for key in ("proved", "values", "needs")}
    print(f"  NOT PROVED ({code}): {out or err}".rstrip())
    return {"proved": False, "code": code, "words": json.loads(out)["words"] if code == 1 else err.strip()}


@contextlib.contextmanager
def working(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True)
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--folder", type=Path, default=Path("/study"))
    asked = parser.parse_args()
    if ts.__version__ != VERSION:
        print(f"tasksieve {ts.__version__}: what is new goes to a folder of its own: set VERSION")
        raise SystemExit(1)
    platform.platform = lambda *_, **__: "Linux"  # type: ignore[assignment]
    warnings.simplefilter("ignore")
    for kind, made in (("runs", RUNS), ("folders", results.FOLDERS), ("files", results.FILES)):
        (HERE / VERSION / kind).mkdir(parents=True, exist_ok=True)
        for name, what in made.items():
            file = HERE / VERSION / kind / f"{name}.zip"
            if file.exists() or (asked.names and name not in asked.names):
                continue
            print(f"{kind}/{name}", flush=True)
            if kind == "files":
                pack_files(what(), file)
                continue
            with working(asked.folder):
                try:
                    make_run(name, what) if kind == "runs" else what(done)
                except RuntimeError as error:
                    print(f"  NOT STORED: {error}")
                    continue
                pack_folder(Path.cwd(), file)


if __name__ == "__main__":
    main()
