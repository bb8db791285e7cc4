"""`ketrag index SOURCE...`: builds the index, or brings it up to date."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import cost_preview as foresight
from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import ConfigError, IndexMissing, InternalError, KetragError

if TYPE_CHECKING:
    from ketrag_fast.index import Index
    from ketrag_fast.types import BuildReport

_GO_ON = (
    "what is finished is kept: run the same command again and it goes on from there; "
    "with --publish-partial it publishes what a language model has read so far"
)

_SIDES = ("estimate", "actual")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declares the command."""
    parser = commands.add_parser(
        "index",
        parents=[shared],
        description="Reads files, folders or globs (docs/documents.md lists the formats) and builds "
        "the index. Sources accumulate: without any, those that the index has are read again.",
    )
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="file, folder, glob or data set")
    parser.add_argument("--replace", action="store_true", help="these sources are the only ones from now on")
    parser.add_argument("--rebuild", action="store_true", help="build all anew; needed for another unit size")
    parser.add_argument(
        "--publish-partial",
        action="store_true",
        help="ask no language model; publish what the last one has read so far",
    )
    foresight.declare(parser)
    options.topic(parser, "what is built", "build")
    options.topic(parser, "how it runs", "running")
    options.model(parser)
    options.reading(
        parser,
        "the skeleton: what reads the core chunks",
        "Replies are kept: a chunk is read once, whatever else changes. Without --llm the index keeps the "
        "skeleton that it has; `--rebuild --llm none` leaves it out.",
    )
    parser.set_defaults(run=run, go_on=_GO_ON)


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    path, _ = options.index_path(args)
    settings = options.build_settings_of(args)
    if args.publish_partial and not args.sources and not (path / "index.sqlite").exists():
        raise ConfigError(f"there is nothing in {path} to publish", hint="ketrag index SOURCE... --llm SPEC")
    if not args.sources and (args.replace or not (path / "index.sqlite").exists()):
        raise ConfigError(
            "no source was named", hint="ketrag index SOURCE...: files, folders, globs or .jsonl files"
        )
    if args.dry_run:
        if not (path / "index.sqlite").exists():
            raise IndexMissing(
                f"there is no index in {path} that could change",
                hint="`ketrag estimate SOURCE...` says what building one takes",
            )
        return foresight.run(args, sources=args.sources, reread=True, replace=args.replace)
    from ketrag_fast.index import Index

    index = Index.build(
        args.sources,
        path,
        settings=settings,
        progress=options.progress(args),
        replace=args.replace,
        rebuild=args.rebuild,
        partial=args.publish_partial,
    )
    with index:
        report = report_of(index)
    compared = _against_estimate(path, report)
    if args.json:
        output.write_json({**report.to_json(), "index": str(path), "estimate": compared})
    else:
        output.write("\n".join([summary(report, inline(path)), *_estimate_lines(compared)]))
    if not args.quiet:
        tell(args, report)
    return output.PARTIAL if report.failures or _cut_short(args, report) else 0


def _against_estimate(path: Path, report: BuildReport) -> list[dict[str, Any]]:
    """What `ketrag estimate -i` said before, beside what came."""
    from ketrag_fast.lab.cost.history import compare_estimate

    try:
        return compare_estimate(path, report)
    except KetragError:  # the index is built; a word about an estimate is not worth failing for
        return []


def _estimate_lines(compared: Sequence[dict[str, Any]]) -> list[str]:
    if not compared:
        return []
    lines = [f"  {'estimated':<18} {'said':>14} {'came':>14}"]
    for row in compared:
        numbers = [f"{row[side]:,.1f}" if row["name"] == "seconds" else f"{row[side]:,}" for side in _SIDES]
        off = "" if row["off_percent"] is None else f"  {row['off_percent']:+.0f} %"
        lines.append(f"  {row['name']:<18} {numbers[0]:>14} {numbers[1]:>14}{off}")
    return lines


def _cut_short(args: argparse.Namespace, report: BuildReport) -> bool:
    """Whether chunks are left that this command was meant to read."""
    found = report.extraction
    if found is None or not found["pending"]:
        return False
    return bool(found["stopped"] or args.publish_partial)


def report_of(index: Index) -> BuildReport:
    """What a build did; an index that was only opened has none."""
    if index.report is None:
        raise InternalError("a build ended without a report")
    return index.report


def summary(report: BuildReport, path: str) -> str:
    """One line about a build."""
    if not report.changed:
        count, number = report.documents, report.generation
        return f"{path} is up to date: {count:,} documents, generation {number}; nothing was done" + (
            f"\n{_read_line(report)}" if report.extraction is not None else ""
        )
    ran = sum(1 for stage in report.stages if stage.how == "ran")
    kept = len(report.stages) - ran
    changes = f"{report.added:,} added, {report.updated:,} changed, {report.removed:,} removed"
    size = output.size_text(sum(stage.bytes for stage in report.stages))
    read = _read_line(report)
    return (
        f"{path}: {report.documents:,} documents ({changes}), generation {report.generation}, {size}, "
        f"{report.seconds:.2f} s ({ran} stages run, {kept} kept)" + (f"\n{read}" if read else "")
    )


def _read_line(report: BuildReport) -> str:
    """What was read of the core chunks."""
    found = report.extraction
    if found is None:
        return ""
    parts = [f"{found['read']:,} of {found['core']:,} core chunks read"]
    if found["asked"]:
        parts.append(f"{found['asked']:,} replies in this build ({found['seconds']:.1f} s)")
    if found["tokens_out"]:
        shared = f"{found['tokens_shared']:,} shared"
        parts.append(f"{found['tokens_in']:,} tokens in ({shared}), {found['tokens_out']:,} out")
    parts += [f"{found[name]:,} {name}" for name in ("failed", "pending") if found[name]]
    return "  skeleton: " + ", ".join(parts)


def tell(args: argparse.Namespace, report: BuildReport) -> None:
    """What else there is to say about it, on stderr."""
    for warning in report.warnings:
        output.warn(warning)
    if args.verbose:
        for stage in report.stages:
            output.say(
                f"  {stage.name:<16} {stage.how:<8} {stage.seconds:8.3f} s  {output.size_text(stage.bytes)}"
            )
    for name, old, new in report.settings_changed:
        output.say(inline(f"setting {name}: {old} -> {new}"))
    for what in ("document", "chunk"):
        failed = [failure for failure in report.failures if (failure.code == "chunk") == (what == "chunk")]
        if failed:
            output.warn(f"{len(failed):,} {what}s could not be read:")
            if not args.json:
                output.list_failures(failed)
