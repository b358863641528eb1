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
        _import_libraries()
        from .app import app
    except (ImportError, MemoryError, OSError) as error:
        from .lacking import is_lack_of_memory, memory_words

        if not is_lack_of_memory(error):
            raise
        print(f"tasksieve: {memory_words(error)}", file=sys.stderr)
        sys.exit(1)
    app()


def _import_libraries() -> None:
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        if not isinstance(error, ModuleNotFoundError) and error.name not in ("rich", "typer"):
            raise
        print(
            f"tasksieve: the command line needs {error.name}: pip install 'tasksieve[cli]'", file=sys.stderr
        )
        sys.exit(1)
