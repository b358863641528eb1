"""Messages of the library as the command line says them: options in place of parameters and arguments."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..messages import Face, said
from ..parameters import PARAMETERS
from ..runs.registry import MODELS
from .options import OPTIONS

# Arguments of Python that are no parameters of the tables: options under another name, or words.
ARGUMENTS = {
    "X": "the table",
    "categories": "--categories",
    "feature_weights": "weights of features",
    "groups": "--row-groups",
    "losses": "--outcome",
    "n_permutations": "--permutations",
    "n_splits": "--cv",
    "offset": "--offset",
    "q": "--q",  # of quantiles, or of features on a half
    "sample_weight": "--weights",
    "task": "--task",
    "y": "--target",
}


@cache
def _flags() -> dict[str, str]:
    """Parameter -> what is typed for it; of a switch both words, with a slash between them."""
    named = {option.name: option.flags[0] for option in OPTIONS if option.panel not in ("Data", "Run")}
    described = {said.name: said.flag.split(",")[0] for said in PARAMETERS.values() if said.typed or said.option}
    return {**named, **described, **ARGUMENTS}


@cache
def _models() -> dict[str, str]:
    """Class -> what is typed for it."""
    found = {name: f"--model {kind.name}" for kind in MODELS.values() for name in kind.estimators}
    return {**found, **{f"{name}CV": words for name, words in found.items()}}


class _CommandLine(Face):
    """Parameters as they are typed; those without an option, as words."""

    def parameter(self, name: str) -> str:
        words = name.strip("_").replace("_", " ")
        return _flags().get(name, words).partition("/")[0]

    def setting(self, name: str, value: Any) -> str:
        yes, _, no = _flags().get(name, "").partition("/")
        if no:
            return no if str(value) == "False" else yes
        return f"{self.parameter(name)} {value}"

    def estimator(self, name: str) -> str:
        return _models().get(name, name)

    def either(self, python: str, otherwise: str) -> str:
        return otherwise


def in_words(message: object) -> str:
    """An error or a warning, with options for parameters.

    Examples
    --------
    >>> from tasksieve.messages import Message, ParameterError
    >>> in_words(ParameterError("tol", "must be a number >= 0", -1))
    '--tol must be a number >= 0; got -1.'
    >>> in_words(Message("raise {max_iter}, or {tol} if that is enough"))
    'raise --max-iter, or --tol if that is enough'
    """
    return said(message, _CommandLine())
