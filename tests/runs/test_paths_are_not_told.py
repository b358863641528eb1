"""What is shown around does not tell where the table lies: folders tell of people and projects."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from cli_helpers import CommandLine

#: what a run keeps to be resumed and reproduced where it is
OWN = {"config.json", "data.json", "log.txt"}
FOLDER = "patients of dr x"


def test_no_file_that_is_shared_has_the_path_of_the_table(cli: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in ("nord", "süd"):
        X = rng.standard_normal((30, 3))
        X[:2, 1] = np.nan
        data = pd.DataFrame(X, columns=["größe", "b", "c"]).assign(y=X[:, 0] + rng.standard_normal(30))
        data.to_csv(folder / f"{name}.csv", index=False, sep=";", decimal=",", encoding="cp1252")  # said in notes
    pd.DataFrame({"from": ["nord"], "to": ["süd"], "weight": [1.0]}).to_csv(folder / "edges.csv", index=False)
    tables = folder / "nord.csv", folder / "süd.csv"
    words = ("--missing", "task-mean", "--task-graph", folder / "edges.csv", "--cv", 3, "--alphas", 4, "--intervals")
    cli("fit", *tables, "-y", "y", "--model", "any", *words, "-o", folder / "run")
    found = []
    for file in sorted((folder / "run").iterdir()):
        parts = [file.read_bytes()]
        if file.suffix == ".npz":
            with zipfile.ZipFile(file) as archive:
                parts += [archive.read(name) for name in archive.namelist()]
        if any(FOLDER.encode(code) in part for part in parts for code in ("utf-8", "utf-32-le")):
            found.append(file.name)
    assert set(found) == OWN
    assert (folder / "run" / "report.html").is_file()
    assert (folder / "run" / "certificate.npz").is_file()
