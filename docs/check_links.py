"""Checks every link of the built pages, offline: files and anchors exist, and nothing is fetched from elsewhere.

``python docs/check_links.py docs/_build/html`` prints what is wrong, and how much was looked at.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: attributes by which a page has something fetched while it is shown
FETCHED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "video": "src", "audio": "src"}
#: and those of <link> that are fetched
SHOWN = {"stylesheet", "icon", "preload", "modulepreload", "shortcut"}
OUTSIDE = ("http", "https", "mailto")
IN_MARKDOWN = re.compile(r"\]\(([^()\s]+)\)")
IN_STYLE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])([^"')]+)""")


class Page(HTMLParser):
    """The anchors and the addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.anchors |= {known[name] for name in ("id", "name") if known.get(name)}
        if tag in FETCHED and known.get(FETCHED[tag]):
            self.fetched.append(known[FETCHED[tag]])
        if tag == "link" and set(known.get("rel", "").split()) & SHOWN:
            self.fetched.append(known.get("href", ""))
        elif tag in ("a", "link", "area") and known.get("href"):
            self.links.append(known["href"])
        elif tag == "form" and known.get("action"):
            self.links.append(known["action"])


@dataclass
class Checked:
    """What was looked at, and what is wrong."""

    pages: int = 0
    links: int = 0
    outside: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)


def check(root: Path) -> Checked:
    """All pages below a folder, their Markdown twins, their style sheets and ``llms.txt``."""
    found = Checked()
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(root.rglob("*.html"))}
    for file, page in pages.items():
        found.pages += 1
        for address in [*page.links, *page.fetched]:
            found.links += 1
            look(found, root, file, address, pages, fetched=address in page.fetched)
    for file in [*sorted(root.rglob("*.md")), *root.glob("llms.txt")]:
        found.pages += 1
        text = re.sub(r"```.*?```|`[^`\n]*`", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        for address in IN_MARKDOWN.findall(text):
            found.links += 1
            look(found, root, file, address, pages, fetched=False)
    for file in sorted(root.rglob("*.css")):
        for address in IN_STYLE.findall(file.read_text(encoding="utf-8")):
            if not address.startswith(("data:", "#")):
                found.links += 1
                look(found, root, file, address, pages, fetched=True)
    return found


def look(found: Checked, root: Path, file: Path, address: str, pages: dict[Path, Page], fetched: bool) -> None:
    """One address of one file."""
    parts, where = urlsplit(address), file.relative_to(root)
    if parts.scheme == "data":
        return
    if parts.scheme or parts.netloc:
        found.outside.add(address)
        if fetched:
            found.wrong.append(f"{where}: is fetched from elsewhere: {address}")
        elif parts.scheme not in OUTSIDE:
            found.wrong.append(f"{where}: a link of no known kind: {address}")
        return
    target = file if not parts.path else (file.parent / unquote(parts.path)).resolve()
    if not target.is_relative_to(root.resolve()) and parts.path:
        found.wrong.append(f"{where}: leads out of the pages: {address}")
    elif not target.is_file() and not (target / "index.html").is_file():
        found.wrong.append(f"{where}: there is no file {address}")
    elif parts.fragment and target.suffix == ".html":
        own = pages.get(root / target.relative_to(root.resolve())) if parts.path else pages.get(file)
        if own is None or unquote(parts.fragment) not in own.anchors:
            found.wrong.append(f"{where}: there is no anchor {address}")


def main(folder: str) -> int:
    root = Path(folder)
    if not (root / "index.html").is_file():
        print(f"{folder} has no index.html: make docs builds the pages", file=sys.stderr)
        return 2
    found = check(root)
    print("\n".join(found.wrong[:50]))
    print(
        f"{found.pages:,} files, {found.links:,} links inside and out ({len(found.outside):,} different addresses "
        f"elsewhere, which were not asked), {len(found.wrong):,} wrong"
    )
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/html"))
