"""`ketrag diff A B`: what differs between two indexes, or two generations of one."""

from __future__ import annotations

import argparse
from typing import Any

from ketrag_fast.apps.cli import options, output, retrieve
from ketrag_fast.apps.cli.terminal_text import inline


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "diff",
        parents=[shared],
        description="Says what differs between two indexes: documents, settings, models, entities, "
        "relations, and the passages of some questions. A and B are folders of indexes, or of generations of "
        "one (my-index/gen-000003). The exit code is 0 whether they differ or not (--json: same).",
    )
    parser.add_argument("before", metavar="A", help="folder of an index or of a generation")
    parser.add_argument("after", metavar="B", help="folder of another")
    parser.add_argument(
        "--questions", metavar="FILE", help="lines of {_id, text} whose passages are compared; - is stdin"
    )
    options.topic(parser, "how the questions are ranked", "query")
    options.setting(parser, "embedder")
    options.model(parser)
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    questions = [] if args.questions is None else retrieve.questions_of(args.questions)
    from ketrag_fast.index import Index
    from ketrag_fast.index.difference import summary

    found = Index.diff(args.before, args.after, questions=questions, settings=options.query_settings_of(args))
    if args.json:
        output.write_json({**found.to_json(), "before": args.before, "after": args.after})
    else:
        output.write("\n".join(inline(line) for line in summary(found)))
    return 0
