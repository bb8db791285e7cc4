"""Convert the results of GraphRAG to a recording, so that LLM calls are not paid for twice.

Its tables `entities`, `relationships` and `text_units` (with their names from 0.3 to 3) give merged records:
the weight of a relation is divided evenly among its text units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import BackendError
from ketrag_fast.models.extraction import records as clean
from ketrag_fast.models.extraction.recording import RecordingWriter
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.models.optional_imports import import_quietly

_TABLES: Final = {
    "entities": ("entities", "create_final_entities"),
    "relationships": ("relationships", "create_final_relationships"),
    "text_units": ("text_units", "create_final_text_units", "create_base_text_units"),
}


@dataclass(frozen=True, slots=True)
class Imported:
    """The counts of a conversion; `dropped` are invalid records."""

    passages: int
    entities: int = 0
    relations: int = 0
    dropped: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the fields that the command prints."""
        return {"schema": "ketrag/recorded/1", **asdict(self)}


def record_graphrag(folder: Path, target: Path, *, replace: bool = False) -> Imported:
    """Write the recording `target` from the tables of GraphRAG in a folder.

    Raises BackendMissing (no pyarrow), BackendError (no tables), ConfigError (the target exists),
    StorageFull, ReadOnly.
    """
    if not folder.is_dir():
        raise BackendError(f"no such folder: {folder}", hint="give the root or output folder of GraphRAG")
    tables = tables_below(folder)
    passages = {} if tables is None else of_tables(*(_rows(tables[name]) for name in _TABLES))
    if not passages:
        raise BackendError(
            f"{folder} has no tables of GraphRAG",
            hint="give the folder with entities.parquet, relationships.parquet and text_units.parquet",
        )
    with RecordingWriter(target, {"origin": "graphrag tables"}, replace=replace) as writer:
        for text, extraction in passages.items():
            writer.write_text(text, extraction)
    every = passages.values()
    return Imported(
        len(passages),
        sum(len(extraction.entities) for extraction in every),
        sum(len(extraction.relations) for extraction in every),
        sum(extraction.dropped for extraction in every),
    )


def of_tables(
    entities: Sequence[Mapping[str, Any]],
    relationships: Sequence[Mapping[str, Any]],
    text_units: Sequence[Mapping[str, Any]],
) -> dict[str, Extraction]:
    """Return the entities and relations of each text unit, by its text."""
    texts = {str(row.get("id")): _text(row) for row in text_units}
    named: dict[str, list[EntityRecord]] = {unit: [] for unit in texts}
    related: dict[str, list[RelationRecord]] = {unit: [] for unit in texts}
    dropped = dict.fromkeys(texts, 0)
    for row in entities:
        name = row.get("title") or row.get("name")
        entity = clean.entity(name, row.get("type"), row.get("description"), escaped=False)
        for unit in _units(row, texts):
            if entity is None:
                dropped[unit] += 1
            else:
                named[unit].append(entity)
    for row in relationships:
        units = _units(row, texts)
        weight = row.get("weight", 1.0)
        share = weight / len(units) if units and isinstance(weight, (int, float)) else weight
        relation = clean.relation(
            row.get("source"), row.get("target"), row.get("description"), share, escaped=False
        )
        for unit in units:
            if relation is None:
                dropped[unit] += 1
            else:
                related[unit].append(relation)
    return {
        text: Extraction(tuple(named[unit]), tuple(related[unit]), dropped[unit])
        for unit, text in texts.items()
        if text.strip()
    }


def _text(row: Mapping[str, Any]) -> str:
    value = row.get("text") or row.get("chunk")
    return value if isinstance(value, str) else ""


def _units(row: Mapping[str, Any], texts: Mapping[str, str]) -> list[str]:
    value = row.get("text_unit_ids")
    names = value if isinstance(value, (list, tuple)) else str(value or "").split(",")
    return [name for name in dict.fromkeys(str(name).strip() for name in names) if name in texts]


def tables_below(folder: Path) -> dict[str, Path] | None:
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


def _rows(path: Path) -> list[dict[str, Any]]:
    arrow, parquet = import_quietly("pyarrow"), import_quietly("pyarrow.parquet")
    wanted = {"id", "title", "name", "type", "description", "source", "target", "weight", "text", "chunk"}
    try:
        with parquet.ParquetFile(path) as file:
            columns = [name for name in file.schema_arrow.names if name in wanted | {"text_unit_ids"}]
            rows: list[dict[str, Any]] = file.read(columns=columns).to_pylist()
    except (arrow.ArrowException, OSError) as error:
        raise BackendError(f"{path} cannot be read: {error}") from error
    return rows
