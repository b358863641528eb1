"""Losses and penalties on the command line: what is offered, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperCommand

from ..members import LOSSES, PENALTIES
from .exit_codes import UsageError

#: option -> the members that it names
MEMBERS = {"loss": LOSSES, "penalty": PENALTIES}


class MemberCommand(TyperCommand):
    """A command whose help fills in the names: to find those of other packages takes too long for every start."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for option in self.params:
            words = getattr(option, "help", None)
            if option.name in MEMBERS and words:
                option.help = words.format(names=", ".join(MEMBERS[option.name].offered()))  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def check_members(asked: Mapping[str, Any], *names: str) -> None:
    """Refuse a loss or a penalty that is not there; other models than "any" have losses of their own."""
    for name in names:
        if name in asked and not MEMBERS[name].offers(asked[name]):
            listed = ", ".join(MEMBERS[name].offered())
            raise UsageError(f"--{name}: one of {listed}; got {asked[name]!r}")
