"""A function named as "module:function", so that declaring it does not import what it needs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

Function = Callable[..., Any]


def resolve(function: Function | str) -> Function:
    """The function itself."""
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    found: Function = getattr(import_module(module), name)
    return found
