"""The speed table of the README as a picture: its figures, read from the README itself."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from path_figure import BLUE, INK, MUTED

README = Path(__file__).parent.parent / "README.md"
ROW = re.compile(
    r"^\| (?P<problem>[^|]+) \| (?P<rival>[^|]+) \| <!-- bench:[\w-]+ -->(?P<found>.*?)<!-- /bench -->"
)


def speed_table(text: str) -> list[tuple[str, str, list[float]]]:
    """(problem, rival, times faster) of each measured row; several figures are several data sets."""
    rows = []
    for line in text.splitlines():
        if match := ROW.match(line):
            ratios = [float(number) for number in re.findall(r"([\d.]+)x", match["found"])]
            rival = re.findall(r"\((\w[\w-]*)\)", match["found"])
            rows.append((match["problem"], rival[0] if rival else match["rival"], ratios))
    return rows


def benchmark_figure() -> Figure:
    """A bar for each data set, on a logarithmic scale: level with the rival at 1."""
    rows = speed_table(README.read_text(encoding="utf-8"))
    bars = [(problem, rival, ratio) for problem, rival, ratios in rows for ratio in ratios]
    figure, axes = plt.subplots(figsize=(8.2, 0.34 * len(bars) + 0.8), layout="constrained")
    labels, before = [], ""
    for position, (problem, rival, ratio) in enumerate(bars):
        axes.barh(position, ratio - 1.0, left=1.0, color=BLUE, height=0.66)
        axes.annotate(f"{ratio:g}x {rival}", (ratio, position), (4, 0), textcoords="offset points", va="center",
                      color=INK, fontsize=8)  # fmt: skip
        labels.append("" if problem == before else problem)
        before = problem
    axes.set_yticks(range(len(bars)), labels, fontsize=8, color=INK)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xscale("log")
    shortest, longest = min(ratio for _, _, ratio in bars), max(ratio for _, _, ratio in bars)
    axes.set_xlim(min(1.0, 0.8 * shortest), 3.0 * longest)  # where the rival is faster, the bar goes the other way
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if tick >= min(1.0, 0.8 * shortest)]
    axes.set_xticks(ticks, [f"{tick}x" for tick in ticks], color=MUTED)
    axes.minorticks_off()
    axes.set_title("times faster at an equal certified gap")
    return figure
