"""Calls that no tool must carry out, drawn at random, and a check that nothing outside of the folder was touched.

``PYTHONPATH=tests python tests/hostile_calls.py 1000 0``: how many, and the seed.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECRET = "the-secret-that-no-answer-may-have"
TOOLS = ("inspect_table", "fit", "stability", "compare", "grade", "verify", "explain_report")
GOOD: dict[str, dict[str, Any]] = {
    "inspect_table": {"table": "good.csv"},
    "fit": {"table": "good.csv", "target": "y", "alpha": 0.1, "out": "runs/new"},
    "stability": {"table": "good.csv", "target": "y", "pairs": 2, "permutations": 2, "out": "runs/new"},
    "compare": {"table": "good.csv", "target": "y", "alphas": 3, "out": "runs/new"},
    "grade": {"coefficients": "coefficients.csv", "table": "good.csv", "target": "y", "alpha": 0.1},
    "verify": {"run": "good_run"},
    "explain_report": {"run": "good_run"},
}
PATHS = {
    "inspect_table": ["table"], "fit": ["table", "out"], "stability": ["table", "out"], "compare": ["table", "out"],
    "grade": ["table", "coefficients", "intercepts"], "verify": ["run", "data"], "explain_report": ["run"],
}  # fmt: skip


def write_trap(outside: Path, inside: Path) -> None:
    """A folder of tables with ways out of it, and files outside that must stay as they are."""
    outside.mkdir(parents=True, exist_ok=True)
    inside.mkdir(parents=True, exist_ok=True)
    rows = "\n".join(f"{k % 7}.5,{(k * k) % 11},{k % 3}" for k in range(30))
    table = f"a,b,y\n{rows}\n"
    (outside / "secret.csv").write_text(f"{SECRET},y\n" + "1,2\n" * 30, encoding="utf-8")
    (outside / "config.json").write_text(json.dumps({SECRET: 1}), encoding="utf-8")
    (inside / "good.csv").write_text(table, encoding="utf-8")
    (inside / "coefficients.csv").write_text("feature,coefficient\na,0.1\nb,0.2\n", encoding="utf-8")
    (inside / "link.csv").symlink_to(outside / "secret.csv")
    (inside / "link_folder").symlink_to(outside)
    (inside / "circle.csv").symlink_to(inside / "circle.csv")
    (inside / "null.csv").symlink_to("/dev/zero")
    os.mkfifo(inside / "pipe.csv")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(inside)  # names of sockets are short
        try:
            listening.bind("socket.csv")
        finally:
            os.chdir(here)
    with open(inside / "huge.csv", "wb") as file:
        file.truncate(3 << 30)  # holes, that take no room
    (inside / "many.csv").write_text(",".join(f"c{j}" for j in range(3000)) + "\n" + ",".join("1" * 3000))
    (inside / "model.pkl").write_bytes(b"cos\nsystem\n(S'touch executed'\ntR.")
    (inside / "pickled.npz").write_bytes(b"cos\nsystem\n(S'touch executed'\ntR.")
    (inside / "not_a_table.csv").write_bytes(bytes(range(256)) * 50)
    secret, of_lasso = str(outside / "secret.csv"), {"command": "fit", "model": "lasso", "target": ["y"]}
    for name, config in {
        "run_elsewhere": {**of_lasso, "table": secret},
        "run_graph": {"command": "fit", "model": "graph-svm", "table": "good.csv", "graph": secret},
        "run_genotypes": {**of_lasso, "bfile": [str(outside / "secret")]},
        "run_of_nothing": {},
    }.items():
        (inside / name).mkdir()
        (inside / name / "config.json").write_text(json.dumps(config), encoding="utf-8")
        (inside / name / "manifest.json").write_text('{"format": 1, "files": {}}', encoding="utf-8")
    (inside / "run_linked").mkdir()
    (inside / "run_linked" / "config.json").symlink_to(outside / "config.json")
    (inside / "run_log").mkdir()
    (inside / "run_log" / "config.json").write_text("{}", encoding="utf-8")
    (inside / "run_log" / "log.txt").symlink_to(outside / "config.json")


def ways_out(outside: Path) -> list[Any]:
    """Paths that no tool may follow."""
    return [
        "../outside/secret.csv", "..", ".", "", "/", "/etc/passwd", "/etc/shadow", "/proc/self/environ", "/dev/zero",
        "/dev/stdin", str(outside / "secret.csv"), str(outside), "link.csv", "link_folder/secret.csv", "link_folder",
        "link_folder/new_run", "circle.csv", "null.csv", "pipe.csv",
        "socket.csv", "huge.csv", "many.csv", "model.pkl",
        "pickled.npz", "not_a_table.csv", "run_elsewhere", "run_graph", "run_genotypes", "run_of_nothing", "run_linked",
        "run_log", "good.csv/../../outside/secret.csv", "./../outside/secret.csv", "good.csv\u0000.png", "good\n.csv",
        "a" * 5000, "a" * 300 + ".csv", "~/secret.csv", "$HOME/secret.csv", "file:///etc/passwd",
        "http://127.0.0.1/x.csv", "s3://bucket/x.csv", "--out=/tmp/x", "-", "--help", "*.csv", "[a-z]*.csv",
        "\u202egood.csv", "ｇｏｏｄ.csv",
        "good.csv\u200b", "caf\u00e9.csv", "\U0001f600.csv", "CON", "good.csv/", "runs/../..", "//etc/passwd",
        "\\\\server\\share\\x.csv", "C:\\x.csv", "| touch executed", "; touch executed", "`touch executed`",
        "$(touch executed)",
    ]  # fmt: skip


#: arguments that some tool has
OTHERS = (
    "task", "features", "model", "penalty", "loss", "tol", "max_iter", "cv", "seed", "limit", "value", "missing",
    "resume", "overwrite", "separator", "encoding", "exact", "drop", "alphas", "level", "alpha",
)  # fmt: skip
NONSENSE: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, -(10**30), 0.5, -0.0, 1e308, -1e308, 5e-324, [], {}, [[]],
    [None], [1, 2], {"a": 1}, [{"a": []}], "", " ", "\t", "nan", "inf", "-inf", "1e999", "0x10", "1_000", "a" * 600,
    "a" * 10_000,
    "\u0000", "\u202e", "\u001b[2J", "\U0001f600" * 100, "'; DROP TABLE", "__import__('os').system('touch executed')",
    "{0.__class__}", "%s%n", "y,y", "*", "**", "[", "y" * 999, ["y"] * 3000, "--overwrite", "-y", "true", "lasso",
    "any", "huber", "logistic", "l21", "sparse_group", "tweedie:power=1e9", "os:system",
]  # fmt: skip


#: what the client or the server of the SDK says of a call that is none
PROTOCOL_ERRORS = ("MCPError", "ValidationError", "PydanticSerializationError", "UnicodeEncodeError")


def hostile_call(draw: random.Random, outside: Path) -> tuple[Any, Any]:
    """One call: a good one with something wrong in it, or wrong altogether."""
    name = draw.choice(TOOLS)
    given = dict(GOOD[name])
    kind = draw.randrange(10)
    if kind < 4:  # a way out
        for argument in draw.sample(PATHS[name], draw.randint(1, min(2, len(PATHS[name])))):
            way = draw.choice(ways_out(outside))
            given[argument] = draw.choice([way, [way], ["good.csv", way]]) if argument == "table" else way
    elif kind < 7:  # nonsense in the place of an argument
        keys = [*given, *OTHERS]
        for argument in draw.sample(keys, draw.randint(1, 3)):
            given[argument] = draw.choice(NONSENSE)
    elif kind == 7:  # an argument that is not there, or is not meant for tools
        unknown = ["config", "graph", "bfile", "save_problem", "cluster", "device", "skip", "__class__", "", "OUT"]
        given[draw.choice(unknown)] = draw.choice([*NONSENSE, *ways_out(outside)])
    elif kind == 8:  # something is missing
        for argument in draw.sample([*given], draw.randint(1, len(given))):
            del given[argument]
    else:
        name = draw.choice(["", "Fit", "fit ", "../fit", "eval", "shutdown", "a" * 1000, "\u0000", "__init__"])
    return name, given


def state(folder: Path) -> dict[str, Any]:
    """Everything below a folder that a call could have changed."""
    found = {}
    for file in sorted(folder.rglob("*")):
        entry = file.lstat()
        regular = file.is_file() and not file.is_symlink() and entry.st_size < 1 << 20
        content = file.read_bytes() if regular else b""
        found[str(file)] = (entry.st_mode, entry.st_size, content)
    return found


def fuzz(call: Callable[[Any, Any], Any], outside: Path, inside: Path, calls: int, seed: int) -> Counter[str]:
    """So many hostile calls; what became of them. Raises where one has read, changed or executed what it must not."""
    draw, before, seen = random.Random(seed), state(outside), Counter[str]()
    fixed = {name: content for name, content in state(inside).items() if "/runs" not in name}
    for number in range(calls):
        name, given = hostile_call(draw, outside)
        where = f"call {number} of seed {seed}: {name!r} {str(given)[:300]}"
        try:
            answer = call(name, given)
        except Exception as error:
            if type(error).__name__ not in PROTOCOL_ERRORS:
                raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
            seen["refused by the protocol"] += 1
            continue
        said = answer.error or json.dumps(answer.content)
        assert SECRET not in said, where
        assert str(inside) not in said, f"{where}: {said[:500]}"
        assert len(said) < 300_000, where
        assert "internal error" not in said, f"{where}: {said[:500]}"
        assert "this is a bug" not in said.lower(), f"{where}: {said[:500]}"
        assert "Traceback" not in said, where
        if answer.error:
            assert answer.error.strip(), where
        seen["refused in words" if answer.error else "carried out"] += 1
    assert state(outside) == before
    now = state(inside)
    changed = {name for name, content in fixed.items() if now.get(name) != content}
    assert not changed, changed
    assert not [name for name in now if Path(name).name == "executed"]  # a run may be called "; touch executed"
    assert not Path("executed").exists()
    return seen


def main(calls: int, seed: int) -> None:
    import tempfile

    from assistant_client import assistant

    with tempfile.TemporaryDirectory() as name:
        outside, inside = Path(name) / "outside", Path(name) / "inside"
        write_trap(outside, inside)
        with assistant(inside, "--seconds", "20", "--max-memory", "1", "--max-cells", "2000") as helper:
            good = helper.call("fit", {**GOOD["fit"], "out": "good_run"})
            assert not good.error, good.error
            seen = fuzz(helper.call, outside, inside, calls, seed)
            assert not helper.call("verify", {"run": "good_run"}).error
    print(f"{calls} calls, seed {seed}: {dict(seen)}")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]))
