"""Reports in a real browser: Chromium of the operating system (CHROMIUM names another), its driver from PyPI."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tasksieve.report import ReportContent, write_report

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


HANGS = 600_000  # milliseconds after which a page has stopped for good, however busy the machine


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; without it, or without its driver, tests in it are skipped."""
    api = pytest.importorskip("playwright.sync_api", reason="the browser tests need Playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("the browser tests need Chromium: apt-get install chromium")
    api.expect.set_options(timeout=HANGS)
    with api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        except api.Error as error:
            pytest.skip(f"Chromium ({CHROMIUM}) does not start here: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


Opener = Callable[..., Any]


@pytest.fixture
def open_report(browser: Any, tmp_path: Path) -> Iterator[Opener]:
    """Open a report in a new page; in the end there must have been no error and no request but the file's own."""
    seen: list[str] = []
    contexts = []

    def opened(content: ReportContent | Path, **options: Any) -> Any:
        file = (
            content
            if isinstance(content, Path)
            else write_report(content, tmp_path / f"{len(contexts)}.html")
        )
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        context.set_default_timeout(HANGS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: seen.append(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: seen.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: None if request.url == file.as_uri() else seen.append(f"request: {request.url}"),
        )
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert seen == []
