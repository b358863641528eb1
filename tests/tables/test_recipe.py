"""How a table was read, in the words of the certificate's format."""

from __future__ import annotations

import pandas as pd

from tasksieve.tables.recipe import MISSING_WORDS


def test_the_words_for_nothing_are_those_of_pandas() -> None:
    assert set(MISSING_WORDS) == pd._libs.parsers.STR_NA_VALUES
