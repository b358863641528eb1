"""Work beside other work: what it found, or what went wrong."""

from __future__ import annotations

import threading

import pytest

from tasksieve.cli.background import in_background


def test_result_or_error() -> None:
    other = in_background(threading.get_ident)
    assert other.result() != threading.get_ident()
    assert other.result() == other.result()

    def fails() -> int:
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        in_background(fails).result()
