"""Pages for programs: a Markdown twin beside every page that is built, and ``llms.txt``, which lists them all.

A twin is made of what the page is made of, after all references were found: pages of the reference and of the gallery
have one like any other. It is written as ``page.md`` beside ``page.html``, and the page says so in its head.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

LLMS = "llms.txt"
NOT_LISTED = {"search", "genindex", "py-modindex"}
ABSTRACT, SHORT = 200, 20  # characters of a page's first sentence; a shorter one ("Question.") takes the next along
LEFT_OUT = (
    nodes.comment, nodes.raw, nodes.target, nodes.substitution_definition, nodes.meta, addnodes.toctree,
    addnodes.index, addnodes.highlightlang, addnodes.only, nodes.system_message,
)  # fmt: skip
MARKS = {nodes.strong: "**", nodes.emphasis: "*", addnodes.literal_strong: "**", addnodes.literal_emphasis: "*",
         addnodes.desc_parameter: "", nodes.title_reference: "*"}  # fmt: skip


class Markdown:
    """A document as Markdown.

    - `images`: Where pictures lie, by what the document calls them.
    - `root`: From the page to the folder of all pages: ``"../"``.
    """

    def __init__(self, images: dict[str, str], root: str) -> None:
        self.images, self.root = images, root

    # -- blocks -----------------------------------------------------------------------------------------------------

    def blocks(self, children: Iterable[nodes.Node], level: int) -> list[str]:
        found: list[str] = []
        for child in children:
            text = self.block(child, level)
            if text.strip():
                found.append(text.rstrip())
        return found

    def block(self, node: nodes.Node, level: int) -> str:
        if isinstance(node, LEFT_OUT):
            return ""
        if isinstance(node, nodes.section):
            return "\n\n".join(self.blocks(node.children, level + 1))
        if isinstance(node, nodes.title | nodes.rubric):
            return f"{'#' * min(6, max(1, level))} {self.line(node)}"
        if isinstance(node, nodes.literal_block | nodes.doctest_block):
            return fenced(node.astext(), str(node.get("language", "")))
        if isinstance(node, nodes.math_block):
            return f"$$\n{node.astext().strip()}\n$$"
        if isinstance(node, nodes.bullet_list | nodes.enumerated_list):
            return self.items(node, level)
        if isinstance(node, nodes.definition_list | nodes.field_list | nodes.option_list):
            return "\n\n".join(self.blocks(node.children, level))
        if isinstance(node, nodes.definition_list_item | nodes.field | nodes.option_list_item):
            return self.defined(node, level)
        if isinstance(node, addnodes.desc):
            return "\n\n".join(self.blocks(node.children, level))
        if isinstance(node, addnodes.desc_signature):
            return fenced(re.sub(r"\s+", " ", node.astext()).strip(), "python")
        if isinstance(node, nodes.table):
            return self.table(node)
        if isinstance(node, nodes.figure | nodes.compound | nodes.container | addnodes.desc_content):
            return "\n\n".join(self.blocks(node.children, level))
        if isinstance(node, nodes.block_quote | nodes.Admonition):
            said = [one for one in node.children if not isinstance(one, nodes.title)]
            kind = type(node).__name__.capitalize() if said == node.children else self.line(node.children[0])
            head = "" if isinstance(node, nodes.block_quote) else f"**{kind}.** "
            inner = "\n\n".join(self.blocks(said, level))
            return "\n".join(f"> {line}".rstrip() for line in f"{head}{inner}".splitlines())
        if isinstance(node, nodes.transition):
            return "---"
        if isinstance(node, nodes.TextElement | nodes.Inline | nodes.Text | nodes.image):
            return self.line(node)
        return "\n\n".join(self.blocks(node.children, level))

    def items(self, node: nodes.Element, level: int) -> str:
        found = []
        for number, item in enumerate(node.children, 1):
            mark = f"{number}." if isinstance(node, nodes.enumerated_list) else "-"
            inner = "\n\n".join(self.blocks(item.children, level)).splitlines() or [""]
            indent = " " * (len(mark) + 1)
            found.append("\n".join([f"{mark} {inner[0]}", *(f"{indent}{line}".rstrip() for line in inner[1:])]))
        return "\n".join(found)

    def defined(self, node: nodes.Element, level: int) -> str:
        """A term, or terms, and what is said of them."""
        head, *rest = node.children
        terms = [head, *(one for one in rest if isinstance(one, nodes.term | nodes.classifier))]
        said = [one for one in rest if not isinstance(one, nodes.term | nodes.classifier)]
        words = " : ".join(self.line(one).strip() for one in terms)
        inner = "\n\n".join(self.blocks(said, level)).splitlines()
        return "\n".join([f"- **{words}**" if words else "-", *(f"  {line}".rstrip() for line in inner)])

    def table(self, node: nodes.table) -> str:
        def cell(entry: nodes.Node) -> str:
            return re.sub(r"\s*\n\s*", " ", " ".join(self.blocks(entry.children, 1))).replace("|", r"\|")

        rows = [[cell(entry) for entry in row.children] for row in node.findall(nodes.row)]
        if not rows:
            return ""
        width = max(map(len, rows))
        rows = [[*row, *[""] * (width - len(row))] for row in rows]
        head, body = (rows[0], rows[1:]) if next(iter(node.findall(nodes.thead)), None) else ([""] * width, rows)
        lines = [head, ["---"] * width, *body]
        return "\n".join(f"| {' | '.join(row)} |" for row in lines)

    # -- lines ------------------------------------------------------------------------------------------------------

    def line(self, node: nodes.Node) -> str:
        """What stands in a line."""
        if isinstance(node, nodes.Text):
            return str(node)
        if isinstance(node, LEFT_OUT):
            return ""
        if isinstance(node, nodes.literal):
            return f"`{node.astext()}`"
        if isinstance(node, nodes.math):
            return f"${node.astext()}$"
        if isinstance(node, nodes.image):
            return self.image(node)
        inner = "".join(self.line(child) for child in node.children)
        if isinstance(node, nodes.reference):
            target = self.target(node)
            return f"[{inner}]({target})" if target and inner.strip() else inner
        mark = MARKS.get(type(node), "")
        return f"{mark}{inner}{mark}" if mark and inner.strip() else inner

    def target(self, node: nodes.reference) -> str:
        """Where a link leads: to the twin of a page that is here, whose headings have no anchors."""
        address = str(node.get("refuri", ""))
        parts = urlsplit(address)
        if parts.scheme or parts.netloc or not parts.path.endswith(".html"):
            return address
        return f"{parts.path.removesuffix('.html')}.md"

    def image(self, node: nodes.image) -> str:
        name = self.images.get(str(node["uri"]))
        words = str(node.get("alt", "")).replace("\n", " ")
        return f"![{words}]({self.root}_images/{name})" if name else words


def fenced(code: str, language: str) -> str:
    fence = "```"
    while fence in code:
        fence += "`"
    known = "" if language in ("default", "none") else language
    return f"{fence}{known}\n{code.rstrip()}\n{fence}"


# --- what Sphinx calls -----------------------------------------------------------------------------------------------


def write_twin(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """The twin of a page that is written now, and a line about it in the page's head."""
    if doctree is None or app.builder.format != "html":
        return
    root = "../" * page.count("/")
    text = "\n\n".join(Markdown(dict(app.builder.images), root).blocks(doctree.children, 0))
    target = Path(app.outdir) / f"{page}.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"{text}\n", encoding="utf-8")
    twin = f'<link rel="alternate" type="text/markdown" title="as Markdown" href="{posixpath.basename(page)}.md">'
    context["metatags"] = f"{context.get('metatags', '')}\n{twin}"


