"""Versions of installed packages, read from the names of their folders."""

from __future__ import annotations

import os
import re
import sys


def installed_version(name: str) -> str | None:
    """Return the version of an installed package; None if it is not installed.

    `importlib.metadata` returns the same, but its import alone takes longer than a query.

    Examples:
        >>> installed_version("no-such-package") is None
        True
    """
    wanted = _normal(name)
    for place in dict.fromkeys(sys.path):
        try:
            entries = os.listdir(place or ".")  # noqa: PTH208 - names are enough
        except NotADirectoryError:  # a zip file, which this scan cannot read
            from importlib.metadata import PackageNotFoundError, version

            try:
                return version(name)
            except PackageNotFoundError:
                continue
        except OSError:
            continue
        for entry in entries:
            package, _, number = entry.removesuffix(".dist-info").partition("-")
            if number and entry.endswith(".dist-info") and _normal(package) == wanted:
                return number
    return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
