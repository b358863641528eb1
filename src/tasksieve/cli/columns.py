"""Tables of text in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

WIDEST = 44  # of a cell


def aligned(lines: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Lines of cells under each other: the first ``left`` columns to the left, the others to the right."""
    cut = [[cell if len(cell) <= WIDEST else cell[: WIDEST - 3] + "..." for cell in line] for line in lines]
    widths = [max(len(line[c]) for line in cut) for c in range(len(cut[0]))]
    shown = []
    for line in cut:
        sized = zip(line, widths, strict=True)
        cells = [cell.ljust(w) if c < left else cell.rjust(w) for c, (cell, w) in enumerate(sized)]
        shown.append("  ".join(cells).rstrip())
    return shown
