"""The run folder: its lock, its files, its manifest."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from ..atomic import PART, remove_parts, sync_folder, write_bytes, write_json
from ..fitted.checkpoint import ENDING

# Files of a run: these and no others. Whoever writes or reads one asks `RunFolder` for its path, which knows them all.
# `manifest.json` comes last and lists the others with their digests: a run that has it is finished.
CONFIG, DATA, VERSIONS = "config.json", "data.json", "versions.json"
LOG, LOCK, MANIFEST = "log.txt", ".lock", "manifest.json"
CERTIFICATE = "certificate.json"
PROOF = "certificate.npz"  # the same with its proof, for others to check
UNPROVED = "no_certificate"  # in certificate.json: why there is no file of the proof
STREAM = "stream.npz"  # the state of an online model
HISTORY = "history.npz"  # which features it used along the stream
PERMUTATION, STABILITY, COMPARISON = "permutation.json", "stability.json", "comparison.json"  # findings
INTERVALS = "intervals.json"
RISK = "risk_groups.json"  # of a survival model: what became of rows of low and of high risk
MISSING_VALUES = "missing_values.csv"  # how many, by column and task, and what became of them
QUALITY_BY_TASK = "cv_quality_by_task.csv"  # of patterns of present columns: of the tasks that they are parts of
CALIBRATION = "calibration.csv"  # of classes: curves of the probabilities out of fold
FOLDS = "folds.npz"  # the models of the folds, where the fit was asked to keep them
METHODS = "methods.txt"  # a paragraph for an article
VARIANTS, SCORE = "variants.csv", "score.tsv"  # of a fit of genotypes
TRANSFER = "transfer.json"  # of a new task: how it was fitted, and what old tasks have brought
TABLES = "tables.json"  # what a loss or penalty adds to the report
RESULTS = (
    "model.json", "model.npz", "coefficients.csv", "coefficients.parquet", "intercepts.csv", "features.csv",
    "path.npz", "path.csv", "cv_scores.csv", "quality.csv", "cv_quality.csv", QUALITY_BY_TASK, "out_of_fold.csv",
    CALIBRATION, MISSING_VALUES, RISK, PERMUTATION, STABILITY, "stability.npz", "stability.csv", COMPARISON,
    "comparison.csv", INTERVALS, "intervals.csv", METHODS, TABLES, TRANSFER, VARIANTS, SCORE, CERTIFICATE, PROOF,
    "timing.json", "report.html", STREAM, HISTORY, FOLDS,
)  # fmt: skip
PIECES = "pieces"
OWN = {CONFIG, DATA, VERSIONS, LOG, LOCK, MANIFEST, *RESULTS, PIECES}
# A JSON file of a run larger than this is not one of ours.
LARGEST_JSON = 1 << 28


class RunError(ValueError):
    """Something is wrong with a run folder; the message says what to do."""


class RunFolder:
    """A folder that holds everything about one run.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock: IO[bytes] | None = None
        self.log_failed = False

    def __truediv__(self, name: str) -> Path:
        """The path of a file of a run; a name that is none is a mistake of the program that asks."""
        if not is_own(name):
            raise KeyError(f"{name!r} is no file of a run: runs.folder.OWN lists them")
        return self.path / name

    @property
    def begun(self) -> bool:
        return (self / CONFIG).is_file()

    @property
    def finished(self) -> bool:
        return (self / MANIFEST).is_file()

    # -- one process at a time -----------------------------------------------------------------------------------

    def lock(self) -> None:
        """Make the folder and hold it; the operating system lets go when the process ends, however it ends."""
        import fcntl

        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise RunError(f"{self.path} is a file, not a folder") from None
        file = open(self / LOCK, "ab")  # noqa: SIM115  (held until `release`)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise RunError(f"{self.path} is in use by another process") from None
        self._lock = file
        for folder in (self.path, self / PIECES):
            if folder.is_dir():
                remove_parts(folder)

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> RunFolder:
        self.lock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    # -- beginning -----------------------------------------------------------------------------------------------

    def refuse_other_files(self) -> None:
        """Refuse a folder that holds anything but a run: files of other programs are never touched."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise RunError(f"{self.path} is a file, not a folder")
        for entry in sorted(self.path.iterdir()):
            if not is_own(entry.name):
                raise RunError(
                    f"{self.path} holds {entry.name!r}, which is no part of a run: choose another folder"
                )

    def clear(self) -> None:
        """Remove the files of a run; the manifest first, so that what is left is never taken for finished."""
        self.refuse_other_files()
        for name in (MANIFEST, CONFIG, *sorted(OWN - {MANIFEST, CONFIG, LOCK, PIECES})):
            (self / name).unlink(missing_ok=True)
        self.remove_pieces()
        sync_folder(self.path)

    def remove(self) -> None:
        """Remove a run and its folder."""
        self.clear()
        (self / LOCK).unlink(missing_ok=True)
        self.path.rmdir()

    def remove_files(self, *names: str) -> None:
        """Remove files that a run which is not finished may hold."""
        for name in names:
            (self / name).unlink(missing_ok=True)

    def remove_pieces(self) -> None:
        pieces = self / PIECES
        if pieces.is_dir() and not pieces.is_symlink():
            for file in pieces.iterdir():
                if file.suffix == ENDING or file.name.endswith(PART):
                    file.unlink(missing_ok=True)
            try:
                pieces.rmdir()
            except OSError as error:
                raise RunError(f"{pieces} holds files that are no part of a run") from error

    # -- reading and writing -------------------------------------------------------------------------------------

    def write_json(self, name: str, content: Any) -> None:
        write_json(self / name, content)

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON object of this run; anything else is a `RunError`."""
        return read_json(self / name)

    def log(self, message: str) -> None:
        """A line in the log; where it cannot be written (a full disk), the run itself continues."""
        line = f"{datetime.now(UTC).isoformat(timespec='seconds')} {message}\n"
        try:
            with open(self / LOG, "a", encoding="utf-8") as file:
                file.write(line)
        except OSError:
            self.log_failed = True

    # -- ending --------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Write the manifest: from now on the run is complete, and can be checked."""
        names = [name for name in (CONFIG, DATA, VERSIONS, *RESULTS) if (self / name).is_file()]
        files = {
            name: {"bytes": (self / name).stat().st_size, "sha256": file_digest(self / name)}
            for name in names
        }
        write_json(self / MANIFEST, {"format": 1, "files": files})
        self.remove_pieces()

    def replace(self, name: str, content: bytes) -> None:
        """A new version of one file of a finished run, and the manifest with it."""
        write_bytes(self / name, content)
        if self.finished:
            self.finish()

    def verify(self, names: tuple[str, ...] | None = None) -> None:
        """Compare files with the manifest.

        Parameters
        ----------
        names : file names, optional
            By default all files of the manifest.

        Raises
        ------
        RunError
            For a run that is not finished, or a file that is missing or changed.
        """
        if not self.path.is_dir():
            raise RunError(f"there is no run folder {self.path}")
        if not self.finished:
            raise RunError(
                f"{self.path} is not a finished run"
                + ("; continue it with --resume" if self.begun else ": it has no config.json")
            )
        files = self.read_json(MANIFEST).get("files")
        if not isinstance(files, dict) or not set(files) <= OWN:
            raise RunError(f"{self / MANIFEST} is not a manifest")
        for name, stated in files.items():
            if names is not None and name not in names:
                continue
            if not isinstance(stated, dict) or not (self / name).is_file():
                raise RunError(f"{self / name} is missing")
            if file_digest(self / name) != stated.get("sha256"):
                raise RunError(
                    f"{self / name} has changed since the run: its digest differs from manifest.json"
                )


def is_own(name: str) -> bool:
    """Return whether a run may hold a file of this name; it may be one that a killed process has left unfinished."""
    return name in OWN or (name.startswith(".") and name.endswith(PART))


def file_digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from an untrusted file."""
    if not path.is_file():
        raise RunError(f"there is no file {path}")
    if path.stat().st_size > LARGEST_JSON:
        raise RunError(f"{path} is too large to be a file of a run")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:  # broken text, numbers without end, nesting without end
        raise RunError(f"{path} is not readable: {type(error).__name__}: {str(error)[:200]}") from None
    if not isinstance(content, dict):
        raise RunError(f"{path} is not readable: it holds no JSON object")
    return content
