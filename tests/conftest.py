"""Settings shared by all tests."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from quick_cases import slow_cases

# A busy machine is no failure, so no deadline. Runs are repeatable by default; HYPOTHESIS_PROFILE=explore
# draws new examples on every run: that is how one looks for trouble, rather than guards against its return.
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--narrow-longdouble",
        action="store_true",
        help="numpy.longdouble is float64, as on machines that have nothing wider",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Before any test is imported, in every process of pytest-xdist."""
    if config.getoption("--narrow-longdouble"):
        np.longdouble = np.float64  # type: ignore[misc]
    # The processes of pytest-xdist fill the cores by themselves: threads of BLAS would only spin beside them. Said
    # before they start, since NumPy reads it once, when it is loaded; .ci/portable says otherwise.
    if config.getoption("numprocesses", None):
        for threads in ("TASKSIEVE_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            os.environ.setdefault(threads, "1")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[Any], list[Any]]:
    """Few files of tests have examples in their docstrings: the others are not looked through for them."""
    found = yield
    if not found or ">>>" in file_path.read_text(encoding="utf-8", errors="replace"):
        return found
    return [one for one in found if type(one).__name__ != "DoctestModule"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """All that collection makes is there to stay: a million objects not to be looked through again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before cases are deselected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") is not None and not item.get_closest_marker("slow"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        one_in = int(cases[0].get_closest_marker("sampled").args[0])
        arguments = [
            {
                name: value if isinstance(value, str | int | float | None) else cases[k].callspec.indices[name]
                for name, value in cases[k].callspec.params.items()
            }
            for k in range(len(cases))
        ]
        for case, slow in zip(cases, slow_cases(arguments, one_in), strict=True):
            if slow:
                case.add_marker(pytest.mark.slow)


def pytest_report_header(config: pytest.Config) -> str:
    narrow = ", long double: float64" if config.getoption("--narrow-longdouble") else ""
    blas = f", BLAS for {core}" if (core := os.environ.get("OPENBLAS_CORETYPE")) else ""
    return f"kernels: {os.environ.get('TASKSIEVE_KERNELS') or 'compiled'}{narrow}{blas}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What the fuzzer of certificates (tests/fuzz) has counted, in all processes together; devices not tried."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    counts = [value for report in reports for key, value in report.user_properties if key == "fuzz"]
    if counts:
        fits, certificates, refused, violations = (sum(column) for column in zip(*counts, strict=True))
        terminalreporter.write_line(
            f"certificates: {fits} fits, {certificates} certificates, {refused} refused, {violations} violations"
        )


    skipped = [r for r in terminalreporter.stats.get("skipped", []) if "tests/device/" in r.nodeid]
    gpu = sum("no CUDA device" in str(r.longrepr) for r in skipped)
    if len(skipped) > gpu:
        terminalreporter.write_line(
            f"devices: {len(skipped) - gpu} tests skipped, torch is not installed (make test-torch)"
        )
    if gpu:
        terminalreporter.write_line(f"devices: {gpu} tests skipped, there is no CUDA device (make test-gpu)")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator seeded afresh for each test, so that tests do not depend on their order."""
    return np.random.default_rng(20150)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command line, run in this process: see `cli_helpers.CommandLine`."""
    from cli_helpers import CommandLine

    monkeypatch.setenv("TASKSIEVE_NUM_THREADS", "1")
    return CommandLine(capsys)


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A stand-in for the HTML report, which is tested elsewhere: the contents that would have been written."""
    import tasksieve.report

    written: list[Any] = []

    def write_report(content: Any, path: Path) -> None:
        written.append(content)
        Path(path).write_text(content.title, encoding="utf-8")

    monkeypatch.setattr(tasksieve.report, "write_report", write_report)
    return written
