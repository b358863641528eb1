"""What can stand in the way of an exchange between a coordinator and sites."""

from __future__ import annotations

from collections.abc import Iterable

#: rule and words of a site that failed for reasons that stay there: they may speak of rows
SITE_ERROR = ("site-error", "it could not answer; its own log says why")


class FederatedError(RuntimeError):
    """A message that is not answered, or an answer that is not used.

    Parameters
    ----------
    rule : str
        The name of the rule that was not kept: ``"signature"``, ``"min-sites"``.
    words : str
        What is wrong, in a sentence.

    Examples
    --------
    >>> print(FederatedError("min-sites", "two sites take part, at least three are needed"))
    min-sites: two sites take part, at least three are needed
    """

    #: the same as a message that the refusing site has signed (`messages.seal_refusal`); empty: nobody has
    signed: bytes = b""

    def __init__(self, rule: str, words: str) -> None:
        super().__init__(rule, words)
        self.rule, self.words = rule, words

    def __str__(self) -> str:
        return f"{self.rule}: {self.words}"


class SiteSilent(FederatedError):
    """Sites that have not replied within the patience of a transport; the same round may be asked again.

    Parameters
    ----------
    names : iterable of str
        Of the sites.

    Examples
    --------
    >>> SiteSilent(["north", "east"]).names
    ('east', 'north')
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(sorted(names))
        super().__init__("site-silent", f"no reply from {', '.join(self.names)}")

    def __reduce__(self) -> tuple[type[SiteSilent], tuple[tuple[str, ...]]]:
        return SiteSilent, (self.names,)
