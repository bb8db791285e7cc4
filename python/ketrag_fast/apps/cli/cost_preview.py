"""`--dry-run`: print what a command would change and cost, without doing it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.types.wording import counted

if TYPE_CHECKING:
    from ketrag_fast.lab.cost.changing import ChangeCost


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would change and cost, and change nothing",
    )


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
    from ketrag_fast.lab.cost.changing import cost_of
    from ketrag_fast.lab.cost.prices import read_prices

    path, _ = options.index_path(args)
    settings = options.build_settings_of(args)
    found = Index.preview(
        path,
        add=sources,
        remove=remove,
        where=where,
        reread=reread,
        replace=replace,
        settings=settings,
        progress=options.progress(args),
    )
    cost = cost_of(path, found, settings, read_prices(None))
    if args.json:
        output.write_json({**found.to_json(), "cost": cost.to_json(), "index": str(path)})
    else:
        output.write(
            f"{inline(path)} would have {counted(found.documents, 'document')} "
            f"({found.added:,} added, {found.updated:,} changed, {found.removed:,} removed; "
            f"{counted(found.characters, 'character')} to read); nothing was done"
        )
        if cost.seconds != 0:
            output.write(_line(cost))
        if cost.note is not None and not args.quiet:
            output.say(cost.note)
    if found.failures and not args.quiet and not args.json:
        output.report_failures(found.failures)
    return output.PARTIAL if found.failures else 0


def _line(cost: ChangeCost) -> str:
    from ketrag_fast.lab.cost.bill import usd_text
    from ketrag_fast.lab.cost.estimate import time_text

    parts = [f"up to {time_text(cost.seconds)}" if cost.seconds is not None else "an unknown time"]
    if cost.embedding:
        parts.append(f"{time_text(cost.embedding)} of it embedding")
    if cost.embedding_tokens != 0:
        parts.append(f"{_count(cost.embedding_tokens, 'token')} to embed")
    if cost.calls != 0:
        parts.append(f"{_count(cost.calls, 'call')} of the language model")
    if cost.tokens_in or cost.tokens_out:
        parts.append(f"{_count(cost.tokens_in, 'token')} in, {_count(cost.tokens_out, 'token')} out")
    if cost.bill.total is None:
        parts.append("an unknown sum of USD")
    elif cost.bill.total:
        parts.append(f"USD {usd_text(cost.bill.total)}")
    return f"  it would take {', '.join(parts)}"


def _count(number: int | None, noun: str) -> str:
    return f"an unknown number of {noun}s" if number is None else counted(number, noun)
