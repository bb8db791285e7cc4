"""`--dry-run`: print what a command would change, without doing it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.types.wording import counted


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")


def run(
    args: argparse.Namespace,
    *,
    sources: Sequence[str] = (),
    remove: Sequence[str] = (),
    where: str | None = None,
    reread: bool = False,
    replace: bool = False,
) -> int:
    """Print the preview."""
    from ketrag_fast.index import Index

    path, _ = options.index_path(args)
    found = Index.preview(
        path,
        add=sources,
        remove=remove,
        where=where,
        reread=reread,
        replace=replace,
        settings=options.build_settings_of(args),
        progress=options.progress(args),
    )
    if args.json:
        output.write_json({**found.to_json(), "index": str(path)})
    else:
        output.write(
            f"{inline(path)} would have {counted(found.documents, 'document')} "
            f"({found.added:,} added, {found.updated:,} changed, {found.removed:,} removed; "
            f"{counted(found.characters, 'character')} to read); nothing was done"
        )
    if found.failures and not args.quiet and not args.json:
        output.report_failures(found.failures)
    return output.PARTIAL if found.failures else 0
