"""Messages that name parameters, so that Python and the command line can each print them in their own form.

An error or a warning of the library says ``max_iter=5``; the command line says ``--max-iter 5`` of the same fact. A
`Message` keeps the names apart from the words around them, and prints as Python unless another `Face` is given.
"""

from __future__ import annotations

from string import Formatter
from typing import Any


class _NoValue:
    """In the place of a value that an error is not about."""


class Face:
    """How an interface names parameters, their values and estimators: here as they are written in Python."""

    def parameter(self, name: str) -> str:
        """The name of a parameter: ``tol``, ``--tol``."""
        return name

    def setting(self, name: str, value: Any) -> str:
        """A parameter and its value: ``tol=0.1``, ``--tol 0.1``."""
        return f"{name}={value}"

    def estimator(self, name: str) -> str:
        """The name of an estimator: ``MultiTaskLasso``, ``--model lasso``."""
        return name

    def either(self, python: str, otherwise: str) -> str:
        """Which of two wordings is meant: the first is for Python callers."""
        return python


_PYTHON = Face()


class _Part:
    """A part of a message that faces print differently: the method of `Face` that prints it, and its arguments."""

    def __init__(self, method: str, *given: Any) -> None:
        self.method, self.given = method, given

    def said(self, face: Face) -> str:
        return str(getattr(face, self.method)(*self.given))

    def __str__(self) -> str:
        return self.said(_PYTHON)


def either(python: str, otherwise: str = "") -> _Part:
    """One wording for Python callers, another for other faces."""
    return _Part("either", python, otherwise)


def estimator_name(model: Any) -> _Part:
    """The name of an estimator."""
    return _Part("estimator", type(model).__name__)


def parameter_name(name: str) -> _Part:
    """The name of a parameter, where it is not known before the message is made."""
    return _Part("parameter", name)


def setting(name: str, value: Any) -> _Part:
    """A parameter and its value, where the name is not known before the message is made."""
    return _Part("setting", name, value)


class Message(str):
    """Text in which the names of parameters are known.

    Parameters
    ----------
    template : str
        Fields in braces are parameters: ``{tol}`` their name, ``{tol=}`` name and value, as in f-strings. Other fields
        whose values are given by keyword are replaced by those, in the format that they name.
    values : of the fields
        Numbers, words; `either` and `estimator_name` where faces differ.

    Examples
    --------
    >>> Message("no {tol=} in {n} steps: raise {max_iter} or {tol}", tol=0.1, n=5)
    'no tol=0.1 in 5 steps: raise max_iter or tol'
    """

    _parts: tuple[str | _Part, ...]

    def __new__(cls, template: str, **values: Any) -> Message:
        parts: list[str | _Part] = []
        fields = list(Formatter().parse(template))
        settings = {name[:-1] for _, name, _, _ in fields if name is not None and name.endswith("=")}
        for words, name, style, conversion in fields:
            parts.append(words)
            if name is None:
                continue
            if name.endswith("="):
                value = _formatted(values[name[:-1]], style, conversion)
                parts.append(_Part("setting", name[:-1], value))
            elif name in settings or name not in values:
                parts.append(_Part("parameter", name))
            elif isinstance(values[name], _Part):
                parts.append(values[name])
            elif isinstance(values[name], Message):
                parts.extend(values[name]._parts)
            else:
                parts.append(_formatted(values[name], style, conversion))
        return cls._of(parts)

    @classmethod
    def _of(cls, parts: list[str | _Part]) -> Message:
        message = str.__new__(cls, "".join(map(str, parts)))
        message._parts = tuple(parts)
        return message

    def said(self, face: Face) -> str:
        """The message as a face prints it; a sentence keeps its capital letter."""
        words = "".join(part if isinstance(part, str) else part.said(face) for part in self._parts)
        return words[:1].upper() + words[1:] if self[:1].isupper() else words

    def __add__(self, other: str) -> Message:
        more = other._parts if isinstance(other, Message) else (other,)
        return self._of([*self._parts, *more])

    def __reduce__(self) -> Any:
        return _unpickled, (self._parts,)


def _unpickled(parts: tuple[str | _Part, ...]) -> Message:
    return Message._of(list(parts))


def _formatted(value: Any, style: str | None, conversion: str | None) -> str:
    if conversion == "r":
        value = repr(value)
    return format(value, style or "")


def value_error(template: str, **values: Any) -> ValueError:
    """A ValueError with a `Message`."""
    return ValueError(Message(template, **values))


class ParameterError(ValueError):
    """A parameter, or an argument, that is not what its name stands for.

    Parameters
    ----------
    name : str
        Of the parameter.
    words : str
        What it must be, or what is wrong with it: ``"must be a number >= 0"``.
    value : object, optional
        What was given.
    advice : str, optional
        Sentences that follow.

    Examples
    --------
    >>> print(ParameterError("tol", "must be a number >= 0", -1))
    The 'tol' parameter must be a number >= 0; got -1.
    """

    def __init__(self, name: str, words: str, value: Any = _NoValue, advice: str = "") -> None:
        super().__init__(name, words, value, advice)
        self.name, self.words, self.advice = name, words, advice
        self.value = None if value is _NoValue else value

    def __str__(self) -> str:
        return self._text(f"The {self.name!r} parameter", _PYTHON)

    def said(self, face: Face) -> str:
        """The error as a face prints it."""
        return self._text(face.parameter(self.name), face)

    def _text(self, name: str, face: Face) -> str:
        got = "" if self.args[2] is _NoValue else f"; got {self.value!r}"
        advice = f" {said(self.advice, face)}" if self.advice else ""
        return f"{name} {said(self.words, face)}{got}.{advice}"


def said(message: object, face: Face) -> str:
    """What an error, a warning or a text says, in the words of a face; as it stands, where it names no parameters."""
    if isinstance(message, ParameterError | Message):
        return message.said(face)
    if isinstance(message, BaseException) and len(message.args) == 1 and isinstance(message.args[0], Message):
        return message.args[0].said(face)
    return str(message)
