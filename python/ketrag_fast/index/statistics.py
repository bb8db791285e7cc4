"""Statistics of an index: sizes from its manifest, failures and replies from its tables.

Only small arrays are read: title marks of sentences, languages, and the records of hnswlib's graphs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import KetragError
from ketrag_fast.models.endpoint_trust import Trust, endpoints_of
from ketrag_fast.storage import read_only as reading
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.disk_usage import footprint
from ketrag_fast.storage.generation import Generation
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.manifest import Manifest
from ketrag_fast.systems.planning import embedding_stages, sizes_of
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared.rows import codes_of_rows, documents_of
from ketrag_fast.systems.spec.arrays import Sizes
from ketrag_fast.systems.spec.stage import resolve
from ketrag_fast.systems.spec.system import System
from ketrag_fast.types import Failure


def statistics(
    generation: Generation, path: Path, modes: Sequence[str], trust: Trust | None = None
) -> dict[str, Any]:
    """Return the statistics that `ketrag stats --json` prints."""
    manifest = generation.manifest
    sizes = sizes_of(manifest.stages)
    found = registry()
    stages = {
        name: {"seconds": record.seconds, "bytes": record.bytes} for name, record in manifest.stages.items()
    }
    return {
        "schema": "ketrag/stats/1",
        "path": str(path),
        "generation": manifest.generation,
        "created": manifest.created,
        "digest": manifest.digest,
        "content_digest": documents_digest(manifest),
        "modes": list(modes),
        "counts": {
            "documents": manifest.documents.get("count", 0),
            **({"passages without a vector": manifest.unembedded} if manifest.unembedded else {}),
            "sentences": sizes.get("text_sentences", 0) - _titles(generation),
            **{label: sizes.get(size, 0) for stage in found.stages for label, size in stage.counts.items()},
        },
        "edges": {
            label: _values(generation, stage.name, array) // each
            for stage in found.stages
            for label, (array, each) in stage.edges.items()
        },
        **_languages(generation),
        "bytes": sum(stage["bytes"] for stage in stages.values()),
        "stages": stages,
        "disk": _disk(path),
        "failures": [failure.to_json() for failure in reading.failures(Layout(path))],
        "left_out": dict(sorted(Counter(one.code for one in reading.left_out(Layout(path))).items())),
        "backends": {
            "embedder": manifest.settings.get("embedder"),
            "dimension": sizes.get("dimension"),
            "llm": manifest.models.get("llm", {}).get("spec", "none"),
        },
        "endpoints": [
            endpoint.to_json()
            for endpoint in endpoints_of(
                manifest.settings, Trust.of(Layout(path), Settings()) if trust is None else trust
            )
        ],
        "search": {
            stage.proposes[0]: _search(generation, stage.name) for stage in found.stages if stage.proposes
        },
        "extraction": _extraction(generation, path, sizes),
        "systems": {
            system.name: rows
            for system in found.systems
            if (rows := _describe_system(system, sizes, generation))
        },
        "models": {
            name: {key: value for key, value in identity.items() if isinstance(value, (str, int, float))}
            for name, identity in manifest.models.items()
        },
        "settings": dict(manifest.settings),
    }


def problems(path: Path) -> list[Failure]:
    """Return the documents and parts of an index that failed or were left out, ordered by name."""
    found = [*reading.failures(Layout(path)), *reading.left_out(Layout(path))]
    return sorted(found, key=lambda one: (one.document, one.code, one.message))


def documents_digest(manifest: Manifest) -> str:
    """Return a hash of the documents, settings and models, which does not depend on the history of changes.

    The fingerprint of a stage covers the documents, the settings and versions that its result depends on, and
    the model.
    """
    return text_digest(sorted(f"{name}={stage.fingerprint}" for name, stage in manifest.stages.items()))


def _languages(generation: Generation) -> dict[str, dict[str, int]]:
    """Return the number of documents by main language; empty if all are English."""
    codes = codes_of_rows(generation.stages)
    if codes is None:
        return {}
    sections: dict[int, Counter[str]] = defaultdict(Counter)
    for document, code in zip(documents_of(generation.stages["units"])[0].tolist(), codes, strict=True):
        sections[document][code] += 1
    found = Counter(counts.most_common(1)[0][0] for counts in sections.values())
    return {"languages": dict(sorted(found.items()))}


def _disk(path: Path) -> dict[str, Any]:
    """Return the disk usage of the index, or of one generation if the path is its folder."""
    graphs = {stage.name for stage in registry().stages if stage.proposes is not None}
    layout = Layout(path.parent if Layout(path).is_generation() else path)
    return footprint(layout, embedding_stages() | graphs).to_json()


def _describe_system(system: System, sizes: Sizes, generation: Generation) -> dict[str, Any]:
    """Return the statistics that a system reports, or the error if its function fails."""
    try:
        rows = {} if system.describe is None else dict(system.describe(sizes))
        more = {} if system.details is None else resolve(system.details)(generation.stages)
        return {**rows, **more}
    except KetragError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever another package's function raises
        return {"error": f"{type(error).__name__}: {error}"}


def _values(generation: Generation, stage: str, array: str) -> int:
    record = generation.manifest.stages.get(stage)
    file = record.files.get(array) if record else None
    return file.shape[0] if file else 0


def _search(generation: Generation, stage: str) -> dict[str, Any]:
    """Describe the nearest-neighbour search: exact, or by a graph with its parameters and measured recall."""
    from ketrag_fast.models.ann import record_of

    record = record_of(generation.stages.get(stage))
    return {"kind": "exact", "recall": 1.0} if record is None else {"kind": "hnsw", **record.to_json()}


def _extraction(generation: Generation, path: Path, sizes: Sizes) -> dict[str, Any] | None:
    """Return counts of the chunks that were read, and the total cost of extraction in this index."""
    if "read_chunks" not in sizes:
        return None
    about = generation.manifest.models.get("llm", {})
    spent = reading.readings(Layout(path), str(about.get("reader", "")))
    return {
        "fingerprint": about.get("fingerprint"),
        "read": sizes["read_chunks"],
        "failed": sizes.get("failed_chunks", 0),
        "pending": sizes.get("pending_chunks", 0),
        "entity_records": sizes.get("entity_records", 0),
        "relation_records": sizes.get("relation_records", 0),
        **spent,
    }


def _titles(generation: Generation) -> int:
    """Return the number of sentences that are titles."""
    units = generation.stages.get("units")
    return int(units["sent_title"].sum()) if units is not None else 0
