"""tasksieve verify on run folders: whatever predict reads of one is what was proved, of every kind of model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_kinds import KINDS
from run_mutants import Honest, Outcome, call, honest_run, try_mutants

from tasksieve import verify
from tasksieve.runs import RunFolder, load_model
from tasksieve.runs.model_file import packed_model
from tasksieve.tables import write_arrays
from tasksieve.tables.basis import PredictionBasis

Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Honest]:
    """A run of each kind, fitted once."""
    return cache(lambda name: honest_run(name, tmp_path_factory.mktemp("runs") / "run"))


def forged(honest: Honest, folder: Path, change: Change) -> Outcome:
    """The verdict on a copy of a run that was changed, with a manifest that says so."""
    shutil.copytree(honest.run, folder)
    change(folder)
    RunFolder(folder).finish()
    return call("verify", folder)


def edit(name: str, change: Callable[[Any], None]) -> Change:
    """A change of a JSON file."""

    def apply(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return apply


def model(change: Callable[[Any], None]) -> Change:
    return edit("model.json", change)


def facts(**said: Any) -> Change:
    return model(lambda content: content["facts"].update(said))


def arrays(change: Callable[[dict[str, Any]], None], name: str = "model.npz") -> Change:
    def apply(folder: Path) -> None:
        with np.load(folder / name) as file:
            found = {key: file[key] for key in file.files}
        change(found)
        write_arrays(folder / name, found)

    return apply


def turn(*at: Any) -> Change:
    """A list of model.json backwards."""

    def change(content: Any) -> None:
        *inside, last = at
        for key in inside:
            content = content[key]
        content[last] = content[last][::-1]

    return model(change)


def replaced(old: str, new: str) -> Change:
    """Other words in model.json."""

    def apply(folder: Path) -> None:
        text = json.dumps(json.loads((folder / "model.json").read_text()))
        assert old in text
        (folder / "model.json").write_text(text.replace(old, new))

    return apply


def added(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(found: dict[str, Any]) -> None:
        found[name] = found[name] + value

    return change


def written(name: str, content: bytes) -> Change:
    def apply(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return apply


def rewritten(name: str, change: Callable[[str], str]) -> Change:
    def apply(folder: Path) -> None:
        text = (folder / name).read_text()
        assert change(text) != text
        (folder / name).write_text(change(text))

    return apply


def both(one: Change, other: Change) -> Change:
    def apply(folder: Path) -> None:
        one(folder)
        other(folder)

    return apply


def other_survival(content: Any) -> None:
    own = next(iter(content["facts"]["survival"].values()))
    own["time"], own["strata"] = own["strata"], own["time"]


def twice(folder: Path) -> None:
    text = (folder / "model.json").read_text()
    (folder / "model.json").write_text(text.replace('"task":', '"task": "nobody", "task":', 1))


def numbers_as_words(content: Any) -> None:
    content["tasks"] = [["str", str(label)] for _, label in content["tasks"]]


#: kind of the run, what is changed, and a word of the verdict
FORGERIES: dict[str, tuple[str, Change, str]] = {
    "order of classes": ("ordinal", turn("classes", "all"), "classes"),
    "order of classes and of categories": (
        "ordinal",
        both(turn("classes", "all"), turn("params", "categories", "labels")),
        "classes",
    ),
    "two classes": ("logistic", turn("classes", "all"), "classes"),
    "classes of an ordered task": ("mixed", turn("classes", "pairs", 1), "classes"),
    "three classes": ("multinomial", turn("classes", "all"), "classes"),
    "no offset": ("offset and weights", facts(offset=None), "offset"),
    "another offset": ("offset and weights", facts(offset="a"), "offset"),
    "an offset that was not": ("lasso", facts(offset="a"), "offset"),
    "no offset needed": ("offset and weights", model(lambda own: own.pop("needs_offset")), "needs offset"),
    "means": ("mean", arrays(added("fill", 5.0)), "fill"),
    "means of tasks": ("task-mean", arrays(lambda own: own.update(fill=own["fill"][::-1].copy())), "fill"),
    "missing values": ("task-mean", facts(missing="indicator"), "missing"),
    "tasks of patterns": ("patterns", turn("pattern_of"), "patterns"),
    "present columns": ("patterns", arrays(lambda own: own.update(present=~own["present"])), "model.npz"),
    "task": ("lasso", model(lambda own: own.update(task="city")), "task"),
    "targets": ("lasso", model(lambda own: own.update(targets=["z"])), "targets"),
    "targets turned": ("several targets", turn("targets"), "targets"),
    "columns of times": ("cox", model(other_survival), "survival"),
    "baseline hazard": ("cox", arrays(added("baseline_log_increment", np.log(1000.0))), "baseline hazard"),
    "strata turned": ("cox", turn("strata"), "baseline hazard"),
    "end of times": ("cox", arrays(added("baseline_end", 10.0)), "baseline hazard"),
    "thresholds": ("ordinal", arrays(added("thresholds", 0.5)), "thresholds"),
    "a category more": ("lasso", replaced('["blue", "green", "red"]', '["blue", "green", "red", "violet"]'), ""),
    "reference": ("lasso", replaced('"reference": "Bonn"', '"reference": "Oslo"'), ""),
    "a category of the reference": ("lasso", replaced('["Bonn", "Oslo"]', '["Bonn", "Oslo", "Rome"]'), "encoding"),
    "parts of dates": ("dates", replaced('"ISO8601"', '"%d.%m.%Y"'), "encoding"),
    "tasks as words": ("matrix", model(numbers_as_words), "tasks"),
    "one task": ("one task", model(lambda own: own.update(single=False)), "single"),
    "a path without a choice": ("lasso", facts(choice=False), "choice"),
    "who rows are": ("lasso", facts(id="a"), "id"),
    "columns that a file lacks": ("files", facts(lacking={}), "lacking"),
    "tasks of files": ("files", facts(files=None), "files"),
    "variants": (
        "genotypes", rewritten("variants.csv", lambda text: text.replace(",A,G,", ",G,A,")), "variants.csv"
    ),
    "means of genotypes": ("genotypes", arrays(added("fills_means", 0.25)), "fills"),
    "an unknown field": ("lasso", model(lambda own: own.update(boost=2.0)), "boost"),
    "an unknown fact": ("lasso", facts(boost=2.0), "boost"),
    "an unknown array": ("lasso", arrays(lambda own: own.update(boost=np.ones(3))), "boost"),
    "an unknown coding": ("dates", replaced('"way":', '"origin": 3, "way":'), "origin"),
    "a field twice": ("lasso", twice, "twice"),
    "a number that is none": ("lasso", replaced('"n_iter": ', '"boost": NaN, "n_iter": '), "NaN"),
    "a number as a word": ("lasso", model(lambda own: own.update(n_iter=str(own["n_iter"]))), "n_iter"),
    "numbers of half the digits": (
        "lasso", arrays(lambda own: own.update(feature_ends=own["feature_ends"].astype(np.int32))), "feature_ends"
    ),
    "a stream beside it": ("lasso", written("stream.npz", b"PK"), "stream.npz"),
    "features.csv": (
        "lasso", written("features.csv", b"feature,strength_per_standard_deviation,tasks_in_use\nc,1.0,2\n"),
        "features.csv",
    ),
    "tolerance": ("lasso", edit("certificate.json", lambda own: own.update(tol=1e-12)), "tol"),
    "a claim that is none": ("lasso", edit("certificate.json", lambda own: own.update(exact=True)), "exact"),
    "standard deviations": ("lasso", arrays(added("scale_values", 1.0)), "standard deviations"),
    "penalty of the options": ("elastic-net", edit("config.json", lambda own: own.update(l1_ratio="0.9")), "params"),
    "missing values in the options": ("mean", edit("config.json", lambda own: own.update(missing="task-mean")), ""),
    "options that are none": ("lasso", edit("config.json", lambda own: own.update(boost=2)), "boost"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_run_that_predicts_otherwise_is_not_proved(
    honest: Callable[[str], Honest], tmp_path: Path, name: str
) -> None:
    kind, change, word = FORGERIES[name]
    found = forged(honest(kind), tmp_path / "forged", change)
    assert found.code == 1, found.out + found.err
    assert found.out.startswith("not proved:")
    assert word in found.out


def test_the_verifier_has_a_list_of_its_own_of_what_predictions_depend_on(
    honest: Callable[[str], Honest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(verify.PREDICTION) == {one.name for one in fields(PredictionBasis)}
    known = {name: how for name, how in verify.PREDICTION.items() if name != "fill"}
    monkeypatch.setattr(verify, "PREDICTION", known)
    found = forged(honest("lasso"), tmp_path / "same", lambda folder: None)
    assert found.code == 1
    assert "'fill'" in found.out


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", KINDS)
def test_honest_runs_are_proved_and_written_as_they_are_read(honest: Callable[[str], Honest], name: str) -> None:
    run = RunFolder(honest(name).run)
    content, stored = packed_model(load_model(run))
    assert json.loads(json.dumps(content)) == run.read_json("model.json")
    with np.load(run / "model.npz") as file:
        assert set(file.files) == set(stored)
    proved = call("verify", run.path)
    assert proved.code == 0, proved.out
    assert "compared with certificate and data: all that predict reads of model.json and model.npz" in proved.out


def test_the_verdict_names_what_it_does_not_cover(honest: Callable[[str], Honest], tmp_path: Path) -> None:
    words = call("verify", honest("cross-validated").run).out
    assert "not proved: folds.npz, from which predict --interval makes its intervals" in words
    (line,) = [one for one in words.splitlines() if one.startswith("words about the run, not proved: ")]
    for word in ("config.json", "cv_quality.csv", "out_of_fold.csv", "quality.csv", "methods.txt", "status"):
        assert word in line
    assert "tables.json" in call("verify", honest("ordinal").run).out
    change = edit("config.json", lambda own: own.update(max_categories=7))
    assert forged(honest("lasso"), tmp_path / "words", change).code == 0


def test_the_verdict_names_the_order_of_classes(honest: Callable[[str], Honest]) -> None:
    assert "order of the classes: low < mid < high" in call("verify", honest("ordinal").run).out
    assert "order of the classes of task 'grade': low < mid < high" in call("verify", honest("mixed").run).out
    assert "order of the classes" not in call("verify", honest("logistic").run).out


def test_classes_without_rows_have_their_place_in_the_order(tmp_path: Path) -> None:
    """The lowest, one between and the highest class of a task, in turn."""
    for gone in ("low", "mid", "high"):
        kind = KINDS["ordinal"]
        words = kind.fit(tmp_path / gone)
        lines = Path(words[1]).read_text().splitlines()
        kept = [line for line in lines if not line.startswith(f"n,{gone},")]
        Path(words[1]).write_text("\n".join(kept) + "\n")
        assert call(*words).code == 0
        found = call("verify", tmp_path / gone / "run")
        assert found.code == 0, found.out
        lie = Honest(kind, tmp_path / gone / "run", [[words[1]]])
        assert forged(lie, tmp_path / f"{gone} forged", turn("classes", "all")).code == 1
        moved = arrays(added("thresholds", np.array([0.1, 0.0, 0.0, 0.0])))
        if gone != "low":  # which is minus infinity
            assert forged(lie, tmp_path / f"{gone} moved", moved).code == 1


def test_exit_codes(honest: Callable[[str], Honest], tmp_path: Path) -> None:
    def gone(folder: Path) -> None:
        edit("config.json", lambda own: own.update(table=str(tmp_path / "nowhere.csv")))(folder)

    assert forged(honest("lasso"), tmp_path / "a", gone).code == 2
    assert forged(honest("dates"), tmp_path / "b", gone).code == 2
    assert forged(honest("lasso"), tmp_path / "c", written("certificate.npz", b"nothing")).code == 2
    assert forged(honest("lasso"), tmp_path / "d", written("model.json", b"nothing")).code == 1
    assert call("verify", honest("lasso").run, "--data", tmp_path / "nowhere.csv").code == 2


# --- mutants -------------------------------------------------------------------------------------------------------


def refuse_wrong(honest: Honest, n: int, seed: list[int], folder: Path, changes: int, one_in: int = 1) -> None:
    found = try_mutants(honest, n, np.random.default_rng(seed), folder, changes, one_in)
    assert not found.wrong
    assert found.accepted < n  # most are refused


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", KINDS)
def test_no_mutant_that_predicts_otherwise_is_proved(
    honest: Callable[[str], Honest], tmp_path: Path, name: str
) -> None:
    refuse_wrong(honest(name), 20, [2, list(KINDS).index(name)], tmp_path, 1, one_in=3)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [1, 2])
@pytest.mark.parametrize("name", KINDS)
def test_many_mutants(honest: Callable[[str], Honest], tmp_path: Path, name: str, changes: int) -> None:
    refuse_wrong(honest(name), 90, [90, changes, list(KINDS).index(name)], tmp_path, changes)
