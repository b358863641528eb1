"""The numbers, tables and the picture of docs/audit.md and audit/README.md, from audit/results.json alone.

    python audit/page.py

What stands between `<!-- audit:NAME -->` and `<!-- /audit -->` is written anew; a test compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results.json"
PICTURE = ROOT / "docs" / "_static" / "audit.png"
FILES = (ROOT / "docs" / "audit.md", HERE / "README.md")
MARKED = re.compile(r"(<!-- audit:([\w-]+) -->)(.*?)(<!-- /audit -->)", re.DOTALL)
LOSSES = {
    "squared": "least squares", "grouped": "several outputs", "logistic": "two classes", "poisson": "counts",
    "multinomial": "classes", "cox": "survival",
}  # fmt: skip
Content = dict[str, Any]


def main() -> None:
    content = json.loads(RESULTS.read_text())
    for file in FILES:
        file.write_text(filled(file.read_text(), content))
    draw(content).savefig(PICTURE, dpi=150, metadata={"Software": None})
    print("written:", *(str(file.relative_to(ROOT)) for file in (*FILES, PICTURE)))


def filled(text: str, content: Content) -> str:
    """A page with all that is marked in it as the results have it; an unknown name is an error."""

    def one(found: re.Match[str]) -> str:
        name = found[2]
        value = (
            about(content, name.removeprefix("about-"))
            if name.startswith("about-")
            else NUMBERS[name](content)
        )
        return f"{found[1]}{value}{found[4]}"

    return MARKED.sub(one, text)


# --- what is counted --------------------------------------------------------------------------------------------------


def judged(content: Content) -> list[Content]:
    """Cells that may be judged: their program has reached the optimum of this loss somewhere."""
    return [one for one in content["cells"] if one["status"] in ("same problem", "not reached")]


def graded(content: Content) -> list[Content]:
    """All with coefficients, and so with certificates."""
    return [one for one in content["cells"] if "strengths" in one]


def strengths(cells: Iterable[Content]) -> list[Content]:
    return [own for one in cells for own in one["strengths"]]


def worst(cell: Content) -> float:
    """Excess as shipped, at least, at the strength where it is larger."""
    return max(own["default"]["excess_lower"] for own in cell["strengths"])


def decided(content: Content, name: str = "") -> list[Content]:
    """Judged cells (of one program) of which something is proved about single features; none of programs whose
    coefficients are not exactly zero by design: that is no error of theirs."""
    return [
        one
        for one in judged(content)
        if name in ("", one["program"])
        and content["programs"][one["program"]]["exact_zeros"]
        and any(own["default"]["proven_zero"] + own["default"]["proven_nonzero"] for own in one["strengths"])
    ]


def answers(content: Content) -> list[Content]:
    """Every answer of every cell whose features can be proved right or wrong, at whatever tolerance."""
    found = []
    for own in strengths(decided(content)):
        known = {"proven_nonzero": own["default"]["proven_nonzero"]}
        found += [{**one, **known} for one in (own["default"], own["recommended"], *own["ladder"]) if one]
    return found


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def small(value: float) -> str:
    """1e-9 and less is said as that."""
    return "< 1e-9" if value < 1e-9 else f"{value:.0e}".replace("e-0", "e-")


def power(value: float | None) -> str:
    return "none" if value is None else f"{value:.0e}".replace("e-0", "e-").replace("1e+00", "1")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell).replace("|", r"\|") for cell in row) + " |" for row in rows]
    return "\n\n" + "\n".join(lines) + "\n\n"


# --- the tables -------------------------------------------------------------------------------------------------------


def by_program(content: Content) -> str:
    rows = []
    for name in content["programs"]:
        cells = [one for one in judged(content) if one["program"] == name]
        if not cells:
            continue
        excess = [one["default"]["excess_lower"] for one in strengths(cells)]
        own = [one["default"] for one in strengths(decided(content, name))]
        needed = [one["needed"] for one in cells]
        known = sorted(one for one in needed if one is not None)
        tightest = "some: none" if len(known) < len(needed) else power(known[0])
        rows.append(
            [
                name, len(cells), small(median(excess)), small(max(excess)),
                share(sum(one["wrong_nonzero"] for one in own), sum(one["selected"] for one in own))
                if content["programs"][name]["exact_zeros"] else "no exact zeros, by design",
                share(sum(one["wrong_zero"] for one in own), sum(one["proven_nonzero"] for one in own)),
                f"{power(content['programs'][name]['default'])}", tightest,
            ]
        )  # fmt: skip
    head = [
        "program", "cells", "excess, median", "worst", "selected, proved zero", "left out, proved needed",
        "tolerance as shipped", "needed everywhere",
    ]  # fmt: skip
    return table(head, rows)


def about(content: Content, name: str) -> str:
    """One program in a sentence."""
    cells = [one for one in judged(content) if one["program"] == name]
    if not cells:
        return f"{sum(one['program'] == name for one in graded(content))} cells, none of them judged"
    own = [one["default"] for one in strengths(cells)]
    bad = max(cells, key=worst)
    features = [one["default"] for one in strengths(decided(content, name))]
    wrong = sum(one["wrong_zero"] + one["wrong_nonzero"] for one in features)
    listed = (
        f"{wrong} features provably wrong or missing beside {sum(one['selected'] for one in features)} selected"
        if content["programs"][name]["exact_zeros"]
        else "features are not counted, because its coefficients are not exactly zero by design"
    )
    good = sum(worst(one) <= content["rules"]["good"] for one in cells)
    return (
        f"{len(cells)} cells, {good} of them within 1e-6 as shipped; "
        f"median excess {small(median(one['excess_lower'] for one in own))}, "
        f"worst {small(worst(bad))} ({bad['dataset']}, {LOSSES[bad['loss']]}); "
        f"{listed}"
    )


def by_excess(content: Content) -> str:
    """Over all answers, at all tolerances: what an excess of this size meant for the features."""
    rows = []
    edges = [(1e-2, 1.0), (1e-3, 1e-2), (1e-4, 1e-3), (1e-5, 1e-4), (1e-6, 1e-5), (1e-8, 1e-6), (-1.0, 1e-8)]
    for low, high in edges:
        own = [one for one in answers(content) if low <= one["excess_lower"] < high]
        any_wrong = sum(one["wrong_zero"] + one["wrong_nonzero"] > 0 for one in own)
        name = f"{power(low)} to {power(high)}" if low > 0 else f"below {power(high)}"
        rows.append(
            [
                name, len(own), share(any_wrong, len(own)),
                share(sum(one["wrong_nonzero"] for one in own), sum(one["selected"] for one in own)),
                share(sum(one["wrong_zero"] for one in own), sum(one["proven_nonzero"] for one in own)),
            ]
        )  # fmt: skip
    return table(
        [
            "excess",
            "answers",
            "with a wrong feature",
            "of those selected, proved zero",
            "of those needed, left out",
        ],
        rows,
    )


def not_reached(content: Content) -> str:
    rows = [
        [
            one["program"],
            one["dataset"],
            LOSSES[one["loss"]],
            small(min(own["closest"] for own in [max(one["strengths"], key=lambda s: s["closest"])])),
        ]
        for one in content["cells"]
        if one["status"] == "not reached"
    ]
    return (
        table(["program", "data set", "loss", "nearest to the optimum, at any tolerance"], rows)
        if rows
        else "none"
    )


def undecided(content: Content) -> str:
    names = sorted(
        {
            f"{one['program']} ({LOSSES[one['loss']]})"
            for one in content["cells"]
            if one["status"] == "undecided"
        }
    )
    return ", ".join(names) or "none"


def no_answer(content: Content) -> str:
    found = [
        f"{one['program']}, {one['dataset']} ({one['why']})"
        for one in content["cells"]
        if one["status"] == "no answer"
    ]
    return "; ".join(found) or "none"


def versions(content: Content) -> str:
    rows = []
    for name, one in content["programs"].items():
        own = one["versions"]
        rows.append(
            [name, ", ".join(f"{what} {own[what]}" for what in own), one["tolerance"], one["meaning"]]
        )
    return table(["program", "versions", "its tolerance", "what that measures"], rows)


def sets(content: Content) -> str:
    rows = []
    for name, one in content["datasets"].items():
        sizes = ", ".join(f"{LOSSES[loss]} {n} x {d}" for loss, (n, d) in one["sizes"].items())
        rows.append([name, one["source"], sizes, "; ".join(one["notes"]) or "-"])
    return table(["data set", "source", "rows x columns", "marks"], rows)


def recommended(content: Content) -> str:
    lines = []
    for name, one in content["programs"].items():
        cells = [c for c in judged(content) if c["program"] == name]
        pairs = [(own["default"], own["recommended"]) for own in strengths(cells) if own["recommended"]]
        if not pairs:
            continue
        wrong = [
            sum(own["wrong_zero"] + own["wrong_nonzero"] for own in side) for side in zip(*pairs, strict=True)
        ]
        worsts = [small(max(own["excess_lower"] for own in side)) for side in zip(*pairs, strict=True)]
        value = ", ".join(power(value) for value in one["recommended"].values())
        lines.append(
            f"- **{name}**, {one['tolerance']} = {value}: {one['recommended_where']}. Of {len(pairs)} answers the "
            f"worst is then {worsts[1]} above the optimum in place of {worsts[0]}, and {wrong[1]} features are wrong "
            f"in place of {wrong[0]}."
        )
    return "\n\n" + "\n".join(lines) + "\n\n" if lines else "none"


def _own_gaps(content: Content) -> list[float]:
    """Gap of their own coefficients / excess, where the excess is more than rounding."""
    own = [one["default"] for one in strengths(judged(content))]
    return [one["own_gap"] / one["excess_upper"] for one in own if one["excess_lower"] > 1e-8]


def fine(content: Content) -> str:
    """Answers closer than 1e-8 that have a wrong feature."""
    own = [one for one in answers(content) if one["excess_lower"] < 1e-8]
    return f"{sum(one['wrong_zero'] + one['wrong_nonzero'] > 0 for one in own)} of {len(own)}"


def not_run(content: Content) -> str:
    return "; ".join(f"{name}: {why}" for name, why in content["not_run"].items())


def _count(name: str) -> Callable[[Content], str]:
    def proved(content: Content, kind: str) -> str:
        own = strengths(graded(content))
        return f"{sum(one[kind] is True for one in own)} of {len(own)}"

    def cells_proved(content: Content, kind: str) -> str:
        cells = graded(content)
        return f"{sum(all(own[kind] is True for own in one['strengths']) for one in cells)} of {len(cells)}"

    known: dict[str, Callable[[Content], str]] = {
        "programs": lambda c: str(len({one["program"] for one in graded(c)})),
        "sets": lambda c: str(len({one["dataset"] for one in graded(c)})),
        "cells": lambda c: str(len(graded(c))),
        "judged": lambda c: str(len(judged(c))),
        "same": lambda c: str(sum(one["status"] == "same problem" for one in c["cells"])),
        "floating": lambda c: cells_proved(c, "floating"),
        "exact": lambda c: cells_proved(c, "exact"),
        "certificates": lambda c: proved(c, "floating"),
        "clarabel": lambda c: f"{sum(one['within'] for one in c['clarabel'])} of {len(c['clarabel'])}",
        "good": lambda c: share(sum(worst(one) <= c["rules"]["good"] for one in judged(c)), len(judged(c))),
        "wrong-cells": lambda c: share(
            sum(
                any(
                    own["default"]["wrong_zero"] + own["default"]["wrong_nonzero"] for own in one["strengths"]
                )
                for one in decided(c)
            ),
            len(decided(c)),
        ),
        "worst": lambda c: small(max(worst(one) for one in judged(c))),
        "worst-cell": lambda c: " / ".join(
            max(judged(c), key=worst)[key] for key in ("program", "dataset", "loss")
        ),
        "own-gap": lambda c: f"{median(_own_gaps(c)):.0f}",
        "polish": lambda c: f"{median(own['default']['polish_seconds'] for own in strengths(judged(c))):.2f}",
        "polish-most": lambda c: (
            f"{max(own['default']['polish_seconds'] for own in strengths(judged(c))):.2f}"
        ),
        "warned": lambda c: str(sum(bool(own["warned"]) for own in strengths(judged(c)))),
        "warned-good": lambda c: str(
            sum(
                bool(own["warned"]) and own["default"]["excess_upper"] <= c["rules"]["good"]
                for own in strengths(judged(c))
            )
        ),
        "silent": lambda c: str(
            sum(not own["warned"] and own["default"]["excess_lower"] > 1e-4 for own in strengths(judged(c)))
        ),
        "date": lambda c: str(c["date"]),
        "commit": lambda c: " and ".join(sorted({one["graded"] for one in c["cells"]})),
        "rows": lambda c: str(c["rules"]["rows"]),
        "columns": lambda c: str(c["rules"]["columns"]),
    }
    return known[name]


NUMBERS: dict[str, Callable[[Content], str]] = {
    "by-program": by_program, "by-excess": by_excess, "not-reached": not_reached, "undecided": undecided,
    "no-answer": no_answer, "not-run": not_run, "fine": fine, "versions": versions, "sets-table": sets,
    "recommended": recommended,
    **{
        name: _count(name)
        for name in (
            "programs", "sets", "cells", "judged", "same", "floating", "exact", "certificates", "clarabel", "good",
            "wrong-cells", "worst", "worst-cell", "own-gap", "polish", "polish-most", "warned", "warned-good", "silent",
            "date", "commit", "rows", "columns",
        )
    },
}  # fmt: skip


# --- the picture ------------------------------------------------------------------------------------------------------


def draw(content: Content) -> Any:
    """Programs across, data sets down, colour and number: digits of optimality as shipped, at the worse strength."""
    import matplotlib.pyplot as plt
    import numpy as np

    programs = list(content["programs"])
    places = [
        (loss, name) for loss in LOSSES for name, one in content["datasets"].items() if loss in one["sizes"]
    ]
    cells = {(one["program"], one["loss"], one["dataset"]): one for one in content["cells"]}
    digits = np.full((len(places), len(programs)), np.nan)
    figure, axes = plt.subplots(figsize=(7.4, 0.27 * len(places) + 1.9), layout="constrained")
    for i, (loss, name) in enumerate(places):
        for j, program in enumerate(programs):
            one = cells.get((program, loss, name))
            if one is None:
                continue
            if "strengths" not in one:
                axes.text(j, i, "x", ha="center", va="center", fontsize=8, color="0.4")
                continue
            digits[i, j] = min(10.0, -np.log10(max(worst(one), 1e-10)))
            mark = {"not reached": "*", "undecided": "?"}.get(one["status"], "")
            colour = "white" if digits[i, j] < 5.5 else "black"
            axes.text(j, i, f"{digits[i, j]:.0f}{mark}", ha="center", va="center", fontsize=8, color=colour)
    image = axes.imshow(digits, cmap="viridis", vmin=1.0, vmax=10.0, aspect="auto")
    axes.set_xticks(
        range(len(programs)), programs, rotation=40, ha="left", rotation_mode="anchor", fontsize=8
    )
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(places)), [name for _, name in places], fontsize=8)
    axes.tick_params(length=0)
    losses = [loss for loss, _ in places]
    for loss in dict.fromkeys(losses):
        first, last = losses.index(loss), len(losses) - 1 - losses[::-1].index(loss)
        axes.text(
            len(programs) - 0.4, (first + last) / 2, LOSSES[loss], rotation=270, va="center", fontsize=8
        )
        if first:
            axes.axhline(first - 0.5, color="white", linewidth=2.5)
    axes.spines[:].set_visible(False)
    figure.colorbar(
        image,
        ax=axes,
        location="bottom",
        shrink=0.6,
        aspect=40,
        label="digits of optimality as shipped",
        pad=0.02,
    )
    return figure


if __name__ == "__main__":
    main()
