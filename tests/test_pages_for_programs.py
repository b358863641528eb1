"""Pages for programs (Markdown twins, llms.txt), and the checker of links: of small pages, and of those built."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "docs" / "_build" / "html"
BY_SPHINX = {"search", "genindex", "py-modindex", "np-modindex"}  # made of other pages
needs_pages = pytest.mark.skipif(not (BUILT / "llms.txt").is_file(), reason="the documentation is not built: make docs")


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import check_links

    return check_links


# --- small pages -----------------------------------------------------------------------------------------------------

CONF = """
import sys
sys.path[:0] = [{extensions!r}, {here!r}]
project, html_theme = "small", "basic"
extensions = ["myst_parser", "sphinx.ext.autodoc", "plain_pages"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
llms_summary, llms_details = "What it is.", "How to read it."
"""
INDEX = """# Small

The first page has a [link](inner/second.md#a-part) and `code`. More follows.

| name | value |
|---|---|
| a\\|b | $x^2$ |

1. one

   ```python
   x = 1
   ```

- two **bold**

$$
y = Xw
$$

```{toctree}
:caption: Pages

inner/second
reference
```
"""
SECOND = """# Second

:::{note}
Mind this.
:::

## A part

To [the function](../reference.rst) and [elsewhere](https://example.org/a_(b)).

> quoted
"""
REFERENCE = """Reference
=========

.. autofunction:: small_module.double
"""
MODULE = '''
def double(x: float, times: int = 1) -> float:
    """Twice a number.

    :param x: what is doubled
    """
    return 2 * x * times
'''


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx", reason="the documentation's tools: make docs installs them")
    pytest.importorskip("myst_parser", reason="the documentation's tools: make docs installs them")
    source = tmp_path_factory.mktemp("small")
    (source / "inner").mkdir()
    extensions = str(ROOT / "docs" / "_extensions")
    (source / "conf.py").write_text(CONF.format(extensions=extensions, here=str(source)), encoding="utf-8")
    (source / "index.md").write_text(INDEX, encoding="utf-8")
    (source / "inner" / "second.md").write_text(SECOND, encoding="utf-8")
    (source / "reference.rst").write_text(REFERENCE, encoding="utf-8")
    (source / "small_module.py").write_text(MODULE, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(source), str(source / "html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return source / "html"


def test_a_twin_says_what_the_page_says(small: Path) -> None:
    first = (small / "index.md").read_text(encoding="utf-8")
    assert first.startswith("# Small\n\nThe first page has a [link](inner/second.md) and `code`. More follows.\n")
    assert "| name | value |\n| --- | --- |\n| a\\|b | $x^2$ |" in first
    assert "1. one\n\n   ```python\n   x = 1\n   ```" in first
    assert "- two **bold**" in first
    assert "$$\ny = Xw\n$$" in first
    second = (small / "inner" / "second.md").read_text(encoding="utf-8")
    assert "> **Note.** Mind this." in second
    assert "## A part\n\nTo [the function](../reference.md) and [elsewhere](https://example.org/a_(b))." in second
    assert "> quoted" in second


def test_twins_of_the_reference_have_signatures_and_docstrings(small: Path) -> None:
    text = (small / "reference.md").read_text(encoding="utf-8")
    assert "small_module.double(x: float, times: int = 1)" in text
    assert "Twice a number." in text
    assert "what is doubled" in text


def test_the_list_has_every_page_and_its_first_sentence(small: Path) -> None:
    text = (small / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# small\n\n> What it is.\n\nHow to read it.\n\n## Start\n\n")
    assert "- [Small](index.md): The first page has a link and `code`.\n" in text
    assert "## Pages\n\n- [Second](inner/second.md)" in text
    assert "- [Reference](reference.md)" in text
    for page in ("index", "inner/second"):
        name = page.rpartition("/")[2]
        assert f'type="text/markdown" title="as Markdown" href="{name}.md"' in (small / f"{page}.html").read_text()


def test_wrong_links_are_found(small: Path, links: ModuleType, tmp_path: Path) -> None:
    (wrong,) = links.check(small).wrong  # Sphinx's own way to draw formulas, which the documentation does without
    assert wrong.startswith("index.html: is fetched from elsewhere: https://")
    assert "mathjax" in wrong
    (tmp_path / "part").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top">x</h1><a href="#top">ok</a><a href="part/a.html#here">ok</a><a href="https://example.org">ok</a>'
        '<a href="part/b.html">1</a><a href="part/a.html#there">2</a><a href="#nowhere">3</a><a href="../x.html">4</a>'
        '<script src="https://example.org/x.js"></script><img src="none.png"><a href="javascript:x()">7</a>'
    )
    (tmp_path / "part" / "a.html").write_text('<p id="here"><a href="../index.html">ok</a>')
    (tmp_path / "index.md").write_text("[ok](part/a.html) `[no](link.md)` [8](none.md)")
    style = '@import "https://example.org/y.css"; a { background: url(data:image/png;base64,x) }'
    (tmp_path / "x.css").write_text(style)
    found = links.check(tmp_path)
    assert len(found.wrong) == 9
    for said in ("b.html", "#there", "#nowhere", "leads out of the pages: ../x.html", "fetched from elsewhere: https",
                 "none.png", "no known kind: javascript", "none.md", "x.css: is fetched"):  # fmt: skip
        assert any(said in one for one in found.wrong), said


# --- the documentation itself ----------------------------------------------------------------------------------------


def built() -> set[str]:
    """Pages with content of their own."""
    pages = {str(file.relative_to(BUILT).with_suffix("")) for file in BUILT.rglob("*.html")}
    return {page for page in pages - BY_SPHINX if not page.startswith(("_static", "_modules", "_sources"))}


@needs_pages
def test_the_list_is_complete() -> None:
    listed = re.findall(r"^- \[.*?\]\((.+?)\.md\)", (BUILT / "llms.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == built()
    twins = [file.relative_to(BUILT) for file in BUILT.rglob("*.md")]
    assert {str(file.with_suffix("")) for file in twins if file.parts[0] != "_sources"} == built()


@needs_pages
def test_twins_of_the_reference_are_not_empty() -> None:
    names = re.findall(r"^   ([A-Za-z_.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(names) > 150
    for name in names:
        text = (BUILT / "api" / "generated" / f"tasksieve.{name}.md").read_text(encoding="utf-8")
        assert name.rpartition(".")[2] in text
        assert len(text) > 100, name
    lasso = (BUILT / "api" / "generated" / "tasksieve.MultiTaskLasso.md").read_text(encoding="utf-8")
    assert "sample_weight" in lasso
    assert "$$" in lasso


@needs_pages
@pytest.mark.slow
def test_every_link_of_the_pages_leads_somewhere(links: ModuleType) -> None:
    found = links.check(BUILT)
    assert found.links > 10_000
    assert found.wrong == []
