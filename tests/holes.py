"""Holes in sentences: a type or None where a word should be, braces, nan, empty parentheses."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

HOLES = {
    "a type for words": r"\((?:list|dict|tuple|set|array|ndarray|str|int|float|bool|object|type)\b[^)]*\)"
    r"|\b(?:list|dict|tuple|array) of (?:words|labels|lists|weights|str|float|int)\b",
    "None": r"\bNone\b(?! of )",
    "nan": r"\b(?:nan|NaN|NaT)\b",
    "braces": r"[{}]",
    "an object": r"<[\w. ]+ (?:object )?at 0x|<class |<function |\bnp\.\w+|\bdtype\b",
    "two spaces": r"\S  +\S",
    "empty parentheses": r"(?<!\w)(?:\(\s*\)|\[\s*\])",
    "nothing before a stop": r" [.,;:](?:\s|$)|[,;:]\.|\.\.(?!\.)(?<!\.\.\.)",
}


def holes(text: str) -> list[str]:
    return [f"{what}: {text[max(0, at.start() - 50) : at.end() + 30]!r}" for what, pattern in HOLES.items()
            for at in re.finditer(pattern, text)]  # fmt: skip


class Words(HTMLParser):
    """The words of a page, element by element, less its code and its scripts."""

    SKIPPED = ("script", "style", "pre", "code")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in self.SKIPPED:
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.words.append(" ".join(data.split()))


def page_holes(page: str) -> list[str]:
    return [hole for words in Words(page).words for hole in holes(words)]
