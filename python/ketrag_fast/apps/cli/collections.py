"""`ketrag collections`: list the indexes that have a name."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import output
from ketrag_fast.apps.cli.terminal import shown_path
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.types.wording import counted


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "collections",
        parents=[shared],
        description="List the indexes in the user's data folder: name, size, age and sources. `ketrag index "
        "SOURCE... --name NAME` makes one, -c NAME uses it from any folder.",
        examples=("ketrag collections", "ketrag collections --json"),
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from ketrag_fast.index.collections import age_text, collections, collections_folder

    found = collections()
    if args.json:
        rows = [one.to_json() for one in found]
        output.write_json(
            {"schema": "ketrag/collections/1", "folder": str(collections_folder()), "collections": rows}
        )
        return 0
    lines = []
    wide = max((len(one.name) for one in found), default=0)
    for one in found:
        count = "unreadable" if one.documents is None else counted(one.documents, "document")
        about = f"{count:>16}  {output.size_text(one.size):>9}  {age_text(one.built):<14}"
        lines.append(
            f"{one.name:<{wide}}  {about}  {', '.join(inline(shown_path(s)) for s in one.sources)}".rstrip()
        )
        if one.description:
            lines.append(f"{'':<{wide}}  {inline(one.description)}")
    if lines:
        output.write("\n".join(lines))
    elif not args.quiet:
        output.say("no collections: `ketrag index SOURCE... --name NAME` makes one")
    return 0
