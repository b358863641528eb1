"""Run folders with one thing changed, and whether predictions notice: for tests of what `tasksieve verify` accepts.

A mutant is a copy of a run in which a leaf of a JSON file, an entry of an array, an order, a name or a file is another;
its manifest is made to fit. What matters is a mutant that is called proved and predicts otherwise than the run.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import shutil
import zipfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from cli_helpers import command
from plink_files import draw_counts, write_plink
from run_kinds import KINDS, Kind, rows_of_table, write_csv

from tasksieve.runs import RunFolder
from tasksieve.runs.folder import OWN
from tasksieve.tables import write_arrays

Rng = np.random.Generator
Change = Callable[[Path], None]
#: how often each file of a run is changed
OFTEN = {
    "model.json": 10, "model.npz": 8, "config.json": 3, "certificate.npz": 3, "certificate.json": 1, "path.npz": 2,
    "path.csv": 1, "features.csv": 1, "coefficients.csv": 1, "intercepts.csv": 1, "variants.csv": 4, "score.tsv": 2,
    "tables.json": 1, "data.json": 1, "manifest.json": 1, "quality.csv": 1, "": 1,
}  # fmt: skip
#: what a run of another kind has, and this one may be made to have
INVENTED: dict[str, Any] = {
    "needs_offset": True, "pattern_of": [["str", "n"], ["str", "s"]], "strata": [["str", "I"]], "status": "converged",
    "objective": 0.0, "offset": "a", "id": "a", "covariates": 1, "files": True, "sheets": True, "label": "y",
    "value_labels": False, "lacking": {"n": ["a"]}, "missing": "mean", "survival": {"d": {"time": "a", "event": "b"}},
    "task_name": "{}.csv", "file_tasks": ["n", "s"], "choice": False, "task": "a", "hasher": None, "matrix": True,
    "numbers": True, "rows_by_class": True, "reference": "Bonn", "nobody": 1.5,
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What was printed, and the exit code."""

    code: int
    out: str
    err: str


def call(*words: Any) -> Outcome:
    """`tasksieve ...` in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command()([str(word) for word in words], prog_name="tasksieve")
        except SystemExit as end:
            code = int(end.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue())


# --- what may be changed -------------------------------------------------------------------------------------------


def places(content: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places in a JSON content, itself included."""
    yield at
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, own in list(items):
        yield from places(own, (*at, key))


def changed_json(content: Any, rng: Rng) -> tuple[str, Any] | str:
    """One change somewhere in a JSON content; or the words of a text that no content has."""
    content = deepcopy(content)
    every = list(places(content))
    at = every[int(rng.integers(len(every)))]
    holder: Any = [content]
    for key in (0, *at)[:-1]:
        holder = holder[key]
    key = (0, *at)[-1]
    value = holder[key]
    if isinstance(value, dict):
        told, found = changed_dict(value, rng)
    elif isinstance(value, list):
        told, found = changed_list(value, rng)
    else:
        told, found = changed_leaf(value, every, content, rng)
    root = [content]
    holder = root
    for step in (0, *at)[:-1]:
        holder = holder[step]
    holder[key] = found
    text = json.dumps(root[0])
    if isinstance(found, dict) and found and told == "a key twice":
        one = next(iter(found))
        inside = json.dumps(found)
        text = text.replace(inside, "{" + f"{json.dumps(one)}: null, " + inside[1:], 1)
        if rng.random() < 0.5:
            text = text.replace(inside, inside[:-1] + f", {json.dumps(one)}: null" + "}", 1)
    return f"{'.'.join(map(str, at)) or 'all of it'}: {told}", text


