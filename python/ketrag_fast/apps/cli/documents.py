"""`ketrag documents`, `read`, `collections` and `annotate`: list documents and indexes, and describe them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import FILTER, Command, argument, option, settings, switch
from ketrag_fast.apps.terminal import display_path, inline
from ketrag_fast.errors import ConfigError, DocumentError
from ketrag_fast.records import asdict
from ketrag_fast.types import Document, Failure
from ketrag_fast.types.documents import HIDDEN, NOTES, Listed
from ketrag_fast.types.locations import describe_location, location_of, sort_locators
from ketrag_fast.types.wording import counted

_DIVIDING: Final = ("part", "sheet", "slide", "page", "heading", "symbol")
"""Kinds of locations printed between the text; boxes, lines and paths are only in the JSON."""


class Documents(Command):
    """List the documents of an index: id, number of passages, language if it varies, title."""

    examples = (
        "ketrag documents",
        "ketrag documents polar --count 20",
        "ketrag documents --filter lang=en",
        "ketrag documents --outline",
    )
    containing: str | None = argument("TEXT", "list only documents with TEXT in their id or title")
    first: int = option("N", "position of the first document to list (default 0)", default=0)
    count: int = option("N", "maximum number of documents to list", default=1_000_000)
    problems: bool = switch("list the files and parts that were not read or left out, with the reasons")
    outline: bool = switch("print a map of a repository: folders, the most used files, and what they define")
    tokens: int = option("N", "with --outline: maximum size of the map (default 1000)", default=1_000)
    filter = settings("filter", about=f"list only documents whose metadata match, such as {FILTER}")
    allow = settings("allow")

    def run(self) -> int:
        """Print the documents."""
        if self.problems:
            return self._print_problems(options.one_path(self))
        if self.outline:
            return self._print_outline(options.one_path(self))
        paths = options.listed_paths(self)
        found, names, total = self._find(paths)
        if self.json:
            listed = [
                one.to_json() if name is None else {**one.to_json(), "index": name}
                for one, name in zip(found, names, strict=True)
            ]
            places = [str(path) for path in paths.values()]
            where = {"index": places[0]} if len(places) == 1 else {"indexes": places}
            output.write_json({"schema": "ketrag/documents/1", **where, "total": total, "documents": listed})
            return 0
        wide = min(max((len(inline(one.document)) for one in found), default=0), 60)
        several = any("language" in one.metadata for one in found)
        lines = []
        for one, name in zip(found, names, strict=True):
            language = f"{inline(str(one.metadata.get('language', ''))):<4}  " if several else ""
            about = f"{one.units:>4}  {language}{inline(one.title)}"
            index = "" if name is None else f"[{inline(name)}] "
            lines.append(f"{index}{inline(one.document):<{wide}}  {about}".rstrip())
        if lines:
            output.write("\n".join(lines))
        if not self.quiet and len(found) < total:
            output.say(f"{len(found):,} of {total:,} documents")
        return 0

    def _find(self, paths: dict[str | None, Path]) -> tuple[list[Listed], list[str | None], int]:
        """Return the documents, the name of the index of each, and the number of all documents."""
        from ketrag_fast.index import Index

        found: list[Listed] = []
        names: list[str | None] = []
        total = 0
        last = self.first + self.count
        for name, path in paths.items():
            with Index.open(path, settings=options.query_settings_of(self)) as index:
                inspect = index.inspect
                own = inspect.documents(0, last - len(found), self.containing or "", inspect.filter)
                total += inspect.document_count
            found += own
            names += [name] * len(own)
        return found[self.first :], names[self.first :], total

    def _print_outline(self, path: Path) -> int:
        """Print a map of the repository."""
        with options.open_index(self) as index:
            outline = index.inspect.outline(filter=index.inspect.filter)
        if self.json:
            data = {"schema": "ketrag/outline/1", "index": str(path), **outline.to_json()}
            output.write_json(data)
        else:
            output.write(outline.text(self.tokens, inline))
        return 0

    def _print_problems(self, path: Path) -> int:
        """Print each file and part that is missing in the index."""
        from ketrag_fast.index.statistics import problems

        found = problems(path)
        if self.json:
            listed = [one.to_json() for one in found]
            output.write_json({"schema": "ketrag/problems/1", "index": str(path), "problems": listed})
        elif found:
            output.write("\n".join(inline(f"{one.document}: {_reason(one)}") for one in found))
        elif not self.quiet:
            output.say("no problems: all files were read whole")
        return 0


def _reason(one: Failure) -> str:
    if one.code == "part":
        return f"read in part: {one.message}"
    return f"hidden: {one.message}" if one.code == HIDDEN else one.message


class Read(Command):
    """Preview how files are read: their text, divided by pages, slides and headings, with title and metadata.
    With --json also all locators."""

    examples = (
        "ketrag read report.pdf",
        "ketrag read page.html --json",
        "ketrag read site/ --exclude '*.log,build/'",
    )
    source: str = argument("FILE", "file, folder or glob")
    characters: int | None = option("N", "maximum characters to print of each document")
    reading = settings(
        "follow_links", "exclude", "gitignore", "ocr", "generated", "hidden", "fallback_encoding"
    )

    def run(self) -> int:
        """Print the documents that the files give."""
        options.refuse_standard_stream(self.source, "standard input")
        from ketrag_fast.index.building import read_sources

        failures: list[Failure] = []
        notes: list[Failure] = []
        documents: list[dict[str, Any]] = []
        count = 0
        for item in read_sources(self.source, options.build_settings_of(self)):
            if isinstance(item, Failure):
                (notes if item.code in NOTES else failures).append(item)
                continue
            count += 1
            if self.json:
                documents.append(_document_json(item, self.characters))
            else:
                output.write("\n".join(_document_lines(item, self.characters)) + "\n")
        code = output.PARTIAL if failures else 0
        if self.json:
            rows = [failure.to_json() for failure in failures]
            noted = [note.to_json() for note in notes]
            output.write_json(
                {"schema": "ketrag/read/1", "documents": documents, "failures": rows, "notes": noted}, code
            )
        else:
            output.report_failures(failures)
            for note in notes:
                output.warn(f"{note.document}: {note.message}")
        if not count and not failures and not notes:
            raise DocumentError(
                f"{self.source}: no file of a known format",
                hint="docs/reference/documents.md lists the formats",
            )
        return code


def _document_json(document: Document, most: int | None) -> dict[str, Any]:
    return {
        "id": document.id,
        "title": document.title,
        "metadata": dict(document.metadata),
        "characters": len(document.text),
        "text": document.text[:most],
        "locators": [asdict(one) for one in sort_locators(document.locators)],
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


class Collections(Command):
    """List the indexes in the user's data folder: name, size, age and sources. `ketrag index SOURCE... --name
    NAME` makes one, -c NAME uses it from any folder."""

    examples = ("ketrag collections", "ketrag collections --json")

    def run(self) -> int:
        """Print the collections."""
        from ketrag_fast.index.collections import age_text, collections, collections_folder

        found = collections()
        if self.json:
            rows = [one.to_json() for one in found]
            output.write_json(
                {"schema": "ketrag/collections/1", "folder": str(collections_folder()), "collections": rows}
            )
            return 0
        lines = []
        wide = max((len(one.name) for one in found), default=0)
        for one in found:
            count = "unreadable" if one.documents is None else counted(one.documents, "document")
            about = f"{count:>16}  {output.size_text(one.size):>9}  {age_text(one.built):<14}"
            sources = ", ".join(inline(display_path(source)) for source in one.sources)
            lines.append(f"{one.name:<{wide}}  {about}  {sources}".rstrip())
            if one.description:
                lines.append(f"{'':<{wide}}  {inline(one.description)}")
        if lines:
            output.write("\n".join(lines))
        elif not self.quiet:
            output.say("no collections: `ketrag index SOURCE... --name NAME` makes one")
        return 0


class Annotate(Command):
    """Store a sentence about a folder of the sources, or about the whole index. Results show it, and
    assistants choose by it. Without arguments, print the descriptions."""

    examples = (
        'ketrag annotate notes/work "client projects, by year"',
        'ketrag annotate "all my notes" -c notes',
        "ketrag annotate notes/work --remove",
    )
    words: tuple[str, ...] = argument(
        "[FOLDER] TEXT", "folder (default: the whole index), and what is in it", nargs="*"
    )
    remove: bool = switch("remove the description")

    def run(self) -> int:
        """Change a description, and print all of them."""
        words = self.words
        if len(words) > (1 if self.remove else 2):
            raise ConfigError(
                "a description is one text",
                hint='put it in quotes: ketrag annotate notes/work "client projects"',
            )
        path = options.one_path(self)
        from ketrag_fast.index.annotations import annotate, descriptions_of

        if self.remove:
            annotate(path, None, words[0] if words else None)
        elif words:
            annotate(path, words[-1], words[0] if len(words) == 2 else None)
        found = descriptions_of(path)
        if self.json:
            output.write_json({"schema": "ketrag/descriptions/1", "index": str(path), "descriptions": found})
        elif found and not self.quiet:
            rows = sorted(found.items())
            output.write(
                "\n".join(
                    f"{inline(display_path(name)) if name else '(all)'}  {inline(text)}"
                    for name, text in rows
                )
            )
        return 0
