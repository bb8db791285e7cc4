"""`ketrag get FILE:LINES`: print indexed text with its line numbers."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.search import path_of, state_lines
from ketrag_fast.apps.cli.terminal import NUMBER, standard_output
from ketrag_fast.apps.cli.terminal_text import one_line
from ketrag_fast.errors import UnknownName

if TYPE_CHECKING:
    from ketrag_fast.base.config import Settings
    from ketrag_fast.types import Excerpt


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "get",
        parents=[shared],
        description="Print the indexed text of a file, or a part of it, with line numbers. The file itself "
        "is not read.",
        examples=(
            "ketrag get notes/plan.md:93-110",
            "ketrag get report.pdf:p12",
            "ketrag get stock.xlsx:Stock!A65",
        ),
    )
    parser.add_argument(
        "place",
        metavar="FILE[:POSITION]",
        help="path or document id; position: 93-110 (lines), 93:18 (18 lines), 93, p12 (page), "
        "Stock!A65 (cell), 00:12:30 (time)",
    )
    options.setting(parser, "filter", "allow", rare=True)
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    settings = options.query_settings_of(args)
    excerpt = _find(args, settings)
    if args.json:
        output.write_json({"schema": "ketrag/text/1", **excerpt.to_json()})
        return 0
    terminal = standard_output()
    rows = excerpt.text.split("\n")
    last = excerpt.first + len(rows) - 1
    wide = len(str(last))
    lines = [
        f"{terminal.paint(f'{number:>{wide}}', NUMBER)}  {one_line(row)}".rstrip()
        for number, row in enumerate(rows, excerpt.first)
    ]
    output.write_styled("\n".join(lines))
    if not args.quiet:
        if last < excerpt.total:
            output.say(f"{path_of(excerpt)}: lines {excerpt.first:,}-{last:,} of {excerpt.total:,}")
        for text in state_lines([excerpt]):
            output.say(text)
    return 0


def _find(args: argparse.Namespace, settings: Settings) -> Excerpt:
    """Return the text of the first index that has the file. Raises UnknownName if none has."""
    from ketrag_fast.index import Index

    paths = list(options.searched_paths(args).values())
    for path in paths[:-1]:
        with suppress(UnknownName), Index.open(path, settings=settings) as index:
            return index.text(args.place)
    with Index.open(paths[-1], settings=settings) as index:
        return index.text(args.place)