def changed_dict(value: dict[str, Any], rng: Rng) -> tuple[str, Any]:
    found, keys = dict(value), sorted(value)
    how = rng.integers(4)
    if how == 0 and keys:
        gone = keys[int(rng.integers(len(keys)))]
        del found[gone]
        return f"without {gone}", found
    if how == 1 or not keys:
        name = sorted(INVENTED)[int(rng.integers(len(INVENTED)))]
        return f"{name} is {INVENTED[name]!r}", {**found, name: INVENTED[name]}
    if how == 2 and len(keys) > 1:
        one, other = rng.choice(len(keys), 2, replace=False).tolist()
        found[keys[one]], found[keys[other]] = found[keys[other]], found[keys[one]]
        return f"{keys[one]} and {keys[other]} exchanged", found
    return "a key twice", found


def changed_list(value: list[Any], rng: Rng) -> tuple[str, Any]:
    if not value:
        return "an entry", [["a", 0.5, None, ["str", "n"]][int(rng.integers(4))]]
    how, k = rng.integers(5), int(rng.integers(len(value)))
    if how == 0:
        return "backwards", value[::-1]
    if how == 1:
        return f"without entry {k}", value[:k] + value[k + 1 :]
    if how == 2:
        return f"entry {k} twice", [*value[: k + 1], *value[k:]]
    if how == 3:
        return "rolled", value[1:] + value[:1]
    other = value[k][::-1] if isinstance(value[k], str | list) else None if value[k] is not None else 0
    return f"entry {k} is {other!r}", [*value[:k], other, *value[k + 1 :]]


def changed_leaf(value: Any, every: list[tuple[Any, ...]], content: Any, rng: Rng) -> tuple[str, Any]:
    if isinstance(value, bool):
        found: Any = [not value, None, str(value), int(value)][int(rng.integers(4))]
    elif isinstance(value, int | float):
        ways = (value + 5, -value, value * 1000, value * (1 + 1e-6), str(value), None, math.nan, math.inf, 0, True)
        found = ways[int(rng.integers(len(ways)))]
    elif isinstance(value, str):
        words = ["", value + "x", value[::-1], value.upper(), "a", "b", "n", "y", "Oslo", "low", None, 1, f" {value}"]
        others = sorted({own for own in (leaf(content, at) for at in every) if isinstance(own, str)})
        found = [*words, *others][int(rng.integers(len(words) + len(others)))]
    else:
        found = ["a", 0, 1.5, True, [], {}, "who", "o"][int(rng.integers(8))]
    return f"{value!r} -> {found!r}", found


def leaf(content: Any, at: tuple[Any, ...]) -> Any:
    for key in at:
        content = content[key]
    return content


def changed_arrays(arrays: dict[str, np.ndarray], rng: Rng) -> tuple[str, dict[str, np.ndarray]]:
    """One change of an array, or of which arrays there are."""
    found, names = dict(arrays), sorted(arrays)
    name = names[int(rng.integers(len(names)))]
    value, how = arrays[name], int(rng.integers(14))
    if how == 0:
        del found[name]
        return f"without {name}", found
    if how == 1:
        new = ("fill", "present", "thresholds", "baseline_time", "loss_weights", "fills_means", "param_l1", "nobody")
        other = new[int(rng.integers(len(new)))]
        found[other] = np.array(arrays.get("intercept", value))
        return f"{other} is invented", found
    if how == 2 and value.dtype.kind in "biuf":
        found[name] = value.astype(np.float32 if value.dtype.kind == "f" else np.float64)
        return f"{name} of another type", found
    if how == 3 and value.ndim:
        found[name] = value[:-1]
        return f"{name} shorter", found
    if how == 4 and value.ndim:
        found[name] = value[::-1].copy()
        return f"{name} backwards", found
    if how == 5 and value.ndim:
        found[name] = np.roll(value, 1)
        return f"{name} rolled", found
    if how == 6:
        same = [other for other in names if other != name and arrays[other].shape == value.shape]
        if same:
            other = same[int(rng.integers(len(same)))]
            found[name], found[other] = found[other], found[name]
            return f"{name} and {other} exchanged", found
    flat = value.copy().ravel()
    if not flat.size:
        found[name] = np.ones(1, dtype=value.dtype) if value.dtype.kind in "fiu" else value
        return f"{name} of one entry", found
    k = int(rng.integers(flat.size))
    if value.dtype.kind == "f":
        ways = (flat[k] + 5, -flat[k], flat[k] * 1000, flat[k] * (1 + 1e-5), np.nan, np.inf, 0.0, flat[k] + 0.5)
        flat[k] = ways[int(rng.integers(len(ways)))]
    elif value.dtype.kind in "iu":
        flat[k] = (int(flat[k]) + int(rng.integers(1, 4))) % 256 if value.dtype.kind == "u" else flat[k] + 1
    elif value.dtype.kind == "b":
        flat[k] = not flat[k]
    else:
        flat[k] = flat[0] if k else ""
    found[name] = flat.reshape(value.shape)
    return f"{name}[{k}] is {flat[k]!r}", found


