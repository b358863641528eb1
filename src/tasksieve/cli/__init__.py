"""The command line, ``tasksieve``."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line; without its libraries, say which to install.

    A sixth of a short command's time was spent looking for garbage among modules just imported, where there is none.
    `app` begins to look once the command's modules are there.
    """
    gc.disable()
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        print(
            f"tasksieve: the command line needs {error.name}: pip install 'tasksieve[cli]'", file=sys.stderr
        )
        sys.exit(1)
    from .app import app

    app()
