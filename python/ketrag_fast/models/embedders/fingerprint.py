"""Identify the model that made vectors: by a fingerprint of its files and by vectors of sample texts.

The fingerprint covers everything that determines the vectors (file contents, dimension, pooling,
normalisation, prompts, the rule for long texts) and nothing else (file location, engine, precision). Sample
vectors are compared too: for an endpoint or another engine, equal names do not prove equal vectors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from ketrag_fast.errors import BackendError, ModelMismatch
from ketrag_fast.models.embedders.batching import RULE
from ketrag_fast.models.embedders.model_folder import ModelFolder
from ketrag_fast.models.embedders.protocol import Cancel, Embedder, Precision, Vectors, least_cosine
from ketrag_fast.models.http.endpoints import EndpointPrompts
from ketrag_fast.records import dataclass

SCHEMA: Final = "ketrag/model/1"

_hashed: dict[tuple[str, int, int], str] = {}


def file_hash(path: Path) -> str:
    """Return the hex hash of a file, cached in this process by path, size and modification time."""
    facts = path.stat()
    key = (str(path.resolve()), facts.st_size, facts.st_mtime_ns)
    if key not in _hashed:
        with path.open("rb") as file:
            _hashed[key] = hashlib.file_digest(file, _hasher).hexdigest()
    return _hashed[key]


def digest(files: Iterable[tuple[str, Path]], facts: Mapping[str, Any]) -> str:
    """Return a model fingerprint: 32 hex digits over the names and contents of files and other facts."""
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
    """Return the fingerprint of a sentence-transformers folder; its files define everything."""
    facts = {
        "kind": "sentence-transformers",
        "modules": folder.modules,
        "dimension": folder.dimension,
        "longest": folder.longest,
        "normalised": True,
        "long_texts": RULE,
    }
    return digest(folder.files, facts)


def of_endpoint(model: str, prompts: EndpointPrompts) -> str:
    """Return the fingerprint of a model behind an endpoint, which depends on its name and prompts."""
    return digest((), {"kind": "openai", "model": model, "long_texts": RULE, **prompts.facts()})


def _hasher() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=32)


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a model that an index stores and compares with."""

    spec: str
    fingerprint: str
    dimension: int
    longest: int | None
    engine: Mapping[str, Any]
    sample: tuple[tuple[float, ...], ...]

    @property
    def precision(self) -> str:
        """The precision of the stored vectors."""
        return str(self.engine.get("precision", "fp32"))

    def to_json(self) -> dict[str, Any]:
        """Return the fields for the manifest."""
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
        """Return the identity from the output of `to_json`."""
        if data.get("schema") != SCHEMA or data.get("sample_rule") != SAMPLE_RULE:
            raise ModelMismatch(
                "the model record of the index has another version",
                hint="rebuild the vectors: ketrag reembed",
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
    """Return the identity of a loaded model. Embeds the sample, except for precomputed vectors."""
    try:
        sample = _sample_of(embedder)
    except BackendError:
        if not embedder.spec.startswith("vectors:"):  # precomputed vectors only cover their own texts
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


def _sample_of(embedder: Embedder, cancel: Cancel | None = None) -> Vectors:
    """Return the vectors of the sample texts, cached by the native encoder."""
    known = getattr(embedder, "sample_vectors", None)
    return embedder.embed(SAMPLE, cancel=cancel) if known is None else known(cancel)


def closeness(one: Vectors, other: Vectors) -> float:
    """Return the lowest cosine between corresponding rows; rows that are zero in both are skipped."""
    a, b = one.astype(np.float64), other.astype(np.float64)
    na, nb = np.sqrt((a * a).sum(1)), np.sqrt((b * b).sum(1))
    both = (na > 0) | (nb > 0)
    if not both.any():
        return 1.0
    cosines = (a * b).sum(1)[both] / np.maximum((na * nb)[both], 1e-300)
    return float(cosines.min()) if np.isfinite(cosines).all() else float("nan")


def precision_for(stored: Identity | None, wanted: Precision) -> Precision:
    """Return the precision of vectors that are compared with stored ones: int8 with int8, others in float.

    A precision named by the user is kept, and so is auto if no vectors are stored.
    """
    if stored is None or wanted != "auto":
        return wanted
    return "int8" if stored.precision == "int8" else "float"


def require_same(
    stored: Identity, embedder: Embedder, *, where: str = "the index", cancel: Cancel | None = None
) -> float:
    """Return the lowest cosine on the sample if a model made the stored vectors, else raise ModelMismatch.

    Engine, precision and location may differ. The fingerprint must be equal, and the cosine at least
    `least_cosine`. Raises Cancelled when `cancel` returns True.
    """
    if stored.fingerprint != embedder.fingerprint:
        raise ModelMismatch(
            f"{where} was built with {stored.spec} (fingerprint {stored.fingerprint[:12]}, "
            f"{stored.dimension} dimensions); {embedder.spec} has {embedder.fingerprint[:12]} "
            f"and {embedder.dimension}",
            hint="give the model that built it with --embedder, "
            "or rebuild the vectors with the other one: ketrag reembed --embedder ...",
        )
    if not stored.sample:
        return 1.0
    alike = stored.dimension == embedder.dimension
    lowest = 0.0
    if alike:
        lowest = closeness(np.asarray(stored.sample, np.float32), _sample_of(embedder, cancel))
    least = least_cosine(stored.precision, embedder.engine.precision)
    if not lowest >= least:
        raise ModelMismatch(
            f"{embedder.spec} has the name of the model that built {where}, but its vectors differ "
            f"(lowest cosine {lowest:.4f} on the sample, at least {least} needed)",
            hint=f"try --precision {stored.precision}, which built it, "
            "or rebuild the vectors: ketrag reembed",
        )
    return lowest


SAMPLE_RULE: Final = "sample/1"

SAMPLE: Final[tuple[str, ...]] = (
    "Where was the composer born?",
    "The bridge was opened in 1931 and crosses the river twice, once for trains and once for cars.",
    "A mixture of flour, water, salt and yeast is kneaded, left to rise for two hours, shaped, and baked "
    "in a very hot oven until the crust is dark. Bakers in the valley add rye to keep the loaf moist "
    "for a week.",
    "In 1912 the expedition reached the plateau with 3 sledges, 11 dogs and 48 days of food; its leader, "
    "E. M. Harlow, had planned for 60. The return took 71 days.",
    "def area(width, height):\n    return width * height  # square metres",
    "Die Brücke wurde 1931 eröffnet und überquert den Fluss zweimal.",
    "東京の人口は約千四百万人である。",
    "Interest rates rose by 0.25 percentage points to 4.75 % (source: central bank, 2 May, table 3b).",
    "Photosynthesis",
    "She is the daughter of a surgeon and a violinist, grew up in a port town, studied law without joy, "
    "and published her first novel at the age of fifty-one. Critics compared it with the great family "
    "chronicles of the north; she herself said that she had only written down what the neighbours told "
    "each other across the hedge. A film of the book was shot on the island where it is set, with the "
    "islanders as extras, and ran for forty weeks in the capital. Her second book, shorter and angrier, "
    "describes a winter strike in the harbour.",
)