def changed_text(text: str, rng: Rng) -> tuple[str, str]:
    """One change of a table in text."""
    lines = text.splitlines()
    how, k = int(rng.integers(5)), int(rng.integers(len(lines)))
    if how == 0 and len(lines) > 1:
        return f"without line {k}", "\n".join(lines[:k] + lines[k + 1 :]) + "\n"
    if how == 1:
        return f"line {k} twice", "\n".join([*lines[: k + 1], *lines[k:]]) + "\n"
    if how == 2 and len(lines) > 2:
        return "lines backwards", "\n".join([lines[0], *lines[:0:-1]]) + "\n"
    sign = "\t" if "\t" in lines[k] else ","
    cells = lines[k].split(sign)
    j = int(rng.integers(len(cells)))
    cells[j] = ["0.125", "", "a", "-" + cells[j], cells[0], cells[-1]][int(rng.integers(6))]
    return f"line {k}, cell {j} is {cells[j]!r}", "\n".join([*lines[:k], sign.join(cells), *lines[k + 1 :]]) + "\n"


def mutate(folder: Path, rng: Rng) -> str:
    """Change one thing in a run folder, and make its manifest fit; gives what it was."""
    there = [name for name in OFTEN if not name or (folder / name).is_file()]
    weights = np.array([OFTEN[name] for name in there], dtype=np.float64)
    name = there[int(rng.choice(len(there), p=weights / weights.sum()))]
    file = folder / name
    if not name:
        files = sorted(path.name for path in folder.iterdir() if path.name in OWN - {"manifest.json", ".lock"})
        gone = files[int(rng.integers(len(files)))]
        (folder / gone).unlink()
        told = f"no {gone}"
    elif name.endswith(".json"):
        told, text = changed_json(json.loads(file.read_bytes()), rng)
        file.write_text(text, encoding="utf-8")
    elif name == "certificate.npz" and rng.random() < 0.6:
        told = change_header(file, rng)
    elif name.endswith(".npz"):
        with np.load(file) as found:
            arrays = {key: found[key] for key in found.files if not key.startswith("header")}
        if name == "certificate.npz":
            told = change_archive(file, arrays, rng)
        else:
            told, arrays = changed_arrays(arrays, rng)
            write_arrays(file, arrays)
    else:
        told, text = changed_text(file.read_text(encoding="utf-8"), rng)
        file.write_text(text, encoding="utf-8")
    if name != "manifest.json":
        RunFolder(folder).finish()
    return f"{name}: {told}" if name else told


def change_header(file: Path, rng: Rng) -> str:
    """Another header of a certificate."""
    members = read_archive(file)
    told, text = changed_json(json.loads(members["header.json"]), rng)
    write_archive(file, members | {"header.json": text.encode()})
    return f"header {told}"


def change_archive(file: Path, arrays: dict[str, np.ndarray], rng: Rng) -> str:
    members = read_archive(file)
    told, found = changed_arrays(arrays, rng)
    bodies = {"header.json": members["header.json"]}
    for key, own in found.items():
        stream = io.BytesIO()
        np.lib.format.write_array(stream, np.ascontiguousarray(own), version=(1, 0), allow_pickle=False)
        bodies[f"{key}.npy"] = stream.getvalue()
    write_archive(file, bodies)
    return told


