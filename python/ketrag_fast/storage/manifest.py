"""What a generation says about itself, and what a finished stage says while it waits in `work/`."""

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
from ketrag_fast.storage.layout import FORMAT, incompatible

SCHEMA = "ketrag/manifest/1"
STAGE_SCHEMA = "ketrag/stage/1"
SEAL = "seal"


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
            text(data["name"]),
            count(data["version"]),
            text(data["fingerprint"]),
            _seconds(data["seconds"]),
            files,
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

    def sealed(self) -> dict[str, Any]:
        """The manifest.json with the hash of all its entries: `digest` covers the files alone."""
        data = self.to_json()
        return {**data, SEAL: seal_of(data)}

    @classmethod
    def from_json(cls, data: Any) -> Manifest:
        """Raises KeyError, TypeError, ValueError or AttributeError where it makes no sense."""
        stages = [StageRecord.from_json(entry) for entry in data["stages"]]
        for stage in stages:
            if not stage.name.isidentifier():
                raise ValueError(f"{stage.name!r} is no name for a stage")
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
    """One hash over all files' hashes in the order of their names: no time, thread or order of work."""
    lines = sorted(f"{s.name}/{name}={record.digest}" for s in stages for name, record in s.files.items())
    return text_digest(lines)


def read_manifest(path: Path) -> Manifest:
    """The manifest at `path`; IndexDamaged or IndexIncompatible where it cannot be used."""
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
        return Manifest.from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IndexDamaged(f"{path} makes no sense: {error!r}", hint=REPAIR) from error


def seal_of(data: Mapping[str, Any]) -> str:
    """A hash of all entries of a manifest but the seal itself."""
    rest = {name: value for name, value in data.items() if name != SEAL}
    return text_digest([json.dumps(rest, sort_keys=True, allow_nan=False)])


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise ValueError(f"{value!r} is no time")
    return float(value)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is no object")
    return value


def read_json(path: Path) -> Any:
    """A JSON file of the index, or IndexDamaged."""
    try:
        return json.loads(read_regular(path), parse_constant=_no_number)
    except OSError as error:
        raise unreadable(error, path) from error
    except (ValueError, RecursionError) as error:
        raise IndexDamaged(f"{path} is not JSON: {error}", hint=REPAIR) from error


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
