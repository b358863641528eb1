"""Every Python example of the documentation and the README runs."""

from __future__ import annotations

import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "docs" / "_build"  # has twins of all pages
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if BUILT not in page.parents)]
BLOCK = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^ *```", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[tuple[int, str]]:
    """Line number and code of each block, definition-list indentation removed."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("code"))
        found.append((line, re.sub(f"^{match['indent']}", "", match["code"], flags=re.MULTILINE)))
    return found


#: tools that a page shows, and that are no extra of the tests: a page ends at the first that is not there
TOOLS = ("shap", "mlflow", "skops")
NOT_INSTALLED = "|".join(name for name in TOOLS if not find_spec(name)) or "(?!)"
MISSING_TOOLS = re.compile(rf"^import ({NOT_INSTALLED})\b", re.MULTILINE)


def marked(page: Path) -> object:
    """The page of clusters starts one, that of tools imports large ones, that of prediction intervals fits models in
    folds of folds."""
    slow = page.stem in ("cluster", "tools", "prediction-intervals")
    return pytest.param(page, id=page.stem, marks=pytest.mark.slow if slow else ())


@pytest.mark.sampled(3)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("page", [marked(page) for page in PAGES if blocks(page)])
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page share one namespace, as if typed one after the other."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlflow").as_uri())  # not to the reader's own server
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, code in blocks(page):
        if tool := MISSING_TOOLS.search(code):
            pytest.skip(f"{tool[1]} is not installed: its block and those behind it are not run")
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            # blank lines in front, so that a traceback shows the page's own line numbers
            exec(compile("\n" * line + code, str(page), "exec"), namespace)
