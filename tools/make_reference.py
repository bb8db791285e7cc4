"""Write the generated parts of the reference pages: help of the commands, errors, names in Python.

    python tools/make_reference.py            # write them
    python tools/make_reference.py --check    # exit with 1 if a page is out of date

A part begins at its mark in the page, such as `<!-- commands -->`, and ends at `<!-- end -->`.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import ketrag_fast
from ketrag_fast import errors
from ketrag_fast.apps.cli.main import GROUPS, main

FOLDER: Final = Path(__file__).parents[1] / "docs" / "reference"
_LAST: Final = "<!-- end -->"


def commands() -> str:
    """Return the help of `ketrag` and of each of its commands, as `-h` prints it."""
    names = [name for group in GROUPS.values() for name in group]
    every = [("ketrag", ["-h"]), *((f"ketrag {name}", [name, "-h"]) for name in names)]
    return "\n\n".join(f"## {title}\n\n```text\n{_help(argv)}\n```" for title, argv in every)


def _help(argv: list[str]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main(argv)
    return out.getvalue().strip()


def table_of_errors() -> str:
    """Return a table of all errors: class, code, meaning."""
    lines = ["| class | code | meaning |", "|---|---|---|"]
    for name, value in vars(errors).items():
        if inspect.isclass(value) and issubclass(value, errors.KetragError):
            lines.append(f"| `{name}` | `{value.code}` | {_first(value)} |")
    return "\n".join(lines)


def names() -> str:
    """Return tables of the names that `ketrag_fast` exports, and of what `Index` and `Indexes` can do."""
    lines = ["| name | meaning |", "|---|---|"]
    for name in ketrag_fast.__all__:
        value = getattr(ketrag_fast, name)
        if callable(value):
            lines.append(f"| `{name}` | {_first(value)} |")
    for owner in (ketrag_fast.Index, ketrag_fast.Indexes):
        lines += ["", f"| of `{owner.__name__}` | meaning |", "|---|---|"]
        lines += [f"| `{call}` | {meaning} |" for call, meaning in _members(owner)]
    return "\n".join(lines)


def _members(owner: type) -> Iterator[tuple[str, str]]:
    for name, value in vars(owner).items():
        if name.startswith("_"):
            continue
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        yield f"{name}{_arguments(function) if inspect.isfunction(function) else ''}", _first(function)


def _arguments(function: Callable[..., Any]) -> str:
    """Return the names of the arguments in parentheses; those with a default follow `*` or have `=`."""
    shown: list[str] = []
    for one in inspect.signature(function).parameters.values():
        if one.name in ("self", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and "*" not in shown and not any(s.startswith("*") for s in shown):
            shown.append("*")
        sign = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        shown.append(f"{sign}{one.name}")
    return f"({', '.join(shown)})"


def _first(value: object) -> str:
    """Return the first sentences of a docstring, as a cell of a table."""
    text = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return text.replace("|", "\\|")


PARTS: Final[dict[str, tuple[str, Callable[[], str]]]] = {
    "commands.md": ("<!-- commands -->", commands),
    "errors.md": ("<!-- errors -->", table_of_errors),
    "python.md": ("<!-- names -->", names),
}


def with_part(page: str, mark: str, part: str) -> str:
    """Return a page whose part after `mark` is replaced."""
    before, found, after = page.partition(mark)
    if not found or _LAST not in after:
        raise ValueError(f"the page has no {mark} followed by {_LAST}")
    return f"{before}{mark}\n\n{part}\n\n{_LAST}{after.partition(_LAST)[2]}"


def run(argv: Sequence[str]) -> int:
    """Write the pages, or with `--check` compare them."""
    code = 0
    for name, (mark, make) in PARTS.items():
        path = FOLDER / name
        old = path.read_text("utf-8")
        new = with_part(old, mark, re.sub(r"[ \t]+$", "", make(), flags=re.MULTILINE))
        if "--check" in argv:
            code = code or int(new != old)
        elif new != old:
            path.write_text(new, "utf-8")
    return code


if __name__ == "__main__":
    os.environ.update(KETRAG_EXTENSIONS="none", COLUMNS="100", NO_COLOR="1")
    sys.exit(run(sys.argv[1:]))
