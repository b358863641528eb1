"""The library's messages in the words of the command line: options for parameters, no Python.

The library speaks to people who write Python: it names parameters (``The 'tol' parameter``, ``max_iter=5``), attributes
(``tasks_``) and calls. All that it says, errors and warnings, goes through `spoken` once, on its way to stderr or the
log. What stands in quotes comes from the user's files and is left as it is.
"""

from __future__ import annotations

import re
from functools import cache

from ..runs.registry import MODELS

# Arguments of Python that are options under another name, or words.
ARGUMENTS = {
    "C": "--C",
    "alphas": "--alphas",
    "class_weight": "--class-weight",
    "covariance": "the covariance",
    "cv": "--cv",
    "device": "--device",
    "feature_weights": "weights of features",
    "fold": "the fold",
    "groups": "--row-groups",
    "n_alphas": "--alphas",
    "n_jobs": "--threads",
    "n_pairs": "--pairs",
    "n_permutations": "--permutations",
    "n_splits": "--cv",
    "offset": "--offset",
    "q": "--q",  # of quantiles, or of features on a half
    "random_state": "--seed",
    "sample_weight": "--weights",
    "task": "--task",
    "tol_scaling": "the scaling of tolerances",
    "y": "--target",
}

# Parameter -> option, and of switches what is typed for True and for False; `options` tells both (`learn`).
OPTION_OF: dict[str, str] = {}
SWITCHES: dict[str, tuple[str, str]] = {}

# What is said in Python for which there are better words.
PHRASES = (
    (r"\bn[_ ]samples (\d+)", r"\1 rows"),
    (r" \((see|in the order of) tasks_\)", ""),
    (r",? in the order of tasks_", ", tasks in their order"),
    (r"\btasks_\b", "the tasks"),
    (r"\bcoef_\b", "the coefficients"),
    (r"\balpha_max\b", "the largest alpha"),
    (r"\b[Ii]nput X\b", "the table"),
    (r"\b[Ii]nput y\b", "the target"),
    (r" or a tasksieve\.\w+\.\w+", ""),
    (r"\bdtype\b", "type"),
    (r"\bNone\b", "none"),
    (r"\bTrue\b", "yes"),
    (r"\bFalse\b", "no"),
)

# Names that stand in a sentence by themselves.
BARE = re.compile(r"(?<![-\w.\x00/])([A-Za-z]\w*_\w+|tol|cv|alphas|eps|pfer|q|groups(?=:| has| was))\b(?!\()")
# What comes from the user's files: words in quotes, and paths.
QUOTED = re.compile(
    r"'[^']*'|\"[^\"]*\"|(?<![\w(])[\w.~-]*/[\w./~-]*\w|\b[\w-]+\.(?:csv|tsv|npz|parquet|zarr|bed|bim|fam)\b"
)
# Code: calls, attributes, subscripts, keyword arguments, names that are no words.
CODE = re.compile(
    r"\b(np|pd|sklearn|pandas|scipy|torch|tasksieve|ts|networkx|joblib)\.\w|\w\((?!s\))\w*\)|\w+\.\w+\(|\]\.|\w\[[:\d]|"
    r"\b[a-z]\w*=(?!=)|\bfor \w+ in\b|\b[A-Za-z]+_\w*\b|\b[a-z]+[A-Z]\w*|\bdtype\b|\bndarray\b|\bValueError\b"
)


def learn(parameter: str, flag: str, switch: bool) -> None:
    """The option of a parameter: ``--tol``, or ``--positive/--any-sign``."""
    yes, _, no = flag.partition("/")
    OPTION_OF[parameter] = yes
    if switch and no:
        SWITCHES[parameter] = (yes, no)


def _options() -> dict[str, str]:
    """Parameter -> option."""
    return {**OPTION_OF, **ARGUMENTS}


@cache
def _models() -> dict[str, str]:
    """Class -> what is typed for it."""
    found = {name: f"--model {kind.name}" for kind in MODELS.values() for name in kind.estimators}
    return {**found, **{f"{name}CV": words for name, words in found.items()}}


