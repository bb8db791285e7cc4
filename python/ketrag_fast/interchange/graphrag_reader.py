"""Read the output tables of Microsoft GraphRAG: layouts 1 (`create_final_*`), 2 and 3."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import DocumentError
from ketrag_fast.interchange.communities import NO_MODEL
from ketrag_fast.interchange.extracted import Extracted, ExtractedReport
from ketrag_fast.interchange.graphrag_tables import OWN_ID
from ketrag_fast.models.optional_imports import import_quietly
from ketrag_fast.types import Document

_TABLES: Final = {
    "entities": ("entities", "create_final_entities"),
    "relationships": ("relationships", "create_final_relationships"),
    "text_units": ("text_units", "create_final_text_units", "create_base_text_units"),
}
_DOCUMENT_TABLES: Final = ("documents", "create_final_documents", "create_base_documents")
_BATCH: Final = 4096

Row = Mapping[str, Any]


def read_graphrag(folder: Path) -> Extracted:
    """Read the nearest and newest tables in an output folder or below it.

    Raises BackendMissing without pyarrow, DocumentError if a table is missing or damaged, or lacks columns.
    """
    import_quietly("pyarrow.parquet")
    if not folder.is_dir():
        raise DocumentError(f"{folder} is not a folder", hint="give the root or output folder of GraphRAG")
    tables = _tables_below(folder)
    if tables is None:
        raise DocumentError(
            f"{folder} has no tables of GraphRAG",
            hint="give the folder with entities.parquet, relationships.parquet and text_units.parquet",
        )
    found = Extracted()
    place = tables["entities"].parent
    documents = _first(place, _DOCUMENT_TABLES)
    numbers = _read_documents(documents, found) if documents is not None else {}
    _read_text_units(tables["text_units"], found, numbers)
    _read_graph(tables, found)
    _read_reports(place, found)
    if _table(place, "covariates") is not None:
        found.notes.add("the table covariates is not read", "covariates")
    return found


def _tables_below(folder: Path) -> dict[str, Path] | None:
    """Return the three tables of the folder, or else of the nearest and newest folder below it."""
    places = {path.parent for path in folder.rglob("*entities.parquet")}
    for place in sorted(places, key=lambda path: (len(path.parts), -path.stat().st_mtime, path)):
        found = {
            name: next((place / f"{n}.parquet" for n in names if (place / f"{n}.parquet").is_file()), None)
            for name, names in _TABLES.items()
        }
        whole = {name: path for name, path in found.items() if path is not None}
        if len(whole) == len(_TABLES):
            return whole
    return None


def _table(place: Path, name: str) -> Path | None:
    return _first(place, (name, f"create_final_{name}"))


def _first(place: Path, names: tuple[str, ...]) -> Path | None:
    paths = (place / f"{name}.parquet" for name in names)
    return next((path for path in paths if path.is_file()), None)


def _read_documents(path: Path, found: Extracted) -> dict[str, int]:
    """Add the documents. Their ids are their titles if these are unique, because the others are hashes."""
    rows = []
    for row in _rows(path, {"id"}, {"title", "text", "raw_content", "metadata", "raw_data"}):
        text = row.get("text") or row.get("raw_content")
        if not isinstance(text, str) or not text.strip():
            found.skipped.add("documents without a text", row.get("title") or row["id"])
            continue
        rows.append((str(row["id"]), _string(row.get("title")), text, _metadata(row)))
    titles = [title for _, title, _, _ in rows]
    unique = len(set(titles)) == len(titles) and all(titles)
    numbers: dict[str, int] = {}
    for name, title, text, about in rows:
        own = about.pop(OWN_ID, None)
        if isinstance(own, str) and own:
            document = Document(own, text, "" if title == own else title, about)
        elif unique:
            document = Document(title, text, title, {**about, "graphrag_id": name})
        else:
            document = Document(name, text, title, about)
        numbers[name] = len(found.documents)
        found.documents.append(document)
    return numbers


def _metadata(row: Row) -> dict[str, Any]:
    """Return the metadata of a document, which may be stored as JSON."""
    value = row.get("metadata") or row.get("raw_data")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    if not isinstance(value, dict):
        return {}
    return {str(name): item for name, item in value.items() if _is_plain(item)}


def _is_plain(value: Any) -> bool:
    """Return whether a filter can compare a value, or each value of a list."""
    values = value if isinstance(value, list) else [value]
    return all(isinstance(item, (str, int, float, bool)) for item in values)


def _read_text_units(path: Path, found: Extracted, numbers: dict[str, int]) -> None:
    """Add the text units; those without a known document become documents."""
    for row in _rows(path, {"id"}, {"text", "chunk", "document_id", "document_ids"}):
        text = row.get("text") or row.get("chunk")
        name = str(row["id"])
        if not isinstance(text, str) or not text.strip():
            found.skipped.add("text units without a text", name)
            continue
        owners = row.get("document_ids") or [row.get("document_id")]
        owner = next((numbers[str(one)] for one in owners if str(one) in numbers), None)
        if owner is None:
            found.notes.add("text units without a stored document became documents", name)
            owner = len(found.documents)
            found.documents.append(Document(name, text))
        found.add_passage(name, owner, text)


def _read_graph(tables: Mapping[str, Path], found: Extracted) -> None:
    more = {"title", "name", "type", "description", "text_unit_ids"}
    for row in _rows(tables["entities"], set(), more):
        name, kind = _string(row.get("title") or row.get("name")), _string(row.get("type"))
        found.add_entity(name, kind, _lines(row.get("description")), _ids(row))
    more = {"description", "weight", "text_unit_ids"}
    for row in _rows(tables["relationships"], {"source", "target"}, more):
        weight = row.get("weight")
        strength = float(weight) if isinstance(weight, (int, float)) else 1.0
        source, target, told = _string(row["source"]), _string(row["target"]), _lines(row.get("description"))
        found.add_relation(source, target, told, strength, _ids(row))


def _read_reports(place: Path, found: Extracted) -> None:
    """Add the reports that a model has written, each with the passages of its community."""
    reports, communities = _table(place, "community_reports"), _table(place, "communities")
    if reports is None:
        return
    of_community: dict[str, Row] = {}
    if communities is not None:
        for row in _rows(communities, set(), {"id", "community", "children", "text_unit_ids"}):
            of_community[_string(row.get("community", row.get("id")))] = row
    for row in _rows(reports, {"community"}, {"title", "summary", "rating_explanation"}):
        title, summary = (_string(row.get(name)).strip() for name in ("title", "summary"))
        if row.get("rating_explanation") in NO_MODEL:
            found.notes.add("extractive reports, which no model has written, are left out", title)
            continue
        if not summary:
            found.skipped.add("reports without a summary", title)
            continue
        community = of_community.get(_string(row["community"]))
        if community is None:
            found.skipped.add("reports without a community", title)
            continue
        passages = found.passages_of("reports", title, _ids(community))
        if passages:
            found.reports.append(ExtractedReport(title, summary, bool(community.get("children")), passages))


def _string(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _lines(value: Any) -> tuple[str, ...]:
    """Return the descriptions: one text, or a list that GraphRAG has not summarised."""
    parts = value if isinstance(value, (list, tuple)) else _string(value).split("\n")
    return tuple(dict.fromkeys(text for text in (_string(part).strip() for part in parts) if text))


def _ids(row: Row) -> list[str]:
    """Return the ids of text units: a list, or texts in which commas separate them."""
    value = row.get("text_unit_ids")
    texts = value if isinstance(value, (list, tuple)) else [value]
    return [name.strip() for text in texts for name in _string(text).split(",") if name.strip()]


def _rows(path: Path, needed: set[str], wanted: set[str]) -> Iterator[Row]:
    """Yield rows with some columns, a batch at a time."""
    arrow, parquet = import_quietly("pyarrow"), import_quietly("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            missing = sorted(needed - set(names))
            if missing:
                raise DocumentError(
                    f"{path} has no column {missing[0]!r}", hint="the layouts 1, 2 and 3 of GraphRAG are read"
                )
            columns = [name for name in names if name in needed | wanted]
            for batch in file.iter_batches(_BATCH, columns=columns):
                yield from batch.to_pylist()
    except (arrow.ArrowException, OSError) as error:
        raise DocumentError(f"{path} cannot be read: {error!s:.300}", hint="copy the file again") from error
