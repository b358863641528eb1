"""Tables of times to an event, ordered classes and outcomes of unlike kinds, read by the recipe of a certificate: the
table that was fitted is proved, and none in which a cell says something else."""

from __future__ import annotations

import copy
import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasksieve as ts
from tasksieve.proof.certificate import Certificate
from tasksieve.verify import Unreadable, main, read_certificate

Cells = list[list[Any]]
ROWS = 30
PAINS = ["none", "some", "much"]
NAMES = ["u", "v", "site", "days", "dead", "since", "sex", "pain", "stage", "months", "back", "pressure"]


def columns() -> dict[str, Any]:
    """Two sites in turns; days are tied, strata are numbers in two spellings."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((ROWS, 2))
    days = np.ceil(6.0 * rng.exponential(np.exp(-x[:, 0]))) + 1.0
    pain = np.digitize(x[:, 0] + 0.4 * rng.standard_normal(ROWS), [-0.5, 0.5])
    return {
        "x": x,
        "site": np.resize(["north", "south"], ROWS),
        "days": days,
        "dead": rng.random(ROWS) < 0.7,
        "since": np.where(rng.random(ROWS) < 0.4, days - np.ceil(3.0 * rng.random(ROWS)), -1.0),
        "sex": rng.integers(1, 3, ROWS),
        "pain": pain,
        "stage": 10 * (2 - pain),
        "months": np.ceil(4.0 * rng.exponential(np.exp(-x[:, 1]))),
        "back": rng.random(ROWS) < 0.6,
        "pressure": 120.0 + 10.0 * x[:, 0] + rng.standard_normal(ROWS),
    }


DATA = columns()


def cells() -> Cells:
    rows = []
    for i in range(ROWS):
        sex, said = int(DATA["sex"][i]), ("1.0", "1") if i % 3 else ("1", "1.0")
        rows.append(
            [
                *DATA["x"][i].tolist(), DATA["site"][i], DATA["days"][i], "dead" if DATA["dead"][i] else "alive",
                DATA["since"][i], said[0] if sex == 1 else "2", PAINS[DATA["pain"][i]], int(DATA["stage"][i]),
                DATA["months"][i], int(DATA["back"][i]) + 1, DATA["pressure"][i],
            ]
        )  # fmt: skip
    return rows


DEATH = {"time": "days", "event": "dead", "equals": "dead"}
RETURN = {"time": "months", "event": "back", "equals": 2}
FULL = {**DEATH, "entry": "since", "strata": "sex"}


@cache
def fitted(kind: str) -> tuple[Certificate, Any]:
    x, site = DATA["x"], DATA["site"]
    pain = np.array(PAINS)[DATA["pain"]]
    death = ts.survival(DATA["days"], DATA["dead"])
    back = ts.survival(DATA["months"], DATA["back"])
    if kind == "cox":
        y = ts.survival(DATA["days"], DATA["dead"], DATA["since"], DATA["sex"])
        return ts.MultiTaskCox(0.02).fit(x, y, task=site).certificate(x, y, task=site), FULL
    if kind == "endpoints":
        return ts.MultiTaskCox(0.02).fit(x, [death, back]).certificate(x, [death, back]), [DEATH, RETURN]
    if kind == "ordinal":
        model = ts.MultiTaskOrdinal(0.02, categories=PAINS).fit(x, pain, task=site)
        return model.certificate(x, pain, task=site), "pain"
    if kind == "two orders":
        both = np.stack([DATA["stage"], DATA["stage"][::-1]], axis=1)
        return ts.MultiTaskOrdinal(0.02).fit(x, both).certificate(x, both), ["stage", "reversed"]
    if kind == "mixed":
        losses = {"pressure": "squared", "pain": ts.losses.Ordinal(), "death": "cox"}
        y = {"pressure": DATA["pressure"], "pain": DATA["pain"], "death": death}
        model = ts.MultiTaskMixed(losses, alpha=0.02).fit(x, y)
        targets = {"pressure": "pressure", "pain": "stage", "death": DEATH}
        certificate = model.certificate(x, y)
        # places of classes are what counts: stages fall where pains rise
        place = certificate.header["tasks"].index("pain")
        certificate.header["classes"][place] = [20, 10, 0]
        return certificate, [targets[task] for task in certificate.header["tasks"]]
    assert kind == "mixed sites"
    labels = np.array([DATA["pressure"][i] if site[i] == "north" else pain[i] for i in range(ROWS)], dtype=object)
    categories = {"south": PAINS}
    model = ts.MultiTaskMixed({"north": "squared", "south": "ordinal"}, alpha=0.02, categories=categories)
    return model.fit(x, labels, task=site).certificate(x, labels, task=site), "label"


def certified(kind: str) -> tuple[Certificate, Any]:
    """A certificate, and how its labels are read."""
    return copy.deepcopy(fitted(kind))


KINDS = ("cox", "endpoints", "ordinal", "two orders", "mixed", "mixed sites")


class Table:
    """A certificate, a table, and what the verifier says of the two."""

    def __init__(self, kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.certificate, target = certified(kind)
        self.certificate.header["table"] = {
            "columns": [{"source": "u"}, {"source": "v"}], "target": target, "missing": [""], "drop": False,
            "separator": ",", **({} if isinstance(target, list) else {"task": "site"}),
        }  # fmt: skip
        self.folder, self.capsys, self.rows = folder, capsys, cells()
        self.names = list(NAMES)
        if kind == "two orders":
            self.add("reversed", DATA["stage"][::-1].tolist())
        if kind == "mixed sites":
            labels = [row[11] if row[2] == "north" else row[7] for row in self.rows]
            self.add("label", labels)

    def add(self, name: str, values: list[Any]) -> None:
        self.names.append(name)
        for row, value in zip(self.rows, values, strict=True):
            row.append(value)

    def at(self, name: str) -> int:
        return self.names.index(name)

    def judged(self, *more: str) -> tuple[int, str]:
        (self.folder / "certificate.npz").write_bytes(self.certificate.to_bytes())
        with open(self.folder / "t.csv", "w", newline="") as file:
            csv.writer(file).writerows([self.names, *self.rows])
        code = main([str(self.folder / "certificate.npz"), str(self.folder / "t.csv"), *more])
        out, err = self.capsys.readouterr()
        return code, out + err


@pytest.fixture
def table(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Table:
    return Table(request.param, tmp_path, capsys)


@pytest.mark.parametrize("table", KINDS, indirect=True)
def test_the_table_that_was_fitted_is_proved(table: Table) -> None:
    code, words = table.judged()
    assert code == 0, words
    assert words.startswith("proved: ")
    table.rows.append([""] * len(table.names))
    table.rows[-1][:3] = [1.0, 2.0, "north"]  # no label: the row is not there
    assert table.judged()[0] == 0


def change(name: str, how: Callable[[Any], Any], row: int = 0) -> Callable[[Table], None]:
    def changed(table: Table) -> None:
        table.rows[row][table.at(name)] = how(table.rows[row][table.at(name)])

    return changed


def swap_sites(table: Table) -> None:
    for row in table.rows:
        row[2] = {"north": "south", "south": "north"}[row[2]]


def swap_targets(table: Table) -> None:
    table.certificate.header["table"]["target"].reverse()


def order_of_classes(table: Table) -> None:
    classes = table.certificate.header["classes"]
    own = next((one for one in classes if isinstance(one, list)), classes)
    own[0], own[1] = own[1], own[0]


def other_event(table: Table) -> None:
    target = table.certificate.header["table"]["target"]
    (target if isinstance(target, dict) else target[0])["equals"] = "alive"


def without_strata(table: Table) -> None:
    del table.certificate.header["table"]["target"]["strata"]


def without_entry(table: Table) -> None:
    del table.certificate.header["table"]["target"]["entry"]


FLIP = {"dead": "alive", "alive": "dead"}.__getitem__
OTHER = {"none": "some", "some": "much", "much": "some"}.__getitem__
LABELS = "are not those of the certificate"
CHANGES: list[tuple[str, Callable[[Table], None], str]] = [
    ("cox", change("days", lambda days: np.nextafter(days, np.inf)), LABELS),
    ("cox", change("days", lambda days: days + 1.0, row=7), LABELS),
    ("cox", change("dead", FLIP), LABELS),
    ("cox", change("dead", lambda _: "alife", row=int(np.argmax(DATA["dead"]))), LABELS),
    ("cox", change("since", lambda since: since - 0.5), LABELS),
    ("cox", change("since", lambda _: 1e9), "an entry is not before its time"),
    ("cox", change("since", lambda _: "-inf"), "is not a finite number"),
    ("cox", change("sex", lambda sex: "2" if sex != "2" else "1", row=4), LABELS),
    ("cox", change("days", lambda _: "nan"), "is not a finite number"),
    ("cox", change("days", lambda _: ""), "has 14 rows"),
    ("cox", swap_sites, LABELS),
    ("cox", other_event, LABELS),
    ("cox", without_strata, LABELS),
    ("cox", without_entry, LABELS),
    ("endpoints", change("months", lambda months: months * 2.0), LABELS),
    ("endpoints", change("back", lambda back: 3 - back), LABELS),
    ("endpoints", change("back", lambda _: "yes"), "is not a number"),
    ("endpoints", swap_targets, LABELS),
    ("ordinal", change("pain", OTHER), LABELS),
    ("ordinal", change("pain", lambda _: "worst"), "class 'worst'"),
    ("ordinal", order_of_classes, LABELS),
    ("ordinal", swap_sites, LABELS),
    ("two orders", change("reversed", lambda stage: 10 if stage != 10 else 0), LABELS),
    ("two orders", order_of_classes, LABELS),
    ("two orders", swap_targets, LABELS),
    ("mixed", change("days", lambda days: days + 1.0), LABELS),
    ("mixed", change("dead", FLIP), LABELS),
    ("mixed", change("stage", lambda stage: 10 if stage != 10 else 0), LABELS),
    ("mixed", change("pressure", lambda value: np.nextafter(value, 0.0)), LABELS),
    ("mixed", order_of_classes, LABELS),
    ("mixed sites", change("label", lambda value: value + 1e-9), LABELS),
    ("mixed sites", change("label", OTHER, row=1), LABELS),
    ("mixed sites", change("label", lambda _: "120", row=1), "class '120'"),
    ("mixed sites", change("label", lambda _: "none"), "is not a number"),
    ("mixed sites", order_of_classes, LABELS),
]


@pytest.mark.parametrize(("table", "spoil", "words"), CHANGES, indirect=["table"])
def test_one_change_is_refused(table: Table, spoil: Callable[[Table], None], words: str) -> None:
    spoil(table)
    code, said = table.judged()
    assert code == 1, said
    assert words in said


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("cox", "days"),
        ("cox", [FULL, FULL]),
        ("cox", {"time": "days"}),
        ("cox", {**FULL, "status": "dead"}),
        ("cox", {**FULL, "equals": None}),
        ("cox", {**FULL, "entry": 3}),
        ("cox", None),
        ("endpoints", [DEATH]),
        ("endpoints", DEATH["time"]),
        ("endpoints", [DEATH, "back"]),
        ("ordinal", DEATH),
        ("mixed", ["pressure", "stage", "days"]),
        ("mixed", ["pressure", DEATH, "stage"]),
    ],
)
def test_recipes_that_do_not_fit_the_labels(kind: str, target: Any) -> None:
    certificate, _ = certified(kind)
    certificate.header["table"] = {
        "columns": [{"source": "u"}, {"source": "v"}], "target": target, "missing": [], "drop": False, "separator": ","
    }  # fmt: skip
    with pytest.raises(Unreadable, match="'table' does not say how a table is read"):
        read_certificate(certificate.to_bytes())
