"""Folders: files in part, late, in any order, twice; either side stopped at any moment."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from tasksieve.federated.errors import FederatedError, SiteSilent
from tasksieve.federated.folders import Folders, SiteFolder
from tasksieve.federated.transport import SiteRefused, respond
from tasksieve.messages import ParameterError

MESSAGE = b"what is the sum?"


@pytest.fixture
def north(tmp_path):
    """A transport that looks once, and the folder of its one site with a question in it."""
    transport = Folders({"north": tmp_path / "north"}, patience=0)
    with pytest.raises(SiteSilent):
        transport.exchange(MESSAGE)
    return transport, SiteFolder(tmp_path / "north")


def test_names_say_the_question(north):
    _, site = north
    (question,) = site.waiting()
    assert question.name == f"question-0001-{hashlib.sha256(MESSAGE).hexdigest()[:32]}.message"
    assert question.read_bytes() == MESSAGE
    assert site.answer(bytes.upper) == [question.name.replace("question", "answer")]
    assert site.waiting() == []
    assert site.state(question) == "answered"


def test_only_whole_questions_are_answered(north):
    transport, site = north
    (question,) = site.waiting()
    for part in (b"", MESSAGE[:7], MESSAGE + b"!"):
        question.write_bytes(part)
        assert site.state(question) == "incomplete"
        assert site.answer(bytes.upper) == []
    with pytest.raises(SiteSilent):
        transport.exchange(MESSAGE)  # which writes it anew
    assert site.waiting() == [question]


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "other"])
def test_only_whole_answers_are_taken(north, damage):
    transport, site = north
    (question,) = site.waiting()
    (name,) = site.answer(bytes.upper)
    answer = question.with_name(name)
    whole = answer.read_bytes()
    changed = {
        "cut": whole[:-1],
        "empty": b"",
        "changed": whole[:-1] + b"!",
        "other": respond(bytes.upper, b"another question"),
    }
    answer.write_bytes(changed[damage])
    with pytest.raises(SiteSilent):
        transport.exchange(MESSAGE)
    assert site.answer(bytes.upper) == [name]  # the site sees it, too
    assert transport.exchange(MESSAGE) == {"north": MESSAGE.upper()}


def test_refusals_can_be_taken_back(north):
    transport, site = north
    (question,) = site.waiting()

    def refuse(message):
        raise FederatedError("max-questions", "one question was agreed upon")

    assert [name.split("-")[0] for name in site.answer(refuse)] == ["refusal"]
    with pytest.raises(SiteRefused, match="max-questions: site north refuses: one question"):
        transport.exchange(MESSAGE)
    assert (site.waiting(), site.unanswered(), site.state(question)) == ([], [question], "refused")
    assert [name.split("-")[0] for name in site.answer(bytes.upper, site.unanswered())] == ["answer"]
    assert site.unanswered() == []
    assert transport.exchange(MESSAGE) == {"north": MESSAGE.upper()}
    assert sorted(path.name.split("-")[0] for path in site.folder.iterdir()) == ["answer", "question"]


def test_what_is_answered_is_not_asked_again(tmp_path):
    asked = []

    def reply(message):
        asked.append(message)
        return message.upper()

    folders = {name: tmp_path / name for name in ("north", "south")}
    for message in (b"one", b"two", b"three"):
        for attempt in range(2):
            transport = Folders(folders, patience=0)  # a coordinator that is started anew each time
            if attempt == 0:
                with pytest.raises(SiteSilent):
                    transport.exchange(message)
            for folder in folders.values():
                SiteFolder(folder).answer(reply)
            assert transport.exchange(message) == dict.fromkeys(folders, message.upper())
    assert asked == [b"one", b"one", b"two", b"two", b"three", b"three"]
    numbers = [path.name.split("-")[1] for path in SiteFolder(folders["north"]).questions()]
    assert numbers == ["0001", "0002", "0003"]
    shutil.rmtree(folders["south"])  # a folder that was lost: the same questions, under the same names
    with pytest.raises(SiteSilent, match=r"no reply from south$"):
        Folders(folders, patience=0).exchange(b"two")
    assert SiteFolder(folders["south"]).answer(reply) == [
        path.name for path in sorted(folders["north"].glob("answer-0002*"))
    ]


def test_messages_that_are_lost_or_come_twice(north):
    transport, site = north
    (question,) = site.waiting()
    question.unlink()  # lost on its way
    with pytest.raises(SiteSilent):
        transport.exchange(MESSAGE)
    assert site.waiting() == [question]
    shutil.copy(question, question.with_name(question.name.replace("0001", "0002")))  # carried twice
    assert len(site.answer(bytes.upper)) == 2
    assert transport.exchange(MESSAGE) == {"north": MESSAGE.upper()}
    for answer in site.folder.glob("answer-*"):  # lost on their way back
        answer.unlink()
    with pytest.raises(SiteSilent):
        transport.exchange(MESSAGE)
    assert len(site.answer(bytes.upper)) == 2
    assert transport.exchange(MESSAGE) == {"north": MESSAGE.upper()}


def test_answers_may_come_in_any_order(tmp_path):
    folders = {name: tmp_path / name for name in "abc"}
    transport = Folders(folders, patience=0)
    for name in "cab":
        with pytest.raises(SiteSilent) as silent:
            transport.exchange(MESSAGE)
        assert name in silent.value.names
        SiteFolder(folders[name]).answer(bytes.upper)
    assert list(transport.exchange(MESSAGE)) == ["a", "b", "c"]


def test_answers_in_the_folder_of_another_site(tmp_path):
    """Two attachments are mixed up: neither is taken, and each site sees that its own is missing."""
    folders = {name: tmp_path / name for name in "ab"}
    transport, sites = Folders(folders, patience=0), {name: SiteFolder(folders[name], name) for name in "ab"}
    with pytest.raises(SiteSilent):
        transport.exchange(MESSAGE)
    for site in sites.values():
        (name,) = site.answer(bytes.upper)
    (folders["a"] / name).rename(tmp_path / "answer")
    (folders["b"] / name).rename(folders["a"] / name)
    (tmp_path / "answer").rename(folders["b"] / name)
    with pytest.raises(SiteSilent, match="no reply from a, b"):
        transport.exchange(MESSAGE)
    assert all(site.answer(bytes.upper) == [name] for site in sites.values())
    assert transport.exchange(MESSAGE) == dict.fromkeys("ab", MESSAGE.upper())


def test_strange_files_are_left_alone(north):
    transport, site = north
    names = ["question-1.message", "question-0002-abc.message", "notes.txt", f"question-0003-{'0' * 32}.message.bak"]
    for name in names:
        (site.folder / name).write_text("anything")
    (site.folder / f"question-0004-{'0' * 32}.message").mkdir()
    outside = site.folder.parent / "rows.csv"
    outside.write_text("secret")
    os.symlink(outside, site.folder / f"question-0005-{'1' * 32}.message")
    assert len(site.answer(bytes.upper)) == 1
    assert transport.exchange(MESSAGE) == {"north": MESSAGE.upper()}
    assert outside.read_text() == "secret"


def test_neither_side_removes_what_the_other_is_writing(north):
    _, site = north
    parts = {kind: site.folder / f".{kind}-0001-x.message.abc.part" for kind in ("question", "answer", "refusal")}
    for path in parts.values():
        path.write_bytes(b"half")
    Folders({"north": site.folder})
    assert [kind for kind, path in parts.items() if path.exists()] == ["answer", "refusal"]
    parts["question"].write_bytes(b"half")
    stop = threading.Event()
    stop.set()
    site.serve(bytes.upper, stop=stop)
    assert [kind for kind, path in parts.items() if path.exists()] == ["question"]


def test_a_site_that_is_killed_while_it_writes_leaves_no_answer(north, monkeypatch):
    transport, site = north

    def killed(source, target):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            site.answer(bytes.upper)
    assert len(site.waiting()) == 1
    with pytest.raises(SiteSilent):
        transport.exchange(MESSAGE)


def test_numbers_of_files_do_not_run_out(north):
    """Whatever somebody has put there."""
    transport, site = north
    (site.folder / f"question-999999999-{'0' * 32}.message").write_bytes(b"anything")
    with pytest.raises(SiteSilent):
        transport.exchange(b"another question")
    site.answer(bytes.upper)
    assert transport.exchange(b"another question") == {"north": b"ANOTHER QUESTION"}


def test_one_folder_is_not_two_sites(tmp_path):
    with pytest.raises(ParameterError, match="another one for each site"):
        Folders({"a": tmp_path / "x", "b": Path(f"{tmp_path}/y/../x")})


def test_a_refusal_that_nobody_can_read_is_no_refusal(north):
    """As if it had not arrived: neither an answer nor an error of the reader."""
    transport, site = north
    (question,) = site.waiting()
    said = {"rule": "x", "words": "y", "signed": "no hexadecimal number"}
    for body in (b"\xff", b"[]", b"{}", json.dumps({"rule": "x"}).encode(), json.dumps(said).encode()):
        about = b"R" + hashlib.sha256(MESSAGE).digest() + bytes(32)
        question.with_name(question.name.replace("question", "refusal")).write_bytes(
            b"tasksieve-response 1\n" + about + hashlib.sha256(about + body).digest() + body
        )
        with pytest.raises(SiteSilent):
            transport.exchange(MESSAGE)
