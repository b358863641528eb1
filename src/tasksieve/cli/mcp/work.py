"""What the process of one call does: limits, the command, its answer."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import sys
import threading
import time
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from ...fitted.progress import Progress, watch
from ...fitted.shown import DOCUMENTATION
from ...tables import table_format
from ...tables.frames import counted_size
from ..errors import error_in_words
from ..exit_codes import NOT_CONVERGED, OK
from .answers import answer
from .arguments import read_call
from .confined import ConfinedFolder, Refused
from .limits import Limits
from .lines import tell
from .tools import BY_NAME, Tool, in_arguments

BETWEEN = 0.5  # seconds between two words of progress
MOST_SAID = 1_000_000  # characters that a command may print
GRACE = 256 << 20  # bytes that allocators reserve beside what is used
STACK = 2 << 20  # bytes of a thread: halves and folds have one each, and the system counts them as used

#: what libraries say where there is no more memory
NO_MEMORY = ("not enough memory", "MemoryError", "Unable to allocate", "bad_alloc", "start new thread")
#: events of Python that no tool has a use for: code from pickles, other programs, the network
NEVER = (
    "pickle.find_class", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn",
    "os.fork", "os.forkpty", "pty.spawn", "socket.connect", "socket.bind", "socket.sendto", "urllib.Request",
    "ftplib.connect", "smtplib.connect", "webbrowser.open",
)  # fmt: skip
#: those that change files: only in the folder
CHANGES = ("os.chmod", "os.chown", "os.link", "os.symlink", "os.mkdir", "os.remove", "os.rename", "os.rmdir",
           "os.truncate", "os.utime", "os.setxattr", "shutil.rmtree", "shutil.move")  # fmt: skip


def import_all() -> None:
    """Everything that calls need, so that none of it is imported after the fork."""
    from typer.main import get_command

    import tasksieve

    from ... import __all__ as names
    from ...tables.frames import need
    from ...versions import versions
    from .. import app, fit, grade, inspect, verify  # noqa: F401
    from ..members import MEMBERS

    for name in names:
        getattr(tasksieve, name)
    for module in ("pandas", "pyarrow.parquet", "pyarrow.ipc", "joblib", "threadpoolctl"):
        need(module)
    with contextlib.suppress(ImportError):
        import jinja2  # noqa: F401
    for members in MEMBERS.values():
        members.offered()
    versions()  # asks the system, by a program: what it says is kept
    _COMMAND.append(get_command(app.app))


_COMMAND: list[Any] = []


class TooMuch(ValueError):
    """More than the server was started for."""


def run(job: dict[str, Any], out: int) -> NoReturn:
    """Do one job, tell the server, and end."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    limits = Limits(**job["limits"])
    folder = ConfinedFolder(limits.folder, limits.most_bytes)
    try:
        limit(limits)
        found = carried_out(BY_NAME[job["tool"]], job["given"], limits, folder, out)
    except (Refused, TooMuch) as error:
        found = {"error": str(error)}
    except MemoryError:
        found = {"error": _no_memory(limits)}
    except KeyboardInterrupt:
        found = {"error": "stopped"}
    except Exception as error:
        if not isinstance(error, ValueError | OSError | ImportError):
            traceback.print_exc(file=sys.__stderr__)
        found = {"error": folder.said(in_arguments(error_in_words(error)[0]))}
    if "error" in found and DOCUMENTATION:
        found["error"] += f"\nSee {DOCUMENTATION}howto/assistants.html"
    with contextlib.suppress(BaseException):
        tell(out, found)
    # at once, without waiting for threads of libraries or doing at the end what only the parent must do
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)
    raise SystemExit


def carried_out(
    tool: Tool, given: dict[str, Any], limits: Limits, folder: ConfinedFolder, out: int
) -> dict[str, Any]:
    """The answer, or an error in words."""
    asked = read_call(tool, given, folder)
    refuse_large(asked.tables, limits)
    said, notes, code = io.StringIO(), io.StringIO(), OK
    if tool.command:
        with contextlib.redirect_stdout(Bounded(said)), contextlib.redirect_stderr(Bounded(notes)):
            code = command_code(asked.words, relay(out))
    if not done(tool, code, said.getvalue()):
        words = error_words(notes.getvalue()) or said.getvalue().strip() or f"it ended with code {code}"
        lacks = any(sign in words for sign in NO_MEMORY)
        return {"error": _no_memory(limits) if lacks else folder.said(in_arguments(words))}
    found = answer(tool, asked, said.getvalue(), notes.getvalue(), folder)
    return {"answer": found}


