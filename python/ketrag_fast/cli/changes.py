"""What `ketrag add` and `ketrag remove` share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ketrag_fast.cli import index, options, output
from ketrag_fast.cli.visible import inline

GO_ON = "what is finished is kept: run the same command again and it goes on from there"


def declare(parser: argparse.ArgumentParser) -> None:
    """Their options."""
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would change, and leave the index as it is"
    )
    options.topic(parser, "how it runs", "running")
    options.model(parser)


def run(
    args: argparse.Namespace,
    *,
    sources: Sequence[str] = (),
    remove: Sequence[str] = (),
    where: str | None = None,
    purge: bool = False,
) -> int:
    """Changes the documents of an index that is there, and publishes it."""
    from ketrag_fast.index import Index

    path, _ = options.index_path(args)
    settings = options.build_settings_of(args)
    if args.dry_run:
        found = Index.preview(
            path, add=sources, remove=remove, where=where, settings=settings, progress=options.progress(args)
        )
        if args.json:
            output.write_json({**found.to_json(), "index": str(path)})
        else:
            output.write(
                f"{inline(path)} would have {found.documents:,} documents ({found.added:,} added, "
                f"{found.updated:,} changed, {found.removed:,} removed; {found.characters:,} characters more "
                "to read); nothing was done"
            )
        failures = found.failures
    else:
        with Index.open(path, settings=settings) as opened:
            report = opened.update(
                add=sources, remove=remove, where=where, purge=purge, progress=options.progress(args)
            )
        if args.json:
            output.write_json({**report.to_json(), "index": str(path)})
        else:
            output.write(index.summary(report, inline(path)))
        if not args.quiet:
            index.tell(args, report)
        return output.PARTIAL if report.failures else 0
    if failures and not args.quiet and not args.json:
        output.warn(f"{len(failures):,} documents could not be read or are not there:")
        output.list_failures(failures)
    return output.PARTIAL if failures else 0
