"""Import the libraries of models, which are optional, with an error that names what to install."""

from __future__ import annotations

import importlib
from types import ModuleType

from ketrag_fast.base.installed import install_command
from ketrag_fast.errors import BackendMissing


def import_quietly(module: str, extra: str | None = None) -> ModuleType:
    """Import an optional package. Raises BackendMissing, which names the extra or else the package."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        raise BackendMissing(
            f"{name} is not installed"
            if getattr(error, "name", None) == name
            else f"{name} cannot be loaded: {error}",
            hint=f"pip install {name}" if extra is None else install_command(extra),
        ) from error
