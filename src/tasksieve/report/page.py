"""The page: template, style and script joined into one file that loads nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic import write_bytes
from ..fitted.concordance import FEW_PAIRS
from ..fitted.quality import concordance_words
from ..optional import require
from ..verify import read_certificate
from .choice import BEST, CAREFUL, choice_of, looks, noise_words, set_tiles, stable_tile
from .content import ReportContent, mean_of, stability_of
from .intervals import QUESTIONS, explanation, interval_words
from .packing import Packed, pack, proven_marks, shorten
from .proof import checker_script
from .standardised import PER_DEVIATION
from .trust import Trust
from .words import are, count, plural, quantity, score, small

HERE = Path(__file__).parent
NEEDED = "Needed by this optimum"
MARKS = {1: "yes", 2: "one of several", -1: "no", 0: "undecided"}
STATIC_ROWS = 25  # of the table of features: what is there without the script, and on paper
# The script in parts, in their order; what shows a fitted model is left out where there is none.
SCRIPT = (
    *("helpers", "axes", "saving", "basics", "plots", "path", "table", "features", "genome", "survival", "tasks"),
    *("stream", "trust", "intervals", "verify", "ready"),
)
OF_A_MODEL = ("path", "features", "genome", "survival", "tasks", "stream")


def render(content: ReportContent) -> str:
    """The report as one HTML document.

    Parameters
    ----------
    content : ReportContent

    Returns
    -------
    str
    """
    content = replace(
        content,
        tasks=np.asarray(content.tasks, dtype=object),
        features=np.asarray(content.features, dtype=object),
        certificate={name: value for name, value in content.certificate.items() if value is not None},
    )
    if not content.selects:  # that a weight is not zero says nothing there
        content = replace(content, proven_zero=None, proven_nonzero=None, needs=())
    check(content)
    packed = pack(content)
    proved = content.proof is not None
    if content.proof is not None:
        claimed = [content.certificate.get(name) for name in ("objective", "dual_gap")]
        packed.data |= {
            "proof": base64.b64encode(content.proof).decode("ascii"),
            "proofCommand": content.proof_command,
            # in full, as the text gives them: the page compares them with its certificate
            "claims": [float(value) if value is not None and np.isfinite(value) else None for value in claimed],
            "columns": packed.order.tolist(),
        }
    choice = choice_of(content)
    if choice is not None and packed.data["path"] is not None:
        packed.data["path"] |= {"best": choice.best, "careful": choice.careful}
    return fill(
        "template.html",
        [name for name in SCRIPT if (content.fitted or name not in OF_A_MODEL) and (proved or name != "verify")],
        content=content,
        checker=checker_script() if proved else None,
        takes_tables=content.proof is not None and read_certificate(content.proof).header.get("table") is not None,
        needed=NEEDED,
        needed_words=needed_words(content, packed),
        looks=looks(content),
        leading=shown_words(content),
        data=packed.data,
        left_out=packed.left_out,
        warnings=[*content.warnings, *observations(content)],
        tiles=tiles(content, packed),
        rows=static_rows(content, packed),
        interval=optimum_interval(content.certificate),
        most_rows=STATIC_ROWS,
        stable_shown=stability_of(content) is not None,
        about_intervals=explanation,
        interval_questions=QUESTIONS,
        per_deviation="" if content.column_scales is None else PER_DEVIATION,
        interval_words=interval_words,
        trust_shown=content.trust is not None and content.trust.any_found,
        has_path=content.fitted and packed.data["path"] is not None,
        row_nouns=plural(content.row_noun),
    )


def need_jinja() -> Any:
    """What fills in the pages, or an error that says which extra brings it."""
    return require("jinja2", "reports need", "'tasksieve[report]' (or, of a command, use --no-report)")


def fill(template: str, parts: Sequence[str], **values: Any) -> str:
    """A page with its style and its script, whose parts are one function: they share names and leave none behind."""
    jinja2 = need_jinja()
    texts = [(HERE / "script" / f"{name}.js").read_text(encoding="utf-8") for name in parts]
    script = '"use strict";\n(() => {\n' + "\n".join(texts) + "})();\n"
    # all is escaped; the exceptions are our own files, and tojson escapes what HTML reads
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters.update(quantity=quantity, small=small, score=score)
    return environment.get_template(template).render(
        style=(HERE / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        **values,
    )


def write_page(text: str, path: str | os.PathLike[str]) -> Path:
    """Write a page atomically: the file is the old one or the new one, never a part."""
    path = Path(path)
    write_bytes(path, text.encode("utf-8", errors="replace"))
    return path


def check(content: ReportContent) -> None:
    """Refuse content whose parts do not fit together, by name."""
    n_tasks, n_features = content.coef.shape
    sizes = {"tasks": n_tasks, "intercept": n_tasks, "row_scales": n_tasks}
    sizes |= dict.fromkeys(("features", "proven_zero", "proven_nonzero"), n_features)
    if content.alphas is not None:
        n_values = len(content.alphas)
        along = ("path_coefs", "n_selected", "rejection_ratios", "relative_gaps", "seconds", "cv_scores")
        sizes |= dict.fromkeys(along, n_values)
        if not n_values or not np.all(np.asarray(content.alphas) > 0):
            raise ValueError("alphas must hold one or more positive numbers, or be None.")
        if not -n_values <= content.chosen < n_values:
            raise ValueError(f"chosen={content.chosen} is no index into the {n_values} alphas.")
    lengths = [(name, getattr(content, name), size) for name, size in sizes.items()]
    for i, quality in enumerate(content.quality):
        for name in ("values", "rows", "errors"):
            lengths.append((f"quality[{i}].{name}", getattr(quality, name), n_tasks))
    stability = stability_of(content)
    for name in ("probabilities", "stable") if stability is not None else ():
        lengths.append((f"trust.stability.{name}", getattr(stability, name), n_features))
    for name, values, wanted in lengths:
        if values is not None and len(values) != wanted:
            raise ValueError(
                f"{name} has {len(values)} entries, {wanted} are needed to match coef and alphas."
            )
    if content.proven_zero is not None and content.proven_nonzero is not None:
        both = np.flatnonzero(content.proven_zero & content.proven_nonzero)
        if len(both):
            raise ValueError(f"proven_zero and proven_nonzero both hold feature {both[0]}: one of them is wrong.")
    for k, coef in enumerate(content.path_coefs):
        if coef.shape != content.coef.shape:
            raise ValueError(f"path_coefs[{k}] has shape {coef.shape}, coef has {content.coef.shape}.")


def observations(content: ReportContent) -> list[str]:
    """What a careful reader would notice, as warnings."""
    found = []
    certificate = content.certificate
    if certificate.get("converged") is not None and not certificate["converged"]:
        what = "gap" if content.unproved else "certificate"
        found.append(
            f"The solver stopped before it reached the tolerance asked for. The {what} is still true: see how far "
            "the answer can be from the best one."
        )
    if certificate and content.unproved:
        found.append(
            f"There is no certificate: {content.no_proof}. The distance to the optimum is the solver's own number, "
            "which nobody else can check."
        )
    for part in content.quality:
        if part.unseen and part.pairs is not None and np.any((part.pairs > 0) & (part.pairs < FEW_PAIRS)):
            found.append(f"{part.measure}: {concordance_words(part.pairs)}")
    if content.fitted and content.selects and not content.n_selected_features:
        found.append("No feature is selected: the penalty is so strong that the null model is best.")
    found += noise_words(content)
    if content.alphas is not None and content.cv_scores is not None and len(content.alphas) > 2:
        best = int(np.argmin(np.mean(content.cv_scores, axis=1)))
        last = int(np.argmin(content.alphas))
        if best == last:
            found.append(
                "The smallest held-out loss is at the smallest alpha tried: smaller values could be better still. "
                "Extend the path (smaller eps) before relying on this choice."
            )
    return found


def tiles(content: ReportContent, packed: Packed) -> list[tuple[str, str, str]]:
    """(number, name, remark) of the few numbers to see first."""
    n_tasks, n_features = content.coef.shape
    found = set_tiles(content)
    if content.fitted and not content.selects:
        found.append((f"{n_features:,}", "features", "none is left out: the model weighs, and does not select"))
    quality = content.headline
    if quality is not None:
        known = [value for value in quality.values if np.isfinite(value)]
        if known:
            noun = "task" if any(part is quality for part in content.by_task) else content.row_noun
            least, most = score(min(known)), score(max(known))
            spread = f"from {least} to {most} over {plural(noun)}" if least != most else ""
            if quality.overall is not None and np.isfinite(quality.overall[1]):
                spread = f"± {quality.overall[1]:.2g}" + (f"; {spread}" if spread else "")
            details = [part for part in (spread, quality.caveat, quality.beside().removeprefix("; ")) if part]
            found.append((score(mean_of(quality)), quality.measure, "; ".join(details)))
    if choice_of(content) is None:
        found += stable_tile(content)
    if content.trust is not None:
        found += trust_tiles(content.trust)
    if content.fitted:
        noun = content.row_noun if n_tasks == 1 else plural(content.row_noun)
        found.append((f"{n_tasks:,}", noun, _rows_remark(content)))
    if content.alphas is not None:
        chosen = content.chosen % len(content.alphas)
        share = content.alphas[chosen] / np.max(content.alphas)
        found.append(
            (quantity(content.alphas[chosen]), "penalty strength α", f"{share:.2g} × the largest on the path")
        )
    gap = content.certificate.get("relative_gap", content.certificate.get("dual_gap"))
    if gap is not None:
        relative = "relative_gap" in content.certificate
        found.append(
            (small(gap), "distance to the optimum, at most", "of the empty model's loss" if relative else "")
        )
    return found


def trust_tiles(trust: Trust) -> list[tuple[str, str, str]]:
    """(number, name, remark) of what was found about the findings, but for the features that are stable."""
    found = []
    if trust.permutation is not None:
        remark = f"{len(trust.permutation.null):,} shuffles of the labels"
        found.append((f"p = {trust.permutation.pvalue:.2g}", "does anything matter?", remark))
    if trust.sharing is not None:
        at, name = trust.sharing.overall, f"{trust.sharing.loss} by sharing"
        found.append((quantity(at["difference"], sign=True), name, f"p = {at['pvalue']:.2g}"))
    return found


def _rows_remark(content: ReportContent) -> str:
    if not content.quality:
        return ""
    rows = np.asarray(content.quality[0].rows)
    least, most = int(rows.min()), int(rows.max())
    if content.shared and len(rows) > 1:
        return f"of the same {most:,} rows" if least == most else f"{least:,} to {most:,} labels each"
    if least != most:
        return f"{least:,} to {most:,} rows each"
    return f"{most:,} rows" + (" each" if len(rows) > 1 else "")


def _not_measured(packed: Packed, rank: int) -> str:
    absent = packed.data["absent"]
    return "" if absent is None or not absent[rank] else f" (not measured in {len(absent[rank]):,})"


def static_rows(content: ReportContent, packed: Packed) -> list[dict[str, str]]:
    """The strongest features, for readers without the script."""
    rows = []
    names = shorten(content.features[packed.order[:STATIC_ROWS]])
    tasks = shorten(content.tasks[packed.tasks])
    scales = np.ones(len(tasks)) if content.row_scales is None else np.asarray(content.row_scales)[packed.tasks]
    for rank, coefficients in enumerate(packed.coefficients[:STATIC_ROWS]):
        at = int(np.argmax(np.abs(packed.sizes[rank])))
        rows.append(
            {
                "rank": str(rank + 1),
                "name": names[rank],
                "strength": quantity(packed.strengths[rank]),
                "stable": stable_share(content, int(packed.order[rank])),
                "needed": _needed(packed, rank),
                "tasks": f"{np.count_nonzero(coefficients):,} of {len(tasks):,}" + _not_measured(packed, rank),
                "largest": f"{quantity(coefficients[at] * scales[at], sign=True)} in {tasks[at]}",
            }
        )
    return rows


def _needed(packed: Packed, rank: int) -> str:
    marks, needs = packed.data["proven"], packed.data["needs"]
    if marks is None:
        return ""
    return MARKS[marks[rank]] if needs is None or needs[rank] is None else str(needs[rank]["words"])


def needed_words(content: ReportContent, packed: Packed) -> str:
    """Explain what it means that an optimum needs a feature, and of how many that is known."""
    if content.proven_zero is None or content.proven_nonzero is None:
        return ""
    sure, never = int(content.proven_nonzero.sum()), int(content.proven_zero.sum())
    marks = proven_marks(content, np.arange(content.coef.shape[1]))
    several = 0 if marks is None else marks.count(2)
    left = content.coef.shape[1] - sure - never - several
    among = f"{several:,} {are(several)} one of several near copies that are, " if several else ""
    worth = ""
    if content.needs:
        worth = (
            "+3 %: models without the feature lack 3 % at least of what this one takes off the objective of the empty "
            "model. One of four: that holds of models without any of four near copies. "
        )
    open_words = "a model without it may be as good" if content.needs else "the gap leaves it open"
    said = (
        f"{NEEDED}: whether the coefficients with the smallest penalised loss, on these data and at this penalty, use "
        "the feature. It says that the optimisation is right, not that the feature matters: noise that the penalty "
        f"lets in is needed, too. Yes: all of them use it. No: none does. {worth}Undecided: {open_words}, and a "
        f"smaller tolerance may decide it. Of all {content.coef.shape[1]:,} features {sure:,} {are(sure)} needed, "
        f"{among}{never:,} {are(never)} not, {left:,} {are(left)} undecided."
    )
    wrong = int(np.count_nonzero(content.proven_zero[packed.order[: packed.data["nKept"]]]))
    if wrong:
        said += (
            f" The coefficients of {count(wrong, 'feature')} shown are there only because the solver stopped at its "
            "tolerance."
        )
    return said


def shown_words(content: ReportContent) -> str:
    """Which set of features the table shows first, where there is another one."""
    found = choice_of(content)
    if found is None or not found.differ:
        return ""
    here, there = (CAREFUL, BEST) if found.careful_predicts else (BEST, CAREFUL)
    sizes = {BEST: len(found.used_best), CAREFUL: len(found.used_careful)}
    return f"Shown are the {count(sizes[here], 'feature')} {here}, which predictions use; {there}: {sizes[there]:,}."


def stable_share(content: ReportContent, feature: int) -> str:
    """On how many of the halves a feature was selected, as text; nothing where that was not asked."""
    stability = stability_of(content)
    if stability is None:
        return ""
    share = float(stability.probabilities[feature])
    return "–" if np.isnan(share) else f"{share:.0%}" + (" ✓" if stability.stable[feature] else "")


def optimum_interval(certificate: Mapping[str, float]) -> tuple[str, str] | None:
    """The two ends between which the smallest possible objective lies, with the digits in which they differ: the lower
    one rounded down and the upper one up, so that what is printed is true."""
    objective, gap = certificate.get("objective"), certificate.get("dual_gap")
    if objective is None or gap is None or not np.isfinite(objective) or not np.isfinite(gap):
        return None
    step = max(gap, 1e-15 * abs(objective), 1e-300)
    unit = Decimal(10) ** min(int(np.floor(np.log10(step))) - 1, 0)
    low = Decimal(max(0.0, objective - gap)).quantize(unit, ROUND_FLOOR)
    high = Decimal(objective).quantize(unit, ROUND_CEILING)
    if high >= 10**15 or unit < Decimal("1e-18"):
        return small(float(low)), small(float(high))
    return f"{low:,f}", f"{high:,f}"
