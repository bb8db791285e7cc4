"""`ketrag read FILE`: preview how a file is read. Start here if an answer looks odd."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.terminal_text import inline
from ketrag_fast.errors import DocumentError
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import NOTES
from ketrag_fast.types.locations import describe_location, location_of, sort_locators

_DIVIDING: Final = ("part", "sheet", "slide", "page", "heading", "symbol")
"""Locators that divide the printed text; boxes, lines and paths are in the JSON only."""


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "read",
        parents=[shared],
        description="Preview how files are read: their text, divided by pages, slides and headings, with "
        "title and metadata. With --json also all locators.",
        examples=(
            "ketrag read report.pdf",
            "ketrag read page.html --json",
            "ketrag read site/ --exclude '*.log,build/'",
        ),
    )
    parser.add_argument("source", metavar="FILE", help="file, folder or glob")
    parser.add_argument(
        "--characters", type=int, metavar="N", help="maximum characters to print of each document"
    )
    options.setting(
        parser, "follow_links", "exclude", "gitignore", "ocr", "generated", "hidden", "fallback_encoding"
    )
    parser.set_defaults(run=run, go_on="run the same command again")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    options.refuse_standard_stream(args.source, "standard input")
    from ketrag_fast.index.building import read_sources

    failures: list[Failure] = []
    notes: list[Failure] = []
    documents: list[dict[str, Any]] = []
    count = 0
    for item in read_sources(args.source, options.build_settings_of(args)):
        if isinstance(item, Failure):
            (notes if item.code in NOTES else failures).append(item)
            continue
        count += 1
        if args.json:
            documents.append(_document_json(item, args.characters))
        else:
            output.write("\n".join(_document_lines(item, args.characters)) + "\n")
    if args.json:
        rows = [failure.to_json() for failure in failures]
        noted = [note.to_json() for note in notes]
        output.write_json(
            {"schema": "ketrag/read/1", "documents": documents, "failures": rows, "notes": noted}
        )
    elif failures:
        output.report_failures(failures)
    for note in notes if not args.json else ():
        output.warn(f"{note.document}: {note.message}")
    if not count and not failures and not notes:
        raise DocumentError(
            f"{args.source}: no file of a known format", hint="docs/reference/documents.md lists the formats"
        )
    return output.PARTIAL if failures else 0


def _document_json(document: Document, most: int | None) -> dict[str, Any]:
    rows = [
        {"start": one.start, "end": one.end, "kind": one.kind, "value": one.value}
        for one in sort_locators(document.locators)
    ]
    return {
        "id": document.id,
        "title": document.title,
        "metadata": dict(document.metadata),
        "characters": len(document.text),
        "text": document.text[:most],
        "locators": rows,
    }


def _document_lines(document: Document, most: int | None) -> Iterator[str]:
    yield f"== {inline(document.id)}  ({len(document.text):,} characters)"
    if document.title:
        yield f"title: {inline(document.title)}"
    for name, value in document.metadata.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        yield f"{inline(name)}: {inline(shown)}"
    marks = [one for one in sort_locators(document.locators) if one.kind in _DIVIDING]
    places = sorted({0, *(one.start for one in marks), len(document.text)})
    end = len(document.text) if most is None else min(most, len(document.text))
    before = None
    for start, stop in pairwise(places):
        if start >= end:
            yield f"... and {len(document.text) - end:,} more characters"
            return
        near = [one for one in marks if one.start <= start < one.end]
        where = describe_location(location_of(near, start, start + 1))
        if where != before and (where or before is not None):
            yield f"-- {inline(where) or '(no heading)'}"
        before = where
        yield document.text[start : min(stop, end)].rstrip("\n")
