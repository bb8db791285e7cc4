"""Read a working directory of LightRAG (HKUDS, 1.x): its documents, chunks and graph."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.safe_xml import Handler, parse
from ketrag_fast.errors import DocumentError
from ketrag_fast.interchange.extracted import Extracted
from ketrag_fast.types import Document

DOCUMENTS: Final = "kv_store_full_docs.json"
CHUNKS: Final = "kv_store_text_chunks.json"
GRAPH: Final = "graph_chunk_entity_relation.graphml"
SEPARATOR: Final = "<SEP>"
_NO_PATH: Final = frozenset({"", "unknown_source", "no-file-path"})
_PIECE: Final = 1 << 20


def read_lightrag(folder: Path) -> Extracted:
    """Read a working directory or its only workspace.

    Raises DocumentError if a file is missing, damaged, or not LightRAG's.
    """
    place = _workspace(folder)
    found = Extracted()
    documents = _read_documents(place / DOCUMENTS, found)
    _read_chunks(place / CHUNKS, found, documents)
    graph = _GraphHandler()
    parse(_pieces(place / GRAPH), graph, str(place / GRAPH))
    for name, data in graph.nodes:
        told, ids = _split(data.get("description")), _split(data.get("source_id"))
        found.add_entity(data.get("entity_id") or name, data.get("entity_type", ""), told, ids)
    for source, target, data in graph.edges:
        if data.get("keywords"):
            found.notes.add("keywords of relations are not kept", data["keywords"])
        told, ids = _split(data.get("description")), _split(data.get("source_id"))
        found.add_relation(source, target, told, _weight(data.get("weight")), ids)
    return found


def _workspace(folder: Path) -> Path:
    """Return the folder with the graph: this one, or the only one below it."""
    if not folder.is_dir():
        raise DocumentError(f"{folder} is not a folder", hint="give the working directory of LightRAG")
    places = [folder] if (folder / GRAPH).is_file() else []
    places = places or sorted(path.parent for path in folder.glob(f"*/{GRAPH}"))
    if len(places) != 1:
        names = ", ".join(path.name for path in places[:5])
        raise DocumentError(
            f"{folder} has {len(places)} workspaces: {names}" if places else f"{folder} has no {GRAPH}",
            hint="give the folder of one workspace" if places else "give the working directory of LightRAG",
        )
    return places[0]


def _read_documents(path: Path, found: Extracted) -> dict[str, int]:
    numbers = {}
    for name, row in _rows(path):
        text = row.get("content")
        if not isinstance(text, str) or not text.strip():
            found.skipped.add("documents without a text", name)
            continue
        origin = row.get("file_path")
        title = origin if isinstance(origin, str) and origin not in _NO_PATH else ""
        numbers[name] = len(found.documents)
        found.documents.append(Document(name, text, title, {"file_path": title} if title else {}))
    return numbers


def _read_chunks(path: Path, found: Extracted, documents: Mapping[str, int]) -> None:
    """Add the chunks, in the order of their documents."""
    rows = []
    for name, row in _rows(path):
        text, document = row.get("content"), row.get("full_doc_id")
        if not isinstance(text, str) or not text.strip():
            found.skipped.add("chunks without a text", name)
        elif not isinstance(document, str) or document not in documents:
            found.skipped.add("chunks of documents that do not exist", name)
        else:
            order = row.get("chunk_order_index")
            rows.append((documents[document], order if isinstance(order, int) else 0, name, text))
    for number, _, name, text in sorted(rows):
        found.add_passage(name, number, text)


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the entries of a key-value file."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise DocumentError(
            f"cannot read {path}: {error.strerror}",
            hint=f"{DOCUMENTS}, {CHUNKS} and {GRAPH} must be in one folder",
        ) from error
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{path} is not JSON: {error!s:.200}", hint="copy the file again") from error
    if not isinstance(data, dict):
        raise DocumentError(f"{path} holds a {type(data).__name__}, but LightRAG's files hold an object")
    for name, row in data.items():
        if not isinstance(row, dict):
            raise DocumentError(f"{path}: the entry {name!r:.100} is not an object")
        yield name, row


def _pieces(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece
    except OSError as error:
        raise DocumentError(f"cannot read {path}: {error.strerror}") from error


def _split(value: str | None) -> tuple[str, ...]:
    """Return the values of a field, each once."""
    if not value:
        return ()
    if SEPARATOR not in value:  # most fields
        only = value.strip()
        return (only,) if only else ()
    parts = (part.strip() for part in value.split(SEPARATOR))
    return tuple(dict.fromkeys(part for part in parts if part))


def _weight(value: str | None) -> float:
    try:
        return float(value or 1.0)
    except ValueError:
        return 1.0


class _GraphHandler(Handler):
    """XML handler that collects nodes and edges with their attributes by name."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, dict[str, str]]] = []
        self.edges: list[tuple[str, str, dict[str, str]]] = []
        self._names: dict[str, str] = {}
        self._data: dict[str, str] | None = None
        self._key: str | None = None
        self._text: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Begin an element."""
        if tag == "key":
            self._names[attributes.get("id", "")] = attributes.get("attr.name", "")
        elif tag == "node":
            self._data = {}
            self.nodes.append((attributes.get("id", ""), self._data))
        elif tag == "edge":
            self._data = {}
            self.edges.append((attributes.get("source", ""), attributes.get("target", ""), self._data))
        elif tag == "data":
            self._key = self._names.get(attributes.get("key", ""))
            self._text = []

    def end(self, tag: str) -> None:
        """End an element."""
        if tag == "data":
            if self._data is not None and self._key:
                self._data[self._key] = "".join(self._text)
            self._key = None
        elif tag in ("node", "edge"):
            self._data = None

    def text(self, text: str) -> None:
        """Store the text of a data element."""
        if self._key is not None:
            self._text.append(text)
