"""The certificate that a page carries, and the program with which the page checks it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..proof.certificate import Certificate
from ..verify import read_certificate
from .content import ReportContent

HERE = Path(__file__).parent / "verify"
# The checker in parts, in their order. It shares no code with the library or with verify.py.
CHECKER = (
    *("sha256", "balls", "functions", "losses", "archive", "certificate", "table", "digests", "dual_point"),
    *("features", "check", "zeros", "needs", "worker"),
)
MOST_BYTES = 6_000_000  # of a certificate in a page
_LISTS = {"start": ("feature", "output", "coef"), "open_start": ("open",), "sure_start": ("sure",)}


def carry(content: ReportContent, source: bytes | str | os.PathLike[str], value: int, command: str) -> None:
    """Put a certificate into a report: the file of one value, or why it is left out, what it proves of features, and
    the command that checks it without the page."""
    alone = one_value(source, value)
    stated = read_certificate(alone)
    claims = Certificate(stated.header, stated.arrays)
    content.needs = claims.needs()
    if "open" in stated.arrays or content.needs:
        content.proven_zero, content.proven_nonzero = claims.proven_zero(), claims.proven_nonzero()
    if content.needs and len(alone) > MOST_BYTES:  # their vectors are most of it
        alone = Certificate(stated.header, without_needs(stated.arrays)).to_bytes()
        content.needs_carried = False
    content.proof_command = command
    if "genotypes" in stated.header:
        content.no_proof = "a page reads tables, no .bed files"
    elif len(alone) <= MOST_BYTES:
        content.proof = alone
    else:
        content.no_proof = f"with {len(alone) / 1e6:,.1f} MB it is too large for a page"


def one_value(source: bytes | str | os.PathLike[str], value: int = 0) -> bytes:
    """The certificate of one value of a path."""
    whole = read_certificate(source)
    arrays, k = whole.arrays, 0 if whole.n_values == 1 else range(whole.n_values)[value]
    alone = dict(arrays)
    for name in ("alpha", "ridge", "objective", "dual_value", "gap", "intercept", "dual", "thresholds"):
        if name in arrays:
            alone[name] = arrays[name][k : k + 1]
    for start, lists in _LISTS.items():
        if start in arrays:
            here = slice(*arrays[start][k : k + 2])
            alone[start] = arrays[start][k : k + 2] - here.start
            alone |= {name: arrays[name][here] for name in lists}
    if "need" in arrays:
        alone = {**without_needs(alone), **_needs_of(arrays, k)}
    header = {name: content for name, content in whole.header.items() if name != "about"}
    return Certificate(header, alone).to_bytes()


def without_needs(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of a certificate without its claims of need."""
    return {name: values for name, values in arrays.items() if name != "need" and not name.startswith("need_")}


def _needs_of(arrays: dict[str, np.ndarray], k: int) -> dict[str, np.ndarray]:
    """The claims of need about one value."""
    which = np.flatnonzero(arrays["need_value"] == k)
    lists = [arrays["need"][slice(*arrays["need_start"][i : i + 2])] for i in which]
    if not lists:
        return {}
    return {
        "need_value": np.zeros(len(which), dtype=np.int64),
        "need_start": np.cumsum([0, *map(len, lists)]).astype(np.int64),
        "need": np.concatenate(lists),
        "need_delta": arrays["need_delta"][which],
        "need_dual": arrays["need_dual"][which],
    }


def checker_script() -> str:
    """The checker as one script for a worker."""
    parts = [(HERE / f"{name}.js").read_text(encoding="utf-8") for name in CHECKER]
    return '"use strict";\n' + "\n".join(parts)
