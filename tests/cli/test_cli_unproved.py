"""Runs without the file of a certificate say so: last on the screen, in the report, and when they are verified."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import CommandLine, regression_csv

import tasksieve as ts
from tasksieve import verify

FIT = ("-y", "y", "-t", "region", "--alpha", 0.1)
OWN = "its gap is the solver's own number"


def refuse(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """No model has a certificate."""

    def certificate(self: Any, *given: Any, **named: Any) -> Any:
        raise error

    monkeypatch.setattr(ts.MultiTaskLasso, "certificate", certificate)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ValueError("alpha=0.1: there is no certificate: the loss of task 'a' is not finite."), "the loss of task 'a'"),
        (MemoryError(), "not enough memory"),
        (verify.Mismatch("X holds infinite numbers"), "X holds infinite numbers"),
        (OverflowError("too large"), "too large"),
    ],
)
def test_what_went_wrong_is_said_everywhere(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, why: str
) -> None:
    table, run = regression_csv(tmp_path / "t.csv"), tmp_path / "run"
    refuse(monkeypatch, error)
    lines = cli("fit", table, *FIT, "-o", run).out.splitlines()
    assert lines[-2].startswith("NO CERTIFICATE: ")
    assert why in lines[-2]
    assert lines[-1].startswith(OWN)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert page.count("There is no certificate") >= 2  # in the box of warnings, and in its section
    assert "No certificate</h2>" in page
    assert "that is the certificate" not in page
    assert why.replace("'", "&#39;") in page
    assert not (run / "certificate.npz").exists()
    refused = cli("verify", run, code=2)
    assert why in refused.err
    assert "solver's own number" in refused.err
    assert why in cli("inspect", run).out
    assert why in cli("fit", table, *FIT, "-o", run, "--resume").err


def test_quiet_runs_say_it_too(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, ValueError("there is no certificate: it is a test."))
    found = cli("fit", regression_csv(tmp_path / "t.csv"), *FIT, "-o", tmp_path / "run", "--no-report", "-q")
    assert not found.out
    assert found.err.splitlines()[0] == "NO CERTIFICATE: it is a test"


def test_with_a_certificate_nothing_is_said(cli: CommandLine, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert "CERTIFICATE" not in cli("fit", regression_csv(tmp_path / "t.csv"), *FIT, "-o", run).out
    assert "no_certificate" not in json.loads((run / "certificate.json").read_text())
    assert "There is no certificate" not in (run / "report.html").read_text(encoding="utf-8")


def test_chunks_new_tasks_and_streams_have_none(cli: CommandLine, tmp_path: Path) -> None:
    table = regression_csv(tmp_path / "t.csv")
    chunks = cli("fit", table, "-y", "y", "-t", "region", "--alpha", 0.1, "--chunk-rows", 40, "--no-report",
                 "-o", tmp_path / "chunks").out  # fmt: skip
    assert "NO CERTIFICATE: the rows went by in chunks" in chunks.splitlines()[-2]
    assert "went by in chunks" in cli("verify", tmp_path / "chunks", code=2).err
    cli("fit", table, *FIT, "-o", tmp_path / "run", "--no-report", "-q")
    new = cli("transfer", tmp_path / "run", table, "--name", "west", "-o", tmp_path / "new", code=None).out
    assert "NO CERTIFICATE: a new task's model is proved in Python" in new.splitlines()[-2]
    assert "NewTask.certificate" in cli("verify", tmp_path / "new", code=2).err
    lines = [",".join(cell for k, cell in enumerate(line.split(",")) if k != 1) for line in table.read_text().split()]
    (tmp_path / "numbers.csv").write_text("\n".join(lines), encoding="utf-8")  # without the city
    streamed = cli("stream", tmp_path / "numbers.csv", "-y", "y", "-t", "region", "-o", tmp_path / "stream",
                   "--no-report").out  # fmt: skip
    assert streamed.splitlines()[-1].startswith("NO CERTIFICATE: an online model is an iterate")
