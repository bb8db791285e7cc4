"""Optional packages that some tests need: skipped without them on a desk, demanded where CI is set."""

from __future__ import annotations

import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest


def strict() -> bool:
    """Whether a part that is missing is a failure: `CI=true`, as continuous integration sets it."""
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


_GROUPS = ("checks", "real")


def how_to_install(source: str) -> str:
    """How to get the packages of an extra or of a group of developers."""
    return f"pip install --group {source}" if source in _GROUPS else f"pip install 'ketrag-fast[{source}]'"


def part(module: str, source: str) -> Any:
    """The module; without it the test is skipped, or fails in CI, and says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing(f"{module} is not installed ({how_to_install(source)}): {error}")


def folder_of(module: str, source: str) -> Path:
    """The folder of a package that holds a model, found without running its code; else as `part`."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        missing(f"{module} is not installed ({how_to_install(source)})")
    return Path(found.origin).parent


def missing(reason: str) -> NoReturn:
    """Skips, or fails where CI is set."""
    if strict():
        pytest.fail(f"CI runs the tests with all real parts, but {reason}")
    pytest.skip(reason, allow_module_level=True)
