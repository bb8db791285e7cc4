"""Common parts of `ketrag add` and `ketrag remove`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ketrag_fast.apps.cli import dry_run, index, options, output
from ketrag_fast.apps.cli.terminal_text import inline

GO_ON = "finished work is kept: run the same command again to continue"


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of both commands."""
    dry_run.declare(parser)
    options.topic(parser, "running", "running")
    options.model(parser)


def run(
    args: argparse.Namespace,
    *,
    sources: Sequence[str] = (),
    remove: Sequence[str] = (),
    where: str | None = None,
    purge: bool = False,
) -> int:
    """Change the documents of an index and publish it."""
    if args.dry_run:
        return dry_run.run(args, sources=sources, remove=remove, where=where)
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
        index.tell(args, report)
    return int(args.code)
