"""Whatever happens to four processes and their files: the same bytes at the end, or a refusal that says why.

What can happen by chance (a process is killed or stands still, a file is lost, cut, changed, comes twice or in
another's place) must not even be noticed. What somebody does on purpose may end a run, by a rule with a name; with
the cause removed, the run goes on to the same bytes.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys

import numpy as np
import pytest

pytest.importorskip("cryptography")
from fault_processes import COORDINATOR, NAMES, Run, federation, followed
from transport_helpers import certificates

from tasksieve.federated.asking import Asking
from tasksieve.federated.errors import SiteSilent
from tasksieve.federated.folders import Folders, SiteFolder

fork = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")

BY_CHANCE = (
    "kill a site", "kill the coordinator", "rest", "lose", "cut", "change", "twice", "confuse", "spoil_kept",
    "spoil_log",
)  # fmt: skip
#: what somebody does -> the rules by which it may be refused; none: it must not be noticed
ON_PURPOSE = {
    "forge": {"signature", "format"},
    "sign_by_another": {"signature"},
    "replay": {"replay"},
    "other_site": {"signature"},
    "other_version": {"version"},
    "refuse": {"signature"},
    "cut_log": {"log"},
    "ask_by_another": set(),
    "change_rows": {"site-silent"},
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return followed(federation(tmp_path_factory.mktemp("reference")).asking())


def call(run, kind):
    if kind == "kill the coordinator":
        return lambda: run.kill(COORDINATOR)
    if kind in ("kill a site", "rest"):
        name = run.rng.choice(NAMES)
        return lambda: run.rest(name) if kind == "rest" else run.kill(name)
    return getattr(run, kind)


def sites_can_answer_for_themselves(run):
    """All that sites have answered is in their logs, and comes out again."""
    sites = federation(run.place / "logs")
    for name, node in sites.nodes.items():
        replayed = node.replay()
        assert replayed, name
        assert all(replayed.values()), name


def random_run(place, seed, expected, n_faults=5, wicked=""):
    """(how it ended, how many faults happened) of a run with random faults, and one on purpose."""
    rng = np.random.default_rng(seed)
    run = Run(place, rng)
    kinds = list(rng.choice(BY_CHANCE, size=n_faults))
    if wicked == "change_rows":
        run.patience = 2.0
    moments = sorted(rng.integers(24, size=n_faults))
    faults = [(moment, call(run, kind)) for moment, kind in zip(moments, kinds, strict=True)]
    if wicked:
        faults.append((rng.integers(8, 20), getattr(run, wicked)))
    ended, content = run.until_the_end(faults)
    if ended == "refused":
        assert content.decode().partition(":")[0] in ON_PURPOSE.get(wicked, set()), (seed, kinds, wicked, content)
        assert any(name in content.decode() for name in NAMES)
        (place / "refused").unlink()
        shutil.rmtree(place / "folders")  # with what was put there; logs and what the coordinator has kept stay
        for file in place.glob("ended-*"):
            file.unlink()
        for undo in run.undo:
            undo()
        again = Run(place, rng)
        assert again.until_the_end([]) == ("result", expected), (seed, kinds, wicked)
    else:
        assert content == expected, (seed, kinds, wicked)
    sites_can_answer_for_themselves(run)
    return ended, run.happened


@fork
@pytest.mark.parametrize("wicked", ["", "refuse"])
def test_random_faults(tmp_path, wicked, expected):
    random_run(tmp_path, len(wicked), expected, 6, wicked)


@fork
@pytest.mark.slow
def test_two_hundred_random_faults(tmp_path, expected):
    """By chance in 28 runs; then each thing that is done on purpose until it was noticed: some come too late for it."""
    happened = [random_run(tmp_path / str(seed), seed, expected, 7) for seed in range(100, 128)]
    assert {ended for ended, _ in happened} == {"result"}
    total = sum(count for _, count in happened)
    for k, (wicked, rules) in enumerate(ON_PURPOSE.items()):
        ends = []
        for seed in range(200 + 10 * k, (208 if rules else 203) + 10 * k):
            ended, count = random_run(tmp_path / str(seed), seed, expected, 3, wicked)
            ends.append(ended)
            total += count
            if ended == "refused":
                break
        assert ("refused" in ends) == bool(rules), (wicked, ends)
    assert total >= 200


@fork
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_processes_over_https(tmp_path, seed, expected):
    rng = np.random.default_rng(seed)
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in NAMES]
    ports = {name: listener.getsockname()[1] for name, listener in zip(NAMES, listeners, strict=True)}
    for listener in listeners:
        listener.close()
    run = Run(tmp_path, rng, addresses=ports, files=certificates(tmp_path, *NAMES))
    kinds = rng.choice(("kill a site", "kill the coordinator", "rest", "spoil_kept"), size=4)
    assert run.until_the_end([(rng.integers(30), call(run, kind)) for kind in kinds]) == ("result", expected)
    sites_can_answer_for_themselves(run)


class Stopped(BaseException):
    """A computer stops here."""


class StopAt:
    """Stop when a file is about to get its name for the n-th time, or has just got it."""

    def __init__(self, n, after):
        self.left, self.after, self.rename = n, after, os.replace

    def __call__(self, source, target):
        self.left -= 1
        if self.left == -1 and not self.after:
            raise Stopped
        self.rename(source, target)
        if self.left == -1:
            raise Stopped


def in_turns(place):
    """Coordinator and sites in one process, in turns, from what is on the disk."""
    folders = {name: place / "folders" / name for name in NAMES}
    sites = federation(place / "logs")
    transport = InTurns(Folders(folders, patience=0), folders, sites)
    return followed(Asking(sites.plan, sites.keys[COORDINATOR], transport, place / "kept"), 1)


class InTurns:
    """Sites answer whenever the coordinator finds them silent."""

    def __init__(self, transport, folders, sites):
        self.transport, self.folders, self.sites = transport, folders, sites

    def exchange(self, message):
        for _ in range(2):
            try:
                return self.transport.exchange(message)
            except SiteSilent as silent:
                for name in silent.names:
                    SiteFolder(self.folders[name], name).answer(self.sites.nodes[name].reply)
        return self.transport.exchange(message)


@pytest.mark.parametrize(
    ("after", "step"), [(False, 11), *(pytest.param(after, 1, marks=pytest.mark.slow) for after in (False, True))]
)
def test_stopped_at_every_file(tmp_path, monkeypatch, after, step):
    """A stop at each file that is written, by a site or by the coordinator: the same bytes every time."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # no power is lost here
    expected = in_turns(tmp_path / "whole")
    stops = 0
    while True:
        place, stop = tmp_path / str(stops), StopAt(stops, after)
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", stop)
            try:
                found = in_turns(place)
            except Stopped:
                found = None
        if found is not None:
            break
        assert in_turns(place) == expected, stops
        stops += step
    assert found == expected
    assert stops > 15
