"""The report's checker outside of a report: by Node.js, or in Chromium where that is missing."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tasksieve.report.proof import checker_script

# The checker is a worker's script: here its messages go nowhere, and its work is called as a function.
_PROGRAM = """
const inside = (text) => `let onmessage; ${text}\\nreturn { verdictOf, CannotCheck, Differs };`;
const makeChecker = (text) => new Function("postMessage", inside(text))(() => {});
const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
const judge = async (script, cases) => {
  const checker = makeChecker(script), found = [];
  for (const [proof, data] of cases) {
    try {
      const { kind, words = [] } = await checker.verdictOf(new Blob([bytes(data)]), bytes(proof));
      found.push([kind, words.join("; ")]);
    } catch (error) {
      const { CannotCheck, Differs } = checker;
      const kind = error instanceof CannotCheck ? "unsupported" : error instanceof Differs ? "differs" : "unreadable";
      found.push([kind, String(error.message)]);
    }
  }
  return found;
};
"""
_BY_NODE = """
const { script, cases } = JSON.parse(require("fs").readFileSync(process.argv[2], "utf-8"));
judge(script, cases).then((found) => console.log(JSON.stringify(found)));
"""


def page_verdicts(cases: list[tuple[bytes, bytes]], folder: Path) -> list[tuple[str, str]]:
    """(kind, words) for each pair of a certificate and a file of arrays."""
    coded = [[base64.b64encode(part).decode("ascii") for part in pair] for pair in cases]
    node = shutil.which("node")
    if node is None:
        return [(kind, words) for kind, words in _by_chromium(coded)]
    (folder / "cases.json").write_text(json.dumps({"script": checker_script(), "cases": coded}))
    (folder / "program.cjs").write_text(_PROGRAM + _BY_NODE, encoding="utf-8")
    command = [node, str(folder / "program.cjs"), str(folder / "cases.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [(kind, words) for kind, words in json.loads(done.stdout)]


def _by_chromium(cases: list[list[str]]) -> Any:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Node.js, or Chromium and Playwright")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Node.js, or Chromium and Playwright")
    with playwright.sync_playwright() as running:
        try:
            browser = running.chromium.launch(executable_path=chromium, headless=True, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"Chromium ({chromium}) does not start here: {str(error).splitlines()[0]}")
        page = browser.new_page()
        program = f"([script, cases]) => {{ {_PROGRAM} return judge(script, cases); }}"
        found = page.evaluate(program, [checker_script(), cases])
        browser.close()
    return found
