"""The reference has a page for every public name, and every formula is one that browsers draw."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

import tasksieve as ts

ROOT = Path(__file__).parent.parent
LISTED = re.findall(r"^   ([A-Za-z_.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
DISPLAYED = re.compile(r"^\.\. math::(.*?)(?:\n\n(?! )|\Z)", re.DOTALL | re.MULTILINE)


def test_every_public_name_is_listed_once() -> None:
    assert len(set(LISTED)) == len(LISTED)
    assert set(ts.__all__) - {"__version__"} <= set(LISTED)


def docstrings() -> list[tuple[str, str]]:
    found = []
    for file in sorted((ROOT / "src" / "tasksieve").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
                found.append((f"{file.name}:{getattr(node, 'lineno', 1)}", ast.get_docstring(node) or ""))
    return found


def formulas() -> list[tuple[str, str, bool]]:
    """Where, the LaTeX, and whether it stands alone."""
    found = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        found += [(page.name, tex, True) for tex in re.findall(r"\$\$(.+?)\$\$", text, re.DOTALL)]
        text = re.sub(r"`[^`\n]*`", "", re.sub(r"\$\$.+?\$\$", "", text, flags=re.DOTALL))
        found += [(page.name, tex, False) for tex in re.findall(r"\$([^$]+?)\$", text)]
    for where, text in docstrings():
        found += [(where, tex, False) for tex in re.findall(r":math:`(.+?)`", text, re.DOTALL)]
        found += [(where, tex, True) for tex in DISPLAYED.findall(text)]
    return found


def test_every_formula_becomes_mathml(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fontTools", reason="the documentation's tools: make docs installs them")
    pytest.importorskip("sphinx", reason="the documentation's tools: make docs installs them")
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "_extensions"), *sys.path])
    from native_math import mathml

    given = formulas()
    assert len(given) > 1000
    for where, tex, block in given:
        drawn = mathml(tex.strip(), block)
        assert drawn.startswith("<math"), (where, tex)
        assert "\\" not in drawn, (where, tex, drawn)
