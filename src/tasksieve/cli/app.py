"""The command line application: the commands of `commands`, as typer knows them."""

from __future__ import annotations

import gc
from importlib import import_module
from inspect import Signature
from itertools import pairwise
from typing import Annotated, Any

import typer

from .commands import COMMANDS, GROUPS, Command
from .errors import guarded
from .members import MemberCommand
from .options import Asked

ABOUT = "Sparse multi-task learning whose every answer carries a proof: from a table on disk to a report."

app = typer.Typer(
    name="tasksieve",
    help=ABOUT,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


#: commands of two words, by their first
groups = {
    name: typer.Typer(name=name, help=about, no_args_is_help=True, pretty_exceptions_enable=False)
    for name, about in GROUPS.items()
}


class OwnCommand(MemberCommand):
    """A command whose ``--skip`` may stand alone, before another option or at the end: then it means all of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words: list[str] = []
        for word, after in pairwise([*args, "-"]):
            words += [word, "*"] if word == "--skip" and after.startswith("-") else [word]
        return super().parse_args(ctx, words)


def add(command: Command) -> None:
    """Make a command known to typer, which reads its options from the signature of a function."""

    def run(**given: Any) -> int:
        module, _, name = command.body.partition(":")
        body = getattr(import_module(f".{module}", __package__), name)
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        return int(body(Asked(command=command.name, **given)))

    parameters = [option.typed_in(command.name) for option in command.options]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    *group, name = command.name.split()
    home = groups[group[0]] if group else app
    home.command(name, cls=OwnCommand, help=command.about)(guarded(run))


for command in COMMANDS:
    add(command)
for name, group in groups.items():
    app.add_typer(group, name=name)


def version(asked: bool) -> None:
    if asked:
        from tasksieve import __version__

        print(__version__)
        raise typer.Exit()


@app.callback()
def root(
    asked: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...
