"""Four data sets as people have them, to try the command line on; docs/develop/trials.md says how that went.

- sorted/diabetes.csv: 442 patients, four age bands as tasks, sorted by band and then by the target.
- wines/: a file per cultivar, columns in different orders; one file lacks a column, one has a typo
  in a name. wines-new.csv: rows to predict.
- clinic.csv: ids, dates, words, gaps, a column that is nearly constant, names beyond ASCII.
  clinic-comma.csv: with decimal commas.
- wide.csv: 60 rows of 200,000 columns (about 80 MB), three tasks, ten columns that matter.

    python examples/trial_data.py --out trial-data
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_wine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("trial-data"), help="folder of the data sets")
    parser.add_argument("--columns", type=int, default=200_000, help="columns of wide.csv")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    sorted_table(arguments.out)
    file_per_task(arguments.out)
    ids_and_dates(arguments.out, np.random.default_rng(0))
    wide_table(arguments.out, arguments.columns, np.random.default_rng(1))
    for file in sorted(arguments.out.rglob("*.csv")):
        print(f"{file}  {file.stat().st_size:,} bytes")


def sorted_table(folder: Path) -> None:
    """Diabetes in its own units; folds of consecutive rows would hold out the worst cases together."""
    data = load_diabetes(scaled=False)
    age = data.data[:, 0]
    bands = np.array(["19-34", "35-44", "45-54", "55-79"])[np.digitize(age, [35, 45, 55])]
    order = np.lexsort((data.target, bands))
    rows = [[bands[i], *data.data[i], data.target[i]] for i in order]
    write(folder / "sorted" / "diabetes.csv", ["age_band", *data.feature_names, "progression"], rows)


def file_per_task(folder: Path) -> None:
    """Wine: proline from the other measurements, a file for each of the three cultivars."""
    data = load_wine()
    names = [name.replace("/", "_") for name in data.feature_names]
    for cultivar, town in enumerate(["barolo", "grignolino", "barbera"]):
        table = data.data[data.target == cultivar]
        order = np.random.default_rng(cultivar).permutation(len(names))
        if town == "grignolino":
            order = np.array([column for column in order if names[column] != "ash"])
        header = [names[column] for column in order]
        if town == "barbera":
            header = ["flavonoids" if name == "flavanoids" else name for name in header]
            write(folder / "wines-new.csv", header, table[-5:, order])
            table = table[:-5]
        write(folder / "wines" / f"{town}.csv", header, table[:, order])


def ids_and_dates(folder: Path, rng: np.random.Generator) -> None:
    """Simulated visits to three clinics: how long a patient stays, by age, weight, ward and smoking."""
    header = ["Patient", "Klinik", "Aufnahme", "Station", "Größe", "Gewicht", "Alter", "Raucher", "Gerät", "Liegedauer"]
    rows: list[list[object]] = []
    for number in range(240):
        clinic = ["Köln", "Zürich", "Łódź"][number % 3]
        ward = ["Chirurgie", "Innere", "Allgemein"][rng.integers(3)]
        height, weight, age = rng.normal(1.72, 0.09), rng.normal(78, 13), int(rng.integers(19, 90))
        smoker = ["ja", "nein"][rng.integers(2)]
        days = 2 + 0.08 * age + 3 * (ward == "Chirurgie") + 1.5 * (smoker == "ja") + (number % 3) + rng.normal(0, 1)
        row: list[object] = [
            f"P{number:04d}",
            clinic,
            (date(2024, 1, 1) + timedelta(days=int(rng.integers(700)))).isoformat(),
            ward,
            f"{height:.2f}",
            f"{weight:.1f}" if rng.random() > 0.04 else "",
            age,
            smoker,
            2 if number == 17 else 1,
            f"{days:.1f}",
        ]
        rows.append(row)
    write(folder / "clinic.csv", header, rows)
    commas = [[cell.replace(".", ",") if isinstance(cell, str) else cell for cell in row] for row in rows]
    write(folder / "clinic-comma.csv", header, commas, separator=";")


def wide_table(folder: Path, columns: int, rng: np.random.Generator) -> None:
    """Three sites of 20 rows; the same ten columns matter in each, by different amounts."""
    matter = np.sort(rng.choice(columns, 10, replace=False))
    header = ["site", *(f"g{column:06d}" for column in range(columns)), "response"]

    def rows() -> Iterable[list[object]]:
        for site in ["east", "north", "south"]:
            effects = rng.uniform(1, 2, 10)
            for _ in range(20):
                values = rng.standard_normal(columns).round(3)
                response = values[matter] @ effects + rng.normal(0, 0.5)
                yield [site, *values.tolist(), round(float(response), 4)]

    write(folder / "wide.csv", header, rows())
    print("columns of wide.csv that matter:", " ".join(f"g{column:06d}" for column in matter))


def write(file: Path, header: Sequence[str], rows: Iterable[Sequence[object]], separator: str = ",") -> None:
    """A CSV file, UTF-8."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