def write_list(app: Sphinx, error: Exception | None) -> None:
    """``llms.txt``: every page with its first sentence, in the order of the table of contents."""
    if error is not None or app.builder.format != "html":
        return
    parts = listed(app.env, str(app.config.root_doc))
    lines = [f"# {app.config.project}", "", f"> {app.config.llms_summary}", "", str(app.config.llms_details), ""]
    for title, pages in parts:
        lines += [f"## {title}", ""]
        for page in pages:
            said = first_sentence(Path(app.outdir) / f"{page}.md")
            name = app.env.titles[page].astext() if page in app.env.titles else page
            lines.append(f"- [{name}]({page}.md){f': {said}' if said else ''}")
        lines.append("")
    (Path(app.outdir) / LLMS).write_text("\n".join(lines), encoding="utf-8")


def listed(env: BuildEnvironment, root: str) -> list[tuple[str, list[str]]]:
    """All pages by part: those below each heading of the table of contents, and what is in none."""
    seen: set[str] = set()

    def below(page: str) -> list[str]:
        if page in seen:
            return []
        seen.add(page)
        return [page, *(one for child in env.toctree_includes.get(page, []) for one in below(child))]

    found = []
    seen.add(root)
    for tree in env.get_doctree(root).findall(addnodes.toctree):
        pages = [one for child in tree["includefiles"] for one in below(child)]
        reference = [page for page in pages if page.startswith("api")]
        found.append((str(tree.get("caption") or "Pages"), [page for page in pages if page not in reference]))
        if reference:
            found.append(("Reference", reference))
    left = sorted(set(env.found_docs) - seen)
    return [("Start", [root]), *found, *([("More", left)] if left else [])]


def first_sentence(twin: Path) -> str:
    """The first paragraph of a twin that is a sentence, up to its full stop."""
    blocks = re.split(r"\n\s*\n", re.sub(r"```.*?```", "", twin.read_text(encoding="utf-8"), flags=re.DOTALL))
    for block in blocks:
        words = " ".join(block.split())
        if not words or words[0] in "#|$>!-[<":
            continue
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words).replace("**", "")
        parts = re.split(r"(?<=[.!?])\s", plain)
        sentence = " ".join(parts[: 2 if len(parts[0]) < SHORT else 1])
        return sentence if len(sentence) <= ABSTRACT else f"{sentence[:ABSTRACT].rsplit(' ', 1)[0]} ..."
    return ""


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("llms_summary", "", "")
    app.add_config_value("llms_details", "", "")
    app.connect("html-page-context", write_twin)
    app.connect("build-finished", write_list)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
