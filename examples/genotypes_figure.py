"""The picture of variants along the genome: the toy data's, photographed in Chromium (the operating system's).

python examples/genotypes_figure.py docs/_static/genotypes.png
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tasksieve.datasets import write_toy_genotypes

WIDTH = 1120


def genotypes_figure(target: Path) -> None:
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
        toy = write_toy_genotypes(folder)
        words = f"--bfile {toy} --pheno {toy}.pheno --pheno-name trait --covar {toy}.covar --task cohort --maf 0.01"
        given = [*words.split(), "--geno", "0.1", "--stability", "--out", f"{folder}/run", "--quiet"]
        subprocess.run([sys.executable, "-m", "tasksieve", "fit", *given], check=True)
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
            page = chromium.new_page(viewport={"width": WIDTH, "height": 900})
            page.goto((Path(folder) / "run" / "report.html").as_uri())
            page.wait_for_selector("html[data-ready]", state="attached")
            picture = page.locator("#genome").screenshot()
            chromium.close()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)
    print(target)


if __name__ == "__main__":
    genotypes_figure(Path(sys.argv[1] if len(sys.argv) > 1 else "genotypes.png"))
