"""`ketrag compact`, `upgrade` and `reembed`: rewrite a stored index without reading its sources."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import index, options

if TYPE_CHECKING:
    from ketrag_fast.index import Index


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "compact",
        parents=[shared],
        description="Write the small changes that a large index stores next to its files into the files. "
        "They are then those of a build from scratch. No source is read and no model is called; queries use "
        "the old generation until the new one is published.",
        examples=(
            "ketrag compact",
            "ketrag compact -i docs-index --threads 1",
            "ketrag compact --json",
        ),
    )
    options.topic(parser, "running", "running")
    parser.set_defaults(run=run, go_on="finished work is kept: run the same command again to continue")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from ketrag_fast.index import Index

    path, _ = options.index_path(args)
    with Index.open(path, settings=options.build_settings_of(args)) as opened:
        report = opened.update(fold=True, progress=options.progress(args))
    index.print_report(args, path, report)
    return 0


def declare_upgrade(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "upgrade",
        parents=[shared],
        description="Upgrade an index of the previous format. Texts, words and links stay; vectors are "
        "computed again from the texts of the index. No source is read and no LLM is called. Until the "
        "command ends, queries do without vectors.",
        examples=(
            "ketrag upgrade -i docs-index",
            "ketrag upgrade -i docs-index --embedder native:models/all-MiniLM-L6-v2",
        ),
    )
    group = parser.add_argument_group("what to build")
    options.setting(group, "embedder", "limit_seconds")
    options.model(parser, shown=("precision", "device", "limit_usd"))
    parser.set_defaults(run=_run_upgrade, go_on="embedded texts are kept: run the same command again")


def _run_upgrade(args: argparse.Namespace) -> int:
    from ketrag_fast.index import Index

    return _change(args, Index.upgrade)


def declare_reembed(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "reembed",
        parents=[shared],
        description="Compute all vectors again, with another model or the same one, and publish them at "
        "once when they are complete; queries use the old ones until then. Documents are read "
        "from the index, not from their sources. Run it again after an interruption to "
        "continue.",
        examples=(
            "ketrag reembed --embedder native:all-MiniLM-L6-v2",
            "ketrag reembed --embedder openai:MODEL@http://127.0.0.1:8080/v1",
            "ketrag reembed --limit-seconds 3600",
        ),
    )
    group = parser.add_argument_group("what to build")
    options.setting(group, "embedder", "limit_seconds")
    options.model(parser, shown=("precision", "device", "limit_usd"))
    parser.set_defaults(run=_run_reembed, go_on="embedded texts are kept: run the same command again")


def _run_reembed(args: argparse.Namespace) -> int:
    from ketrag_fast.index import Index

    return _change(args, Index.reembed)


def _change(args: argparse.Namespace, change: Callable[..., Index]) -> int:
    """Run a change of an index that reads no source, and print its report."""
    path, _ = options.index_path(args)
    with change(path, settings=options.query_settings_of(args), progress=options.progress(args)) as opened:
        report = index.report_of(opened)
    index.print_report(args, path, report)
    return 0
