"""Memory that is not given, in whatever words it is refused. Nothing is imported: there may be none left for that."""

from __future__ import annotations

# What the loader, thread libraries and C++ say, in errors of other types than MemoryError.
_WORDS = (
    "out of memory",
    "cannot allocate memory",
    "can't allocate",
    "failed to allocate",
    "unable to allocate",
    "failed to map segment",
    "bad_alloc",
    "can't start new thread",
)
_ENOMEM = 12


def is_lack_of_memory(error: BaseException | None) -> bool:
    """Return whether an error, or one that it came from, says that no more memory is given."""
    seen = 0
    while error is not None and seen < 100:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == _ENOMEM:
            return True
        words = str(error).lower()
        if not isinstance(error, KeyboardInterrupt) and any(own in words for own in _WORDS):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False


def memory_words(error: BaseException) -> str:
    """One line about it."""
    return f"not enough memory: {str(error) or 'no more is given'}; fit and path take --chunk-rows 100000"
