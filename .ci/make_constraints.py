"""Write constraints.txt: versions of the extras' packages and their dependencies that passed the tests.

    python .ci/make_constraints.py            # from the packages that are installed next to this Python
    pip install -c constraints.txt 'ketrag-fast[all]'

Run it in the environment of `make test`, after the suite has passed there. Packages of dependency groups
are not listed: they do not reach users.
"""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).resolve().parents[1]
FILE: Final = ROOT / "constraints.txt"
EXTRA: Final = "all"
HEAD: Final = """\
# Versions of the extra `all` and its dependencies that passed the tests: Linux x86-64, Python {python}.
# Written by `python .ci/make_constraints.py`. Use: pip install -c constraints.txt 'ketrag-fast[all]'
"""


def named() -> list[Requirement]:
    """Return the requirements of the package and of its extra `all`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [
        Requirement(text) for text in (*project["dependencies"], *project["optional-dependencies"][EXTRA])
    ]


def installed(requirements: list[Requirement]) -> dict[str, str]:
    """Return names and versions of the requirements and of everything that they need on this machine.

    Ends the program if one of them is not installed.
    """
    versions: dict[str, str] = {}
    waiting = [(one, extra) for one in requirements for extra in ("", *one.extras)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(requirement.name)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            found = distribution(name)
        except PackageNotFoundError:
            raise SystemExit(f"{name} is not installed: install the extra {EXTRA!r} first") from None
        versions[name] = found.version.partition("+")[0]
        for text in found.requires or ():
            inner = Requirement(text)
            if inner.marker is None or inner.marker.evaluate({"extra": extra}):
                inner.marker = None
                waiting += [(inner, wanted) for wanted in ("", *inner.extras)]
    return versions


def main() -> int:
    """Write the file."""
    lines = [f"{name}=={version}\n" for name, version in sorted(installed(named()).items())]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    FILE.write_text(HEAD.format(python=python) + "".join(lines), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
