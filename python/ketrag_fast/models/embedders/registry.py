"""From a spec to a loaded model.

`native:NAME_OR_PATH`, `sentence-transformers:NAME_OR_PATH`, `local:NAME_OR_PATH` (the first of these two that
can serve the model), `openai:MODEL@URL`, `vectors:FOLDER`.

`builtin` is no model: its vectors are fitted to the corpus by the build itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ketrag_fast.errors import BackendError, BackendMissing, ConfigError, NetworkForbidden
from ketrag_fast.models.embedders.discovery import is_name, resolve
from ketrag_fast.models.embedders.fingerprint import of_endpoint, of_folder
from ketrag_fast.models.embedders.model_folder import ModelFolder, look
from ketrag_fast.models.embedders.protocol import Cancel, Embedder, Precision, StreamingEmbedder
from ketrag_fast.models.spending import Account, SpendingLimit

BUILTIN: Final = "builtin"
_FORMS: Final = (
    "builtin, local:NAME_OR_PATH, native:NAME_OR_PATH, sentence-transformers:NAME_OR_PATH, "
    "openai:MODEL@URL, vectors:FOLDER"
)
FOLDERS: Final = frozenset(("sentence-transformers", "native", "local"))


@dataclass(frozen=True, slots=True)
class EmbedderOptions:
    """How a model is loaded. None of these is part of its fingerprint.

    `limit` is what the endpoint may cost, together with whatever shares that limit. `cancel` is looked at
    while an endpoint is opened; Cancelled is then raised.
    """

    precision: Precision = "auto"
    device: str = "auto"
    threads: int = 0
    offline: bool = False
    allow_download: bool = False
    limit: SpendingLimit | None = None
    usd_per_million: float | None = None
    concurrency: int = 4
    cancel: Cancel | None = None


def parse(spec: str) -> tuple[str, str]:
    """(kind, the rest), or a ConfigError that lists the forms."""
    if spec == BUILTIN:
        return BUILTIN, ""
    kind, colon, rest = spec.partition(":")
    if not colon or kind not in _LOADERS or not rest.strip():
        raise ConfigError(f"embedder {spec!r} is not one of {_FORMS}")
    return kind, rest


def load(spec: str, options: EmbedderOptions | None = None) -> Embedder:
    """A loaded model; every way to fail is a typed error."""
    kind, rest = parse(spec)
    if kind == BUILTIN:
        raise ConfigError("the builtin vectors are made by the build and need no model to be loaded")
    return _LOADERS[kind](spec, rest, options or EmbedderOptions())


def fingerprint(spec: str, options: EmbedderOptions | None = None) -> str:
    """A model's fingerprint without loading it: a moved model has the same, another one has not."""
    kind, rest = parse(spec)
    if kind in FOLDERS:
        return of_folder(_folder(rest, options or EmbedderOptions()))
    if kind == "openai":
        from ketrag_fast.models.http.openai_endpoint import parts_of

        return of_endpoint(parts_of(spec)[0])
    if kind == "vectors":
        from ketrag_fast.models.embedders.precomputed import of_vectors

        return of_vectors(Path(rest).expanduser())
    raise ConfigError("the builtin vectors have no model")


def _folder(name: str, options: EmbedderOptions) -> ModelFolder:
    path = resolve(name)
    return look(_fetch(name, options) if path is None else path)


def _sentence_transformers(spec: str, name: str, options: EmbedderOptions) -> StreamingEmbedder:
    folder = _folder(name, options)
    from ketrag_fast.models.embedders.sentence_transformers import SentenceTransformersEmbedder

    return SentenceTransformersEmbedder(
        spec, folder, precision=options.precision, device=options.device, threads=options.threads
    )


def _native(spec: str, name: str, options: EmbedderOptions) -> Embedder:
    folder = _folder(name, options)
    from ketrag_fast.models.embedders.native import NativeEmbedder

    return NativeEmbedder(
        spec, folder, precision=options.precision, device=options.device, threads=options.threads
    )


def _local(spec: str, name: str, options: EmbedderOptions) -> Embedder:
    """The package's own encoder where it knows the model and the device, else sentence-transformers."""
    from ketrag_fast.models.embedders.native import refusal

    reason = refusal(_folder(name, options))
    if reason is None and options.device not in ("auto", "cpu"):
        reason = f"the native encoder does not run on {options.device}"
    if reason is None:
        return _native(spec, name, options)
    try:
        loaded = _sentence_transformers(spec, name, options)
    except BackendMissing as error:
        raise BackendMissing(f"{spec}: {reason}; {error.message}", hint=error.hint) from error
    loaded.engine = replace(loaded.engine, notes=(*loaded.engine.notes, f"not native: {reason}"))
    return loaded


def _fetch(name: str, options: EmbedderOptions) -> Path:
    """Downloads a model, if that was allowed in so many words."""
    if not is_name(name):
        raise BackendError(f"there is no folder {name}", hint="`ketrag models` lists what is found locally")
    if options.offline or not options.allow_download:
        raise NetworkForbidden(
            f"the model {name} is not on this machine, and downloading is not allowed",
            hint="`ketrag models` lists what is found locally and how to bring a model; "
            "--allow-download fetches it from the hub",
        )
    from ketrag_fast.models.embedders.quiet_imports import import_quietly

    hub = import_quietly("huggingface_hub", "embed")
    wanted = ["*.json", "*.txt", "*.safetensors", "*.model", "*.spm"]
    unwanted = ["onnx/*", "openvino/*"]
    full = name if "/" in name else f"sentence-transformers/{name}"
    try:
        return Path(hub.snapshot_download(full, allow_patterns=wanted, ignore_patterns=unwanted))
    except Exception as error:  # whatever the hub's client throws
        raise BackendError(f"{full} could not be downloaded: {type(error).__name__}: {error}") from error


def _openai(spec: str, _: str, options: EmbedderOptions) -> Embedder:
    from ketrag_fast.models.embedders.openai import OpenAIEmbedder

    account = Account(options.usd_per_million, options.limit)
    return OpenAIEmbedder(
        spec,
        offline=options.offline,
        account=account,
        concurrency=options.concurrency,
        cancel=options.cancel,
    )


def _vectors(spec: str, folder: str, _: EmbedderOptions) -> Embedder:
    from ketrag_fast.models.embedders.precomputed import BroughtVectors

    return BroughtVectors(spec, Path(folder).expanduser())


_LOADERS: Final[dict[str, Callable[[str, str, EmbedderOptions], Embedder]]] = {
    "local": _local,
    "native": _native,
    "sentence-transformers": _sentence_transformers,
    "openai": _openai,
    "vectors": _vectors,
}
