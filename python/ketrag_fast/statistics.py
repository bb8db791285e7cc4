"""What an index holds: sizes from its manifest, failures and replies from its tables.

One small array is read, the marks of titles among the sentences, and the records of hnswlib's graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ketrag_fast.pipeline.known import stored_failures, stored_readings
from ketrag_fast.storage.generation import Generation

_EDGES = {
    "knn": ("knn", "graph_indices", 2),
    "keyword_unit": ("words", "word_units_indices", 1),
    "unit_name": ("links", "unit_names_indices", 1),
    "unit_mention": ("links", "unit_mentions_indices", 1),
    "relation": ("skeleton", "relation_source", 1),
    "entity_unit": ("skeleton", "entity_units_indices", 1),
    "relation_unit": ("skeleton", "relation_units_indices", 1),
    "entity_mention": ("skeleton", "mention_entity", 1),
}


def statistics(generation: Generation, path: Path, modes: Sequence[str]) -> dict[str, Any]:
    """As `ketrag stats --json` prints it (85-interface)."""
    manifest = generation.manifest

    def length(stage: str, array: str) -> int:
        record = manifest.stages.get(stage)
        file = record.files.get(array) if record else None
        return file.shape[0] if file else 0

    failures = stored_failures(path)
    stages = {
        name: {"seconds": record.seconds, "bytes": record.bytes} for name, record in manifest.stages.items()
    }
    vectors = manifest.stages.get("vectors")
    unit_vectors = vectors.files.get("unit_vectors") if vectors else None
    return {
        "schema": "ketrag/stats/1",
        "path": str(path),
        "generation": manifest.generation,
        "created": manifest.created,
        "digest": manifest.digest,
        "counts": {
            "documents": manifest.documents.get("count", 0),
            "chunks": length("units", "chunk_document"),
            "subchunks": length("units", "unit_tokens"),
            "sentences": length("units", "sent_chunk") - int(_titles(generation)),
            "keywords": max(length("words", "vocabulary_offsets") - 1, 0),
            "core_chunks": length("core", "core"),
            "names": max(length("links", "names_offsets") - 1, 0),
            "subjects": max(length("links", "subjects_offsets") - 1, 0),
            "entities": length("skeleton", "entity_rank"),
            "relations": length("skeleton", "relation_source"),
        },
        "edges": {name: length(stage, array) // share for name, (stage, array, share) in _EDGES.items()},
        "bytes": sum(stage["bytes"] for stage in stages.values()),
        "stages": stages,
        "failures": [failure.to_json() for failure in failures],
        "backends": {
            "embedder": manifest.settings.get("embedder"),
            "dimension": unit_vectors.shape[1] if unit_vectors else None,
            "llm": manifest.models.get("llm", {}).get("spec", "none"),
        },
        "search": {
            "units": _search(generation, "unit_search"),
            "keywords": _search(generation, "keyword_search"),
            "entities": _search(generation, "entity_search"),
        },
        "extraction": _extraction(generation, path, length),
        "models": {
            name: {key: value for key, value in identity.items() if isinstance(value, (str, int, float))}
            for name, identity in manifest.models.items()
        },
        "modes": list(modes),
        "settings": dict(manifest.settings),
    }


def _search(generation: Generation, stage: str) -> dict[str, Any]:
    """How nearest vectors are found: the kind, and for a graph what it is and the recall that it reached."""
    from ketrag_fast.backends.ann.stored import record_of

    record = record_of(generation.stages.get(stage))
    return {"kind": "exact", "recall": 1.0} if record is None else {"kind": "hnsw", **record.to_json()}


def _extraction(
    generation: Generation, path: Path, length: Callable[[str, str], int]
) -> dict[str, Any] | None:
    """The chunks of this generation's skeleton, and what its reader has spent in this index so far."""
    if "replies" not in generation.stages:
        return None
    about = generation.manifest.models.get("llm", {})
    spent = stored_readings(path, str(about.get("reader", "")))
    return {
        "fingerprint": about.get("fingerprint"),
        "read": length("replies", "reply_chunk"),
        "failed": length("replies", "reply_failed"),
        "pending": length("replies", "reply_pending"),
        "entity_records": max(length("replies", "entity_name_offsets") - 1, 0),
        "relation_records": length("replies", "relation_strength"),
        **spent,
    }


def _titles(generation: Generation) -> int:
    units = generation.stages.get("units")
    return int(units["sent_title"].sum()) if units is not None else 0
