"""`ketrag add SOURCE...` and `ketrag remove ID...`: change single documents of an index."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from ketrag_fast.apps.cli import index, options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import ConfigError

GO_ON = "finished work is kept: run the same command again to continue"


def _declare_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that both commands have."""
    index.declare_dry_run(parser)
    options.topic(parser, "running", "running")
    options.model(parser)


def _change(
    args: argparse.Namespace,
    *,
    sources: Sequence[str] = (),
    remove: Sequence[str] = (),
    where: str | None = None,
    purge: bool = False,
) -> int:
    """Apply the change, or preview it with --dry-run, and print a report."""
    if args.dry_run:
        return index.preview(args, sources=sources, remove=remove, where=where)
    from ketrag_fast.index import Index

    path, _ = options.index_path(args)
    with Index.open(path, settings=options.build_settings_of(args)) as opened:
        report = opened.update(
            add=sources, remove=remove, where=where, purge=purge, progress=options.progress(args)
        )
    args.code = output.PARTIAL if report.failures else 0
    if args.json:
        output.write_json({**report.to_json(), "index": str(path)})
    else:
        if report.changed or not purge:
            output.write(index.summary(report, inline(path)))
        if purge:
            output.write(f"{inline(path)}: what was stored of removed documents is erased")
    if not args.quiet:
        index.print_details(args, report)
    return int(args.code)


def declare_add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "add",
        parents=[shared],
        description="Add files, folders, globs or data sets to an index, or read them again. Other "
        "sources are not read. Removed documents come back with their source.",
        examples=(
            "ketrag add notes/new.md",
            "ketrag add 'reports/2024-*.pdf' --dry-run",
            "ketrag add notes/ --llm llama-cpp:model.gguf",
        ),
    )
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="file, folder, glob or .jsonl data set")
    _declare_common(parser)
    options.topic(
        parser,
        "extraction by a language model (without --llm, new chunks stay pending)",
        "reading",
        shown=("llm",),
    )
    parser.set_defaults(run=_run_add, go_on=GO_ON)


def _run_add(args: argparse.Namespace) -> int:
    """Run the command."""
    return _change(args, sources=args.sources)


def declare_remove(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "remove",
        parents=[shared],
        description="Remove documents from an index. No source is read and no model is called. They stay "
        "removed even if their source still has them, until `ketrag add` names the source or their "
        "file.",
        epilog="In a pattern, * matches any characters (also /), ? one character, [abc] one of these.\n"
        "Quote patterns, so that the shell does not expand them.",
        examples=(
            "ketrag remove old.md 'drafts/*'",
            "ketrag remove --filter 'year<1990' --dry-run",
            "ketrag remove --purge secret.md",
        ),
    )
    parser.add_argument("ids", nargs="*", metavar="ID|GLOB", help="document id, or pattern of ids")
    parser.add_argument(
        "--filter",
        dest="where",
        metavar="CONDITION",
        help="remove documents whose metadata match, such as 'year<1990'",
    )
    parser.add_argument(
        "--purge",
        action="store_true",
        help="also erase their text, vectors, replies and ids from all files of the index",
    )
    _declare_common(parser)
    parser.set_defaults(run=_run_remove, go_on=GO_ON)


def _run_remove(args: argparse.Namespace) -> int:
    """Run the command."""
    if not args.ids and args.where is None and not args.purge:
        raise ConfigError("no document was named", hint="ketrag remove ID..., or --filter 'year<1990'")
    return _change(args, remove=args.ids, where=args.where, purge=args.purge)
