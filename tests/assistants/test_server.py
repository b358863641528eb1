"""``tasksieve mcp`` as an assistant sees it: the SDK's client, a server that is a process, one folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from assistant_client import Assistant, assistant
from assistant_cohorts import write_cohorts
from hostile_calls import GOOD, fuzz, write_trap
from ten_answers import CHECKS, TASKS

from tasksieve.cli.mcp.tools import BY_NAME


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    base = tmp_path_factory.mktemp("assistant")
    write_trap(base / "outside", base / "inside")
    return base / "outside", base / "inside"


@pytest.fixture(scope="module")
def helper(places: tuple[Path, Path]) -> Iterator[Assistant]:
    with assistant(places[1], "--seconds", "60", "--max-memory", "1", "--max-cells", "2000") as found:
        good = found.call("fit", {**GOOD["fit"], "out": "good_run"})
        assert not good.error, good.error
        yield found


def test_tools_say_what_they_take_and_give(helper: Assistant) -> None:
    found = {tool.name: tool for tool in helper.tools()}
    assert set(found) == set(BY_NAME)
    for tool in found.values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert not tool.input_schema["additionalProperties"]
        assert all(one.get("description") for one in tool.input_schema["properties"].values()), tool.name


def test_a_fit_leaves_an_ordinary_run_that_is_proved(helper: Assistant, places: tuple[Path, Path]) -> None:
    run = places[1] / "good_run"
    assert {"manifest.json", "certificate.npz", "coefficients.csv", "report.html"} <= set(os.listdir(run))
    looked = helper.call("inspect_table", {"table": "good.csv"})
    assert next(iter(looked.content["tables"].values()))["rows"] == 30
    verified = helper.call("verify", {"run": "good_run"})
    assert verified.content["proved"]
    explained = helper.call("explain_report", {"run": "good_run"})
    assert "certificate" in explained.content["answered"]
    assert [words for _, words in explained.progress][:1] == ["started"]
    graded = helper.call("grade", GOOD["grade"])
    assert graded.content["dual_gap"] > 0.0
    answers = {"inspect_table": looked, "verify": verified, "explain_report": explained, "grade": graded}
    for name, answer in answers.items():
        jsonschema.validate(answer.content, BY_NAME[name].answer)
        assert answer.content["links"]


def test_errors_say_the_remedy(helper: Assistant) -> None:
    for name, given, said in [
        ("fit", {**GOOD["fit"], "target": "z"}, "has no column 'z'; it has 'a', 'b', 'y'"),
        ("fit", {**GOOD["fit"], "out": "good_run"}, "resume continues it, overwrite starts anew"),
        ("inspect_table", {"table": "many.csv"}, "--max-cells"),
        ("inspect_table", {"table": "model.pkl"}, "pickles are never loaded"),
        ("verify", {"run": "good_run", "value": 99}, "value"),
        ("nothing", {}, "there are inspect_table, fit"),
    ]:
        answer = helper.call(name, given)
        assert said in answer.error, answer.error


def test_hostile_calls_are_refused(helper: Assistant, places: tuple[Path, Path]) -> None:
    seen = fuzz(helper.call, *places, calls=60, seed=2)
    assert sum(seen.values()) == 60
    assert seen["refused in words"] > 30


@pytest.mark.slow
def test_a_thousand_hostile_calls_are_refused(helper: Assistant, places: tuple[Path, Path]) -> None:
    seen = fuzz(helper.call, *places, calls=1000, seed=11)
    assert sum(seen.values()) == 1000
    assert not helper.call("verify", {"run": "good_run"}).error


# --- the ten tasks ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cohorts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Assistant]]:
    folder = tmp_path_factory.mktemp("cohorts")
    write_cohorts(folder)
    with assistant(folder) as found:
        yield folder, found


QUICK = ("best_possible", "how_good_is_this")  # of fit, verify and grade; the others are for `make test-all`


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(task, id=task["task"], marks=[] if task["task"] in QUICK else pytest.mark.slow)
        for task in TASKS
    ],
)
def test_the_ten_tasks(cohorts: tuple[Path, Assistant], task: dict[str, Any]) -> None:
    folder, helper = cohorts
    found = {}
    for call in task["calls"]:
        answer = helper.call(call["tool"], call["arguments"])
        assert not answer.error, answer.error
        jsonschema.validate(answer.content, BY_NAME[call["tool"]].answer)
        found[call["as"]] = answer.content
    CHECKS[task["task"]](folder, found)


def test_there_are_ten_tasks_each_with_a_check() -> None:
    assert len(TASKS) == 10
    assert [task["task"] for task in TASKS] == list(CHECKS)
    assert {call["tool"] for task in TASKS for call in task["calls"]} == set(BY_NAME)


# --- limits, cancelling, the stream ----------------------------------------------------------------------------------


def wide_table(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 400))
    names = ",".join([*(f"x{j}" for j in range(400)), "y"])
    rows = "\n".join(",".join(f"{value:.4f}" for value in [*row, row[:5].sum()]) for row in X)
    (folder / "wide.csv").write_text(f"{names}\n{rows}\n", encoding="utf-8")


@pytest.mark.slow
def test_time_and_memory_are_limited_and_the_server_lives_on(tmp_path: Path) -> None:
    wide_table(tmp_path)
    long = {"table": "wide.csv", "target": "y", "pairs": 5000, "permutations": 100_000, "out": "long"}
    with assistant(tmp_path, "--seconds", "6") as helper:
        answer = helper.call("stability", long)
        assert "not finished after 6 seconds" in answer.error
        assert "resume goes on" in answer.error
        assert len(answer.progress) > 1
        assert helper.call("inspect_table", {"table": "wide.csv"}).content
    # 400 MB of zeros in a small file
    np.savez_compressed(tmp_path / "packed.npz", X=np.zeros((500, 100_000)), y=np.arange(500.0))
    with assistant(tmp_path, "--max-memory", "0.001") as helper:
        answer = helper.call("fit", {"table": "packed.npz", "target": "y", "out": "small"})
        assert "--max-memory" in answer.error, answer.error
        assert helper.call("inspect_table", {"table": "wide.csv"}).content
    with assistant(tmp_path, "--max-cells", "1000000") as helper:
        answer = helper.call("fit", {"table": "packed.npz", "target": "y", "out": "small"})
        assert "--max-cells" in answer.error, answer.error


def server(folder: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "tasksieve", "mcp", "--folder", str(folder)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, text=True, encoding="utf-8", **pipes)


def children(process: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process and fields[0] != "Z":
            found.append(int(status.parent.name))
    return found


def hello(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    send(process, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client})
    assert "tasksieve" in process.stdout.readline()
    send(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})


def send(process: subprocess.Popen[str], message: Any) -> None:
    assert process.stdin is not None
    process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    process.stdin.flush()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_the_stream_holds_messages_alone_and_all_processes_end(tmp_path: Path) -> None:
    """Lines that are no messages are survived; a call that is cancelled ends; so does all when the server is killed."""
    wide_table(tmp_path)
    process = server(tmp_path)
    assert process.stdout is not None
    hello(process)
    for line in ("", "{", "null", "[]", "[1, 2]", '"x"', "\u0000", "{" * 5000, '{"jsonrpc": "2.0", "id": 1}',
                 '{"jsonrpc": "1.0", "method": 7}', "é" * 10_000):  # fmt: skip
        send(process, line)
    long = {"table": "wide.csv", "target": "y", "pairs": 5000, "permutations": 100_000, "out": "long"}
    call = {"name": "stability", "arguments": long, "_meta": {"progressToken": "p"}}
    send(process, {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": call})
    told: list[Any] = []
    while not any("permut" in str(one.get("params", {}).get("message")) for one in told):
        told.append(json.loads(process.stdout.readline()))  # whatever is printed is JSON
        assert told[-1]["jsonrpc"] == "2.0"
    (nursery,) = children(process.pid)
    assert len(children(nursery)) == 1
    send(process, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
    wait_until(lambda: children(nursery) == [])
    again = {**call, "arguments": {**long, "out": "another"}}
    send(process, {"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": again})
    wait_until(lambda: len(children(nursery)) == 1)
    (worker,) = children(nursery)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not any(Path(f"/proc/{one}/cmdline").exists() and alive(one) for one in (nursery, worker)))
    process.stdout.close()


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(good: Any, seconds: float = 600.0) -> None:
    """Wait; the limit is there against waiting for ever, and says nothing about speed."""
    end = time.monotonic() + seconds
    while not good():
        assert time.monotonic() < end
        time.sleep(0.2)
