"""Formulas as MathML, made when the pages are built: browsers draw it themselves, offline and without a script.

docutils does the translation, and it is strict: a command that it does not know fails the build. So nothing is fetched,
nothing runs, formulas can be selected, printed and read aloud, and they follow the colours of the page; KaTeX or
MathJax would be a megabyte of script and fonts for the same. The font comes from the package ziamath, which carries
STIX Two Math (SIL Open Font License); the pages get the letters and signs of it that formulas use.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html import unescape
from importlib.resources import files
from itertools import zip_longest
from logging import getLogger
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from fontTools import subset
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
getLogger("fontTools").setLevel("WARNING")
FONT = "stix-two-math.woff"

# LaTeX that docutils 0.22 lacks or reads otherwise, in words that it has: two digits after \frac are two arguments.
ALIASES = {
    r"\\dots\b": r"\\ldots",
    r"\\texttt\b": r"\\mathtt",
    r"\\([td]?frac)\s*(\d)\s*(\d)": r"\\\1{\2}{\3}",
}

NAMESPACE = ' xmlns="http://www.w3.org/1998/Math/MathML"'  # HTML needs none
ACCENTS = set("~ˆˉ¯^˙¨→")
BARS, BRACES = set("|‖⟨⟩"), set("{}")
SIGNS = set("±∓−+")
CLOSING = set(")]}|‖⟩!′")
APPLIED, THIN = "\N{FUNCTION APPLICATION}", "0.17em"

# Letters, Greek, arrows, operators, brackets, mathematical alphabets: what a formula may hold.
LETTERS = [
    *range(0x20, 0x17F), *range(0x2B0, 0x362), *range(0x370, 0x400), *range(0x2000, 0x2100), *range(0x2100, 0x2400),
    *range(0x27C0, 0x27F0), *range(0x2A00, 0x2B00), *range(0x1D400, 0x1D800),
]  # fmt: skip


def mathml(tex: str, block: bool) -> str:
    for command, known in ALIASES.items():
        tex = re.sub(command, known, tex)
    tex = re.sub(r"'+", lambda primes: "^{" + r"\prime" * len(primes[0]) + "}", tex)
    if block and r"\\" in tex and r"\begin" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    text = tex2mathml(tex, as_block=block).replace(NAMESPACE, "")
    text = re.sub(r"&(?!lt;|gt;|amp;)\w+;", lambda entity: unescape(entity[0]), text)  # names that HTML knows, XML not
    made = ElementTree.fromstring(text)
    for element in made.iter():
        amend(element)
    return ElementTree.tostring(made, encoding="unicode")


def amend(element: ElementTree.Element) -> None:
    """What docutils leaves to the browser's guess: sizes of bars, spaces around signs and functions, indices."""
    if element.tag == "munderover" and element[2].tag == "mo" and element[2].text in ACCENTS:
        base, index, accent = element  # an index belongs beside a letter with an accent, not below it
        letter = ElementTree.Element("mover", accent="true")
        letter.extend([base, accent])
        element[:] = [letter, index]
        element.tag = "msub"
    before = None
    for child, after in zip_longest(list(element), list(element)[1:]):
        if child.tag == "mo" and child.text in BARS:
            child.attrib.update(lspace="0", rspace="0")
            if "minsize" not in child.attrib:
                child.set("stretchy", "false")
        elif child.tag == "mo" and child.text in BRACES and "minsize" not in child.attrib:
            child.set("stretchy", "true" if after is not None and after.tag == "mtable" else "false")
        elif child.tag == "mo" and "movablelimits" in child.attrib and str(child.text).isalpha():
            child.attrib.update(lspace="0", rspace=THIN)  # max, min
        elif child.tag == "mo" and child.text == "/":
            child.attrib.update(lspace="0", rspace="0")
        elif child.tag == "mo" and child.text in SIGNS and before is not None and is_open(before):
            child.set("form", "prefix")
        elif child.tag == "mo" and child.text == APPLIED and after is not None and after.text != "(":
            child.set("rspace", THIN)
        elif child.tag == "mi" and after is not None and after.text == APPLIED and before is not None:
            child.tag = "mo"  # the name of a function, with a space in front of it where something stands there
            child.attrib.update(lspace="0" if is_open(before) else THIN, rspace="0")
        before = child


def is_open(element: ElementTree.Element) -> bool:
    """Whether what comes next begins something: after a relation, a comma, an opening bracket."""
    return element.tag == "mo" and element.text not in CLOSING


def translated(self: Any, node: nodes.Element, block: bool) -> str:
    tex = node.astext().strip()
    try:
        return mathml(tex, block)
    except MathError as error:
        LOGGER.warning("formula %r: %s", tex, error, location=node)
        return f"<code>{self.encode(tex)}</code>"


def inline(self: Any, node: nodes.math) -> None:
    self.body.append(translated(self, node, block=False))
    raise nodes.SkipNode


def display(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math" tabindex="0">{translated(self, node, block=True)}</div>\n')
    raise nodes.SkipNode


def write_font(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / FONT
    if target.exists():
        return
    options = subset.Options(flavor="woff", layout_features=["*"], hinting=False)
    with (files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf").open("rb") as source:
        font = subset.load_font(source, options)
        chosen = subset.Subsetter(options)
        chosen.populate(unicodes=LETTERS)
        chosen.subset(font)
        subset.save_font(font, str(target), options)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.connect("build-finished", write_font)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