def spoken(message: str) -> str:
    """A message of the library as the command line says it.

    Examples
    --------
    >>> spoken("The 'tol' parameter must be a number >= 0; got -1.")
    '--tol must be a number >= 0; got -1.'
    >>> spoken("raise max_iter, or tol if that is enough")
    'raise --max-iter, or --tol if that is enough'
    """
    options = _options()
    words = re.sub(r"\b(?:[Tt]he )?'(\w+)' parameter\b", lambda m: options.get(m[1], _plain(m[1])), message)
    kept: list[str] = []

    def hide(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\x00{len(kept) - 1}\x00"

    words = QUOTED.sub(hide, words)
    words = re.sub(r"\b([A-Za-z]\w*)\b", lambda m: _models().get(m[1], m[1]), words)
    words = re.sub(r"(?<![-\w.])(\w+)=(True|False)\b", _switch, words)
    words = re.sub(r"(?<![-\w.])(\w+)=([^\s=,;:)]*[^\s=,;:).])", lambda m: f"{_name(m[1])} {m[2]}", words)
    words = re.sub(r"\bX\[:, (\d+)\]", lambda m: f"number {int(m[1]) + 1}", words)
    words = re.sub(r"\b[Xy]\[(\d+)\]", lambda m: f"task number {int(m[1]) + 1}", words)
    words = re.sub(r"\b([A-Za-z]\w*)\[(\d+)(?:, \d+)*\]", lambda m: f"{_name(m[1])} number {int(m[2]) + 1}", words)
    for pattern, better in PHRASES:
        words = re.sub(pattern, better, words)
    words = BARE.sub(_bare, words)
    words = re.sub(r"^(offset|task|y)(?=:| is | has | must | mixes | holds )", lambda m: options[m[1]], words)
    words = _without_code(words)
    words = re.sub("\x00(\\d+)\x00", lambda m: kept[int(m[1])], words)
    return words[:1].upper() + words[1:] if message[:1].isupper() and words[:1].isalpha() else words


def _plain(name: str) -> str:
    """A name as words."""
    return name.strip("_").replace("_", " ")


def _name(name: str) -> str:
    return _options().get(name, _plain(name))


def _bare(match: re.Match[str]) -> str:
    return _name(match[1])


def _switch(match: re.Match[str]) -> str:
    yes, no = SWITCHES.get(match[1], (f"{_plain(match[1])}", f"no {_plain(match[1])}"))
    return yes if match[2] == "True" else no


def _without_code(words: str) -> str:
    """Leave out brackets and sentences of advice that are about Python; what is wrong is said before them."""
    words = re.sub(r" ?\(([^()]*(?:\([^()]*\)[^()]*)*)\)", lambda m: "" if CODE.search(m[1]) else m[0], words)
    sentences = re.split(r"(?<=[.;:])\s+(?=[A-Z\"'\x00-])", words)
    kept = [s for k, s in enumerate(sentences) if k == 0 or not CODE.search(s)]
    kept[0] = _without_clauses(kept[0])
    text = " ".join(kept)
    return text if text.endswith(".") else text.rstrip(",;:") + ("." if text.endswith((",", ";", ":")) else "")


def _without_clauses(sentence: str) -> str:
    """A first sentence, which says what is wrong, without the clauses that speak Python."""
    if not CODE.search(sentence):
        return sentence
    first, *others = re.split(r"(?<=[,:;])\s+", sentence)
    return " ".join([first, *(clause for clause in others if not CODE.search(clause))])


def with_rows(message: str) -> str:
    """A message about a table that says, once, how its rows are counted.

    Examples
    --------
    >>> with_rows("t.csv: row 3, column 'a' is missing.")
    "t.csv: row 3, column 'a' is missing. (Row 1 is the first row of data, the header is not counted.)"
    """
    if "row 1 is the first" in message.lower() or not re.search(r"\brow \d", QUOTED.sub("", message)):
        return message
    return f"{message} (Row 1 is the first row of data, the header is not counted.)"
