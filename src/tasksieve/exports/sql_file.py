"""An export as SQL: one SELECT that adds predictions to the columns of a table (SQLite, DuckDB, PostgreSQL).

Three steps: parts of dates (where there are any), linear scores, probabilities; then the predictions. They are
materialized, since SQLite computes a column of a step anew wherever it is used. Numbers are written with an exponent,
which makes them doubles, not decimals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..messages import value_error
from .description import PROBABLE, Description, Feature, Input, Score, Task
from .sql_dates import date_parts

MOST_COLUMNS = 2000  # of a table, and of a result, of SQLite


def sql_text(found: Description, table: str) -> str:
    """The statement, for a table of this name."""
    return _Statement(found, table).text()


def number(value: float) -> str:
    """A literal that reads back as the same double."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def literal(value: Any) -> str:
    """A label."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    return number(value) if isinstance(value, float) else "'" + _sound(value).replace("'", "''") + "'"


def name(value: str) -> str:
    """The name of a column or table."""
    return '"' + _sound(value).replace('"', '""') + '"'


def _sound(text: str) -> str:
    if "\0" in text:
        raise value_error("{text!r}: SQL has no words with a zero byte.", text=text)
    return text


def total(terms: Sequence[str]) -> str:
    """A sum whose parentheses keep it flat: SQLite allows a depth of 1000."""
    if len(terms) <= 1:
        return terms[0] if terms else "0e0"
    half = len(terms) // 2
    return f"({total(terms[:half])} + {total(terms[half:])})"


def double(column: str) -> str:
    """A column as a double, NULL where it is missing; SQLite knows no NaN, the others compare it with the word."""
    return f"NULLIF(CAST({column} AS DOUBLE PRECISION), 'NaN')"


class _Statement:
    """A statement in the making: names that are taken, and the columns of each step."""

    def __init__(self, found: Description, table: str) -> None:
        self.found, self.table = found, table
        self.taken: set[str] = set()
        for column in found.columns:
            if column.lower() in self.taken:
                raise value_error("{column!r}: SQL does not tell large letters from small ones.", column=column)
            self.taken.add(column.lower())
        self.parts: dict[int, str] = {}  # columns with parts of dates
        self.linear: list[str] = []
        self.chances: list[str] = []
        self.answers: list[str] = []

    def new(self, title: str) -> str:
        """A name that no input has."""
        while title.lower() in self.taken:
            title += "*"
        self.taken.add(title.lower())
        return name(title)

    def text(self) -> str:
        found = self.found
        dated = []
        for j, feature in enumerate(found.features):
            if feature.coding == "part":
                own = found.inputs[feature.input]
                self.parts[j] = self.new(feature.name)
                dated.append(f"{date_parts(f'r.{name(own.name)}', own.way, str(feature.of))} AS {self.parts[j]}")
        if found.task_column is not None and found.alike:
            self._task(found.tasks, "")
        else:
            for t, task in enumerate(found.tasks):
                self._task([task], f" ({task.name})" if len(found.tasks) > 1 else "", first=t)
        added = len(dated) + len(self.linear) + len(self.chances) + len(self.answers)
        if len(found.columns) + added > MOST_COLUMNS:
            raise value_error(
                "{n:,} columns of inputs and predictions: a table of SQL has {most:,} at most. Write JSON, Python or "
                "ONNX.",
                n=len(found.columns) + added, most=MOST_COLUMNS,
            )  # fmt: skip
        steps = [("dated", dated), ("linear", self.linear), ("chances", self.chances), ("", self.answers)]
        lines = [f"-- {found.model}, written by tasksieve {found.version}: predictions beside the columns of a table."]
        source, steps = name(self.table), [(step, columns) for step, columns in steps if columns]
        for k, (step, columns) in enumerate(steps):
            title = f"{step}_step" if step == self.table.lower() else step  # a step of its name would hide the table
            last = k == len(steps) - 1
            opening = "" if last else ("WITH " if k == 0 else "") + f"{title} AS MATERIALIZED (\n"
            listed = "".join(f",\n  {column}" for column in columns)
            closing = ";" if last else "\n)" + ("" if k == len(steps) - 2 else ",")
            lines.append(f"{opening}SELECT r.*{listed}\nFROM {source} AS r{closing}")
            source = title
        return "\n".join(lines) + "\n"

    def _task(self, tasks: Sequence[Task], suffix: str, first: int = 0) -> None:
        """Scores and what they mean: of one task, or of several alike among which the row's own is chosen."""
        task = tasks[0]
        plain = task.link in ("identity", "log-hazard")
        titles = [f"linear score of {label}" for label in task.classes or ()] if len(task.scores) > 1 else []
        scores = []
        for k in range(len(task.scores)):
            title = self.new(f"{titles[k] if titles else 'prediction' if plain else 'linear score'}{suffix}")
            each = [self._score(own.scores[k], first + t) for t, own in enumerate(tasks)]
            self.linear.append(f"NULLIF({self._of_row(tasks, each)}, 'NaN') AS {title}")
            scores.append(f"r.{title}")
        if task.link == "log-hazard":
            self.answers.append(f"exp({scores[0]}) AS {self.new(f'hazard ratio{suffix}')}")
        elif task.link == "exp":
            self.answers.append(f"exp({scores[0]}) AS {self.new(f'prediction{suffix}')}")
        if task.classes is None:
            return
        ranked = scores
        if task.link in PROBABLE:
            chances = [self._chances(tasks, k, scores) for k in range(len(task.classes))]
            ranked = []
            for label, chance in zip(task.classes, chances, strict=True):
                title = self.new(f"probability of {label}{suffix}")
                self.chances.append(f"{chance} AS {title}")
                ranked.append(f"r.{title}")
        labels = list(map(literal, task.classes))
        if task.link in ("logistic", "sign"):
            answer = f"CASE WHEN {scores[0]} > 0 THEN {labels[1]} WHEN {scores[0]} <= 0 THEN {labels[0]} END"
        else:
            ranked = ranked if task.link == "ordinal" else scores
            answer = _largest(ranked, labels)
        self.answers.append(f"{answer} AS {self.new(f'prediction{suffix}')}")

    def _of_row(self, tasks: Sequence[Task], each: Sequence[str]) -> str:
        """What a row's own task has; NULL of a task that is not known, or of another one."""
        column = self.found.task_column
        if column is None or (len(set(each)) == 1 and len(each) == len(self.found.tasks) > 1):
            return each[0]
        cases = "".join(f" WHEN {literal(own.name)} THEN {one}" for own, one in zip(tasks, each, strict=True))
        return f"CASE r.{name(column)}{cases} END"

    # --- one score -----------------------------------------------------------------------------------------------

    def _score(self, score: Score, t: int) -> str:
        found = self.found
        terms = [number(score.intercept)]
        words: dict[int, list[tuple[Feature, float]]] = {}
        for j, weight in score.coefficients:
            feature = found.features[j]
            if feature.coding == "equals":
                words.setdefault(feature.input, []).append((feature, weight))
            else:
                terms.append(f"{number(weight)} * {self._value(j, t)}")
        terms += [_of_word(found.inputs[k], own, t) for k, own in words.items()]
        if score.offset is not None:
            terms.append(f"r.{name(score.offset)}")
        return total(terms)

    def _value(self, j: int, t: int) -> str:
        feature = self.found.features[j]
        own = self.found.inputs[feature.input]
        column = f"r.{name(own.name)}"
        if feature.coding == "missing":
            value = f"CASE WHEN {double(column) if own.kind == 'number' else column} IS NULL THEN 1e0 ELSE 0e0 END"
        elif feature.coding == "part":
            value = f"r.{self.parts[j]}"
        else:
            value = f"CAST({column} AS DOUBLE PRECISION)" if feature.fill is None else double(column)
        fill = feature.fill_of(t)
        if fill is not None:
            value = f"COALESCE({value}, {number(fill)})"
        if (feature.centre, feature.scale) == (0.0, 1.0):
            return value
        return f"(({value} - {number(feature.centre)}) / {number(feature.scale)})"

    # --- what scores mean ----------------------------------------------------------------------------------------

    def _chances(self, tasks: Sequence[Task], k: int, scores: Sequence[str]) -> str:
        """The probability of class k."""
        link = tasks[0].link
        if link == "logistic":
            return _sigmoid(scores[0], "-" if k else "")
        if link == "ordinal":
            return self._of_row(tasks, [_between(own.thresholds or (), k, scores[0]) for own in tasks])
        if link == "softmax":
            others = [f"exp({score} - {scores[k]})" for j, score in enumerate(scores) if j != k]
            return f"1e0 / {total(['1e0', *others])}"
        each = [f"CASE WHEN {score} < -690 THEN 1e-300 ELSE {_sigmoid(score, '-')} END" for score in scores]
        return f"{each[k]} / {total(each)}"


