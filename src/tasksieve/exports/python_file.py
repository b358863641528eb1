"""An export as plain Python: a file without an import statement that predicts one row, a dict, at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .description import PROBABLE, SEVERAL, Description, Score, Task

_HEAD = '''"""{model}, written by tasksieve {version}. Plain Python: nothing is imported.

predict(row{task}) predicts one row: a dict with the values of the inputs. A value may be a number or the text of one;
None, "" and NaN are missing.{about}
"""
'''

_NUMBERS = """
def _missing(value):
    return value is None or value != value or value == ""


def _number(name, value):
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name!r} is {value!r}, which is no number") from None
    if found - found != 0.0:
        raise ValueError(f"{name!r} is {value!r}: a number must be finite")
    return found


def _given(row, name):
    value = row.get(name)
    if _missing(value):
        raise ValueError(f"{name!r} is missing")
    return _number(name, value)


def _total(row, score):
    start, offset, plain, others = score
    total = start
    try:
        for name, weight in plain:
            total += weight * row[name]
        strange = total - total != 0.0
    except (KeyError, TypeError, OverflowError):
        strange = True
    if strange:  # a text, a missing value: slowly, to say which
        total = start
        for name, weight in plain:
            total += weight * _given(row, name)
    for feature, weight, fill in others:
        total += weight * _feature(row, FEATURES[feature], fill)
    if offset is not None:
        total += _given(row, offset)
    return float(total)


def _own(row, task):
    if task is None and TASK_COLUMN is not None:
        task = row.get(TASK_COLUMN)
    if task is None and len(TASKS) == 1:
        return next(iter(TASKS.values()))
    if task not in TASKS:
        task = next((name for name in TASKS if str(name) == str(task)), task)
    if task is None or task not in TASKS:
        raise ValueError(f"there is no task {task!r}; known are {list(TASKS)[:20]}")
    return TASKS[task]


def score(row, task=None):
    \"\"\"The linear score of a row; a list of them where there is one for each class.\"\"\"
    parts = _own(row, task)[3]
    return _total(row, parts[0]) if len(parts) == 1 else [_total(row, part) for part in parts]

"""

_FEATURE = """
def _feature(row, feature, fill):
    name, coding, of, centre, scale = feature
    value = row.get(name)
    if coding == "missing":
        found = 1.0 if _missing(value) else 0.0
    elif _missing(value):
        if fill is None:
            raise ValueError(f"{name!r} is missing")
        found = fill
    elif coding == "equals":
        found = 1.0 if _word(name, value) == of else 0.0
    elif coding == "part":
        found = _part(name, value, of)
    else:
        found = _number(name, value)
    return (found - centre) / scale

"""

_WORD = """
def _word(name, value):
    words, numeric = CATEGORIES[name]
    found = _number(name, value) if numeric else str(value)
    if found not in words:
        raise ValueError(f"{name!r} is {value!r}, which the model does not know")
    return found

"""

_PART = """
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _read_date(text, way):
    # year, month, day, hours: digits and names of months in the order of the directives of `way`
    if way == "ISO8601":
        way = "%Y-%m-%d %H:%M:%S" if len(text) > 16 else "%Y-%m-%d %H:%M" if len(text) > 10 else "%Y-%m-%d"
        way, text = way[:5] if len(text) == 7 else way, text.replace("T", " ")
    found, at, k = {"d": 1, "H": 0, "M": 0, "S": 0.0}, 0, 0
    while k < len(way):
        if way[k] != "%":
            if text[at : at + 1] != way[k]:
                return None
            at, k = at + 1, k + 1
            continue
        kind, end = way[k + 1], at
        most = {"Y": 4, "b": 3, "S": 9}.get(kind, 2)
        while end < len(text) and end - at < most and (text[end].isalnum() or kind == "S" and text[end] == "."):
            end += 1
        word = text[at:end]
        if kind == "b":
            if word.lower() not in _MONTHS:
                return None
            found["m"] = 1 + _MONTHS.index(word.lower())
        elif not word.replace(".", "", 1).isdigit():
            return None
        else:
            found[kind] = float(word) if kind == "S" else int(word)
        at, k = end, k + 2
    if at < len(text):
        return None
    return found["Y"], found["m"], found["d"], found["H"] + found["M"] / 60.0 + found["S"] / 3600.0


