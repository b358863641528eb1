"""Settings shared by all tests."""

from __future__ import annotations

import os

import hypothesis
import numpy as np
import pytest

# A busy machine is no failure, so no deadline. Runs are repeatable by default; HYPOTHESIS_PROFILE=explore
# draws new examples on every run: that is how one looks for trouble, rather than guards against its return.
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_report_header() -> str:
    return f"kernels: {os.environ.get('TASKSIEVE_KERNELS') or 'compiled'}"


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator seeded afresh for each test, so that tests do not depend on their order."""
    return np.random.default_rng(20150)
