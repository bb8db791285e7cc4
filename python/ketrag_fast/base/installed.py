"""Versions and sources of installed packages, read from their folders."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path


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


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra.

    It names the checkout or file that this package was installed from, which pip has recorded, because its
    name alone finds nothing on a machine that installs from a checkout.

    Examples:
        >>> install_command("server").endswith("[server]'")
        True
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        recorded = distribution("ketrag-fast").read_text("direct_url.json")
        place = urlsplit(str(json.loads(recorded or "{}").get("url", "")))
    except (PackageNotFoundError, OSError, ValueError, AttributeError):
        place = urlsplit("")
    path = Path(url2pathname(place.path))
    source = str(path) if place.scheme == "file" and path.exists() else "ketrag-fast"
    return f"pip install '{source}[{extra}]'"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
