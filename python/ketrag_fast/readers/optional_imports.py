"""Import optional packages with an error that names the extra to install."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from ketrag_fast.errors import BackendMissing


def import_optional(module: str, what: str) -> ModuleType:
    """Return a module of an optional package. Raises BackendMissing, which names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        missing = isinstance(error, ModuleNotFoundError) and error.name == name
        raise BackendMissing(
            f"{what} cannot be read without the package {name}, which "
            + ("is not installed" if missing else f"cannot be imported ({error})"),
            hint="pip install 'ketrag-fast[documents]'",
        ) from None
