"""Files that are the old one or the new one, never a part of one."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

PART = ".part"


def write_atomically(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Have ``write(file)`` fill a new file, see it safely on disk, and only then give it its name."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=PART, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_folder(folder: Path) -> None:
    """The names in a folder reach the disk, too."""
    if os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(path: Path, content: bytes) -> None:
    write_atomically(path, lambda file: file.write(content))


def write_json(path: Path, content: Any) -> None:
    write_bytes(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def remove_parts(folder: Path) -> None:
    """Unfinished files that a killed process has left."""
    for file in folder.glob(f".*{PART}"):
        file.unlink(missing_ok=True)
