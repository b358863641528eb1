"""The built documentation in a browser, offline: formulas are drawn, search finds, nothing hangs over the edge.

`make docs` builds it; where it was not built, or Chromium is missing, these tests are skipped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGES = Path(__file__).parent.parent / "docs" / "_build" / "html"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")

if not (PAGES / "search.html").is_file():
    pytest.skip("the documentation is not built: make docs", allow_module_level=True)
if CHROMIUM is None:
    pytest.skip("the browser tests need Chromium: apt-get install chromium", allow_module_level=True)
try:
    from playwright.sync_api import Browser, Page, Request, sync_playwright
except ImportError:
    pytest.skip("the browser tests need Playwright: pip install playwright", allow_module_level=True)

SHOWN = [
    "index.html",
    "models/lasso.html",
    "certificate.html",
    "develop/mathematics.html",
    "from-r.html",
    "api.html",
    "api/generated/tasksieve.MultiTaskLasso.html",
    "gallery/index.html",
    "gallery/plot_proof.html",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def opened(browser: Browser, width: int, scheme: str) -> tuple[Page, list[str]]:
    """A page of that width, and the addresses outside of the folder that it will ask for."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True  # type: ignore[arg-type]
    )
    page = context.new_page()
    asked: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith(("file:", "data:")):
            asked.append(request.url)

    page.on("request", note)
    return page, asked


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_pages_stand_alone_and_fit(browser: Browser, width: int, scheme: str) -> None:
    page, asked = opened(browser, width, scheme)
    for name in SHOWN:
        page.goto((PAGES / name).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
    assert asked == []
    page.context.close()


def test_formulas_are_drawn_in_their_font(browser: Browser) -> None:
    page, asked = opened(browser, 1280, "light")
    page.goto((PAGES / "develop" / "mathematics.html").as_uri())
    page.evaluate("document.fonts.ready")
    assert page.evaluate('document.fonts.check("16px \\"STIX Two Math\\"")')
    sizes = page.evaluate("[...document.querySelectorAll('math')].map(m => m.getBoundingClientRect().width)")
    assert len(sizes) > 100
    assert min(sizes) > 1.0
    tall = page.locator("div.math math").first.evaluate("m => m.getBoundingClientRect().height")
    assert tall > 20.0  # a fraction, a sum: not a line of text
    assert asked == []
    page.context.close()


def test_search_finds_from_the_folder(browser: Browser) -> None:
    page, asked = opened(browser, 1280, "light")
    page.goto((PAGES / "index.html").as_uri())
    box = page.locator("input[name=q]").first
    box.fill("MultiTaskOWL")
    box.press("Enter")
    page.wait_for_selector("#search-results li")
    assert "MultiTaskOWL" in page.locator("#search-results li").first.inner_text()
    assert asked == []
    page.context.close()
