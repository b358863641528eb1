"""Which features a stream used after 1, 2, 4, ... rows: looked at as it goes by, and kept in its run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..report.stream import StreamHistory
from ..tables import TableError, read_arrays, write_arrays
from .arrays import require
from .folder import HISTORY, RunError, RunFolder

MOST = 10_000  # features of one look that are kept, the strongest: so the file stays small whatever the model


class Looks:
    """Looks at an online model along its stream, after those that its run folder has from before.

    They depend on the rows alone, not on chunks or interruptions.
    """

    def __init__(self, folder: RunFolder, model: Any) -> None:
        self.folder, self.model = folder, model
        self.seen = read_looks(folder) if (folder / HISTORY).is_file() else {}
        self.rows: int | None = None  # of the stream so far

    def cut(self, chunks: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """The same rows in chunks that end wherever there is to be a look."""
        at = 0
        for chunk in chunks:
            size, begin = len(chunk[1]), 0
            while begin < size:
                mark = 1 << at.bit_length()  # the next power of two
                end = min(size, begin + mark - at)
                yield chunk if end - begin == size else tuple(_part(part, begin, end) for part in chunk)
                at += end - begin
                begin = end

    def look(self, rows: int, seconds: float) -> None:
        """To be called after each chunk with the number of rows so far."""
        self.rows = rows
        if rows & (rows - 1) == 0:
            self.seen[rows] = strengths(self.model)
            self.write()

    def end(self) -> None:
        """Forget what lies beyond the last row of the stream: a run that was killed may have been further."""
        if self.rows is not None:
            self.seen = {n: look for n, look in self.seen.items() if n <= self.rows}
        self.write()

    def write(self) -> None:
        order = sorted(self.seen)
        looks = [self.seen[n] for n in order]
        arrays = {
            "rows": np.array(order, dtype=np.int64),
            "n_selected": np.array([n for n, _, _ in looks], dtype=np.int64),
            "start": np.cumsum([0, *(len(features) for _, features, _ in looks)], dtype=np.int64),
            "feature": np.concatenate([np.zeros(0, dtype=np.int64), *(features for _, features, _ in looks)]),
            "strength": np.concatenate([np.zeros(0), *(sizes for _, _, sizes in looks)]),
        }
        write_arrays(self.folder / HISTORY, arrays)


Look = tuple[int, np.ndarray, np.ndarray]  # features in use; which, and how strong they are


def strengths(model: Any) -> Look:
    """Features that the model uses now, with the lengths of their coefficients over all tasks."""
    sizes = np.linalg.norm(model.coef_, axis=0)
    used = np.flatnonzero(sizes)
    kept = np.sort(used[np.argsort(-sizes[used], kind="stable")[:MOST]])
    return len(used), kept.astype(np.int64), sizes[kept]


def read_looks(folder: RunFolder) -> dict[int, Look]:
    """The looks of a run; a file that does not hold any is a `RunError`."""
    try:
        arrays = read_arrays(folder / HISTORY, stored=True)
        rows, counts, start = arrays["rows"], arrays["n_selected"], arrays["start"]
        feature, strength = arrays["feature"], arrays["strength"]
        whole = all(array.dtype == np.int64 and array.ndim == 1 for array in (rows, counts, start, feature))
        require(whole and strength.dtype == np.float64 and strength.shape == feature.shape, "types")
        rising = np.all(np.diff(start) >= 0) and np.all(rows >= 1)
        require(rising and len(start) == len(rows) + 1 and len(counts) == len(rows), "lengths")
        within = start[0] == 0 and start[-1] == len(feature)
        require(within and np.all(np.isfinite(strength)) and np.all(feature >= 0), "places")
    except (TableError, KeyError, ValueError) as error:
        raise RunError(f"{folder / HISTORY} is not readable: {error}") from None
    parts = zip(rows.tolist(), counts.tolist(), start[:-1], start[1:], strict=True)
    return {n: (many, feature[begin:end], strength[begin:end]) for n, many, begin, end in parts}


def history(folder: RunFolder, model: Any, loss: str) -> StreamHistory:
    """A stream for its report: the losses, and the looks with the last row's."""
    progress, end = model.progress(), int(model.n_rows_seen_)
    rows, losses = progress.rows.astype(np.int64), progress.losses
    if np.isfinite(progress.loss) and (not len(rows) or rows[-1] < end):
        rows, losses = np.append(rows, end), np.append(losses, progress.loss)
    found = StreamHistory(rows, losses, loss=loss)
    if not (folder / HISTORY).is_file():  # of version 0.1
        return found
    looks = read_looks(folder)
    d = int(model.n_features_in_)
    if any(len(features) and features[-1] >= d for _, features, _ in looks.values()):
        raise RunError(f"{folder / HISTORY} is not that of this run: it has more features than the model")
    looks[max([end, *looks])] = strengths(model)  # rows of weight 0 are not counted in the former
    order = sorted(looks)
    ever = np.unique(np.concatenate([looks[n][1] for n in order]))
    table = np.zeros((len(order), len(ever)))
    for k, n in enumerate(order):
        table[k, np.searchsorted(ever, looks[n][1])] = looks[n][2]
    found.seen, found.n_selected = np.array(order), np.array([looks[n][0] for n in order])
    found.strengths, found.features = table, ever
    return found


def _part(values: Any, begin: int, end: int) -> Any:
    if values is None:
        return None
    return values.iloc[begin:end] if hasattr(values, "iloc") else values[begin:end]
