"""The report of a finished build: usage, warnings about missing parts of the index, and the log of builds."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ketrag_fast.base.config import Settings
from ketrag_fast.base.config.shared import LARGE
from ketrag_fast.base.installed import install_command
from ketrag_fast.records import replace
from ketrag_fast.storage.manifest import StageRecord
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.planning import AUTO, needs_reader, sizes_of
from ketrag_fast.systems.registry import registry
from ketrag_fast.systems.shared.memory_bound import peak_memory
from ketrag_fast.systems.spec.stage import order_stages
from ketrag_fast.types import BuildReport, Usage

if TYPE_CHECKING:
    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.extraction.run import Reading


def usage_of(
    tables: Tables,
    stages: Mapping[str, StageRecord],
    source: VectorSource | None,
    reading: Reading | None = None,
) -> Usage:
    """Return the usage of a build: `stages` of its generation, its embedding model and its reader, if any."""
    read = reading.total if reading is not None and reading.reader.model is not None else None
    tally = source.tally if source is not None else None
    sizes = sizes_of(stages)
    return Usage(
        documents=tables.count(),
        characters=tables.characters(),
        chunks=sizes.get("chunks", 0),
        core_chunks=sizes.get("core_chunks", 0),
        calls=read.asked if read is not None else 0,
        tokens_in=read.tokens_in if read is not None else 0,
        tokens_out=read.tokens_out if read is not None else 0,
        llm_seconds=read.seconds if read is not None else 0.0,
        embedding_texts=tally.texts if tally is not None else 0,
        embedding_tokens=tally.tokens if tally is not None else 0,
        memory=peak_memory(),
    )


def warn_of_missing_parts(
    settings: Settings, stages: Mapping[str, StageRecord], has_model: bool, has_reader: bool
) -> list[str]:
    """Return warnings about what the index lacks: a reader that its default mode needs, and hnswlib."""
    about = None if has_reader else _missing_reader(settings)
    sizes = sizes_of(stages)
    counts: dict[str, int] = {}
    for stage in registry().stages:
        if stage.large is not None and (has_model or stage.proposes is None):
            what, size = stage.large
            counts[what] = sizes.get(size, 0)
    hints = [about, _missing_hnswlib(counts, settings.ann)]
    return [hint for hint in hints if hint is not None]


def _missing_hnswlib(counts: Mapping[str, int], choice: str) -> str | None:
    """Return a warning if `auto` uses the exact scan only because hnswlib is not installed."""
    many = [f"{count:,} {name}" for name, count in counts.items() if count >= LARGE]
    if choice != "auto" or not many:
        return None
    from ketrag_fast.models.ann import is_hnswlib_installed

    if is_hnswlib_installed():
        return None
    return (
        f"hnswlib is not installed, so {' and '.join(many)} are searched by an exact scan "
        f"({install_command('ann')}, then ketrag index --rebuild; or -o ann=exact)"
    )


def _missing_reader(settings: Settings) -> str | None:
    """Return a warning if the default mode of the system needs a reader of the core chunks."""
    found = registry()
    mode = found.presets.get(settings.system, {}).get("mode", AUTO)
    if mode == AUTO or not needs_reader(found, mode, settings):
        return None
    channels = found.recipes[mode].channels
    rest = [name for name in channels if not _needs_reader(name, settings)]
    half = f"its channel {rest[0]} is built; " if rest else ""
    return (
        f"{settings.system}: {half}the stages that need a reader are not: choose the reader of the core "
        "chunks with --llm (heuristic needs no model)"
    )


def _needs_reader(channel: str, settings: Settings) -> bool:
    """Return whether a channel needs a stage for which a reader extracts entities."""
    found = registry()
    needs = found.channels[channel].needed(settings)
    return any(stage.reads for stage in order_stages(found.stages, needs, settings))


def remember(tables: Tables, report: BuildReport) -> None:
    """Store that the documents are published, and the run if it changed anything or had failures."""
    if not report.changed and not report.failures:
        if not tables.is_published():
            with tables.transaction():
                tables.mark_published()
        return
    about = {"failures": len(report.failures), "settings": tables.settings()}
    counted = replace(report, failures=(), skipped=())  # the lists themselves are stored once, elsewhere
    data: dict[str, Any] = {**counted.to_json(), **about, "skipped": len(report.skipped)}
    started = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=report.seconds)
    with tables.transaction():
        tables.mark_published()
        tables.add_run(
            started.isoformat(timespec="seconds"),
            report.seconds,
            report.generation,
            report.changed,
            json.dumps(data, ensure_ascii=False),
        )
