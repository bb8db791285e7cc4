"""Inspect a sentence-transformers folder without torch: whether it is complete and safe, and its facts.

Only JSON files and the header of the weights are read, before any model code runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ketrag_fast.errors import BackendError

_OURS: Final = ("sentence_transformers.",)
_ROOT_FILES: Final = frozenset(
    (
        "config.json",
        "modules.json",
        "config_sentence_transformers.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "vocab.txt",
        "vocab.json",
        "merges.txt",
    )
)
_MODULE_SETTINGS: Final = ("sentence_bert_config.json", "sentence_roberta_config.json")
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
    files = tuple(sorted(_deciding(path, modules)))
    config = _json(path / "config.json") if (path / "config.json").is_file() else {}
    _refuse_code(path, config)
    tensors = _weights(path, files)
    positions = _positions(config)
    return ModelFolder(
        path,
        files,
        tuple(kind for _, kind in modules),
        _dimension(path, modules, config),
        _longest(path, modules, positions),
        positions,
        sum(file.stat().st_size for _, file in files),
        tensors,
    )


def _modules(path: Path) -> list[tuple[str, str]]:
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


def _refuse_code(path: Path, config: Any) -> None:
    wanted = config.get("auto_map") if isinstance(config, dict) else None
    if wanted:
        raise BackendError(
            f"the model in {path} needs custom code (auto_map in config.json); it was not loaded",
            hint="choose a model that transformers supports itself",
        )


def _deciding(path: Path, modules: list[tuple[str, str]]) -> list[tuple[str, Path]]:
    found: dict[str, Path] = {}
    for place in dict.fromkeys(["", *(place for place, _ in modules)]):
        folder = path / place
        if not folder.is_dir():
            continue
        for file in folder.iterdir():
            name = file.name
            wanted = name.endswith(_MODEL_SUFFIXES) or name in _ROOT_FILES or name in _MODULE_SETTINGS
            if wanted and file.is_file():
                found[file.relative_to(path).as_posix()] = file
    return list(found.items())


def _weights(path: Path, files: tuple[tuple[str, Path], ...]) -> frozenset[str]:
    names: set[str] = set()
    weights = [file for name, file in files if name.endswith(".safetensors")]
    if not weights:
        other = any((path / name).is_file() for name in ("pytorch_model.bin", "tf_model.h5"))
        raise BackendError(
            f"{path} has no weights in safetensors format"
            + (", only in a format that can run code" if other else ""),
            hint="save the model again with safe_serialization=True" if other else "copy the model again",
        )
    for file in weights:
        names.update(tensors_of(file))
    for name, file in files:
        if name.endswith(".index.json"):
            for part in sorted(set(_json(file).get("weight_map", {}).values())):
                if not (file.parent / part).is_file():
                    raise BackendError(f"{file.parent / part} is missing", hint="copy the model again")
    return frozenset(names)


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


def _positions(config: Any) -> int | None:
    value = config.get("max_position_embeddings") if isinstance(config, dict) else None
    if not isinstance(value, int) or config.get("position_embedding_type", "absolute") != "absolute":
        return None
    return value - 2 if config.get("model_type") in _ROBERTA_LIKE else value


def _longest(path: Path, modules: list[tuple[str, str]], positions: int | None) -> int | None:
    limits = [positions] if positions else []
    for name in _MODULE_SETTINGS:
        file = path / modules[0][0] / name
        value = _json(file).get("max_seq_length") if file.is_file() else None
        if isinstance(value, int):
            limits.append(value)
    tokenizer = path / modules[0][0] / "tokenizer_config.json"
    if tokenizer.is_file():
        value = _json(tokenizer).get("model_max_length")
        if isinstance(value, int) and value < 1_000_000:
            limits.append(value)
    return min(limits) if limits else None


def _dimension(path: Path, modules: list[tuple[str, str]], config: Any) -> int | None:
    above = path / "config_sentence_transformers.json"
    top = _json(above) if above.is_file() else {}
    found = config.get("hidden_size") if isinstance(config, dict) else None
    for place, kind in modules[1:]:
        file = path / place / "config.json"
        facts = _json(file) if file.is_file() else {}
        if kind.endswith("Pooling"):
            found = facts.get("word_embedding_dimension", facts.get("embedding_dimension", found))
        elif kind.endswith("Dense"):
            found = facts.get("out_features", found)
    cut = top.get("truncate_dim")
    if isinstance(cut, int) and isinstance(found, int):
        found = min(found, cut)
    return found if isinstance(found, int) else None


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise BackendError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise BackendError(f"{file} is damaged: {error}", hint="copy the model again") from error
