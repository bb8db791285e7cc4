"""Functions named as "module:function", so that a declaration imports no code."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

Function = Callable[..., Any]


def resolve(function: Function | str) -> Function:
    """Return the function, importing its module if needed."""
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    found: Function = getattr(import_module(module), name)
    return found
