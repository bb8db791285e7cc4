"""Inspect a sentence-transformers folder without torch: whether it is complete and safe, and its facts.

Only JSON files and the header of the weights are read, before any model code runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import BackendError
from ketrag_fast.records import dataclass

_OURS: Final = "sentence_transformers."
_MODULE_SETTINGS: Final = ("sentence_bert_config.json", "sentence_roberta_config.json")
_FILES: Final = frozenset(
    (
        *_MODULE_SETTINGS,
        *("config.json", "modules.json", "config_sentence_transformers.json", "tokenizer.json"),
        *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
        *("vocab.txt", "vocab.json", "merges.txt"),
    )
)
_MODEL_SUFFIXES: Final = (".safetensors", ".safetensors.index.json", ".model", ".spm", ".bpe")
_HEADER_LIMIT: Final = 100_000_000
_ROBERTA_LIKE: Final = frozenset(("roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-xl"))


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder that passed all checks. `files` are those that determine the vectors, by relative name."""

    path: Path
    files: tuple[tuple[str, Path], ...]
    modules: tuple[str, ...]
    dimension: int | None
    longest: int | None
    positions: int | None
    bytes: int
    tensors: frozenset[str]


def is_model(path: Path) -> bool:
    """Return whether a folder looks like a sentence-transformers model."""
    return (path / "modules.json").is_file()


def look(path: Path) -> ModelFolder:
    """Check a folder and return its facts. Raises BackendError if it is incomplete or unsafe."""
    if not path.is_dir():
        raise BackendError(f"no such folder: {path}", hint="`ketrag models` lists local models")
    if not is_model(path):
        plain = (path / "config.json").is_file()
        raise BackendError(
            f"{path} is not a sentence-transformers model (no modules.json)",
            hint="a transformer without pooling: save it with SentenceTransformer(...).save(...)"
            if plain
            else "give the folder that SentenceTransformer(...).save(...) wrote",
        )
    modules = _modules(path)
    files = tuple(sorted(set(_deciding(path, modules))))
    config = _facts(path / "config.json")
    if config.get("auto_map"):
        raise BackendError(
            f"the model in {path} needs custom code (auto_map in config.json); it was not loaded",
            hint="choose a model that transformers supports itself",
        )
    positions = _positions(config)
    return ModelFolder(
        path,
        files,
        tuple(kind for _, kind in modules),
        _dimension(path, modules, config),
        _longest(path / modules[0][0], positions),
        positions,
        sum(file.stat().st_size for _, file in files),
        _weights(path, files),
    )


def _modules(path: Path) -> list[tuple[str, str]]:
    """Return the folder and the type of each module. Raises BackendError for types of other packages."""
    listed = _json(path / "modules.json")
    if not isinstance(listed, list) or not listed:
        raise BackendError(f"{path / 'modules.json'} lists no module", hint="copy the model again")
    modules = []
    for entry in listed:
        kind, place = (entry.get("type"), entry.get("path", "")) if isinstance(entry, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(place, str):
            raise BackendError(f"{path / 'modules.json'} has an entry without type or path")
        if not kind.startswith(_OURS):
            raise BackendError(
                f"the model in {path} needs custom code ({kind}); it was not loaded",
                hint="use a model that only has modules of sentence-transformers",
            )
        if not (path / place).resolve().is_relative_to(path.resolve()):
            raise BackendError(f"{path / 'modules.json'} points outside the model folder ({place})")
        modules.append((place, kind))
    return modules


def _deciding(path: Path, modules: list[tuple[str, str]]) -> Iterator[tuple[str, Path]]:
    """Yield the files that determine the vectors, with their names below the folder."""
    for place in dict.fromkeys(["", *(place for place, _ in modules)]):
        for file in (path / place).iterdir() if (path / place).is_dir() else ():
            if (file.name.endswith(_MODEL_SUFFIXES) or file.name in _FILES) and file.is_file():
                yield file.relative_to(path).as_posix(), file


def _weights(path: Path, files: tuple[tuple[str, Path], ...]) -> frozenset[str]:
    """Return the names of all tensors. Raises BackendError if a file of weights is missing or damaged."""
    weights = [file for name, file in files if name.endswith(".safetensors")]
    if not weights:
        other = any((path / name).is_file() for name in ("pytorch_model.bin", "tf_model.h5"))
        raise BackendError(
            f"{path} has no weights in safetensors format"
            + (", only in a format that can run code" if other else ""),
            hint="save the model again with safe_serialization=True" if other else "copy the model again",
        )
    for name, file in files:
        if name.endswith(".index.json"):
            for part in sorted(set(_facts(file).get("weight_map", {}).values())):
                if not (file.parent / part).is_file():
                    raise BackendError(f"{file.parent / part} is missing", hint="copy the model again")
    return frozenset(name for file in weights for name in tensors_of(file))


def tensors_of(file: Path) -> list[str]:
    """Return the tensor names of a safetensors file. Raises BackendError if its length is wrong."""
    size = file.stat().st_size
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if size < 8 or length > min(size - 8, _HEADER_LIMIT):
                raise ValueError("its header is truncated")
            header = json.loads(stream.read(length))
        if not isinstance(header, dict):
            raise ValueError("its header is not a JSON object")
        names = [name for name in header if name != "__metadata__"]
        end = max((int(header[name]["data_offsets"][1]) for name in names), default=0)
        if 8 + length + end != size:
            raise ValueError(f"it has {size} bytes, expected {8 + length + end}")
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise BackendError(f"{file} is damaged: {error}", hint="copy the model again") from error
    except OSError as error:
        raise BackendError(f"cannot read {file}: {error.strerror}") from error
    return names


def _positions(config: dict[str, Any]) -> int | None:
    value = config.get("max_position_embeddings")
    if not isinstance(value, int) or config.get("position_embedding_type", "absolute") != "absolute":
        return None
    return value - 2 if config.get("model_type") in _ROBERTA_LIKE else value


def _longest(folder: Path, positions: int | None) -> int | None:
    """Return the maximum input in tokens: the smallest of the limits in the files of the first module."""
    limits = [_facts(folder / name).get("max_seq_length") for name in _MODULE_SETTINGS]
    own = _facts(folder / "tokenizer_config.json").get("model_max_length")
    if isinstance(own, int) and own < 1_000_000:
        limits.append(own)
    return min([limit for limit in (*limits, positions or None) if isinstance(limit, int)], default=None)


def _dimension(path: Path, modules: list[tuple[str, str]], config: dict[str, Any]) -> int | None:
    found = config.get("hidden_size")
    for place, kind in modules[1:]:
        facts = _facts(path / place / "config.json")
        if kind.endswith("Pooling"):
            found = facts.get("word_embedding_dimension", facts.get("embedding_dimension", found))
        elif kind.endswith("Dense"):
            found = facts.get("out_features", found)
    cut = _facts(path / "config_sentence_transformers.json").get("truncate_dim")
    if isinstance(cut, int) and isinstance(found, int):
        found = min(found, cut)
    return found if isinstance(found, int) else None


def _facts(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if the file is missing or has another content."""
    data = _json(file) if file.is_file() else {}
    return data if isinstance(data, dict) else {}


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise BackendError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise BackendError(f"{file} is damaged: {error}", hint="copy the model again") from error