def command_code(words: list[str], show: Callable[[Progress], None]) -> int:
    """The exit code of a command, run as if its words had been typed."""
    try:
        with watch(show):
            _COMMAND[0](words, prog_name="tasksieve")
    except SystemExit as end:
        return int(end.code or 0)
    return OK


def done(tool: Tool, code: int, said: str) -> bool:
    """Whether a command has an answer: that something is not proved, or not converged, is one."""
    return code in (OK, NOT_CONVERGED) or (tool.name == "verify" and code == 1 and said.startswith("{"))


def error_words(notes: str) -> str:
    """What a command has said of an error, without progress and notes."""
    lines = notes.strip().splitlines()
    starts = [
        k for k, line in enumerate(lines) if line.startswith(("tasksieve: ", "Usage: ", "Error: ", "╭"))
    ]
    told = [k for k in starts if not lines[k].startswith("tasksieve: warning")]
    words = "\n".join(lines[told[0] :] if told else lines[-3:])
    return words.removeprefix("tasksieve: ")


def relay(out: int) -> Callable[[Progress], None]:
    """Progress as lines for the server, not more than two a second."""
    last = [0.0]

    def show(progress: Progress) -> None:
        now = time.monotonic()
        if now - last[0] >= BETWEEN:
            last[0] = now
            tell(out, {"progress": str(progress)[:500]})

    return show


class Bounded(io.TextIOBase):
    """Text that is kept up to a length."""

    def __init__(self, kept: io.StringIO) -> None:
        self.kept = kept

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        room = MOST_SAID - self.kept.tell()
        self.kept.write(text[: max(0, room)])
        return len(text)


# --- limits ----------------------------------------------------------------------------------------------------------


def limit(limits: Limits) -> None:
    """Memory, sizes of files, and what Python itself will not do any more in this process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limits.most_written),) * 2)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error of the write instead
    held = _held()
    if held is not None:
        most = held + GRACE + int(limits.most_memory)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        threading.stack_size(STACK)
    if limits.threads is not None:
        os.environ["TASKSIEVE_NUM_THREADS"] = str(limits.threads)
    root = limits.folder

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event in NEVER:
            raise TooMuch(f"{event}: tools execute nothing, start no programs and use no network")
        if event == "open":
            path, mode, flags = arguments
            writes = (isinstance(mode, str) and set(mode) & set("wax+")) or (
                isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            )
            if writes and isinstance(path, str | bytes | os.PathLike):
                inside(path)
        elif event in CHANGES:
            for path in arguments:
                if isinstance(path, str | bytes | os.PathLike):
                    inside(path)

    def inside(path: Any) -> None:
        name = os.fsdecode(path)
        found = os.path.realpath(name)
        if found != root and not found.startswith(root + os.sep) and found != os.devnull:
            raise TooMuch("only files in the folder are written")

    sys.addaudithook(look)


def _held() -> int | None:
    """Bytes of data that this process has; None where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), None)


def refuse_large(tables: list[str], limits: Limits) -> None:
    """Refuse tables of too many cells before they are read, as far as their files say."""
    cells = sum(_cells(path) for path in tables)
    if cells > limits.most_cells:
        raise TooMuch(
            f"the table has about {cells:,} cells (rows x columns), more than the {limits.most_cells:,} that this "
            "server reads; choose fewer rows or columns, start it with a larger --max-cells, or use the command line"
        )


def _cells(path: str) -> int:
    try:
        format = table_format(path)
    except ValueError:
        return 0
    if format == "npz":
        return _cells_of_arrays(path)
    if format not in ("csv", "parquet", "arrow"):
        return 0  # bounded by the bytes of the file, and by memory
    rows, columns = counted_size(path, format) or (0, 0)
    return rows * columns


def _cells_of_arrays(path: str) -> int:
    """Elements that the largest array of an archive will have, at a byte each: what it unpacks to."""
    try:
        with zipfile.ZipFile(path) as archive:
            return max((one.file_size for one in archive.infolist()), default=0) // 8
    except (OSError, ValueError, zipfile.BadZipFile):
        return 0


def _no_memory(limits: Limits) -> str:
    return (
        f"this takes more memory than the {limits.most_memory / 2**30:g} GiB that a call may have; choose fewer "
        "columns (features) or rows, start the server with a larger --max-memory, or use the command line"
    )
