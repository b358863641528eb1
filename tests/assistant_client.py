"""A client of ``tasksieve mcp``: the SDK's own, over the standard streams of a server that is a process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

mcp = pytest.importorskip("mcp", reason="pip install 'tasksieve[mcp]'")
anyio_threads = pytest.importorskip("anyio.from_thread")


@dataclass
class Answer:
    """What a tool has answered."""

    error: str  # in words; empty where there is an answer
    content: dict[str, Any]
    progress: list[tuple[float, str]] = field(default_factory=list)


class Assistant:
    """Calls tools, one after the other."""

    def __init__(self, portal: Any, client: Any) -> None:
        self.portal, self.client = portal, client

    def tools(self) -> list[Any]:
        found: list[Any] = self.portal.call(self.client.list_tools).tools
        return found

    def call(self, name: str, arguments: Any = None) -> Answer:
        found, progress = self.portal.call(self._call, name, arguments)
        text = found.content[0].text
        if found.is_error:
            return Answer(text, {}, progress)
        return Answer("", found.structured_content, progress)

    async def _call(self, name: str, arguments: Any) -> tuple[Any, list[tuple[float, str]]]:
        told: list[tuple[float, str]] = []

        async def note(done: float, total: float | None, message: str | None) -> None:
            told.append((done, message or ""))

        return await self.client.call_tool(name, arguments, progress_callback=note), told


@contextmanager
def assistant(folder: Path, *words: str) -> Iterator[Assistant]:
    """An assistant whose server has this folder."""
    arguments = ["-m", "tasksieve", "mcp", "--folder", str(folder), *words]
    # the kernels of this process; one thread: results must not depend on it, and other tests run beside
    environment = {name: value for name, value in os.environ.items() if name == "TASKSIEVE_KERNELS"}
    environment |= {"TASKSIEVE_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
    server = mcp.StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    with (
        anyio_threads.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(mcp.Client(mcp.stdio_client(server))) as client,
    ):
        yield Assistant(portal, client)
