"""What a call may hold, and which paths it may name: refused in words that say what would do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hostile_calls import NONSENSE, ways_out, write_trap

from tasksieve.cli.commands import COMMANDS
from tasksieve.cli.mcp.answers import LARGEST, PAGES, bounded, within
from tasksieve.cli.mcp.arguments import read_call
from tasksieve.cli.mcp.confined import ConfinedFolder, Refused
from tasksieve.cli.mcp.tools import BY_NAME, TOOLS, in_arguments

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def folder(tmp_path: Path) -> ConfinedFolder:
    write_trap(tmp_path / "outside", tmp_path / "inside")
    return ConfinedFolder(tmp_path / "inside", 2.0**30)


def words(folder: ConfinedFolder, tool: str, **given: Any) -> list[str]:
    return read_call(BY_NAME[tool], given, folder).words


def test_a_call_becomes_the_words_of_its_command(folder: ConfinedFolder) -> None:
    found = words(
        folder, "fit", table="good.csv", target="y", alpha=0.1, standardize=False, drop=["a", "-b"], out="runs/new"
    )
    root = str(folder.path)
    assert found[0] == "fit"
    assert found[-2:] == ["--", f"{root}/good.csv"]
    assert set(found[1:-2]) == {
        "--target=y", "--alpha=0.1", "--as-is", "--drop=a", "--drop=-b", f"--out={root}/runs/new",
    }  # fmt: skip
    assert words(folder, "grade", coefficients="coefficients.csv", table=["good.csv"], alpha=1)[-2:] == [
        f"{root}/coefficients.csv",
        f"{root}/good.csv",
    ]


def test_every_argument_is_an_option_of_its_command() -> None:
    for tool in TOOLS:
        known = {option.key for command in COMMANDS if command.name == tool.command for option in command.options}
        own = {tool.renamed.get(key, key) for key in tool.keys}
        assert own <= known, tool.name
        assert set(tool.required) <= {*tool.keys, "run"}
        assert not own & {"config", "save_problem", "graph", "task_graph", "feature_groups", "cluster", "bfile"}


def test_paths_that_lead_out_are_refused(folder: ConfinedFolder, tmp_path: Path) -> None:
    # files of the folder by another name, or whose content is refused when they are read
    inside = {"many.csv", "pickled.npz", "not_a_table.csv", "good.csv/", "run_of_nothing"}
    out = [way for way in ways_out(tmp_path / "outside") if way not in inside]
    for way in [*out, b"good.csv", 3, ["good.csv"], {"table": "good.csv"}]:
        for tool, argument in (("inspect_table", "table"), ("verify", "run"), ("explain_report", "run")):
            with pytest.raises(Refused) as refused:
                words(folder, tool, **{argument: way})
            assert str(folder.path) not in str(refused.value)


def test_links_inside_of_the_folder_are_followed(folder: ConfinedFolder) -> None:
    (folder.path / "same.csv").symlink_to(folder.path / "good.csv")
    assert words(folder, "inspect_table", table="same.csv")[-1] == str(folder.path / "good.csv")
    assert words(folder, "inspect_table", table=str(folder.path / "good.csv"))[-1] == str(folder.path / "good.csv")


OUTPUTS = ["link_folder/run", "link_folder", "run_log", "run_elsewhere", "good.csv", ".", "good.csv/x"]


@pytest.mark.parametrize("out", OUTPUTS)
def test_outputs_stay_inside(folder: ConfinedFolder, out: str) -> None:
    with pytest.raises(Refused, match="out"):
        words(folder, "fit", table="good.csv", target="y", out=out)


def test_what_is_there_says_nothing_of_what_is_outside(folder: ConfinedFolder, tmp_path: Path) -> None:
    """A file outside that exists, and one that does not, are refused in the same words."""
    said = []
    for name in ("secret.csv", "nothing.csv"):
        with pytest.raises(Refused) as refused:
            words(folder, "inspect_table", table=str(tmp_path / "outside" / name))
        said.append(str(refused.value).replace(name, ""))
    assert said[0] == said[1]


def test_values_of_the_wrong_kind_are_refused_in_words(folder: ConfinedFolder) -> None:
    good = {"table": "good.csv", "target": "y", "out": "runs/new"}
    kinds = {"max_iter": int, "tol": float, "standardize": bool, "model": str, "limit": int}
    for argument, kind in kinds.items():
        said = {str(value): refusal(folder, {**good, argument: value}) for value in NONSENSE}
        assert all(argument in words and len(words) < 500 for words in said.values() if words)
        taken = [value for value in NONSENSE if not said[str(value)] and value is not None]
        numbers = [value for value in taken if not isinstance(value, kind)]
        assert all(kind in (int, float) and float(value).is_integer() for value in numbers), (argument, numbers)
        assert len(taken) < len(NONSENSE) // 3


def refusal(folder: ConfinedFolder, given: dict[str, Any]) -> str:
    """Why a call is refused; nothing where it is not."""
    try:
        read_call(BY_NAME["fit"], given, folder)
    except Refused as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cvv": 3}, "did you mean 'cv'?"),
        ({"cv": 10**6}, "at most 1,000"),
        ({"cv": 2.5}, "whole number"),
        ({"tol": float("inf")}, "finite"),
        ({"alphas": "99999999999"}, "at most 10,000 values"),
        ({"target": ["y"] * 5000}, "at most 2,000 words"),
        ({"target": "y" * 5000}, "at most 1000 characters"),
        ({"target": "y\n--overwrite"}, "control characters"),
        ({"table": ["good.csv", "good.csv"]}, "twice"),
        ({"table": []}, "table is missing"),
        ({"out": None}, "out is missing"),
        ({"limit": 10**9}, "from 1 to 500"),
        ({"model": "nonsense"}, "one of lasso"),
        ({"config": "run/config.json"}, "has no argument 'config'"),
    ],
)
def test_remedies_are_said(folder: ConfinedFolder, given: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as refused:
        words(folder, "fit", **{"table": "good.csv", "target": "y", "out": "runs/new", **given})
    assert said in str(refused.value)


def test_files_larger_than_allowed_are_refused(folder: ConfinedFolder) -> None:
    with pytest.raises(Refused, match="--max-file"):
        words(folder, "inspect_table", table="huge.csv")


def test_words_of_the_command_line_become_words_of_tools() -> None:
    said = in_arguments("--max-iter 5, or --as-is; see --row-groups")
    assert said == "max_iter 5, or standardize false; see row_groups"
    assert in_arguments("a -- b, x--y, ---") == "a -- b, x--y, ---"


def test_answers_are_bounded(folder: ConfinedFolder) -> None:
    large = {"names": ["n" * 10_000] * 10_000, "notes": [], "text": "\u202ea\x1b[2J" + str(folder.path) + "/x"}
    found = within(bounded(large, folder))
    assert len(str(found)) < 1.1 * LARGEST
    assert found["notes"] == ["names: cut to fit an answer; the run has all of it"]
    assert found["text"] == "\ufffda\ufffd[2Jx"


def test_pages_that_answers_name_exist() -> None:
    for page in {page for tool in TOOLS for page in tool.pages} | {"howto/assistants"}:
        assert (ROOT / "docs" / f"{page}.md").is_file()
    assert {page for tool in TOOLS for page in tool.pages} == set(PAGES)


def test_the_page_names_every_tool() -> None:
    page = (ROOT / "docs" / "howto" / "assistants.md").read_text(encoding="utf-8")
    assert all(f"`{tool.name}`" in page for tool in TOOLS)


def test_no_file_is_opened_that_is_no_ordinary_one(folder: ConfinedFolder) -> None:
    """Opening a pipe without a writer would wait for ever; a device may act on being opened."""
    for name in ("pipe.csv", "socket.csv", "null.csv"):
        with pytest.raises(Refused):
            folder.table(name, "table")
    assert os.path.lexists(folder.path / "pipe.csv")
