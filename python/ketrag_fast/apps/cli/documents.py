"""`ketrag documents`: list the documents of an index."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "documents",
        parents=[shared],
        description="List the documents of an index: id, number of passages, language if it varies, title.",
        examples=(
            "ketrag documents",
            "ketrag documents polar --count 20",
            "ketrag documents --filter lang=en",
        ),
    )
    parser.add_argument(
        "containing", nargs="?", default="", metavar="TEXT", help="list those with TEXT in id or title"
    )
    parser.add_argument(
        "--first", type=int, default=0, metavar="N", help="number of the first one (default 0)"
    )
    parser.add_argument("--count", type=int, default=1_000_000, metavar="N", help="maximum number to list")
    options.setting(
        parser, "filter", about=f"list only documents whose metadata match, such as {options.FILTER}"
    )
    options.setting(parser, "allow")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    path, _ = options.index_path(args)
    from ketrag_fast.index import Index

    with Index.open(path, settings=options.query_settings_of(args)) as opened:
        inspect = opened.inspect
        found = inspect.documents(args.first, args.count, args.containing, inspect.filter)
        total = opened.inspect.document_count
    if args.json:
        listed = [one.to_json() for one in found]
        output.write_json(
            {"schema": "ketrag/documents/1", "index": str(path), "total": total, "documents": listed}
        )
        return 0
    wide = min(max((len(inline(one.document)) for one in found), default=0), 60)
    several = any("language" in one.metadata for one in found)
    lines = []
    for one in found:
        language = f"{inline(str(one.metadata.get('language', ''))):<4}  " if several else ""
        about = f"{one.units:>4}  {language}{inline(one.title)}"
        lines.append(f"{inline(one.document):<{wide}}  {about}".rstrip())
    if lines:
        output.write("\n".join(lines))
    if not args.quiet and len(found) < total:
        output.say(f"{len(found):,} of {total:,} documents")
    return 0
