"""A table written by hand, `tasksieve fit`, and the report in a real browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tasksieve.report

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
try:
    from playwright.sync_api import Error, sync_playwright
except ImportError:
    pytest.skip("the browser tests need Playwright: pip install playwright", allow_module_level=True)
if CHROMIUM is None:
    pytest.skip("the browser tests need Chromium: apt-get install chromium", allow_module_level=True)
if not hasattr(tasksieve.report, "write_report"):
    pytest.skip("this installation has no HTML report", allow_module_level=True)

TABLE = """school,method,hours,noise,score
north,old,1,0.3,11
north,new,2,0.1,24
north,old,3,0.8,31
north,new,4,0.2,44
north,old,5,0.9,51
north,new,6,0.4,64
south,old,2,0.7,10
south,new,4,0.5,30
south,old,6,0.6,30
south,new,8,0.1,50
south,old,10,0.3,50
south,new,12,0.2,70
"""


@pytest.mark.slow
def test_from_a_csv_file_to_a_report_in_the_browser(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text(TABLE)
    command = [
        "fit",
        "scores.csv",
        "--target",
        "score",
        "--task",
        "school",
        "--cv",
        "3",
        "--alphas",
        "20",
        "--out",
        "run",
    ]
    subprocess.run([sys.executable, "-m", "tasksieve", *command], cwd=tmp_path, check=True)
    errors: list[str] = []
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
            )
        except Error as error:
            pytest.skip(f"Chromium ({CHROMIUM}) does not start here: {str(error).splitlines()[0]}")
        page = browser.new_page()
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((tmp_path / "run" / "report.html").as_uri())
        text = page.inner_text("body")
        browser.close()
    assert errors == []
    for words in ("score", "hours", "method=old", "2 tasks", "tasksieve fit", "scores.csv"):
        assert words in text, words
