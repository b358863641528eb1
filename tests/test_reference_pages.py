"""The reference has a page for every public name, and every formula is one that browsers draw."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
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
        if ROOT / "docs" / "_build" in page.parents:  # twins of what is read here
            continue
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        found += [(page.name, tex, True) for tex in re.findall(r"\$\$(.+?)\$\$", text, re.DOTALL)]
        text = re.sub(r"`[^`\n]*`", "", re.sub(r"\$\$.+?\$\$", "", text, flags=re.DOTALL))
        found += [(page.name, tex, False) for tex in re.findall(r"\$([^$]+?)\$", text)]
    for where, text in docstrings():
        found += [(where, tex, False) for tex in re.findall(r":math:`(.+?)`", text, re.DOTALL)]
        found += [(where, tex, True) for tex in DISPLAYED.findall(text)]
    return found


@pytest.fixture
def mathml(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bool], str]:
    pytest.importorskip("fontTools", reason="the documentation's tools: make docs installs them")
    pytest.importorskip("sphinx", reason="the documentation's tools: make docs installs them")
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "_extensions"), *sys.path])
    import native_math

    return native_math.mathml


@pytest.mark.parametrize(
    ("tex", "shape"),
    [
        (r"\tfrac12 x", "<mfrac><mn>1</mn><mn>2</mn></mfrac><mi>x</mi>"),
        (r"\frac1n", "<mfrac><mn>1</mn><mi>n</mi></mfrac>"),
        (r"X'u", "<msup><mi>X</mi><mi>′</mi></msup><mi>u</mi>"),
        (r"\tilde X_t", "<msub><mover><mi>X</mi><mo>~</mo></mover><mi>t</mi></msub>"),
        (r"\|w\|", "<mo>‖</mo><mi>w</mi><mo>‖</mo>"),
        (r"1, \dots, T", "<mn>1</mn><mo>,</mo><mi>…</mi><mo>,</mo><mi>T</mi>"),
    ],
)
def test_formulas_mean_what_latex_means(mathml: Callable[[str, bool], str], tex: str, shape: str) -> None:
    drawn = re.sub(r">\s+<", "><", mathml(tex, True))
    bare = re.sub(r"<(\w+)[^>]*>", r"<\1>", drawn)
    assert bare == f"<math>{shape}</math>"


def test_bars_are_as_high_as_letters_and_signs_stand_before_numbers(mathml: Callable[[str, bool], str]) -> None:
    assert 'stretchy="false"' in mathml(r"\|w_j\|", False)
    assert 'minsize="1.623em"' in mathml(r"\Bigl\| w", False)
    assert 'form="prefix"' in mathml(r"y = \pm 1", False)
    assert "form" not in mathml("a - b", False)


@pytest.mark.slow
def test_every_formula_becomes_mathml(mathml: Callable[[str, bool], str]) -> None:
    given = formulas()
    assert len(given) > 1000
    for where, tex, block in given:
        drawn = mathml(tex.strip(), block)
        assert drawn.startswith("<math"), (where, tex)
        assert "\\" not in drawn, (where, tex, drawn)
