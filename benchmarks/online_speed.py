"""Rows per second of online learning, against Vowpal Wabbit, scikit-learn and river; memory over a long stream.

    python benchmarks/online_speed.py
    python benchmarks/online_speed.py --quick

Programs take turns on one core, in another order each round, all with the same rows; processor time after warm-up
rounds. The speed of a shared machine moves, that of every program with it: ratios are medians of the ratios of turns of
the same round, with their quartiles. Vowpal Wabbit gets its examples parsed beforehand, from Python, with ``--sgd``. No
side keeps averages. The global step count is ``missing="importance"``, per-task means are the default rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from _common import Report, arguments, ratio_cell, say
from _memory import status

import tasksieve as ts

PASSES = 5  # over the prepared rows in each turn, so that a turn is long beside filling the caches
ALPHA = 2.5e-3  # about 30,000 of the 100,000 sparse features stay in the model: every row meets some
WARM_UP = 2  # rounds that do not count
GAMMA = 1e4  # large enough to be stable on every design here; speed does not depend on it
RATIOS = "Rows a second: medians. Ratios: medians over rounds, with their quartiles."


def turns(sides: dict[str, Callable[[], int]], rounds: int) -> dict[str, np.ndarray]:
    """Rows per second of each side in each round; each call returns its number of rows."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    order = np.random.default_rng(0)  # a new order in every round: no side always runs after the same one
    for k in range(-WARM_UP, rounds):
        for name in order.permutation(list(sides)).tolist():
            began = time.process_time()
            n = sides[name]()
            seconds = time.process_time() - began
            if k >= 0:
                rates[name].append(n / seconds)
    return {name: np.array(values) for name, values in rates.items()}