def _part(name, value, part):
    if hasattr(value, "year"):  # a date or a time of Python, of pandas
        if getattr(value, "tzinfo", None) is not None:
            raise ValueError(f"{name!r} has a time zone: give it in UTC, without one")
        seconds = getattr(value, "second", 0) + getattr(value, "microsecond", 0) / 1e6
        found = value.year, value.month, value.day, getattr(value, "hour", 0) + getattr(value, "minute", 0) / 60.0
        found = (*found[:3], found[3] + seconds / 3600.0)
    else:
        text = str(int(value)) if isinstance(value, float) else str(value)
        found = _read_date(text.strip(), WAYS[name] or "ISO8601")
    year, month, day, hours = found or (0, 0, 0, 0.0)
    leap = month == 2 and (year % 4 == 0 and year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _LENGTHS[month - 1] + leap or not 0.0 <= hours < 24.0:
        raise ValueError(f"{name!r} is {value!r}, which is no date as {WAYS[name] or '2024-01-31'}")
    if part in ("year", "month", "day"):
        return float({"year": year, "month": month, "day": day}[part])
    if part == "hour":
        return hours
    before = year - 1 if month < 3 else year  # years that begin in March
    days = 365 * before + before // 4 - before // 100 + before // 400
    days += (153 * ((month + 9) % 12) + 2) // 5 + day - 719469
    return days + hours / 24.0 if part == "days" else float((days + 3) % 7)

"""

_EXP = """
def _exp(x):
    if x > 709.782712893384:
        return 1e999
    # e is larger than the double below by 1.4e-16: the second factor makes up for it
    return 2.718281828459045 ** x * (1.0 + 5.31823770661e-17 * x) if x > -746.0 else 0.0

"""

_CHANCES = """
def _sigmoid(x):
    if x >= 0.0:
        return 1.0 / (1.0 + _exp(-x))
    small = _exp(x)
    return small / (1.0 + small)


def _between(low, high):
    # the tail in which less cancels
    low, high = (-high, -low) if low + high > 0.0 else (low, high)
    return max(_sigmoid(high) - _sigmoid(low), 0.0)


def _chances(link, thresholds, scores):
    if link == "logistic":
        return [_sigmoid(-scores[0]), _sigmoid(scores[0])]
    if link == "ordinal":
        ends = [-1e999, *(threshold - scores[0] for threshold in thresholds), 1e999]
        return [_between(low, high) for low, high in zip(ends[:-1], ends[1:])]
    if link == "softmax":
        top = max(scores)
        each = [_exp(value - top) for value in scores]
    else:  # one-vs-rest
        each = [max(_sigmoid(value), 1e-300) for value in scores]
    total = sum(each)
    return [value / total for value in each]


def predict_proba(row, task=None):
    \"\"\"Probabilities of the classes: a dict.\"\"\"
    link, classes, thresholds, parts = _own(row, task)
    if link not in ("logistic", "softmax", "one-vs-rest", "ordinal"):
        raise ValueError(f"scores of link {link!r} are no probabilities")
    return dict(zip(classes, _chances(link, thresholds, [_total(row, part) for part in parts])))

"""

_HAZARD = """
def hazard_ratio(row, task=None):
    \"\"\"The hazard relative to the baseline, the exponential of what `predict` gives.\"\"\"
    link, _, _, parts = _own(row, task)
    if link != "log-hazard":
        raise ValueError("the task has no hazard")
    return _exp(_total(row, parts[0]))

"""


def python_text(found: Description) -> str:
    """The text of the file: ASCII, names and labels as Python writes them."""
    codings = {own.coding for own in found.features}
    links = {task.link for task in found.tasks}
    classes = any(task.classes for task in found.tasks)
    about = ["score(row, task) is the linear score."]
    about += ["predict_proba(row, task) has the probabilities of the classes."] if links & set(PROBABLE) else []
    about += ["hazard_ratio(row, task) is the exponential of a prediction."] if "log-hazard" in links else []
    lines = [
        _HEAD.format(
            model=found.model,
            version=found.version,
            task="" if len(found.tasks) == 1 else ", task",
            about="".join(f"\n{line}" for line in about),
        ),
        f"INPUTS = {_listed(map(_plain, found.columns))}",
        f"TASK_COLUMN = {_plain(found.task_column)}",
    ]
    plain = {j for j, own in enumerate(found.features) if own.coding == "value" and own.fill is None}
    plain = {j for j in plain if (found.features[j].centre, found.features[j].scale) == (0.0, 1.0)}
    if len(plain) < len(found.features):
        numeric = {j for j, own in enumerate(found.features) if found.inputs[own.input].numeric}
        lines.append("# input, coding, word or part, centre, scale")
        features = (
            f"({_plain(found.inputs[own.input].name)}, {_plain(own.coding)}, "
            f"{_plain(float(own.of) if j in numeric and own.of is not None else own.of)}, "
            f"{own.centre!r}, {own.scale!r})"
            for j, own in enumerate(found.features)
        )
        lines.append(f"FEATURES = {_listed(features)}")
    if "equals" in codings:
        known = {own.name: own for own in found.inputs if own.kind == "category"}
        words = {name: [float(w) if own.numeric else w for w in own.categories] for name, own in known.items()}
        each = (
            f"{_plain(name)}: ({{{', '.join(map(_plain, of))}}}, {known[name].numeric})" for name, of in words.items()
        )
        lines.append(f"CATEGORIES = {{{', '.join(each)}}}")
    if "part" in codings:
        ways = (f"{_plain(own.name)}: {_plain(own.way)}" for own in found.inputs if own.kind == "date")
        lines.append(f"WAYS = {{{', '.join(ways)}}}")
    lines.append("# task: link, classes, thresholds, and for each score: intercept, offset, inputs, other features")
    tasks = (f"{_plain(own.name)}: {_task(found, t, plain)}" for t, own in enumerate(found.tasks))
    lines.append("TASKS = {\n" + "".join(f"{task},\n" for task in tasks) + "}\n")
    code = [_NUMBERS]
    code += [_FEATURE] if len(plain) < len(found.features) else []
    code += [_WORD] if "equals" in codings else []
    code += [_PART] if "part" in codings else []
    code += [_EXP] if links & {*PROBABLE, "exp", "log-hazard"} else []
    code += [_CHANCES] if links & set(PROBABLE) else []
    code += [_HAZARD] if "log-hazard" in links else []
    return "\n".join(lines) + "\n".join([*code, _predict(links, classes)])


def _predict(links: set[Any], classes: bool) -> str:
    """The function `predict`, of the links that there are."""
    said = "class" if classes and all(link in (*PROBABLE, "sign", "argmax") for link in links) else "number"
    said = "class, or number" if classes and said == "number" else said
    lines = [
        "",
        "def predict(row, task=None):",
        f'    """Predict the {said} of one row, of its task."""',
        "    link, classes, thresholds, parts = _own(row, task)",
        "    scores = [_total(row, part) for part in parts]",
    ]
    if links & {"logistic", "sign"}:
        lines += ['    if link in ("logistic", "sign"):', "        return classes[scores[0] > 0.0]"]
    if "ordinal" in links:
        lines += ['    if link == "ordinal":', "        scores = _chances(link, thresholds, scores)"]
    if links & {*SEVERAL, "ordinal"}:
        lines += ["    if classes is not None:", "        return classes[scores.index(max(scores))]"]
    if "exp" in links:
        lines += ['    if link == "exp":', "        return _exp(scores[0])"]
    return "\n".join([*lines, "    return scores[0]", ""])


def _task(found: Description, t: int, plain: set[int]) -> str:
    own: Task = found.tasks[t]
    classes = None if own.classes is None else _listed(map(_plain, own.classes))
    thresholds = None if own.thresholds is None else _listed(map(_plain, own.thresholds))
    scores = _listed(_score(found, t, score, plain) for score in own.scores)
    return f"({_plain(own.link)}, {classes}, {thresholds}, {scores})"


def _score(found: Description, t: int, score: Score, plain: set[int]) -> str:
    first = (
        f"({_plain(found.inputs[found.features[j].input].name)}, {weight!r})"
        for j, weight in score.coefficients
        if j in plain
    )
    others = (
        f"({j}, {weight!r}, {_plain(found.features[j].fill_of(t))})"
        for j, weight in score.coefficients
        if j not in plain
    )
    return f"({score.intercept!r}, {_plain(score.offset)}, {_listed(first)}, {_listed(others)})"


def _listed(items: Iterable[str]) -> str:
    """A tuple, an item in each line where it is long."""
    found = list(items)
    inside = ", ".join(found) + ("," if len(found) == 1 else "")
    return f"({inside})" if len(inside) < 90 else "(\n " + ",\n ".join(found) + ",\n)"


def _plain(value: Any) -> str:
    """As Python writes it, in ASCII; infinities as numbers that are too large."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "1e999" if value > 0.0 else "-1e999"
    return ascii(value)
