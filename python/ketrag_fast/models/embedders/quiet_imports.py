"""Import model libraries without network access and terminal output."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

from ketrag_fast.errors import BackendMissing

_OFFLINE: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TQDM_DISABLE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}


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
            hint=f"pip install {name}" if extra is None else f"pip install 'ketrag-fast[{extra}]'",
        ) from error


@contextmanager
def no_bars() -> Iterator[None]:
    """Disable the progress bars of transformers; its environment variable is only read at import."""
    logging = importlib.import_module("transformers.utils.logging")
    shown = bool(logging.is_progress_bar_enabled())
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


@contextmanager
def no_hub() -> Iterator[None]:
    """Block network access of the hub client, whether it is already imported or not."""
    before = {name: os.environ.get(name) for name in _OFFLINE}
    os.environ.update(_OFFLINE)
    constants = sys.modules.get("huggingface_hub.constants")
    flag = getattr(constants, "HF_HUB_OFFLINE", None)
    imported_here = constants is None
    if constants is not None:
        constants.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        constants = sys.modules.get("huggingface_hub.constants")
        if constants is not None:  # read once at import: restore the user's setting
            own = (before["HF_HUB_OFFLINE"] or "").upper() in ("1", "ON", "YES", "TRUE")
            constants.HF_HUB_OFFLINE = own if imported_here else flag  # type: ignore[attr-defined]
