"""What is remembered of columns that go by in chunks: enough to decide what they are, never their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..tasks.refusals import is_number
from .dates import FIRST_DAY, LAST_DAY, date_ways
from .encode import counted_words
from .ids import (
    FEWEST_NAMES,
    Ids,
    called_id,
    is_row_names,
    judged_by_values,
    names_rows,
    why_called,
    why_in_parts,
    why_row_names,
    why_whole_numbers,
    why_words,
)
from .number_words import are_digits
from .table import NAMED_CELLS, Array, CodedColumn, Column, Table

# Different words, or numbers of a column called id, beyond which no more are kept.
MOST_KEPT = 1 << 20
MOST_DAYS = 1 << 17  # more than the calendar has between the first day and the last that numbers may mean


@dataclass
class SeenColumn:
    """One column of a table, chunk after chunk.

    - `kinds`: set of kinds met, chunks without any value left out
    - `holes`: The first rows without a value.
    - `words`: The different words, and in how many rows they are; of numbers only where they are names of things.
    - `ways` (set of str or None): Ways in which all values so far are dates.
    """

    coded: bool = False
    kinds: set[str] = field(default_factory=set)
    n_rows: int = 0
    n_missing: int = 0
    holes: list[int] = field(default_factory=list)
    words: Counter[str] = field(default_factory=Counter)
    ways: Any = None
    different: bool = True
    n_others: int = 0
    digits: bool = True
    first_other: tuple[int, str] | None = None
    whole: bool = True
    low: int = 0
    high: int = 0
    total: int = 0
    squares: int = 0
    numbers: set[int] = field(default_factory=set)
    rising: bool = True
    days: set[int] | None = field(default_factory=set)
    names: SeenNames | None = None
    by_task: SeenByTask | None = None

    def look(self, name: str, column: Column, first: int, tasks: Array | None = None) -> None:
        """The next rows, the first of which has this number in the file; `tasks` are their codes, -1 for none."""
        missing = column.missing
        if self.names is None and self.n_rows == 0 and names_rows(name):
            self.names = SeenNames()
        if self.names is not None:
            self.names.look(column, tasks)
        self.n_rows += len(missing)
        holes = np.flatnonzero(missing)
        self.n_missing += len(holes)
        self.holes += (first + holes[: max(0, NAMED_CELLS - len(self.holes))]).tolist()
        if len(holes) == len(missing):
            self.whole &= column.values.dtype.kind in "iu"
            return
        self.kinds.add(column.kind)
        if column.kind != "number" and (self.ways is None or self.ways):
            found = set(date_ways(_each_once(column)))
            self.ways = found if self.ways is None else self.ways & found
        if column.kind == "number":
            self._numbers(name, column.values)
            if tasks is not None and self.whole:
                self.by_task = self.by_task or SeenByTask(called_id(name))
                self.by_task.look(column.values, tasks)
        if column.kind == "text" or self.coded:
            self._words(counted_words(column), column, first)

    def _words(self, words: dict[str, int], column: Column, first: int) -> None:
        if len(self.words) <= MOST_KEPT:
            before = len(self.words)
            self.words.update(words)
            self.different &= len(self.words) - before == sum(words.values())
        if column.kind != "text":
            return
        self.digits &= are_digits(words)
        others = {word: count for word, count in words.items() if not is_number(word)}
        self.n_others += sum(others.values())
        if others and self.first_other is None:
            values = column.values
            row = next(row for row, word in enumerate(values.tolist()) if word in others)
            self.first_other = first + row, values[row]

    def _numbers(self, name: str, values: Array) -> None:
        self.whole &= values.dtype.kind in "iu"
        if not self.whole:
            self.numbers.clear()
            return
        if self.days is not None:
            self.days.update(np.unique(values).tolist())
            if len(self.days) > MOST_DAYS or min(self.days) < FIRST_DAY or max(self.days) > LAST_DAY:
                self.days = None
        low, high = int(values.min()), int(values.max())
        new = self.n_rows == len(values)
        # modulo 2**64, as the sums that they are compared with
        wrapped = values.astype(np.uint64)
        self.total += int(wrapped.sum())
        self.squares += int(np.square(wrapped).sum())
        self.rising &= bool(np.all(values[1:] > values[:-1])) and (new or int(values[0]) > self.high)
        self.low, self.high = (low, high) if new else (min(low, self.low), max(high, self.high))
        if called_id(name) and self.different and len(self.numbers) <= MOST_KEPT:
            before = len(self.numbers)
            self.numbers.update(values.tolist())
            self.different = len(self.numbers) - before == len(values)

    @property
    def spoilt(self) -> tuple[int, int, tuple[int, str] | None]:
        """Rows with a value, those that are no number, and the first of these."""
        return self.n_rows - self.n_missing, self.n_others, self.first_other

    def why_id(self, name: str, ids: Ids = "names") -> str | None:
        """`ids.why_id` of the whole column."""
        count = self.n_rows - self.n_missing
        if ids == "values":
            name = judged_by_values(name)
        if is_row_names(name):
            return why_row_names(name)
        why = None
        if self.kinds == {"text"}:
            why = why_words(count, self.different, 0 if self.digits else count - self.n_others)
        elif self.kinds == {"number"} and self.whole:
            why = why_whole_numbers(name, self.n_rows, self.low, self.high, self._all_different)
            if why is None and self.by_task is not None and ids == "names":
                why = self.by_task.why_id(name, self.low, self.high)
        if why is None and self.names is not None and self.names.whole and ids == "names":
            apart = "task" if self.names.several and not self.names.again else None
            why = why_called(self.names.n_different, count, apart)
        return why

    def _all_different(self, consecutive: bool) -> bool:
        n, low, high = self.n_rows, self.low, self.high
        if not consecutive:
            return self.rising or (self.different and len(self.numbers) == n)
        return each_once(n, low, high, (self.total, self.squares))

    def as_column(self) -> Column:
        """As a column, for the choice of features."""
        kind = "text" if "text" in self.kinds else next(iter(self.kinds), "number")
        if kind == "number" and self.whole and self.days:
            self.ways = set(date_ways(Column("number", np.array(sorted(self.days)))))
        if self.ways is None:
            self.ways = set()
        values = np.empty(0, dtype=np.int64 if self.whole else np.float64)
        return Column(kind, values, self)  # type: ignore[arg-type]


class SeenNames:
    """Values of a column that is called an id: how many different ones there are, and whether one comes again within a
    task. Of more than `MOST_KEPT` values no more are looked at."""

    def __init__(self) -> None:
        self.whole, self.again, self.several = True, False, False
        self._values: set[Any] = set()
        self._pairs: set[tuple[int, Any]] = set()

    @property
    def n_different(self) -> int:
        return len(self._values)

    @property
    def relate(self) -> bool:
        """Return whether they say that rows are related."""
        return self.whole and self.again and self.n_different >= FEWEST_NAMES

    def look(self, column: Column, tasks: Array | None) -> None:
        """The next rows."""
        known = ~column.missing
        values = column.values[known]
        if column.kind == "number":
            self.whole &= not np.any(np.mod(values, 1))
        self.whole &= column.kind in ("number", "text")
        if not self.whole or len(self._pairs) > MOST_KEPT:
            return
        self.several |= tasks is not None
        codes = np.zeros(len(values), dtype=np.int64) if tasks is None else tasks[known]
        pairs = set(zip(codes.tolist(), values.tolist(), strict=True))
        before = len(self._pairs)
        self._pairs |= pairs
        self._values.update(values.tolist())
        self.again |= len(self._pairs) - before < len(values)


class SeenByTask:
    """Sums of whole numbers in each task, from which it is known whether they are consecutive there; of a column that
    is called an id all of them, up to `MOST_KEPT`."""

    def __init__(self, called: bool) -> None:
        self._called = called
        self._n = self._low = self._high = np.zeros(0, dtype=np.int64)
        self._sums = np.zeros((2, 0), dtype=np.uint64)
        self._seen: set[tuple[int, int]] = set()
        self._different = True

    def look(self, values: Array, tasks: Array) -> None:
        """The next rows."""
        known = tasks >= 0
        values, tasks = values[known], tasks[known]
        more = int(tasks.max(initial=-1)) + 1 - len(self._n)
        if more > 0:
            wide = np.iinfo(np.int64)
            self._n = np.pad(self._n, (0, more))
            self._low = np.pad(self._low, (0, more), constant_values=wide.max)
            self._high = np.pad(self._high, (0, more), constant_values=wide.min)
            self._sums = np.pad(self._sums, ((0, 0), (0, more)))
        np.add.at(self._n, tasks, 1)
        np.minimum.at(self._low, tasks, values.astype(np.int64))
        np.maximum.at(self._high, tasks, values.astype(np.int64))
        wrapped = values.astype(np.uint64)
        np.add.at(self._sums[0], tasks, wrapped)
        np.add.at(self._sums[1], tasks, np.square(wrapped))
        if self._called and self._different and len(self._seen) <= MOST_KEPT:
            before = len(self._seen)
            self._seen.update(zip(tasks.tolist(), values.tolist(), strict=True))
            self._different = len(self._seen) - before == len(values)

    def why_id(self, name: str, low: int, high: int) -> str | None:
        """`ids.why_id` of the parts."""
        used = np.flatnonzero(self._n)
        if not len(used):
            return None
        consecutive = bool(np.all(self._high[used] - self._low[used] == self._n[used] - 1)) and all(
            each_once(int(self._n[t]), int(self._low[t]), int(self._high[t]), self._sums[:, t].tolist())
            for t in used.tolist()
        )
        different = consecutive or (self._called and self._different and len(self._seen) == int(self._n.sum()))
        return why_in_parts(name, "task", int(self._n.max()), low, high, different, consecutive)


def _each_once(column: Column) -> Column:
    """A column with the same words, where they are known without a look at the rows."""
    if not isinstance(column, CodedColumn):
        return column
    return Column("text", np.array(list(counted_words(column)), dtype=object))


def each_once(n: int, low: int, high: int, sums: Sequence[int]) -> bool:
    """Return whether n numbers in a range of n all differ, by the sums (modulo 2**64) of them and their squares."""
    expected = (n * (low + high)) // 2, sum_of_squares(high) - sum_of_squares(low - 1)
    return all((a - b) % 2**64 == 0 for a, b in zip(expected, sums, strict=True))


def sum_of_squares(n: int) -> int:
    """Of all whole numbers from 1 to n; for n < 0 less those from n + 1 to 0, so that differences are sums."""
    return n * (n + 1) * (2 * n + 1) // 6


class SeenTable:
    """All columns of a table that is read in chunks."""

    def __init__(self, source: str, coded: Iterable[str] = ()) -> None:
        self.source, self.n_rows = source, 0
        self._coded = set(coded)
        self.columns: dict[str, SeenColumn] = {}

    def look(self, chunk: Table, tasks: Array | None = None) -> None:
        """The next chunk, and the codes of its tasks."""
        for name, column in chunk.columns.items():
            if name not in self.columns:
                self.columns[name] = SeenColumn(name in self._coded)
            self.columns[name].look(name, column, self.n_rows, tasks)
        self.n_rows += chunk.n_rows

    def mixed(self) -> list[str]:
        """Columns that held numbers in some chunks and words in others."""
        return [name for name, seen in self.columns.items() if len(seen.kinds) > 1 and "text" in seen.kinds]

    def as_table(self) -> Table:
        """A table without rows, whose columns know what they were."""
        columns = {name: seen.as_column() for name, seen in self.columns.items()}
        return Table(self.source, self.n_rows, columns)