def _of_word(own: Input, features: Sequence[tuple[Feature, float]], t: int) -> str:
    """What a column of words adds to a score: a number for each word, NULL for one that is not known."""

    def added(value: Iterable[float]) -> str:
        pairs = zip(features, value, strict=True)
        return number(sum(weight * ((x - of.centre) / of.scale) for (of, weight), x in pairs))

    column = f"r.{name(own.name)}"
    compared = double(column) if own.numeric else column
    fills = [of.fill_of(t) for of, _ in features]
    known = [fill for fill in fills if fill is not None]
    cases = [f"WHEN {compared} IS NULL THEN {added(known)}"] if len(known) == len(fills) else []
    for word in own.categories:
        meant = number(float(word)) if own.numeric else literal(word)
        cases.append(f"WHEN {compared} = {meant} THEN {added(float(of.of == word) for of, _ in features)}")
    return f"CASE {' '.join(cases)} END"


def _sigmoid(score: str, sign: str) -> str:
    """Of the score where the sign is -."""
    return f"1e0 / (1e0 + exp({sign}{score}))"


def _between(thresholds: Sequence[float], k: int, score: str) -> str:
    """The probability between two thresholds, by the tail in which less cancels."""
    ends = [float("-inf"), *thresholds, float("inf")]
    low, high = ends[k], ends[k + 1]
    if low == high:
        return f"0e0 * {score}"
    if low == float("-inf"):
        return f"0e0 * {score} + 1e0" if high == float("inf") else f"1e0 / (1e0 + exp({score} - {_number(high)}))"
    if high == float("inf"):
        return f"1e0 / (1e0 + exp({_number(low)} - {score}))"
    above = f"1e0 / (1e0 + exp({_number(low)} - {score})) - 1e0 / (1e0 + exp({_number(high)} - {score}))"
    below = f"1e0 / (1e0 + exp({score} - {_number(high)})) - 1e0 / (1e0 + exp({score} - {_number(low)}))"
    return f"CASE WHEN {score} < {number(0.5 * low + 0.5 * high)} THEN {above} ELSE {below} END"


def _number(value: float) -> str:
    """In parentheses, so that no two signs meet."""
    return f"({number(value)})"


def _largest(columns: Sequence[str], labels: Sequence[str]) -> str:
    """The label of the first column that none exceeds."""
    cases = []
    for k, label in enumerate(labels):
        tests = [f"{columns[k]} >= {other}" for j, other in enumerate(columns) if j != k]
        cases.append(f"WHEN {' AND '.join(tests)} THEN {label}")
    return f"CASE {' '.join(cases)} END"
