"""The certificate that a page carries, and the program with which the page checks it."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from ..proof.certificate import Certificate
from ..verify import read_certificate

HERE = Path(__file__).parent / "verify"
# The checker in parts, in their order. It shares no code with the library or with verify.py.
CHECKER = (
    "sha256",
    "balls",
    "functions",
    "archive",
    "certificate",
    "table",
    "digests",
    "dual_point",
    "features",
    "check",
    "worker",
)
MOST_BYTES = 6_000_000  # of a certificate in a page
# Claims that the page does not check are not in it.
_LISTS = ("open_start", "open", "sure_start", "sure")


def one_value(source: bytes | str | os.PathLike[str], value: int = 0) -> bytes | None:
    """The certificate of one value of a path; None where it is too large for a page.

    Parameters
    ----------
    source : bytes or path
        A certificate file.
    value : int, default=0
        Of a certificate that has several.
    """
    whole = read_certificate(source)
    arrays, k = whole.arrays, 0 if whole.n_values == 1 else range(whole.n_values)[value]
    here = slice(*arrays["start"][k : k + 2])
    alone = {name: values for name, values in arrays.items() if name not in _LISTS}
    for name in ("alpha", "ridge", "objective", "dual_value", "gap", "intercept", "dual"):
        alone[name] = arrays[name][k : k + 1]
    for name in ("feature", "output", "coef"):
        alone[name] = arrays[name][here]
    alone["start"] = arrays["start"][k : k + 2] - here.start
    header = {name: content for name, content in whole.header.items() if name != "about"}
    found = Certificate(header, alone).to_bytes()
    return found if len(found) <= MOST_BYTES else None


def encoded(certificate: bytes) -> str:
    return base64.b64encode(certificate).decode("ascii")


def checker_script() -> str:
    """The checker as one script for a worker."""
    parts = [(HERE / f"{name}.js").read_text(encoding="utf-8") for name in CHECKER]
    return '"use strict";\n' + "\n".join(parts)
