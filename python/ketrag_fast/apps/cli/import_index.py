"""`ketrag import` and `ketrag recording`: reuse what GraphRAG or LightRAG has extracted."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline

# Repeats the names in interchange.importing, because importing that module is slow.
FORMATS: Final = ("graphrag", "lightrag")


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "import",
        parents=[shared],
        description="Build an index from the files of another program: documents, entities, relations and "
        "reports of communities are reused, and no LLM is called.",
        examples=(
            "ketrag import lightrag rag_storage -i notes",
            "ketrag import graphrag graphrag-root/output -i notes",
            "ketrag import lightrag rag_storage -i notes --embedder native:all-MiniLM-L6-v2",
        ),
    )
    parser.add_argument("format", choices=FORMATS, help="program that wrote the files")
    parser.add_argument("folder", metavar="FOLDER", help="output folder or working directory of the program")
    parser.add_argument("--replace", action="store_true", help="replace an existing index")
    options.topic(
        parser,
        "what to build",
        "build",
        shown=("modes", "embedder", "chunk_tokens", "language"),
        but=("llm", "core_ratio"),
    )
    options.model(parser)
    parser.set_defaults(run=run, go_on="nothing was written: run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    path, _ = options.index_path(args)
    from ketrag_fast.interchange.importing import import_index

    found = import_index(
        args.format,
        Path(args.folder),
        path,
        settings=options.build_settings_of(args),
        replace=args.replace,
        progress=options.progress(args),
    )
    args.code = output.PARTIAL if found.skipped else 0
    if args.json:
        output.write_json(found.to_json())
    else:
        reports = f"{found.reports:,} reports of communities; " if found.reports else ""
        output.write(
            f"{inline(str(path))}: {found.documents:,} documents, {found.entities_taken:,} of "
            f"{found.entities:,} entities and {found.relations_taken:,} of {found.relations:,} relations; "
            f"{reports}the extraction is in {inline(found.recording)}"
        )
    if not args.quiet:
        _list("not taken", found.skipped)
        _list("note", found.notes)
    return int(args.code)


def _list(what: str, rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        named = [name for name in row["examples"] if str(name) not in row["what"].split()]
        examples = f" ({inline(', '.join(named))})" if named else ""
        times = f"{row['count']:,} x " if named or row["count"] > 1 else ""
        output.say(f"  {what}: {times}{row['what']}{examples}")


def declare_recording(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "recording",
        parents=[shared],
        description="Convert the extraction of another tool into a recording for `ketrag index --llm "
        "replay:FILE`.",
        examples=(
            "ketrag recording from-graphrag graphrag-root --output extraction.jsonl",
            "ketrag index docs/ --llm replay:extraction.jsonl",
            "ketrag recording from-graphrag graphrag-root --output extraction.jsonl --replace",
        ),
    )
    parser.add_argument(
        "action",
        choices=("from-graphrag",),
        help="what to convert: the tables of GraphRAG (*.parquet)",
    )
    parser.add_argument("folder", metavar="FOLDER", help="root or output folder of graphrag")
    parser.add_argument("--output", metavar="FILE", required=True, help="recording to write (.jsonl)")
    parser.add_argument("--replace", action="store_true", help="overwrite an existing file")
    parser.set_defaults(run=_run_recording, go_on="run the same command again")


def _run_recording(args: argparse.Namespace) -> int:
    """Run the command."""
    from ketrag_fast.models.extraction.graphrag import record_graphrag

    found = record_graphrag(Path(args.folder), Path(args.output), replace=args.replace)
    if args.json:
        output.write_json({**found.to_json(), "file": args.output})
    else:
        output.write(
            f"{args.output}: {found.passages:,} passages of graphrag's tables, {found.entities:,} entities, "
            f"{found.relations:,} relations ({found.dropped:,} records dropped)"
        )
    return 0