def sparse_rows(n: int, rng: np.random.Generator, d: int = 100_000, k: int = 50, T: int = 10) -> list[Any]:
    indices = np.sort(rng.integers(0, d, (n, k)), axis=1).astype(np.int32)
    X = sp.csr_matrix((rng.standard_normal(n * k), indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, d))
    X.sum_duplicates()
    task = rng.integers(0, T, n)
    truth = np.zeros(d)
    truth[rng.choice(d, d // 1000, replace=False)] = 3.0  # one feature in a thousand matters
    y = X @ truth + rng.standard_normal(n)
    return [(X[a : a + 1000], y[a : a + 1000], task[a : a + 1000]) for a in range(0, n, 1000)]


def ours(chunks: list[Any], **params: Any) -> Callable[[], int]:
    model = ts.OnlineMultiTaskRegressor(ALPHA, gamma=GAMMA, average=False, **params)

    def work() -> int:
        for _ in range(PASSES):
            for X, y, task in chunks:
                model.partial_fit(X, y, task=task)
        return PASSES * sum(len(y) for _, y, _ in chunks)

    return work


def sgd(chunks: list[Any]) -> Callable[[], int]:
    from sklearn.linear_model import SGDRegressor

    model = SGDRegressor(penalty="l1", alpha=1e-4)

    def work() -> int:
        for _ in range(PASSES):
            for X, y, _ in chunks:
                model.partial_fit(X, y)
        return PASSES * sum(len(y) for _, y, _ in chunks)

    return work


def vw(chunks: list[Any]) -> Callable[[], int]:
    import vowpalwabbit

    workspace = vowpalwabbit.Workspace("--sgd --l1 1e-6 -b 18 --quiet")
    examples = []
    for X, y, _ in chunks:
        for i in range(len(y)):
            span = slice(X.indptr[i], X.indptr[i + 1])
            words = " ".join(f"{j}:{v}" for j, v in zip(X.indices[span], X.data[span], strict=True))
            examples.append(workspace.parse(f"{y[i]} |f {words}"))

    def work() -> int:
        for _ in range(PASSES):
            for example in examples:
                workspace.learn(example)
        return PASSES * len(examples)

    return work


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--stream-rows", type=int, default=10_000_000)
    parser.add_argument("--only", choices=["sparse", "dense", "single", "stream"])
    args = parser.parse_args()
    rounds, n = (1, 2000) if args.quick else (31, 10_000)
    args.stream_rows = 20_000 if args.quick else args.stream_rows
    rng = np.random.default_rng(args.seed)
    report = Report("online_speed" + (f"_{args.only}" if args.only else ""), args)
    for part in (sparse, dense, single, stream):
        if args.only in (None, part.__name__):
            say(part.__name__)
            part(report, args, rng, rounds, n)
    report.finish()


def lines(
    report: Report,
    rows_are: str,
    rates: dict[str, np.ndarray],
    peers: list[str],
    bars: dict[tuple[str, str], float],
) -> list[Any]:
    report.raw(rows_are=rows_are, rates=rates)
    rows = []
    for name, rate in rates.items():
        cells = [name, f"{np.median(rate):,.0f}"]
        for peer in peers:
            low, ratio, high = np.percentile(rate / rates[peer], [25, 50, 75])
            spread = f" ({low:.2f} to {high:.2f})" if high < 10 else f" ({low:.0f} to {high:.0f})"
            bar = bars.get((name, peer))
            cells.append(
                "" if name in peers else ratio_cell(ratio) + spread + (f", bar {bar:g}x" if bar else "")
            )
            if bar:
                report.headline(
                    f"online, {rows_are}: {name} against {peer}",
                    f"{bar:g}x",
                    ratio_cell(ratio) + spread,
                    bool(ratio >= bar),
                )
        rows.append(cells)
    return rows


def sparse(report: Report, args: Any, rng: np.random.Generator, rounds: int, n: int) -> None:
    chunks = sparse_rows(n, rng)
    sides = {
        "l21, global step count": ours(chunks, missing="importance"),
        "l21, per-task means": ours(chunks),
        "l1+l21, global step count": ours(chunks, penalty="l1+l21", missing="importance"),
        "l1+l21, per-task means": ours(chunks, penalty="l1+l21"),
        "l11, per-task means": ours(chunks, penalty="l11"),
        "Vowpal Wabbit": vw(chunks),
        "SGDRegressor": sgd(chunks),
    }
    peers = ["Vowpal Wabbit", "SGDRegressor"]
    bars = {
        ("l21, global step count", "Vowpal Wabbit"): 3.0,
        ("l21, global step count", "SGDRegressor"): 3.0,
        ("l21, per-task means", "Vowpal Wabbit"): 2.0,
        ("l21, per-task means", "SGDRegressor"): 2.0,
        ("l1+l21, per-task means", "Vowpal Wabbit"): 1.8,
    }
    rates = turns(sides, rounds)
    report.table(
        "Sparse rows: d = 100,000, 50 non-zeros, 10 tasks, chunks of 1,000",
        ["", "rows a second", "against Vowpal Wabbit", "against SGDRegressor"],
        lines(report, "sparse rows in chunks", rates, peers, bars),
        RATIOS,
    )
    rates = turns(
        {f"{T} tasks": ours(sparse_rows(n, rng, d=2000, T=T), missing="importance") for T in (10, 100, 400)},
        rounds,
    )
    report.table(
        "l21 with a global step count, by the number of tasks (d = 2,000, 50 non-zeros)",
        ["", "rows a second"],
        [[name, f"{np.median(rate):,.0f}"] for name, rate in rates.items()],
        "The operations per row do not depend on the number of tasks; the state (d x T numbers) leaves the caches.",
    )


def dense(report: Report, args: Any, rng: np.random.Generator, rounds: int, n: int) -> None:
    X, y, task = rng.standard_normal((n, 27)), rng.standard_normal(n), rng.integers(0, 139, n)
    chunks = [(X[a : a + 1000], y[a : a + 1000], task[a : a + 1000]) for a in range(0, n, 1000)]
    sides = {
        "l21, per-task means": ours(chunks),
        "l21, global step count": ours(chunks, missing="importance"),
        "l1+l21, per-task means": ours(chunks, penalty="l1+l21"),
        "l11, per-task means": ours(chunks, penalty="l11"),
        "SGDRegressor": sgd(chunks),
    }
    bars = {("l21, per-task means", "SGDRegressor"): 5.0, ("l21, global step count", "SGDRegressor"): 5.0}
    report.table(
        "Dense rows: d = 27, 139 tasks, chunks of 1,000",
        ["", "rows a second", "against SGDRegressor"],
        lines(report, "dense rows in chunks", turns(sides, rounds), ["SGDRegressor"], bars),
        RATIOS,
    )


def single(report: Report, args: Any, rng: np.random.Generator, rounds: int, n: int) -> None:
    from river import linear_model, optim
    from sklearn.linear_model import SGDRegressor

    n = n // 5
    X, y, task = (
        rng.standard_normal((n, 27)),
        rng.standard_normal(n).tolist(),
        rng.integers(0, 10, n).tolist(),
    )
    rows = [{f"x{j}": float(v) for j, v in enumerate(x)} for x in X]
    arrays = list(X)

    def learn(model: Any, xs: list[Any]) -> Callable[[], int]:
        def work() -> int:
            for x, value, t in zip(xs, y, task, strict=True):
                model.learn_one(x, value, task=t)
            return n

        return work

    peer = linear_model.LinearRegression(optimizer=optim.SGD(1e-4), l1=1e-4)

    def river() -> int:
        for x, value in zip(rows, y, strict=True):
            peer.learn_one(x, value)
        return n

    other = SGDRegressor(penalty="l1", alpha=1e-4)

    def one_by_one() -> int:
        for i in range(n // 10):
            other.partial_fit(X[i : i + 1], y[i : i + 1])
        return n // 10

    online = {"gamma": GAMMA, "average": False}
    sides = {
        "arrays": learn(ts.OnlineMultiTaskRegressor(1e-3, **online), arrays),
        "dicts": learn(ts.OnlineMultiTaskRegressor(1e-3, **online), rows),
        "river, LinearRegression, l1": river,
        "SGDRegressor": one_by_one,
    }
    peers = ["river, LinearRegression, l1", "SGDRegressor"]
    bars = {("arrays", peers[0]): 10.0, ("dicts", peers[0]): 3.0, ("arrays", peers[1]): 10.0}
    report.table(
        "One row per call: d = 27, 10 tasks",
        ["", "rows a second", "against river", "against SGDRegressor"],
        lines(report, "one row per call", turns(sides, max(1, rounds // 4)), peers, bars),
        RATIOS,
    )


def stream(report: Report, args: Any, rng: np.random.Generator, rounds: int, n: int) -> None:
    """Memory and speed as a stream goes on; the rows are made from 50 prepared chunks."""
    chunks = sparse_rows(50_000 if not args.quick else 2000, rng, d=20_000)
    model = ts.OnlineMultiTaskRegressor(1e-3, gamma=GAMMA, missing="importance")
    marks: list[tuple[int, float, float]] = []
    tenth = args.stream_rows // 10

    def endless() -> Any:
        done = 0
        while done < args.stream_rows:
            for chunk in chunks:
                yield chunk
                done += len(chunk[1])

    last = time.process_time()

    def progress(done: int, seconds: float) -> None:
        nonlocal last
        if done % tenth == 0:
            now = time.process_time()
            marks.append((done, status("VmRSS") / 2**20, tenth / (now - last)))
            last = now

    model.fit_stream(endless(), progress=progress, max_rows=args.stream_rows)
    growth = marks[-1][1] - marks[0][1]
    report.table(
        f"A stream of {args.stream_rows:,} rows (d = 20,000, 50 non-zeros, 10 tasks, l21, global step count)",
        ["rows so far", "resident memory, MiB", "rows a second in the last tenth"],
        [[f"{done:,}", f"{memory:.1f}", f"{rate:,.0f}"] for done, memory, rate in marks],
    )
    report.headline("online: memory over 10 million rows", "flat", f"{growth:+.1f} MiB", growth < 2.0)


if __name__ == "__main__":
    main()
