"""Turn settings into the options for loading a model."""

from __future__ import annotations

from ketrag_fast.base.config import Settings
from ketrag_fast.models.embedders.registry import EmbedderOptions
from ketrag_fast.models.spending import SpendingLimit


def options_of(settings: Settings, limit: SpendingLimit | None = None) -> EmbedderOptions:
    """Return the load options of settings.

    `limit` is shared with other models of a build or an open index; by default the limit in the settings
    applies to this model alone.
    """
    return EmbedderOptions(
        precision=settings.precision,
        device=settings.device,
        threads=settings.threads,
        offline=settings.offline,
        allow_download=settings.allow_download,
        limit=SpendingLimit(settings.limit_usd) if limit is None else limit,
        usd_per_million=settings.usd_per_million,
    )
