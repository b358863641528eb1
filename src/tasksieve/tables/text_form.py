"""How a table of text is written: its encoding, the signs between cells and before decimals, digits that are names."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from .number_words import LEADING_ZEROS, MISSING_WORDS, find_decimal, refuse_open_decimal
from .packed import BY_PANDAS, PACKED, open_packed
from .table import TableError, column_names, few

# Bytes that are looked at; more where the first two lines are longer.
SAMPLE = 1 << 16
MOST_PARTS = 1024
# Columns whose cells are looked at.
MOST_COLUMNS = 2000
SEPARATORS = (",", ";", "\t", "|")
DECIMALS = (".", ",")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
# Bytes that text has not, in any encoding of one byte a character; and those that Windows-1252 leaves open.
_NO_TEXT = bytes(set(range(32)) - set(b"\t\n\r\f\v\x1a"))
_OPEN = bytes((0x81, 0x8D, 0x8F, 0x90, 0x9D))


@dataclass(frozen=True)
class TextForm:
    """How a table of text is written.

    - `words`: Columns of digits of which some begin with 0: names of things, to be read as words.
    - `guessed`: Whether the encoding was guessed.
    - `complete`: Whether all rows were looked at.
    """

    encoding: str = "utf-8"
    separator: str = ","
    decimal: str = "."
    words: tuple[str, ...] = ()
    guessed: bool = False
    complete: bool = False

    def notes(self, source: str) -> list[str]:
        """What was recognised that is not as in most files."""
        name, found = os.path.basename(source), []
        if self.guessed:
            found.append(
                f"{name} is not UTF-8: read as {self.encoding}; --encoding says otherwise (mac-roman, cp1250, ...)"
            )
        if self.decimal == ",":
            found.append(f"{name} has decimal commas")
        if self.words:
            found.append(
                f"{name}: columns of digits with leading zeros are read as words: {few(list(map(repr, self.words)))}"
            )
        return found


def find_form(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
) -> TextForm:
    """How a file is written, where that is not said; from its first rows."""
    name = str(path)
    if decimal is not None and decimal not in DECIMALS:
        raise TableError(f"--decimal: '.' or ',', got {decimal!r}")
    if encoding is not None:
        encoding = known_encoding(encoding)
    sample, whole = _first_bytes(path, 2 if separator is None else 1)
    found = encoding or next((own for mark, own in _MARKS if sample.startswith(mark)), None)
    guessed = False
    if found is None:
        found = "utf-8" if _decodes(sample, "utf-8", whole) else (_eight_bits(sample) or "utf-8")
        guessed = found != "utf-8"
    lines = _lines(sample, found, whole)
    between = said_separator(separator)
    if between is None:
        between, rows = _find_separator(lines, "\t" if ".tsv" in name.lower() else ",")
    else:
        rows = _records(lines, between)
    header = column_names(rows[0]) if rows else []
    columns = [
        [row[j] for row in rows[1:] if j < len(row) and row[j].strip() not in MISSING_WORDS]
        for j in range(min(len(header), MOST_COLUMNS))
    ]
    if decimal is None:
        decimal, left_open = find_decimal(columns, commas_between=between == ",")
        if left_open is not None:
            refuse_open_decimal(name, left_open)
    zeros = DigitNames()
    for row in rows[1:]:
        zeros.look(row[: len(columns)])
    words = tuple(header[j] for j in sorted(zeros.found()))
    return TextForm(found, between, decimal, words, guessed, whole)


def read_otherwise(path: str | os.PathLike[str], form: TextForm) -> TextForm:
    """The form of a file that turned out not to be UTF-8 after its first rows; a TableError for what is no text."""
    opens = False
    with open_packed(path) as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            if len(part.translate(None, _NO_TEXT)) < len(part):
                raise TableError(f"{path} is not UTF-8 text: is it really csv?")
            opens |= len(part.translate(None, _OPEN)) < len(part)
    return replace(form, encoding="latin-1" if opens else "cp1252", guessed=True)


def leading_zeros(path: str | os.PathLike[str], form: TextForm) -> TextForm:
    """The form of a file whose later rows, too, may have digits with leading zeros: all bytes are looked at, and cells
    only where there are some."""
    sign = form.separator.encode()
    before = np.zeros(256, dtype=bool)
    before[list(sign + b'\n"')] = True
    cell = re.compile(b'[\\n"' + re.escape(sign) + b']0[0-9]+(?=[\\r\\n"' + re.escape(sign) + b"]|$)")
    with open_text(path, form) as file:
        for lines in iter(lambda: file.readlines(1 << 20), []):
            part = b"\n" + b"".join(lines)
            signs = np.frombuffer(part, dtype=np.uint8)
            zeros = np.flatnonzero(signs[1:-1] == ord("0"))
            zeros = zeros[before[signs[zeros]]]
            after = signs[zeros + 2]
            if np.any((after >= ord("0")) & (after <= ord("9"))) and cell.search(part):
                break
        else:
            return form
    zeros_of = DigitNames()
    with open_text(path, form) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        rows = csv.reader(text, delimiter=form.separator)
        names = column_names(next(rows, []))
        for row in rows:
            zeros_of.look(row)
    found = zeros_of.found()
    return replace(form, words=tuple(name for j, name in enumerate(names) if j in found))


class DigitNames:
    """Which columns are names of digits: some begin with 0, and all are digits."""

    def __init__(self) -> None:
        self._zeros: set[int] = set()
        self._others: set[int] = set()

    def look(self, row: Sequence[str]) -> None:
        """The next row."""
        for j, cell in enumerate(row):
            if j not in self._others and not cell.isdigit():
                if cell not in MISSING_WORDS and not cell.strip().isdigit():
                    self._others.add(j)
            elif len(cell) > 1 and cell[0] in "0 " and LEADING_ZEROS.fullmatch(cell):
                self._zeros.add(j)

    def found(self) -> set[int]:
        """Positions of the columns."""
        return self._zeros - self._others


def said_separator(separator: str | None) -> str | None:
    """The character that ``--separator`` means."""
    if separator is None:
        return None
    sign = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
    if len(sign) != 1:
        raise TableError(f"the separator must be one character (or 'tab'), got {sign!r}")
    return sign


def known_encoding(name: str) -> str:
    """The name of an encoding as Python has it."""
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise TableError(
            f"--encoding: there is no encoding {name!r}; some are utf-8, utf-16, cp1252 (Windows), latin-1, mac-roman"
        ) from None


def open_text(path: str | os.PathLike[str], form: TextForm) -> IO[bytes]:
    """The content of a file, unpacked, as UTF-8."""
    file = open_packed(path)
    if form.encoding in ("utf-8", "ascii"):
        return file
    return io.BufferedReader(_Recoded(file, form.encoding))


def for_pandas(path: Any, form: TextForm) -> Any:
    """What pandas reads a table of text from: the path where it needs no help."""
    ending = Path(path).suffix.lower()
    if form.encoding in ("utf-8", "ascii") and (ending in BY_PANDAS or ending not in PACKED):
        return path
    return open_text(path, form)


class _Recoded(io.RawIOBase):
    """Text of one encoding as bytes of UTF-8."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._file, self._decoder = file, codecs.getincrementaldecoder(encoding)()
        self._left, self._ended = b"", False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left and not self._ended:
            part = self._file.read(1 << 16)
            self._ended = not part
            self._left = self._decoder.decode(part, final=self._ended).encode("utf-8")
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


