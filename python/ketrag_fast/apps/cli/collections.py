"""`ketrag collections` and `ketrag describe`: named indexes, and descriptions of folders."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal import display_path
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import ConfigError
from ketrag_fast.types.wording import counted


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
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
            f"{one.name:<{wide}}  {about}  {', '.join(inline(display_path(s)) for s in one.sources)}".rstrip()
        )
        if one.description:
            lines.append(f"{'':<{wide}}  {inline(one.description)}")
    if lines:
        output.write("\n".join(lines))
    elif not args.quiet:
        output.say("no collections: `ketrag index SOURCE... --name NAME` makes one")
    return 0


def declare_describe(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "describe",
        parents=[shared],
        description="Describe a folder of the sources, or the whole index, in a sentence. Results show it, "
        "and assistants choose by it. Without arguments, print the descriptions.",
        examples=(
            'ketrag describe notes/work "client projects, by year"',
            'ketrag describe "all my notes" -c notes',
            "ketrag describe notes/work --remove",
        ),
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="[FOLDER] TEXT",
        help="folder (default: the whole index), and what is in it",
    )
    parser.add_argument("--remove", action="store_true", help="remove the description")
    parser.set_defaults(run=_run_describe)


def _run_describe(args: argparse.Namespace) -> int:
    """Run the command."""
    words = list(args.words)
    if len(words) > (1 if args.remove else 2):
        raise ConfigError(
            "a description is one text", hint='put it in quotes: ketrag describe notes/work "client projects"'
        )
    path = options.one_path(args)
    from ketrag_fast.index.annotations import describe, descriptions_of

    if words or args.remove:
        folder = words[0] if args.remove or len(words) == 2 else None
        if args.remove and not words:
            folder = None
        describe(path, None if args.remove else words[-1], folder)
    found = descriptions_of(path)
    if args.json:
        output.write_json({"schema": "ketrag/descriptions/1", "index": str(path), "descriptions": found})
    elif found and not args.quiet:
        rows = sorted(found.items())
        output.write(
            "\n".join(
                f"{inline(display_path(name)) if name else '(all)'}  {inline(text)}" for name, text in rows
            )
        )
    return 0
