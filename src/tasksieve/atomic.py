"""Files that are the old one or the new one, never a part of one."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

PART = ".part"


def write_atomically(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Have ``write(file)`` fill a new file, see it safely on disk, and only then give it its name."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
    file = open(temporary, "xb")  # noqa: SIM115  (made as any new file is: its mode follows the umask)
    try:
        with file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


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
