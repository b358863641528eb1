"""Reading one chunk ahead: while the rows of one are summed, another thread reads the next."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def prefetched(items: Iterator[T]) -> Iterator[T]:
    """The same items, each fetched as soon as the one before it is taken; a caller that stops waits for one at most."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item
