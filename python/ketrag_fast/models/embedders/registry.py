"""Load embedding models by spec. A spec is parsed without importing any of their modules.

`native:NAME_OR_PATH`, `sentence-transformers:NAME_OR_PATH`, `local:NAME_OR_PATH` (the first of these two that
supports the model), `openai:MODEL@URL[#PROMPTS]`, `vectors:FOLDER`.

`builtin` is not a model: the build fits its vectors to the corpus.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.base.config.settings import prices_of
from ketrag_fast.errors import BackendError, BackendMissing, ConfigError, KetragError, NetworkForbidden
from ketrag_fast.models.spending import Account, SpendingLimit
from ketrag_fast.records import dataclass, replace

if TYPE_CHECKING:
    from ketrag_fast.models.embedders.model_folder import ModelFolder
    from ketrag_fast.models.embedders.protocol import Cancel, Embedder, Precision

BUILTIN: Final = "builtin"
_FORMS: Final = (
    "builtin, local:NAME_OR_PATH, native:NAME_OR_PATH, sentence-transformers:NAME_OR_PATH, "
    "openai:MODEL@URL, ollama:MODEL, lmstudio:MODEL, vectors:FOLDER"
)
FOLDERS: Final = frozenset(("sentence-transformers", "native", "local"))
_KINDS: Final = FOLDERS | {"openai", "vectors"}


@dataclass(frozen=True, slots=True)
class EmbedderOptions:
    """Options for loading a model. None of them changes its fingerprint.

    `limit` is the spending limit of the endpoint, maybe shared with other models. `cancel` is called while an
    endpoint is opened and raises Cancelled by returning True. `is_for_queries`: an endpoint that fails is not
    tried again for long, because somebody waits.
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
    is_for_queries: bool = False


def options_of(settings: Settings, limit: SpendingLimit | None = None) -> EmbedderOptions:
    """Return the load options of settings.

    `limit` is shared with other models of a build or an open index; by default the limit in the settings
    applies to this model alone.
    """
    prices = prices_of(settings.usd_per_million)
    return EmbedderOptions(
        precision=settings.precision,
        device=settings.device,
        threads=settings.threads,
        offline=settings.offline,
        allow_download=settings.allow_download,
        limit=SpendingLimit(settings.limit_usd) if limit is None else limit,
        usd_per_million=None if prices is None else prices[0],
    )


def parse(spec: str) -> tuple[str, str]:
    """Return (kind, rest) of a spec. Raises ConfigError, which lists the forms."""
    if spec == BUILTIN:
        return BUILTIN, ""
    kind, colon, rest = spec.partition(":")
    if not colon or kind not in _KINDS or not rest.strip():
        raise ConfigError(f"embedder must be one of {_FORMS}, got {spec!r}")
    return kind, rest


def load(spec: str, options: EmbedderOptions | None = None) -> Embedder:
    """Load the model of a spec. Raises KetragError if that fails."""
    kind, rest = parse(spec)
    options = options or EmbedderOptions()
    if kind in FOLDERS:
        return _load_folder(kind, spec, _folder(rest, options), options)
    if kind == "openai":
        from ketrag_fast.models.embedders.openai import OpenAIEmbedder
        from ketrag_fast.models.http.endpoints import QUERY_RETRY

        return OpenAIEmbedder(
            spec,
            offline=options.offline,
            account=Account(options.usd_per_million, options.limit),
            concurrency=options.concurrency,
            retry=QUERY_RETRY if options.is_for_queries else None,
            cancel=options.cancel,
        )
    if kind == "vectors":
        from ketrag_fast.models.embedders.precomputed import PrecomputedVectors

        return PrecomputedVectors(spec, Path(rest).expanduser())
    raise ConfigError("builtin vectors are fitted by the build and have no model to load")


