"""Lines of JSON between the server, the nursery and its children."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

CHUNK = 1 << 16


class Lines:
    """Lines of a descriptor, with a way to wait for them and for the end of a child."""

    def __init__(self, source: int) -> None:
        self.source, self.rest, self.open = source, b"", True

    def take(self) -> dict[str, Any] | None:
        """The next line that is here already."""
        line, newline, rest = self.rest.partition(b"\n")
        if not newline:
            return None
        self.rest = rest
        found: dict[str, Any] = json.loads(line)
        return found

    def read(self) -> None:
        more = os.read(self.source, CHUNK)
        self.rest, self.open = self.rest + more, bool(more)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while True:
            line = self.take()
            if line is not None:
                yield line
            elif self.open:
                self.read()
            else:
                return


def tell(out: int, content: dict[str, Any]) -> None:
    """A line for the server, all of it."""
    left = memoryview(json.dumps(content).encode() + b"\n")
    while left:
        left = left[os.write(out, left) :]
