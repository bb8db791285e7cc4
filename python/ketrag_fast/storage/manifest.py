"""What a generation says about itself, and what a finished stage says while it waits in `work/`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ketrag_fast.errors import IndexDamaged, IndexIncompatible
from ketrag_fast.storage.checksum import text_digest
from ketrag_fast.storage.layout import FORMAT
from ketrag_fast.storage.records import REPAIR, FileRecord

SCHEMA = "ketrag/manifest/1"
STAGE_SCHEMA = "ketrag/stage/1"


@dataclass(frozen=True, slots=True)
class StageRecord:
    """One finished stage: the fingerprint of all it depends on, and its files."""

    name: str
    version: int
    fingerprint: str
    seconds: float
    files: Mapping[str, FileRecord]

    @property
    def bytes(self) -> int:
        """Of all its files."""
        return sum(record.bytes for record in self.files.values())

    def to_json(self) -> dict[str, Any]:
        """One entry of `stages`."""
        return {
            "name": self.name,
            "version": self.version,
            "fingerprint": self.fingerprint,
            "seconds": round(self.seconds, 6),
            "files": {name: record.to_json() for name, record in sorted(self.files.items())},
        }

    @classmethod
    def from_json(cls, data: Any) -> StageRecord:
        """Raises KeyError, TypeError, ValueError or AttributeError where the entry makes no sense."""
        files = {str(name): FileRecord.from_json(record) for name, record in data["files"].items()}
        for name in files:
            if not name.isidentifier():  # a name is a file in this folder and never a path
                raise ValueError(f"{name!r} is no name for an array")
        return cls(
            str(data["name"]), int(data["version"]), str(data["fingerprint"]), float(data["seconds"]), files
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """All about one generation. `digest` depends on the content of its files alone.

    `models` keeps the identity of each model that the index was built with (`embedder`, if any).
    """

    generation: int
    created: str
    version: str
    settings: Mapping[str, Any]
    stages: Mapping[str, StageRecord]
    documents: Mapping[str, Any]
    digest: str
    checksum: str
    models: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The manifest.json."""
        return {
            "schema": SCHEMA,
            "format": FORMAT,
            "generation": self.generation,
            "created": self.created,
            "version": self.version,
            "checksum": self.checksum,
            "settings": dict(self.settings),
            "documents": dict(self.documents),
            "stages": [stage.to_json() for stage in self.stages.values()],
            "models": dict(self.models),
            "digest": self.digest,
        }

    @classmethod
    def from_json(cls, data: Any) -> Manifest:
        """Raises KeyError, TypeError, ValueError or AttributeError where it makes no sense."""
        stages = [StageRecord.from_json(entry) for entry in data["stages"]]
        for stage in stages:
            if not stage.name.isidentifier():
                raise ValueError(f"{stage.name!r} is no name for a stage")
        return cls(
            generation=int(data["generation"]),
            created=str(data["created"]),
            version=str(data["version"]),
            settings=dict(data["settings"]),
            stages={stage.name: stage for stage in stages},
            documents=dict(data["documents"]),
            digest=str(data["digest"]),
            checksum=str(data["checksum"]),
            models=dict(data.get("models", {})),
        )


def content_digest(stages: Iterable[StageRecord]) -> str:
    """One hash over all files' hashes in the order of their names: no time, thread or order of work."""
    lines = sorted(f"{s.name}/{name}={record.digest}" for s in stages for name, record in s.files.items())
    return text_digest(lines)


def read_manifest(path: Path) -> Manifest:
    """The manifest at `path`; IndexDamaged or IndexIncompatible where it cannot be used."""
    data = read_json(path)
    try:
        found = int(data["format"])
        if found > FORMAT:
            raise IndexIncompatible(
                f"{path.parent} has format {found}; this version reads up to {FORMAT}",
                hint="use a newer ketrag-fast, or build the index anew in another folder",
            )
        return Manifest.from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IndexDamaged(f"{path} makes no sense: {error!r}", hint=REPAIR) from error


def read_json(path: Path) -> Any:
    """A JSON file of the index, or IndexDamaged."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise IndexDamaged(f"cannot read {path}: {error.strerror}", hint=REPAIR) from error
    except (ValueError, RecursionError) as error:
        raise IndexDamaged(f"{path} is not JSON: {error}", hint=REPAIR) from error
