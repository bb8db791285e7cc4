"""The manifest of a generation, and the record of a finished stage that waits in `work/`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import IndexDamaged, IndexIncompatible
from ketrag_fast.storage.checksum import NAME, text_digest
from ketrag_fast.storage.file_records import REPAIR, FileRecord, count, text
from ketrag_fast.storage.io_errors import unreadable
from ketrag_fast.storage.layout import FORMAT, Layout, incompatible

SCHEMA = "ketrag/manifest/1"
STAGE_SCHEMA = "ketrag/stage/1"
SEAL = "seal"


@dataclass(frozen=True, slots=True)
class StageRecord:
    """One finished stage: the fingerprint of everything it depends on, and its files."""

    name: str
    version: int
    fingerprint: str
    seconds: float
    files: Mapping[str, FileRecord]

    @property
    def bytes(self) -> int:
        """Total size of its files in bytes."""
        return sum(record.bytes for record in self.files.values())

    def to_json(self) -> dict[str, Any]:
        """Return one entry of `stages`."""
        return {
            "name": self.name,
            "version": self.version,
            "fingerprint": self.fingerprint,
            "seconds": round(self.seconds, 6),
            "files": {name: record.to_json() for name, record in sorted(self.files.items())},
        }

    @classmethod
    def from_json(cls, data: Any) -> StageRecord:
        """Parse an entry. Raises KeyError, TypeError, ValueError or AttributeError if it is invalid."""
        files = {str(name): FileRecord.from_json(record) for name, record in data["files"].items()}
        for name in files:
            if not name.isidentifier():  # a name must be a plain file name, never a path
                raise ValueError(f"{name!r} is not a name of an array")
        return cls(
            text(data["name"]),
            count(data["version"]),
            text(data["fingerprint"]),
            _seconds(data["seconds"]),
            files,
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of one generation. `digest` depends only on the content of its files.

    `models` holds the identity of each model that the index was built with (`embedder`, if any).
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
        """Return the content of manifest.json without the seal."""
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

    def sealed(self) -> dict[str, Any]:
        """Return the content of manifest.json with a seal over all entries.

        `digest` covers only the files.
        """
        data = self.to_json()
        return {**data, SEAL: seal_of(data)}

    @classmethod
    def from_json(cls, data: Any) -> Manifest:
        """Parse a manifest. Raises KeyError, TypeError, ValueError or AttributeError if it is invalid."""
        stages = [StageRecord.from_json(entry) for entry in data["stages"]]
        for stage in stages:
            if not stage.name.isidentifier():
                raise ValueError(f"{stage.name!r} is not a name of a stage")
        return cls(
            generation=count(data["generation"]),
            created=text(data["created"]),
            version=text(data["version"]),
            settings=_object(data["settings"]),
            stages={stage.name: stage for stage in stages},
            documents=_object(data["documents"]),
            digest=text(data["digest"]),
            checksum=text(data["checksum"]),
            models={k: _object(v) for k, v in _object(data["models"]).items()},
        )


def content_digest(stages: Iterable[StageRecord]) -> str:
    """Return a hash of all files' hashes by name, independent of times, threads and order of work."""
    lines = sorted(f"{s.name}/{name}={record.digest}" for s in stages for name, record in s.files.items())
    return text_digest(lines)


def read_manifest(path: Path) -> Manifest:
    """Read the manifest at `path`; raises IndexDamaged or IndexIncompatible if it cannot be used."""
    data = read_json(path)
    try:
        found = count(data["format"])
        if found != FORMAT:
            raise incompatible(path.parent, found)
        if text(data["checksum"]) != NAME:
            raise IndexIncompatible(
                f"{path.parent} has {data['checksum']} checksums; this version uses {NAME}",
                hint="use the version that wrote it, or build the index again in another folder",
            )
        if data[SEAL] != seal_of(data):
            raise ValueError("an entry is altered: the seal does not match")
        manifest = Manifest.from_json(data)
        number = Layout(path.parent.parent).number(path.parent.name)
        if number not in (None, manifest.generation):
            raise ValueError(f"it is the manifest of generation {manifest.generation}")
        return manifest
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IndexDamaged(f"{path} is invalid: {error!r}", hint=REPAIR) from error


def sealed_json(manifest: Manifest) -> bytes:
    """Return the sealed content of manifest.json in the form that is written to disk."""
    return (json.dumps(manifest.sealed(), ensure_ascii=False, indent=1) + "\n").encode()


def seal_of(data: Mapping[str, Any]) -> str:
    """Return a hash of all entries of a manifest except the seal."""
    rest = {name: value for name, value in data.items() if name != SEAL}
    return text_digest([json.dumps(rest, sort_keys=True, allow_nan=False)])


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise ValueError(f"{value!r} is not a time")
    return float(value)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not an object")
    return value


def read_json(path: Path) -> Any:
    """Read a JSON file of the index; raises IndexDamaged if it is invalid."""
    try:
        return json.loads(read_regular(path), parse_constant=_no_number)
    except OSError as error:
        raise unreadable(error, path) from error
    except (ValueError, RecursionError) as error:
        raise IndexDamaged(f"{path} is not JSON: {error}", hint=REPAIR) from error


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
