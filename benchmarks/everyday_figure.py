"""How many times faster over the plane of rows and features: one colour per factor, from the results of everyday.py.

    python benchmarks/everyday_figure.py [results/everyday.json] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
from itertools import product
from pathlib import Path
from typing import Any

import _extras  # noqa: F401  (says what to install where matplotlib is not)
import numpy as np

# borders between colours; below 1, where the other program is faster, the colours are those of a warning
EDGES = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0)
COLOURS = ("#67000d", "#cb181d", "#fc9272", "#deebf7", "#9ecae1", "#6baed6", "#3182bd", "#08519c", "#08306b")
DARK = ("#67000d", "#cb181d", "#3182bd", "#08519c", "#08306b")


def draw_plane(
    cells: dict[tuple[str, int, int, int], float], file: Path, also: str | None = None, against: str = "scikit-learn"
) -> None:
    """A panel for each design and number of tasks, of the factors by (design, n, d, T); others stay empty."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch

    designs = sorted({key[0] for key in cells}, key=list({key[0]: 0 for key in cells}).index)
    tasks = sorted({key[3] for key in cells})
    rows, features = (sorted({key[position] for key in cells}) for position in (1, 2))
    width = 3.2 + 0.72 * len(features) * len(tasks)
    height = 0.9 + (0.62 * len(rows) + 0.45) * len(designs)
    figure, axes = plt.subplots(
        len(designs), len(tasks), figsize=(width, height), squeeze=False, sharex=True, sharey=True, layout="constrained"
    )
    for (i, design), (j, T) in product(enumerate(designs), enumerate(tasks)):
        axis = axes[i, j]
        for (kind, n, d, t), ratio in cells.items():
            if (kind, t) != (design, T):
                continue
            colour = COLOURS[int(np.searchsorted(EDGES, ratio, side="right"))]
            x, y = features.index(d), rows.index(n)
            axis.add_patch(plt.Rectangle((x - 0.5, y - 0.5), 1, 1, color=colour, ec="white", lw=1.5))
            digits = 0 if ratio >= 10 else 1 if ratio >= 1.05 else 2
            ink = "white" if colour in DARK else "black"
            axis.text(x, y, f"{ratio:.{digits}f}x", ha="center", va="center", color=ink, fontsize=9)
        axis.set(xlim=(-0.5, len(features) - 0.5), ylim=(-0.5, len(rows) - 0.5))
        axis.set_xticks(range(len(features)), [f"{d:,}" for d in features])
        axis.set_yticks(range(len(rows)), [f"{n:,}" for n in rows])
        axis.tick_params(length=0)
        axis.set_title(f"{design}, {T} output{'s' if T > 1 else ''}", fontsize=10)
        for side in axis.spines.values():
            side.set_visible(False)
    figure.supxlabel("features", fontsize=10)
    figure.supylabel("rows", fontsize=10)
    between = [f"{a:g}x to {b:g}x" for a, b in zip(EDGES, EDGES[1:], strict=False)]
    names = [f"below {EDGES[0]:g}x", *between, f"above {EDGES[-1]:g}x"]
    figure.legend(
        handles=[Patch(color=c, label=name) for c, name in zip(COLOURS, names, strict=True)][::-1],
        loc="outside right center", fontsize=8, frameon=False, title=f"times faster than\n{against}\n(red: slower)",
        title_fontsize=8,
    )  # fmt: skip
    for target in (file, *([also] if also else [])):
        figure.savefig(target, dpi=110, metadata={"Software": None})
    plt.close(figure)


def times_faster(raw: list[dict[str, Any]]) -> dict[tuple[str, int, int, int], float]:
    """(design, n, d, T) -> scikit-learn's median seconds over ours, for the shared matrix."""
    out = {}
    for entry in raw:
        if entry["key"][:2] == ["path", "shared"] and "scikit-learn" in entry["seconds"]:
            _, _, design, n, d, T = entry["key"]
            seconds = {name: statistics.median(values) for name, values in entry["seconds"].items()}
            out[design, n, d, T] = seconds["scikit-learn"] / seconds["tasksieve"]
    return out


def main() -> None:
    results = Path(__file__).parent / "results"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", nargs="?", type=Path, default=results / "everyday.json")
    parser.add_argument("--out", type=Path, default=results / "everyday.png")
    args = parser.parse_args()
    draw_plane(times_faster(json.loads(args.json.read_text())["raw"]), args.out)
    print(args.out)


if __name__ == "__main__":
    main()
