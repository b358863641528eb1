"""What checking a certificate costs, against what it cost to find the answer.

    python benchmarks/verification.py

A path of 100 values: the seconds of the processor to compute it, to write its certificate, to verify one value and all
of them in floating point, of float64 and int8 data, squared and logistic losses. The digests of the data are part of
it, and are shown apart: they are computed once for data that are checked again (`verify.frozen`). One pass is the time
of one product of X' with a vector for each task. Then the entries of X a second that ``--exact`` gets through. Last,
megabytes a second of the page that checks itself, for a table (CSV) and for a file of arrays (npz), where Chromium and
Playwright are there.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _common import Report, arguments, ratio_cell, say, timed

import tasksieve as ts
from tasksieve import verify
from tasksieve.report import content_from_model, render
from tasksieve.report.proof import carry

MOST_PASSES, MOST_RATIO = 10.0, 2.0
KINDS = ("float64, squared", "int8, squared", "float64, logistic")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--features", type=int, nargs="+", default=[5_000, 50_000])
    parser.add_argument("--rows", type=int, default=50, help="of each task")
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    if args.quick:
        args.features, args.rows, args.tasks, args.values, args.repeats = [60], 12, 3, 5, 1
    report = Report("verification", args)
    rows = [floating(report, args, d, kind) for d in args.features for kind in KINDS]
    report.table(
        f"A path of {args.values} values: {args.tasks} tasks, {args.rows} rows each (seconds of the processor)",
        ["features", "X, loss", "path", "certificate / path", "verify all / path", "the same, digests kept",
         "digests, passes over X", "one value, passes beside the digests", "bytes of the certificate"],
        rows,
        "The certificate is written with the verifier's own numbers, so that it costs about what verifying does.",
    )  # fmt: skip
    report.table(
        "In fractions (--exact), one value of the squared loss",
        ["tasks x rows x features", "seconds", "entries of X a second"],
        [exact(report, args)],
        "",
    )
    in_browser(report, args)
    report.finish()


def problem(args: Any, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(args.seed)
    n = args.tasks * args.rows
    X = np.asfortranarray(rng.standard_normal((n, d)))
    task = np.repeat(np.arange(args.tasks), args.rows)
    w = rng.standard_normal((args.tasks, min(d, 20)))
    y = np.einsum("ij,ij->i", X[:, : w.shape[1]], w[task])
    return X, y + 0.5 * rng.standard_normal(n), task


def median_of(args: Any, function: Any) -> tuple[float, Any]:
    runs = [worked(function) for _ in range(args.repeats)]
    return statistics.median(seconds for seconds, _ in runs), runs[-1][1]


def worked(function: Any) -> tuple[float, Any]:
    """Seconds of the processor, and the result."""
    start = time.process_time()
    found = function()
    return time.process_time() - start, found


def floating(report: Report, args: Any, d: int, kind: str) -> list[Any]:
    say(f"{d} features, {kind}")
    X, y, task = problem(args, d)
    model: Any = ts.MultiTaskLasso()
    if "int8" in kind:
        X = np.asfortranarray(np.clip(np.round(X + 1.0), 0, 2).astype(np.int8))
    if "logistic" in kind:
        model, y = ts.MultiTaskLogisticRegression(), (y > 0.0).astype(int)
    X = verify.frozen(X)
    solve, path = median_of(args, lambda: model.path(X, y, task=task, n_alphas=args.values))
    write, certificate = worked(lambda: path.certificate(X, y, task=task))
    whole = verify.read_certificate(certificate.to_bytes())
    middle = args.values // 2
    changeable = X.copy(order="F")
    every, all_of_them = worked(lambda: verify.verify(whole, changeable, y, task=task))
    arranged = verify.arrange(whole, changeable, y, task, None, None)
    digests, _ = worked(lambda: verify.check_digests(whole, arranged))
    one, verdict = median_of(args, lambda: verify.verify(whole, X, y, task=task, value=middle))
    again, _ = worked(lambda: verify.verify(whole, X, y, task=task))
    if not (verdict and all_of_them):
        raise SystemExit(f"not proved: {all_of_them.words}")
    parts = [X[task == t].astype(np.float64) for t in range(args.tasks)]
    vectors = [np.ones(args.rows)] * args.tasks
    a_pass, _ = median_of(args, lambda: [part.T @ vector for part, vector in zip(parts, vectors, strict=True)])
    passes, ratio = one / a_pass, every / solve
    seconds = {"digests": digests, "one": one, "a_pass": a_pass, "every": every, "again": again}
    report.raw(d=d, kind=kind, path=solve, write=write, **seconds)
    if d == max(args.features) and kind == KINDS[0]:
        report.headline(
            f"verifying one value, {d:,} features: passes over X beside the digests", f"at most {MOST_PASSES:g}",
            f"{passes:.1f}", None if args.quick else passes <= MOST_PASSES,
        )  # fmt: skip
        report.headline(
            f"verifying {args.values} values, {d:,} features: time / the path's", f"at most {MOST_RATIO:g}x",
            f"{ratio:.2f}x", None if args.quick else ratio <= MOST_RATIO,
        )  # fmt: skip
    size = len(certificate.to_bytes())
    return [
        f"{d:,}", kind, f"{solve:.2f}", ratio_cell(write / solve), ratio_cell(ratio), ratio_cell(again / solve),
        f"{digests / a_pass:.0f}", f"{passes:.1f}", f"{size:,}",
    ]  # fmt: skip


def exact(report: Report, args: Any) -> list[Any]:
    tasks, rows, d = (2, 8, 10) if args.quick else (10, 50, 5_000)
    small = type(args)(**{**vars(args), "tasks": tasks, "rows": rows})
    X, y, task = problem(small, d)
    certificate = ts.MultiTaskLasso(0.3).fit(X, y, task=task).certificate(X, y, task=task)
    seconds, verdict = worked(lambda: certificate.verify(X, y, task=task, exact=True))
    if not verdict:
        raise SystemExit(f"not proved: {verdict.words}")
    report.raw(exact=seconds, entries=X.size)
    return [f"{tasks} x {rows} x {d}", f"{seconds:.2f}", f"{X.size / seconds:,.0f}"]


def in_browser(report: Report, args: Any) -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        say("the page in the browser: left out (it needs Chromium, and Playwright: pip install playwright)")
        return
    sizes = [(200, 20)] if args.quick else [(20_000, 100), (100_000, 100)]
    rows = []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=["--no-sandbox"])
        except Error as error:
            say(f"the page in the browser: left out ({chromium} does not start: {str(error).splitlines()[0]})")
            return
        page = browser.new_page()
        page.set_default_timeout(3_600_000)
        for n, d in sizes:
            say(f"the page in the browser: {n} rows, {d} features")
            report_of(args, n, d, Path(name))
            page.goto((Path(name) / "report.html").as_uri())
            for file in ("data.csv", "data.npz"):
                seconds, words = timed(lambda: judged(page, Path(name) / file))  # noqa: B023
                if "Verified on this computer" not in words:
                    raise SystemExit(f"{file}: {words}")
                size = (Path(name) / file).stat().st_size / 1e6
                report.raw(rows=n, features=d, file=file, megabytes=size, seconds=seconds)
                rows.append([file[-3:], f"{n:,} x {d}", f"{size:.1f}", f"{seconds:.2f}", f"{size / seconds:.1f}"])
        version = browser.version
        browser.close()
    report.table(
        f"A report that checks itself, in Chromium {version}: squared loss, 4 tasks, standardised columns",
        ["file", "rows x features", "MB", "seconds", "MB a second"],
        rows,
        "From choosing the file to the stamp: reading, digests, the proof in double-doubles, the marks of features.",
    )


def report_of(args: Any, n: int, d: int, folder: Path) -> None:
    """A page that carries the certificate of a model, and its data as a table and as arrays."""
    small = type(args)(**{**vars(args), "tasks": 4, "rows": n // 4})
    X, y, task = problem(small, d)
    model = ts.MultiTaskLasso(0.2, standardize=True).fit(X, y, task=task)
    certificate = model.certificate(X, y, task=task)
    names = [f"x{j}" for j in range(d)]
    certificate.header["table"] = {
        "columns": [{"source": name} for name in names], "target": "y", "task": "task", "weight": None, "offset": None,
        "missing": [""], "drop": False, "separator": ",",
    }  # fmt: skip
    content = content_from_model(model, n_alphas=0)
    carry(content, certificate.to_bytes(), 0, "")
    (folder / "report.html").write_text(render(content), encoding="utf-8")
    np.savez(folder / "data.npz", X=X, y=y, task=task)
    with (folder / "data.csv").open("w", encoding="utf-8") as file:
        file.write(",".join([*names, "y", "task"]) + "\n")
        for row, label, t in zip(X, y.tolist(), task.tolist(), strict=True):
            file.write(",".join(map(repr, [*row.tolist(), label, t])) + "\n")


def judged(page: Any, file: Path) -> str:
    """What the open page says of a file."""
    page.evaluate("delete document.documentElement.dataset.verified")
    page.set_input_files("#verify-file", [])
    page.set_input_files("#verify-file", file)
    page.wait_for_selector("html[data-verified]", state="attached")
    return str(page.inner_text("#verify-verdict"))


if __name__ == "__main__":
    main()
