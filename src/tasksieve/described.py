"""Objects that show the parameters they were made with."""

from __future__ import annotations

import inspect
from typing import Any


class Described:
    """``repr`` by the parameters of the constructor, each read from the attribute of its name."""

    def parameters(self) -> dict[str, Any]:
        """The constructor's parameters and their values."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.parameters().items())})"
