"""The public signatures, and what the reference documents of them, are those that were written down."""

from __future__ import annotations

import difflib

from public_surface import SIGNATURES, documentation, read_documented, signatures

REWRITE = "If this is meant, write it down: python tests/public_surface.py"


def test_signatures_are_those_written_down() -> None:
    known = SIGNATURES.read_text(encoding="utf-8").splitlines()
    changes = difflib.unified_diff(known, signatures(), "tests/signatures.txt", "now", n=0, lineterm="")
    changed = [line for line in changes if not line.startswith("@@")]
    assert not changed, "\n".join([*changed, REWRITE])


def test_the_reference_documents_no_less_than_was_written_down() -> None:
    """Parameters, attributes and results by name, as `help()` and the pages show them; more is welcome."""
    now = documentation()
    lost = []
    for (name, section), names in read_documented().items():
        shown = now.get((name, section))
        if shown is None:
            lost.append(f"{name}: {section} {', '.join(names)}".rstrip())
        elif missing := [word for word in names if word not in shown]:
            lost.append(f"{name}: {section} {', '.join(missing)}")
    assert not lost, "\n".join(["no longer documented:", *lost, REWRITE])