def read_archive(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_archive(file: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)


# --- what predictions say ------------------------------------------------------------------------------------------


def probes(kind: Kind, folder: Path) -> list[list[Any]]:
    """What is asked of `predict`: rows that were seen, columns that are missing or empty, categories, tasks and dates
    that were not seen. Each is the words behind the run."""
    if kind.made is not None:
        data = [word for word in kind.write(folder) if not str(word).startswith("--feature-groups")]
        return made_probes(kind, data, folder)
    columns = rows_of_table(12, seed=1)
    names = list(dict.fromkeys([*kind.columns, *kind.features]))
    seen = {name: own[:12] for name, own in rows_of_table().items()}
    asked, tables = kind.asked, {}
    tables["seen"] = seen
    tables["new"] = columns
    for name in names:
        tables[f"without {name}"] = {key: own for key, own in columns.items() if key != name}
        tables[f"{name} empty"] = columns | {name: ["", *columns[name][1:]]}
    tables["unknown category"] = columns | {"city": ["Rome", *columns["city"][1:]]}
    tables["unknown task"] = columns | {"who": ["q", *columns["who"][1:]]}
    tables["date"] = columns | {"when": ["1999-12-31", *columns["when"][1:]]}
    tables["date, otherwise"] = columns | {"when": [f"{i + 1}.03.2021" for i in range(12)]}
    found = []
    for k, table in enumerate(tables.values()):
        file = write_csv(folder / f"probe{k}.csv", table, *(name for name in names if name in table))
        found.append([file, *asked])
    found += [[found[1][0], "--unknown", "zero", *asked], [found[1][0], "--all-tasks"]]
    unknown = next(k for k, name in enumerate(tables) if name == "unknown category")
    found.append([found[unknown][0], "--unknown", "zero", *asked])
    if kind.command == "path":
        found = [[*words, "--alpha", "{alpha}"] for words in found]
    return found


def made_probes(kind: Kind, data: list[Any], folder: Path) -> list[list[Any]]:
    if data[0] == "--bfile":
        rng = np.random.default_rng(1)
        people = "".join(f"f{i} i{i} {30 + i}\n" for i in range(10))
        (folder / "new.covar").write_text("FID IID age\n" + people)
        write_plink(folder / "turned", draw_counts(rng, 10, 12), alleles=[("G", "A")] * 12)
        write_plink(folder / "fewer", draw_counts(rng, 10, 11))
        new = ["--covar", folder / "new.covar"]
        return [["--bfile", data[1], "--pheno", data[3], "--covar", data[5]],
                ["--bfile", data[1], "--pheno", data[3]], ["--bfile", folder / "turned", *new],
                ["--bfile", folder / "fewer", *new, "--missing-variants", "mean"]]  # fmt: skip
    files = [word for word in data if Path(str(word)).suffix in (".csv", ".npz") and "groups" not in str(word)]
    found = [[*files, *kind.asked], [*files, "--all-tasks"]]
    if str(files[0]).endswith(".npz"):
        with np.load(files[0]) as stored:
            narrow = {name: own[:, :-1] if name == "X" else own for name, own in stored.items()}
        write_arrays(folder / "narrow.npz", narrow)
        return [*found, [folder / "narrow.npz"]]
    rows = rows_of_table(12, seed=1)
    for k, file in enumerate(files):
        other = folder / f"other{k}"
        other.mkdir(exist_ok=True)
        header = Path(file).read_text().splitlines()[0].split(",")
        found.append([write_csv(other / Path(file).name, rows, *header)])
        spoilt = folder / f"spoilt{k}"
        spoilt.mkdir(exist_ok=True)
        rome = rows | {"city": ["Rome", *rows["city"][1:]]}
        found.append([write_csv(spoilt / Path(file).name, rome, *header)])
    return found


@dataclass
class Honest:
    """A run, and what it predicts."""

    kind: Kind
    run: Path
    asked: list[list[Any]]
    answers: list[Outcome] = field(init=False)

    def __post_init__(self) -> None:
        alpha = None
        if (self.run / "path.npz").is_file():
            with np.load(self.run / "path.npz") as file:
                alpha = float(file["alphas"][len(file["alphas"]) // 2])
        self.asked = [[f"{alpha!r}" if word == "{alpha}" else word for word in words] for words in self.asked]
        if alpha is not None and self.kind.command == "fit":
            self.asked.append([*self.asked[0], "--alpha", repr(alpha)])
        self.answers = [call("predict", self.run, *words) for words in self.asked]
        assert any(answer.code == 0 for answer in self.answers), self.answers

    def differs(self, mutant: Path, one_in: int = 1) -> str:
        """Words about the first probe, or of one in so many, that another run answers otherwise."""
        for words, own in zip(self.asked[::one_in], self.answers[::one_in], strict=True):
            other = call("predict", mutant, *words)
            if (own.code == 0) != (other.code == 0):
                return f"{words}: exit code {other.code}, not {own.code}: {(own.err + other.err).strip()[:200]}"
            if own.code == 0 and (wrong := unlike(own.out, other.out)):
                return f"{words}: {wrong}"
        return ""


def unlike(one: str, other: str) -> str:
    """Where two tables differ by more than rounding."""
    left, right = list(csv.reader(io.StringIO(one))), list(csv.reader(io.StringIO(other)))
    if left[:1] != right[:1] or len(left) != len(right):
        return f"columns {left[:1]} and {right[:1]}"
    for i, (own, new) in enumerate(zip(left, right, strict=True)):
        for a, b in zip(own, new, strict=True):
            if a != b and not _near(a, b):
                return f"row {i}: {a!r} and {b!r}"
    return ""


def _near(one: str, other: str) -> bool:
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-12)
    except ValueError:
        return False


def honest_run(name: str, folder: Path) -> Honest:
    """A run of a kind, fitted, proved and asked."""
    kind = KINDS[name]
    done = call(*kind.fit(folder))
    assert done.code == 0, done.err
    proved = call("verify", folder / "run")
    assert proved.code == 0, proved.out + proved.err
    (folder / "probes").mkdir()
    return Honest(kind, folder / "run", probes(kind, folder / "probes"))


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files but the lock, however JSON is laid out."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != ".lock"}
    for name in [name for name in found if name.endswith(".json")]:
        with contextlib.suppress(ValueError):
            found[name] = json.dumps(json.loads(found[name], object_pairs_hook=list)).encode()
    for name in [name for name in found if name.endswith(".npz")]:
        found[name] = b"".join(own for _, own in sorted(read_archive(folder / name).items()))
    return found


@dataclass
class Tried:
    """Mutants of one kind: how many, how many of them were called proved, and those of them that predict otherwise."""

    mutants: int = 0
    unchanged: int = 0
    accepted: int = 0
    wrong: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)  # of those accepted


def try_mutants(honest: Honest, n: int, rng: Rng, folder: Path, changes: int = 1, one_in: int = 1) -> Tried:
    """Ask `verify` about mutants, and of those that it calls proved the predictions, by one in so many probes."""
    found = Tried()
    for i in count():
        if found.mutants == n:
            break
        mutant = folder / f"mutant{i}"
        shutil.copytree(honest.run, mutant)
        told = "; ".join(mutate(mutant, rng) for _ in range(changes))
        if contents(mutant) == contents(honest.run):
            found.unchanged += 1
            shutil.rmtree(mutant)
            continue
        found.mutants += 1
        verdict = call("verify", mutant)
        if verdict.code not in (0, 1, 2) or "internal error" in verdict.err:
            found.wrong.append(f"{told}: exit code {verdict.code}: {verdict.err[:300]}")
        elif verdict.code == 0:
            found.accepted += 1
            found.words.append(told)
            if wrong := honest.differs(mutant, one_in):
                found.wrong.append(f"{told}: {wrong}")
        shutil.rmtree(mutant)
    return found