# --- the first rows ------------------------------------------------------------------------------------------------


def _first_bytes(path: str | os.PathLike[str], lines: int) -> tuple[bytes, bool]:
    """The first bytes of a file, a few lines at least, and whether they are all there is."""
    with open_packed(path) as file:
        parts = [file.read(SAMPLE)]
        while parts[-1] and sum(part.count(b"\n") for part in parts) <= lines and len(parts) < MOST_PARTS:
            parts.append(file.read(SAMPLE))
        return b"".join(parts), not file.read(1)


def _decodes(sample: bytes, encoding: str, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(sample, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _eight_bits(sample: bytes) -> str | None:
    """An encoding of one byte a character; None for bytes that are no text."""
    if len(sample.translate(None, _NO_TEXT)) < len(sample):
        return None
    return "latin-1" if len(sample.translate(None, _OPEN)) < len(sample) else "cp1252"


def _lines(sample: bytes, encoding: str, whole: bool) -> list[str]:
    """Lines that are there as a whole."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(sample, final=whole).removeprefix("\ufeff")
    lines = io.StringIO(text, newline="").readlines() if "\0" not in text else []
    return lines if whole else lines[:-1]


def _records(lines: Sequence[str], separator: str) -> list[list[str]]:
    found: list[list[str]] = []
    rows: Iterator[list[str]] = csv.reader(iter(lines), delimiter=separator)
    while True:
        try:
            row = next(rows, None)
        except csv.Error:
            return found
        if row is None:
            return found
        if row:
            found.append(row)


def _find_separator(lines: Sequence[str], usual: str) -> tuple[str, list[list[str]]]:
    """The sign that cuts all rows into as many cells as the header, the more the better, and the rows; else the usual
    one, or where rows differ in their cells one that is in the header."""
    found = {}
    for sign in (usual, *(one for one in SEPARATORS if one != usual)):
        if lines and sign in lines[0]:
            found[sign] = _records(lines, sign)
    best = next(iter(found), usual)
    width = 1
    for sign, rows in found.items():
        sizes = {len(row) for row in rows}
        if len(sizes) == 1 and max(sizes) > width:
            best, width = sign, max(sizes)
    return best, found[best] if best in found else _records(lines, best)
