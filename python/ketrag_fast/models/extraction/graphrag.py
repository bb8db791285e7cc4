"""Convert the results of GraphRAG to a recording, so that LLM calls are not paid for twice.

Its call cache gives the raw replies per passage (`cache/**`, files with both prompt and reply: GraphRAG up to
1.x, and later ones whose entries keep the prompt). Its tables `entities`, `relationships` and `text_units`
(with their names from 0.3 to 3) give merged records: the weight of a relation is divided evenly among its
text units.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import BackendError
from ketrag_fast.models.extraction import records as clean
from ketrag_fast.models.extraction.parse import is_delimited_reply, join_extractions, parse_reply
from ketrag_fast.models.extraction.recording import RecordingWriter
from ketrag_fast.models.extraction.records import EntityRecord, Extraction, RelationRecord
from ketrag_fast.models.optional_imports import import_quietly

MAX_FILE: Final = 16_000_000
"""Maximum size of a cache file in bytes."""
_MOST_FILES: Final = 1_000_000
_TABLES: Final = {
    "entities": ("entities", "create_final_entities"),
    "relationships": ("relationships", "create_final_relationships"),
    "text_units": ("text_units", "create_final_text_units", "create_base_text_units"),
}
# The passage is last in the prompt, after "Text:", before a line of number signs and "Output:".
_TEXT: Final = re.compile(r"\ntext:", re.IGNORECASE)
_OUTPUT: Final = "output:"
_LEAST_SIGNS: Final = 3
_LAST_PART: Final = re.compile(r"real data", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of a conversion: passages, their origin, and counts of skipped items."""

    origin: str
    passages: int
    entities: int = 0
    relations: int = 0
    skipped: int = 0
    dropped: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the fields that the command prints."""
        return {"schema": "ketrag/recorded/1", **asdict(self)}


def record_graphrag(folder: Path, target: Path, *, replace: bool = False) -> Imported:
    """Write the recording `target` from a GraphRAG folder: from its tables if it has any, else its cache.

    Raises BackendMissing (tables without pyarrow), BackendError (neither exists), ConfigError (the target
    exists), StorageFull, ReadOnly.
    """
    if not folder.is_dir():
        raise BackendError(
            f"no such folder: {folder}", hint="give the root, output or cache folder of GraphRAG"
        )
    tables = tables_below(folder)
    skipped = 0
    if tables is not None:
        origin, passages = "tables", of_tables(*(_rows(tables[name]) for name in _TABLES))
    else:
        passages, skipped = of_cache(folder)
        origin = "cache"
    if not passages:
        raise BackendError(
            f"{folder} has neither GraphRAG tables nor cached replies with their prompts",
            hint="give the folder with entities.parquet, relationships.parquet and text_units.parquet",
        )
    entities = relations = dropped = 0
    with RecordingWriter(target, {"origin": f"graphrag {origin}"}, replace=replace) as writer:
        for text, extraction in passages.items():
            writer.write_text(text, extraction)
            entities += len(extraction.entities)
            relations += len(extraction.relations)
            dropped += extraction.dropped
    return Imported(origin, len(passages), entities, relations, skipped, dropped)


# ---------------------------------------------------------------- tables


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


# ---------------------------------------------------------------- cache


def of_cache(folder: Path) -> tuple[dict[str, Extraction], int]:
    """Return the records by passage, in file order, and the number of replies without a passage."""
    parts: dict[str, list[Extraction]] = {}
    skipped = 0
    for path in _files(folder):
        entry = _entry(path)
        if entry is None:
            continue
        reply = "\n".join(text for text in _strings(entry["result"]) if is_delimited_reply(text))
        if not reply:
            continue
        passage = next((text for text in map(passage_of, _strings(entry["input"])) if text), None)
        if passage is None:
            skipped += 1
        else:
            parts.setdefault(passage, []).append(parse_reply(reply, "", grounded=False).extraction)
    return {passage: join_extractions(found) for passage, found in parts.items()}, skipped


def passage_of(prompt: str) -> str | None:
    """Return the passage in an extraction prompt of GraphRAG, default or tuned, or None."""
    starts = [found.start() for found in _LAST_PART.finditer(prompt)]
    begin = _TEXT.search(prompt, starts[-1]) if starts else None
    body = prompt.rstrip()
    if begin is None or body[-len(_OUTPUT) :].lower() != _OUTPUT:
        return None
    body = body[: -len(_OUTPUT)]
    ruled = body.rstrip()
    if not body[len(ruled) :].lstrip(" \t").startswith("\n"):
        return None
    above = ruled.rstrip("#")
    if len(ruled) - len(above) < _LEAST_SIGNS or not above.endswith("\n") or len(above) <= begin.end():
        return None
    return above[begin.end() :].strip() or None


def _files(folder: Path) -> Iterator[Path]:
    for number, path in enumerate(sorted(folder.rglob("*"))):
        if number >= _MOST_FILES:
            return
        if path.suffix in ("", ".json") and path.is_file() and path.stat().st_size <= MAX_FILE:
            yield path


def _entry(path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) and {"result", "input"} <= data.keys() else None


def _strings(value: Any, depth: int = 8) -> Iterator[str]:
    """Yield every string inside a value."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner, depth - 1)
    elif depth and isinstance(value, list):
        for inner in value:
            yield from _strings(inner, depth - 1)
