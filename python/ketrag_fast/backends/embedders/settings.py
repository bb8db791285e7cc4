"""How settings become the options with which a model is loaded."""

from __future__ import annotations

from ketrag_fast.backends.embedders.registry import Options
from ketrag_fast.config import Settings


def options_of(settings: Settings) -> Options:
    """The options that settings name."""
    return Options(
        precision=settings.precision,
        device=settings.device,
        threads=settings.threads,
        offline=settings.offline,
        allow_download=settings.allow_download,
        limit_usd=settings.limit_usd,
        usd_per_million=settings.usd_per_million,
    )