def _load_folder(kind: str, spec: str, folder: ModelFolder, options: EmbedderOptions) -> Embedder:
    """Load a model; `local:` chooses the native encoder if it supports model and device."""
    from ketrag_fast.models.embedders.native import NativeEmbedder, refusal

    reason = None
    if kind == "local":
        reason = refusal(folder)
        if reason is None and options.device not in ("auto", "cpu"):
            reason = f"the native encoder does not run on {options.device}"
    if kind == "native" or (kind == "local" and reason is None):
        return NativeEmbedder(
            spec, folder, precision=options.precision, device=options.device, threads=options.threads
        )
    from ketrag_fast.models.embedders.sentence_transformers import SentenceTransformersEmbedder

    try:
        loaded = SentenceTransformersEmbedder(
            spec, folder, precision=options.precision, device=options.device, threads=options.threads
        )
    except BackendMissing as error:
        if reason is None:
            raise
        raise BackendMissing(f"{spec}: {reason}; {error.message}", hint=error.hint) from error
    if reason is not None:
        loaded.engine = replace(loaded.engine, notes=(*loaded.engine.notes, f"not native: {reason}"))
    return loaded


def fingerprint(spec: str, options: EmbedderOptions | None = None) -> str:
    """Return the fingerprint of a model without loading it; it does not depend on the location."""
    kind, rest = parse(spec)
    if kind in FOLDERS:
        from ketrag_fast.models.embedders.fingerprint import of_folder

        return of_folder(_folder(rest, options or EmbedderOptions()))
    if kind == "openai":
        from ketrag_fast.models.embedders.fingerprint import of_endpoint
        from ketrag_fast.models.http.endpoints import parts_of, prompts_of

        return of_endpoint(parts_of(spec)[0], prompts_of(spec))
    if kind == "vectors":
        from ketrag_fast.models.embedders.precomputed import of_vectors

        return of_vectors(Path(rest).expanduser())
    raise ConfigError("builtin vectors have no model")


def pools_spans(spec: str, options: EmbedderOptions) -> bool:
    """Return whether a model returns vectors of spans from the pass of their text; loads nothing."""
    kind, rest = parse(spec)
    if kind != "local":
        return kind == "native"
    from ketrag_fast.models.embedders.native import refusal

    return options.device in ("auto", "cpu") and refusal(_folder(rest, options)) is None


def require(spec: str, options: EmbedderOptions) -> None:
    """Raise KetragError if the files of a model are missing or it cannot be used; loads and hashes nothing.

    A model that may be downloaded is fetched.
    """
    kind, rest = parse(spec)
    if kind in FOLDERS:
        folder = _folder(rest, options)
        if kind == "native":
            from ketrag_fast.models.embedders.native import require_supported

            require_supported(spec, folder)
    elif kind == "openai":
        fingerprint(spec, options)
    elif kind == "vectors":
        from ketrag_fast.models.embedders.precomputed import require_files

        require_files(Path(rest).expanduser())


def _folder(name: str, options: EmbedderOptions) -> ModelFolder:
    """Return the checked folder of a model, downloaded if the options allow it explicitly."""
    from ketrag_fast.models.embedders.discovery import is_name, resolve
    from ketrag_fast.models.embedders.model_folder import look

    path = resolve(name)
    if path is not None:
        return look(path)
    if not is_name(name):
        raise BackendError(f"no such folder: {name}", hint="`ketrag models` lists local models")
    if options.offline or not options.allow_download:
        raise NetworkForbidden(
            f"the model {name} is not on this machine, and downloading is not allowed",
            hint="`ketrag models` lists local models and how to install one; "
            "--allow-download fetches it from the hub",
        )
    from ketrag_fast.models.optional_imports import import_quietly

    hub = import_quietly("huggingface_hub", "embed")
    wanted = ["*.json", "*.txt", "*.safetensors", "*.model", "*.spm"]
    unwanted = ["onnx/*", "openvino/*"]
    full = name if "/" in name else f"sentence-transformers/{name}"
    try:
        return look(Path(hub.snapshot_download(full, allow_patterns=wanted, ignore_patterns=unwanted)))
    except KetragError:
        raise
    except Exception as error:  # the hub client may raise anything
        raise BackendError(f"{full} could not be downloaded: {type(error).__name__}: {error}") from error
