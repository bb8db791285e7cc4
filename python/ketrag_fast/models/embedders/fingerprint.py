"""Which model made these vectors: a fingerprint of its files, and vectors of the sample to prove it.

The fingerprint covers whatever decides the vectors (files' contents, dimension, pooling, normalisation,
prompts, the rule for long texts) and nothing that does not (where the files lie, engine, precision).
The sample's vectors are the second lock: behind an endpoint, or under another engine, equal names do
not prove equal vectors; a cosine does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ketrag_fast.errors import BackendError, ModelMismatch
from ketrag_fast.models.embedders.model_folder import ModelFolder
from ketrag_fast.models.embedders.probe_texts import RULE as SAMPLE_RULE
from ketrag_fast.models.embedders.probe_texts import SAMPLE
from ketrag_fast.models.embedders.protocol import CLOSE, Cancel, Embedder, Vectors
from ketrag_fast.models.embedders.windows import RULE

SCHEMA: Final = "ketrag/model/1"

_hashed: dict[tuple[str, int, int], str] = {}


def file_hash(path: Path) -> str:
    """Lower-hex hash of a file's bytes; remembered in this process for as long as size and time stay."""
    facts = path.stat()
    key = (str(path.resolve()), facts.st_size, facts.st_mtime_ns)
    if key not in _hashed:
        with path.open("rb") as file:
            _hashed[key] = hashlib.file_digest(file, _hasher).hexdigest()
    return _hashed[key]


def digest(files: Iterable[tuple[str, Path]], facts: Mapping[str, Any]) -> str:
    """The fingerprint of a model: 32 hex digits over (name in the folder, content) and further facts."""
    state = hashlib.blake2b(digest_size=16)
    try:
        parts = [f"{name}\0{file_hash(path)}" for name, path in sorted(files)]
    except OSError as error:
        raise BackendError(f"cannot read {error.filename}: {error.strerror}") from error
    parts.append(json.dumps(dict(facts), sort_keys=True, ensure_ascii=False))
    for part in parts:
        data = part.encode("utf-8")
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def of_folder(folder: ModelFolder) -> str:
    """Of a sentence-transformers model, from its files alone: prompts, pooling and limits lie in them."""
    facts = {
        "kind": "sentence-transformers",
        "modules": folder.modules,
        "dimension": folder.dimension,
        "longest": folder.longest,
        "normalised": True,
        "long_texts": RULE,
    }
    return digest(folder.files, facts)


def of_endpoint(model: str) -> str:
    """Of a model behind an endpoint: its name; where it is served does not matter."""
    return digest((), {"kind": "openai", "model": model, "long_texts": RULE})


def _hasher() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=32)


@dataclass(frozen=True, slots=True)
class Identity:
    """What an index keeps of its model, and what an open index compares with."""

    spec: str
    fingerprint: str
    dimension: int
    longest: int | None
    engine: Mapping[str, Any]
    sample: tuple[tuple[float, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "schema": SCHEMA,
            "spec": self.spec,
            "fingerprint": self.fingerprint,
            "dimension": self.dimension,
            "longest": self.longest,
            "engine": dict(self.engine),
            "sample_rule": SAMPLE_RULE,
            "sample": [list(row) for row in self.sample],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Identity:
        """Of what `to_json` gave."""
        if data.get("schema") != SCHEMA or data.get("sample_rule") != SAMPLE_RULE:
            raise ModelMismatch(
                "the index's record of its model is of another version",
                hint="embed again: ketrag reembed",
            )
        return cls(
            data["spec"],
            data["fingerprint"],
            data["dimension"],
            data["longest"],
            data["engine"],
            tuple(tuple(row) for row in data["sample"]),
        )


def identify(embedder: Embedder) -> Identity:
    """The identity of a loaded model; embeds the sample once (brought vectors have none)."""
    try:
        sample = embedder.embed(SAMPLE)
    except BackendError:
        if not embedder.spec.startswith("vectors:"):  # brought vectors know only their own texts
            raise
        sample = np.zeros((0, embedder.dimension), np.float32)
    rows = tuple(tuple(round(float(x), 6) for x in row) for row in sample)
    return Identity(
        embedder.spec,
        embedder.fingerprint,
        embedder.dimension,
        embedder.longest,
        embedder.engine.to_json(),
        rows,
    )


def closeness(one: Vectors, other: Vectors) -> float:
    """The lowest cosine between rows of equal number; rows that are zero in both are skipped."""
    a, b = one.astype(np.float64), other.astype(np.float64)
    na, nb = np.sqrt((a * a).sum(1)), np.sqrt((b * b).sum(1))
    both = (na > 0) | (nb > 0)
    if not both.any():
        return 1.0
    cosines = (a * b).sum(1)[both] / np.maximum((na * nb)[both], 1e-300)
    return float(cosines.min()) if np.isfinite(cosines).all() else float("nan")


def require_same(
    stored: Identity, embedder: Embedder, *, where: str = "the index", cancel: Cancel | None = None
) -> float:
    """Refuses a model that did not make the stored vectors; returns the lowest cosine on the sample.

    Engine, precision and place of the model may differ; its fingerprint may not, and neither may its
    vectors by more than `CLOSE`. Cancelled where `cancel` says so.
    """
    if stored.fingerprint != embedder.fingerprint:
        raise ModelMismatch(
            f"{where} was built with {stored.spec} (fingerprint {stored.fingerprint[:12]}, "
            f"{stored.dimension} dimensions); {embedder.spec} has {embedder.fingerprint[:12]} "
            f"and {embedder.dimension}",
            hint="give the model that built it with --embedder, "
            "or make the vectors anew with the other one: ketrag reembed --embedder ...",
        )
    if not stored.sample:
        return 1.0
    alike = stored.dimension == embedder.dimension
    lowest = 0.0
    if alike:
        lowest = closeness(np.asarray(stored.sample, np.float32), embedder.embed(SAMPLE, cancel=cancel))
    if not lowest >= CLOSE:
        raise ModelMismatch(
            f"{embedder.spec} bears the name of the model that built {where}, but gives other vectors "
            f"(lowest cosine {lowest:.4f} on the sample, {CLOSE} is needed)",
            hint=f"try --precision {stored.engine.get('precision', 'fp32')}, in which it was built, "
            "or embed again: ketrag reembed",
        )
    return lowest
