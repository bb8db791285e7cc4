"""Citations in a separate table: `citations.tsv` next to the `corpus.jsonl` of a data set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import DocumentError
from ketrag_fast.readers.protocol import Item, SourceFile, is_inside
from ketrag_fast.types import Document, Failure

NAME: Final = "citations.tsv"
LARGEST: Final = 1_000_000_000
"""Maximum size of the table in bytes."""
CORPUS: Final = "corpus.jsonl"
_CITING: Final = ("citing", "a", "from", "source", "citing-id", "citing_id")
_CITED: Final = ("cited", "b", "to", "target", "cited-id", "cited_id")


def table_of(file: SourceFile) -> Path | None:
    """Return the path that the table of a file has; None for a file that is not a corpus."""
    is_corpus = file.path.name == CORPUS and file.data is None
    return file.path.with_name(NAME) if is_corpus else None


def with_citations(file: SourceFile, items: Iterator[Item]) -> Iterator[Item]:
    """Yield the documents of a corpus with the ids they cite, from the table, in `cites` of the metadata.

    Malformed lines of the table become failures; the documents are kept.
    """
    path = table_of(file)
    if path is None or not os.path.lexists(path):
        yield from items
        return
    table = SourceFile(path, file.id.removesuffix(CORPUS) + NAME, file.fallback_encoding)
    if not file.follow_links and not is_inside(path, path.parent):
        yield table.failure("symbolic link to a file outside its folder; --follow-links follows it")
        yield from items
        return
    cites, failures = _read_table(table)
    yield from failures
    for item in items:
        more = cites.get(item.id) if isinstance(item, Document) else None
        if isinstance(item, Failure) or more is None:
            yield item
        else:
            yield Document(item.id, item.text, item.title, _merge_metadata(dict(item.metadata), more))


def _merge_metadata(metadata: dict[str, Any], more: list[str]) -> dict[str, Any]:
    given = metadata.get("cites")
    before = list(given) if isinstance(given, (list, tuple)) else [] if given in (None, "") else [given]
    metadata["cites"] = [*before, *more]
    return metadata


def _read_table(file: SourceFile) -> tuple[dict[str, list[str]], list[Failure]]:
    """Return the ids that each document cites, in table order: two tab-separated ids per line.

    The first cites the second, unless the header is `cited` and `citing`.
    """
    cites: dict[str, list[str]] = {}
    failures: list[Failure] = []
    try:
        lines = file.text(read_regular(file.path, LARGEST)).splitlines()
    except (DocumentError, OSError) as error:
        return {}, [file.failure(f"cannot be read: {error}")]
    turned = False
    for number, line in enumerate(lines, 1):
        fields = [field.strip() for field in line.split("\t")]
        if not any(fields):
            continue
        if number == 1 and len(fields) == 2 and {f.lower() for f in fields} <= {*_CITING, *_CITED}:
            turned = fields[0].lower() in _CITED
            continue
        if len(fields) != 2 or not all(fields):
            failures.append(file.failure(f"line {number}: expected two tab-separated ids", number))
            continue
        citing, cited = reversed(fields) if turned else fields
        cites.setdefault(citing, []).append(cited)
    return cites, failures
