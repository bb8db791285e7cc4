"""`walk-features:FOLDER`: a small network that reorders the walk's candidates by the terms of their scores.

The folder has one file, `reranker.json`, written by `ketrag bench train reranker`: the names of the features,
their means and scales, and the weights of one hidden layer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ketrag_fast.errors import BackendError, ConfigError
from ketrag_fast.storage.durable import replace_path
from ketrag_fast.storage.io_errors import writing

FORM: Final = "walk-features:"
FILE: Final = "reranker.json"
SCHEMA: Final = "ketrag/walk-reranker/1"
LIMIT: Final = 5.0
"""Standardised features are clipped to this, so that no single one decides."""
NAMED: Final = "named"
"""The feature that tells whether the query names the subject of a candidate."""
_LARGEST: Final = 1 << 20
_HINT: Final = "train it: ketrag bench train reranker DATASET --out FOLDER"
F64 = NDArray[np.float64]


def is_walk_reranker(spec: str) -> bool:
    """Return whether a spec of the setting `rerank` names weights for the walk's features."""
    return spec.startswith(FORM)


@dataclass(frozen=True)
class WalkReranker:
    """What is added to the walk's score of each candidate: `strength` times the output of a network.

    Features are standardised with `mean` and `scale`; `hidden` is features x units, `output` one weight for
    each unit. `vectors` tells whether it was trained with an embedding model. With `only_named` it changes
    nothing unless the query names the subject of a candidate, as questions that need a second passage do.
    """

    features: tuple[str, ...]
    mean: F64
    scale: F64
    hidden: F64
    bias: F64
    output: F64
    strength: float
    vectors: bool
    only_named: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)
    spec: str = ""

    def adjustments(self, features: F64) -> F64:
        """Return what is added to the score of each candidate, from the rows of features of its query.

        The last two axes are the candidates of a query and their features.
        """
        standard = np.clip((features - self.mean) / self.scale, -LIMIT, LIMIT)
        added: F64 = self.strength * (np.tanh(standard @ self.hidden + self.bias) @ self.output)
        if not self.only_named:
            return added
        named = features[..., self.features.index(NAMED)] > 0
        return np.where(named.any(axis=-1, keepdims=True), added, 0.0)

    def save(self, folder: Path) -> None:
        """Write the file of the folder atomically. Raises StorageFull, ReadOnly or StorageFailed."""
        data = {
            "schema": SCHEMA,
            "features": list(self.features),
            "vectors": self.vectors,
            "strength": self.strength,
            "only_named": self.only_named,
            **{name: _rounded(getattr(self, name)) for name in _ARRAYS},
            "about": dict(self.about),
        }
        fresh = folder / f"{FILE}.new"
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps(data) + "\n", encoding="utf-8", newline="\n")
            replace_path(fresh, folder / FILE)


def _rounded(values: F64) -> Any:
    """Return the values as nested lists with six significant digits."""
    return [_rounded(row) for row in values] if values.ndim > 1 else [float(f"{x:.6g}") for x in values]


_ARRAYS: Final = ("mean", "scale", "hidden", "bias", "output")


def load_walk_reranker(spec: str, features: Sequence[str]) -> WalkReranker:
    """Return the weights of a spec, for features in this order.

    Raises:
        ConfigError: The spec has another form.
        BackendError: The folder does not contain such weights, or they are for other features.
    """
    name = spec.removeprefix(FORM)
    if name == spec or not name.strip():
        raise ConfigError(f"rerank must be {FORM}FOLDER, got {spec!r}")
    path = Path(name).expanduser() / FILE
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise BackendError(f"{spec}: {path}: {error.strerror or error}", hint=_HINT) from None
    try:
        return _parse(text, spec, tuple(features))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise BackendError(f"{spec} cannot be loaded: {path.name}: {error}", hint=_HINT) from None


def _parse(text: bytes, spec: str, features: tuple[str, ...]) -> WalkReranker:
    if len(text) > _LARGEST:
        raise ValueError(f"the file is larger than {_LARGEST:,} bytes")
    data = json.loads(text)
    if data.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {data.get('schema')!r:.60}, not {SCHEMA}")
    if tuple(data["features"]) != features:
        raise ValueError("its features are not those of this version, or are in another order")
    arrays = {name: np.asarray(data[name], np.float64) for name in _ARRAYS}
    count, units = len(features), len(arrays["output"])
    shapes = {"mean": (count,), "scale": (count,), "hidden": (count, units), "bias": (units,)}
    for name, shape in (shapes | {"output": (units,)}).items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} must have the shape {shape}, not {arrays[name].shape}")
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} has a value that is not finite")
    strength = float(data["strength"])
    if not 0 <= strength <= 1 or not (arrays["scale"] > 0).all():
        raise ValueError("strength must be from 0 to 1, and every scale greater than 0")
    only_named = data.get("only_named", False)
    if not isinstance(data["vectors"], bool) or not isinstance(only_named, bool):
        raise ValueError("vectors and only_named must be true or false")
    if only_named and NAMED not in features:
        raise ValueError(f"only_named needs the feature {NAMED}")
    return WalkReranker(
        features,
        **arrays,
        strength=strength,
        vectors=data["vectors"],
        only_named=only_named,
        about=data.get("about", {}),
        spec=spec,
    )
