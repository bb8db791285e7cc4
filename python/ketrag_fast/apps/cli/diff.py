"""`ketrag diff A B`: compare two indexes, or two generations of one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ketrag_fast.apps.cli import options, output, retrieve
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import IndexMissing


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "diff",
        parents=[shared],
        description="Compare two indexes, or two generations of one (my-index/gen-000003): documents, "
        "settings, models, entities, relations, and the passages for some queries. The exit "
        "code is 0 also if they differ (--json: same).",
        examples=(
            "ketrag diff old-index new-index",
            "ketrag diff .ketrag/gen-000003 .ketrag",
            "ketrag diff old-index new-index --questions queries.jsonl --mode walk",
        ),
    )
    parser.add_argument("before", metavar="A", help="folder of an index or of a generation")
    parser.add_argument("after", metavar="B", help="folder of another")
    parser.add_argument(
        "--questions", metavar="FILE", help="JSONL file of {_id, text}: compare their passages; - is stdin"
    )
    options.topic(parser, "retrieval", "query", shown=("mode", "budget", "top", "filter"))
    group = parser.add_argument_group("embedding model")
    options.setting(group, "embedder", rare=True)
    options.model(parser)
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    questions = [] if args.questions is None else retrieve.questions_of(args.questions)
    from ketrag_fast.index import Index
    from ketrag_fast.index.difference import summary

    settings = options.query_settings_of(args)
    for folder in map(Path, (args.before, args.after)):
        if not folder.exists():
            raise IndexMissing(
                f"no index in {folder}", hint="ketrag diff A B: name the folders of two indexes"
            )
    with (
        Index.open(args.before, settings=settings) as one,
        Index.open(args.after, settings=settings) as other,
    ):
        found = one.inspect.diff(other, questions)
    if args.json:
        output.write_json({**found.to_json(), "before": args.before, "after": args.after})
    else:
        output.write("\n".join(inline(line) for line in summary(found)))
    return 0
