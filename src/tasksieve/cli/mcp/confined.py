"""The one folder that the tools may see, and what no path in it may do."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from ...runs import RunError, RunFolder
from ...runs.folder import CONFIG, PIECES
from ...tables.frames import ENDINGS, REMEDIES
from ...tables.packed import PACKED
from ..feature_groups import GROUP_WORDS
from ..graph_file import GRAPH_WORDS

LONGEST = 1000  # characters of a path
#: a run that was asked for with these reads files that are no tables: such runs are for the command line
OTHER_FILES = (
    "bfile", "pfile", "vcf_zarr", "bgen", "pheno", "covar", "remove", "extract", "exclude", "cluster", "config",
    "save_problem",
)  # fmt: skip
#: these may be words for what would be in a file
NAMED_FILES = {"graph": GRAPH_WORDS, "task_graph": GRAPH_WORDS, "feature_groups": GROUP_WORDS}


class Refused(ValueError):
    """A call that is not carried out; the message says what would be."""


class ConfinedFolder:
    """Paths below one folder, as a caller names them: relative to it, or absolute and inside.

    - `path`: The folder, without links.
    - `most_bytes`: Of a file that is read.

    Nothing outside is looked at, not even whether it is there: all refusals of such paths read alike.
    """

    def __init__(self, path: str | os.PathLike[str], most_bytes: float) -> None:
        self.path = Path(os.path.realpath(path))
        self.most_bytes = most_bytes

    def file(self, given: str, argument: str) -> str:
        """An existing ordinary file."""
        found = self._inside(given, argument)
        try:
            state = os.stat(found, follow_symlinks=False)
        except OSError:
            raise Refused(
                f"{argument}: there is no file {given!r} in the folder; {self._there(found)}"
            ) from None
        if stat.S_ISDIR(state.st_mode):
            raise Refused(f"{argument}: {given!r} is a folder; name the files in it: {self._named(found)}")
        if not stat.S_ISREG(state.st_mode):
            raise Refused(
                f"{argument}: {given!r} is no ordinary file (a device, a pipe, a socket); copy its content"
            )
        if state.st_size > self.most_bytes:
            raise Refused(
                f"{argument}: {given!r} has {state.st_size:,} bytes, more than the {self.most_bytes:,.0f} that this "
                "server reads; start it with a larger --max-file, or use the command line"
            )
        return str(found)

    def table(self, given: str, argument: str) -> str:
        """A file whose name says that it is a table."""
        self._inside(given, argument)
        ending = Path(given).suffix.lower()
        if ending in REMEDIES:
            raise Refused(f"{argument}: {ending} files are not read: {REMEDIES[ending]}")
        if ending not in (*ENDINGS, *PACKED):
            raise Refused(
                f"{argument}: {given!r} is no table by its name; known endings are {', '.join(ENDINGS)}"
            )
        return self.file(given, argument)

    def run(self, given: str, argument: str) -> str:
        """An existing run folder that holds no links and was asked for with files of this folder only."""
        found = self._inside(given, argument)
        if not found.is_dir():
            raise Refused(
                f"{argument}: there is no run folder {given!r}; {self._there(found)}. fit leaves one"
            )
        self._without_links(found, given, argument)
        if not (found / CONFIG).is_file():
            raise Refused(f"{argument}: {given!r} is no run folder: it has no {CONFIG}; fit leaves one")
        self._own_files(found, argument)
        return str(found)

    def output(self, given: str, argument: str) -> str:
        """A folder that is not there yet, or that of an earlier run."""
        found = self._inside(given, argument)
        if found == self.path:
            raise Refused(f"{argument}: name a folder for the run inside of the folder: runs/first, say")
        if found.is_dir():
            self._without_links(found, given, argument)
            if (found / CONFIG).is_file():
                self._own_files(found, argument)
        elif os.path.lexists(found):
            raise Refused(f"{argument}: {given!r} is a file; name a folder that is not there yet")
        above = found.parent
        while not above.exists():
            above = above.parent
        if not above.is_dir():
            raise Refused(
                f"{argument}: {given!r}: {self.said(str(above))} is a file, not a folder; name another place"
            )
        return str(found)

    def said(self, words: str) -> str:
        """Words of a command, without the place of the folder."""
        return words.replace(f"{self.path}{os.sep}", "").replace(str(self.path), ".")

    # -- what is refused --------------------------------------------------------------------------------------------

    def _inside(self, given: str, argument: str) -> Path:
        """Where a path leads, links followed; an error where that is not in the folder."""
        if not given or len(given) > LONGEST:
            raise Refused(f"{argument}: a path of 1 to {LONGEST} characters; got {len(given)}")
        if any(ord(sign) < 32 or ord(sign) == 127 or 0xD800 <= ord(sign) < 0xE000 for sign in given):
            raise Refused(f"{argument}: a path without control characters; rename the file")
        if ".." in Path(given).parts:
            raise Refused(
                f"{argument}: '..' is not followed; name a path below the folder, from the folder on"
            )
        outside = Refused(
            f"{argument}: {given!r} is not inside the folder that this server was given; put the file there, or start "
            "tasksieve mcp with --folder of where it is"
        )
        try:
            found = Path(os.path.realpath(self.path / given))
        except (OSError, ValueError):  # a circle of links, a name that the file system does not take
            raise outside from None
        if found != self.path and not found.is_relative_to(self.path):
            raise outside
        if any(len(os.fsencode(part)) > 255 for part in found.parts):
            raise Refused(
                f"{argument}: a name in {given[:50]!r}... is longer than file systems take (255 bytes)"
            )
        return found

    def _without_links(self, run: Path, given: str, argument: str) -> None:
        pieces = run / PIECES
        inner = os.scandir(pieces) if pieces.is_dir() and not pieces.is_symlink() else ()
        for entry in (*os.scandir(run), *inner):
            if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
                raise Refused(
                    f"{argument}: {given!r} holds {entry.name!r}, a link or no ordinary file, which no run has; name "
                    "another folder"
                )

    def _own_files(self, run: Path, argument: str) -> None:
        """The configuration of a run names files: those of this folder are read, no others."""
        try:
            config: dict[str, Any] = RunFolder(run).read_json(CONFIG)
        except RunError as error:
            raise Refused(f"{argument}: {self.said(str(error))}") from None
        for key in OTHER_FILES:
            if config.get(key):
                raise Refused(
                    f"{argument}: this run reads other files than tables ({key}): use the command line"
                )
        if config.get("keep") and not isinstance(config["keep"], list):
            raise Refused(
                f"{argument}: {CONFIG} of this run is not one that the tools write: use the command line"
            )
        for key, words in NAMED_FILES.items():
            if config.get(key) is not None and config[key] not in words:
                raise Refused(f"{argument}: this run reads a file for {key}: use the command line")
        tables = config.get("table", [])
        for table in [tables] if isinstance(tables, str) else tables:
            if not isinstance(table, str):
                raise Refused(f"{argument}: {CONFIG} of this run names a table that is no path; fit it anew")
            self.file(table, f"{argument}, its table")

    # -- what is there ----------------------------------------------------------------------------------------------

    def _there(self, missing: Path) -> str:
        """The nearest folder that exists, and what it holds."""
        above = missing.parent
        while not above.is_dir():
            above = above.parent
        where = "." if above == self.path else str(above.relative_to(self.path))
        return f"{where} holds {self._named(above)}"

    @staticmethod
    def _named(folder: Path) -> str:
        names = sorted(entry.name for entry in os.scandir(folder) if not entry.name.startswith("."))
        shown = ", ".join(repr(name) for name in names[:10])
        return (shown or "nothing") + (f" and {len(names) - 10:,} more" if len(names) > 10 else "")
