"""The log of a site: what was asked counts for ever; cut, edited or lost lines are noticed; processes take turns."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import sys

import numpy as np
import pytest
from federated_sites import federation, fixed_keys

pytest.importorskip("cryptography")
from tasksieve.federated.answer_log import AnswerLog
from tasksieve.federated.errors import FederatedError
from tasksieve.federated.messages import seal_round, unseal_round
from tasksieve.federated.question import Question, Round
from tasksieve.federated.units import Units

POINT = Question(features=[0, 3], s=[0.2, 0.05])
LINES, HEAD = "answered.jsonl", "answered.head"


def rule(call, *given):
    with pytest.raises(FederatedError) as error:
        call(*given)
    return error.value.rule


def message(sites, number):
    """A round of its own for each number."""
    question = Question(features=[0], s=[0.1 + number], hessian=False)
    units = Units(len(sites.local), sums=-30, squares=-30, levels=-10, hessian=np.zeros(1, np.int16))
    return seal_round(Round(number, sites.plan.digest, (question,), (units,)), sites.keys["coordinator"])


@pytest.fixture
def sites(tmp_path):
    found = federation(tmp_path)
    for number in range(3):
        found.nodes["north"].reply(message(found, number))
    return found


@pytest.fixture
def log(tmp_path):
    return tmp_path / "north"


def rounds(sites, folder):
    return AnswerLog(folder, sites.keys["north"]).rounds(sites.plan.digest)


def test_a_stop_while_a_line_is_written_loses_nothing(sites, log):
    lines = log / LINES
    whole = lines.read_bytes()
    for part in (b"{", b'{"entry": {"round"', whole.splitlines()[-1]):
        lines.write_bytes(whole + part)  # without its end
        assert len(rounds(sites, log)) == 3
        sites.nodes["north"].reply(message(sites, 3))
        assert len(rounds(sites, log)) == 4
        shutil.rmtree(log)
        sites.nodes["north"] = sites.node("north")
        for number in range(3):
            sites.nodes["north"].reply(message(sites, number))
        assert lines.read_bytes() == whole


def test_a_stop_before_the_head_is_written_loses_nothing(sites, log):
    """The line is there, the head is that of before."""
    head = (log / HEAD).read_bytes()
    sites.nodes["north"].reply(message(sites, 3))
    (log / HEAD).write_bytes(head)
    assert len(rounds(sites, log)) == 4
    assert sites.node("north").replay() == dict.fromkeys(range(4), True)


def damages():
    def edited(lines):
        entry = json.loads(lines[2])
        entry["entry"]["questions"] = []
        return [*lines[:2], json.dumps(entry).encode(), *lines[3:]]

    return {
        "edited": edited,
        "first line lost": lambda lines: lines[1:],
        "line lost": lambda lines: [*lines[:2], *lines[4:]],
        "last round cut off": lambda lines: lines[:-2],
        "all cut off": lambda lines: [],
        "twice": lambda lines: [*lines, lines[-1]],
        "another order": lambda lines: [*lines[2:4], *lines[:2], *lines[4:]],
        "no line": lambda lines: [*lines, b"{}"],
        "no words": lambda lines: [*lines, b"\xff\xfe"],
    }


@pytest.mark.parametrize("damage", damages())
def test_a_log_that_was_cut_or_edited_is_noticed(sites, log, damage):
    """By the running site and by one that starts; with the damage undone it goes on."""
    lines = log / LINES
    whole = lines.read_bytes()
    changed = damages()[damage](whole.splitlines())
    lines.write_bytes(b"".join(line + b"\n" for line in changed))
    asked = len(sites.local["north"].asked)
    for node in (sites.nodes["north"], sites.node("north")):
        assert rule(node.reply, message(sites, 3)) == "log"
        assert rule(node.reply, message(sites, 0)) == "log"
        assert rule(node.replay) == "log"
    assert len(sites.local["north"].asked) == asked  # no row was read
    lines.write_bytes(whole)
    sites.nodes["north"].reply(message(sites, 3))


@pytest.mark.parametrize("place", range(0, 400, 23))
def test_every_byte_of_a_line_counts(sites, log, place):
    lines = log / LINES
    content = bytearray(lines.read_bytes())
    content[place] ^= 1
    lines.write_bytes(content)
    assert rule(sites.nodes["north"].reply, message(sites, 3)) == "log"


def test_files_of_a_log_that_are_missing_are_noticed(sites, log):
    (log / HEAD).rename(log / "elsewhere")
    assert rule(sites.nodes["north"].reply, message(sites, 3)) == "log"
    assert rule(sites.node, "north") == "log"
    (log / "elsewhere").rename(log / HEAD)
    (log / LINES).rename(log / "elsewhere")
    assert rule(sites.nodes["north"].reply, message(sites, 3)) == "log"
    (log / "elsewhere").rename(log / LINES)
    kept = sorted(log.glob("*.message"))[1]
    true = kept.read_bytes()
    kept.write_bytes(true[:-1] + b"!")
    assert rule(sites.nodes["north"].replay) == "log"
    kept.unlink()
    assert rule(sites.nodes["north"].replay) == "log"
    kept.write_bytes(true)
    assert sites.nodes["north"].replay() == dict.fromkeys(range(3), True)


def test_nobody_without_the_keys_can_write_lines(sites, log):
    """Somebody who knows how it is done, with keys of their own."""
    shutil.rmtree(log)
    other = AnswerLog(log, fixed_keys("somebody"))
    asked = unseal_round(message(sites, 0), sites.plan)
    other.ask(message(sites, 0), asked, asked.parts())
    assert rule(sites.nodes["north"].reply, message(sites, 0)) == "log"


def test_a_site_that_fails_has_been_asked(sites, log, caplog):
    """Else somebody could try out, without a trace and without end, at which questions it fails."""
    seen = []
    node = sites.node("north", allow=lambda questions, answered: seen.append(answered))
    right = node.local

    class Failing:
        def answer(self, question):
            raise ZeroDivisionError("row 4711")

    for number in range(3, 6):
        node.local = Failing()
        with pytest.raises(FederatedError) as error:
            node.reply(message(sites, number))
        assert error.value.rule == "site-error"
        assert "4711" not in str(error.value)
        assert "4711" in caplog.text
    node.local = right
    node.reply(message(sites, 6))
    node.reply(message(sites, 5))  # again: it counts once
    assert seen == [3, 4, 5, 6, 6]
    entries = rounds(sites, log).values()
    assert [entry["answer"] is not None for entry in entries] == [True] * 3 + [False] * 2 + [True] * 2
    assert set(node.replay()) == {0, 1, 2, 5, 6}


def test_one_folder_answers_one_plan(sites, log):
    """Sums of two plans with the same rows and other sites differ by the numbers of one site."""
    sites.plan.title = "the same with another site"
    assert rule(sites.node("north").reply, message(sites, 0)) == "plan"


def answer_all(folder, numbers):
    sites = federation(folder)
    replies = [sites.nodes["north"].reply(message(sites, number)) for number in numbers]
    (folder / f"said-{numbers[0]}-{numbers[-1]}").write_bytes(b"".join(sorted(replies)))


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
def test_two_processes_answer_at_once(tmp_path):
    """Each of three answers the same rounds in an order of its own: every round is noted once, answers are the same."""
    orders = [list(range(8)), list(range(8))[::-1], [3, 0, 7, 1, 6, 2, 5, 4]]
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=answer_all, args=(tmp_path, order)) for order in orders]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert len({file.read_bytes() for file in tmp_path.glob("said-*")}) == 1
    sites = federation(tmp_path)
    entries = rounds(sites, tmp_path / "north")
    assert sorted(entry["number"] for entry in entries.values()) == list(range(8))
    assert len((tmp_path / "north" / LINES).read_bytes().splitlines()) == 16
    assert sites.nodes["north"].replay() == dict.fromkeys(range(8), True)
