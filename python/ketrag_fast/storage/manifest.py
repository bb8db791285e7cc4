"""The manifest of a generation, with the records of its stages and their files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ketrag_fast.base.safe_io import read_regular
from ketrag_fast.errors import IndexDamaged, IndexIncompatible
from ketrag_fast.records import dataclass, field
from ketrag_fast.storage.checksum import NAME, text_digest
from ketrag_fast.storage.io_errors import REPAIR, unreadable
from ketrag_fast.storage.layout import FORMAT, Layout, incompatible

SCHEMA = "ketrag/manifest/1"
STAGE_SCHEMA = "ketrag/stage/1"
SEAL = "seal"
UNEMBEDDED = "unembedded"
"""The entry of `documents` with the number of passages whose vectors are not computed yet, unless it is 0."""
RAW = "raw"
"""The type of a file that is not an array."""
_TYPE = re.compile(r"[<|][biuf][1248]|[<>]f16")


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The record of one file: size in `bytes`, and `dtype` and `shape` of the unpacked values."""

    bytes: int
    digest: str
    dtype: str
    shape: tuple[int, ...]
    packed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return one entry of `files`."""
        about = {"bytes": self.bytes, "digest": self.digest, "dtype": self.dtype, "shape": list(self.shape)}
        return {**about, "packed": True} if self.packed else about

    @classmethod
    def from_json(cls, data: Any) -> FileRecord:
        """Parse an entry. Raises KeyError, TypeError or ValueError if it is invalid."""
        shape = tuple(count(n) for n in data["shape"])
        dtype, digest = text(data["dtype"]), text(data["digest"])
        if dtype != RAW and not _TYPE.fullmatch(dtype):
            raise ValueError(f"{dtype!r} is not an array type")
        packed = data.get("packed", False)
        if type(packed) is not bool or (packed and dtype == RAW):
            raise ValueError(f"{packed!r} does not say whether an array is packed")
        return cls(count(data["bytes"]), digest, dtype, shape, packed)


def path_of(folder: Path, name: str, record: FileRecord) -> Path:
    """Return the path of a stage's file."""
    if record.packed:
        return folder / f"{name}.pack"
    return folder / (f"{name}.bin" if record.dtype == RAW else f"{name}.npy")


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
        seconds = data["seconds"]
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            raise ValueError(f"{seconds!r} is not a time")
        name, version, fingerprint = text(data["name"]), count(data["version"]), text(data["fingerprint"])
        return cls(name, version, fingerprint, float(seconds), files)


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

    @property
    def unembedded(self) -> int:
        """The number of passages whose vectors are not computed yet."""
        found = self.documents.get(UNEMBEDDED)
        return found if type(found) is int and found > 0 else 0

    def sealed(self) -> dict[str, Any]:
        """Return the content of manifest.json; the seal covers all other entries, `digest` only the files."""
        data = {
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
        return {**data, SEAL: seal_of(data)}

    @classmethod
    def from_json(cls, data: Any) -> Manifest:
        """Parse a manifest. Raises KeyError, TypeError, ValueError or AttributeError if it is invalid."""
        if data[SEAL] != seal_of(data):
            raise ValueError("an entry is altered: the seal does not match")
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
        manifest = Manifest.from_json(data)
        number = Layout(path.parent.parent).number(path.parent.name)
        if number not in (None, manifest.generation):
            raise ValueError(f"it is the manifest of generation {manifest.generation}")
        return manifest
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IndexDamaged(f"{path} is invalid: {error!r}", hint=REPAIR) from error


def seal_of(data: Mapping[str, Any]) -> str:
    """Return a hash of all entries of a manifest except the seal."""
    rest = {name: value for name, value in data.items() if name != SEAL}
    return text_digest([json.dumps(rest, sort_keys=True, allow_nan=False)])


def read_json(path: Path) -> Any:
    """Read a JSON file of the index; raises IndexDamaged if it is invalid."""
    try:
        return parse_json(read_regular(path))
    except OSError as error:
        raise unreadable(error, path) from error
    except (ValueError, RecursionError) as error:
        raise IndexDamaged(f"{path} is not JSON: {error}", hint=REPAIR) from error


def parse_json(data: bytes) -> Any:
    """Parse JSON without NaN and infinities, which Python accepts. Raises ValueError or RecursionError."""
    return json.loads(data, parse_constant=_no_number)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def count(value: Any) -> int:
    """Return a JSON value that must be a non-negative integer; raises ValueError for anything else."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is not a count")
    return value


def text(value: Any) -> str:
    """Return a JSON value that must be a string; raises ValueError for anything else."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text")
    value.encode("utf-8")  # encoding a lone surrogate, which JSON allows, also raises ValueError
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not an object")
    return value
