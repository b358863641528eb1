"""What tests are judged by does not depend on the machine: no oracle is as wide as long double happens to be."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

TESTS = Path(__file__).parent

#: NumPy's names of types whose width is the platform's, and the characters that stand for them in a dtype
WIDTH_OF_THE_PLATFORM = {"longdouble", "clongdouble", "longfloat", "float128", "float96", "complex256"}
CHARACTERS = {"g", "G", "longdouble", "clongdouble", "float128", "complex256"}

NAMED = re.compile("|".join(sorted(WIDTH_OF_THE_PLATFORM)) + "|[\"'][gG][\"']")

#: This file, the option that makes long double narrow, and the test that wide numbers are refused as data.
EXEMPT = {"test_portable.py", "conftest.py", "test_named_forgeries.py"}


def uses_of_long_double(source: str) -> list[int]:
    """Lines at which a program names such a type: an attribute, a name, an import, or a dtype in quotation marks."""
    lines = []
    if not NAMED.search(source):  # most files: reading them as programs takes long
        return lines
    for node in ast.walk(ast.parse(source)):
        named = {getattr(node, part, None) for part in ("attr", "id", "name")}
        if isinstance(node, ast.Attribute | ast.Name | ast.alias) and named & WIDTH_OF_THE_PLATFORM:
            lines.append(node.lineno)
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else None
            given = [word.value for word in node.keywords if word.arg == "dtype"]
            given += node.args if called in ("astype", "dtype", "finfo", "view") else []
            quoted = [part for part in given if isinstance(part, ast.Constant) and part.value in CHARACTERS]
            lines += [part.lineno for part in quoted]
    return sorted(set(lines))


def test_no_oracle_is_long_double() -> None:
    """What has to be known to more digits than float64 has: `exact_numbers`, fractions or ``math.fsum``."""
    found = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        if path.name not in EXEMPT
        for line in uses_of_long_double(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "x = np.longdouble(1)",
        "x = numpy.float128",
        "from numpy import longdouble",
        "from numpy import longdouble as Wide",
        "x.astype('g')",
        "x = np.zeros(3, dtype='longdouble')",
        "np.finfo('float128')",
    ],
)
def test_uses_are_seen(line: str) -> None:
    assert uses_of_long_double(line) == [1]


def test_what_is_none() -> None:
    assert uses_of_long_double("x.astype('f'), grid('g'), 'longdouble'  # np.longdouble") == []


def test_sums_in_the_kernels_are_double() -> None:
    """The compiled code and its own tests, too."""
    sources = [TESTS.parent / "src" / "tasksieve" / "_kernels", TESTS / "kernels_cpp"]
    files = [path for folder in sources for path in folder.rglob("*") if path.suffix in (".cpp", ".hpp", ".h")]
    assert len(files) > 5
    assert [path.name for path in files if "long double" in path.read_text(encoding="utf-8")] == []


def test_the_option_makes_long_double_narrow(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--narrow-longdouble"):
        assert np.longdouble is np.float64
    else:
        assert np.longdouble is np.dtype("g").type
