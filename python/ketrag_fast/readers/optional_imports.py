"""Import optional packages with an error that names the extra to install."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ketrag_fast.errors import BackendMissing


def import_optional(module: str, what: str, extra: str = "documents") -> ModuleType:
    """Return a module of an optional package. Raises BackendMissing, which names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise BackendMissing(
            f"{what} cannot be read: {module.partition('.')[0]} is not installed ({error})",
            hint=f"pip install 'ketrag-fast[{extra}]'",
        ) from None
