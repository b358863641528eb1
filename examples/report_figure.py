"""The picture of a report: the demo's, photographed in Chromium (the operating system's; no browser is downloaded).

python examples/report_figure.py docs/_static/report.png
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import tempfile
from pathlib import Path

from demo import digits

WIDTH, ROWS = 1120, 8


def screenshot(target: Path) -> None:
    """Write the picture; where Chromium or Playwright is missing, say so and leave the old one."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser = None
    if browser is None:
        print(f"{target} left as it is: it needs Chromium and `pip install playwright pillow`")
        return
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(io.StringIO()):
            report = digits(Path(folder) / "report.html")
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(
                executable_path=browser, args=["--no-sandbox", "--disable-gpu"]
            )
            page = chromium.new_page(viewport={"width": WIDTH, "height": 1800})
            page.goto(report.resolve().as_uri())
            page.wait_for_selector("html[data-ready]", state="attached")
            # down to the strongest features; the rest of the page says the rest
            last = page.locator("#feature-table tbody tr").nth(ROWS - 1).bounding_box()
            picture = page.screenshot(
                clip={"x": 0, "y": 0, "width": WIDTH, "height": last["y"] + last["height"] + 8}
            )
            chromium.close()
    # 64 colours are enough for lines and text, and keep the file small
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(
        target, optimize=True
    )
    print(target)


if __name__ == "__main__":
    screenshot(Path(sys.argv[1] if len(sys.argv) > 1 else "report.png"))
