"""The settings of a build and its embedding model, checked against those that the index was built with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.config import Resolved, Settings, resolve
from ketrag_fast.errors import ConfigError, ModelMismatch
from ketrag_fast.models.endpoint_trust import Trust
from ketrag_fast.models.llms.registry import NONE
from ketrag_fast.models.spending import SpendingLimit
from ketrag_fast.storage.generation import Generation
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.index_settings import check_embedder, settings_of, spec_here, to_build_on, with_modes
from ketrag_fast.systems.planning import wanted_modes
from ketrag_fast.systems.registry import registry

if TYPE_CHECKING:
    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.embedders.fingerprint import Identity

_SERVES: Final = "the old generation stays in use until then"


@contextmanager
def source_of(
    settings: Settings, layout: Layout, limit: SpendingLimit, trust: Trust
) -> Iterator[VectorSource | None]:
    """Open the embedding model of the settings; None for the built-in vectors.

    It is loaded on first use, which raises EndpointNotConfirmed if `trust` does not allow its endpoint.
    """
    from ketrag_fast.models.embedders.registry import BUILTIN, parse

    spec = spec_here(settings.embedder, layout)
    if parse(spec)[0] == BUILTIN:
        yield None
        return
    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.embedders.registry import options_of

    layout.work.mkdir(parents=True, exist_ok=True)
    permit = partial(trust.require, "embedder", spec, "the text of the documents")
    with VectorSource(spec, options_of(settings, limit), layout.tables, layout.work, permit) as source:
        yield source


def require_some_mode(settings: Settings) -> None:
    """Raise ConfigError if every mode of the settings needs a reader and there is none."""
    if not wanted_modes(settings, settings.llm != NONE):
        raise ConfigError(
            f"modes: {settings.modes} needs entities that an LLM extracts, and no LLM is set",
            hint="give --llm SPEC (heuristic needs no model); --modes +MODE keeps the other modes",
        )


def stored_identity(base: Generation | None) -> Identity | None:
    """Return the identity of a generation's embedding model; None for the built-in vectors."""
    from ketrag_fast.models.embedders.fingerprint import Identity

    stored = base.manifest.models.get("embedder") if base is not None else None
    return Identity.from_json(stored) if stored else None


def require_same_model(base: Generation | None, source: VectorSource | None, rebuild: bool) -> None:
    """Raise ModelMismatch if the model's files changed in place since the index was built."""
    stored = stored_identity(base) if source is not None and not rebuild else None
    if stored is not None and source is not None and stored.fingerprint != source.fingerprint:
        raise ModelMismatch(
            f"the index was built with {stored.spec} (fingerprint {stored.fingerprint[:12]}); "
            f"{source.spec} has {source.fingerprint[:12]}",
            hint=f"`ketrag reembed` computes new vectors ({_SERVES}); or restore the old model",
        )


def _is_model_moved(base: Generation, settings: Settings) -> bool:
    """Return whether the requested embedder is the index's model at a different location."""
    from ketrag_fast.models.embedders.registry import BUILTIN, fingerprint, options_of

    stored = base.manifest.models.get("embedder")
    if not stored or settings.embedder == BUILTIN:
        return False
    return bool(stored["fingerprint"] == fingerprint(settings.embedder, options_of(settings)))


def _require_embedder(settings: Settings) -> None:
    """Raise KetragError if the model of a new index is missing: before any document is read."""
    from ketrag_fast.models.embedders.registry import BUILTIN, options_of, require

    if settings.embedder != BUILTIN:
        require(settings.embedder, options_of(settings))


def settings_for(
    base: Generation | None, settings: Settings, rebuild: bool, begun: Mapping[str, Any] | None = None
) -> Resolved:
    """Resolve all settings. Without a generation those of an unfinished build (`begun`) are continued.

    Raises if they invalidate earlier work and `rebuild` is False, or name a new model that is missing.
    """
    earlier = settings_of(base.manifest) if base is not None else begun
    stored = to_build_on(earlier, settings, rebuild) if earlier is not None else None
    settings = with_modes(settings, stored, only=rebuild)
    resolved = resolve(flags=settings.given, index=stored, presets=registry().table)
    heavy = resolved.needs_rebuild
    if base is not None and "embedder" in heavy and _is_model_moved(base, resolved.settings):
        heavy = tuple(name for name in heavy if name != "embedder")
    if base is None or (rebuild and "embedder" in heavy):
        _require_embedder(resolved.settings)
    if base is None or rebuild or not heavy or base.manifest.documents.get("count") == 0:
        return resolved
    lines = "; ".join(f"{name} is {old!r}, not {new!r}" for name, old, new in resolved.differences)
    alone = heavy == ("embedder",)
    command = "`ketrag reembed --embedder ...` computes new vectors" if alone else "--rebuild builds it again"
    hint = f"{command} ({_SERVES}); or keep the settings of the index"
    if "embedder" in heavy:
        check_embedder(resolved.settings.embedder)
        raise ModelMismatch(f"the index was built with a different embedder: {lines}", hint=hint)
    raise ConfigError(f"the index was built with different units: {lines}", hint=hint)
